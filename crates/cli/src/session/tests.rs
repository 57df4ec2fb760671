//! Exit codes and numbers of runs.

use super::*;

#[test]
fn runs_are_numbered_whatever_the_clock_says() {
    let named = |kept: Option<&str>, now| {
        next_run(&Records::default(), kept.map(RunId::new).as_ref(), Moment(now)).to_string()
    };
    assert_eq!(named(None, 0), "r0001-19700101");
    assert_eq!(named(Some("r0041-20260202"), 0), "r0042-19700101");
    assert_eq!(named(Some("r9999-20260202"), 1_770_033_600_000), "r10000-20260202");
}

#[test]
fn the_exit_code_tells_the_truth() {
    let left = |outcome| clearing::exit_of(outcome, true);
    assert_eq!(clearing::exit_of(RunOutcome::Done, false), Exit::Done);
    assert_eq!(clearing::exit_of(RunOutcome::Failed, false), Exit::Failed);
    assert_eq!(left(RunOutcome::Done), Exit::Leftovers);
    // What is left weighs more than that a step failed: the report tells both.
    assert_eq!(left(RunOutcome::Failed), Exit::Leftovers);
    assert_eq!(left(RunOutcome::Interrupted), Exit::Interrupted);
}
