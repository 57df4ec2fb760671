//! Reads a machine config as strictly as Talos does, and keeps what the emulation acts on.

use std::fmt;
use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_talos_proto::document;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tonic::Code;

use super::Refusal;

mod keys;

use keys::{CONFLICTS, CONTROL_PLANE_ONLY};

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

impl Config {
    /// Reads and judges a config, as Talos does; `late` from 1.14 on.
    pub(super) fn read(text: &str, late: bool) -> Result<Self, Refusal> {
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
        for (place, keys) in document::MAIN {
            let part = if place.is_empty() { Some(main) } else { main.get(place) };
            check_keys("/v1alpha1/", place, part, keys).map_err(invalid)?;
        }
        let others: Vec<&Value> = documents.iter().filter(|d| d.get("kind").is_some()).collect();
        for document in &others {
            check_document(document, late).map_err(invalid)?;
        }
        let whole = Whole { main, others: &others };
        let mut config = whole.judge().map_err(|problems| {
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

fn check_document(document: &Value, late: bool) -> Result<(), String> {
    let kind = document["kind"].as_str().unwrap_or_default();
    let Some(keys) = document::keys(kind, late) else {
        return Err(format!("error decoding document: \"{kind}\" \"v1alpha1\": not registered"));
    };
    if document["apiVersion"] != "v1alpha1" {
        return Err(format!("error decoding document {kind}: missing apiVersion"));
    }
    check_keys(kind, "", Some(document), &format!("apiVersion kind {keys}"))?;
    let hostname = document.get("hostname").is_some();
    if kind == "HostnameConfig" && hostname && document["auto"] != "off" {
        return Err(
            "1 error occurred:\n\t* 'auto' and 'hostname' cannot be set at the same time\n\n"
                .to_owned(),
        );
    }
    Ok(())
}

fn check_keys(document: &str, place: &str, part: Option<&Value>, keys: &str) -> Result<(), String> {
    let Some(Value::Object(map)) = part else { return Ok(()) };
    let is_unknown = |key: &&str| !keys.split(' ').any(|known| known == *key);
    let unknown: Vec<&str> = map.keys().map(String::as_str).filter(is_unknown).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let lead = if place.is_empty() { String::new() } else { format!("{place}:\n    ") };
    let unknown = unknown.join(", ");
    Err(format!(
        "error decoding document {document} (line 1): unknown keys found during decoding:\n{lead}{unknown}\n"
    ))
}

/// A config as it was sent: newer versions say in documents of their own what older ones say in the main one.
struct Whole<'a> {
    main: &'a Value,
    others: &'a [&'a Value],
}

impl Whole<'_> {
    fn text(&self, path: &str) -> &str {
        self.main.pointer(path).and_then(Value::as_str).unwrap_or_default()
    }

    fn beside(&self, kind: &str, path: &str) -> &str {
        let document = self.others.iter().find(|document| document["kind"] == kind);
        document.and_then(|it| it.pointer(path)).and_then(Value::as_str).unwrap_or_default()
    }

    /// What the main document says, or else the document that newer versions have for it.
    fn either(&self, path: &str, kind: &str, newer: &str) -> &str {
        let text = self.text(path);
        if text.is_empty() { self.beside(kind, newer) } else { text }
    }

    fn pair(&self, path: &str) -> Pair {
        Pair {
            certificate: pem(self.text(&format!("{path}/crt"))),
            key: pem(self.text(&format!("{path}/key"))),
        }
    }

    fn kubernetes(&self) -> Pair {
        let kind = "KubeAPIServerCAConfig";
        if self.main.pointer("/cluster/ca").is_some() {
            return self.pair("/cluster/ca");
        }
        let issuing = self.beside(kind, "/issuingCA/cert");
        let certificate =
            if issuing.is_empty() { self.beside(kind, "/acceptedCAs/0") } else { issuing };
        Pair {
            certificate: certificate.to_owned(),
            key: self.beside(kind, "/issuingCA/key").to_owned(),
        }
    }

    /// Judges all documents together, all complaints at once.
    fn judge(&self) -> Result<Config, Vec<String>> {
        let mut problems = self.contradictions();
        let mut need = |right: bool, complaint: &str| {
            if !right {
                problems.push(complaint.to_owned());
            }
        };
        need(self.main.get("machine").is_some(), "machine instructions are required");
        need(self.main.get("cluster").is_some(), "cluster instructions are required");
        let kind = self.text("/machine/type");
        need(
            ["controlplane", "worker"].contains(&kind),
            &format!("invalid machine type \"{kind}\" (.machine.type)"),
        );
        let (os, kubernetes) = (self.pair("/machine/ca"), self.kubernetes());
        need(
            !os.certificate.is_empty(),
            "issuing CA or some accepted CAs are required (.machine.ca, machine.acceptedCAs)",
        );
        need(
            !kubernetes.certificate.is_empty(),
            "issuing CA or some accepted CAs are required (.cluster.ca, .cluster.acceptedCAs)",
        );
        if kind == "controlplane" {
            let etcd = self.pair("/cluster/etcd/ca");
            need(!os.key.is_empty(), "issuing CA is required (.machine.ca)");
            need(!kubernetes.key.is_empty(), "issuing CA is required (.cluster.ca)");
            need(!etcd.key.is_empty(), "issuing CA is required (.cluster.etcd.ca)");
        }
        let words = [
            ("/machine/token", "machine token is required (.machine.token)"),
            ("/cluster/token", "bootstrap token is required (.cluster.token)"),
        ];
        for (path, complaint) in words {
            need(!self.text(path).is_empty(), complaint);
        }
        let endpoint =
            self.either("/cluster/controlPlane/endpoint", "KubeClusterConfig", "/endpoint");
        need(
            endpoint.starts_with("https://"),
            "cluster endpoint is required (.cluster.controlPlane.endpoint)",
        );
        let identity = "DiscoveryIdentityConfig";
        let cluster = self.either("/cluster/id", identity, "/clusterID").to_owned();
        need(!cluster.is_empty(), "cluster ID should be set (.cluster.id)");
        let secret = self.either("/cluster/secret", identity, "/clusterSecret");
        let secret = STANDARD.decode(secret).map_or(0, |bytes| bytes.len());
        need(secret == 32, "cluster secret must be 32 bytes in base64 (.cluster.secret)");
        if !problems.is_empty() {
            return Err(problems);
        }
        let host = endpoint.trim_start_matches("https://").split(':').next().unwrap_or_default();
        Ok(Config {
            control_plane: kind == "controlplane",
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

    /// What is said twice, and what is said to the wrong machine.
    fn contradictions(&self) -> Vec<String> {
        let has = |kind: &str| self.others.iter().any(|document| document["kind"] == kind);
        let conflicts = CONFLICTS
            .iter()
            .filter(|(kind, path, _)| has(kind) && self.main.pointer(path).is_some())
            .map(|(_, _, complaint)| (*complaint).to_owned());
        let mut problems: Vec<String> = conflicts.collect();
        if self.text("/machine/type") == "worker" {
            let kinds: Vec<&str> =
                CONTROL_PLANE_ONLY.iter().copied().filter(|kind| has(kind)).collect();
            if !kinds.is_empty() {
                problems.push(format!(
                    "the following document kinds are only allowed on control plane machines: [{}]",
                    kinds.join(" ")
                ));
            }
        }
        problems
    }
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

#[cfg(test)]
mod tests;
