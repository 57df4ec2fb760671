//! What somebody changed by hand: planned with its owner, mended in place where it is castle's, left where it is not.

use std::collections::BTreeSet;
use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Outputs, Report};
use castle_journal::StepState;
use castle_model::event::RunOutcome;
use castle_model::{Change, Class, Event, EventKind, Spec, StepId, Verb};
use castle_plan::Seen;
use castle_rehearsal::fault::{Names, Rule};
use castle_rehearsal::host::runtime;
use serde_json::{Value, json};

use super::{Access, Rehearsal, sized};

impl Rehearsal {
    /// Somebody does something in the datacenter, by a rule as `castle rehearse poke` takes it.
    fn poke(&self, rule: &str) {
        let rule = Rule::parse(rule, &Names::of(&self.spec)).unwrap();
        for trouble in rule.troubles().expect("something that happens to the world") {
            self.host.cause(trouble.clone());
        }
    }

    /// What a plan tells of what has drifted, a line each, and whether anybody would be asked.
    async fn drift(&self) -> (Vec<String>, bool) {
        let graph =
            crate::build(&self.spec, &self.host.world(), Access::to_infisical(self.identity()));
        let outputs = Arc::<Outputs>::default();
        let records = self.journals.records();
        let surveyor = Surveyor {
            graph: &graph,
            records,
            outputs: outputs.clone(),
            deadlines: &self.spec.deadlines,
        };
        let survey = surveyor.look().await;
        let done = |state: &StepState| matches!(state, StepState::Done { .. });
        let known: BTreeSet<StepId> =
            records.steps.iter().filter(|(_, s)| done(s)).map(|(id, _)| id.clone()).collect();
        let further = surveyor.look_further(&survey, &known).await;
        let plan = castle_plan::up(&self.spec.name, graph.decls(), &survey, &known).unwrap();
        let seen = Seen { survey: &survey, further: &further, known: &known };
        let ours = castle_plan::drift(&plan, seen).into_iter();
        let ours = ours.map(|d| format!("{} {}: {}: {}", d.owner, d.step, d.what, d.then));
        let dark = castle_plan::unseen(&plan, seen).into_iter();
        let dark = dark.map(|u| format!("unknown {}: {} (and {})", u.step, u.why, u.behind));
        let left = outputs.left().into_iter();
        let left = left.map(|l| format!("{} {}: {}: left so", l.owner, l.step, l.what));
        let consent = plan.steps.iter().any(|step| step.verb == Verb::Replace);
        (ours.chain(left).chain(dark).map(|line| timeless(&line)).collect(), consent)
    }

    async fn mended(&mut self) -> Report {
        let report = self.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        report
    }

    fn guest(&self, vmid: u32) -> Value {
        let proxmox = self.host.read(|world| serde_json::to_value(&world.proxmox)).unwrap();
        proxmox["guests"][vmid.to_string()].clone()
    }
}

/// A line without the moment at which somebody did something.
fn timeless(line: &str) -> String {
    match line.split_once(" at 20").and_then(|(head, rest)| Some((head, rest.split_once('Z')?.1))) {
        Some((head, tail)) => format!("{head}{tail}"),
        None => line.to_owned(),
    }
}

/// Lets something happen to a castle that stands; it is planned with these lines, mended, and stands as before.
fn is_mended(rules: &[&str], told: &[&str]) {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        rehearsal.mended().await;
        let before = rehearsal.books();
        for rule in rules {
            rehearsal.poke(rule);
        }
        let (drift, consent) = rehearsal.drift().await;
        assert_eq!(drift, told, "{rules:?}");
        assert!(!consent, "{rules:?}: nothing is replaced that can be mended");
        rehearsal.mended().await;
        // Pods of a machine that was away come back after it, when their layers have been looked at: the next run sees them.
        rehearsal.mended().await;
        assert_eq!(rehearsal.books(), before, "{rules:?}");
        assert_eq!(rehearsal.drift().await.0, [""; 0], "{rules:?}");
        rehearsal.stands_quietly("once mended").await;
    });
}

/// What is told of a config whose machine does not answer.
fn mute(name: &str, address: &str) -> String {
    format!(
        "unknown platform/config/{name}: configure {name} at {address}: machine {address}: cannot reach its Talos API: \
         no answer from {address}:50000 within 0.5 s (and 0)"
    )
}

/// What is told of a Node that may be one of an earlier boot, as long as its machine does not say which one it is in.
fn unproven(name: &str) -> String {
    format!(
        "castle platform/nodes: {name} does not tell which boot it is in: it does not answer as a machine of this castle: \
         waited for, and proven again, after platform/vm/{name}"
    )
}

#[test]
fn a_machine_that_was_switched_off_is_switched_on() {
    is_mended(
        &["proxmox worker-01: stopped"],
        &[
            "castle platform/vm/worker-01: it is switched off -> switched on: mended in place",
            &unproven("worker-01"),
            &mute("worker-01", "192.168.1.214"),
        ],
    );
}

#[test]
fn a_worker_and_a_control_plane_that_are_gone_are_made_again_under_their_old_names() {
    for name in ["worker-02", "cp-02"] {
        let gone = format!("castle platform/vm/{name}: it is gone: made again");
        is_mended(&[&format!("proxmox {name}: destroyed")], &[&gone, &unproven(name)]);
    }
}

/// Lets something happen to a castle that stands; gives what the plan of the next run counts as changed, and what the run changed.
fn promised_and_done(spec: Spec, rules: &[&str]) -> (usize, usize) {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(spec, 7);
        rehearsal.mended().await;
        for rule in rules {
            rehearsal.poke(rule);
        }
        let before = rehearsal.events.len();
        rehearsal.mended().await;
        let counts = rehearsal.plan.as_ref().unwrap().counts();
        let changes = ["create", "update", "replace", "prune"];
        let promised = changes.iter().filter_map(|word| counts.get(*word)).sum();
        let changed = |event: &&Event| {
            let EventKind::StepDone { change, .. } = &event.kind else { return false };
            matches!(change, Change::Created | Change::Updated)
        };
        (promised, rehearsal.events[before..].iter().filter(changed).count())
    })
}

#[test]
fn a_plan_counts_what_the_run_then_changes() {
    let five = castle_config::example;
    let edited = "proxmox worker-01: edited memory 4096";
    assert_eq!(promised_and_done(five(), &[]), (0, 0));
    assert_eq!(promised_and_done(five(), &[edited]), (1, 1));
    assert_eq!(promised_and_done(five(), &[edited, "proxmox worker-02: destroyed"]), (3, 3));
    assert_eq!(promised_and_done(five(), &["proxmox cp-02: destroyed"]), (2, 2));
    let all = ["proxmox cp-01: destroyed", "proxmox worker-01: destroyed"];
    let (promised, done) = promised_and_done(sized(1, 1), &all);
    assert_eq!(promised, done, "a life that is begun anew has nothing of the old one");
    assert!(done > 15, "the whole cluster is made again: {done}");
}

#[test]
fn settings_of_a_machine_are_set_back_and_castle_says_when_they_are_in_force() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        rehearsal.mended().await;
        rehearsal.poke("proxmox worker-01: edited memory 4096");
        rehearsal.poke("proxmox worker-01: edited onboot 0");
        rehearsal.poke("proxmox cp-02: edited cores 2");
        assert_eq!(rehearsal.drift().await.0, [
            "castle platform/vm/cp-02: cores 2 -> 4, in force when it is next switched off and on: mended in place",
            "castle platform/vm/worker-01: memory 4096 -> 8192 MiB, onboot 0 -> 1, in force when it is next switched off and on: mended in place",
        ]);
        rehearsal.mended().await;
        let guest = rehearsal.guest(431);
        assert_eq!((&guest["config"]["memory"], &guest["pending"]["memory"]), (&json!("4096"), &json!("8192")));
        assert_eq!(rehearsal.drift().await.0, [""; 0]);
        // A machine in use is not switched off; a person is told how, until it is done.
        let before = rehearsal.events.len();
        rehearsal.stands_quietly("once set").await;
        let told = rehearsal.told_since(before, "still runs with");
        assert_eq!(told.len(), 2, "{told:?}");
        assert!(told[1].contains("4096 MiB") && told[1].contains("qm shutdown 431"), "{told:?}");
        for vmid in [422, 431] {
            rehearsal.poke(&format!("proxmox {vmid}: stopped"));
            rehearsal.mended().await;
        }
        assert_eq!(rehearsal.guest(431)["config"]["memory"], json!("8192"));
        let before = rehearsal.events.len();
        rehearsal.stands_quietly("after the power cycle").await;
        assert_eq!(rehearsal.told_since(before, "still runs with"), [""; 0]);
    });
}

#[test]
fn a_disk_that_was_grown_is_never_shrunk_and_a_machine_is_replaced_only_with_consent() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        rehearsal.mended().await;
        let disk = |rehearsal: &Rehearsal, vmid: u32| {
            rehearsal.guest(vmid)["config"]["scsi0"].as_str().unwrap().to_owned()
        };
        let larger = disk(&rehearsal, 432).replace("size=40G", "size=60G");
        rehearsal.poke(&format!("proxmox worker-02: edited scsi0 \"{larger}\""));
        let (drift, consent) = rehearsal.drift().await;
        assert_eq!(drift, [
            "castle platform/vm/worker-02: system disk 60 -> 40 GiB, and disks never shrink: destroyed and made anew, if you agree",
        ]);
        assert!(consent, "nothing of it is done unasked");
        // A control plane may hold a part of etcd: that is for a person to decide.
        let larger = disk(&rehearsal, 423).replace("size=40G", "size=60G");
        rehearsal.poke(&format!("proxmox cp-03: edited scsi0 \"{larger}\""));
        let (drift, _) = rehearsal.drift().await;
        assert_eq!(drift[0],
            "castle platform/vm/cp-03: system disk 60 -> 40 GiB, and disks never shrink: `up` stops here",
        );
    });
}

#[test]
fn a_mark_that_was_damaged_by_hand_is_put_back_and_what_others_wrote_stays() {
    is_mended(
        &["proxmox worker-01: edited tags mine"],
        &[
            "castle platform/vm/worker-01: its tags do not agree with its mark, but number and UUID prove it ours: the mark is put back: mended in place",
        ],
    );
    is_mended(
        &[
            "proxmox cp-01: edited description \"rebooted on Monday\"",
            "proxmox worker-02: edited tags",
        ],
        &[
            "castle platform/vm/cp-01: it bears no mark of a castle, but number and UUID prove it ours: the mark is put back: mended in place",
            "castle platform/vm/worker-02: its tags do not agree with its mark, but number and UUID prove it ours: the mark is put back: mended in place",
        ],
    );
}

#[test]
fn marks_that_are_all_gone_with_the_state_come_back_by_what_is_kept() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        rehearsal.mended().await;
        let life = rehearsal.journals.records().incarnation.clone();
        for name in ["cp-01", "worker-01"] {
            rehearsal.poke(&format!("proxmox {name}: edited tags"));
            rehearsal.poke(&format!("proxmox {name}: edited description"));
        }
        rehearsal.forget();
        let before = rehearsal.books();
        rehearsal.mended().await;
        assert_eq!(rehearsal.journals.records().incarnation, life);
        assert_eq!(rehearsal.books(), before);
        rehearsal.stands_quietly("with its marks").await;
        // A machine of another UUID at our number is somebody else's, whatever it is called.
        rehearsal
            .poke("proxmox worker-01: edited smbios1 uuid=d59201e4-d411-4eb5-aa3a-aafb17c6181f");
        let changes = rehearsal.changes();
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        assert_eq!(rehearsal.changes(), changes, "it is not touched");
    });
}

#[test]
fn what_was_edited_in_the_cluster_is_set_back_and_says_by_whom() {
    is_mended(
        &[
            "kubernetes: patched ipaddresspools/metallb-system/castle {\"spec\":{\"addresses\":[\"192.168.1.99-192.168.1.100\"]}}",
        ],
        &[
            "castle networking/pool: 1 to change (IPAddressPool metallb-system/castle: kubectl-edit has changed .spec.addresses 192.168.1.99-192.168.1.100 -> 192.168.1.230-192.168.1.245): mended in place",
        ],
    );
    is_mended(
        &["kubernetes: scaled deploy/metallb-system/controller 0"],
        &[
            "castle networking/metallb: 1 to change (Deployment metallb-system/controller: kubectl-edit has changed .spec.replicas 0 -> 1): mended in place",
        ],
    );
}

#[test]
fn a_node_that_was_deleted_joins_again_because_its_kubelet_is_restarted() {
    is_mended(
        &["kubernetes: deleted node/worker-01"],
        &[
            "castle platform/nodes: Node worker-01 is gone: its kubelet is restarted, so that it joins again: waited for, and proven again",
        ],
    );
}

#[test]
fn a_node_that_nobody_remembers_is_brought_back_where_its_machine_stood_before() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        rehearsal.mended().await;
        rehearsal.poke("kubernetes: deleted node/worker-01");
        // Without a journal it may as well be one that has not joined yet.
        rehearsal.forget();
        let report = rehearsal.up().await;
        assert!(report.failures.is_empty(), "{:?}", report.failures);
        rehearsal.stands_quietly("once it has joined").await;
    });
}

#[test]
fn everything_that_differs_is_named_though_one_stands_behind_the_other() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        rehearsal.mended().await;
        for rule in [
            "proxmox worker-01: edited memory 4096",
            "proxmox cp-01: edited onboot 0",
            "kubernetes: patched ipaddresspools/metallb-system/castle {\"spec\":{\"addresses\":[\"192.168.1.99-192.168.1.100\"]}}",
            "kubernetes: patched gitrepositories/flux-system/flux-system {\"spec\":{\"suspend\":true}}",
        ] {
            rehearsal.poke(rule);
        }
        let changes = rehearsal.changes();
        let (drift, consent) = rehearsal.drift().await;
        assert_eq!(drift, [
            "castle platform/vm/cp-01: onboot 0 -> 1: mended in place",
            "castle platform/vm/worker-01: memory 4096 -> 8192 MiB, in force when it is next switched off and on: mended in place",
            "castle networking/pool: 1 to change (IPAddressPool metallb-system/castle: kubectl-edit has changed .spec.addresses \
             192.168.1.99-192.168.1.100 -> 192.168.1.230-192.168.1.245): mended in place, after platform/vm/cp-01",
            "Flux gitops/source: GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so",
        ]);
        assert!(!consent);
        assert_eq!(rehearsal.changes(), changes, "a look changes nothing");
        rehearsal.mended().await;
        let (drift, _) = rehearsal.drift().await;
        assert_eq!(drift, [
            "Flux gitops/source: GitRepository flux-system/flux-system: suspended: nothing changes until it is resumed: left so",
        ]);
    });
}

#[test]
fn what_belongs_to_others_is_told_and_left() {
    for (rule, told) in [
        (
            "kubernetes: patched node/worker-01 {\"spec\":{\"unschedulable\":true}}",
            "others platform/nodes: worker-01 is cordoned: left so",
        ),
        (
            "kubernetes: patched gitrepositories/flux-system/flux-system {\"spec\":{\"url\":\"https://github.com/somebody/else\"}}",
            "Flux gitops/source: GitRepository flux-system/flux-system: spec.url https://github.com/example/tazlab-k8s -> https://github.com/somebody/else: left so",
        ),
        (
            "kubernetes: patched kustomizations/flux-system/flux-system {\"spec\":{\"suspend\":true}}",
            "Flux gitops/handover: Kustomization flux-system/flux-system: suspended: nothing changes until it is resumed: left so",
        ),
    ] {
        runtime().unwrap().block_on(async {
            let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
            rehearsal.mended().await;
            rehearsal.poke(rule);
            assert_eq!(rehearsal.drift().await.0, [told]);
            rehearsal.stands_quietly(rule).await;
        });
    }
}

#[test]
fn an_image_and_ways_in_that_are_gone_are_made_again_but_never_the_secrets_of_a_life() {
    is_mended(&["proxmox local: images lost"], &["castle platform/image: it is gone: made again"]);
    is_mended(
        &["infisical: lost KUBECONFIG_CONTENT"],
        &["castle platform/keys: KUBECONFIG_CONTENT: it is not there: mended in place"],
    );
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        rehearsal.mended().await;
        rehearsal.poke("infisical: lost TALOS_SECRETS_BUNDLE");
        let (drift, _) = rehearsal.drift().await;
        assert_eq!(drift.len(), 1, "{drift:?}");
        assert!(
            drift[0].ends_with("but TALOS_SECRETS_BUNDLE holds nothing: `up` stops here"),
            "{drift:?}"
        );
        let changes = rehearsal.changes();
        let report = rehearsal.up().await;
        let failure = &report.failures[&StepId::new("secrets", "escrow")];
        assert_eq!(failure.class, Class::Gone);
        assert_eq!(rehearsal.changes(), changes, "no life is begun over a living one");
    });
}

#[test]
fn without_a_quorum_no_control_plane_is_made_anew() {
    runtime().unwrap().block_on(async {
        let mut rehearsal = Rehearsal::open(castle_config::example(), 7);
        rehearsal.mended().await;
        for name in ["cp-02", "cp-03"] {
            rehearsal.poke(&format!("proxmox {name}: destroyed"));
        }
        let changes = rehearsal.changes();
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let failure = &report.failures[&StepId::of("platform", "vm", "cp-02")];
        assert!(failure.why.contains("of its 3 control planes cp-01 is left"), "{failure:?}");
        assert_eq!(rehearsal.changes(), changes, "{:#?}", report.failures);
    });
}
