//! The graph for Mermaid, which Markdown readers draw.

use std::fmt::Write;

use super::sketch::Sketch;
use crate::style::clean;

/// The graph for Mermaid: layers are subgraphs, edges say what they prove, the critical path is thick.
#[must_use]
pub fn mermaid(sketch: &Sketch) -> String {
    let mut text = format!(
        "---\ntitle: \"castle {}; critical path: {}\"\n---\nflowchart LR\n",
        escaped(&sketch.castle),
        escaped(&sketch.critical)
    );
    for (number, layer) in sketch.layers.iter().enumerate() {
        let _ = writeln!(text, "  subgraph {layer}");
        for (at, drawn) in sketch.boxes.iter().enumerate().filter(|(_, b)| b.layer == number) {
            let label = format!("{}<br>{}", escaped(&drawn.name), escaped(&drawn.words));
            let shape = if drawn.ids.len() > 1 {
                format!("[[\"{label}\"]]")
            } else {
                format!("[\"{label}\"]")
            };
            let _ = writeln!(text, "    s{at}{shape}");
        }
        text.push_str("  end\n");
    }
    for arrow in &sketch.arrows {
        let line = if arrow.critical { "==>" } else { "-->" };
        let proof = escaped(&sketch.boxes[arrow.from].proof);
        let _ = writeln!(text, "  s{} {line}|\"{proof}\"| s{}", arrow.from, arrow.to);
    }
    let of = |is: &dyn Fn(usize) -> bool| -> Vec<String> {
        (0..sketch.boxes.len()).filter(|at| is(*at)).map(|at| format!("s{at}")).collect()
    };
    for (class, style, all) in [
        ("critical", "stroke-width:3px", of(&|at| sketch.boxes[at].critical)),
        ("proves", "stroke-dasharray:4 3", of(&|at| sketch.boxes[at].only_proves)),
    ] {
        if !all.is_empty() {
            let _ = writeln!(text, "  classDef {class} {style}\n  class {} {class}", all.join(","));
        }
    }
    text
}

fn escaped(text: &str) -> String {
    clean(text).replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;")
}
