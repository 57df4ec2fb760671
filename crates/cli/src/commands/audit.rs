//! `castle audit`: what is there of a castle, asked of the world and not of our records.

use castle_journal::{Records, StateRoot, StepState};
use castle_layers::audit::audit;
use castle_layers::secrets::source::Access;
use castle_model::Verb;
use castle_model::plan::Direction;
use castle_wire::World;

use crate::args::{AuditArgs, Everywhere};
use crate::castle::{Castle, Place};
use crate::clearing::show;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::real;
use crate::rehearsal::{self, Rehearsal};
use crate::settings::Settings;
use crate::state;

/// Looks, shows, and ends with the exit code of leftovers if anything is not as it should be. Changes nothing, and needs
/// no lock.
pub(crate) fn run(
    which: &Which,
    place: Place,
    args: &AuditArgs,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    if place == Place::Real {
        let castle = Castle::find(which, place, everywhere, settings)?;
        let access = real::access(&castle, settings)?;
        let world = real::world(settings)?;
        if !everywhere.json {
            output::say(&real::announce(&castle));
        }
        let gone = should_be_gone(&castle, args)?;
        let look = look(&castle, (&world, &access), gone, everywhere.json, settings);
        return real::runtime()?.block_on(look);
    }
    let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    rehearsal::runtime()?.block_on(async {
        let host = rehearsal.look()?;
        host.spawn_driver();
        let access = rehearsal.access(&host);
        let (seen, gone) = ((&host.world(), &access), should_be_gone(&rehearsal.castle, args)?);
        look(&rehearsal.castle, seen, gone, everywhere.json, settings).await
    })
}

/// What is told of the castle beforehand: nothing that our records say decides what is there, only what should be.
fn should_be_gone(castle: &Castle, args: &AuditArgs) -> Result<Option<bool>, Problem> {
    if args.gone {
        return Ok(Some(true));
    }
    state::its_own(castle)?;
    let peek = StateRoot::peek(&castle.state).ok().flatten();
    Ok(peek.and_then(|peek| is_gone(&peek.records)))
}

/// Looks and shows.
pub(crate) async fn look(
    castle: &Castle,
    (world, access): (&World, &Access),
    gone: Option<bool>,
    json: bool,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let found = audit(&castle.spec, world, access, gone).await;
    let found = found.map_err(|failure| Problem::failure(&failure))?;
    show(&found, json, settings);
    Ok(if found.amiss().next().is_some() { Exit::Leftovers } else { Exit::Done })
}

/// Whether a castle should be gone, as far as its journals tell.
pub(crate) fn is_gone(records: &Records) -> Option<bool> {
    let last = records.last_run.as_ref()?;
    if last.direction == Direction::Up {
        return Some(false);
    }
    let razed = |state: &StepState| match state {
        StepState::Undone { .. } => true,
        StepState::Intended { verb, .. } => *verb == Verb::Remove,
        StepState::Failed { at, .. } => *at >= last.started,
        StepState::Absent | StepState::Done { .. } => false,
    };
    // One layer alone may have gone, while the machines stand.
    let mut machines = records.steps.iter().filter(|(id, _)| id.layer() == "platform");
    Some(records.incarnation.is_none() || machines.any(|(_, state)| razed(state)))
}
