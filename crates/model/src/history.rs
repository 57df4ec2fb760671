//! What is remembered of a run that is over: how long each layer and step took, for the runs after it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::event::RunOutcome;
use crate::name::{CastleName, LayerName, RunId, StepId};
use crate::plan::Direction;
use crate::time::Moment;

/// The version of the lines of a history (`docs/reference/state.md`).
pub const HISTORY: u32 = 1;

/// One run that is over. Every length comes from a clock that never jumps; only `started` is a time of day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PastRun {
    /// The version of the line.
    pub v: u32,
    /// Which run.
    pub run: RunId,
    /// Whose.
    pub castle: CastleName,
    /// Which way it went.
    pub direction: Direction,
    /// Whether the world was the rehearsal's; then all its times are virtual.
    pub rehearsal: bool,
    /// The hash of the names of all its steps: only castles of the same shape are compared.
    pub shape: String,
    /// How many steps its plan had of each word: only runs with the same work are compared.
    pub work: BTreeMap<String, usize>,
    /// When it began.
    pub started: Moment,
    /// How it ended.
    pub outcome: RunOutcome,
    /// The exit code that its command would end with.
    pub exit: u8,
    /// From start to end, in milliseconds.
    pub took_ms: u64,
    /// Steps that changed the world.
    pub changed: usize,
    /// Layers whose every step was done, and how long each took, in milliseconds.
    pub layers: BTreeMap<LayerName, u64>,
    /// Steps that were done, and how long each took, in milliseconds.
    pub steps: BTreeMap<StepId, u64>,
    /// The version of castle that ran.
    pub version: String,
}

impl PastRun {
    /// Whether two runs did the same work to castles of the same shape, so that their times can be compared.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.shape == other.shape
            && self.direction == other.direction
            && self.rehearsal == other.rehearsal
            && self.work == other.work
    }

    /// Whether everything was done, so that its times mean something.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.outcome == RunOutcome::Done && self.exit == 0
    }
}
