//! The graph of steps as a picture, text, dot, Mermaid and JSON, without the edges that others already imply.
//!
//! ```text
//!   steps ──reduce──▶ edges ──sketch──▶ boxes and arrows ──┬─▶ dot, Mermaid
//!                                                          └─▶ svg: rank ─▶ grid ─▶ order ─▶ place
//! ```

#[cfg(test)]
mod any;
mod dot;
mod grid;
mod label;
mod letters;
mod mermaid;
mod order;
mod place;
mod rank;
mod reduce;
mod simplex;
mod sketch;
mod svg;

use std::fmt::Write;

use castle_model::{LayerName, StepDecl, StepId};
use serde_json::json;

pub use self::dot::dot;
pub use self::mermaid::mermaid;
pub use self::reduce::reduced;
pub use self::sketch::{Sketch, Times};
pub use self::svg::svg;
use crate::style::{Style, Tone};

/// Steps under their layers, each with what it proves and what it comes after; the critical path closes it.
#[must_use]
pub fn text(decls: &[StepDecl], times: &Times, style: Style) -> String {
    let edges = reduced(decls);
    let mut text = String::new();
    for (layer, steps) in by_layer(decls) {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&style.paint(Tone::Title, layer.as_str()));
        text.push('\n');
        for decl in steps {
            let title = format!("{} ({})", kind(&decl.id), decl.title);
            text.push_str(&style.hang("  ", &title, None));
            text.push('\n');
            text.push_str(&style.hang("    proves ", &decl.proves, None));
            text.push('\n');
            let after: Vec<String> = edges[&decl.id]
                .iter()
                .map(|need| {
                    let same = need.layer() == layer.as_str();
                    if same { kind(need).to_owned() } else { need.to_string() }
                })
                .collect();
            if !after.is_empty() {
                text.push_str(&style.hang("    after ", &after.join(", "), Some(Tone::Quiet)));
                text.push('\n');
            }
        }
    }
    let path = sketch::critical(decls, times);
    if !path.is_empty() {
        let total = path.iter().map(|step| times.of_step(&decls[*step].id)).sum();
        let names: Vec<&str> = path.iter().map(|step| decls[*step].id.as_str()).collect();
        let length = castle_model::time::length(total);
        let _ = writeln!(text, "\ncritical path ({length} {})", times.words());
        text.push_str(&style.hang("  ", &names.join(", "), None));
        text.push('\n');
    }
    text
}

/// The graph as JSON: every declared step, with `needs` reduced, what it proves and how long it takes.
#[must_use]
pub fn json(decls: &[StepDecl], times: &Times) -> serde_json::Value {
    let edges = reduced(decls);
    let path = sketch::critical(decls, times);
    let took = |decl: &StepDecl| times.of_step(&decl.id);
    let steps: Vec<serde_json::Value> = decls
        .iter()
        .map(|decl| {
            json!({
                "id": decl.id,
                "layer": decl.layer,
                "title": decl.title,
                "needs": edges[&decl.id],
                "proves": decl.proves,
                "takes_ms": took(decl),
                "lane": decl.lane,
                "weight": decl.weight,
            })
        })
        .collect();
    let layers: Vec<serde_json::Value> = by_layer(decls)
        .into_iter()
        .map(|(layer, steps)| {
            let ids: Vec<&StepId> = steps.iter().map(|decl| &decl.id).collect();
            json!({ "layer": layer, "steps": ids })
        })
        .collect();
    let chain: Vec<&StepId> = path.iter().map(|step| &decls[*step].id).collect();
    let total: u64 = path.iter().map(|step| took(&decls[*step])).sum();
    json!({
        "layers": layers,
        "steps": steps,
        "critical": { "run": times.run, "steps": chain, "takes_ms": total },
    })
}

/// The layers in the order of their first step, each with its steps.
fn by_layer(decls: &[StepDecl]) -> Vec<(&LayerName, Vec<&StepDecl>)> {
    let mut layers: Vec<(&LayerName, Vec<&StepDecl>)> = Vec::new();
    for decl in decls {
        match layers.iter_mut().find(|(layer, _)| *layer == &decl.layer) {
            Some((_, steps)) => steps.push(decl),
            None => layers.push((&decl.layer, vec![decl])),
        }
    }
    layers
}

/// The name of a step within its layer.
fn kind(id: &StepId) -> &str {
    id.as_str().split_once('/').map_or(id.as_str(), |(_, rest)| rest)
}

#[cfg(test)]
mod tests;
