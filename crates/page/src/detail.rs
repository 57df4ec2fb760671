//! What a row says once it is opened: why the step ran, how it spent its time, what its gate said, what proves it.

use castle_model::time::length;
use castle_view::StepStatus;
use castle_view::timeline::{Segment, SegmentKind, Timeline, Track};

use crate::html::{Node, el};
use crate::scale::{against, clock};
use crate::summary::{explained, link};

/// More reasons or tries than these are not listed: the first and the last tell the story, and the events have each of them.
const REASONS: usize = 24;

/// The word for what a step does with its time.
pub(crate) fn word(kind: SegmentKind) -> &'static str {
    match kind {
        SegmentKind::Work => "work",
        SegmentKind::Wait => "waiting",
        SegmentKind::Pause => "pause",
    }
}

/// Everything that is known of one step.
pub(crate) fn of(step: &Track, timeline: &Timeline) -> Node {
    el("div")
        .class("detail")
        .maybe(step.failure.as_ref().map(explained))
        .child(facts(step, timeline))
        .maybe(reasons(step))
        .maybe(tries(step))
}

fn fact(name: &str, value: Node) -> Node {
    el("div").child(el("dt").text(name)).child(value)
}

fn facts(step: &Track, timeline: &Timeline) -> Node {
    let told = |text: &str| el("dd").text(text);
    let mut facts = vec![fact("step", told(step.id.as_str()))];
    if let Some((verb, why)) = &step.doing {
        facts.push(fact("plan", el("dd").prose(&format!("{verb}: {why}"))));
    }
    if let Some(time) = spent(step) {
        facts.push(fact("time", told(&time)));
    }
    facts.extend(standing(step).map(|text| fact("slack", told(&text))));
    if let Some((took, previous)) = step.took_ms.zip(step.previous_ms) {
        let text = format!("{} ({} before)", against(took, previous), length(previous));
        facts.push(fact("previous run", told(&text)));
    }
    if let Some(by) = step.blocked_by.as_ref().and_then(|by| timeline.step(by)) {
        facts.push(fact("blocked by", el("dd").child(link(by))));
    }
    let needs: Vec<Node> = step
        .needs
        .iter()
        .filter_map(|id| timeline.step(id))
        .map(|need| el("li").child(link(need)))
        .collect();
    if !needs.is_empty() {
        facts.push(fact("needs", el("dd").child(el("ul").class("needs").children(needs))));
    }
    for task in &step.tasks {
        facts.push(fact("task", told(task)));
    }
    if let Some(change) = step.change.filter(|_| step.status != StepStatus::Failed) {
        facts.push(fact("change", told(&change.to_string())));
    }
    if let Some(proof) = &step.proof {
        facts.push(fact("proof", told(proof)));
    }
    el("dl").children(facts)
}

/// How a step spent its time, as a sentence.
fn spent(step: &Track) -> Option<String> {
    let (begin, end) = step.span?;
    let kinds = [SegmentKind::Work, SegmentKind::Wait, SegmentKind::Pause];
    let parts = kinds.into_iter().filter_map(|kind| {
        let spent = step.spent(kind);
        (spent > 0).then(|| format!("{} {}", word(kind), length(spent)))
    });
    let parts = parts.collect::<Vec<_>>().join(", ");
    let end =
        if step.took_ms.is_some() { clock(end) } else { format!("{}, not to its end", clock(end)) };
    Some(if parts.is_empty() {
        format!("from {} to {end}", clock(begin))
    } else {
        format!("{parts}; from {} to {end}", clock(begin))
    })
}

fn standing(step: &Track) -> Option<String> {
    if step.critical {
        return Some("none: it is on the critical path".to_owned());
    }
    Some(match step.slack_ms? {
        0..100 => "none".to_owned(),
        slack => format!("{}: it could have ended so much later", length(slack)),
    })
}

/// What the gate said over time.
fn reasons(step: &Track) -> Option<Node> {
    let waits: Vec<&Segment> =
        step.segments.iter().filter(|segment| segment.kind == SegmentKind::Wait).collect();
    if waits.is_empty() {
        return None;
    }
    let rows = capped(&waits, "reason", |wait| reason(wait));
    Some(table("What it waited for", ["from", "for", "because"], rows))
}

/// A row for each, or for the first and the last of many.
fn capped<T>(all: &[T], what: &str, row: impl Fn(&T) -> Node) -> Vec<Node> {
    let shown = all.len().min(REASONS);
    let (first, last) = (shown.div_ceil(2), shown / 2);
    let mut rows: Vec<Node> = all[..first].iter().map(&row).collect();
    let folded = all.len() - shown;
    if folded > 0 {
        let text = if folded == 1 { what.to_owned() } else { plural(what) };
        let text = format!("{folded} more {text}, one after the other");
        rows.push(el("tr").child(el("td").attr("colspan", "3").class("quiet").text(&text)));
    }
    rows.extend(all[all.len() - last..].iter().map(&row));
    rows
}

fn plural(what: &str) -> String {
    if what == "try" { "tries".to_owned() } else { format!("{what}s") }
}

fn reason(wait: &Segment) -> Node {
    row(&clock(wait.begin_ms), &length(wait.length()), wait.why.as_deref().unwrap_or(""))
}

fn tries(step: &Track) -> Option<Node> {
    if step.tries.is_empty() {
        return None;
    }
    let rows = capped(&step.tries, "try", |tried| {
        row(&clock(tried.at_ms), &length(tried.delay_ms), &tried.failure.to_string())
    });
    Some(table("Tried again", ["at", "pause", "after"], rows))
}

fn row(one: &str, two: &str, three: &str) -> Node {
    el("tr").child(el("td").text(one)).child(el("td").text(two)).child(el("td").text(three))
}

fn table(caption: &str, heads: [&str; 3], rows: Vec<Node>) -> Node {
    let heads = heads.iter().map(|head| el("th").attr("scope", "col").text(head));
    el("table")
        .child(el("caption").text(caption))
        .child(el("thead").child(el("tr").children(heads)))
        .child(el("tbody").children(rows))
}
