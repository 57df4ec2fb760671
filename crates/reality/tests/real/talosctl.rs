//! talosctl 1.13.9, the client that people use, with what castle gives them.

use castle_reality::{Output, Real, run};
use castle_talos::{Bundle, TalosAccess};
use castle_wire::{SystemClock, SystemEntropy};
use serde_json::Value;

use crate::datacenter::{Datacenter, LIMIT, machines};
use crate::setting::{ORACLES, SOON, ask, folder, with, write};

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn our_talosconfig_is_read_by_talosctl_and_by_talos_own_client() {
    let Some(talosctl) = Real::find("talosctl-1.13") else { return };
    let spec = machines(84, 3, 0);
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    let place = folder();
    let file = write(place.path(), "talosconfig", access.talosconfig(&spec).expose());
    let file = file.display().to_string();

    let words = ["--talosconfig", &file, "config", "info", "--output", "json"];
    let told = run(with(talosctl.program(), &words), SOON).await.expect_success();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["context"], "blue");
    assert_eq!(told["endpoints"], serde_json::json!(["127.0.84.11", "127.0.84.12", "127.0.84.13"]));
    assert_eq!(told["roles"], serde_json::json!(["os:admin"]));

    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let told: Value =
            serde_json::from_str(&ask(&oracle, &["talosconfig", &file]).await).unwrap();
        assert_eq!(told["blue"]["current"], true, "{name}: {told}");
        assert_eq!(told["blue"]["roles"], serde_json::json!(["os:admin"]), "{name}");
    }
}

/// talosctl as somebody uses it on one machine.
struct Talosctl {
    real: Real,
    talosconfig: String,
}

impl Talosctl {
    /// Runs it without an identity, as on a machine in maintenance mode.
    async fn insecure(&self, node: &str, words: &[&str]) -> Output {
        let words = [words, &["--insecure", "--nodes", node]].concat();
        run(with(self.real.program(), &words), LIMIT).await
    }

    /// Runs it as the administrator.
    async fn secure(&self, node: &str, words: &[&str]) -> Output {
        let who = ["--talosconfig", &self.talosconfig, "--endpoints", node, "--nodes", node];
        run(with(self.real.program(), &[&who, words].concat()), LIMIT).await
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn talosctl_raises_and_razes_an_emulated_cluster() {
    let Some(real) = Real::find("talosctl-1.13") else { return };
    let datacenter = Datacenter::open(machines(85, 3, 1)).await;
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    let place = folder();
    let talosconfig =
        write(place.path(), "talosconfig", access.talosconfig(&datacenter.spec).expose());
    let talosctl = Talosctl { real, talosconfig: talosconfig.display().to_string() };
    let nodes: Vec<String> =
        datacenter.spec.nodes.iter().map(|node| node.address.to_string()).collect();
    let first = nodes[0].as_str();

    for node in &datacenter.spec.nodes {
        datacenter.listens(node.address).await;
        let told = talosctl.insecure(&node.address.to_string(), &["version"]).await;
        assert!(told.expect_success().contains("Tag:         v1.13.9"));
        let file =
            write(place.path(), node.name.as_str(), datacenter.config(node, &bundle).expose());
        let words = ["apply-config", "--file", &file.display().to_string()];
        let told = talosctl.insecure(&node.address.to_string(), &words).await;
        assert_eq!(told.stderr, "Applied configuration without a reboot\n");
    }
    datacenter.secured(&access).await;
    let told = talosctl.secure(first, &["version"]).await.expect_success();
    assert!(told.contains("NODE:        127.0.85.11") && told.contains("RBAC"), "{told}");
    let told = talosctl.insecure(first, &["version"]).await.expect_failure();
    assert!(told.contains("code = Unavailable"), "{told}");
    drop(talosctl.secure(first, &["bootstrap"]).await.expect_success());
    let told = talosctl.secure(first, &["etcd", "members"]).await.expect_success();
    assert!(told.contains("cp-01") && told.contains("https://127.0.85.11:2380"), "{told}");
    let told = talosctl.secure(first, &["bootstrap"]).await.expect_failure();
    assert!(told.contains("etcd data directory is not empty"), "{told}");
}
