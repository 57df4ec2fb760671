//! Reads a machine config as strictly as Talos does, and keeps what the emulation acts on.

use std::fmt;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::Code;

use super::Refusal;

/// What a machine knows from its config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Config {
    pub(super) control_plane: bool,
    pub(super) hostname: Option<String>,
    pub(super) address: Option<Ipv4Addr>,
    pub(super) vip: Option<Ipv4Addr>,
    /// The address of the cluster's endpoint, if it is an address.
    pub(super) endpoint: Option<Ipv4Addr>,
    /// The cluster's id.
    pub(super) cluster: String,
    pub(super) os: Pair,
    pub(super) kubernetes: Pair,
    /// Tells whether another config is the same.
    pub(super) text: Text,
}

/// A certificate and its key, both PEM; the key is empty on workers.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pair(…)")
    }
}

/// The whole config as it was sent.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Text(pub(super) String);

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Text(…)")
    }
}

/// The documents that are known, each with the keys it may have.
const DOCUMENTS: &[(&str, &[&str])] = &[
    ("HostnameConfig", &["hostname", "auto"]),
    ("LinkConfig", &["name", "up", "mtu", "addresses", "routes"]),
    ("Layer2VIPConfig", &["name", "link"]),
    ("ResolverConfig", &["nameservers", "searchDomains"]),
    ("TimeSyncConfig", &["enabled", "bootTimeout", "ntp", "ptp"]),
    (
        "UserVolumeConfig",
        &["name", "provisioning", "filesystem", "encryption", "mount", "volumeType"],
    ),
    ("VolumeConfig", &["name", "provisioning", "encryption", "mount"]),
    ("RegistryMirrorConfig", &["name", "endpoints", "skipFallback"]),
];

/// The keys of the main document, by their place in it.
const MAIN: &[(&str, &[&str])] = &[
    ("", &["version", "debug", "persist", "machine", "cluster"]),
    (
        "machine",
        &[
            "type",
            "token",
            "ca",
            "acceptedCAs",
            "certSANs",
            "controlPlane",
            "kubelet",
            "pods",
            "network",
            "install",
            "files",
            "env",
            "time",
            "sysctls",
            "sysfs",
            "registries",
            "features",
            "udev",
            "logging",
            "kernel",
            "seccompProfiles",
            "nodeLabels",
            "nodeAnnotations",
            "nodeTaints",
        ],
    ),
    (
        "cluster",
        &[
            "id",
            "secret",
            "controlPlane",
            "clusterName",
            "network",
            "token",
            "aescbcEncryptionSecret",
            "secretboxEncryptionSecret",
            "ca",
            "acceptedCAs",
            "aggregatorCA",
            "serviceAccount",
            "apiServer",
            "controllerManager",
            "proxy",
            "scheduler",
            "discovery",
            "etcd",
            "coreDNS",
            "externalCloudProvider",
            "extraManifests",
            "inlineManifests",
            "adminKubeconfig",
            "allowSchedulingOnControlPlanes",
        ],
    ),
];

impl Config {
    /// Reads and judges a config.
    pub(super) fn read(text: &str) -> Result<Self, Refusal> {
        let invalid = |text: String| Refusal::new(Code::InvalidArgument, text);
        let mut documents = Vec::new();
        for document in yaml_serde::Deserializer::from_str(text) {
            let document = Value::deserialize(document)
                .map_err(|_| invalid("error decoding config: the text is not YAML".to_owned()))?;
            if !document.is_null() {
                documents.push(document);
            }
        }
        let mains = documents.iter().filter(|document| document.get("kind").is_none());
        let Some(main) = mains.clone().next() else {
            return Err(invalid("config not found".to_owned()));
        };
        if mains.count() > 1 {
            return Err(invalid("not a unique config document".to_owned()));
        }
        for (place, keys) in MAIN {
            let part = if place.is_empty() { Some(main) } else { main.get(place) };
            check_keys("/v1alpha1/", place, part, keys).map_err(invalid)?;
        }
        let others: Vec<&Value> = documents.iter().filter(|d| d.get("kind").is_some()).collect();
        for document in &others {
            check_document(document).map_err(invalid)?;
        }
        let mut config = judge(main).map_err(|problems| {
            let list = problems.join("\n\t* ");
            let count = match problems.len() {
                1 => "1 error occurred".to_owned(),
                several => format!("{several} errors occurred"),
            };
            invalid(format!("1 error occurred:\n\t* v1alpha1.Config: {count}:\n\t* {list}\n\n"))
        })?;
        config.take(&others);
        config.text = Text(text.to_owned());
        Ok(config)
    }

    /// Takes what the small documents say.
    fn take(&mut self, documents: &[&Value]) {
        for document in documents {
            let name = document["name"].as_str().unwrap_or_default();
            match document["kind"].as_str().unwrap_or_default() {
                "HostnameConfig" => {
                    self.hostname = document["hostname"].as_str().map(str::to_owned);
                }
                "LinkConfig" => {
                    let address = document["addresses"][0]["address"].as_str().unwrap_or_default();
                    self.address = address.split('/').next().and_then(|text| text.parse().ok());
                }
                "Layer2VIPConfig" => self.vip = name.parse().ok(),
                _ => {}
            }
        }
    }
}

fn check_document(document: &Value) -> Result<(), String> {
    let kind = document["kind"].as_str().unwrap_or_default();
    let known = DOCUMENTS.iter().find(|(name, _)| *name == kind);
    let Some((_, keys)) = known else {
        return Err(format!("error decoding document: \"{kind}\" \"v1alpha1\": not registered"));
    };
    if document["apiVersion"] != "v1alpha1" {
        return Err(format!("error decoding document {kind}: missing apiVersion"));
    }
    let all: Vec<&str> = keys.iter().copied().chain(["apiVersion", "kind"]).collect();
    check_keys(kind, "", Some(document), &all)?;
    let hostname = document.get("hostname").is_some();
    if kind == "HostnameConfig" && hostname && document["auto"] != "off" {
        return Err(
            "1 error occurred:\n\t* 'auto' and 'hostname' cannot be set at the same time\n\n"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_keys(
    document: &str,
    place: &str,
    part: Option<&Value>,
    keys: &[&str],
) -> Result<(), String> {
    let Some(Value::Object(map)) = part else { return Ok(()) };
    let unknown: Vec<&str> =
        map.keys().map(String::as_str).filter(|key| !keys.contains(key)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let lead = if place.is_empty() { String::new() } else { format!("{place}:\n    ") };
    let unknown = unknown.join(", ");
    Err(format!(
        "error decoding document {document} (line 1): unknown keys found during decoding:\n{lead}{unknown}\n"
    ))
}

/// Judges the main document, all complaints at once.
fn judge(main: &Value) -> Result<Config, Vec<String>> {
    let text = |path: &str| main.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let pair = |path: &str| Pair {
        certificate: pem(text(&format!("{path}/crt"))),
        key: pem(text(&format!("{path}/key"))),
    };
    let mut problems = Vec::new();
    let mut need = |right: bool, complaint: &str| {
        if !right {
            problems.push(complaint.to_owned());
        }
    };
    need(main.get("machine").is_some(), "machine instructions are required");
    need(main.get("cluster").is_some(), "cluster instructions are required");
    let kind = text("/machine/type");
    need(
        ["controlplane", "worker"].contains(&kind),
        &format!("invalid machine type \"{kind}\" (.machine.type)"),
    );
    let control_plane = kind == "controlplane";
    let (os, kubernetes) = (pair("/machine/ca"), pair("/cluster/ca"));
    let etcd = pair("/cluster/etcd/ca");
    need(
        !os.certificate.is_empty(),
        "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)",
    );
    need(
        !kubernetes.certificate.is_empty(),
        "issuing CA or some accepted CAs are required (.cluster.ca, .cluster.acceptedCAs)",
    );
    if control_plane {
        need(!os.key.is_empty(), "issuing CA is required (.machine.ca)");
        need(!kubernetes.key.is_empty(), "issuing CA is required (.cluster.ca)");
        need(!etcd.key.is_empty(), "issuing CA is required (.cluster.etcd.ca)");
    }
    need(!text("/machine/token").is_empty(), "machine token is required (.machine.token)");
    need(!text("/cluster/token").is_empty(), "bootstrap token is required (.cluster.token)");
    let endpoint = text("/cluster/controlPlane/endpoint");
    need(
        endpoint.starts_with("https://"),
        "cluster endpoint is required (.cluster.controlPlane.endpoint)",
    );
    let cluster = text("/cluster/id").to_owned();
    need(!cluster.is_empty(), "cluster ID should be set (.cluster.id)");
    let secret = STANDARD.decode(text("/cluster/secret")).map_or(0, |bytes| bytes.len());
    need(secret == 32, "cluster secret must be 32 bytes in base64 (.cluster.secret)");
    if !problems.is_empty() {
        return Err(problems);
    }
    let host = endpoint.trim_start_matches("https://").split(':').next().unwrap_or_default();
    Ok(Config {
        control_plane,
        hostname: None,
        address: None,
        vip: None,
        endpoint: host.parse().ok(),
        cluster,
        os,
        kubernetes,
        text: Text(String::new()),
    })
}

/// PEM out of base64; empty if it is not.
fn pem(text: &str) -> String {
    STANDARD
        .decode(text)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|pem| pem.starts_with("-----BEGIN "))
        .unwrap_or_default()
}
