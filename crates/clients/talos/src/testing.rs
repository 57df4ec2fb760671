//! Fixed time and seeded randomness for the tests of this crate.

use std::sync::Mutex;

use castle_model::time::Moment;
use castle_wire::{Clock, Entropy};

/// Always 2026-02-02T00:00:00Z.
pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Moment {
        Moment(1_769_990_400_000)
    }
}

/// A small linear generator: repeatable, and good enough to make distinct keys.
pub(crate) struct TestEntropy(Mutex<u64>);

impl TestEntropy {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Entropy for TestEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self.0.lock().unwrap();
        for byte in buffer {
            *state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = state.to_be_bytes()[2];
        }
    }

    /// A small key: its size does not matter here, and a large one costs a second.
    fn rsa_4096(&self) -> Vec<u8> {
        rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048)
            .unwrap()
            .serialize_der()
    }
}

/// One control plane, one worker with a second disk.
pub(crate) fn spec() -> castle_model::Spec {
    serde_json::from_value(serde_json::json!({
        "name": "blue", "talos": "1.13.9", "kubernetes": "1.36.3",
        "secrets": {
            "sources": [{ "kind": "infisical", "host": "https://eu.infisical.com", "trust": "system", "project": "p",
                "environment": "dev", "path": "/" }],
            "require": [], "shapes": {}, "escrow": { "place": "infisical", "after_down": "remove" } },
        "platform": { "kind": "proxmox", "endpoint": "https://pve.lan:8006", "trust": "system",
            "token": { "parts": { "id": "I", "secret": "S" } }, "node": "pve", "storage": "local-lvm", "image_storage": "local",
            "bridge": "vmbr0", "vmids": [421, 432], "extensions": ["siderolabs/iscsi-tools"] },
        "network": { "subnet": "192.168.1.0/24", "gateway": "192.168.1.1", "vip": "192.168.1.210",
            "nameservers": ["192.168.1.1"], "ntp": ["time.cloudflare.com"],
            "pool": "192.168.1.230-192.168.1.245", "pods": "10.244.0.0/16",
            "services": "10.96.0.0/12" },
        "nodes": [
            { "name": "cp-01", "role": "control-plane", "address": "192.168.1.211", 
              "body": { "vm": { "vmid": 421, "cores": 4, "memory_mib": 8192, "disk_gib": 40,
                  "data_disk_gib": null } } },
            { "name": "worker-01", "role": "worker", "address": "192.168.1.214", 
              "body": { "vm": { "vmid": 431, "cores": 4, "memory_mib": 8192, "disk_gib": 40,
                  "data_disk_gib": 100 } } },
        ],
        "engine": { "enabled": true }, "networking": { "enabled": true },
        "storage": { "enabled": true, "replicas": 2 },
        "gitops": { "enabled": false, "url": "https://example.com/r", "branch": "main",
            "path": "clusters/blue", "token": null, "vars": {} },
        "layers": [], "deadlines": {},
    }))
    .unwrap()
}
