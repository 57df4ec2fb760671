//! `castle plan`: what `up` would do, and why.

use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs};
use castle_journal::{Peek, Records, StateError, StateRoot};
use castle_layers::secrets::source::Access;
use castle_model::plan::{Direction, Drift};
use castle_model::{StepId, UndoKind};
use castle_plan::{Look, Seen, Survey};
use castle_view::plan::{answer_of_refused, text_of_refused};
use castle_wire::World;

use crate::address;
use crate::answer;
use crate::args::{Everywhere, Pace};
use crate::castle::{self, Castle, Place};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::faults;
use crate::lock;
use crate::output;
use crate::project::Which;
use crate::real::{self, Heard};
use crate::rehearsal::{self, Rehearsal};
use crate::session::{known, make_plan};
use crate::settings::{Settings, Stream};
use crate::state::{self, damage_words, state_problem};

/// Looks at the world and prints the plan. Changes nothing, and needs no lock.
pub(crate) fn run(
    which: &Which,
    place: Place,
    pace: &Pace,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    if place == Place::Real {
        real::refuse_pace(pace)?;
        let castle = Castle::find(which, place, everywhere, settings)?;
        lock::judge(&castle, everywhere.json)?;
        let access = real::access(&castle, settings)?;
        let (world, heard) = real::noted_world(settings)?;
        if !everywhere.json {
            output::say(&real::announce(&castle));
        }
        let look = look(&castle, (&world, &heard), access, everywhere.json, settings);
        return real::runtime()?.block_on(look);
    }
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(pace), settings)?;
    let rules = faults::rules(&pace.faults, &rehearsal.castle.spec, everywhere.json)?;
    lock::judge(&rehearsal.castle, everywhere.json)?;
    if !everywhere.json {
        let source = &rehearsal.castle.source;
        output::say(&format!("rehearsal of {source}: no real machine is looked at"));
    }
    rehearsal::runtime()?.block_on(async {
        let host = rehearsal.look()?;
        host.spawn_driver();
        let struck = faults::arm(&host, rules, everywhere.json, None);
        let access = rehearsal.access(&host);
        let seen = (&host.world(), &Heard::default());
        let exit = look(&rehearsal.castle, seen, access, everywhere.json, settings).await;
        struck.tell_alone(everywhere.json);
        faults::close(&host, everywhere.json);
        exit
    })
}

async fn look(
    castle: &Castle,
    (world, heard): (&World, &Heard),
    access: Access,
    json: bool,
    settings: &Settings,
) -> Result<Exit, Problem> {
    state::its_own(castle)?;
    let peek = StateRoot::peek(&castle.state).map_err(|e| state_problem(&e))?;
    if let Some(peek) = &peek {
        tell_damage(castle, peek)?;
    }
    let rebirth = peek.as_ref().and_then(|peek| peek.rebirth.as_ref().ok().cloned().flatten());
    let records = peek.map(|p| p.records).unwrap_or_default();
    // The plan is what there is to be done all the same; nobody should take it for what comes next.
    if let Some(problem) = state::half(castle, &records, rebirth.as_ref()) {
        output::say(&format!(
            "notice: {}, so `up` will refuse: {}",
            problem.what,
            problem.hint.unwrap_or_default()
        ));
    }
    show(castle, &records, (world, heard), access, json, settings).await
}

/// Tells which journals can not be believed, and that this plan does without them, as `up` will.
fn tell_damage(castle: &Castle, peek: &Peek) -> Result<(), Problem> {
    if let Some(newer) = peek.problems.values().find(|e| !matches!(e, StateError::Corrupt(_))) {
        return Err(state_problem(newer));
    }
    let up = format!(
        "`{} up` sets it aside and reads the world instead, as this plan does",
        castle.command
    );
    if let Some(damage) = &peek.damage {
        output::say(&format!("notice: the journals are damaged: {}; {up}", damage_words(damage)));
    }
    for (layer, error) in &peek.problems {
        let why = damage_words(error);
        output::say(&format!("notice: the journal of the layer {layer} is damaged: {why}; {up}"));
    }
    Ok(())
}

/// Prints the plan of a castle of which this is known.
pub(crate) async fn show(
    castle: &Castle,
    records: &Records,
    (world, heard): (&World, &Heard),
    access: Access,
    json: bool,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let graph = castle::graph(&castle.spec, world, access)?;
    let outputs = Arc::<Outputs>::default();
    let surveyor = Surveyor {
        graph: &graph,
        records,
        outputs: outputs.clone(),
        deadlines: &castle.spec.deadlines,
    };
    let known = known(records);
    let looks = async {
        let survey = surveyor.look().await;
        let further = surveyor.look_further(&survey, &known).await;
        (survey, further)
    };
    let (survey, further) = match castle.place {
        Place::Real => real::patiently(looks, heard, &outputs, settings).await,
        Place::Rehearsal => looks.await,
    };
    let plan = make_plan(Direction::Up, &castle.spec.name, &graph, &survey, &known)?;
    let left = outputs.left();
    let seen = Seen { survey: &survey, further: &further, known: &known };
    let mut drift = castle_plan::drift(&plan, seen);
    drift.extend(left.iter().map(|left| Drift {
        step: left.step.clone(),
        owner: left.owner.clone(),
        what: left.what.clone(),
        then: "left so".to_owned(),
    }));
    let unseen_yet = castle_plan::unseen(&plan, seen);
    let is_refused = state::half(castle, records, None).is_some();
    output::data(&if json {
        let whole = if is_refused { answer_of_refused } else { castle_view::plan::answer };
        answer::line("plan", &whole(&plan, drift, unseen_yet))
    } else {
        let page = if is_refused { text_of_refused } else { castle_view::plan::text };
        let text = page(&plan, style(settings, Stream::Data));
        let style = style(settings, Stream::Data);
        let text = text + &castle_view::plan::drift(&plan, &drift, &unseen_yet, style);
        address::text(&text).into_owned()
    });
    let told = |text: &String| left.iter().any(|left| left.note == *text);
    for text in outputs.take_notices().iter().filter(|text| !told(text)) {
        output::say(&format!("notice: {text}"));
    }
    Ok(unseen(&graph, &survey))
}

/// How a plan ends that is half a plan. What is refused it says itself; what everything hangs on and does not answer now is
/// told here.
fn unseen(graph: &Graph, survey: &Survey) -> Exit {
    let mut exit = Exit::Done;
    for (step, look) in survey {
        let Look::Failed(failure) = look else { continue };
        if !failure.is_transient() {
            exit = Exit::Failed;
            continue;
        }
        // Machines that are just booting answer later; that is no failure of the plan.
        if !founds(graph, step) {
            continue;
        }
        let problem = Problem::failure(failure);
        exit = problem.exit;
        let what = format!("{step} could not be looked at: {}", problem.what);
        output::say(&Problem { what, ..problem }.to_string());
    }
    exit
}

/// Whether everything else hangs on this look: the secret source, and what is first asked with its credentials.
fn founds(graph: &Graph, step: &StepId) -> bool {
    let always = |id: &StepId| graph.decls().iter().any(|decl| decl.id == *id && decl.always);
    let decl = graph.decls().iter().find(|decl| decl.id == *step);
    decl.is_some_and(|decl| {
        let makes_nothing = matches!(decl.undo, UndoKind::Nothing { .. });
        decl.always || (makes_nothing && decl.needs.iter().all(always))
    })
}
