//! Every deadline of a run: one table, from which the reference is generated and which a castle file can override.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One kind of wait.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// The word used in the castle file's `deadlines` block.
    pub key: &'static str,
    /// The layer it belongs to; a layer's name in `deadlines` sets all of its kinds.
    pub layer: &'static str,
    /// The default, in seconds.
    pub seconds: u64,
    /// What is waited for.
    pub what: &'static str,
}

const fn entry(key: &'static str, layer: &'static str, seconds: u64, what: &'static str) -> Entry {
    Entry { key, layer, seconds, what }
}

/// The defaults. Each is about four times the longest duration seen in practice (`targets.md` 2). Those that write to the
/// secret source outlast one window of its rate limit, which is a minute.
pub const TABLE: &[Entry] = &[
    entry("read", "secrets", 120, "the secret source answers and holds every required key"),
    entry("escrow", "secrets", 120, "the Talos secrets are stored and read back"),
    entry(
        "releases",
        "platform",
        300,
        "the manifests of all layers are read, before anything is built",
    ),
    entry("preflight", "platform", 60, "the host, its storages and the addresses are looked at"),
    entry("image", "platform", 600, "the Talos image is on the image storage"),
    entry("vm", "platform", 300, "a VM is made, resized and running"),
    entry(
        "machine",
        "platform",
        300,
        "a machine that stands already is recognised; on the way down: it is wiped and waits again",
    ),
    entry("boot", "platform", 240, "a machine answers in maintenance mode at its address"),
    entry("apply", "platform", 180, "a machine answers over mutual TLS with its new identity"),
    entry("bootstrap", "platform", 300, "etcd runs on the first control plane"),
    entry("etcd", "platform", 600, "every control plane is a voting member of one etcd"),
    entry("vip", "platform", 300, "the API server answers through the VIP, several times in a row"),
    entry("keys", "platform", 120, "the kubeconfig and the talosconfig are kept and read back"),
    entry("nodes", "platform", 600, "every node is Ready and its network is rolled out"),
    entry("operator", "engine", 300, "External Secrets runs and its webhook serves"),
    entry("store", "engine", 180, "the secret store is valid and one secret has come through"),
    entry("metallb", "networking", 300, "MetalLB runs and its webhook serves"),
    entry("pool", "networking", 120, "the address pool is accepted and read back"),
    entry("longhorn", "storage", 600, "Longhorn's managers and CSI drivers run"),
    entry("volume", "storage", 300, "a probe volume binds"),
    entry(
        "repository",
        "gitops",
        60,
        "the repository is read and looked into, before anything is built",
    ),
    entry("flux", "gitops", 300, "Flux' controllers run"),
    entry(
        "source",
        "gitops",
        300,
        "Flux has fetched the head of the branch, with the token that it needs",
    ),
    entry("handover", "gitops", 180, "the root Kustomization is applied at what its source holds"),
    entry("convergence", "gitops", 900, "every Kustomization is Ready at what its source holds"),
    entry("manifests", "", 300, "the objects of a layer of your own are ready"),
];

/// Deadlines that a castle file sets, by the key of a wait or the name of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Deadlines(pub BTreeMap<String, Duration>);

impl Deadlines {
    /// How long a wait of this kind may take: what is set for it, else for its layer, else the default.
    #[must_use]
    pub fn get(&self, key: &str) -> Duration {
        let entry = TABLE.iter().find(|e| e.key == key);
        self.0
            .get(key)
            .or_else(|| entry.and_then(|e| self.0.get(e.layer)))
            .copied()
            .or_else(|| entry.map(|e| Duration::from_secs(e.seconds)))
            .unwrap_or(Duration::from_mins(5))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearer_setting_wins() {
        let mut set = Deadlines::default();
        assert_eq!(set.get("vip"), Duration::from_mins(5));
        set.0.insert("platform".into(), Duration::from_secs(7));
        assert_eq!(set.get("vip"), Duration::from_secs(7));
        set.0.insert("vip".into(), Duration::from_secs(9));
        assert_eq!(set.get("vip"), Duration::from_secs(9));
        assert_eq!(set.get("pool"), Duration::from_mins(2));
    }

    #[test]
    fn keys_are_unique() {
        for (index, one) in TABLE.iter().enumerate() {
            assert!(TABLE[index + 1..].iter().all(|other| other.key != one.key), "{}", one.key);
        }
    }
}
