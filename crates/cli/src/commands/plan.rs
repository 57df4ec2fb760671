//! `castle plan`: what `up` would do, and why.

use std::sync::Arc;

use castle_engine::Outputs;
use castle_engine::survey::Surveyor;
use castle_journal::StateRoot;
use castle_model::plan::Direction;

use crate::args::{Everywhere, Pace};
use crate::castle;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::rehearsal::{Rehearsal, runtime};
use crate::session::{known, make_plan, state_problem};
use crate::settings::Settings;

/// Looks at the world and prints the plan. Changes nothing, and needs no lock.
pub(crate) fn run(
    which: &Which,
    pace: &Pace,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, Some(pace), settings)?;
    runtime()?.block_on(async {
        let host = rehearsal.look()?;
        host.spawn_driver();
        let peek = StateRoot::peek(&rehearsal.state).map_err(|e| state_problem(&e))?;
        let records = peek.map(|p| p.records).unwrap_or_default();
        let graph = castle::graph(&rehearsal.spec, &host)?;
        let surveyor = Surveyor {
            graph: &graph,
            records: &records,
            outputs: Arc::<Outputs>::default(),
            deadlines: &rehearsal.spec.deadlines,
        };
        let survey = surveyor.look().await;
        let plan =
            make_plan(Direction::Up, &rehearsal.spec.name, &graph, &survey, &known(&records))?;
        output::data(&if everywhere.json {
            castle_view::plan::json(&plan).unwrap_or_default()
        } else {
            castle_view::plan::text(&plan, style(settings))
        });
        Ok(Exit::Done)
    })
}
