//! What the status reads like.

use castle_model::{Class, Finding};

use super::*;
use crate::example::{START, decls};

fn standing() -> Standing {
    Standing {
        castle: "blue".parse().unwrap(),
        rehearsal: true,
        incarnation: None,
        last_run: None,
        holder: None,
        state: "",
        layers: BTreeMap::new(),
        declared: 0,
        next: None,
        mends: Vec::new(),
        steps: BTreeMap::new(),
        now: None,
        rebirth: None,
        damaged: BTreeMap::new(),
        damage: None,
    }
}

fn shown(standing: &Standing) -> String {
    let standing = standing.clone().judged(&decls(), "castle");
    text(&standing, &decls(), Moment(START + 3_600_000), Style::default())
}

#[test]
fn before_the_first_run() {
    insta::assert_snapshot!(shown(&standing()), @"
    castle blue (a rehearsal): not born
    no run is recorded

    layer     proven  open
    secrets      0/1     1  absent
    platform     0/4     4  absent
    gitops       0/1     1  absent

    next: `castle up`
    ");
}

#[test]
fn a_castle_that_stands() {
    let mut standing = standing();
    standing.incarnation = Some(Incarnation::from_bytes([7; 8]));
    let ended = Some((Moment(START + 96_000), RunOutcome::Done));
    standing.last_run =
        Some(LastRun { direction: Direction::Up, started: Moment(START), ended, took_ms: None });
    for decl in decls() {
        let (change, proof) = (Change::Created, "seen".to_owned());
        standing.steps.insert(decl.id, Known::Done { change, proof, at: Moment(START) });
    }
    insta::assert_snapshot!(shown(&standing), @"
    castle blue (a rehearsal): incarnation 0707070707070707
    last run: up, done in 1:36, 58:24 ago

    layer     proven  open
    secrets      1/1     0  stands
    platform     4/4     0  stands
    gitops       1/1     0  stands
    ");
}

#[test]
fn units_are_told_ready_or_not() {
    let decls =
        [StepDecl::new(StepId::new("gitops", "convergence"), "what Flux builds", "", "it is done")];
    let at = Moment(START + 3_000_000);
    let say = |known: Known| {
        let mut standing = standing();
        standing.steps.insert(StepId::new("gitops", "convergence"), known);
        let text = text(&standing, &decls, Moment(START + 3_600_000), Style::default());
        text.split_inclusive('\n').skip(5).collect::<String>()
    };
    let proof = "7 Kustomizations ready at main@sha1:3f2a91c; milestones: apps-static reached";
    let (change, proof) = (Change::Unchanged, proof.to_owned());
    insta::assert_snapshot!(say(Known::Done { change, proof, at }), @"
    units: 7 Kustomizations ready at main@sha1:3f2a91c; milestones: apps-static
           reached, 10:00 ago
    ");
    let cause = "is not ready: BuildFailed: no such file";
    let failure =
        Failure::new(Class::Transient, "wait for every Kustomization", "not so after 15:00")
            .evidence("2 of 7 are not ready")
            .findings(vec![
                Finding::new("Kustomization flux-system/configs", cause, "correct it"),
                Finding::new("Kustomization flux-system/apps", "waits for configs", "nothing"),
            ]);
    insta::assert_snapshot!(say(Known::Failed { failure, at }), @"
    failed: gitops/convergence, 10:00 ago (it may pass by itself)
      what      wait for every Kustomization
      why       not so after 15:00
      where     Kustomization flux-system/configs: is not ready: BuildFailed: no
                such file
      hint      correct it
      where     Kustomization flux-system/apps: waits for configs
      hint      nothing
      last seen 2 of 7 are not ready
    ");
}

#[test]
fn a_killed_run_with_a_failure_and_damage() {
    let mut standing = standing();
    standing.last_run = Some(LastRun {
        direction: Direction::Up,
        started: Moment(START),
        ended: None,
        took_ms: None,
    });
    let at = Moment(START + 3_000_000);
    let (change, proof) = (Change::Unchanged, "7 of 7 keys".to_owned());
    standing.steps.insert(StepId::new("secrets", "read"), Known::Done { change, proof, at });
    let failure = Failure::new(Class::Denied, "create VM 431", "403 Permission check failed")
        .hint("give the token's role VM.Allocate");
    standing.steps.insert(StepId::of("platform", "vm", "w-01"), Known::Failed { failure, at });
    let task = Some("UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam:".to_owned());
    let open = Known::Intended { verb: Verb::Create, task, at };
    standing.steps.insert(StepId::of("platform", "vm", "cp-01"), open);
    let why = "layers/gitops.journal, entry 4: its check sum does not fit its text";
    standing.damaged.insert("gitops".parse().unwrap(), why.to_owned());
    insta::assert_snapshot!(shown(&standing), @"
    castle blue (a rehearsal): not born
    last run: up, begun 1:00:00 ago and killed

    layer     proven  open
    secrets      1/1     0  stands
    platform     0/4     4  failed
    gitops       0/1     1  journal damaged

    interrupted: platform/vm/cp-01: create VM cp-01 (421) on pve, begun 10:00 ago,
                 as UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam:

    failed: platform/vm/w-01, 10:00 ago (not allowed)
      what      create VM 431
      why       403 Permission check failed
      hint      give the token's role VM.Allocate

    damaged: gitops: layers/gitops.journal, entry 4: its check sum does not fit its
                     text
             `castle up` and `castle down` set it aside and read the world instead

    next: `castle up`
    ");
}

#[test]
fn a_run_at_work() {
    let mut standing = standing();
    standing.last_run = Some(LastRun {
        direction: Direction::Down,
        started: Moment(START + 3_590_000),
        ended: None,
        took_ms: None,
    });
    standing.holder = Some("`castle down` (process 4242 on desk, since 13:00)".into());
    let first_lines: Vec<String> = shown(&standing).lines().take(3).map(str::to_owned).collect();
    insta::assert_snapshot!(first_lines.join("\n"), @"
    castle blue (a rehearsal): not born
    last run: down, under way for 10.0 s
    at work: `castle down` (process 4242 on desk, since 13:00)
    ");
}

#[test]
fn a_run_that_is_going_on_and_the_rebirth_that_it_belongs_to() {
    let mut progress = crate::Progress::new(&decls());
    for event in &crate::example::good_run()[..17] {
        progress.apply(event);
    }
    let mut standing = standing();
    standing.last_run = Some(LastRun {
        direction: Direction::Up,
        started: Moment(START),
        ended: None,
        took_ms: None,
    });
    standing.holder = Some("`castle rebirth` (process 77 on desk, since …)".to_owned());
    standing.rebirth =
        Some("rebirth: cycle 2 of 5, up, not over; `castle rebirth` goes on with it".to_owned());
    standing.now = crate::live::live(&progress, Moment(START + 60_000));
    insta::assert_snapshot!(shown(&standing), @"
    castle blue (a rehearsal): not born
    at work: `castle rebirth` (process 77 on desk, since …)
    rebirth: cycle 2 of 5, up, not over; `castle rebirth` goes on with it
    now: up, 4 of 6 steps done after 59.6 s (20260202-120000-1)
      platform/vip  waiting for 26.0 s: connection refused at 192.168.1.210:6443

    layer     proven  open
    secrets      0/1     1  absent
    platform     0/4     4  absent
    gitops       0/1     1  absent
    ");
}

#[test]
fn programs_are_told_each_layer_the_castle_in_a_word_and_what_comes_next() {
    let said = |standing: Standing| {
        let told = standing.judged(&decls(), "castle");
        let layers = told
            .layers
            .iter()
            .map(|(name, layer)| format!("{name} {} {} {}", layer.state, layer.proven, layer.open));
        let layers = layers.collect::<Vec<_>>().join(", ");
        format!("{}, {} steps, {:?}: {layers}", told.state, told.declared, told.next)
    };
    let run = |direction, outcome: Option<RunOutcome>| {
        let ended = outcome.map(|outcome| (Moment(START), outcome));
        let mut standing = standing();
        standing.last_run =
            Some(LastRun { direction, started: Moment(START), ended, took_ms: None });
        let open = Known::Intended { verb: Verb::Create, task: None, at: Moment(START) };
        standing.steps.insert(StepId::new("platform", "image"), open);
        standing
    };
    let (up, down) = (Direction::Up, Direction::Down);
    let mut working = run(up, None);
    working.holder = Some("`castle up`".to_owned());
    insta::assert_snapshot!([
        said(standing()),
        said(run(up, None)),
        said(working),
        said(run(up, Some(RunOutcome::Interrupted))),
        said(run(down, Some(RunOutcome::Failed))),
        said(run(down, Some(RunOutcome::Done))),
    ].join("\n"), @r#"
    not born, 6 steps, Some("castle up"): gitops absent 0 1, platform absent 0 4, secrets absent 0 1
    killed, 6 steps, Some("castle up"): gitops absent 0 1, platform interrupted 0 4, secrets absent 0 1
    at work, 6 steps, None: gitops absent 0 1, platform under way 0 4, secrets absent 0 1
    interrupted, 6 steps, Some("castle up"): gitops absent 0 1, platform interrupted 0 4, secrets absent 0 1
    failed, 6 steps, Some("castle down"): gitops absent 0 1, platform interrupted 0 4, secrets absent 0 1
    gone, 6 steps, Some("castle up"): gitops absent 0 1, platform interrupted 0 4, secrets absent 0 1
    "#);
}

#[test]
fn what_was_interrupted_is_not_under_way_and_says_how_it_goes_on() {
    let mut standing = standing();
    let ended = Some((Moment(START + 96_000), RunOutcome::Interrupted));
    standing.last_run =
        Some(LastRun { direction: Direction::Up, started: Moment(START), ended, took_ms: None });
    let open = Known::Intended { verb: Verb::Create, task: None, at: Moment(START + 90_000) };
    standing.steps.insert(StepId::new("platform", "image"), open);
    insta::assert_snapshot!(shown(&standing), @"
    castle blue (a rehearsal): not born
    last run: up, interrupted in 1:36, 58:24 ago

    layer     proven  open
    secrets      0/1     1  absent
    platform     0/4     4  interrupted
    gitops       0/1     1  absent

    interrupted: platform/image: create Talos 1.13.9 image on pve:local, begun 58:30
                 ago

    next: `castle up`
    ");
}

#[test]
fn a_clock_that_jumped_does_not_tell_how_long_a_run_took() {
    let mut standing = standing();
    let ended = Some((Moment(START + 288_000_190_000), RunOutcome::Done));
    let (direction, took_ms) = (Direction::Up, Some(157_000));
    standing.last_run = Some(LastRun { direction, started: Moment(START), ended, took_ms });
    assert!(shown(&standing).contains("last run: up, done in 2:37, "), "{}", shown(&standing));
}
