//! `castle why`: what a run waits for, by its events; readable while another process runs.

use castle_journal::{Runs, StateRoot};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::suggest::nearest;
use castle_model::{StepDecl, StepId};
use castle_view::Progress;
use castle_view::report::next;
use castle_view::why::{Asked, Why, text, why};

use crate::answer;
use crate::args::{Everywhere, WhyArgs};
use crate::broken::Broken;
use crate::castle::{self, Castle, Place};
use crate::commands::status::rehearsed_now;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::session::word;
use crate::settings::{Settings, Stream};
use crate::state::{self, state_problem, wall_clock};

/// Answers for one step, or for all that are open.
pub(crate) fn run(
    which: &Which,
    place: Place,
    args: &WhyArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    state::its_own(&castle)?;
    let decls = castle::declare(&castle.spec);
    let step = args.step.as_deref().map(|name| find(name, &decls, &castle)).transpose()?;
    let Some((progress, broken)) = last_run(&castle, &decls)? else {
        let (name, command) = (&castle.spec.name, &castle.command);
        output::talk(&format!("no run of castle `{name}` is known; `{command} up` begins one"));
        if everywhere.json {
            let nothing = Why { run: None, direction: None, over: true, steps: Vec::new() };
            output::data(&answer::line("why", &nothing));
        }
        return Ok(Exit::Done);
    };
    let holder = StateRoot::holder(&castle.state).map_err(|e| state_problem(&e))?;
    let now = match (place, &holder) {
        (Place::Real, _) => wall_clock(),
        (Place::Rehearsal, Some(_)) => rehearsed_now(&castle, progress.now),
        (Place::Rehearsal, None) => progress.now,
    };
    let deadlines = &castle.spec.deadlines;
    let over = progress.outcome.is_some() || holder.is_none();
    let asked = Asked { progress: &progress, decls: &decls, deadlines, now, over };
    let found = why(asked, step.as_ref());
    if everywhere.json {
        output::data(&answer::line("why", &found));
    } else if found.steps.is_empty() {
        output::say(&calm(&castle, &progress, holder.is_some()));
    } else {
        output::page(&text(&found, style(settings, Stream::Data)));
        if over && progress.outcome != Some(RunOutcome::Done) {
            let direction = progress.direction.unwrap_or(Direction::Up);
            let go_on = broken.still(&castle).go_on(&castle, direction);
            output::page(&format!("\n{}", next(&go_on)));
        }
    }
    Ok(Exit::Done)
}

/// The step of a name; without its layer too, if there is only one such.
fn find(name: &str, decls: &[StepDecl], castle: &Castle) -> Result<StepId, Problem> {
    let ids = || decls.iter().map(|decl| &decl.id);
    if let Some(id) = ids().find(|id| id.as_str() == name) {
        return Ok(id.clone());
    }
    let short = |id: &&StepId| id.as_str().split_once('/').is_some_and(|(_, rest)| rest == name);
    if let [id] = ids().filter(short).collect::<Vec<_>>().as_slice() {
        return Ok((*id).clone());
    }
    let known = ids().map(StepId::as_str);
    let shorter = ids().filter_map(|id| id.as_str().split_once('/')).map(|(_, rest)| rest);
    let problem = Problem::usage(format!("castle `{}` has no step `{name}`", castle.spec.name));
    Err(match nearest(name, known.chain(shorter)) {
        Some(near) => problem.hint(format!("did you mean `{near}`?")),
        None => problem.hint(format!("`{} graph` names every step", castle.command)),
    })
}

/// The run that is going on or was last, as its events tell it, and what was broken in it.
fn last_run(castle: &Castle, decls: &[StepDecl]) -> Result<Option<(Progress, Broken)>, Problem> {
    let problem = |e| state_problem(&e);
    let Some(runs) = Runs::at(&castle.state).map_err(problem)? else { return Ok(None) };
    let Some(last) = runs.list().map_err(problem)?.pop() else { return Ok(None) };
    let Some(mut reader) = runs.events(&last).map_err(problem)? else { return Ok(None) };
    let (mut progress, mut broken) = (Progress::new(decls), Broken::default());
    for event in reader.more().map_err(problem)? {
        progress.apply(&event);
        broken.note(&castle.spec, &event);
    }
    Ok(Some((progress, broken)))
}

/// Nothing is waited for: says so, and of which run.
fn calm(castle: &Castle, progress: &Progress, going_on: bool) -> String {
    let way = progress.direction.map_or("run", word);
    let run = progress.run.as_ref().map(|run| format!(" ({run})")).unwrap_or_default();
    if going_on {
        return format!("nothing is under way: {way}{run} is between two steps");
    }
    let command = &castle.command;
    format!(
        "nothing waits and nothing failed in the last run, {way}{run}; `{command} why STEP` tells what proved a step"
    )
}
