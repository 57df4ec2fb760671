//! A run as a picture in time: what each step did and waited for, what decided its length, and how it compares.
//!
//! [`Fold`] takes the events in as they come, so that a page of a run that goes on can be made from it too; [`Fold::timeline`] gives
//! the whole picture as data. Whoever draws it draws this and nothing else. All times are milliseconds since the first step began.

mod compare;
mod slack;
mod track;

use std::collections::{BTreeMap, BTreeSet};

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, Failure, LayerName, PastRun, StepDecl, StepId};

pub use self::compare::{Compared, Slower};
use self::track::Raw;
pub use self::track::{Segment, SegmentKind, Try};
use crate::critical_path::{Path, critical_path_so_far};
use crate::progress::{LayerTally, Progress, StepProgress, StepStatus};

/// Something that happened beside the steps' own work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happening {
    /// When.
    pub at_ms: u64,
    /// What kind of thing it is.
    pub kind: HappeningKind,
    /// The step that it is about, if it is about one.
    pub step: Option<StepId>,
    /// What happened.
    pub text: String,
}

/// The kinds of what happens beside the steps' own work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HappeningKind {
    /// A rule broke something in the rehearsal.
    Fault,
    /// Somebody changed the rehearsal's world.
    Poke,
    /// Something that a person should know.
    Notice,
    /// A milestone is ready.
    Milestone,
    /// Flux took over.
    Handover,
    /// Somebody asked the run to stop.
    Interrupted,
    /// Something is left of a razed castle.
    Leftover,
}

impl HappeningKind {
    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Poke => "poke",
            Self::Notice => "notice",
            Self::Milestone => "milestone",
            Self::Handover => "handover",
            Self::Interrupted => "interrupted",
            Self::Leftover => "left over",
        }
    }
}

/// One step, from its begin to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Track {
    /// Which.
    pub id: StepId,
    /// What it does, for a person.
    pub title: String,
    /// Where it stood when the picture was made.
    pub status: StepStatus,
    /// What it did in this run, as a person calls it, and why.
    pub doing: Option<(String, String)>,
    /// When it began and ended; what was never ended goes to the last event.
    pub span: Option<(u64, u64)>,
    /// What it took by a clock that never jumps.
    pub took_ms: Option<u64>,
    /// What it did with its time, one after the other.
    pub segments: Vec<Segment>,
    /// Transient failures, each of which was tried again.
    pub tries: Vec<Try>,
    /// What it began elsewhere, by the other side's name.
    pub tasks: Vec<String>,
    /// What it did to the world.
    pub change: Option<castle_model::Change>,
    /// What proves it.
    pub proof: Option<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// Which failed step it was blocked by.
    pub blocked_by: Option<StepId>,
    /// What it needed, without what another of its needs needs already.
    pub needs: Vec<StepId>,
    /// Whether it is on the critical path.
    pub critical: bool,
    /// How much later it could have ended without making the run longer.
    pub slack_ms: Option<u64>,
    /// What it took in the previous run like this one.
    pub previous_ms: Option<u64>,
}

impl Track {
    /// How long it did one kind of thing.
    #[must_use]
    pub fn spent(&self, kind: SegmentKind) -> u64 {
        let of_kind = self.segments.iter().filter(|segment| segment.kind == kind);
        of_kind.map(Segment::length).sum()
    }

    /// How long it did not work: it waited, or paused before another try.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.spent(SegmentKind::Wait) + self.spent(SegmentKind::Pause)
    }
}

/// One layer and its steps, in the order in which they began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerTrack {
    /// Which.
    pub name: LayerName,
    /// Its steps, counted.
    pub tally: LayerTally,
    /// When its first step began and its last ended.
    pub span: Option<(u64, u64)>,
    /// Its steps.
    pub steps: Vec<Track>,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeline {
    /// Whose run.
    pub castle: String,
    /// Its id.
    pub run: String,
    /// Which way it went.
    pub direction: Direction,
    /// Whether the world is the rehearsal's; then all times are virtual.
    pub rehearsal: bool,
    /// When it began.
    pub started: Moment,
    /// How it ended; none if it goes on or was killed.
    pub outcome: Option<RunOutcome>,
    /// What it took; to its last event if it has no end.
    pub took_ms: u64,
    /// How long the axis of time is.
    pub span_ms: u64,
    /// How long the world was looked at, until the plan stood; no part of the time that the run took.
    pub planned_ms: Option<u64>,
    /// How many steps the plan had of each word.
    pub counts: BTreeMap<String, usize>,
    /// The layers.
    pub layers: Vec<LayerTrack>,
    /// The chain of steps that decided how long it took.
    pub path: Path,
    /// What happened on the way, in order.
    pub happenings: Vec<Happening>,
    /// What Flux took over, once it has.
    pub handover: Option<String>,
    /// The runs that it is compared with.
    pub compared: Compared,
}

impl Timeline {
    /// Every step, layer after layer.
    pub fn steps(&self) -> impl Iterator<Item = &Track> {
        self.layers.iter().flat_map(|layer| &layer.steps)
    }

    /// One step.
    #[must_use]
    pub fn step(&self, id: &StepId) -> Option<&Track> {
        self.steps().find(|step| step.id == *id)
    }

    /// How long the critical path waited, pauses before another try included.
    #[must_use]
    pub fn path_waited(&self) -> u64 {
        self.steps().filter(|step| step.critical).map(Track::waited).sum()
    }
}

/// The fold of the events of one run.
#[derive(Debug, Clone, Default)]
pub struct Fold {
    progress: Progress,
    raw: BTreeMap<StepId, Raw>,
    happenings: Vec<Happening>,
    planned: Option<u64>,
}

impl Fold {
    /// A run that has not begun.
    #[must_use]
    pub fn new<'a>(decls: impl IntoIterator<Item = &'a StepDecl>) -> Self {
        Self { progress: Progress::new(decls), ..Self::default() }
    }

    /// Where everything stands.
    #[must_use]
    pub fn progress(&self) -> &Progress {
        &self.progress
    }

    /// Takes in one event.
    pub fn apply(&mut self, event: &Event) {
        self.progress.apply(event);
        let at = self.progress.elapsed(event.at);
        if let EventKind::Planned { .. } = event.kind {
            self.planned = self.progress.started.map(|started| event.at.since(started));
        }
        match step_of(&event.kind) {
            Some(step) => self.raw.entry(step.clone()).or_default().apply(at, &event.kind),
            None => self.happenings.extend(happening(at, &event.kind)),
        }
    }

    /// The picture so far. `decls` stand in an order in which each comes after what it needs, turned round for a run down, as in a
    /// plan; `history` are the runs of the castle that are remembered.
    #[must_use]
    pub fn timeline(&self, decls: &[&StepDecl], history: &[PastRun]) -> Timeline {
        let progress = &self.progress;
        let last = progress.elapsed(progress.now);
        // What was cut off counts with what it took until then.
        let path = critical_path_so_far(progress, decls, progress.now);
        let spans: BTreeMap<StepId, (u64, u64)> =
            self.raw.iter().filter_map(|(id, raw)| Some((id.clone(), raw.span(last)?))).collect();
        let picture = Picture {
            fold: self,
            last,
            critical: path.steps.iter().map(|(id, _)| id).collect(),
            // Of a run that was not finished nobody knows how long it would have been.
            slack: match progress.outcome {
                Some(RunOutcome::Done) => slack::slack(progress, decls, &spans),
                _ => BTreeMap::new(),
            },
            needs: slack::direct_needs(decls),
            compared: compare::compare(progress.run.as_ref(), history),
            spans,
        };
        let layers = self.layers().iter().map(|layer| picture.layer(layer)).collect();
        let ends = picture.spans.values().map(|(_, end)| *end).max().unwrap_or(0);
        let took_ms = if progress.outcome.is_some() { progress.took_ms } else { last };
        let mut happenings = self.happenings.clone();
        happenings.sort_by_key(|happening| happening.at_ms);
        Timeline {
            castle: progress.castle.as_ref().map(ToString::to_string).unwrap_or_default(),
            run: progress.run.as_ref().map(ToString::to_string).unwrap_or_default(),
            direction: progress.direction.unwrap_or(Direction::Up),
            rehearsal: progress.rehearsal,
            started: progress.started.unwrap_or_default(),
            outcome: progress.outcome,
            took_ms,
            span_ms: took_ms.max(ends).max(1),
            planned_ms: self.planned,
            counts: progress.counts.clone(),
            layers,
            compared: picture.compared,
            path,
            happenings,
            handover: progress.handover.clone(),
        }
    }
}

impl Fold {
    /// The layers that are declared, then those that only the events know: the castle file may have changed since. What is razed goes
    /// in the other order.
    fn layers(&self) -> Vec<LayerName> {
        let mut layers = self.progress.layers.clone();
        for layer in self.progress.steps.keys().filter_map(|id| id.layer().parse().ok()) {
            if !layers.contains(&layer) {
                layers.push(layer);
            }
        }
        if self.progress.direction == Some(Direction::Down) {
            layers.reverse();
        }
        layers
    }
}

/// What the tracks of a picture are drawn from.
struct Picture<'a> {
    fold: &'a Fold,
    last: u64,
    spans: BTreeMap<StepId, (u64, u64)>,
    critical: BTreeSet<&'a StepId>,
    slack: BTreeMap<StepId, u64>,
    needs: BTreeMap<StepId, Vec<StepId>>,
    compared: Compared,
}

impl Picture<'_> {
    fn layer(&self, name: &LayerName) -> LayerTrack {
        let progress = &self.fold.progress;
        let own = progress.steps.iter().filter(|(id, _)| id.layer() == name.as_str());
        let mut steps: Vec<Track> = own.map(|(id, step)| self.track(id, step)).collect();
        let began = |step: &Track| step.span.map_or(u64::MAX, |(begin, _)| begin);
        steps.sort_by_key(|step| (began(step), step.span.map(|(_, end)| end)));
        let tally = progress.tally(name);
        let span =
            tally.span.map(|(first, last)| (progress.elapsed(first), progress.elapsed(last)));
        LayerTrack { name: name.clone(), tally, span, steps }
    }

    fn track(&self, id: &StepId, step: &StepProgress) -> Track {
        let raw = self.fold.raw.get(id);
        let doing = step.verb.zip(raw.and_then(|raw| raw.reason.clone()));
        Track {
            id: id.clone(),
            title: step.title.clone(),
            status: step.status,
            doing: doing.map(|(verb, why)| (verb.word_for(step.wording).to_owned(), why)),
            span: self.spans.get(id).copied(),
            took_ms: step.took_ms,
            segments: raw.map(|raw| raw.segments(self.last)).unwrap_or_default(),
            tries: raw.map(|raw| raw.tries.clone()).unwrap_or_default(),
            tasks: raw.map(|raw| raw.tasks.clone()).unwrap_or_default(),
            change: step.change,
            proof: raw.and_then(|raw| raw.proof.clone()),
            failure: step.failure.clone(),
            blocked_by: step.blocked_by.clone(),
            needs: self.needs.get(id).cloned().unwrap_or_default(),
            critical: self.critical.contains(id),
            slack_ms: self.slack.get(id).copied(),
            previous_ms: self.compared.of_previous(id),
        }
    }
}

fn step_of(kind: &EventKind) -> Option<&StepId> {
    match kind {
        EventKind::StepStarted { step, .. }
        | EventKind::StepTask { step, .. }
        | EventKind::StepWaiting { step, .. }
        | EventKind::StepRetrying { step, .. }
        | EventKind::StepActed { step, .. }
        | EventKind::StepDone { step, .. }
        | EventKind::StepFailed { step, .. } => Some(step),
        _ => None,
    }
}

fn happening(at_ms: u64, kind: &EventKind) -> Option<Happening> {
    use HappeningKind as Kind;
    let (kind, step, text) = match kind {
        EventKind::Fault(struck) => (Kind::Fault, None, struck.what.clone()),
        EventKind::Poke(struck) => (Kind::Poke, None, struck.what.clone()),
        EventKind::Notice { step, text } => (Kind::Notice, step.clone(), text.clone()),
        EventKind::Milestone { name, revision } => {
            (Kind::Milestone, None, format!("{name} is ready at {revision}"))
        }
        EventKind::Handover { source } => {
            (Kind::Handover, None, format!("Flux owns what the cluster hosts, from {source}"))
        }
        EventKind::Interrupted { settling: 0 } => {
            (Kind::Interrupted, None, "somebody asked the run to stop".to_owned())
        }
        EventKind::Interrupted { settling } => {
            let steps = crate::style::count(*settling, "step");
            let text = format!("somebody asked the run to stop; {steps} brought to a safe point");
            (Kind::Interrupted, None, text)
        }
        EventKind::Leftover { step, what } => (Kind::Leftover, Some(step.clone()), what.clone()),
        _ => return None,
    };
    Some(Happening { at_ms, kind, step, text })
}

#[cfg(test)]
mod tests;
