//! What breaks by a rule: how it is given, how it is told, and that castle ends well or names the cause.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::context::{Context, Said, example};

/// Everything that can be broken: its name and its example.
fn all() -> Vec<(String, String)> {
    let said = Context::new().run(&["rehearse", "--list-faults", "--json"]).ends(0);
    let row = |line: &str| {
        let kind: Value = serde_json::from_str(line).unwrap();
        let who = kind["who"].as_array().unwrap();
        let who = if who.len() > 1 { "wire" } else { who[0].as_str().unwrap() };
        let text = |name: &str| kind[name].as_str().unwrap().to_owned();
        (format!("{who}: {}", text("name")), text("example"))
    };
    said.out.lines().map(row).collect()
}

/// The faults that no run can mend: where castle stops, and a word of what it says. Every other one ends well.
const NAMED: &[(&str, &str, &str)] = &[
    ("kubernetes: deleted", "networking/pool transient", "MetalLB has said nothing"),
    ("kubernetes: scaled", "networking/pool transient", "MetalLB has said nothing"),
    ("proxmox: full", "platform/preflight conflict", "local-lvm"),
    ("proxmox: task hangs", "platform/vm/cp-02 transient", "create VM 422"),
    ("proxmox: task fails", "platform/vm/cp-01 invalid", "the task failed"),
    ("proxmox: overtaken", "platform/vm/cp-02 conflict", "it is not ours"),
    ("proxmox: token revoked", "platform/vm/cp-01 denied", "Authentication failed!"),
    ("proxmox: privilege lost", "platform/preflight conflict", "VM.PowerMgmt"),
    ("proxmox: stopped", "storage/longhorn transient", "is available on 1 of 2 nodes"),
    ("proxmox: destroyed", "engine/operator transient", "worker-02 is NotReady"),
    ("proxmox: lost disk", "platform/preflight conflict", "421"),
    ("talos: dead", "platform/bootstrap transient", "cannot be said of cp-02"),
    ("talos: wrong address", "platform/boot/worker-01 transient", "nothing answers at the address"),
    ("talos: stale etcd", "platform/bootstrap transient", "an old disk"),
    ("talos: usurped", "platform/etcd conflict", "the brain is split"),
    ("talos: pulls refused", "platform/nodes transient", "429 Too Many Requests"),
    ("talos: unwritable", "platform/config/worker-01 transient", "still in maintenance mode"),
    ("talos: etcd removed", "transient", "192.168.1.213:6443: Connection refused"),
    ("network: stolen", "platform/preflight conflict", "192.168.1.214"),
    ("kubernetes: empty secrets", "engine/proof invalid", "without a value"),
    ("flux: suspended", "gitops/source transient", "is suspended"),
    ("infisical: expired", "denied", "expired client secret"),
    ("infisical: revoked", "denied", "Invalid credentials"),
    ("infisical: read only", "secrets/escrow denied", "not allowed to create"),
    ("infisical: confined", "secrets/read gone", "missing: AWS_ACCESS_KEY_ID"),
    ("git: broken", "gitops/convergence transient", "MalformedYAMLError"),
    ("git: branch gone", "gitops/repository gone", "is empty"),
    ("git: token changed", "gitops/repository denied", "the token may not read"),
    ("downloads: missing", "platform/manifests gone", "404: Not Found"),
    ("downloads: tampered", "platform/manifests invalid", "metallb-native.yaml"),
    ("downloads: elsewhere", "platform/manifests invalid", "example.com"),
    ("castle: killed before", "killed", ""),
    ("castle: killed after", "killed", ""),
];

/// How a run ended, in words; and whether the rule struck.
fn told(said: &Said) -> (String, bool) {
    let events: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is = |event: &Value, name: &str| event["event"] == name;
    let struck = events.iter().any(|event| is(event, "fault"));
    let failed = events.iter().filter(|event| is(event, "step-failed")).map(|event| {
        let (step, failure) = (event["step"].as_str().unwrap(), &event["failure"]);
        format!("{step} {}: {failure}", failure["class"].as_str().unwrap())
    });
    let failed: Vec<String> = failed.collect();
    let how = match said.code {
        0 => "done".to_owned(),
        -1 => "killed".to_owned(),
        code => format!("exit {code} {}", failed.join("; ")),
    };
    (how, struck)
}

/// Every kind, broken once while the example castle is raised from nothing: it strikes, nothing hangs, nothing is a
/// bug of ours, and either the castle stands or the cause is named.
#[test]
fn every_fault_ends_well_or_is_named() {
    let queue = Mutex::new(all());
    let ends = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().unwrap().pop();
                    let Some((name, rule)) = next else { break };
                    let context = Context::new();
                    let words = ["up", "--json", "--speed", "max", "--fault", rule.as_str()];
                    let (how, struck) = told(&context.run(&words));
                    let how = if struck { how } else { format!("`{rule}` never struck: {how}") };
                    if how == "killed" {
                        context.run(&["up", "--yes", "--speed", "max"]).ends(0);
                    }
                    ends.lock().unwrap().insert(name, how);
                }
            });
        }
    });
    let ends = ends.into_inner().unwrap();
    let mut wrong = Vec::new();
    for (name, how) in &ends {
        let good = match NAMED.iter().find(|(named, ..)| named == name) {
            None => how == "done",
            Some((_, place, words)) => how.contains(place) && how.contains(words),
        };
        if !good || how.contains(" bug: ") {
            wrong.push(format!("{name}: {how}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(NAMED.iter().all(|(name, ..)| ends.contains_key(*name)) && ends.len() >= 24);
}

#[test]
fn a_fault_is_told_when_it_strikes_and_when_it_never_did() {
    let context = Context::new();
    let said = context.run(&[
        "up",
        "--speed",
        "max",
        "--fault",
        "proxmox: drops after on POST /qemu the 2nd",
        "--fault",
        "talos worker-02: reboots on GET /never",
    ]);
    let said = said.ends(0);
    let lines: Vec<&str> = said.err.lines().filter(|line| line.contains("fault: ")).collect();
    assert_eq!(lines.len(), 2, "{lines:#?}");
    assert!(lines[0].starts_with("[ 0:"), "{lines:#?}");
    assert!(lines[0].contains("proxmox drops the connection after it has done POST /"));
    assert_eq!(lines[1], "fault: never struck: talos worker-02: reboots on GET /never");
}

#[test]
fn rules_come_from_a_file_and_from_a_seed() {
    let context = Context::new();
    context.write("faults.txt", "# a bad day\n\nproxmox: answers 596 on GET /status once\n");
    let said = context.run(&["plan", "--faults", "faults.txt"]);
    assert!(!said.err.contains("can not be read"), "{}", said.err);
    context.write("wrong.txt", "talos cp-2: dead\ngit: awya\n");
    let wrong = context.run(&["up", "--faults", "wrong.txt"]).ends(2);
    assert!(wrong.err.contains("did you mean `cp-02`?"), "{}", wrong.err);
    assert!(wrong.err.contains("wrong.txt:2:6"), "{}", wrong.err);
    let chaos = |seed: &str| {
        let said = Context::new().run(&["plan", "--chaos", seed]);
        let drawn = said.err.lines().filter(|line| line.starts_with("chaos "));
        drawn.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!((1..=3).contains(&chaos("7").len()));
    assert_eq!(chaos("7"), chaos("7"));
    assert_ne!(chaos("7"), chaos("8"));
}

#[test]
fn a_wrong_rule_or_a_real_castle_is_refused_before_anything_happens() {
    let context = Context::new();
    let said = context.run(&["up", "--fault", "talos cp-2: dead from 0:40"]).ends(2);
    assert!(said.err.contains("      ^^^^ did you mean `cp-02`?"), "{}", said.err);
    assert!(said.err.contains("--list-faults"), "{}", said.err);
    assert!(!context.datacenter().exists() && !context.state().exists());
    context.write("castle.hcl", &example("blue"));
    for flag in [["--fault", "git: away"], ["--faults", "x"], ["--chaos", "1"]] {
        let said = context.run(&["up", flag[0], flag[1]]).ends(2);
        assert!(said.err.contains("castle rehearse"), "{}", said.err);
    }
}

#[test]
fn the_same_rules_give_the_same_run() {
    let trace = || {
        let rule = "kubernetes: answers 500 on PATCH * the 5th 3 times";
        let said = Context::new().run(&["up", "--speed", "max", "--fault", rule]);
        said.err.lines().find(|line| line.starts_with("rehearsal: ")).unwrap().to_owned()
    };
    assert_eq!(trace(), trace());
}
