//! `castle graph`: the steps and what they need, before anything exists.

use crate::args::{Everywhere, Graph, GraphFormat};
use crate::castle::{self, Place};
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::project::{self, Which};
use crate::settings::Settings;

/// Prints the graph of a castle file.
pub(crate) fn run(
    which: &Which,
    args: &Graph,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let decls = castle::declare(&project::spec(which, Place::Real, everywhere.json, settings)?);
    let format = if everywhere.json { GraphFormat::Json } else { args.format };
    output::data(&match format {
        GraphFormat::Text => castle_view::graph::text(&decls, style(settings)),
        GraphFormat::Dot => castle_view::graph::dot(&decls),
        GraphFormat::Mermaid => castle_view::graph::mermaid(&decls),
        GraphFormat::Json => castle_view::graph::json(&decls),
    });
    Ok(Exit::Done)
}
