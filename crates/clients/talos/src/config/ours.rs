//! What castle adds to the documents of Talos' own generator: the network, volumes, modules, registries.

use std::collections::BTreeMap;

use castle_model::spec::{DiskEncryption, NetworkSpec, Spec};
use castle_model::{Failure, Secret};
use serde_json::{Value, json};

use super::{Contract, DATA_VOLUME, Draft, Secrets, document};

/// The name servers, as a resolver's document lists them.
pub(super) fn nameservers(spec: &Spec) -> Value {
    spec.network.nameservers.iter().map(|server| json!({ "address": server })).collect()
}

/// The mirrors of registries, a document each. The generator makes these itself, when it is told of mirrors.
pub(super) fn mirrors(spec: &Spec) -> Vec<Value> {
    let registries = spec.machine.registries.iter();
    let mirrored =
        registries.filter(|registry| !registry.mirrors.is_empty() || registry.skip_fallback);
    mirrored
        .map(|registry| {
            let mut mirror = json!({ "name": registry.host });
            if !registry.mirrors.is_empty() {
                let endpoints = registry.mirrors.iter().map(|url| json!({ "url": url }));
                mirror["endpoints"] = endpoints.collect();
            }
            if registry.skip_fallback {
                mirror["skipFallback"] = json!(true);
            }
            document("RegistryMirrorConfig", mirror)
        })
        .collect()
}

/// How volumes are encrypted, if they are.
pub(super) fn encryption(spec: &Spec, secrets: Secrets) -> Result<Option<Value>, Failure> {
    let Some(wanted) = &spec.machine.disk_encryption else { return Ok(None) };
    let key = match wanted {
        DiskEncryption::NodeId => json!({ "slot": 0, "nodeID": {} }),
        DiskEncryption::Tpm => json!({ "slot": 0, "tpm": {} }),
        DiskEncryption::Passphrase(key) => {
            json!({ "slot": 0, "static": { "passphrase": secrets(key)?.expose() } })
        }
    };
    Ok(Some(json!({ "provider": "luks2", "keys": [key] })))
}

/// Adds our documents behind those of the generator.
pub(super) fn add(
    draft: &Draft,
    encryption: Option<&Value>,
    secrets: Secrets,
    documents: &mut Vec<Value>,
) -> Result<(), Failure> {
    let split = draft.contract >= Contract::V1_14;
    network(draft, split, documents);
    volumes(draft, split, encryption, documents);
    if split {
        let modules = draft.spec.machine.kernel_modules.iter();
        documents
            .extend(modules.map(|name| document("KernelModuleConfig", json!({ "name": name }))));
    }
    registries(draft.spec, secrets, documents)
}

/// One link document switches DHCP off on all links, which is what a castle wants.
fn network(draft: &Draft, split: bool, documents: &mut Vec<Value>) {
    let NetworkSpec { subnet, gateway, vip, ntp, .. } = &draft.spec.network;
    let link = draft.link();
    let address = format!("{}/{}", draft.node.address, subnet.prefix());
    let body = json!({
        "name": link,
        "addresses": [{ "address": address }],
        "routes": [{ "gateway": gateway }],
    });
    documents.push(document("LinkConfig", body));
    if !split {
        let servers = nameservers(draft.spec);
        documents.push(document("ResolverConfig", json!({ "nameservers": servers })));
    }
    documents.push(document("TimeSyncConfig", json!({ "ntp": { "servers": ntp } })));
    if draft.is_control_plane() {
        documents.push(document("Layer2VIPConfig", json!({ "name": vip, "link": link })));
    }
}

/// The volume on the second disk, and the encryption of all volumes. A split config has its EPHEMERAL already.
fn volumes(draft: &Draft, split: bool, encryption: Option<&Value>, documents: &mut Vec<Value>) {
    let system: &[&str] = if split { &["STATE"] } else { &["STATE", "EPHEMERAL"] };
    if let Some(encryption) = encryption {
        documents.extend(system.iter().map(|name| {
            document("VolumeConfig", json!({ "name": name, "encryption": encryption }))
        }));
    }
    if draft.node.has_data_disk() {
        let mut volume = json!({
            "name": DATA_VOLUME,
            "provisioning": { "diskSelector": { "match": "!system_disk" }, "minSize": "1GiB" },
        });
        if let Some(encryption) = encryption {
            volume["encryption"] = encryption.clone();
        }
        documents.push(document("UserVolumeConfig", volume));
    }
}

/// Who the machines are to registries, and what they verify them by. Credentials go to the registry itself and never
/// to its mirrors; an authority is that of the mirrors, where there are any.
fn registries(spec: &Spec, secrets: Secrets, documents: &mut Vec<Value>) -> Result<(), Failure> {
    let mut authorities: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for registry in &spec.machine.registries {
        let value = |key| Option::transpose(Option::map(key, secrets));
        let (username, password) =
            (value(registry.username.as_ref())?, value(registry.password.as_ref())?);
        if username.is_some() || password.is_some() {
            let mut body = json!({ "name": registry.host });
            for (key, secret) in [("username", username), ("password", password)] {
                if let Some(secret) = secret {
                    body[key] = json!(Secret::expose(&secret));
                }
            }
            documents.push(document("RegistryAuthConfig", body));
        }
        let Some(ca) = &registry.ca else { continue };
        let mirrors: Vec<&str> = registry.mirrors.iter().map(|url| host(url)).collect();
        for name in if mirrors.is_empty() { vec![registry.host.as_str()] } else { mirrors } {
            let known = authorities.entry(name).or_default();
            if !known.contains(&ca.as_str()) {
                known.push(ca);
            }
        }
    }
    documents.extend(authorities.iter().map(|(name, authorities)| {
        document("RegistryTLSConfig", json!({ "name": name, "ca": authorities.join("\n") }))
    }));
    Ok(())
}

/// The host of an address such as `https://mirror.lan:5000/v2`, with its port.
fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}
