//! The fold of a run's events: where every step and layer stands.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::time::Moment;
use castle_model::{
    CastleName, Change, Event, EventKind, Failure, LayerName, RunId, StepDecl, StepId, Verb,
};

/// Where a step stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepStatus {
    /// Its turn has not come.
    Pending,
    /// It will not run: something that it needs failed.
    Blocked,
    /// It is at work.
    Running,
    /// It waits for something to become true.
    Waiting,
    /// It is done and proven.
    Done,
    /// It failed.
    Failed,
    /// It was left out on purpose.
    Skipped,
    /// What it made is removed.
    Undone,
}

impl StepStatus {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Blocked => "blocked",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Undone => "undone",
        }
    }

    /// Whether nothing more will happen to the step in this run.
    #[must_use]
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Pending | Self::Running | Self::Waiting)
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepProgress {
    /// What it does, for a person.
    pub title: String,
    /// How a person calls what is done with it, if not by the plan's verb.
    pub wording: Option<Wording>,
    /// Where it stands.
    pub status: StepStatus,
    /// What it does in this run, once it has begun.
    pub verb: Option<Verb>,
    /// When it began.
    pub started: Option<Moment>,
    /// What it waits for, and since when.
    pub waiting: Option<(String, Moment)>,
    /// How many bytes of how many are done, where that is known.
    pub fetched: Option<(u64, u64)>,
    /// Whether the last that was told of it is a quarter further than what was told before.
    pub quarter: bool,
    /// Whether the last reason to wait is of another kind than the one before, and not only another number or name.
    pub news: bool,
    /// Tries that met a transient failure.
    pub retries: u32,
    /// What it did.
    pub change: Option<Change>,
    /// From start to end, in milliseconds, once it is over.
    pub took_ms: Option<u64>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Which failed step it is blocked by.
    pub blocked_by: Option<StepId>,
    /// Since when it waits, whatever the reasons were since.
    pub waiting_since: Option<Moment>,
    /// What the last try that met a transient failure said.
    pub tried: Option<Failure>,
    /// How many tries in a row have said that, the last one included.
    pub alike: u32,
    /// What it has begun elsewhere, by the other side's name.
    pub task: Option<String>,
    /// What proved it, and when.
    pub proof: Option<(String, Moment)>,
    /// What the look before the plan saw: one word, and the evidence.
    pub surveyed: Option<(String, String)>,
}

/// The steps of one layer, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerTally {
    /// Declared.
    pub steps: usize,
    /// Over and well.
    pub done: usize,
    /// Of those, created, updated or removed.
    pub changed: usize,
    /// Failed.
    pub failed: usize,
    /// Dropped at the end of the run while what they had begun elsewhere went on.
    pub begun: usize,
    /// Not run.
    pub not_run: usize,
    /// When its first step began and its last ended.
    pub span: Option<(Moment, Moment)>,
    /// What the run itself measured once the layer was done: no time of day, which may jump.
    pub measured_ms: Option<u64>,
}

impl LayerTally {
    /// From the first start to the last end, in milliseconds.
    #[must_use]
    pub fn took_ms(&self) -> u64 {
        self.measured_ms.unwrap_or_else(|| self.span.map_or(0, |(first, last)| last.since(first)))
    }
}

/// A run as its events tell it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whose run.
    pub castle: Option<CastleName>,
    /// Its id.
    pub run: Option<RunId>,
    /// Which way it goes.
    pub direction: Option<Direction>,
    /// Whether the world is the rehearsal's.
    pub rehearsal: bool,
    /// When it began.
    pub started: Option<Moment>,
    /// When its first step began: from then on its time is counted. What was looked at for the plan, and how long a question
    /// was not answered, is before.
    pub at_work: Option<Moment>,
    /// When the last event came.
    pub now: Moment,
    /// Its steps.
    pub steps: BTreeMap<StepId, StepProgress>,
    /// The layers in the order of their first declared step.
    pub layers: Vec<LayerName>,
    /// Layers whose every step is done, and how long each took, in milliseconds, by a clock that never jumps.
    pub layers_took: BTreeMap<LayerName, u64>,
    /// How many steps the plan has of each word.
    pub counts: BTreeMap<String, usize>,
    /// What is left of a razed castle.
    pub left: Vec<(StepId, String)>,
    /// What Flux took over, once it has.
    pub handover: Option<String>,
    /// Milestones that were reached, with the milliseconds since the start.
    pub milestones: Vec<(String, u64)>,
    /// What a person should know.
    pub notices: Vec<String>,
    /// How it ended.
    pub outcome: Option<RunOutcome>,
    /// From start to end, in milliseconds, once it is over.
    pub took_ms: u64,
    /// Whether somebody asked it to stop.
    pub stopping: bool,
    /// Characters of the longest declared step id, so that columns are the same on every line.
    pub(crate) longest_id: usize,
}

impl Progress {
    /// A run that has not begun.
    #[must_use]
    pub fn new<'a>(decls: impl IntoIterator<Item = &'a StepDecl>) -> Self {
        let mut progress = Self::default();
        for decl in decls {
            progress.longest_id = progress.longest_id.max(decl.id.as_str().len());
            progress
                .steps
                .insert(decl.id.clone(), StepProgress::new(decl.title.clone(), decl.wording));
            if !progress.layers.contains(&decl.layer) {
                progress.layers.push(decl.layer.clone());
            }
        }
        progress
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        self.now = event.at;
        self.run.get_or_insert_with(|| event.run.clone());
        match &event.kind {
            EventKind::RunStarted { castle, direction, rehearsal, .. } => {
                self.castle = Some(castle.clone());
                self.direction = Some(*direction);
                self.rehearsal = *rehearsal;
                self.started = Some(event.at);
            }
            EventKind::Handover { source } => self.handover = Some(source.clone()),
            EventKind::Milestone { name, .. } => {
                self.milestones.push((name.clone(), self.elapsed(event.at)));
            }
            EventKind::Notice { text, .. } => self.notices.push(text.clone()),
            EventKind::RunEnded { outcome, took_ms, .. } => {
                self.outcome = Some(*outcome);
                self.took_ms = *took_ms;
            }
            EventKind::Planned { counts, .. } => self.counts.clone_from(counts),
            EventKind::LayerDone { layer, took_ms } => {
                self.layers_took.insert(layer.clone(), *took_ms);
            }
            EventKind::Leftover { step, what } => self.left.push((step.clone(), what.clone())),
            EventKind::Interrupted { .. } => self.stopping = true,
            EventKind::Fault(_) | EventKind::Poke(_) => {}
            EventKind::Surveyed { step, .. }
            | EventKind::StepStarted { step, .. }
            | EventKind::StepTask { step, .. }
            | EventKind::StepWaiting { step, .. }
            | EventKind::StepProgress { step, .. }
            | EventKind::StepRetrying { step, .. }
            | EventKind::StepActed { step, .. }
            | EventKind::StepDone { step, .. }
            | EventKind::StepFailed { step, .. }
            | EventKind::StepBlocked { step, .. } => {
                let known = self.steps.entry(step.clone());
                if let EventKind::StepStarted { .. } = event.kind {
                    self.at_work.get_or_insert(event.at);
                }
                known
                    .or_insert_with(|| StepProgress::new(String::new(), None))
                    .apply(event.at, &event.kind);
            }
        }
    }

    /// Milliseconds of work up to a moment: what every face counts, and what the end says that the run took.
    #[must_use]
    pub fn elapsed(&self, at: Moment) -> u64 {
        self.at_work.map_or(0, |began| at.since(began))
    }

    /// The steps of one layer, counted.
    #[must_use]
    pub fn tally(&self, layer: &LayerName) -> LayerTally {
        let measured_ms = self.layers_took.get(layer).copied();
        let mut tally = LayerTally { measured_ms, ..LayerTally::default() };
        for step in self.of_layer(layer) {
            tally.steps += 1;
            match step.status {
                StepStatus::Done | StepStatus::Undone | StepStatus::Skipped => tally.done += 1,
                StepStatus::Failed => tally.failed += 1,
                StepStatus::Pending | StepStatus::Blocked => tally.not_run += 1,
                // Once the run is over, what was dropped on its way has not run to its end either.
                StepStatus::Running | StepStatus::Waiting => {
                    let over = self.outcome.is_some();
                    tally.begun += usize::from(over && step.is_begun());
                    tally.not_run += usize::from(over && !step.is_begun());
                }
            }
            tally.changed += usize::from(step.has_changed());
        }
        tally.span = self.span(layer);
        tally
    }

    /// When the first step of a layer began and the last one ended. What was only looked at ahead, long before the layer's turn,
    /// is no part of its time: the run's own measure leaves it out too.
    fn span(&self, layer: &LayerName) -> Option<(Moment, Moment)> {
        let mut steps: Vec<_> =
            self.of_layer(layer).filter_map(|step| Some((step.started?, step))).collect();
        steps.sort_by_key(|(started, _)| *started);
        let (mut span, mut changed) = (None, false);
        for (started, step) in steps {
            let took = step.took_ms.unwrap_or(self.now.since(started));
            let ended = Moment(started.0.saturating_add(took));
            let (first, last): (Moment, Moment) = span.unwrap_or((started, ended));
            let ahead = !changed && started.since(last) > last.since(first);
            span = Some(if ahead { (started, ended) } else { (first, last.max(ended)) });
            changed |= step.has_changed();
        }
        span
    }

    fn of_layer(&self, layer: &LayerName) -> impl Iterator<Item = &StepProgress> {
        let belongs = |id: &StepId| id.layer() == layer.as_str();
        self.steps.iter().filter(move |(id, _)| belongs(id)).map(|(_, step)| step)
    }
}

impl StepProgress {
    fn new(title: String, wording: Option<Wording>) -> Self {
        Self {
            title,
            wording,
            status: StepStatus::Pending,
            verb: None,
            started: None,
            waiting: None,
            fetched: None,
            quarter: false,
            news: false,
            retries: 0,
            change: None,
            took_ms: None,
            failure: None,
            blocked_by: None,
            waiting_since: None,
            tried: None,
            alike: 0,
            task: None,
            proof: None,
            surveyed: None,
        }
    }

    /// Whether it changed the world in this run.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        matches!(self.change, Some(Change::Created | Change::Updated | Change::Removed))
    }

    /// Whether it is at work, and has begun something elsewhere that goes on without it.
    #[must_use]
    pub fn is_begun(&self) -> bool {
        matches!(self.status, StepStatus::Running | StepStatus::Waiting) && self.task.is_some()
    }

    fn apply(&mut self, at: Moment, kind: &EventKind) {
        match kind {
            EventKind::StepStarted { verb, .. } => {
                self.status = StepStatus::Running;
                self.verb = Some(*verb);
                self.started = Some(at);
            }
            EventKind::StepWaiting { reason, .. } => {
                self.status = StepStatus::Waiting;
                self.news =
                    self.waiting.as_ref().is_none_or(|(last, _)| shape(last) != shape(reason));
                self.waiting = Some((reason.clone(), at));
                self.waiting_since.get_or_insert(at);
            }
            EventKind::StepTask { task, .. } => self.task = Some(task.clone()),
            EventKind::StepProgress { done, total, .. } => {
                let quarters = |(done, total): (u64, u64)| done.saturating_mul(4) / total.max(1);
                let before = self.fetched.map_or(0, quarters);
                self.fetched = Some((*done, *total));
                self.quarter = quarters((*done, *total)) > before;
            }
            EventKind::Surveyed { observed, evidence, .. } => {
                self.surveyed = Some((observed.clone(), evidence.clone()));
            }
            EventKind::StepRetrying { tries, failure, .. } => {
                self.retries = *tries;
                let same =
                    self.tried.as_ref().is_some_and(|last| last.to_string() == failure.to_string());
                self.alike = if same { self.alike + 1 } else { 1 };
                self.fetched = None;
                self.tried = Some(failure.clone());
            }
            EventKind::StepActed { change, .. } => {
                self.change = Some(*change);
                self.fetched = None;
            }
            EventKind::StepDone { change, took_ms, proof, .. } => {
                self.proof = Some((proof.clone(), at));
                self.status = match change {
                    Change::Removed => StepStatus::Undone,
                    Change::Skipped => StepStatus::Skipped,
                    Change::Created | Change::Updated | Change::Unchanged => StepStatus::Done,
                };
                self.change = Some(*change);
                self.close(at, *took_ms);
            }
            EventKind::StepFailed { failure, took_ms, .. } => {
                self.status = StepStatus::Failed;
                self.failure = Some(failure.clone());
                self.close(at, *took_ms);
            }
            EventKind::StepBlocked { by, .. } => {
                self.status = StepStatus::Blocked;
                self.blocked_by = Some(by.clone());
            }
            _ => {}
        }
    }

    /// A step that began before anybody looked still has its time.
    fn close(&mut self, at: Moment, took_ms: u64) {
        self.started.get_or_insert(Moment(at.0.saturating_sub(took_ms)));
        self.took_ms = Some(took_ms);
        self.waiting = None;
        self.waiting_since = None;
        self.fetched = None;
    }
}

/// The kind of a reason: its first clause, with everything that looks like a name or a number masked.
fn shape(reason: &str) -> String {
    let clause = reason.split(';').next().unwrap_or_default();
    let named = |word: &&str| word.contains(|c: char| c.is_ascii_digit() || "./-:".contains(c));
    let words: Vec<&str> =
        clause.split(' ').map(|word| if named(&word) { "*" } else { word }).collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{START, Tape, decls};

    #[test]
    fn a_look_ahead_is_no_part_of_a_layers_time() {
        let mut tape = Tape::begun();
        let begin = |step| EventKind::StepStarted { step, verb: Verb::Create, reason: "-".into() };
        let done = |step, change, took_ms| EventKind::StepDone {
            step,
            change,
            proof: "seen".into(),
            took_ms,
        };
        let (ahead, flux) = (StepId::new("gitops", "repository"), StepId::new("gitops", "flux"));
        tape.at(2_000, begin(ahead.clone()));
        tape.at(3_000, done(ahead, Change::Unchanged, 1_000));
        tape.at(62_000, begin(flux.clone()));
        tape.at(72_000, done(flux, Change::Created, 10_000));
        let mut progress = Progress::new(&decls());
        for event in &tape.events {
            progress.apply(event);
        }
        let tally = progress.tally(&"gitops".parse().unwrap());
        assert_eq!(tally.span, Some((Moment(START + 62_000), Moment(START + 72_000))));
        assert_eq!(tally.took_ms(), 10_000);
        assert_eq!(progress.elapsed(Moment(START + 72_000)), 70_000, "the look is before");
    }

    #[test]
    fn another_number_or_name_is_no_news() {
        let same = |one: &str, other: &str| shape(one) == shape(other);
        assert!(same(
            "Deployment a/b has 0 of 3 replicas; and 1 more",
            "Deployment c/d has 2 of 3 replicas"
        ));
        assert!(same("answered 2 of 5 times in a row", "answered 3 of 5 times in a row"));
        assert!(!same("connection refused at 10.0.0.1:6443", "answered 1 of 5 times in a row"));
    }
}
