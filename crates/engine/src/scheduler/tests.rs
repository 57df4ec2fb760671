//! The laws of the scheduler, over random graphs.

use std::collections::BTreeMap;

use castle_model::{StepDecl, StepId};
use proptest::prelude::*;

use super::{Scheduler, Standing};

fn id(number: usize) -> StepId {
    StepId::of("layer", "step", &format!("{number:03}"))
}

fn step(number: usize, needs: &[usize]) -> StepDecl {
    StepDecl::new(id(number), "x", "vm", "it is done").needs(needs.iter().map(|n| id(*n)))
}

/// A random graph without cycles: needs point to lower numbers. Some steps share narrow lanes.
fn graph() -> impl Strategy<Value = Vec<StepDecl>> {
    let node = (
        prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        prop::option::of((0_usize..3, 1_usize..3)),
        0_u64..50,
    );
    prop::collection::vec(node, 1..40).prop_map(|nodes| {
        nodes
            .into_iter()
            .enumerate()
            .map(|(number, (needs, lane, weight))| {
                let needs: Vec<usize> = if number == 0 {
                    vec![]
                } else {
                    needs.iter().map(|n| n.index(number)).collect()
                };
                let decl = step(number, &needs).weight(weight);
                match lane {
                    Some((lane, width)) => decl.lane(format!("lane-{lane}"), width),
                    None => decl,
                }
            })
            .collect()
    })
}

/// The narrowest width that any step gives a lane.
fn widths(steps: &[StepDecl]) -> BTreeMap<String, usize> {
    let mut widths = BTreeMap::new();
    for lane in steps.iter().filter_map(|s| s.lane.clone()) {
        let width = widths.entry(lane.name).or_insert(lane.width);
        *width = lane.width.min(*width);
    }
    widths
}

/// Runs a graph to its end; `pick` chooses which running step ends next and whether it fails.
fn run(steps: &[StepDecl], picks: &[(prop::sample::Index, bool)]) -> (Vec<StepId>, Scheduler) {
    held(steps, &[], picks)
}

/// The same, with steps that are held back until others are over.
fn held(
    steps: &[StepDecl],
    holds: &[(StepId, StepId)],
    picks: &[(prop::sample::Index, bool)],
) -> (Vec<StepId>, Scheduler) {
    let by_id: BTreeMap<&StepId, &StepDecl> = steps.iter().map(|s| (&s.id, s)).collect();
    let widths = widths(steps);
    let mut scheduler = Scheduler::new(steps);
    for (step, until) in holds {
        scheduler.hold(step, until);
    }
    let (mut running, mut order) = (Vec::new(), Vec::new());
    let mut picks = picks.iter().cycle();
    loop {
        for started in scheduler.start() {
            for need in &by_id[&started].needs {
                assert_eq!(
                    scheduler.standing(need),
                    Some(Standing::Done),
                    "{started} before {need}"
                );
            }
            for (_, until) in holds.iter().filter(|(step, _)| *step == started) {
                let over = [Standing::Done, Standing::Failed, Standing::Blocked].map(Some);
                assert!(over.contains(&scheduler.standing(until)), "{started} before {until}");
            }
            order.push(started.clone());
            running.push(started);
        }
        for (lane, width) in &widths {
            let used = running
                .iter()
                .filter(|id| by_id[id].lane.as_ref().is_some_and(|l| l.name == *lane))
                .count();
            assert!(used <= *width, "lane {lane}: {used} of {width}");
            // Work conserving: a ready step of a lane with room would have been started.
            let waiting = steps.iter().any(|s| {
                s.lane.as_ref().is_some_and(|l| l.name == *lane)
                    && scheduler.standing(&s.id) == Some(Standing::Ready)
            });
            assert!(!waiting || used == *width, "lane {lane} has room and work");
        }
        assert!(
            steps
                .iter()
                .all(|s| s.lane.is_some() || scheduler.standing(&s.id) != Some(Standing::Ready)),
            "a ready step without a lane was not started"
        );
        assert_eq!(scheduler.running(), running.len());
        if running.is_empty() {
            return (order, scheduler);
        }
        let (pick, fails) = picks.next().expect("a cycle never ends");
        let ended = running.remove(pick.index(running.len()));
        if *fails {
            scheduler.failed(&ended);
        } else {
            scheduler.done(&ended);
        }
    }
}

proptest! {
    #[test]
    fn without_failures_everything_runs_once(
        steps in graph(),
        picks in prop::collection::vec((any::<prop::sample::Index>(), Just(false)), 1..20),
    ) {
        let (mut order, scheduler) = run(&steps, &picks);
        prop_assert_eq!(scheduler.open(), 0);
        order.sort();
        let all: Vec<StepId> = steps.iter().map(|s| s.id.clone()).collect();
        prop_assert_eq!(order, all);
    }

    #[test]
    fn failures_block_their_dependents_and_nothing_else(
        steps in graph(),
        picks in prop::collection::vec(any::<(prop::sample::Index, bool)>(), 1..20),
    ) {
        let (_, scheduler) = run(&steps, &picks);
        prop_assert_eq!(scheduler.open(), 0, "it always ends");
        for step in &steps {
            let broken = step.needs.iter().any(|need| {
                matches!(scheduler.standing(need), Some(Standing::Failed | Standing::Blocked))
            });
            let standing = scheduler.standing(&step.id).unwrap();
            prop_assert_eq!(broken, standing == Standing::Blocked, "{}: {:?}", step.id, standing);
        }
    }

    #[test]
    fn what_is_held_back_starts_when_the_other_is_over_however_that_ended(
        steps in graph(),
        holds in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index)>(), 0..20),
        picks in prop::collection::vec(any::<(prop::sample::Index, bool)>(), 1..20),
    ) {
        let later = holds.iter().map(|(step, until)| (step.index(steps.len()), until));
        let pairs = later.filter(|(step, _)| *step > 0);
        let holds: Vec<_> =
            pairs.map(|(step, until)| (id(step), id(until.index(step)))).collect();
        let (_, scheduler) = held(&steps, &holds, &picks);
        prop_assert_eq!(scheduler.open(), 0, "it always ends");
    }

    #[test]
    fn the_same_input_gives_the_same_order(
        steps in graph(),
        picks in prop::collection::vec(any::<(prop::sample::Index, bool)>(), 1..20),
    ) {
        prop_assert_eq!(run(&steps, &picks).0, run(&steps, &picks).0);
    }
}

#[test]
fn the_longest_path_goes_first() {
    // 0 is short but leads to the long 2; 1 is longer than 0 and leads nowhere.
    let steps = [
        step(0, &[]).weight(1),
        step(1, &[]).weight(50),
        step(2, &[0]).weight(100),
        step(3, &[]).weight(2),
    ];
    assert_eq!(Scheduler::new(&steps).start(), [id(0), id(1), id(3)]);
}

#[test]
fn a_failure_lets_go_what_was_held_back_by_it_and_by_what_it_blocks() {
    let steps = [step(0, &[]), step(1, &[0]), step(2, &[]), step(3, &[])];
    let mut scheduler = Scheduler::new(&steps);
    scheduler.hold(&id(2), &id(1));
    scheduler.hold(&id(3), &id(0));
    assert_eq!(scheduler.start(), [id(0)]);
    assert_eq!(scheduler.failed(&id(0)), [id(1)]);
    assert_eq!(scheduler.start(), [id(2), id(3)]);
}

#[test]
fn a_stopped_scheduler_starts_nothing() {
    let steps = [step(0, &[]), step(1, &[0])];
    let mut scheduler = Scheduler::new(&steps);
    assert_eq!(scheduler.start(), [id(0)]);
    scheduler.stop();
    scheduler.done(&id(0));
    assert!(scheduler.start().is_empty());
    assert_eq!(scheduler.open(), 1);
}

#[test]
fn a_step_ends_once() {
    let steps = [step(0, &[]), step(1, &[0])];
    let mut scheduler = Scheduler::new(&steps);
    scheduler.start();
    scheduler.done(&id(0));
    scheduler.done(&id(0));
    assert!(scheduler.failed(&id(0)).is_empty());
    assert_eq!(scheduler.start(), [id(1)]);
}
