//! Exit codes and numbers of runs.

use std::collections::BTreeMap;

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
    let report = |outcome| Report {
        outcome,
        done: 0,
        failures: BTreeMap::new(),
        not_run: BTreeMap::new(),
        syncs: 0,
    };
    let left = [(StepId::new("platform", "image"), "image".to_owned())];
    assert_eq!(exit_of(&report(RunOutcome::Done), &[]), Exit::Done);
    assert_eq!(exit_of(&report(RunOutcome::Done), &left), Exit::Leftovers);
    assert_eq!(exit_of(&report(RunOutcome::Failed), &left), Exit::Failed);
    assert_eq!(exit_of(&report(RunOutcome::Interrupted), &left), Exit::Interrupted);
}
