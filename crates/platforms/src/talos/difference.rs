//! In what the config that a machine has differs from the one that it would get. Names are told, values never.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::Secret;
use castle_talos::BirthMark;
use serde::Deserialize as _;
use serde_json::Value;

/// What differs, sorted by what can be done about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Differences {
    /// Needs machines that are made anew.
    pub(super) birth: Vec<String>,
    /// Needs an upgrade.
    pub(super) versions: Vec<String>,
    /// Can be sent.
    pub(super) others: Vec<String>,
}

/// Compares two configs.
///
/// # Errors
/// In words, if one of them cannot be read.
pub(super) fn differences(has: &Secret, wanted: &Secret) -> Result<Differences, String> {
    let mark = |config| BirthMark::of(config).map_err(|failure| failure.why);
    let mut found =
        Differences { birth: mark(has)?.differences(&mark(wanted)?), ..Differences::default() };
    let (has, wanted) = (leaves(has)?, leaves(wanted)?);
    let paths: BTreeSet<&String> = has.keys().chain(wanted.keys()).collect();
    for path in paths.into_iter().filter(|path| has.get(*path) != wanted.get(*path)) {
        let list = if path.ends_with("image") { &mut found.versions } else { &mut found.others };
        list.push(path.clone());
    }
    Ok(found)
}

/// Every value of a config by the path to it. Lists are values: what is added to one changes it.
fn leaves(config: &Secret) -> Result<BTreeMap<String, Value>, String> {
    let mut leaves = BTreeMap::new();
    for document in yaml_serde::Deserializer::from_str(config.expose()) {
        // What the parser says could quote a secret.
        let document = Value::deserialize(document).map_err(|_| "it is not YAML".to_owned())?;
        let part = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = [part("kind"), part("name")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        collect(&name, &document, &mut leaves);
    }
    Ok(leaves)
}

fn collect(path: &str, value: &Value, leaves: &mut BTreeMap<String, Value>) {
    let Value::Object(fields) = value else {
        // An empty value is the same as none.
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        if !empty {
            leaves.insert(path.to_owned(), value.clone());
        }
        return;
    };
    for (key, value) in fields {
        let deeper = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        collect(&deeper, value, leaves);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HAS: &str = "\
version: v1alpha1
machine:
  kubelet: {image: \"ghcr.io/siderolabs/kubelet:v1.36.3\"}
  certSANs: []
  sysctls: {a: hunter2}
cluster: {secretboxEncryptionSecret: old, network: {podSubnets: [10.244.0.0/16]}}
---
apiVersion: v1alpha1
kind: LinkConfig
name: eth0
mtu: 1500
";

    fn compared(changes: &[(&str, &str)]) -> Differences {
        let new = changes.iter().fold(HAS.to_owned(), |text, (old, new)| {
            assert!(text.contains(old), "{old}");
            text.replace(old, new)
        });
        differences(&Secret::new(HAS), &Secret::new(new)).unwrap()
    }

    #[test]
    fn differences_are_sorted_by_what_can_be_done_about_them() {
        assert_eq!(compared(&[]), Differences::default());
        let found = compared(&[
            ("hunter2", "swordfish"),
            ("v1.36.3", "v1.36.4"),
            ("1500", "9000"),
            ("Secret: old", "Secret: new"),
        ]);
        assert_eq!(found.birth, ["the encryption of secrets in etcd (secretbox)"]);
        assert_eq!(found.versions, ["machine.kubelet.image"]);
        assert_eq!(
            found.others,
            ["LinkConfig eth0.mtu", "cluster.secretboxEncryptionSecret", "machine.sysctls.a"]
        );
        assert!(!format!("{found:?}").contains("swordfish"));
    }

    #[test]
    fn a_list_that_grows_and_a_document_that_comes_are_differences() {
        let named = compared(&[("certSANs: []", "certSANs: [castle.lan]")]);
        assert_eq!(named.birth, ["the additional names in certificates (certSANs)"]);
        let longer = compared(&[(
            "mtu: 1500\n",
            "mtu: 1500\n---\nkind: WatchdogTimerConfig\ndevice: /dev/watchdog0\n",
        )]);
        assert_eq!(longer.others, ["WatchdogTimerConfig.device", "WatchdogTimerConfig.kind"]);
        let error = differences(&Secret::new(HAS), &Secret::new("a: [hunter2")).unwrap_err();
        assert!(!error.contains("hunter2"), "{error}");
    }
}
