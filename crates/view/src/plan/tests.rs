//! What the plan reads like.

use castle_model::{StepDecl, StepId};

use super::*;
use crate::example::decls;

fn plan(verbs: &[(Verb, &str, bool)]) -> Plan {
    let steps =
        decls().into_iter().zip(verbs.iter().cycle()).map(|(decl, (verb, reason, unknown))| {
            PlannedStep { decl, verb: *verb, reason: (*reason).to_owned(), unknown: *unknown }
        });
    Plan {
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        steps: steps.collect(),
        hash: "c0ffee1234567890".into(),
    }
}

#[test]
fn a_set_that_loses_something_says_so_and_is_not_made_anew() {
    let decl = StepDecl::new(StepId::new("networking", "metallb"), "MetalLB", "metallb").set();
    let reason = "1 no longer wanted and to be removed (ConfigMap metallb-system/excludel2)";
    let step = PlannedStep { decl, verb: Verb::Replace, reason: reason.to_owned(), unknown: false };
    let plan = Plan { steps: vec![step], ..plan(&[(Verb::Leave, "", false)]) };
    insta::assert_snapshot!(text(&plan, Style::default()), @"
    plan c0ffee12 for castle blue: up, 1 step

    networking
    ~ prune    metallb  MetalLB: 1 no longer wanted and to be removed (ConfigMap
                        metallb-system/excludel2) [removes what it no longer has]

    1 to prune

    this step destroys something for good:
      MetalLB will be changed, and what it no longer has is removed
    ");
}

#[test]
fn a_plan_with_every_kind_of_verb() {
    let plan = plan(&[
        (Verb::Leave, "7 of 7 keys", false),
        (Verb::Create, "it is absent", false),
        (
            Verb::Replace,
            "its disk is of another incarnation, which only a new disk can mend",
            false,
        ),
        (Verb::Adopt, "VM 431 carries our mark", false),
        (Verb::Update, "the VIP is on no node", false),
        (Verb::Create, "unknown until the API server answers", true),
    ]);
    insta::assert_snapshot!(text(&plan, Style::default()), @"
    plan c0ffee12 for castle blue: up, 6 steps

      leave    secrets: 1 step as it should be

    platform
    + create   image     Talos 1.13.9 image on pve:local: it is absent
    ± replace  vm/cp-01  VM cp-01 (421) on pve: its disk is of another incarnation,
                         which only a new disk can mend [destroys what is on it]
    * adopt    vm/w-01   VM w-01 (431) on pve: VM 431 carries our mark
    ~ update   vip       API server at 192.168.1.210: the VIP is on no node

    gitops
    + create ? flux      Flux and its controllers: unknown until the API server
                         answers

    2 to create, 1 to adopt, 1 to update, 1 to replace, 1 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its
       turn comes, and made or mended if need be; nothing is destroyed that this
       plan does not name

    this step destroys something for good:
      VM cp-01 (421) on pve will be destroyed and made anew: what is on it is lost
    ");
}

#[test]
fn what_only_proves_is_not_created_and_what_is_given_back_not_removed() {
    let step = |decl, verb| PlannedStep { decl, verb, reason: "so".into(), unknown: false };
    let id = |name| StepId::new("platform", name);
    let boot = StepDecl::new(id("boot"), "cp-01 answers", "boot").only("it only waits");
    let machine = StepDecl::new(id("machine"), "machine cp-01", "machine").reset();
    let machine = machine.notes(["told where it is made".to_owned()]);
    let plan = Plan {
        castle: "blue".parse().unwrap(),
        direction: Direction::Down,
        steps: vec![step(boot, Verb::Create), step(machine, Verb::Remove)],
        hash: "c0ffee1234567890".into(),
    };
    insta::assert_snapshot!(text(&plan, Style::default()), @"
    plan c0ffee12 for castle blue: down, 2 steps

    platform
    . prove    boot     cp-01 answers: so
    - reset    machine  machine cp-01: so [wipes what this castle put on it]

    1 to prove, 1 to reset

    this step destroys something for good:
      machine cp-01 will be reset: what this castle put on it is wiped
    ");
}

#[test]
fn what_is_changed_of_a_release_stands_below_its_step() {
    let id = StepId::new("storage", "longhorn");
    let decl = StepDecl::new(id, "Longhorn", "longhorn");
    let decl = decl.notes([
        "2 copies of each volume".to_owned(),
        "volumes live in /var/mnt/longhorn, and this sentence is a long one".to_owned(),
    ]);
    let watched = StepDecl::new(StepId::new("storage", "watched"), "Longhorn", "longhorn");
    let watched = watched.observed("Flux installs it");
    let step = |decl, verb| PlannedStep { decl, verb, reason: "so".into(), unknown: false };
    let plan = Plan {
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        steps: vec![step(decl, Verb::Create), step(watched, Verb::Create)],
        hash: "c0ffee1234567890".into(),
    };
    insta::assert_snapshot!(text(&plan, Style::default()), @"
    plan c0ffee12 for castle blue: up, 2 steps

    storage
    + create   longhorn  Longhorn: so
                 - 2 copies of each volume
                 - volumes live in /var/mnt/longhorn, and this sentence is a long
                   one
    . observe  watched   Longhorn: so

    1 to create, 1 to observe
    ");
}

#[test]
fn a_plan_with_nothing_to_do() {
    let plan = plan(&[(Verb::Leave, "as wanted", false)]);
    insta::assert_snapshot!(text(&plan, Style { width: 60, ..Style::default() }), @"
    plan c0ffee12 for castle blue: up, 6 steps

      leave    secrets: 1 step as it should be
      leave    platform: 4 steps as they should be
      leave    gitops: 1 step as it should be

    6 to leave alone: the world will not be touched
    ");
}

#[test]
fn json_gives_the_same_plan_back() {
    let plan = plan(&[(Verb::Create, "it is absent", false)]);
    let again: Plan = serde_json::from_value(json(&plan, &[], &[]).unwrap()).unwrap();
    assert_eq!(again, plan);
}

#[test]
fn what_has_drifted_is_told_with_its_owner_and_what_becomes_of_it() {
    let thing = |step, owner: &str, what: &str, then: &str| Drift {
        step,
        owner: owner.to_owned(),
        what: what.to_owned(),
        then: then.to_owned(),
    };
    let found = [
        thing(
            StepId::of("platform", "vm", "worker-01"),
            "castle",
            "memory 4096 -> 8192, in force when it is next switched off and on",
            "mended in place",
        ),
        thing(
            StepId::new("gitops", "source"),
            "Flux",
            "Kustomization flux-system/apps: suspended",
            "left so",
        ),
    ];
    insta::assert_snapshot!(drift(&found, &[], Style::default()), @"
    drift: 2 things are not as castle left them; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192, in force when it is next switched
                            off and on: mended in place
      Flux    source        Kustomization flux-system/apps: suspended: left so
    ");
    assert_eq!(drift(&[], &[], Style::default()), "");
    let dark = |step, why: &str, behind| Unseen { step, why: why.to_owned(), behind };
    let dark = [
        dark(
            StepId::new("platform", "nodes"),
            "look at the cluster: nobody answers at 10.0.0.9:6443",
            17,
        ),
        dark(StepId::new("gitops", "handover"), "no answer in time", 0),
    ];
    insta::assert_snapshot!(drift(&found[..1], &dark, Style::default()), @"

    drift: 1 thing is not as castle left it; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192, in force when it is next switched
                            off and on: mended in place

    unknown: what could not be looked at, and why; `up` looks again before it acts
      nodes         look at the cluster: nobody answers at 10.0.0.9:6443; 17 steps
                    behind it
      handover      no answer in time
    ");
    assert!(drift(&[], &dark, Style::default()).starts_with("\nunknown: "));
}
