//! What a journal can say: the closed set of records.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{CastleName, Change, Failure, Incarnation, LayerName, StepId, Verb};
use serde::{Deserialize, Serialize};

use crate::entry::Head;
use crate::records::RunRecord;
use crate::state::StepState;

/// One thing to remember. Nothing in it may ever hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "kebab-case")]
pub enum Record {
    /// A run begins; in the run journal only.
    RunStarted {
        /// Whose.
        castle: CastleName,
        /// Which way.
        direction: Direction,
        /// The hash of its plan.
        plan: String,
        /// The version of castle that runs.
        version: String,
        /// Where each layer's journal ended when the run began.
        heads: BTreeMap<LayerName, Head>,
    },
    /// A run is over; in the run journal only.
    RunEnded {
        /// How.
        outcome: RunOutcome,
        /// Where each layer's journal ends.
        heads: BTreeMap<LayerName, Head>,
    },
    /// A life of the castle begins; in the journal of the secrets layer only, before anything is made.
    Incarnation {
        /// Its id.
        id: Incarnation,
    },
    /// A life of the castle is over: the last thing of it is gone.
    IncarnationEnded {
        /// Its id.
        id: Incarnation,
    },
    /// A step is about to act.
    Intent {
        /// Which.
        step: StepId,
        /// What it will do.
        verb: Verb,
        /// Why.
        reason: String,
    },
    /// A step has begun something that goes on elsewhere, and can be found again by this name.
    Task {
        /// Which step.
        step: StepId,
        /// The other side's name of it.
        task: String,
    },
    /// A step is done and proven.
    Outcome {
        /// Which.
        step: StepId,
        /// What it did.
        change: Change,
        /// What proves it.
        proof: String,
        /// What later steps and people may want to know; never a secret.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        outputs: BTreeMap<String, String>,
        /// From start to end, in milliseconds.
        took_ms: u64,
    },
    /// A step failed for good in this run.
    Failed {
        /// Which.
        step: StepId,
        /// Why.
        failure: Failure,
    },
    /// What a step made is removed and proven gone.
    Undone {
        /// Which.
        step: StepId,
    },
    /// A step is dropped from the records; what it made goes with something else, or is kept on purpose.
    Forgotten {
        /// Which.
        step: StepId,
    },
    /// All that the entries before it said; the first entry of a compacted file.
    Snapshot {
        /// The steps of the layer.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        steps: BTreeMap<StepId, StepState>,
        /// The life of the castle.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        incarnation: Option<Incarnation>,
        /// The last run; in the run journal only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_run: Option<RunRecord>,
        /// Where each layer's journal ended; in the run journal only.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        heads: BTreeMap<LayerName, Head>,
    },
}

impl Record {
    /// The step it is about, if it is about one.
    #[must_use]
    pub fn step(&self) -> Option<&StepId> {
        match self {
            Self::Intent { step, .. }
            | Self::Task { step, .. }
            | Self::Outcome { step, .. }
            | Self::Failed { step, .. }
            | Self::Undone { step }
            | Self::Forgotten { step } => Some(step),
            Self::RunStarted { .. }
            | Self::RunEnded { .. }
            | Self::Incarnation { .. }
            | Self::IncarnationEnded { .. }
            | Self::Snapshot { .. } => None,
        }
    }

    /// The word for it, as it stands in the file.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run-started",
            Self::RunEnded { .. } => "run-ended",
            Self::Incarnation { .. } => "incarnation",
            Self::IncarnationEnded { .. } => "incarnation-ended",
            Self::Intent { .. } => "intent",
            Self::Task { .. } => "task",
            Self::Outcome { .. } => "outcome",
            Self::Failed { .. } => "failed",
            Self::Undone { .. } => "undone",
            Self::Forgotten { .. } => "forgotten",
            Self::Snapshot { .. } => "snapshot",
        }
    }
}
