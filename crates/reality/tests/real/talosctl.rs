//! talosctl 1.13.9, the client that people use, with what castle gives them.

use std::process::Command;

use castle_reality::asked::Asked;
use castle_reality::asked::talosctl::{CONFIGURED, MAINTENANCE, RAISED};
use castle_reality::{Output, Real, run};
use castle_talos::access::KubeAccess;
use castle_talos::{Bundle, TalosAccess};
use castle_wire::{SystemClock, SystemEntropy};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use crate::datacenter::{Datacenter, LIMIT, machines};
use crate::setting::{ORACLES, SOON, ask, ask_all, folder, somebody, with, write, yaml};

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn our_talosconfig_is_read_by_talosctl_and_by_talos_own_client() {
    let Some(talosctl) = Real::find("talosctl-1.13") else { return };
    let spec = machines(84, 3, 0);
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    let place = folder();
    let text = access.talosconfig(&spec);
    // As it is given out, and as it is escrowed: with a line that says whose it is.
    let escrowed = format!("# castle blue 0011223344556677\n{}", text.expose());
    let escrowed = write(place.path(), "escrowed", &escrowed).display().to_string();
    let file = write(place.path(), "talosconfig", text.expose()).display().to_string();
    for file in [&escrowed, &file] {
        let words = ["--talosconfig", file, "config", "info", "--output", "json"];
        let told = run(with(talosctl.program(), &words), SOON).await.expect_success();
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["context"], "blue");
        assert_eq!(told["endpoints"], json!(["127.0.84.11", "127.0.84.12", "127.0.84.13"]));
        assert_eq!(told["roles"], json!(["os:admin"]));
    }

    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let told: Value =
            serde_json::from_str(&ask(&oracle, &["talosconfig", &file]).await).unwrap();
        assert_eq!(told["blue"]["current"], true, "{name}: {told}");
        assert_eq!(told["blue"]["roles"], json!(["os:admin"]), "{name}");
    }
}

/// talosctl as somebody uses it on one machine.
struct Talosctl {
    real: Real,
    talosconfig: String,
}

impl Talosctl {
    /// Its command without an identity, as on a machine in maintenance mode.
    fn nobody(&self, node: &str, words: &[&str]) -> Command {
        with(self.real.program(), &[words, &["--insecure", "--nodes", node]].concat())
    }

    /// Its command as somebody, by way of one machine to another.
    fn somebody(&self, talosconfig: &str, (by, node): (&str, &str), words: &[&str]) -> Command {
        let who = ["--talosconfig", talosconfig, "--endpoints", by, "--nodes", node];
        with(self.real.program(), &[&who, words].concat())
    }

    /// Runs it without an identity.
    async fn insecure(&self, node: &str, words: &[&str]) -> Output {
        run(self.nobody(node, words), LIMIT).await
    }

    /// Runs it as the administrator.
    async fn secure(&self, node: &str, words: &[&str]) -> Output {
        run(self.somebody(&self.talosconfig, (node, node), words), LIMIT).await
    }
}

/// An emulated cluster and talosctl to work on it.
struct Bench {
    datacenter: Datacenter,
    talosctl: Talosctl,
    bundle: Bundle,
    access: TalosAccess,
    place: TempDir,
    nodes: Vec<String>,
}

/// Three control planes and a worker in maintenance mode, at `127.0.<net>.11` to `.14`.
async fn bench(net: u8) -> Option<Bench> {
    let real = Real::find("talosctl-1.13")?;
    let datacenter = Datacenter::open(machines(net, 3, 1)).await;
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    let place = folder();
    let talosconfig =
        write(place.path(), "talosconfig", access.talosconfig(&datacenter.spec).expose());
    let talosctl = Talosctl { real, talosconfig: talosconfig.display().to_string() };
    let nodes = datacenter.spec.nodes.iter().map(|node| node.address.to_string()).collect();
    for node in &datacenter.spec.nodes {
        datacenter.listens(node.address).await;
    }
    Some(Bench { datacenter, talosctl, bundle, access, place, nodes })
}

impl Bench {
    /// Sends every machine our config by talosctl.
    async fn apply(&self) {
        for node in &self.datacenter.spec.nodes {
            let config = self.datacenter.config(node, &self.bundle);
            let file = write(self.place.path(), node.name.as_str(), config.expose());
            let words = ["apply-config", "--file", &file.display().to_string()];
            let told = self.talosctl.insecure(&node.address.to_string(), &words).await;
            assert_eq!(told.code, Some(0), "{}", told.stderr);
            assert_eq!(told.stderr, "Applied configuration without a reboot\n");
        }
        self.datacenter.secured(&self.access).await;
    }

    /// Bootstraps etcd, and waits until talosctl itself finds nothing to wait for.
    async fn raise(&self) {
        self.apply().await;
        let first = self.nodes[0].as_str();
        drop(self.talosctl.secure(first, &["bootstrap"]).await.expect_success());
        let control_planes = self.nodes[..3].join(",");
        let words = [
            "health",
            "--control-plane-nodes",
            &control_planes,
            "--worker-nodes",
            &self.nodes[3],
            "--wait-timeout",
            "100s",
        ];
        let told = self.talosctl.secure(first, &words).await;
        assert_eq!(told.code, Some(0), "{}", told.stderr);
        for proof in [
            "etcd members to be consistent across nodes: OK",
            "etcd members to be control plane nodes: OK",
            "all nodes to finish boot sequence: OK",
            "all k8s nodes to report ready: OK",
            "coredns to report ready: OK",
        ] {
            assert!(told.stderr.contains(proof), "{proof} is missing in:\n{}", told.stderr);
        }
    }

    /// Asks until the answer is right.
    async fn until(&self, node: &str, words: &[&str], right: impl Fn(&str) -> bool) {
        let asked = async {
            loop {
                let told = self.talosctl.secure(node, words).await;
                if told.code == Some(0) && right(&told.stdout) {
                    break;
                }
            }
        };
        assert!(timeout(LIMIT, asked).await.is_ok(), "{words:?} never told what was waited for");
    }
}

/// A table without what differs between runs: rows of words, the heading left out.
fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().skip(1).map(|line| line.split_whitespace().collect()).collect()
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn machines_in_maintenance_mode_are_read_and_configured() {
    let Some(bench) = bench(85).await else { return };
    let Some(oracle) = Real::find(ORACLES[0]) else { return };
    let (talosctl, nodes) = (&bench.talosctl, &bench.nodes);
    let file = |name: &str, text: &str| write(bench.place.path(), name, text).display().to_string();
    let node = &bench.datacenter.spec.nodes[0];
    let config = bench.datacenter.config(node, &bench.bundle);
    let (config, nonsense) =
        (file("config", config.expose()), file("nonsense", "machine:\n  nonsense: 1\n"));
    let names = [("config", config.as_str()), ("nonsense", nonsense.as_str())];
    let secrets = file("secrets", bench.bundle.to_yaml().expose());
    let reader = somebody(&oracle, &secrets, "os:reader").await;
    let reader = file("reader", reader.talosconfig(&bench.datacenter.spec).expose());
    let ours = talosctl.talosconfig.as_str();
    let command = |asked: &Asked, words: &[&str]| match asked.who {
        "without an identity" => talosctl.nobody(&nodes[0], words),
        "as a reader" => talosctl.somebody(&reader, (&nodes[0], &nodes[0]), words),
        "by way of another control plane" => talosctl.somebody(ours, (&nodes[0], &nodes[1]), words),
        "by way of a worker" => talosctl.somebody(ours, (&nodes[3], &nodes[1]), words),
        _ => talosctl.somebody(ours, (&nodes[0], &nodes[0]), words),
    };
    let blank = |asked: &Asked, words: &[&str]| match asked.who {
        "" => talosctl.nobody(&nodes[0], words),
        _ => command(asked, words),
    };
    ask_all(MAINTENANCE, &names, blank).await;
    bench.apply().await;
    ask_all(CONFIGURED, &names, command).await;
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn talos_own_clients_of_both_generations_are_answered() {
    let Some(bench) = bench(88).await else { return };
    let first = bench.nodes[0].as_str();
    let mut oracles = Vec::new();
    for name in ORACLES {
        let Some(oracle) = Real::find(name) else { return };
        let told = ask(&oracle, &["maint-version", &format!("{first}:50000")]).await;
        assert!(told.contains("v1.13.9"), "{name}: {told}");
        oracles.push(oracle);
    }
    bench.apply().await;
    for oracle in oracles {
        let told = ask(&oracle, &["version", &bench.talosctl.talosconfig, &bench.nodes[1]]).await;
        assert!(told.contains("127.0.88.12") && told.contains("v1.13.9"), "{told}");
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_cluster_rises_is_healthy_and_tells_about_itself() {
    let Some(bench) = bench(86).await else { return };
    bench.raise().await;
    let (talosctl, first) = (&bench.talosctl, bench.nodes[0].as_str());
    let command =
        |_: &Asked, words: &[&str]| talosctl.somebody(&talosctl.talosconfig, (first, first), words);
    ask_all(RAISED, &[], command).await;

    let told = talosctl.secure(first, &["etcd", "members"]).await.expect_success();
    let members: Vec<_> = rows(&told).into_iter().map(|row| [row[2], row[3], row[5]]).collect();
    let member = |name, peer| [name, peer, "false"];
    assert_eq!(
        members,
        [
            member("cp-01", "https://127.0.86.11:2380"),
            member("cp-02", "https://127.0.86.12:2380"),
            member("cp-03", "https://127.0.86.13:2380"),
        ]
    );
    let told = talosctl.secure(first, &["get", "members"]).await.expect_success();
    let members: Vec<_> = rows(&told).into_iter().map(|row| [row[3], row[6]]).collect();
    assert_eq!(
        members,
        [
            ["cp-01", "controlplane"],
            ["cp-02", "controlplane"],
            ["cp-03", "controlplane"],
            ["worker-01", "worker"],
        ]
    );
    let told = talosctl.secure(first, &["service"]).await.expect_success();
    for service in ["apid", "etcd", "kubelet", "trustd"] {
        let row = rows(&told).into_iter().find(|row| row[1] == service).unwrap();
        assert_eq!(row[2..4], ["Running", "OK"], "{told}");
    }

    let file = bench.place.path().join("kubeconfig").display().to_string();
    let words = ["kubeconfig", "--merge=false", "--force", &file];
    drop(talosctl.secure(first, &words).await.expect_success());
    let config = yaml(&std::fs::read_to_string(&file).unwrap());
    assert_eq!(config["clusters"][0]["cluster"]["server"], "https://127.0.86.10:6443");
    assert_eq!(config["current-context"], "admin@blue");
    our_kubeconfig_is_read_by_kubectl(&bench).await;
}

/// kubectl with what castle gives out, and as it is escrowed: with a line that says whose it is.
async fn our_kubeconfig_is_read_by_kubectl(bench: &Bench) {
    let Some(kubectl) = Real::find("kubectl") else { return };
    let spec = &bench.datacenter.spec;
    let ours = KubeAccess::issue(spec, &bench.bundle, &SystemEntropy, &SystemClock).unwrap();
    let text = ours.kubeconfig(spec);
    let escrowed = format!("# castle blue 0011223344556677\n{}", text.expose());
    for text in [text.expose(), &escrowed] {
        let file = write(bench.place.path(), "ours", text).display().to_string();
        let words = ["--kubeconfig", &file, "get", "nodes", "--output", "name"];
        let told = run(with(kubectl.program(), &words), LIMIT).await.expect_success();
        assert_eq!(told, "node/cp-01\nnode/cp-02\nnode/cp-03\nnode/worker-01\n");
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn machines_are_reset_and_come_back_blank() {
    let Some(bench) = bench(87).await else { return };
    bench.raise().await;
    let (talosctl, first) = (&bench.talosctl, bench.nodes[0].as_str());
    let wipe = ["--system-labels-to-wipe", "STATE", "--system-labels-to-wipe", "EPHEMERAL"];
    let reset = |how: &'static [&'static str]| [&["reset", "--reboot"], &wipe[..], how].concat();

    let words = reset(&["--graceful=false", "--wait=false"]);
    drop(talosctl.secure(&bench.nodes[3], &words).await.expect_success());
    blank(&bench, 3).await;

    // A control plane that leaves in good order takes its member of etcd along.
    let words = reset(&["--wait=false"]);
    drop(talosctl.secure(&bench.nodes[2], &words).await.expect_success());
    bench.until(first, &["etcd", "members"], |table| rows(table).len() == 2).await;
    blank(&bench, 2).await;
    bench.until(first, &["get", "members"], |table| !table.contains("cp-03")).await;
}

/// Waits until a machine is back in maintenance mode.
async fn blank(bench: &Bench, node: usize) {
    let address = bench.nodes[node].as_str();
    let asked = async {
        loop {
            let told = bench.talosctl.insecure(address, &["get", "machinestatus"]).await;
            if told.stdout.contains("maintenance") {
                break;
            }
        }
    };
    assert!(timeout(LIMIT, asked).await.is_ok(), "{address} never came back");
}
