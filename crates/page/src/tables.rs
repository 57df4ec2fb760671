//! The tables under the picture: the layers, what became slower, and what happened on the way.

use castle_model::time::length;
use castle_view::timeline::{LayerTrack, Timeline};

use crate::html::{Node, el};
use crate::scale::{against, clock};
use crate::summary::link;

/// A table with its heading, which may be wider than a phone.
fn section(id: &'static str, title: &str, heads: &[&str], rows: Vec<Node>) -> Node {
    let heads = heads.iter().map(|head| el("th").attr("scope", "col").text(head));
    let table = el("table")
        .attr("aria-labelledby", id)
        .child(el("thead").child(el("tr").children(heads)))
        .child(el("tbody").children(rows));
    el("section").attr("aria-labelledby", id).child(el("h2").attr("id", id).text(title)).child(
        el("div")
            .class("wide")
            .attr("tabindex", "0")
            .attr("role", "region")
            .attr("aria-labelledby", id)
            .child(table),
    )
}

fn cell(text: &str) -> Node {
    el("td").text(text)
}

fn head(text: &str) -> Node {
    el("th").attr("scope", "row").text(text)
}

/// The layers, counted and compared.
pub(crate) fn layers(timeline: &Timeline) -> Node {
    let troubled = timeline.layers.iter().any(|layer| layer.tally.failed + layer.tally.not_run > 0);
    let compared = &timeline.compared;
    let mut heads = vec!["layer", "steps", "done", "changed"];
    if troubled {
        heads.extend(["failed", "not run"]);
    }
    heads.extend(["began", "took"]);
    if compared.previous.is_some() {
        heads.push("previous run");
    }
    if compared.record.is_some() {
        heads.push("fastest run");
    }
    let previous = compared.previous.as_ref();
    let record = compared.record.as_ref();
    let mut rows = Vec::new();
    for layer in &timeline.layers {
        let took = layer.span.map(|_| layer.tally.took_ms());
        let other = |time: Option<u64>| match took.zip(time) {
            Some((took, time)) => against(took, time),
            None => "–".to_owned(),
        };
        let row = counted(layer, troubled)
            .child(cell(&layer.span.map_or_else(|| "–".to_owned(), |(begin, _)| clock(begin))))
            .child(cell(&took.map_or_else(|| "–".to_owned(), length)))
            .maybe(previous.map(|run| cell(&other(run.layers.get(&layer.name).copied()))))
            .maybe(record.map(|run| cell(&other(run.layers.get(&layer.name).copied()))));
        rows.push(row);
    }
    let sum = |count: &dyn Fn(&LayerTrack) -> usize| {
        cell(&timeline.layers.iter().map(count).sum::<usize>().to_string())
    };
    let mut all = el("tr").class("all").child(head("all"));
    all = all
        .child(sum(&|l| l.tally.steps))
        .child(sum(&|l| l.tally.done))
        .child(sum(&|l| l.tally.changed));
    if troubled {
        all = all.child(sum(&|l| l.tally.failed)).child(sum(&|l| l.tally.not_run));
    }
    all = all
        .child(cell("0:00"))
        .child(cell(&length(timeline.took_ms)))
        .maybe(previous.map(|run| cell(&against(timeline.took_ms, run.took_ms))))
        .maybe(record.map(|run| cell(&against(timeline.took_ms, run.took_ms))));
    rows.push(all);
    section("layers", "Layers", &heads, rows)
}

fn counted(layer: &LayerTrack, troubled: bool) -> Node {
    let tally = &layer.tally;
    let mut numbers = vec![tally.steps, tally.done, tally.changed];
    if troubled {
        numbers.extend([tally.failed, tally.not_run]);
    }
    let cells = numbers.into_iter().map(|number| cell(&number.to_string()));
    el("tr").child(head(layer.name.as_str())).children(cells)
}

/// What took notably longer than in the previous run; none if nothing did.
pub(crate) fn slower(timeline: &Timeline) -> Option<Node> {
    let rows: Vec<Node> = timeline
        .compared
        .slower()
        .iter()
        .filter_map(|slower| {
            let step = timeline.step(&slower.step)?;
            let path = if step.critical { "yes" } else { "no" };
            Some(
                el("tr")
                    .child(el("th").attr("scope", "row").child(link(step)))
                    .child(cell(&length(slower.took_ms)))
                    .child(cell(&length(slower.previous_ms)))
                    .child(cell(&format!("{} slower", length(slower.by()))))
                    .child(cell(path)),
            )
        })
        .collect();
    let heads = ["step", "took", "previous run", "by", "on the critical path"];
    (!rows.is_empty()).then(|| section("slower", "What became slower", &heads, rows))
}

/// What happened beside the steps' own work; none if nothing did.
pub(crate) fn happenings(timeline: &Timeline) -> Option<Node> {
    let rows: Vec<Node> = timeline
        .happenings
        .iter()
        .map(|happening| {
            let step = happening.step.as_ref();
            let who = match step.and_then(|id| timeline.step(id)) {
                Some(step) => {
                    el("td").class("what").child(link(step)).text(&format!(" {}", happening.text))
                }
                None => el("td").class("what").text(&happening.text),
            };
            el("tr")
                .child(cell(&clock(happening.at_ms)))
                .child(cell(happening.kind.word()))
                .child(who)
        })
        .collect();
    let heads = ["when", "what", ""];
    (!rows.is_empty()).then(|| section("happened", "On the way", &heads, rows))
}
