//! What the page says of runs that end in each of the other ways, down to the timeline.

use std::collections::BTreeMap;

use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Change, EventKind, RunId, Verb};

use super::*;

const START: u64 = 1_770_033_600_000;

fn image() -> StepId {
    StepId::new("platform", "image")
}

fn vm() -> StepId {
    StepId::of("platform", "vm", "cp-01")
}

fn two() -> Vec<StepDecl> {
    vec![
        StepDecl::new(image(), "Talos 1.13.9 image on pve:local", "image", "the image is there"),
        StepDecl::new(vm(), "VM cp-01 (421) on pve", "vm", "the VM is running").needs([image()]),
    ]
}

/// The events of a run of two steps; the second one ends only if the run does.
fn run(direction: Direction, outcome: Option<RunOutcome>, image_ms: u64) -> Vec<Event> {
    let (verb, change) = match direction {
        Direction::Up => (Verb::Create, Change::Created),
        Direction::Down => (Verb::Remove, Change::Removed),
    };
    let begin = |step| EventKind::StepStarted { step, verb, reason: "it is absent".into() };
    let done = |step, took_ms| EventKind::StepDone { step, change, proof: "seen".into(), took_ms };
    let (first, second) =
        if direction == Direction::Up { (image(), vm()) } else { (vm(), image()) };
    let castle = "blue".parse().unwrap();
    let counts = [(verb.to_string(), 2)].into();
    let mut kinds = vec![
        (0, EventKind::RunStarted { castle, direction, rehearsal: false, steps: 2 }),
        (1_500, EventKind::Planned { plan: "c0ffee".into(), counts }),
        (2_000, begin(first.clone())),
        (2_000 + image_ms, done(first, image_ms)),
        (2_000 + image_ms, begin(second.clone())),
    ];
    let end = 22_000 + image_ms;
    match outcome {
        Some(RunOutcome::Done) => kinds.push((end, done(second, 20_000))),
        Some(_) => kinds.push((end, EventKind::Interrupted { settling: 1 })),
        None => kinds.push((
            end,
            EventKind::StepWaiting {
                step: second,
                reason: "the `qmcreate` task is running".into(),
            },
        )),
    }
    if let Some(outcome) = outcome {
        let took_ms = end - 2_000;
        kinds.push((end, EventKind::RunEnded { outcome, done: 2, failed: 0, not_run: 0, took_ms }));
    }
    numbered(kinds)
}

fn numbered(kinds: Vec<(u64, EventKind)>) -> Vec<Event> {
    let event = |(seq, (ms, kind))| {
        let at = Moment(START + ms);
        Event { v: SCHEMA, seq, at, run: RunId::new("r0003-20260202"), kind }
    };
    (1..).zip(kinds).map(event).collect()
}

fn past(run: &str, image_ms: u64) -> PastRun {
    PastRun {
        v: 1,
        run: RunId::new(run),
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        rehearsal: false,
        shape: "two".into(),
        work: BTreeMap::new(),
        started: Moment(START),
        outcome: RunOutcome::Done,
        exit: 0,
        took_ms: image_ms + 20_000,
        changed: 2,
        layers: [("platform".parse().unwrap(), image_ms + 20_000)].into(),
        steps: [(image(), image_ms), (vm(), 20_000)].into(),
        version: "0.1.0".into(),
    }
}

/// What stands above the timeline, and below it.
fn around(events: &[Event], history: &[PastRun], go_on: &[&str]) -> String {
    let mut decls = two();
    let mut fold = Fold::new(&decls);
    for event in events {
        fold.apply(event);
    }
    let order: Vec<&StepDecl> = match fold.progress().direction {
        // Needs are turned round, as in a plan.
        Some(Direction::Down) => {
            decls.reverse();
            decls[0].needs.clear();
            decls[1].needs = vec![vm()];
            decls.iter().collect()
        }
        _ => decls.iter().collect(),
    };
    let go_on = go_on.iter().map(|command| (*command).to_owned()).collect();
    let text = text(&timeline(&fold.timeline(&order, history), &Words { go_on, ..words() }));
    let (above, below) = text.split_once("\nTimeline\n").unwrap();
    let below = below.split_once("\nLayers\n").unwrap().1;
    format!("{above}\n[…]\nLayers\n{below}")
}

#[test]
fn a_good_run_is_compared_with_the_one_before_and_the_record() {
    let history = [
        past("r0001-20260131", 9_000),
        past("r0002-20260201", 10_000),
        past("r0003-20260202", 14_000),
    ];
    let events = run(Direction::Up, Some(RunOutcome::Done), 14_000);
    insta::assert_snapshot!(around(&events, &history, &[]), @"
    castle blue stands, 34.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue stands
    up for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 34.0 s 2 changed; 1.5 s of looking before
    critical path 34.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    previous run 4.0 s slower than 30.0 s before
    record 29.0 s 5.0 s slower now
    What decided how long it took
    2 steps in a row, each needing the one before it: 34.0 s of 34.0 s. Only if one of these is faster can the run be shorter.
    1 image 2 vm/cp-01
    14.0 s 41 % 1 platform/image Talos 1.13.9 image on pve:local 20.0 s 59 % 2 platform/vm/cp-01 VM cp-01 (421) on pve
    […]
    Layers
    layer steps done changed began took previous run fastest run
    platform 2 2 2 0:00 34.0 s 4.0 s slower 5.0 s slower
    all 2 2 2 0:00 34.0 s 4.0 s slower 5.0 s slower
    What became slower
    step took previous run by on the critical path
    platform/image 14.0 s 10.0 s 4.0 s slower yes
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
}

#[test]
fn a_new_record_says_so() {
    let history = [past("r0002-20260201", 10_000), past("r0003-20260202", 8_000)];
    let events = run(Direction::Up, Some(RunOutcome::Done), 8_000);
    insta::assert_snapshot!(around(&events, &history, &[]), @"
    castle blue stands, 28.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue stands
    up for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 28.0 s 2 changed; 1.5 s of looking before
    critical path 28.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    previous run 2.0 s faster than 30.0 s before
    record new record 30.0 s until now
    What decided how long it took
    2 steps in a row, each needing the one before it: 28.0 s of 28.0 s. Only if one of these is faster can the run be shorter.
    1 image 2 vm/cp-01
    8.0 s 29 % 1 platform/image Talos 1.13.9 image on pve:local 20.0 s 71 % 2 platform/vm/cp-01 VM cp-01 (421) on pve
    […]
    Layers
    layer steps done changed began took previous run fastest run
    platform 2 2 2 0:00 28.0 s 2.0 s faster 2.0 s faster
    all 2 2 2 0:00 28.0 s 2.0 s faster 2.0 s faster
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
}

#[test]
fn a_castle_that_is_razed_is_gone() {
    let events = run(Direction::Down, Some(RunOutcome::Done), 4_000);
    insta::assert_snapshot!(around(&events, &[], &[]), @"
    castle blue is gone, 24.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue is gone
    down for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 24.0 s 2 changed; 1.5 s of looking before
    critical path 24.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    compared first no run before it did the same work
    What decided how long it took
    2 steps in a row, each needing the one before it: 24.0 s of 24.0 s. Only if one of these is faster can the run be shorter.
    1 vm/cp-01 2 image
    4.0 s 17 % 1 platform/vm/cp-01 VM cp-01 (421) on pve 20.0 s 83 % 2 platform/image Talos 1.13.9 image on pve:local
    […]
    Layers
    layer steps done changed began took
    platform 2 2 2 0:00 24.0 s
    all 2 2 2 0:00 24.0 s
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
}

#[test]
fn what_is_left_of_a_razed_castle_is_told() {
    let mut events = run(Direction::Down, Some(RunOutcome::Done), 4_000);
    let left =
        EventKind::Leftover { step: image(), what: "the image is still on pve:local".into() };
    let (seq, at, run) =
        (events.len() as u64 + 1, Moment(START + 26_500), RunId::new("r0003-20260202"));
    events.push(Event { v: SCHEMA, seq, at, run, kind: left });
    insta::assert_snapshot!(around(&events, &[], &["castle down"]), @"
    castle blue has left something, 24.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue has left something
    down for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 24.0 s 2 changed; 1.5 s of looking before
    critical path 24.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    compared first no run before it did the same work
    next: castle down
    What decided how long it took
    2 steps in a row, each needing the one before it: 24.0 s of 24.0 s. Only if one of these is faster can the run be shorter.
    1 vm/cp-01 2 image
    4.0 s 17 % 1 platform/vm/cp-01 VM cp-01 (421) on pve 20.0 s 83 % 2 platform/image Talos 1.13.9 image on pve:local
    […]
    Layers
    layer steps done changed began took
    platform 2 2 2 0:00 24.0 s
    all 2 2 2 0:00 24.0 s
    On the way
    when what
    0:24 left over platform/image the image is still on pve:local
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
}

#[test]
fn a_run_that_was_stopped_or_killed_names_what_goes_on() {
    let stopped = run(Direction::Up, Some(RunOutcome::Interrupted), 10_000);
    let go_on = ["castle rehearse poke --mend 'talos cp-02: dead'", "castle up"];
    insta::assert_snapshot!(around(&stopped, &[], &go_on), @"
    castle blue was interrupted, 30.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue was interrupted
    up for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 30.0 s 1 changed; 1.5 s of looking before
    critical path 30.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    next: castle rehearse poke --mend 'talos cp-02: dead' , then castle up
    What decided how long it took
    2 steps in a row, each needing the one before it: 30.0 s of 30.0 s.
    1 image 2 vm/cp-01
    10.0 s 33 % 1 platform/image Talos 1.13.9 image on pve:local 20.0 s 67 % 2 platform/vm/cp-01 VM cp-01 (421) on pve
    […]
    Layers
    layer steps done changed failed not run began took
    platform 2 1 1 0 1 0:00 30.0 s
    all 2 1 1 0 1 0:00 30.0 s
    On the way
    when what
    0:30 interrupted somebody asked the run to stop; 1 step brought to a safe point
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
    let killed = run(Direction::Up, None, 10_000);
    insta::assert_snapshot!(around(&killed, &[], &["castle up"]), @"
    castle blue was ended before its end, 30.0 s (r0003-20260202) Skip to the timeline
    castle timeline
    blue was ended before its end
    up for real 2 steps began 2026-02-02 12:00 UTC r0003-20260202
    took 30.0 s 1 changed; 1.5 s of looking before
    critical path 30.0 s 100 % of the run
    of it waiting 0.0 s 0 % of the critical path
    next: castle up
    What decided how long it took
    2 steps in a row, each needing the one before it: 30.0 s of 30.0 s.
    1 image 2 vm/cp-01
    10.0 s 33 % 1 platform/image Talos 1.13.9 image on pve:local 20.0 s 67 % 2 platform/vm/cp-01 VM cp-01 (421) on pve
    […]
    Layers
    layer steps done changed began took
    platform 2 1 1 0:00 30.0 s
    all 2 1 1 0:00 30.0 s
    Made by castle 0.1.0 from the events of the run. All lengths come from a clock that never jumps.
    To make it again: castle report r1
    ");
}

#[test]
fn a_long_outage_does_not_make_a_long_page() {
    let mut kinds: Vec<(u64, EventKind)> = run(Direction::Up, None, 10_000)
        .into_iter()
        .map(|event| (event.at.0 - START, event.kind))
        .collect();
    for tries in 1..=500_u32 {
        let failure = castle_model::Failure::new(
            castle_model::Class::Transient,
            "ask pve",
            format!("no answer {tries}"),
        );
        let step = vm();
        kinds.push((
            40_000 + u64::from(tries) * 2_000,
            EventKind::StepRetrying { step, failure, tries, delay_ms: 1_000 },
        ));
    }
    let mut fold = Fold::new(&two());
    for event in numbered(kinds) {
        fold.apply(&event);
    }
    let decls = two();
    let page = timeline(&fold.timeline(&decls.iter().collect::<Vec<_>>(), &[]), &words());
    let page = text(&page);
    assert!(page.contains("no answer 12\n476 more tries, one after the other\n"), "{page}");
    assert!(page.contains("no answer 489\n") && !page.contains("no answer 13\n"), "{page}");
}
