//! What one step did with its time, folded from its events.

use castle_model::{EventKind, Failure};

/// What a step does with a stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SegmentKind {
    /// It looks, acts or asks.
    Work,
    /// It waits for something to become true.
    Wait,
    /// It leaves the other side alone before it tries again.
    Pause,
}

/// A stretch of time in which a step did one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// What.
    pub kind: SegmentKind,
    /// From when.
    pub begin_ms: u64,
    /// Until when.
    pub end_ms: u64,
    /// What was missing, or what had failed.
    pub why: Option<String>,
}

impl Segment {
    /// How long it lasts, in milliseconds.
    #[must_use]
    pub fn length(&self) -> u64 {
        self.end_ms.saturating_sub(self.begin_ms)
    }
}

/// A transient failure, after which the same thing was tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Try {
    /// When.
    pub at_ms: u64,
    /// What happened.
    pub failure: Failure,
    /// After how many milliseconds the next try came.
    pub delay_ms: u64,
}

/// The thing that a step does now.
#[derive(Debug, Clone)]
struct Open {
    kind: SegmentKind,
    begin: u64,
    /// A pause is over by then, whether anything is told or not.
    until: Option<u64>,
    why: Option<String>,
}

/// One step, as its events tell it.
#[derive(Debug, Clone, Default)]
pub(super) struct Raw {
    begun: Option<u64>,
    ended: Option<u64>,
    pub(super) reason: Option<String>,
    pub(super) proof: Option<String>,
    pub(super) tries: Vec<Try>,
    pub(super) tasks: Vec<String>,
    closed: Vec<Segment>,
    open: Option<Open>,
}

impl Raw {
    pub(super) fn apply(&mut self, at: u64, kind: &EventKind) {
        match kind {
            EventKind::StepStarted { reason, .. } => {
                self.begun = Some(at);
                self.reason = Some(reason.clone());
                self.turn_to(at, SegmentKind::Work, None, None);
            }
            EventKind::StepTask { task, .. } => {
                self.tasks.push(task.clone());
                self.turn_to(at, SegmentKind::Work, None, None);
            }
            EventKind::StepWaiting { reason, .. } => {
                self.turn_to(at, SegmentKind::Wait, None, Some(reason.clone()));
            }
            EventKind::StepRetrying { failure, delay_ms, .. } => {
                let delay_ms = *delay_ms;
                self.tries.push(Try { at_ms: at, failure: failure.clone(), delay_ms });
                let until = Some(at.saturating_add(delay_ms));
                self.turn_to(at, SegmentKind::Pause, until, Some(failure.to_string()));
            }
            EventKind::StepActed { .. } => self.turn_to(at, SegmentKind::Work, None, None),
            EventKind::StepDone { proof, took_ms, .. } => {
                self.proof = Some(proof.clone());
                self.end(at, *took_ms);
            }
            EventKind::StepFailed { took_ms, .. } => self.end(at, *took_ms),
            _ => {}
        }
    }

    fn turn_to(&mut self, at: u64, kind: SegmentKind, until: Option<u64>, why: Option<String>) {
        self.closed = self.segments(at);
        self.begun.get_or_insert(at);
        self.open = Some(Open { kind, begin: at, until, why });
    }

    /// A step that began before anybody looked still has its time.
    fn end(&mut self, at: u64, took_ms: u64) {
        let begun = *self.begun.get_or_insert(at.saturating_sub(took_ms));
        if self.open.is_none() && self.closed.is_empty() {
            self.open =
                Some(Open { kind: SegmentKind::Work, begin: begun, until: None, why: None });
        }
        self.closed = self.segments(at);
        self.open = None;
        self.ended = Some(at);
    }

    /// When it began and ended; one that has no end goes to the last event.
    pub(super) fn span(&self, last: u64) -> Option<(u64, u64)> {
        let begun = self.begun?;
        Some((begun, self.ended.unwrap_or(last).max(begun)))
    }

    /// What it did up to a moment. What lasted no time at all is not there.
    pub(super) fn segments(&self, now: u64) -> Vec<Segment> {
        let mut segments = self.closed.clone();
        let Some(Open { kind, begin, until, why }) = self.open.clone() else { return segments };
        let over = until.map_or(now, |until| until.min(now));
        segments.push(Segment { kind, begin_ms: begin, end_ms: over, why });
        segments.push(Segment { kind: SegmentKind::Work, begin_ms: over, end_ms: now, why: None });
        segments.retain(|segment| segment.length() > 0);
        segments
    }
}
