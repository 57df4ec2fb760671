//! What outlives a run beside its journals: its events, and what it took. A disk that refuses them stops nobody.

use castle_journal::{EventFile, Records, Runs, StateError};
use castle_model::event::RunOutcome;
use castle_model::history::HISTORY;
use castle_model::plan::Direction;
use castle_model::{CastleName, Event, PastRun, RunId, StepDecl};
use castle_view::Progress;
use sha2::{Digest, Sha256};

use crate::exit::Exit;
use crate::output;

/// The exit code of a killed process, as a shell tells it.
pub(crate) const KILLED: u8 = 137;

/// The events of one run, on their way to the disk.
#[derive(Default)]
pub(crate) struct Keep {
    /// What was told before anybody agreed: kept only if the plan is carried out.
    before: Vec<Event>,
    file: Option<EventFile>,
    /// Whether nothing is kept any more.
    over: bool,
}

impl Keep {
    /// Takes in one event.
    pub(crate) fn hear(&mut self, event: &Event) {
        if self.over {
            return;
        }
        match &mut self.file {
            None => self.before.push(event.clone()),
            Some(file) => {
                let added = file.add(event);
                self.check(added);
            }
        }
    }

    /// The plan is carried out: from here on every event goes to the disk, after those that were told before.
    pub(crate) fn begin(&mut self, runs: Option<&Runs>, run: &RunId) {
        let before = std::mem::take(&mut self.before);
        let Some(runs) = runs else {
            self.over = true;
            return;
        };
        match runs.begin(run) {
            Ok(file) => self.file = Some(file),
            Err(error) => return self.check(Err(error)),
        }
        for event in &before {
            self.hear(event);
        }
    }

    /// Whether every event so far is on the disk.
    pub(crate) fn is_whole(&self) -> bool {
        self.file.is_some()
    }

    fn check(&mut self, added: Result<(), StateError>) {
        if let Err(error) = added {
            self.over = true;
            self.file = None;
            tell("the events of this run can not be kept, and it goes on without", &error);
        }
    }
}

/// Says that something beside the journals could not be written.
pub(crate) fn tell(what: &str, error: &StateError) {
    let source = std::error::Error::source(error).map(|source| format!(" ({source})"));
    output::say(&format!("notice: {what}: {error}{}", source.unwrap_or_default()));
}

/// A run that is over, as it is remembered.
pub(crate) fn past(
    castle: &CastleName,
    direction: Direction,
    decls: &[StepDecl],
    progress: &Progress,
    exit: Exit,
) -> Option<PastRun> {
    let took = |step: &castle_view::StepProgress| step.took_ms.filter(|_| step.failure.is_none());
    let steps = progress.steps.iter().filter_map(|(id, step)| Some((id.clone(), took(step)?)));
    Some(PastRun {
        v: HISTORY,
        run: progress.run.clone()?,
        castle: castle.clone(),
        direction,
        rehearsal: progress.rehearsal,
        shape: shape(decls),
        work: progress.counts.clone(),
        started: progress.started.unwrap_or_default(),
        outcome: progress.outcome.unwrap_or(RunOutcome::Failed),
        exit: exit as u8,
        took_ms: progress.took_ms,
        changed: progress.steps.values().filter(|step| step.has_changed()).count(),
        layers: progress.layers_took.clone(),
        steps: steps.collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// The run before, if it was killed: nobody could remember it then. Its length goes to its last event.
pub(crate) fn killed(runs: &Runs, records: &Records, decls: &[StepDecl]) -> Option<PastRun> {
    let last = records.last_run.as_ref().filter(|run| run.ended.is_none())?;
    let mut progress = Progress::new(decls);
    for event in runs.events(&last.id).ok().flatten()?.more().ok()? {
        progress.apply(&event);
    }
    let took_ms = progress.elapsed(progress.now);
    let past = past(&last.castle, last.direction, decls, &progress, Exit::Interrupted)?;
    Some(PastRun { outcome: RunOutcome::Interrupted, exit: KILLED, took_ms, ..past })
}

/// One number for the names of all steps.
fn shape(decls: &[StepDecl]) -> String {
    let mut names: Vec<&str> = decls.iter().map(|decl| decl.id.as_str()).collect();
    names.sort_unstable();
    let mut digits = hex::encode(Sha256::digest(names.join("\n")));
    digits.truncate(16);
    digits
}
