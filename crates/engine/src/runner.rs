//! The loop around the scheduler: starts steps, writes the journals once per turn, tells the faces.
//!
//! One turn: take what steps say and which of them ended, append it to the journals, commit once, answer
//! those who wait for durability, start what became ready. Steps run in a `JoinSet`; everything they say
//! comes through one mailbox, so this loop is the only owner of journals, events and scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use castle_journal::{Journals, StateError};
use castle_model::deadline::Deadlines;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::time::Moment;
use castle_model::{
    Bug, Event, EventKind, Failure, LayerName, Plan, PlannedStep, RunId, StepId, Verb, planted,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use crate::attempt::{Ended, attempt};
use crate::context::{Context, Message, Phase};
use crate::graph::Graph;
use crate::outputs::Outputs;
use crate::scheduler::{Scheduler, Standing};
use crate::stop::Stop;

mod record;

/// How long acts may take to reach a durable outcome or task after the run was asked to stop.
const SETTLE: Duration = Duration::from_secs(8);

/// What ends a run before its steps do.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A journal could not be written, so nothing more is done.
    #[error("the journal could not be written; no step acts without it")]
    Journal(#[source] StateError),
}

/// How a run went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// In one word.
    pub outcome: RunOutcome,
    /// Steps done, those left alone included.
    pub done: usize,
    /// Steps that failed, in the order of their names.
    pub failures: BTreeMap<StepId, Failure>,
    /// Steps that did not run, with what blocked them (none where the run was stopped).
    pub not_run: BTreeMap<StepId, Option<StepId>>,
    /// How many times the journals were brought to the disk.
    pub syncs: usize,
}

/// What a run is made of.
pub struct Runner<'a> {
    /// The steps.
    pub graph: &'a Graph,
    /// What to do with them.
    pub plan: &'a Plan,
    /// Where it is written down.
    pub journals: &'a mut Journals,
    /// What steps give each other.
    pub outputs: Arc<Outputs>,
    /// How long each kind of step may take.
    pub deadlines: &'a Deadlines,
    /// The time of day.
    pub now: Arc<dyn Fn() -> Moment + Send + Sync>,
    /// Who is told.
    pub face: &'a mut (dyn FnMut(&Event) + Send),
    /// The number of the last event that was told already (by the survey).
    pub told: u64,
    /// Which run this is.
    pub run: RunId,
    /// How it is asked to end.
    pub stop: Stop,
}

struct Live {
    began: Instant,
    task: tokio::task::AbortHandle,
}

#[derive(Default)]
struct LayerTimes {
    open: usize,
    failed: bool,
    began: Option<Instant>,
    /// When the last of its steps was done, and whether any of them changed something.
    rested: Option<Instant>,
    changed: bool,
}

impl LayerTimes {
    /// A step of it begins, beside others of it or alone. What was only looked at ahead, long before the layer's turn, is no
    /// part of its time.
    fn begin(&mut self, now: Instant, alone: bool) {
        let ahead = match (self.began, self.rested) {
            (Some(began), Some(rested)) => now - rested > rested - began,
            _ => false,
        };
        if alone && !self.changed && ahead {
            self.began = Some(now);
        }
        self.began.get_or_insert(now);
    }
}

/// The state of a run under way.
struct Turns<'a> {
    given: Runner<'a>,
    planned: BTreeMap<StepId, &'a PlannedStep>,
    scheduler: Scheduler,
    tasks: JoinSet<(StepId, Ended)>,
    names: BTreeMap<tokio::task::Id, StepId>,
    live: BTreeMap<StepId, Live>,
    layers: BTreeMap<LayerName, LayerTimes>,
    mailbox: (mpsc::UnboundedSender<Message>, mpsc::UnboundedReceiver<Message>),
    acknowledge: Vec<oneshot::Sender<()>>,
    began: Instant,
    settle_by: Option<Instant>,
    report: Report,
}

impl Runner<'_> {
    /// Runs to the end: all done, nothing left that can go on, or stopped.
    ///
    /// # Errors
    /// A journal could not be written. Steps that were under way are dropped; a later run looks again.
    pub async fn run(self) -> Result<Report, RunError> {
        let planned: BTreeMap<_, _> =
            self.plan.steps.iter().map(|step| (step.decl.id.clone(), step)).collect();
        let mut layers: BTreeMap<LayerName, LayerTimes> = BTreeMap::new();
        for step in &self.plan.steps {
            layers.entry(step.decl.layer.clone()).or_default().open += 1;
        }
        let mut scheduler = Scheduler::new(self.plan.steps.iter().map(|s| &s.decl));
        for step in &self.plan.steps {
            if let Some(until) = &step.until {
                scheduler.hold(&step.decl.id, until);
            }
        }
        let turns = Turns {
            scheduler,
            planned,
            tasks: JoinSet::new(),
            names: BTreeMap::new(),
            live: BTreeMap::new(),
            layers,
            mailbox: mpsc::unbounded_channel(),
            acknowledge: Vec::new(),
            began: Instant::now(),
            settle_by: None,
            report: Report {
                outcome: RunOutcome::Done,
                done: 0,
                failures: BTreeMap::new(),
                not_run: BTreeMap::new(),
                syncs: 0,
            },
            given: self,
        };
        turns.run().await
    }
}

/// What a turn begins with.
enum Wake {
    Message(Option<Message>),
    Ended(Result<(tokio::task::Id, (StepId, Ended)), JoinError>),
    Stop,
    Settled,
}

impl Turns<'_> {
    async fn run(mut self) -> Result<Report, RunError> {
        loop {
            // Steps hear of a stop by themselves, and may all be gone before the loop is woken by it.
            if self.given.stop.times() > 0 && self.settle_by.is_none() {
                self.settle();
            }
            self.start_ready()?;
            if self.tasks.is_empty() {
                break;
            }
            match self.wake().await {
                Wake::Message(message) => self.hear(message.into_iter().collect())?,
                Wake::Ended(ended) => self.ended(ended)?,
                Wake::Stop if self.settle_by.is_none() => {}
                Wake::Stop | Wake::Settled => break,
            }
            // Steps that are ready in this very turn may speak too, so that one fsync serves them all.
            tokio::task::yield_now().await;
            let mut heard = Vec::new();
            while let Ok(message) = self.mailbox.1.try_recv() {
                heard.push(message);
            }
            self.hear(heard)?;
            while let Some(ended) = self.tasks.try_join_next_with_id() {
                self.ended(ended)?;
            }
            self.commit()?;
        }
        self.finish()
    }

    async fn wake(&mut self) -> Wake {
        let times = if self.settle_by.is_some() { 2 } else { 1 };
        let settle_by = self.settle_by;
        let settled = async {
            match settle_by {
                Some(at) => tokio::time::sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            message = self.mailbox.1.recv() => Wake::Message(message),
            Some(ended) = self.tasks.join_next_with_id() => Wake::Ended(ended),
            () = self.given.stop.asked(times) => Wake::Stop,
            () = settled => Wake::Settled,
        }
    }

    /// Starts everything that may start. What needs no act is done on the spot, which may free more.
    fn start_ready(&mut self) -> Result<(), RunError> {
        loop {
            let ready = self.scheduler.start();
            if ready.is_empty() {
                return Ok(());
            }
            for id in ready {
                self.begin_layer(&id);
                let planned = self.planned[&id];
                match planned.verb {
                    Verb::Leave if !planned.unknown => {
                        for text in self.given.outputs.noted(&id) {
                            self.tell(EventKind::Notice { step: Some(id.clone()), text });
                        }
                        self.left(&id, &planned.reason)?;
                    }
                    Verb::Forget => self.forgotten(&id, &planned.reason)?,
                    _ => self.spawn(&id),
                }
            }
            self.commit()?;
        }
    }

    fn spawn(&mut self, id: &StepId) {
        let planned = self.planned[id].clone();
        let Some(step) = self.given.graph.step(id) else {
            let failure =
                Failure::bug(format!("start {id}"), "the plan names a step that is not built");
            self.failed(id, failure);
            return;
        };
        let began = Instant::now();
        let phase = Arc::new(Phase::default());
        let patience = if planted(Bug::DeadlineIgnored) { 100 } else { 1 };
        let records = self.given.journals.records();
        let cx = Context {
            step: id.clone(),
            state: records.step(id).clone(),
            incarnation: records.incarnation.clone(),
            outputs: self.given.outputs.clone(),
            deadline: began + self.given.deadlines.get(&planned.decl.deadline) * patience,
            mailbox: self.mailbox.0.clone(),
            phase: phase.clone(),
        };
        let direction = self.given.plan.direction;
        let stop = self.given.stop.clone();
        let verb = planned.verb;
        self.tell(EventKind::StepStarted {
            step: id.clone(),
            verb,
            reason: planned.reason.clone(),
        });
        let name = id.clone();
        let task = self.tasks.spawn(async move {
            let dropped = async {
                stop.asked(1).await;
                phase.droppable().await;
            };
            let ended = tokio::select! {
                biased;
                ended = attempt(step, planned, direction, cx) => ended,
                () = dropped => Ended::Dropped,
            };
            (name, ended)
        });
        self.names.insert(task.id(), id.clone());
        self.live.insert(id.clone(), Live { began, task });
    }

    /// From here on nothing starts; what acts may reach a safe point, the rest is dropped.
    fn settle(&mut self) {
        self.scheduler.stop();
        self.settle_by = Some(Instant::now() + SETTLE);
        self.tell(EventKind::Interrupted { settling: self.live.len() });
    }

    fn tell(&mut self, kind: EventKind) {
        self.given.told += 1;
        let event = Event {
            v: SCHEMA,
            seq: self.given.told,
            at: (self.given.now)(),
            run: self.given.run.clone(),
            kind,
        };
        (self.given.face)(&event);
    }

    fn finish(mut self) -> Result<Report, RunError> {
        let interrupted = self.settle_by.is_some() && self.scheduler.open() > 0;
        self.report.outcome = match (interrupted, self.report.failures.is_empty()) {
            (true, _) => RunOutcome::Interrupted,
            (false, false) => RunOutcome::Failed,
            (false, true) => RunOutcome::Done,
        };
        for id in self.planned.keys() {
            let standing = self.scheduler.standing(id);
            if matches!(standing, Some(Standing::Pending | Standing::Ready | Standing::Running)) {
                self.report.not_run.entry(id.clone()).or_insert(None);
            }
        }
        for live in self.live.values() {
            live.task.abort();
        }
        if self.report.outcome == RunOutcome::Done {
            self.end_life()?;
        }
        self.given
            .journals
            .end_run((self.given.now)(), self.report.outcome)
            .map_err(RunError::Journal)?;
        let report = self.report.clone();
        self.tell(EventKind::RunEnded {
            outcome: report.outcome,
            done: report.done,
            failed: report.failures.len(),
            not_run: report.not_run.len(),
            took_ms: millis(self.began.elapsed()),
        });
        Ok(report)
    }
}

fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
