//! What every machine's Talos is told beyond the necessary: certificates, encryption, modules, registries, patches.

use castle_model::spec::{DiskEncryption, MachineSpec, RegistrySpec, SecretRef};

use crate::Sources;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::forms::check_registry;
use crate::machines::Group;
use crate::patches;
use crate::reader::Contents;

/// Reads the block `machine`; none if something of it is wrong.
pub(crate) fn read(
    castle: &Contents,
    groups: &[Group],
    sources: &Sources,
    findings: &mut Findings,
) -> Option<MachineSpec> {
    let Some(block) = castle.block("machine") else { return Some(MachineSpec::default()) };
    let modules: Option<Vec<Located<String>>> = block.plain("kernel_modules");
    for module in modules.iter().flatten() {
        findings.add_some(module_finding(&module.value).map(|f| f.at(&module.range, "not needed")));
    }
    let names = block.plain::<Vec<Located<String>>>("cert_sans").unwrap_or_default();
    let disk_encryption = match block.block("disk_encryption") {
        Some(block) => disk_encryption(block, findings).map(Some),
        None => Some(None),
    };
    let written = block.blocks.iter().filter(|b| b.grammar.keyword == "registry");
    let registries: Vec<Option<RegistrySpec>> = written.map(|b| registry(b, findings)).collect();
    let patches = patches::read(block, groups, sources, findings);
    Some(MachineSpec {
        cert_sans: names.into_iter().map(|name| name.value).collect(),
        secretbox: block.plain("secretbox")?,
        disk_encryption: disk_encryption?,
        coredns: block.plain("coredns")?,
        kernel_modules: modules?.into_iter().map(|module| module.value).collect(),
        registries: registries.into_iter().collect::<Option<_>>()?,
        patches: patches?,
    })
}

/// The finding about a kernel module that must not be listed, without its place.
pub(crate) fn module_finding(name: &str) -> Option<Finding> {
    name.to_ascii_lowercase().contains("iscsi").then(|| {
        Finding::error("C0901", format!("the kernel module `{name}` must not be listed"))
            .note("Talos has iSCSI in its kernel; a module that is not there keeps the machine from booting to the end")
            .help("take it out: the extension `siderolabs/iscsi-tools` is all that Longhorn needs")
    })
}

fn disk_encryption(block: &Contents, findings: &mut Findings) -> Option<DiskEncryption> {
    let method = block.get::<String>("method")?;
    let passphrase = block.get::<SecretRef>("passphrase");
    match (method.value.as_str(), passphrase) {
        ("passphrase", Some(passphrase)) => Some(DiskEncryption::Passphrase(passphrase.value)),
        ("passphrase", None) => {
            if !block.may_be_written("passphrase") {
                findings.add(
                    Finding::error("C0113", "the method is a passphrase, and there is none")
                        .at(&method.range, "needs `passphrase`")
                        .help("add passphrase = secret(\"DISK_PASSPHRASE\")"),
                );
            }
            None
        }
        (other, Some(passphrase)) => {
            findings.add(
                Finding::error("C0113", format!("the method `{other}` takes no passphrase"))
                    .at(&passphrase.range, "would never be used")
                    .related(&method.range, "the method")
                    .help("take `passphrase` out, or set method = \"passphrase\""),
            );
            None
        }
        ("tpm", None) => Some(DiskEncryption::Tpm),
        (_, None) => Some(DiskEncryption::NodeId),
    }
}

fn registry(block: &Contents, findings: &mut Findings) -> Option<RegistrySpec> {
    let host = block.label.as_ref()?;
    if let Err(reason) = check_registry(&host.value) {
        findings.add(
            Finding::error("C0908", "a registry is named by its host")
                .at(&host.range, "not a host")
                .note(reason)
                .help("write registry \"docker.io\" { … }"),
        );
        return None;
    }
    let (username, password) =
        (block.get::<SecretRef>("username"), block.get::<SecretRef>("password"));
    for (one, other, given) in
        [("username", "password", &username), ("password", "username", &password)]
    {
        if let Some(given) = given.as_ref().filter(|_| !block.may_be_written(other)) {
            findings.add(
                Finding::error("C0113", format!("`{one}` without `{other}`"))
                    .at(&given.range, "half of the credentials")
                    .help(format!("add {other} = secret(\"REGISTRY_{}\")", other.to_uppercase())),
            );
        }
    }
    let mirrors: Vec<Located<String>> = block.plain("mirrors")?;
    Some(RegistrySpec {
        host: host.value.clone(),
        mirrors: mirrors.into_iter().map(|mirror| mirror.value).collect(),
        skip_fallback: block.plain("skip_fallback")?,
        ca: block.plain("ca"),
        username: username.map(|key| key.value),
        password: password.map(|key| key.value),
    })
}
