//! The graph for Graphviz.

use std::fmt::Write;

use super::sketch::{Drawn, Sketch};
use crate::style::clean;

/// The longest line beside an arrow, in characters.
const BESIDE: usize = 28;

/// The graph for Graphviz: layers are clusters, edges say what they prove, the critical path is bold.
#[must_use]
pub fn dot(sketch: &Sketch) -> String {
    let label = format!("castle {}; critical path: {}", sketch.castle, sketch.critical);
    let mut text = format!(
        "digraph castle {{\n  label=\"{}\";\n  rankdir=LR;\n  node [shape=box];\n",
        quoted(&label)
    );
    for (number, layer) in sketch.layers.iter().enumerate() {
        let _ = writeln!(text, "  subgraph \"cluster_{layer}\" {{\n    label=\"{layer}\";");
        for drawn in sketch.boxes.iter().filter(|drawn| drawn.layer == number) {
            let style: Vec<&str> = [("bold", drawn.critical), ("dashed", drawn.only_proves)]
                .into_iter()
                .filter_map(|(style, is)| is.then_some(style))
                .collect();
            let label = format!("{}\\n{}", quoted(&drawn.name), quoted(&drawn.words));
            let style = match style.join(",") {
                none if none.is_empty() => none,
                style => format!(", style=\"{style}\""),
            };
            let _ = writeln!(text, "    {} [label=\"{label}\"{style}];", id(drawn));
        }
        text.push_str("  }\n");
    }
    for arrow in &sketch.arrows {
        let (from, to) = (&sketch.boxes[arrow.from], &sketch.boxes[arrow.to]);
        let style = if arrow.critical { ", style=bold" } else { "" };
        let (ends, proof) = (format!("{} -> {}", id(from), id(to)), lines(&from.proof));
        let _ = writeln!(text, "  {ends} [label=\"{proof}\"{style}];");
    }
    text.push_str("}\n");
    text
}

/// The name of the step, or of the first of those that are alike.
fn id(drawn: &Drawn) -> String {
    let id = drawn.ids.first().map(ToString::to_string).unwrap_or_default();
    format!("\"{}\"", quoted(&id))
}

/// A sentence beside an arrow, in lines: Graphviz breaks none by itself.
fn lines(sentence: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in quoted(sentence).split(' ') {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < BESIDE => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\\n")
}

fn quoted(text: &str) -> String {
    clean(text).replace('\\', "\\\\").replace('"', "\\\"")
}
