//! `castle graph`: the steps and what they need, before anything exists.

use castle_journal::Runs;
use castle_model::StepDecl;
use castle_model::plan::Direction;
use castle_view::graph::{self, Sketch, Times};

use crate::answer;
use crate::args::{Everywhere, Graph, GraphFormat, GraphTimes};
use crate::castle::{self, Castle, Place};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::Which;
use crate::settings::{Settings, Stream};

/// Prints the graph of a castle file.
pub(crate) fn run(
    which: &Which,
    args: &Graph,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let asked = args.format.unwrap_or(GraphFormat::Json);
    if everywhere.json && asked != GraphFormat::Json {
        return Err(Problem::usage("--json and --format ask for two forms of one graph")
            .hint("leave one of them out"));
    }
    let castle = Castle::find(which, Place::of(which), everywhere, settings)?;
    let decls = castle::declare(&castle.spec);
    let times = times(&castle, &decls, args.times);
    let text = if everywhere.json { GraphFormat::Json } else { GraphFormat::Text };
    let sketch = || Sketch::of(&castle.spec.name, &decls, &times, args.expand);
    output::data(&match args.format.unwrap_or(text) {
        GraphFormat::Text => graph::text(&decls, &times, style(settings, Stream::Data)),
        GraphFormat::Svg => graph::svg(&sketch()),
        GraphFormat::Dot => graph::dot(&sketch()),
        GraphFormat::Mermaid => graph::mermaid(&sketch()),
        GraphFormat::Json => answer::line("graph", &graph::json(&decls, &times)),
    });
    Ok(Exit::Done)
}

/// Those of the last run that raised this castle, if there was one and they are not to be left out.
fn times(castle: &Castle, decls: &[StepDecl], wanted: GraphTimes) -> Times {
    let runs = Runs::at(&castle.state).ok().flatten().filter(|_| wanted == GraphTimes::Last);
    let history = runs.and_then(|runs| runs.history().ok()).unwrap_or_default();
    let raised = history.runs.iter().rfind(|run| {
        let known = decls.iter().filter(|decl| run.steps.contains_key(&decl.id)).count();
        run.is_whole() && run.direction == Direction::Up && run.changed > 0 && known == decls.len()
    });
    raised.map_or_else(|| Times::usual(decls), Times::of)
}
