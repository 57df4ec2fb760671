//! What the plan reads like.

use castle_model::{Failure, StepDecl, StepId};

use super::*;
use crate::example::decls;

fn plan(verbs: &[(Verb, &str, bool)]) -> Plan {
    let steps =
        decls().into_iter().zip(verbs.iter().cycle()).map(|(decl, (verb, reason, unknown))| {
            PlannedStep { unknown: *unknown, ..PlannedStep::new(decl, *verb, *reason) }
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
    let decl =
        StepDecl::new(StepId::new("networking", "metallb"), "MetalLB", "metallb", "it is done")
            .set();
    let reason = "1 no longer wanted and to be removed (ConfigMap metallb-system/excludel2)";
    let step = PlannedStep::new(decl, Verb::Replace, reason);
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
    let step = |decl, verb| PlannedStep::new(decl, verb, "so");
    let id = |name| StepId::new("platform", name);
    let boot =
        StepDecl::new(id("boot"), "cp-01 answers", "boot", "it is done").only("it only waits");
    let machine = StepDecl::new(id("machine"), "machine cp-01", "machine", "it is done").reset();
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
    let decl = StepDecl::new(id, "Longhorn", "longhorn", "it is done");
    let decl = decl.notes([
        "2 copies of each volume".to_owned(),
        "volumes live in /var/mnt/longhorn, and this sentence is a long one".to_owned(),
    ]);
    let watched =
        StepDecl::new(StepId::new("storage", "watched"), "Longhorn", "longhorn", "it is done");
    let watched = watched.observed("Flux installs it");
    let step = |decl, verb| PlannedStep::new(decl, verb, "so");
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
    let told = serde_json::to_value(answer(&plan, Vec::new(), Vec::new())).unwrap();
    let again: Plan = serde_json::from_value(told).unwrap();
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
    let plan = plan(&[(Verb::Leave, "as wanted", false)]);
    insta::assert_snapshot!(drift(&plan, &found, &[], Style::default()), @"
    drift: 2 things are not as castle left them; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192, in force when it is next switched
                            off and on: mended in place
      Flux    source        Kustomization flux-system/apps: suspended: left so
    ");
    assert_eq!(drift(&plan, &[], &[], Style::default()), "");
    let dark = |step, why: &str, behind| Unseen { step, why: why.to_owned(), behind };
    let dark = [
        dark(
            StepId::new("platform", "nodes"),
            "look at the cluster: nobody answers at 10.0.0.9:6443",
            17,
        ),
        dark(StepId::new("gitops", "handover"), "no answer in time", 0),
    ];
    insta::assert_snapshot!(drift(&plan, &found[..1], &dark, Style::default()), @"

    drift: 1 thing is not as castle left it; whose, what, and what `up` does
      castle  vm/worker-01  memory 4096 → 8192, in force when it is next switched
                            off and on: mended in place

    unknown: what could not be looked at, and why; `up` looks again before it acts
      nodes         look at the cluster: nobody answers at 10.0.0.9:6443; 17 steps
                    behind it
      handover      no answer in time
    ");
    assert!(drift(&plan, &[], &dark, Style::default()).starts_with("\nunknown: "));
}

/// A machine that is refused beside one that is made anew, and what stands behind them.
fn stuck(replaced: bool) -> Plan {
    let why = "system disk 40 GiB -> 30 GiB, and disks never shrink";
    let shrunk = Failure::new(castle_model::Class::Conflict, "change VM 421", why)
        .hint("let the castle file say 40, or raise the castle anew: `castle rebirth`");
    let (vm, image) = (StepId::of("platform", "vm", "cp-01"), StepId::new("platform", "image"));
    let mut plan = plan(&[(Verb::Leave, "as wanted", false)]);
    for step in &mut plan.steps {
        let decl = step.decl.clone();
        *step = match decl.id.as_str() {
            "platform/vm/cp-01" => PlannedStep {
                refused: Some(Box::new(shrunk.clone())),
                ..PlannedStep::new(decl, Verb::Leave, why).expected()
            },
            "platform/vm/w-01" if replaced => PlannedStep::new(decl, Verb::Replace, why),
            "platform/vip" | "gitops/flux" => PlannedStep {
                after: Some(vm.clone()),
                ..PlannedStep::new(decl, Verb::Leave, "done before").expected()
            },
            _ => continue,
        };
    }
    // Two more that are looked at later, so that they are told in one line.
    for name in ["etcd", "nodes"] {
        let decl = StepDecl::new(StepId::new("platform", name), name, "etcd", "it is done")
            .needs([image.clone()]);
        let step = PlannedStep::new(decl, Verb::Leave, "done before").expected();
        plan.steps.push(PlannedStep { after: Some(vm.clone()), ..step });
    }
    plan
}

#[test]
fn a_plan_that_would_destroy_in_vain_says_that_it_is_refused() {
    insta::assert_snapshot!(text(&stuck(true), Style { width: 60, ..Style::default() }), @"
    plan c0ffee12 for castle blue: up, 8 steps

      leave    secrets: 1 step as it should be

    platform
    ✕ refused  vm/cp-01  VM cp-01 (421) on pve: system disk 40
                         GiB → 30 GiB, and disks never shrink
    ± replace  vm/w-01   VM w-01 (431) on pve: system disk 40
                         GiB → 30 GiB, and disks never shrink
                         [destroys what is on it]
      leave  ? 3 steps, looked at after platform/vm/cp-01
      leave    1 more step as it should be

    gitops
      leave  ? flux      Flux and its controllers: done before

    1 refused, 1 to replace, 6 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is
       looked at when its turn comes, and made or mended if need
       be; nothing is destroyed that this plan does not name

    1 step would destroy something for good:
      VM w-01 (431) on pve would be destroyed and made anew:
      what is on it is lost

    `up` refuses this plan: 1 step is refused, and 2 steps stand
    behind it, so 1 thing would be destroyed in vain; nothing is
    touched before that is mended
      vm/cp-01
        hint      let the castle file say 40, or raise the
                  castle anew: `castle rebirth`
    ");
    insta::assert_snapshot!(text(&stuck(true), Style::default()), @"
    plan c0ffee12 for castle blue: up, 8 steps

      leave    secrets: 1 step as it should be

    platform
    ✕ refused  vm/cp-01  VM cp-01 (421) on pve: system disk 40 GiB → 30 GiB, and
                         disks never shrink
    ± replace  vm/w-01   VM w-01 (431) on pve: system disk 40 GiB → 30 GiB, and
                         disks never shrink [destroys what is on it]
      leave  ? 3 steps, looked at after platform/vm/cp-01
      leave    1 more step as it should be

    gitops
      leave  ? flux      Flux and its controllers: done before

    1 refused, 1 to replace, 6 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its
       turn comes, and made or mended if need be; nothing is destroyed that this
       plan does not name

    1 step would destroy something for good:
      VM w-01 (431) on pve would be destroyed and made anew: what is on it is lost

    `up` refuses this plan: 1 step is refused, and 2 steps stand behind it, so 1
    thing would be destroyed in vain; nothing is touched before that is mended
      vm/cp-01
        hint      let the castle file say 40, or raise the castle anew:
                  `castle rebirth`
    ");
    insta::assert_snapshot!(text(&stuck(true), Style { width: 120, ..Style::default() }), @"
    plan c0ffee12 for castle blue: up, 8 steps

      leave    secrets: 1 step as it should be

    platform
    ✕ refused  vm/cp-01  VM cp-01 (421) on pve: system disk 40 GiB → 30 GiB, and disks never shrink
    ± replace  vm/w-01   VM w-01 (431) on pve: system disk 40 GiB → 30 GiB, and disks never shrink [destroys what is on it]
      leave  ? 3 steps, looked at after platform/vm/cp-01
      leave    1 more step as it should be

    gitops
      leave  ? flux      Flux and its controllers: done before

    1 refused, 1 to replace, 6 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need
       be; nothing is destroyed that this plan does not name

    1 step would destroy something for good:
      VM w-01 (431) on pve would be destroyed and made anew: what is on it is lost

    `up` refuses this plan: 1 step is refused, and 2 steps stand behind it, so 1 thing would be destroyed in vain; nothing
    is touched before that is mended
      vm/cp-01
        hint      let the castle file say 40, or raise the castle anew: `castle rebirth`
    ");
}

#[test]
fn a_plan_with_a_refused_step_says_what_it_comes_to() {
    insta::assert_snapshot!(text(&stuck(false), Style::default()), @"
    plan c0ffee12 for castle blue: up, 8 steps

      leave    secrets: 1 step as it should be

    platform
    ✕ refused  vm/cp-01  VM cp-01 (421) on pve: system disk 40 GiB → 30 GiB, and
                         disks never shrink
      leave  ? 3 steps, looked at after platform/vm/cp-01
      leave    2 more steps as they should be

    gitops
      leave  ? flux      Flux and its controllers: done before

    1 refused, 7 to leave alone
    ?  cannot be looked at yet: this is what is expected. It is looked at when its
       turn comes, and made or mended if need be; nothing is destroyed that this
       plan does not name

    `up` would fail: 1 step is refused, and 2 steps stand behind it; what does not
    need it is done all the same
      vm/cp-01
        hint      let the castle file say 40, or raise the castle anew:
                  `castle rebirth`
    ");
}

#[test]
fn programs_are_told_what_is_counted_destroyed_and_refused() {
    let told = answer(&stuck(true), Vec::new(), Vec::new());
    let words: Vec<_> = told
        .steps
        .iter()
        .map(|step| (step.word, step.destroys, step.planned.after.is_some()))
        .collect();
    insta::assert_debug_snapshot!((words, told.counts, told.stops), @r#"
    (
        [
            (
                "leave",
                None,
                false,
            ),
            (
                "leave",
                None,
                false,
            ),
            (
                "refused",
                None,
                false,
            ),
            (
                "replace",
                Some(
                    "destroys what is on it",
                ),
                false,
            ),
            (
                "leave",
                None,
                true,
            ),
            (
                "leave",
                None,
                true,
            ),
            (
                "leave",
                None,
                true,
            ),
            (
                "leave",
                None,
                true,
            ),
        ],
        {
            "leave": 6,
            "refused": 1,
            "replace": 1,
        },
        Some(
            Stops {
                held: true,
                refused: 1,
                behind: 2,
                says: "`up` refuses this plan: 1 step is refused, and 2 steps stand behind it, so 1 thing would be destroyed in vain; nothing is touched before that is mended",
            },
        ),
    )
    "#);
}
