//! The picture of small runs, where every number can be told beforehand.

use castle_model::event::{RunOutcome, Struck};
use castle_model::{EventKind, StepDecl, StepId};

use super::*;
use crate::example::{START, Tape, decls, failed_run, good_run};

fn picture(events: &[Event], history: &[PastRun]) -> Timeline {
    let decls = decls();
    let mut fold = Fold::new(&decls);
    for event in events {
        fold.apply(event);
    }
    fold.timeline(&decls.iter().collect::<Vec<_>>(), history)
}

fn id(text: &str) -> StepId {
    let mut parts = text.split('/');
    let (layer, kind) = (parts.next().unwrap(), parts.next().unwrap());
    parts.next().map_or_else(|| StepId::new(layer, kind), |node| StepId::of(layer, kind, node))
}

/// Each stretch as one line: what, from, to, why.
fn told(track: &Track) -> String {
    let line = |segment: &Segment| {
        let (from, to) = (segment.begin_ms, segment.end_ms);
        let why = segment.why.as_deref().unwrap_or("-");
        format!("{:?} {from} {to} {why}\n", segment.kind)
    };
    track.segments.iter().map(line).collect()
}

#[test]
fn waits_are_split_from_work_with_the_reasons_that_were_given() {
    let timeline = picture(&good_run(), &[]);
    insta::assert_snapshot!(told(timeline.step(&id("platform/vip")).unwrap()), @"
    Work 32600 33600 -
    Wait 33600 69600 connection refused at 192.168.1.210:6443
    Wait 69600 83000 answered 2 of 5 times in a row
    ");
    insta::assert_snapshot!(told(timeline.step(&id("platform/vm/w-01")).unwrap()), @"
    Work 11800 12600 -
    Pause 12600 13600 create VM 431 on node pve: 595 no answer
    Work 13600 32600 -
    ");
    let vip = timeline.step(&id("platform/vip")).unwrap();
    assert_eq!(vip.spent(SegmentKind::Wait), 49_400);
    assert_eq!(vip.spent(SegmentKind::Work), 1_000);
}

#[test]
fn every_stretch_of_a_step_follows_the_one_before_and_none_is_lost() {
    for events in [good_run(), failed_run()] {
        let timeline = picture(&events, &[]);
        for track in timeline.steps().filter(|track| track.span.is_some()) {
            let (begin, end) = track.span.unwrap();
            let mut at = begin;
            for segment in &track.segments {
                assert_eq!(segment.begin_ms, at, "{}", track.id);
                at = segment.end_ms;
            }
            assert_eq!(at, end, "{}", track.id);
        }
    }
}

#[test]
fn slack_is_what_a_step_could_have_lost_without_losing_time() {
    let timeline = picture(&good_run(), &[]);
    let slack = |step: &str| timeline.step(&id(step)).unwrap().slack_ms;
    assert_eq!(slack("platform/vm/cp-01"), Some(2_000), "the other machine took two seconds more");
    assert_eq!(slack("platform/vm/w-01"), Some(0));
    assert_eq!(slack("gitops/flux"), Some(0));
    assert!(timeline.step(&id("platform/vm/w-01")).unwrap().critical);
    assert!(!timeline.step(&id("platform/vm/cp-01")).unwrap().critical);
}

#[test]
fn needs_of_needs_are_not_told_twice() {
    let timeline = picture(&good_run(), &[]);
    let vip = timeline.step(&id("platform/vip")).unwrap();
    assert_eq!(vip.needs, [id("platform/vm/cp-01"), id("platform/vm/w-01")]);
}

#[test]
fn a_run_without_an_end_goes_to_its_last_event() {
    let events = good_run();
    let timeline = picture(&events[..17], &[]);
    assert_eq!(timeline.outcome, None);
    assert_eq!(timeline.took_ms, timeline.span_ms);
    let open = timeline.step(&id("platform/vip")).unwrap();
    assert_eq!(open.took_ms, None);
    assert_eq!(open.span.unwrap().1, timeline.took_ms);
    assert_eq!(open.slack_ms, None, "what has not ended has no slack");
}

#[test]
fn what_struck_stands_at_its_moment_although_it_is_told_later() {
    let mut tape = Tape::begun();
    let step = id("platform/image");
    let (verb, reason) = (castle_model::Verb::Create, "it is absent".to_owned());
    tape.at(400, EventKind::StepStarted { step: step.clone(), verb, reason });
    tape.at(900, EventKind::StepWaiting { step, reason: "it is not there yet".into() });
    let (rule, what) = ("git: away from 0:00".to_owned(), "the Git host answers nobody".to_owned());
    tape.at(700, EventKind::Fault(Struck { run_ms: 700, rule, what, number: 1 }));
    tape.end(1_000, RunOutcome::Interrupted);
    let timeline = picture(&tape.events, &[]);
    let happening = &timeline.happenings[0];
    assert_eq!((happening.at_ms, happening.kind), (300, HappeningKind::Fault));
    assert_eq!(happening.text, "the Git host answers nobody");
}

fn past(run: &str, took_ms: u64, image_ms: u64) -> PastRun {
    PastRun {
        v: 1,
        run: castle_model::RunId::new(run),
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        rehearsal: true,
        shape: "a".into(),
        work: BTreeMap::new(),
        started: Moment(START),
        outcome: RunOutcome::Done,
        exit: 0,
        took_ms,
        changed: 5,
        layers: BTreeMap::new(),
        steps: [(id("platform/image"), image_ms)].into(),
        version: "0".into(),
    }
}

#[test]
fn a_run_is_compared_with_the_previous_one_like_it_and_the_record_before_it() {
    let this = "20260202-120000-1";
    let mut other_work = past("r3", 1, 1);
    other_work.work.insert("create".into(), 1);
    let mut failed = past("r4", 2, 2);
    failed.outcome = RunOutcome::Failed;
    let history = [
        past("r1", 90_000, 9_000),
        past("r2", 95_000, 9_500),
        other_work,
        failed,
        past(this, 96_100, 11_300),
        past("r9", 5, 5),
    ];
    let timeline = picture(&good_run(), &history);
    let compared = &timeline.compared;
    assert_eq!(compared.previous.as_ref().map(|run| run.took_ms), Some(95_000));
    assert_eq!(compared.record.as_ref().map(|run| run.took_ms), Some(90_000));
    assert_eq!(compared.runs, 2);
    let slower = compared.slower();
    assert_eq!(slower.len(), 1);
    assert_eq!((slower[0].step.clone(), slower[0].by()), (id("platform/image"), 1_800));
    assert_eq!(timeline.step(&id("platform/image")).unwrap().previous_ms, Some(9_500));
}

#[test]
fn a_run_that_failed_is_compared_with_none() {
    let mut this = past("20260202-120000-1", 31_100, 11_300);
    this.outcome = RunOutcome::Failed;
    let compared = picture(&failed_run(), &[past("r1", 90_000, 9_000), this]).compared;
    assert_eq!((compared.previous, compared.record, compared.runs), (None, None, 0));
}

#[test]
fn a_step_that_the_castle_file_no_longer_has_is_still_drawn() {
    let left: Vec<StepDecl> =
        decls().into_iter().filter(|decl| decl.id != id("gitops/flux")).collect();
    let mut fold = Fold::new(&left);
    for event in &good_run() {
        fold.apply(event);
    }
    let timeline = fold.timeline(&left.iter().collect::<Vec<_>>(), &[]);
    assert!(timeline.step(&id("gitops/flux")).is_some());
}
