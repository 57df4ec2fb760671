//! `castle status`: what the journals know, readable while another process runs.

use castle_journal::{Holder, Peek, Presence, Runs, StateRoot, StepState};
use castle_model::RunId;
use castle_model::time::Moment;
use castle_rehearsal::host::desk::{self, Ask, Told};
use castle_view::Progress;
use castle_view::live::{Live, live};
use castle_view::status::{Known, LastRun, Standing, text};

use crate::answer;
use crate::args::Everywhere;
use crate::broken::Broken;
use crate::castle::{self, Castle, Place};
use crate::commands::rebirth::{damaged, history_of, open_line};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::settings::{Settings, Stream};
use crate::state::{self, damage_words, state_problem, wall_clock};

/// Prints each layer and step as the journals know them.
pub(crate) fn run(
    which: &Which,
    place: Place,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    state::its_own(&castle)?;
    let peek = StateRoot::peek(&castle.state).map_err(|e| state_problem(&e))?;
    let Some(peek) = peek else {
        output::talk(&format!(
            "castle `{}` has no state yet; `{} up` raises it",
            castle.spec.name, castle.command
        ));
        if everywhere.json {
            let decls = castle::declare(&castle.spec);
            let nothing = unknown(&castle).judged(&decls, &castle.command);
            output::data(&answer::line("status", &nothing));
        }
        return Ok(Exit::Done);
    };
    let now = match place {
        Place::Real => wall_clock(),
        Place::Rehearsal => rehearsed_now(&castle, latest(&peek).max(last_event(&castle))),
    };
    let mends = match last_run(&castle) {
        Some((_, broken)) if peek.holder.is_none() => broken.still(&castle).mends(&castle),
        _ => Vec::new(),
    };
    show(&castle, &peek, (now, mends), everywhere.json, settings);
    Ok(Exit::Done)
}

/// Prints what is known of a castle at a moment; `mends` are the commands that mend its rehearsal's world.
pub(crate) fn show(
    castle: &Castle,
    peek: &Peek,
    (now, mends): (Moment, Vec<String>),
    json: bool,
    settings: &Settings,
) {
    let decls = castle::declare(&castle.spec);
    let standing = Standing { mends, ..standing(castle, peek, now) };
    let standing = standing.judged(&decls, &castle.command);
    output::page(&if json {
        answer::line("status", &standing)
    } else {
        text(&standing, &decls, now, style(settings, Stream::Data))
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
        state: "",
        layers: std::collections::BTreeMap::new(),
        declared: 0,
        next: None,
        mends: Vec::new(),
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
    Standing {
        castle: castle.spec.name.clone(),
        rehearsal: castle.place == Place::Rehearsal,
        incarnation: records.incarnation.clone(),
        last_run: records.last_run.as_ref().map(|run| LastRun {
            direction: run.direction,
            started: run.started,
            ended: run.ended,
            took_ms: took(castle, &run.id),
        }),
        holder: at_work.map(holder_words),
        state: "",
        layers: std::collections::BTreeMap::new(),
        declared: 0,
        next: None,
        mends: Vec::new(),
        steps: records
            .steps
            .iter()
            .filter_map(|(id, state)| Some((id.clone(), known(state)?)))
            .collect(),
        damaged: peek.problems.iter().map(|(layer, e)| (layer.clone(), damage_words(e))).collect(),
        damage: peek.damage.as_ref().map(damage_words),
        now: at_work.and_then(|_| going_on(castle, now)),
        rebirth: match &peek.rebirth {
            Ok(rebirth) => rebirth.as_ref().and_then(|it| open_line(it, &castle.command)),
            Err(error) => Some(damaged(error, &castle.command)),
        },
    }
}

/// How long a run took, as the history has it: times of day may have jumped meanwhile.
fn took(castle: &Castle, run: &RunId) -> Option<u64> {
    let history = history_of(castle);
    history.runs.iter().rfind(|past| past.run == *run).map(|past| past.took_ms)
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

/// The time of a rehearsal. Between its processes it stands still where something was last written; who works on it knows how
/// late it is now, also while nothing happens.
pub(crate) fn rehearsed_now(castle: &Castle, last: Moment) -> Moment {
    match desk::ask(&state::datacenter(castle), &Ask::Clock) {
        Ok(Some(Told::Clock(now))) => now.max(last),
        _ => last,
    }
}

/// When the last event of the last run was told.
fn last_event(castle: &Castle) -> Moment {
    last_run(castle).map(|(progress, _)| progress.now).unwrap_or_default()
}

/// The run that is going on, by its events.
fn going_on(castle: &Castle, now: Moment) -> Option<Live> {
    live(&last_run(castle)?.0, now)
}

/// The last run, as its events tell it, and what was broken in it.
fn last_run(castle: &Castle) -> Option<(Progress, Broken)> {
    let runs = Runs::at(&castle.state).ok().flatten()?;
    let last = runs.list().ok()?.pop()?;
    let mut progress = Progress::new(&castle::declare(&castle.spec));
    let mut broken = Broken::default();
    for event in runs.events(&last).ok().flatten()?.more().ok()? {
        progress.apply(&event);
        broken.note(&castle.spec, &event);
    }
    Some((progress, broken))
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
