//! A real run: castle as everybody starts it, its own dialer, clock and authorities, against servers on real sockets.
//!
//! The servers are those of the rehearsal, put on loopback addresses in a network namespace of their own, where names
//! such as `github.com` lead to them. Nothing of the machine outside is touched, and no privilege is needed.

use castle_rehearsal::trouble::TalosTrouble;

use crate::context::{Context, Said, example};
use crate::datacenter::{Datacenter, in_a_namespace, spec_of};

#[test]
fn a_castle_rises_and_goes_over_real_sockets() {
    in_a_namespace("loopback::virtual_machines");
}

#[test]
fn machines_that_stand_already_are_taken_and_given_back_over_real_sockets() {
    in_a_namespace("loopback::standing_machines");
}

#[test]
#[ignore = "binds ports below 1024 and other servers' names: a test above runs it in a namespace of its own"]
fn virtual_machines() {
    let castle = Context::new();
    let text = example("blue").replace("192.168.1.", "127.0.1.");
    let datacenter = Datacenter::start(spec_of(&text));
    let pin = format!("platform \"proxmox\" {{\n    fingerprint = \"{}\"", datacenter.fingerprint);
    castle.write("castle.hcl", &text.replacen("platform \"proxmox\" {", &pin, 1));
    let run = |words: &[&str]| datacenter.run(&castle, words);

    run(&["lock"]).ends(0);
    assert!(castle.folder().join("castle.lock").exists());
    let kept = std::fs::read_dir(castle.folder().join(".cache/castle/manifests")).unwrap();
    assert_eq!(kept.count(), 4, "each manifest is kept by its content");
    let up = run(&["up"]).ends(0);
    assert!(up.out.contains("handover: Flux owns what the cluster hosts"), "{}", up.out);
    assert!(!up.out.contains("rehears") && !up.err.contains("rehears"), "{}{}", up.err, up.out);
    assert!(!up.err.contains("unverified"), "{}", up.err);
    let again = run(&["up"]).ends(0);
    assert!(again.out.contains("nothing changed"), "{}", again.out);
    let plan = run(&["plan", "--json"]).ends(0);
    let plan: serde_json::Value = serde_json::from_str(&plan.out).unwrap();
    assert!(plan["steps"].as_array().unwrap().iter().all(|s| s["verb"] == "leave"), "{plan}");
    let status = run(&["status"]).ends(0);
    assert!(status.out.starts_with("castle blue: incarnation "), "{}", status.out);
    let kube = run(&["kubeconfig"]).ends(0);
    assert!(kube.out.contains("server: https://127.0.1.210:6443"), "{}", kube.out);
    run(&["machineconfig", "cp-01"]).ends(0);
    untrusted(&castle, &text, &datacenter, &run);
    run(&["down", "--yes"]).ends(0);
    let left = datacenter.stop();
    assert!(left.proxmox.guests.is_empty(), "{:?}", left.proxmox);
    assert!(left.proxmox.volumes.is_empty() && left.proxmox.files.is_empty(), "{:?}", left.proxmox);
    assert!(
        !left
            .secrets
            .iter()
            .any(|key| key.contains("TALOS_SECRETS_BUNDLE") || key.contains("_CONTENT")),
        "{:?}",
        left.secrets
    );
}

/// A server that shows another certificate than the castle file pins gets nothing, and the line to add is told.
fn untrusted(castle: &Context, text: &str, datacenter: &Datacenter, run: &dyn Fn(&[&str]) -> Said) {
    let other = "ab".repeat(32);
    let pin = format!("platform \"proxmox\" {{\n    fingerprint = \"{other}\"");
    castle.write("wrong.hcl", &text.replacen("platform \"proxmox\" {", &pin, 1));
    run(&["-f", "wrong.hcl", "--state", "wrong", "up"]).ends(1);
    let said = run(&["-f", "wrong.hcl", "plan"]).ends(1);
    let line = said.out.split_once("fingerprint = \"").unwrap_or_default().1;
    let line = line.replace(':', "").to_lowercase();
    assert!(line.starts_with(&datacenter.fingerprint), "{}", said.out);
    castle.write("silent.hcl", &text.replacen("https://pve.lan:8006", "https://pve.lan:1", 1));
    let said = run(&["-f", "silent.hcl", "plan"]).ends(1);
    assert!(said.err.contains("platform/inventory could not be looked at"), "{}", said.err);
}

/// Three machines that wait already.
const MACHINES: &str = r#"castle "iron" {
  talos      = "1.13.9"
  kubernetes = "1.36.3"

  secrets "infisical" {
    host        = "https://eu.infisical.com"
    project     = "tazlab"
    environment = "dev"
    path        = "/ephemeral-castle/iron"
  }

  platform "machines" {
    installer    = "metal"
    install_disk = "/dev/nvme0n1"
    link         = "enp1s0"
  }

  network {
    subnet  = "127.0.7.0/24"
    gateway = "127.0.7.1"
    vip     = "127.0.7.10"
    pool    = "127.0.7.100-127.0.7.120"
  }

  nodes "control-plane" {
    count    = 1
    first_ip = "127.0.7.11"
  }

  nodes "worker" {
    count     = 2
    first_ip  = "127.0.7.21"
    data_disk = true
  }

  gitops "flux" {
    url   = "https://github.com/example/tazlab-k8s"
    path  = "clusters/iron"
    token = secret("GITHUB_TOKEN")
  }

  deadlines {}
}
"#;

/// The number of the second worker: machines are counted through the castle file.
const SECOND_WORKER: u32 = 3;

#[test]
#[ignore = "binds ports below 1024 and other servers' names: a test above runs it in a namespace of its own"]
fn standing_machines() {
    let castle = Context::new();
    let datacenter = Datacenter::start(spec_of(MACHINES));
    let run = |words: &[&str]| datacenter.run(&castle, words);
    let patience = |deadlines: &str| {
        castle.write("castle.hcl", &MACHINES.replace("deadlines {}", deadlines));
    };
    patience("deadlines {}");

    let up = run(&["up"]).ends(0);
    assert!(up.out.contains("handover: Flux owns what the cluster hosts"), "{}", up.out);
    let again = run(&["up"]).ends(0);
    assert!(again.out.contains("nothing changed"), "{}", again.out);

    // One machine cannot be reached: `down` says which, and keeps the keys that open it.
    datacenter.cause(TalosTrouble::Dead(SECOND_WORKER));
    patience("deadlines {\n    machine = \"4s\"\n  }");
    let short = run(&["down", "--yes"]).ends(4);
    let told = format!("{}{}", short.out, short.err);
    assert!(told.contains("reach worker-02 at 127.0.7.22"), "{told}");
    assert!(told.contains("switch it on and run `castle down` again"), "{told}");
    assert!(!told.contains("reach worker-01") && !told.contains("reach cp-01"), "{told}");

    // As it was told: switched on, the same command goes on.
    datacenter.cause(TalosTrouble::Revived(SECOND_WORKER));
    patience("deadlines {}");
    run(&["down", "--yes"]).ends(0);
    let machines = datacenter.machines();
    assert_eq!(machines.len(), 3);
    assert!(machines.iter().all(|state| state.ends_with("(maintenance)")), "{machines:?}");

    // And before a birth: the machine is named, and nothing is begun without it.
    datacenter.cause(TalosTrouble::Dead(SECOND_WORKER));
    patience("deadlines {\n    preflight = \"3s\"\n  }");
    let lacking = run(&["up"]).ends(1);
    let told = format!("{}{}", lacking.out, lacking.err);
    assert!(told.contains("nothing answers at 127.0.7.22, where worker-02 should wait"), "{told}");
    let left = datacenter.stop();
    assert_eq!(left.machines.values().filter(|m| m.ends_with("(maintenance)")).count(), 2);
    assert!(
        !left
            .secrets
            .iter()
            .any(|key| key.contains("TALOS_SECRETS_BUNDLE") || key.contains("_CONTENT")),
        "{:?}",
        left.secrets
    );
}
