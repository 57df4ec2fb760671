//! From what was read to a [`Spec`]: judges what concerns several blocks, then puts the spec together.

use castle_model::name::check_label;
use castle_model::spec::{
    DownloadsSpec, MachinesSpec, PlatformSpec, ProxmoxSpec, SecretRef, TokenSpec, Trust, Version,
};
use castle_model::{Lock, Spec};

use crate::Sources;
use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::machines::{self, Group};
use crate::reader::Contents;
use crate::{built_in, layers, network, secret_sources, talos, versions};

/// Judges a castle and makes its spec; none if something that it needs is wrong.
pub(crate) fn read(castle: &Contents, sources: &Sources, findings: &mut Findings) -> Option<Spec> {
    name(castle, findings);
    versions::judge(castle, findings);
    let platform = castle.block("platform").and_then(|block| platform(block, findings));
    let secrets = secret_sources::read(castle, findings);
    let groups = machines::read(castle, findings);
    same_names(&groups, findings);
    network::judge(castle, &groups, findings);
    network::vmids(castle, &groups, findings);
    let built_in = built_in::read(castle, &groups, secrets.as_ref(), sources, findings);
    let machine = talos::read(castle, &groups, sources, findings);
    let layers = layers::read(castle, sources, findings);
    let deadlines = layers::deadlines(castle, findings);
    let lock = lock(sources, findings);
    let built_in = built_in?;
    let spec = Spec {
        name: castle.label.as_ref()?.value.parse().ok()?,
        talos: castle.plain::<Version>("talos")?,
        kubernetes: castle.plain::<Version>("kubernetes")?,
        secrets: secrets?,
        platform: platform?,
        network: network::spec(castle.block("network")?)?,
        machine: machine?,
        nodes: groups.into_iter().flat_map(|g| g.nodes).collect(),
        engine: built_in.engine,
        networking: built_in.networking,
        storage: built_in.storage,
        gitops: built_in.gitops,
        layers,
        downloads: downloads(castle),
        deadlines,
        lock: lock?,
    };
    secret_sources::judge_shapes(castle, &spec, findings);
    Some(spec)
}

fn downloads(castle: &Contents) -> DownloadsSpec {
    let setting = |name| castle.block("downloads").and_then(|block| block.plain(name));
    DownloadsSpec { mirror: setting("mirror"), factory: setting("factory") }
}

/// What `castle.lock` pins; none if it can not be used.
fn lock(sources: &Sources, findings: &mut Findings) -> Option<Lock> {
    let Some(bytes) = &sources.lock else { return Some(Lock::default()) };
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
    match text.and_then(|text| Lock::from_text(text).map_err(|error| error.to_string())) {
        Ok(lock) => Some(lock),
        Err(reason) => {
            findings.add(
                Finding::error("C1001", "castle.lock can not be used")
                    .note(reason)
                    .note("it pins what the castle is made from, so nothing is guessed over it")
                    .help("take it from version control again; or remove it, and `castle lock` makes a new one"),
            );
            None
        }
    }
}

fn name(castle: &Contents, findings: &mut Findings) {
    let Some(name) = &castle.label else { return };
    if let Err(reason) = check_label(&name.value) {
        let finding =
            Finding::error("C0401", "this is not a name of a castle").at(&name.range, "the name");
        findings.add(
            finding
                .note(reason.to_string())
                .note("it becomes part of host names, so it follows RFC 1123")
                .help("use a-z, 0-9 and `-`, such as \"blue\""),
        );
    }
}

pub(crate) fn trust(block: &Contents, findings: &mut Findings) -> Option<Trust> {
    let (fingerprint, ca) = (block.get::<String>("fingerprint"), block.get::<String>("ca"));
    Some(match (fingerprint, ca) {
        (Some(fingerprint), Some(ca)) => {
            findings.add(
                Finding::error("C0111", "both `fingerprint` and `ca` are given")
                    .at(&ca.range, "the authority")
                    .related(&fingerprint.range, "the fingerprint")
                    .note("a certificate is verified in one way, and the file does not say which")
                    .help("keep `ca` if the certificate is renewed from time to time, else `fingerprint`"),
            );
            return None;
        }
        (Some(fingerprint), None) => Trust::Fingerprint(fingerprint.value),
        (None, Some(ca)) => Trust::Authority(ca.value),
        (None, None) => Trust::System,
    })
}

fn platform(block: &Contents, findings: &mut Findings) -> Option<PlatformSpec> {
    let extensions = |block: &Contents| {
        let extensions: Vec<Located<String>> = block.plain("extensions")?;
        let mut extensions: Vec<String> = extensions.into_iter().map(|e| e.value).collect();
        extensions.sort();
        Some(extensions)
    };
    if block.label.as_ref()?.value == "machines" {
        return Some(PlatformSpec::Machines(MachinesSpec {
            installer: block.plain("installer")?,
            install_disk: block.plain("install_disk")?,
            link: block.plain("link")?,
            extensions: extensions(block)?,
        }));
    }
    let (trust, token) = (trust(block, findings), token(block, findings));
    Some(PlatformSpec::Proxmox(ProxmoxSpec {
        endpoint: block.plain("endpoint")?,
        trust: trust?,
        token: token?,
        node: block.plain("node")?,
        storage: block.plain("storage")?,
        image_storage: block.plain("image_storage")?,
        bridge: block.plain("bridge")?,
        vmids: block.plain("vmids")?,
        extensions: extensions(block)?,
    }))
}

/// The token is given as one text or in two parts, never both, never half.
fn token(block: &Contents, findings: &mut Findings) -> Option<TokenSpec> {
    const PARTS: [&str; 2] = ["token_id", "token_secret"];
    let part = PARTS.into_iter().find(|key| block.may_be_written(key));
    match (block.get::<SecretRef>("token"), part) {
        (Some(whole), Some(part)) if block.is_given(part) => {
            let place = block.get::<SecretRef>(part)?;
            findings.add(
                Finding::error("C0111", format!("both `token` and `{part}` are given"))
                    .at(&place.range, "a part of the token")
                    .related(&whole.range, "the whole token")
                    .note("`token` is the whole of it, USER@REALM!ID=SECRET, and the file does not say which one counts")
                    .help("keep `token`, or `token_id` and `token_secret`"),
            );
            None
        }
        (Some(whole), _) => Some(TokenSpec::Whole(whole.value)),
        (None, _) if block.may_be_written("token") => None,
        (None, None) => {
            findings.add(
                Finding::error("C0103", "`platform \"proxmox\"` lacks its token")
                    .at(&block.header, "in this block")
                    .note("castle speaks to the API of Proxmox with an API token")
                    .help("add token = secret(\"PROXMOX_TOKEN\"), or token_id and token_secret"),
            );
            None
        }
        (None, Some(_)) => {
            for missing in PARTS.into_iter().filter(|key| !block.may_be_written(key)) {
                let title = format!("`platform \"proxmox\"` lacks `{missing}`");
                findings.add(
                    Finding::error("C0103", title)
                        .at(&block.header, "in this block")
                        .note("the other half of the token is given")
                        .help(format!(
                            "add {missing} = secret(\"PROXMOX_{}\")",
                            missing.to_uppercase()
                        )),
                );
            }
            Some(TokenSpec::Parts { id: block.plain(PARTS[0])?, secret: block.plain(PARTS[1])? })
        }
    }
}

/// Two roles with one beginning would give two machines one name.
fn same_names(groups: &[Group], findings: &mut Findings) {
    let [one, other] = groups else { return };
    if one.prefix.0 == other.prefix.0 && one.count.unwrap_or(0) > 0 && other.count.unwrap_or(0) > 0
    {
        let title = format!("{} and {} machines have the same names", one.label(), other.label());
        findings.add(
            Finding::error("C0508", title)
                .at(&other.prefix.1, format!("`{}-01` and so on", other.prefix.0))
                .related(&one.prefix.1, "the same")
                .help("give one of the two another `name_prefix`"),
        );
    }
}
