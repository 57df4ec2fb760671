//! `castle status`: what the journals know, readable while another process runs.

use castle_journal::{Peek, StateRoot, StepState};
use castle_model::time::Moment;
use castle_view::status::{Known, LastRun, Standing, text};

use crate::args::Everywhere;
use crate::castle::{self, Castle, Place};
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
    let standing = standing(castle, peek);
    output::data(&if json {
        serde_json::to_string(&standing).unwrap_or_default()
    } else {
        text(&standing, &castle::declare(&castle.spec), now, style(settings))
    });
}

fn standing(castle: &Castle, peek: &Peek) -> Standing {
    let records = &peek.records;
    Standing {
        castle: castle.spec.name.clone(),
        rehearsal: castle.place == Place::Rehearsal,
        incarnation: records.incarnation.clone(),
        last_run: records.last_run.as_ref().map(|run| LastRun {
            direction: run.direction,
            started: run.started,
            ended: run.ended,
        }),
        holder: peek.holder.as_ref().map(ToString::to_string),
        steps: records
            .steps
            .iter()
            .filter_map(|(id, state)| Some((id.clone(), known(state)?)))
            .collect(),
        damaged: peek.problems.iter().map(|(layer, e)| (layer.clone(), damage_words(e))).collect(),
        damage: peek.damage.as_ref().map(damage_words),
    }
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
