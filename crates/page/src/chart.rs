//! The picture itself: a row for each step, layer by layer, on one axis of time.

use castle_model::time::length;
use castle_view::timeline::{HappeningKind, LayerTrack, Segment, SegmentKind, Timeline, Track};
use castle_view::{StepStatus, count};

use crate::detail;
use crate::html::{Node, el};
use crate::scale::{Scale, clock};
use crate::summary::short;

/// The section of the picture.
pub(crate) fn section(timeline: &Timeline) -> Node {
    // A little room behind the end, so that what ends there can be seen.
    let scale = Scale::new(timeline.span_ms + timeline.span_ms / 80);
    let layers = timeline.layers.iter().map(|layer| group(layer, timeline, scale));
    let chart = el("div")
        .class("chart")
        .attr("style", format!("--tick:{}", scale.percent(scale.step)))
        .maybe(lane(timeline, scale))
        .children(layers);
    el("section")
        .class("timeline")
        .attr("aria-labelledby", "steps")
        .child(el("h2").attr("id", "steps").text("Timeline"))
        .child(
            el("p")
                .class("quiet")
                .text("Every step on one axis of time. Open a row to see why it ran, what it waited for and what proves it."),
        )
        .child(legend(timeline))
        .child(tools())
        .child(el("div").class("scroller").attr("tabindex", "0").attr("role", "region").attr("aria-label", "Steps over time").child(chart))
}

fn legend(timeline: &Timeline) -> Node {
    let item = |class: &'static str, text: &str| {
        el("li")
            .child(el("i").attr("class", class).attr("aria-hidden", "true"))
            .text(&format!(" {text}"))
    };
    let has = |kind| timeline.steps().any(|step| step.spent(kind) > 0);
    let mut items = vec![item("bar work", "work")];
    if has(SegmentKind::Wait) {
        items.push(item("bar wait", "waiting"));
    }
    if has(SegmentKind::Pause) {
        items.push(item("bar pause", "pause before another try"));
    }
    if timeline.steps().any(|step| step.critical) {
        items.push(item("bar work hot", "◆ on the critical path"));
    }
    if timeline.steps().any(|step| step.slack_ms.is_some_and(|slack| slack > 0)) {
        items.push(item("slack", "slack: could have ended so much later"));
    }
    if timeline.steps().any(|step| step.status == StepStatus::Failed) {
        items.push(item("bar work failed", "✕ failed"));
    }
    for (class, text) in [
        ("flag broke", "on the way: a fault, a poke, something left over"),
        ("flag reached", "on the way: handover, milestone"),
        ("flag", "on the way: a notice"),
    ] {
        if timeline.happenings.iter().any(|happening| flag(happening.kind) == class) {
            items.push(item(class, text));
        }
    }
    el("ul").class("legend").attr("aria-label", "Legend").children(items)
}

/// The sign of something that happened on the way.
fn flag(kind: HappeningKind) -> &'static str {
    match kind {
        HappeningKind::Fault | HappeningKind::Poke | HappeningKind::Leftover => "flag broke",
        HappeningKind::Handover | HappeningKind::Milestone => "flag reached",
        HappeningKind::Notice | HappeningKind::Interrupted => "flag",
    }
}

/// What only a script can do; without one it is not there.
fn tools() -> Node {
    let button = |act: &'static str, text: &str| {
        el("button").attr("type", "button").attr("data-zoom", act).text(text)
    };
    el("div")
        .class("tools")
        .attr("hidden", "")
        .child(
            el("label").text("Search steps ").child(
                el("input")
                    .attr("type", "search")
                    .attr("id", "search")
                    .attr("placeholder", "a name, a reason, a machine")
                    .attr("autocomplete", "off"),
            ),
        )
        .child(
            el("div")
                .class("zoom")
                .attr("role", "group")
                .attr("aria-label", "Zoom")
                .child(button("out", "−").attr("aria-label", "Zoom out"))
                .child(button("fit", "whole run"))
                .child(button("in", "+").attr("aria-label", "Zoom in")),
        )
        .child(el("p").class("quiet").attr("id", "found").attr("role", "status"))
}

/// The lane of what happened beside the steps; none if nothing did.
fn lane(timeline: &Timeline, scale: Scale) -> Option<Node> {
    if timeline.happenings.is_empty() {
        return None;
    }
    let flags = timeline.happenings.iter().map(|happening| {
        let word = happening.kind.word();
        el("i")
            .attr("class", flag(happening.kind))
            .attr("style", format!("left:{}", scale.percent(happening.at_ms)))
            .attr("title", format!("{} {word}: {}", clock(happening.at_ms), happening.text))
    });
    Some(
        el("div")
            .class("row lane")
            .child(
                el("div").class("name").child(el("a").attr("href", "#happened").text("on the way")),
            )
            .child(el("div").class("track").attr("aria-hidden", "true").children(flags))
            .child(el("div").class("time").text(&count(timeline.happenings.len(), "moment"))),
    )
}

fn group(layer: &LayerTrack, timeline: &Timeline, scale: Scale) -> Node {
    let took = match layer.span {
        Some(_) => length(layer.tally.took_ms()),
        None => "did not run".to_owned(),
    };
    let marks = scale
        .marks()
        .map(|at| el("span").attr("style", format!("left:{}", scale.percent(at))).text(&clock(at)));
    let envelope = layer
        .span
        .map(|(begin, end)| el("i").class("envelope").attr("style", scale.place(begin, end)));
    let head = el("div")
        .class("row head")
        .child(el("h3").class("name").text(layer.name.as_str()))
        .child(el("div").class("track").attr("aria-hidden", "true").children(marks).maybe(envelope))
        .child(el("div").class("time").text(&took));
    let rows = layer.steps.iter().map(|step| row(step, timeline, scale));
    el("section")
        .class("layer")
        .attr("aria-label", format!("layer {}", layer.name))
        .child(head)
        .children(rows)
}

fn row(step: &Track, timeline: &Timeline, scale: Scale) -> Node {
    let failed = step.status == StepStatus::Failed;
    let class = match (step.critical, failed, step.span.is_some()) {
        (true, true, _) => "row step hot failed",
        (false, true, _) => "row step failed",
        (true, ..) => "row step hot",
        (_, _, false) => "row step idle",
        _ => "row step",
    };
    let mark = match (failed, step.critical) {
        (true, true) => "✕ ◆ ",
        (true, false) => "✕ ",
        (false, true) => "◆ ",
        (false, false) => "",
    };
    let name = el("span")
        .class("name")
        .child(el("b").text(&format!("{mark}{}", short(step))))
        .child(el("small").text(&step.title));
    let summary = el("summary")
        .child(name)
        .child(el("span").class("track").attr("aria-hidden", "true").children(bars(step, scale)))
        .child(el("span").class("time").children(times(step)));
    el("details")
        .attr("class", class)
        .attr("id", step.id.as_str())
        .flag("open", failed)
        .child(summary)
        .child(detail::of(step, timeline))
}

/// The stretches of a step, neighbours of one kind as one bar, and its slack behind them.
fn bars(step: &Track, scale: Scale) -> Vec<Node> {
    let mut bars = Vec::new();
    for run in step.segments.chunk_by(|one, other| one.kind == other.kind) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let class = match first.kind {
            SegmentKind::Work => "bar work",
            SegmentKind::Wait => "bar wait",
            SegmentKind::Pause => "bar pause",
        };
        bars.push(
            el("i")
                .attr("class", class)
                .attr("style", scale.place(first.begin_ms, last.end_ms))
                .attr("title", hover(run, first, last)),
        );
    }
    if step.segments.is_empty()
        && let Some((begin, end)) = step.span
    {
        bars.push(el("i").class("bar work").attr("style", scale.place(begin, end)));
    }
    let slack = step.slack_ms.filter(|slack| *slack > 0 && !step.critical);
    if let (Some(slack), Some((_, end))) = (slack, step.span) {
        bars.push(
            el("i")
                .class("slack")
                .attr("style", scale.place(end, end.saturating_add(slack)))
                .attr("title", format!("slack: {}", length(slack))),
        );
    }
    bars
}

/// What a pointer over a bar is told: what it is, when, and the last reason; all of them are in the row.
fn hover(run: &[Segment], first: &Segment, last: &Segment) -> String {
    let word = detail::word(first.kind);
    let took = length(last.end_ms.saturating_sub(first.begin_ms));
    let (from, to) = (clock(first.begin_ms), clock(last.end_ms));
    let why = last.why.as_deref().map_or_else(String::new, |why| format!(": {why}"));
    let more = if run.len() > 1 { format!(" ({} reasons)", run.len()) } else { String::new() };
    format!("{word} {from} to {to}, {took}{more}{why}")
}

fn times(step: &Track) -> Vec<Node> {
    let Some((begin, end)) = step.span else {
        let word = if step.status == StepStatus::Blocked { "blocked" } else { "not run" };
        return vec![el("b").text(word)];
    };
    let took = step.took_ms.unwrap_or(end - begin);
    let word = match step.status {
        StepStatus::Failed => "failed ",
        StepStatus::Running | StepStatus::Waiting => "cut off ",
        _ => "",
    };
    vec![
        el("b").text(&format!("{word}{}", length(took))),
        el("small").text(&format!(" {}–{}", clock(begin), clock(end))),
    ]
}
