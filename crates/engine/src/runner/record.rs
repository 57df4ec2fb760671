//! What the runner writes down and tells when steps speak and end.

use castle_journal::{INCARNATION_LAYER, Record, StepState};
use castle_model::plan::Direction;
use castle_model::{Change, EventKind, Failure, Incarnation, LayerName, StepId};
use tokio::task::{Id, JoinError};
use tokio::time::Instant;

use super::{RunError, Turns, millis};
use crate::attempt::{Ended, Progress};
use crate::context::Message;

impl Turns<'_> {
    pub(super) fn hear(&mut self, messages: Vec<Message>) -> Result<(), RunError> {
        for message in messages {
            match message {
                Message::Task { step, task, durable } => {
                    self.append(Record::Task { step: step.clone(), task: task.clone() })?;
                    self.acknowledge.push(durable);
                    self.tell(EventKind::StepTask { step, task });
                }
                Message::Born { incarnation, durable } => {
                    self.append_life(Record::Incarnation { id: incarnation })?;
                    self.acknowledge.push(durable);
                }
                Message::Lives { incarnation } => self.lives(incarnation)?,
                Message::Gone { incarnation } => self.gone(incarnation)?,
                Message::Waiting { step, reason } => {
                    self.tell(EventKind::StepWaiting { step, reason });
                }
                Message::Fetched { step, done, total } => {
                    self.tell(EventKind::StepProgress { step, done, total });
                }
                Message::Notice { step, text } => {
                    self.tell(EventKind::Notice { step: Some(step), text });
                }
                Message::Handover { source } => self.tell(EventKind::Handover { source }),
                Message::Milestone { name, revision } => {
                    self.tell(EventKind::Milestone { name, revision });
                }
                Message::Progress { step, progress } => self.progress(step, progress)?,
            }
        }
        Ok(())
    }

    fn progress(&mut self, step: StepId, progress: Progress) -> Result<(), RunError> {
        match progress {
            Progress::Intent { verb, reason, durable } => {
                self.append(Record::Intent { step, verb, reason })?;
                self.acknowledge.push(durable);
            }
            Progress::Acted { change } => self.tell(EventKind::StepActed { step, change }),
            Progress::Retrying { failure, tries, delay } => {
                self.tell(EventKind::StepRetrying {
                    step,
                    failure,
                    tries,
                    delay_ms: millis(delay),
                });
            }
        }
        Ok(())
    }

    pub(super) fn ended(
        &mut self,
        ended: Result<(Id, (StepId, Ended)), JoinError>,
    ) -> Result<(), RunError> {
        let (id, ended) = match ended {
            Ok((task, (id, ended))) => {
                self.names.remove(&task);
                (id, ended)
            }
            Err(error) => {
                let Some(id) = self.names.remove(&error.id()) else { return Ok(()) };
                // The panic's own words could hold anything, a secret even: only that it happened is told.
                let why =
                    if error.is_panic() { "the step panicked" } else { "the step was aborted" };
                (id.clone(), Ended::Failed(Failure::bug(format!("run {id}"), why)))
            }
        };
        match ended {
            Ended::Done { change, proof, outputs } => {
                let took_ms = self.took(&id);
                let record = Record::Outcome {
                    step: id.clone(),
                    change,
                    proof: proof.clone(),
                    outputs,
                    took_ms,
                };
                let nothing_there =
                    self.given.plan.direction == Direction::Down && change == Change::Unchanged;
                self.append(if nothing_there {
                    Record::Forgotten { step: id.clone() }
                } else {
                    record
                })?;
                self.live.remove(&id);
                self.done(&id, change, proof, took_ms);
            }
            Ended::Failed(failure) => {
                self.append(Record::Failed { step: id.clone(), failure: failure.clone() })?;
                self.failed(&id, failure);
            }
            Ended::Dropped => {
                self.live.remove(&id);
            }
        }
        Ok(())
    }

    /// A step that is as wanted. It is written down once; after that nothing changes, so nothing is written.
    pub(super) fn left(&mut self, id: &StepId, evidence: &str) -> Result<(), RunError> {
        let state = self.given.journals.records().step(id);
        let (absent, known) =
            (*state == StepState::Absent, matches!(state, StepState::Done { .. }));
        let mut outputs = state.outputs().clone();
        outputs.extend(self.given.outputs.learned(id));
        if self.given.plan.direction == Direction::Down {
            if !absent {
                self.append(Record::Forgotten { step: id.clone() })?;
            }
        } else if !known {
            self.append(Record::Outcome {
                step: id.clone(),
                change: Change::Unchanged,
                proof: evidence.to_owned(),
                outputs,
                took_ms: 0,
            })?;
        }
        self.done(id, Change::Unchanged, evidence.to_owned(), 0);
        Ok(())
    }

    /// A step that goes with something else.
    pub(super) fn forgotten(&mut self, id: &StepId, reason: &str) -> Result<(), RunError> {
        if *self.given.journals.records().step(id) != StepState::Absent {
            self.append(Record::Forgotten { step: id.clone() })?;
        }
        self.done(id, Change::Skipped, reason.to_owned(), 0);
        Ok(())
    }

    pub(super) fn failed(&mut self, id: &StepId, failure: Failure) {
        let took_ms = self.took(id);
        self.live.remove(id);
        self.tell(EventKind::StepFailed { step: id.clone(), failure: failure.clone(), took_ms });
        self.report.failures.insert(id.clone(), failure);
        self.fail_layer(id);
        for blocked in self.scheduler.failed(id) {
            self.fail_layer(&blocked);
            self.tell(EventKind::StepBlocked { step: blocked.clone(), by: id.clone() });
            self.report.not_run.insert(blocked, Some(id.clone()));
        }
    }

    pub(super) fn begin_layer(&mut self, id: &StepId) {
        let layer = self.planned[id].decl.layer.clone();
        let of_layer = |other: &StepId| other != id && self.planned[other].decl.layer == layer;
        let alone = !self.live.keys().any(of_layer);
        self.layers.entry(layer).or_default().begin(Instant::now(), alone);
    }

    /// Brings what was appended to the disk, then answers those who wait for that.
    pub(super) fn commit(&mut self) -> Result<(), RunError> {
        self.report.syncs += self.given.journals.commit().map_err(RunError::Journal)?;
        for durable in self.acknowledge.drain(..) {
            // A step that was dropped meanwhile does not hear it; what it meant to do is written all the same.
            durable.send(()).ok();
        }
        Ok(())
    }

    fn done(&mut self, id: &StepId, change: Change, proof: String, took_ms: u64) {
        self.scheduler.done(id);
        self.report.done += 1;
        self.tell(EventKind::StepDone { step: id.clone(), change, proof, took_ms });
        let layer = self.planned[id].decl.layer.clone();
        let times = self.layers.entry(layer.clone()).or_default();
        times.open = times.open.saturating_sub(1);
        times.rested = Some(Instant::now());
        times.changed |= !matches!(change, Change::Unchanged | Change::Skipped);
        if times.open == 0 && !times.failed {
            let took_ms = times.began.map_or(0, |began| millis(began.elapsed()));
            self.tell(EventKind::LayerDone { layer, took_ms });
        }
    }

    fn fail_layer(&mut self, id: &StepId) {
        let layer = self.planned[id].decl.layer.clone();
        self.layers.entry(layer).or_default().failed = true;
    }

    fn took(&self, id: &StepId) -> u64 {
        self.live.get(id).map_or(0, |live| millis(live.began.elapsed()))
    }

    fn append(&mut self, record: Record) -> Result<(), RunError> {
        let layer = record.step().and_then(|id| self.planned.get(id)).map(|p| p.decl.layer.clone());
        match layer {
            Some(layer) => self.append_to(&layer, record),
            None => Ok(()),
        }
    }

    fn append_life(&mut self, record: Record) -> Result<(), RunError> {
        let layer: LayerName = INCARNATION_LAYER.parse().expect("it is a label");
        self.append_to(&layer, record)
    }

    /// When all of a castle is gone its life is over, whatever became of the secrets that it was known by.
    pub(super) fn end_life(&mut self) -> Result<(), RunError> {
        let plan = self.given.plan;
        let whole = plan.steps.iter().any(|step| step.decl.layer.as_str() == INCARNATION_LAYER);
        let life = self.given.journals.records().incarnation.clone();
        match life.filter(|_| whole && plan.direction == Direction::Down) {
            Some(life) => self.gone(life),
            None => Ok(()),
        }
    }

    fn lives(&mut self, id: Incarnation) -> Result<(), RunError> {
        if self.given.journals.records().incarnation.as_ref() != Some(&id) {
            self.append_life(Record::Incarnation { id })?;
        }
        Ok(())
    }

    fn gone(&mut self, id: Incarnation) -> Result<(), RunError> {
        if self.given.journals.records().incarnation.as_ref() == Some(&id) {
            self.append_life(Record::IncarnationEnded { id })?;
        }
        Ok(())
    }

    fn append_to(&mut self, layer: &LayerName, record: Record) -> Result<(), RunError> {
        let now = (self.given.now)();
        self.given.journals.append(now, layer, record).map_err(RunError::Journal)
    }
}
