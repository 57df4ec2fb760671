//! What happened, as one numbered enum. Journals, terminal, JSON lines and reports are folds over it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::name::{CastleName, LayerName, RunId, StepId};
use crate::plan::{Direction, Verb};
use crate::step::Change;
use crate::time::Moment;

/// The version of the event schema (`docs/reference/events.md`). Raised when a reader could break.
pub const SCHEMA: u32 = 1;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The schema's version.
    pub v: u32,
    /// Its number within the run, from 1, without gaps.
    pub seq: u64,
    /// When.
    pub at: Moment,
    /// In which run.
    pub run: RunId,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// Every step is done.
    Done,
    /// At least one step failed.
    Failed,
    /// Somebody asked it to stop.
    Interrupted,
}

/// What was done to the rehearsal's world on purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Struck {
    /// Milliseconds since the rehearsal began, which a run of a rebirth shares with the one before it.
    pub run_ms: u64,
    /// The rule, as it is written.
    pub rule: String,
    /// What happened, as a sentence.
    pub what: String,
    /// How often the rule has struck, with this one.
    pub number: u32,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum EventKind {
    /// A run begins.
    RunStarted {
        /// Whose.
        castle: CastleName,
        /// Which way.
        direction: Direction,
        /// Whether the world is the rehearsal's.
        rehearsal: bool,
        /// How many steps are declared.
        steps: usize,
    },
    /// A look at the world before the plan says something about a step.
    Surveyed {
        /// Which step.
        step: StepId,
        /// One word: absent, right, wrong, foreign, unknown.
        observed: String,
        /// What was seen.
        evidence: String,
    },
    /// The plan stands.
    Planned {
        /// Its hash.
        plan: String,
        /// How many steps of each word: a verb, or `prove` and its like for steps that only look.
        counts: BTreeMap<String, usize>,
    },
    /// A step begins.
    StepStarted {
        /// Which.
        step: StepId,
        /// What it will do.
        verb: Verb,
        /// Why.
        reason: String,
    },
    /// A step has begun something that goes on elsewhere; its name is durable.
    StepTask {
        /// Which step.
        step: StepId,
        /// The other side's name of it.
        task: String,
    },
    /// What a step is waiting for has changed.
    StepWaiting {
        /// Which step.
        step: StepId,
        /// What is missing now.
        reason: String,
    },
    /// So much of something whose length is known is done.
    StepProgress {
        /// Which step.
        step: StepId,
        /// Bytes that are done.
        done: u64,
        /// Bytes of the whole, more than zero.
        total: u64,
    },
    /// A transient failure; the same thing is tried again.
    StepRetrying {
        /// Which step.
        step: StepId,
        /// What happened.
        failure: Failure,
        /// How many tries were made.
        tries: u32,
        /// After how many milliseconds the next one comes.
        delay_ms: u64,
    },
    /// A step has acted; its gate comes next.
    StepActed {
        /// Which.
        step: StepId,
        /// What it did.
        change: Change,
    },
    /// A step is done and proven.
    StepDone {
        /// Which.
        step: StepId,
        /// What it did.
        change: Change,
        /// What proves it.
        proof: String,
        /// From start to end, in milliseconds.
        took_ms: u64,
    },
    /// A step failed for good.
    StepFailed {
        /// Which.
        step: StepId,
        /// Why.
        failure: Failure,
        /// From start to end, in milliseconds.
        took_ms: u64,
    },
    /// A step will not run, because something that it needs failed.
    StepBlocked {
        /// Which.
        step: StepId,
        /// What failed.
        by: StepId,
    },
    /// Every step of a layer is done.
    LayerDone {
        /// Which.
        layer: LayerName,
        /// From its first start to its last end, in milliseconds.
        took_ms: u64,
    },
    /// Flux owns from here on what the cluster hosts; castle only observes.
    Handover {
        /// The repository, branch, path and revision.
        source: String,
    },
    /// Something that the castle file names as a milestone is ready.
    Milestone {
        /// The Kustomization.
        name: String,
        /// The revision that it is ready at.
        revision: String,
    },
    /// Something a person should know.
    Notice {
        /// The step that says it, if one does.
        step: Option<StepId>,
        /// What.
        text: String,
    },
    /// A rule broke something in the rehearsal.
    Fault(Struck),
    /// Somebody changed the rehearsal's world from another process.
    Poke(Struck),
    /// Somebody asked the run to stop.
    Interrupted {
        /// Steps that are still being brought to a safe point.
        settling: usize,
    },
    /// After a run down: something of ours that is still there.
    Leftover {
        /// The step that made it.
        step: StepId,
        /// What it is, or why it could not be looked at.
        what: String,
    },
    /// A run is over.
    RunEnded {
        /// How.
        outcome: RunOutcome,
        /// Steps done in this run, those left alone included.
        done: usize,
        /// Steps that failed.
        failed: usize,
        /// Steps that did not run.
        not_run: usize,
        /// From start to end, in milliseconds.
        took_ms: u64,
    },
}
