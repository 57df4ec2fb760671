//! What a record does to a step: one total function, used when recording and when reading back.

use std::collections::BTreeMap;

use castle_model::time::Moment;
use castle_model::{Bug, Change, Failure, RunId, StepId, Verb, planted};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::record::Record;

/// What the journal knows about one step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum StepState {
    /// Nothing.
    #[default]
    Absent,
    /// It was about to act; whether it did must be looked up in the world.
    Intended {
        /// What it would do.
        verb: Verb,
        /// Why.
        reason: String,
        /// In which run.
        run: RunId,
        /// When it said so.
        at: Moment,
        /// What it had begun elsewhere, if anything.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What it gave to know when it was last done.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<String, String>,
    },
    /// It was done and proven.
    Done {
        /// What it did.
        change: Change,
        /// What proved it.
        proof: String,
        /// What it gave to know.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<String, String>,
        /// When.
        at: Moment,
        /// From start to end, in milliseconds.
        took_ms: u64,
    },
    /// It failed in the run that touched it last.
    Failed {
        /// Why.
        failure: Failure,
        /// When.
        at: Moment,
        /// What it had begun elsewhere and may still be going on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<String>,
        /// What it gave to know when it was last done.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<String, String>,
    },
    /// What it made was removed.
    Undone {
        /// When.
        at: Moment,
    },
}

/// A record that cannot follow what is known of its step.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("a record `{record}` cannot follow the state `{state}`{}: {why}", of(.step.as_ref()))]
pub struct Illegal {
    /// The step, if the record is about one.
    pub step: Option<StepId>,
    /// The word for the state it met.
    pub state: &'static str,
    /// The word for the record.
    pub record: &'static str,
    /// Which rule it breaks.
    pub why: &'static str,
}

fn of(step: Option<&StepId>) -> String {
    step.map(|id| format!(" of {id}")).unwrap_or_default()
}

impl StepState {
    /// The word for it, as it stands in the file.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Intended { .. } => "intended",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Undone { .. } => "undone",
        }
    }

    /// What the step gave to know when it was last done, even if it was begun again or failed since.
    #[must_use]
    pub fn outputs(&self) -> &BTreeMap<String, String> {
        static NONE: BTreeMap<String, String> = BTreeMap::new();
        match self {
            Self::Intended { outputs, .. }
            | Self::Done { outputs, .. }
            | Self::Failed { outputs, .. } => outputs,
            Self::Absent | Self::Undone { .. } => &NONE,
        }
    }

    /// What the step had begun elsewhere and nobody has seen the end of.
    #[must_use]
    pub fn task(&self) -> Option<&str> {
        match self {
            Self::Intended { task, .. } | Self::Failed { task, .. } => task.as_deref(),
            Self::Absent | Self::Done { .. } | Self::Undone { .. } => None,
        }
    }
}

/// The state of a step after a record about it, written at `at` by `run`.
///
/// A task survives an interruption: the next intent keeps it until a new task, an outcome or an undo replaces it.
///
/// # Errors
/// If the record cannot follow the state. Recording it would be a bug; reading it is corruption.
pub fn transition(
    state: &StepState,
    record: &Record,
    run: &RunId,
    at: Moment,
) -> Result<StepState, Illegal> {
    let illegal = |why| {
        let step = record.step().cloned();
        Err(Illegal { step, state: state.word(), record: record.word(), why })
    };
    match (record, state) {
        (Record::Intent { .. }, StepState::Intended { run: earlier, .. }) if earlier == run => {
            illegal("the same run has announced this step before and not closed it")
        }
        (Record::Intent { verb, reason, .. }, _) => Ok(StepState::Intended {
            verb: *verb,
            reason: reason.clone(),
            run: run.clone(),
            at,
            task: state.task().filter(|_| !planted(Bug::TaskForgotten)).map(str::to_owned),
            outputs: state.outputs().clone(),
        }),
        (Record::Task { task, .. }, StepState::Intended { verb, reason, run, at, outputs, .. }) => {
            Ok(StepState::Intended {
                verb: *verb,
                reason: reason.clone(),
                run: run.clone(),
                at: *at,
                task: Some(task.clone()),
                outputs: outputs.clone(),
            })
        }
        (Record::Task { .. }, _) => illegal("a task needs an intent before it"),
        (Record::Outcome { change: Change::Removed, .. }, StepState::Intended { .. })
        | (Record::Undone { .. }, StepState::Intended { verb: Verb::Remove, .. }) => {
            Ok(StepState::Undone { at })
        }
        (Record::Undone { .. }, _) => illegal("an undo needs the intent to remove before it"),
        (Record::Outcome { change, .. }, StepState::Intended { .. })
        | (Record::Outcome { change: change @ (Change::Unchanged | Change::Skipped), .. }, _) => {
            Ok(done(state, record, *change, at))
        }
        (Record::Outcome { .. }, _) => illegal("a change needs an intent before it"),
        (Record::Failed { failure, .. }, _) => Ok(StepState::Failed {
            failure: failure.clone(),
            at,
            task: state.task().map(str::to_owned),
            outputs: state.outputs().clone(),
        }),
        (Record::Forgotten { .. }, _) => Ok(StepState::Absent),
        (
            Record::RunStarted { .. }
            | Record::RunEnded { .. }
            | Record::Incarnation { .. }
            | Record::IncarnationEnded { .. }
            | Record::Snapshot { .. },
            _,
        ) => illegal("it is not about a step"),
    }
}

fn done(state: &StepState, record: &Record, change: Change, at: Moment) -> StepState {
    let (proof, mut outputs, took_ms) = match record {
        Record::Outcome { proof, outputs, took_ms, .. } => {
            (proof.clone(), outputs.clone(), *took_ms)
        }
        _ => (String::new(), BTreeMap::new(), 0),
    };
    // Whoever found everything as it was left has learned nothing that would overrule what was known.
    if change == Change::Unchanged && outputs.is_empty() {
        outputs.clone_from(state.outputs());
    }
    StepState::Done { change, proof, outputs, at, took_ms }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step() -> StepId {
        StepId::new("platform", "vm")
    }

    fn intent(verb: Verb) -> Record {
        Record::Intent { step: step(), verb, reason: "absent".into() }
    }

    fn outcome(change: Change) -> Record {
        let outputs = BTreeMap::new();
        Record::Outcome { step: step(), change, proof: "seen".into(), outputs, took_ms: 5 }
    }

    fn follow(records: &[Record]) -> Result<StepState, Illegal> {
        records.iter().enumerate().try_fold(StepState::Absent, |state, (index, record)| {
            transition(&state, record, &RunId::new(format!("r{index}")), Moment(7))
        })
    }

    #[test]
    fn nothing_changes_the_world_without_an_intent() {
        for change in [Change::Created, Change::Updated, Change::Removed] {
            assert!(follow(&[outcome(change)]).is_err(), "{change}");
            assert!(follow(&[intent(Verb::Create), outcome(change)]).is_ok(), "{change}");
        }
        assert!(follow(&[outcome(Change::Unchanged)]).is_ok());
        assert!(follow(&[Record::Undone { step: step() }]).is_err());
        assert!(follow(&[intent(Verb::Create), Record::Undone { step: step() }]).is_err());
        assert!(follow(&[Record::Task { step: step(), task: "UPID:1".into() }]).is_err());
    }

    #[test]
    fn a_task_outlives_an_interruption_and_a_failure() {
        let task = Record::Task { step: step(), task: "UPID:1".into() };
        let failed =
            Record::Failed { step: step(), failure: Failure::bug("create a VM", "no reason") };
        let state = follow(&[intent(Verb::Create), task, failed, intent(Verb::Update)]).unwrap();
        assert_eq!(state.task(), Some("UPID:1"));
        assert_eq!(follow(&[intent(Verb::Remove), outcome(Change::Removed)]).unwrap().task(), None);
    }

    #[test]
    fn what_a_step_gave_to_know_outlives_runs_that_found_it_right() {
        let given = BTreeMap::from([("size".to_owned(), "7".to_owned())]);
        let mut made = outcome(Change::Created);
        if let Record::Outcome { outputs, .. } = &mut made {
            outputs.clone_from(&given);
        }
        let same = outcome(Change::Unchanged);
        let state = follow(&[intent(Verb::Create), made, same.clone(), same]).unwrap();
        assert_eq!(*state.outputs(), given);
    }

    #[test]
    fn one_run_announces_a_step_once() {
        let run = RunId::new("r");
        let first = transition(&StepState::Absent, &intent(Verb::Create), &run, Moment(1)).unwrap();
        let error = transition(&first, &intent(Verb::Create), &run, Moment(2)).unwrap_err();
        insta::assert_snapshot!(error, @"a record `intent` cannot follow the state `intended` of platform/vm: the same run has announced this step before and not closed it");
    }

    #[test]
    fn forgetting_leaves_nothing() {
        let forgotten = Record::Forgotten { step: step() };
        assert_eq!(follow(&[outcome(Change::Unchanged), forgotten]), Ok(StepState::Absent));
    }
}
