//! `castle history`: what earlier runs took, and what has become slower.

use castle_journal::Runs;
use castle_view::history;

use crate::answer;
use crate::args::Everywhere;
use crate::castle::{Castle, Place, layers};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::settings::{Settings, Stream};
use crate::state::{self, state_problem};

/// Prints the history of a castle.
pub(crate) fn run(
    which: &Which,
    place: Place,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let castle = Castle::find(which, place, everywhere, settings)?;
    state::its_own(&castle)?;
    let runs = Runs::at(&castle.state).map_err(|e| state_problem(&e))?;
    let history = runs.map(|runs| runs.history()).transpose().map_err(|e| state_problem(&e))?;
    let history = history.unwrap_or_default();
    if history.skipped > 0 {
        output::talk(&format!(
            "notice: {} lines of the history could not be read and were passed over",
            history.skipped
        ));
    }
    if everywhere.json {
        for run in &history.runs {
            output::data(&answer::line("past-run", run));
        }
        return Ok(Exit::Done);
    }
    if history.runs.is_empty() {
        output::talk(&format!(
            "no run of castle `{}` is remembered yet; `{} up` is the first",
            castle.spec.name, castle.command
        ));
        return Ok(Exit::Done);
    }
    let (rehearsal, layers) = (place == Place::Rehearsal, layers(&castle.spec));
    let name = &castle.spec.name;
    output::page(&history::text(
        name,
        rehearsal,
        &layers,
        &history.runs,
        style(settings, Stream::Data),
    ));
    Ok(Exit::Done)
}
