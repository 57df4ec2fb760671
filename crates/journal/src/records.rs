//! The fold of the journals: what is known of every step, of the castle's life and of the last run.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{CastleName, Incarnation, LayerName, RunId, StepId};
use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Head};
use crate::record::Record;
use crate::state::{Illegal, StepState, transition};

/// The one layer in whose journal the lives of a castle are recorded.
pub const INCARNATION_LAYER: &str = "secrets";

/// One run as the run journal knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which.
    pub id: RunId,
    /// Whose.
    pub castle: CastleName,
    /// Which way it went.
    pub direction: Direction,
    /// The hash of its plan.
    pub plan: String,
    /// The version of castle that ran.
    pub version: String,
    /// When it began.
    pub started: Moment,
    /// When and how it ended; none while it runs, or if it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<(Moment, RunOutcome)>,
}

/// What all entries together say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    /// Every step that something is known about.
    pub steps: BTreeMap<StepId, StepState>,
    /// The life that the castle is in.
    pub incarnation: Option<Incarnation>,
    /// The last run.
    pub last_run: Option<RunRecord>,
    /// The last run that is named only by files which were set aside.
    pub(crate) earlier: Option<RunId>,
    /// Where each layer's journal ended when the run journal last said so.
    pub(crate) heads: BTreeMap<LayerName, Head>,
}

static ABSENT: StepState = StepState::Absent;

impl Records {
    /// What is known of a step.
    #[must_use]
    pub fn step(&self, id: &StepId) -> &StepState {
        self.steps.get(id).unwrap_or(&ABSENT)
    }

    /// The id of the last run that any file names, also one that was set aside: the next has to be called otherwise.
    #[must_use]
    pub fn last_id(&self) -> Option<&RunId> {
        self.last_run.as_ref().map(|run| &run.id).max(self.earlier.as_ref())
    }

    /// Whether nothing is known of a castle: none was born, or everything of it was undone or forgotten.
    #[must_use]
    pub fn is_reset(&self) -> bool {
        let nothing =
            |state: &StepState| matches!(state, StepState::Absent | StepState::Undone { .. });
        self.incarnation.is_none() && self.steps.values().all(nothing)
    }

    /// The steps of one layer.
    pub fn layer<'a>(
        &'a self,
        layer: &'a LayerName,
    ) -> impl Iterator<Item = (&'a StepId, &'a StepState)> {
        self.steps.iter().filter(move |(id, _)| id.layer() == layer.as_str())
    }

    /// Takes in one entry, if it may follow what is known; else nothing changes.
    pub(crate) fn apply(&mut self, entry: &Entry) -> Result<(), Illegal> {
        if let Some(step) = entry.record.step() {
            if entry.layer.as_ref().map(LayerName::as_str) != Some(step.layer()) {
                return Err(illegal(&entry.record, "the step belongs to another layer's journal"));
            }
            let next = transition(self.step(step), &entry.record, &entry.run, entry.at)?;
            if next == StepState::Absent {
                self.steps.remove(step);
            } else {
                self.steps.insert(step.clone(), next);
            }
            return Ok(());
        }
        if let Some(layer) = &entry.layer {
            self.apply_to_layer(&entry.record, layer)
        } else {
            self.apply_to_run(entry)
        }
    }

    fn apply_to_layer(&mut self, record: &Record, layer: &LayerName) -> Result<(), Illegal> {
        let lives_here = layer.as_str() == INCARNATION_LAYER;
        match record {
            Record::Incarnation { id } if lives_here => self.incarnation = Some(id.clone()),
            Record::IncarnationEnded { id }
                if lives_here && self.incarnation.as_ref() == Some(id) =>
            {
                self.incarnation = None;
            }
            Record::Snapshot { steps, incarnation, last_run: None, heads }
                if heads.is_empty()
                    && steps.keys().all(|id| id.layer() == layer.as_str())
                    && (lives_here || incarnation.is_none()) =>
            {
                self.steps.extend(steps.clone());
                if lives_here {
                    self.incarnation.clone_from(incarnation);
                }
            }
            _ => return Err(illegal(record, "it has no place in this layer's journal now")),
        }
        Ok(())
    }

    fn apply_to_run(&mut self, entry: &Entry) -> Result<(), Illegal> {
        match &entry.record {
            Record::RunStarted { castle, direction, plan, version, heads } => {
                self.last_run = Some(RunRecord {
                    id: entry.run.clone(),
                    castle: castle.clone(),
                    direction: *direction,
                    plan: plan.clone(),
                    version: version.clone(),
                    started: entry.at,
                    ended: None,
                });
                self.heads.clone_from(heads);
            }
            Record::RunEnded { outcome, heads } => {
                let run = self
                    .last_run
                    .as_mut()
                    .filter(|run| run.id == entry.run && run.ended.is_none())
                    .ok_or_else(|| illegal(&entry.record, "its run is not under way"))?;
                run.ended = Some((entry.at, *outcome));
                self.heads.clone_from(heads);
            }
            Record::Snapshot { steps, incarnation: None, last_run, heads } if steps.is_empty() => {
                self.last_run.clone_from(last_run);
                self.heads.clone_from(heads);
            }
            _ => return Err(illegal(&entry.record, "it has no place in the run journal")),
        }
        Ok(())
    }

    /// Adds what another file says.
    pub(crate) fn merge(&mut self, other: Self) {
        self.steps.extend(other.steps);
        self.incarnation = other.incarnation.or(self.incarnation.take());
        self.last_run = other.last_run.or(self.last_run.take());
        self.heads.extend(other.heads);
    }
}

fn illegal(record: &Record, why: &'static str) -> Illegal {
    Illegal { step: record.step().cloned(), state: "journal", record: record.word(), why }
}
