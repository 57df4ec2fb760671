//! What the emulation wants to know of a config beyond [`super::config`]: in both generations of documents.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a config wants besides the necessary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Wanted {
    /// Whether the machine tells the discovery service of itself.
    pub(super) discovery: bool,
    /// The cluster's name.
    pub(super) cluster_name: String,
    /// The API server, `https://…`.
    pub(super) endpoint: String,
    /// The kubelet's image.
    pub(super) kubelet: String,
}

impl Wanted {
    /// Reads an accepted config.
    pub(super) fn of(text: &str) -> Self {
        let documents = documents(text);
        let main = documents.iter().find(|document| document.get("kind").is_none());
        let kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind);
        let words = |old: &str, new: Option<&Value>| {
            let old = main.and_then(|main| main.pointer(old));
            old.or(new).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let cluster = kind("KubeClusterConfig");
        let flag = |path: &str| main.and_then(|main| main.pointer(path)).and_then(Value::as_bool);
        let service = flag("/cluster/discovery/registries/service/disabled") != Some(true);
        let old = flag("/cluster/discovery/enabled") == Some(true) && service;
        Self {
            discovery: old || kind("DiscoveryServiceConfig").is_some(),
            cluster_name: words("/cluster/clusterName", cluster.map(|c| &c["clusterName"])),
            endpoint: words("/cluster/controlPlane/endpoint", cluster.map(|c| &c["endpoint"])),
            kubelet: words("/machine/kubelet/image", kind("KubeletConfig").map(|k| &k["image"])),
        }
    }
}

/// The documents of a config.
pub(super) fn documents(text: &str) -> Vec<Value> {
    yaml_serde::Deserializer::from_str(text)
        .filter_map(|document| Value::deserialize(document).ok())
        .filter(|document| !document.is_null())
        .collect()
}

/// The parts of the main document that may change while the machine runs; `machine/features` has some of its own.
const IMMEDIATE: &[&str] = &[
    "ca",
    "acceptedCAs",
    "time",
    "certSANs",
    "install",
    "network",
    "sysfs",
    "sysctls",
    "logging",
    "controlPlane",
    "kubelet",
    "kernel",
    "registries",
    "pods",
    "seccompProfiles",
    "nodeAnnotations",
    "nodeLabels",
    "nodeTaints",
];
const IMMEDIATE_FEATURES: &[&str] =
    &["kubernetesTalosAPIAccess", "kubePrism", "hostDNS", "imageCache", "nodeAddressSortAlgorithm"];

/// Whether a config can take another's place without a reboot.
pub(super) fn is_immediate(old: &str, new: &str) -> bool {
    let lasting = |text: &str| {
        let main = documents(text).into_iter().find(|document| document.get("kind").is_none());
        let mut main = main.unwrap_or_default();
        let remove = |part: Option<&mut Value>, keys: &[&str]| {
            if let Some(Value::Object(map)) = part {
                map.retain(|key, _| !keys.contains(&key.as_str()));
            }
        };
        remove(Some(&mut main), &["debug", "cluster"]);
        remove(main.pointer_mut("/machine/features"), IMMEDIATE_FEATURES);
        remove(main.pointer_mut("/machine"), IMMEDIATE);
        main
    };
    lasting(old) == lasting(new)
}

/// Keys whose values are secret, in whatever document they stand.
const SECRET_KEYS: &[&str] = &[
    "token",
    "crt",
    "key",
    "secret",
    "secretboxEncryptionSecret",
    "aescbcEncryptionSecret",
    "clusterSecret",
    "privateKey",
    "password",
    "passphrase",
];

/// A unified diff of two configs, without the secrets; none if nothing differs.
pub(super) fn difference(old: Option<&str>, new: &str) -> Option<String> {
    if old == Some(new) {
        return None;
    }
    let lines = |text: &str| {
        let mut inside = false;
        text.lines().map(|line| redacted(line, &mut inside)).collect::<Vec<_>>()
    };
    let (old, new) = (old.map(lines).unwrap_or_default(), lines(new));
    let same = |pairs: &mut dyn Iterator<Item = (&String, &String)>| {
        pairs.take_while(|(one, other)| one == other).count()
    };
    let head = same(&mut old.iter().zip(&new));
    let tail = same(&mut old[head..].iter().rev().zip(new[head..].iter().rev()));
    let (first, context) = (head.saturating_sub(3), tail.min(3));
    let (old_end, new_end) = (old.len() - tail, new.len() - tail);
    let place = |end: usize| {
        let count = end + context - first;
        let start = if count == 0 { first } else { first + 1 };
        format!("{start},{count}")
    };
    let mut text = format!("--- a\n+++ b\n@@ -{} +{} @@\n", place(old_end), place(new_end));
    let mut add = |mark: char, lines: &[String]| {
        for line in lines {
            text.extend([mark]);
            text += line;
            text += "\n";
        }
    };
    add(' ', &old[first..head]);
    add('-', &old[head..old_end]);
    add('+', &new[head..new_end]);
    add(' ', &new[new_end..new_end + context]);
    Some(text)
}

/// A line without its secret, knowing whether it is inside of a PEM block.
fn redacted(line: &str, inside: &mut bool) -> String {
    if *inside || line.contains("-----BEGIN ") {
        *inside = !line.contains("-----END ");
        let indent = line.len() - line.trim_start().len();
        return format!("{}<redacted>", &line[..indent]);
    }
    let Some((key, value)) = line.split_once(": ") else { return line.to_owned() };
    let name = key.trim_start().trim_start_matches("- ");
    if SECRET_KEYS.contains(&name) && value.len() > 2 {
        format!("{key}: <redacted>")
    } else {
        line.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_unified_diff_without_secrets() {
        let old = "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\n";
        let new = "a: 1\nb: 2\nc: 3\nd: 4\ntoken: abcdef\nf: 6\n";
        insta::assert_snapshot!(difference(Some(old), new).unwrap(), @r"
        --- a
        +++ b
        @@ -2,5 +2,5 @@
         b: 2
         c: 3
         d: 4
        -e: 5
        +token: <redacted>
         f: 6
        ");
        assert_eq!(difference(Some(old), old), None);
        let pem = "key: |-\n  -----BEGIN X-----\n  abc\n  -----END X-----\nb: 2\n";
        let shown = difference(None, pem).unwrap();
        assert!(!shown.contains("abc") && shown.ends_with("+b: 2\n"), "{shown}");
        assert!(difference(None, "a: 1\n").unwrap().contains("@@ -0,0 +1,1 @@\n+a: 1\n"));
    }

    #[test]
    fn what_may_change_at_once() {
        let old =
            "machine: {type: worker, kubelet: {image: a}, features: {kubePrism: {port: 1}}}\n";
        assert!(is_immediate(old, &old.replace("image: a", "image: b")));
        assert!(is_immediate(old, &old.replace("port: 1", "port: 2")));
        assert!(!is_immediate(old, &old.replace("worker", "controlplane")));
        assert!(!is_immediate(old, &old.replace("kubelet:", "udev: {}, kubelet:")));
    }
}
