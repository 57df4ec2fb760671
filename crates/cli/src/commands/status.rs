//! `castle status`: what the journals know, readable while another process runs.

use castle_journal::{Holder, Peek, Presence, Runs, StateRoot, StepState};
use castle_model::time::Moment;
use castle_view::Progress;
use castle_view::live::{Live, live};
use castle_view::status::{Known, LastRun, Standing, text};

use crate::answer;
use crate::args::Everywhere;
use crate::castle::{self, Castle, Place};
use crate::commands::rebirth::open_line;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::settings::Settings;
use crate::state::{damage_words, state_problem, wall_clock};

/// Prints each layer and step as the journals know them.
pub(crate) fn run(
    which: &Which,
    place: Place,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    let peek = StateRoot::peek(&castle.state).map_err(|e| state_problem(&e))?;
    let Some(peek) = peek else {
        output::talk(&format!(
            "castle `{}` has no state yet; `{} up` raises it",
            castle.spec.name, castle.command
        ));
        if everywhere.json {
            output::data(&answer::line("status", &unknown(&castle)));
        }
        return Ok(Exit::Done);
    };
    // The rehearsal's time stands still between its processes; the real one does not.
    let now = match place {
        Place::Real => wall_clock(),
        Place::Rehearsal => latest(&peek),
    };
    show(&castle, &peek, now, everywhere.json, settings);
    Ok(Exit::Done)
}

/// Prints what is known of a castle at a moment.
pub(crate) fn show(castle: &Castle, peek: &Peek, now: Moment, json: bool, settings: &Settings) {
    let standing = standing(castle, peek, now);
    output::data(&if json {
        answer::line("status", &standing)
    } else {
        text(&standing, &castle::declare(&castle.spec), now, style(settings))
    });
}

/// What is known of a castle that has no state: its name.
fn unknown(castle: &Castle) -> Standing {
    Standing {
        castle: castle.spec.name.clone(),
        rehearsal: castle.place == Place::Rehearsal,
        incarnation: None,
        last_run: None,
        holder: None,
        steps: std::collections::BTreeMap::new(),
        damaged: std::collections::BTreeMap::new(),
        damage: None,
        now: None,
        rebirth: None,
    }
}

fn standing(castle: &Castle, peek: &Peek, now: Moment) -> Standing {
    let records = &peek.records;
    let at_work = peek.holder.as_ref();
    let rebirth = peek.rebirth.as_ref();
    Standing {
        castle: castle.spec.name.clone(),
        rehearsal: castle.place == Place::Rehearsal,
        incarnation: records.incarnation.clone(),
        last_run: records.last_run.as_ref().map(|run| LastRun {
            direction: run.direction,
            started: run.started,
            ended: run.ended,
        }),
        holder: at_work.map(holder_words),
        steps: records
            .steps
            .iter()
            .filter_map(|(id, state)| Some((id.clone(), known(state)?)))
            .collect(),
        damaged: peek.problems.iter().map(|(layer, e)| (layer.clone(), damage_words(e))).collect(),
        damage: peek.damage.as_ref().map(damage_words),
        now: at_work.and_then(|_| going_on(castle, now)),
        rebirth: rebirth.and_then(|rebirth| open_line(rebirth, &castle.command)),
    }
}

/// Who is at work, and if it does not move.
fn holder_words(holder: &Holder) -> String {
    match holder.presence() {
        Presence::Stopped => {
            format!(
                "{holder}, which is stopped (state T): `kill -CONT {}` lets it go on",
                holder.pid
            )
        }
        Presence::Alive | Presence::Gone | Presence::Unknown => holder.to_string(),
    }
}

/// The run that is going on, by its events. In a rehearsal its last event is the only clock that can be seen from here.
fn going_on(castle: &Castle, now: Moment) -> Option<Live> {
    let runs = Runs::at(&castle.state).ok().flatten()?;
    let last = runs.list().ok()?.pop()?;
    let mut progress = Progress::new(&castle::declare(&castle.spec));
    for event in runs.events(&last).ok().flatten()?.more().ok()? {
        progress.apply(&event);
    }
    let now = match castle.place {
        Place::Real => now,
        Place::Rehearsal => progress.now,
    };
    live(&progress, now)
}

fn known(state: &StepState) -> Option<Known> {
    match state.clone() {
        StepState::Absent => None,
        StepState::Intended { verb, task, at, .. } => Some(Known::Intended { verb, task, at }),
        StepState::Done { change, proof, at, .. } => Some(Known::Done { change, proof, at }),
        StepState::Failed { failure, at, .. } => Some(Known::Failed { failure, at }),
        StepState::Undone { at } => Some(Known::Undone { at }),
    }
}

/// The last moment that anything was written.
fn latest(peek: &Peek) -> Moment {
    let steps = peek.records.steps.values().map(|state| match state {
        StepState::Absent => Moment(0),
        StepState::Intended { at, .. }
        | StepState::Done { at, .. }
        | StepState::Failed { at, .. }
        | StepState::Undone { at } => *at,
    });
    let run = peek.records.last_run.as_ref().map(|run| run.ended.map_or(run.started, |(at, _)| at));
    steps.chain(run).max().unwrap_or_default()
}
