//! The top of the page: how it ended, how long it took, what failed, what decided its length.

use castle_model::Failure;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::length;
use castle_view::alike::{parts, together};
use castle_view::timeline::{SegmentKind, Timeline, Track};
use castle_view::{StepStatus, count};

use crate::Words;
use crate::html::{Node, el};
use crate::scale::{Scale, against, clock, share};

/// Steps of the critical path that are named in its strip: shorter ones have no room for a word.
const NAMED_FROM: u64 = 8;

/// And those that have their number of the list, on a phone, where no name has room.
const NUMBERED_FROM: u64 = 4;

/// The word of how a run ended, and its class.
fn ending(timeline: &Timeline) -> (&'static str, &'static str) {
    let left = timeline.happenings.iter().any(|h| h.kind.word() == "left over");
    match (timeline.outcome, timeline.direction) {
        (Some(RunOutcome::Done), Direction::Up) => ("stands", "good"),
        (Some(RunOutcome::Done), Direction::Down) if left => ("has left something", "bad"),
        (Some(RunOutcome::Done), Direction::Down) => ("is gone", "good"),
        (Some(RunOutcome::Failed), _) => ("is not finished", "bad"),
        (Some(RunOutcome::Interrupted), _) => ("was interrupted", "halted"),
        (None, _) => ("was ended before its end", "halted"),
    }
}

/// The title of the page.
pub(crate) fn title(timeline: &Timeline) -> String {
    let took = length(timeline.took_ms);
    format!("castle {} {}, {took} ({})", timeline.castle, ending(timeline).0, timeline.run)
}

/// The header: the sentence that matters, and the figures.
pub(crate) fn header(timeline: &Timeline) -> Node {
    let way = match timeline.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let (word, class) = ending(timeline);
    let world = if timeline.rehearsal { "rehearsal" } else { "for real" };
    let began: String = timeline.started.to_string().chars().take(16).collect();
    let facts = [
        way.to_owned(),
        world.to_owned(),
        count(timeline.steps().count(), "step"),
        format!("began {} UTC", began.replace('T', " ")),
        timeline.run.clone(),
    ];
    let facts = facts.iter().map(|fact| el("li").text(fact));
    el("header")
        .child(el("p").class("eyebrow").text("castle timeline"))
        .child(
            el("h1")
                .text(&format!("{} ", timeline.castle))
                .child(el("span").attr("class", class).text(word)),
        )
        .child(el("ul").class("facts").children(facts))
        .child(el("dl").class("figures").children(figures(timeline)))
}

fn figure(name: &str, value: &str, note: &str) -> Node {
    el("div")
        .child(el("dt").text(name))
        .child(el("dd").class("value").text(value))
        .child(el("dd").class("note").text(note))
}

fn figures(timeline: &Timeline) -> Vec<Node> {
    let changed = timeline.layers.iter().map(|layer| layer.tally.changed).sum::<usize>();
    let changed = match changed {
        0 => "nothing changed".to_owned(),
        number => format!("{number} changed"),
    };
    let looked = timeline.planned_ms.filter(|looked| *looked > 0);
    let looked =
        looked.map_or_else(String::new, |took| format!("; {} of looking before", length(took)));
    let mut figures = vec![figure("took", &length(timeline.took_ms), &(changed + &looked))];
    if timeline.path.total_ms > 0 {
        let note = format!("{} of the run", share(timeline.path.total_ms, timeline.took_ms));
        figures.push(figure("critical path", &length(timeline.path.total_ms), &note));
        let waited = timeline.path_waited();
        let note = format!("{} of the critical path", share(waited, timeline.path.total_ms));
        figures.push(figure("of it waiting", &length(waited), &note));
    }
    let compared = &timeline.compared;
    if let Some(previous) = &compared.previous {
        let note = format!("than {} before", length(previous.took_ms));
        let note = if against(timeline.took_ms, previous.took_ms) == "as long" {
            format!("as {}", previous.run)
        } else {
            note
        };
        figures.push(figure("previous run", &against(timeline.took_ms, previous.took_ms), &note));
    }
    if let Some(record) = &compared.record {
        let (value, note) = if timeline.took_ms < record.took_ms {
            let note = format!("{} until now", length(record.took_ms));
            ("new record".to_owned(), note)
        } else {
            (length(record.took_ms), format!("{} now", against(timeline.took_ms, record.took_ms)))
        };
        figures.push(figure("record", &value, &note));
    } else if timeline.outcome == Some(RunOutcome::Done) {
        figures.push(figure("compared", "first", "no run before it did the same work"));
    }
    figures
}

/// What failed, why, and what to do.
pub(crate) fn failures(timeline: &Timeline, words: &Words) -> Option<Node> {
    let failed: Vec<&Track> =
        timeline.steps().filter(|step| step.status == StepStatus::Failed).collect();
    let mut go_on = el("p").class("go-on").text("next: ");
    for (nth, command) in words.go_on.iter().enumerate() {
        go_on = if nth > 0 { go_on.text(", then ") } else { go_on };
        go_on = go_on.child(el("code").text(command));
    }
    let go_on = Some(go_on).filter(|_| !words.go_on.is_empty());
    if failed.is_empty() {
        return go_on.map(|go_on| el("section").class("unfinished").child(go_on));
    }
    let reasons = failed.iter().filter_map(|step| Some((&step.id, step.failure.as_ref()?)));
    let articles = together(reasons).into_iter().filter_map(|group| {
        let (_, failure) = group.first()?;
        let is_of = |step: &&&Track| group.iter().any(|(id, _)| **id == step.id);
        let steps: Vec<&Track> = failed.iter().filter(is_of).copied().collect();
        let mut head = el("h3");
        for (nth, step) in steps.iter().enumerate() {
            let at = step.span.map_or_else(String::new, |(_, end)| format!(", at {}", clock(end)));
            head = if nth > 0 { head.text(", ") } else { head };
            head =
                head.child(link(step)).child(el("small").text(&format!(" {}{at}", failure.class)));
        }
        let explained = labelled(parts(&group));
        Some(el("article").child(head).child(explained).maybe(blocked(timeline, &steps)))
    });
    let head = if failed.len() == 1 {
        "What failed".to_owned()
    } else {
        format!("What failed: {}", count(failed.len(), "step"))
    };
    Some(
        el("section")
            .class("failures")
            .attr("aria-labelledby", "failed")
            .child(el("h2").attr("id", "failed").text(&head))
            .children(articles)
            .maybe(go_on),
    )
}

fn blocked(timeline: &Timeline, by: &[&Track]) -> Option<Node> {
    let is_behind =
        |step: &&Track| by.iter().any(|failed| step.blocked_by.as_ref() == Some(&failed.id));
    let blocked: Vec<&Track> = timeline.steps().filter(is_behind).collect();
    if blocked.is_empty() {
        return None;
    }
    let named = blocked.iter().map(|step| step.id.to_string()).collect::<Vec<_>>().join(", ");
    Some(
        el("details")
            .class("blocked")
            .child(el("summary").text(&format!("blocks {}", count(blocked.len(), "step"))))
            .child(el("p").text(&named)),
    )
}

/// What, why, every finding, last evidence and hint.
pub(crate) fn explained(failure: &Failure) -> Node {
    labelled(failure.parts())
}

fn labelled(parts: Vec<(&str, String)>) -> Node {
    let mut list = el("dl").class("explained");
    let mut add = |name: &str, text: &str| {
        let row = el("div").child(el("dt").text(name)).child(el("dd").prose(text));
        list = std::mem::replace(&mut list, el("dl")).child(row);
    };
    for (label, text) in parts {
        add(label, &text);
    }
    list
}

/// A step's name that leads to its row.
pub(crate) fn link(step: &Track) -> Node {
    el("a").attr("href", format!("#{}", step.id)).text(step.id.as_str())
}

/// What decided how long the run took: the chain as one strip, and as a list.
pub(crate) fn path(timeline: &Timeline) -> Option<Node> {
    let path = &timeline.path;
    if path.total_ms == 0 {
        return None;
    }
    let scale = Scale::new(path.total_ms);
    let (mut strip, mut list, mut at) = (Vec::new(), Vec::new(), 0);
    for (nth, (id, took)) in path.steps.iter().enumerate() {
        let Some(step) = timeline.step(id) else { continue };
        let wide = took.saturating_mul(100) >= path.total_ms.saturating_mul(NAMED_FROM);
        let name = if wide { short(step) } else { String::new() };
        let listed = *took * 200 >= path.total_ms;
        let number = (list.len() + 1).to_string();
        // A narrow part has no room for its number either.
        let roomy = took.saturating_mul(100) >= path.total_ms.saturating_mul(NUMBERED_FROM);
        let class = if nth % 2 == 0 { "even" } else { "odd" };
        strip.push(
            el("a")
                .attr("class", class)
                .attr("href", format!("#{id}"))
                .attr("tabindex", "-1")
                .attr("style", format!("width:{}", scale.percent(*took)))
                .attr("title", format!("{id}: {}", length(*took)))
                .maybe((listed && roomy).then(|| el("b").class("no").text(&number)))
                .child(el("span").text(&name)),
        );
        at += took;
        if listed {
            list.push(path_row(step, &number, *took, path.total_ms));
        }
    }
    debug_assert_eq!(at, path.total_ms);
    let shown: u64 = list.iter().map(|(took, _)| took).sum();
    let folded = path.steps.len() - list.len();
    let rest = (folded > 0).then(|| {
        let text = format!(
            "and {}, together {}",
            count(folded, "short step"),
            length(path.total_ms - shown)
        );
        el("p").class("quiet").text(&text)
    });
    let steps = match path.steps.len() {
        1 => "One step".to_owned(),
        steps => format!("{steps} steps in a row, each needing the one before it"),
    };
    let (total, took) = (length(path.total_ms), length(timeline.took_ms));
    let mut sentence = format!("{steps}: {total} of {took}.");
    if timeline.outcome == Some(RunOutcome::Done) {
        sentence.push_str(" Only if one of these is faster can the run be shorter.");
    }
    Some(
        el("section")
            .class("path")
            .attr("aria-labelledby", "path")
            .child(el("h2").attr("id", "path").text("What decided how long it took"))
            .child(el("p").text(&sentence))
            .child(el("div").class("strip").attr("aria-hidden", "true").children(strip))
            .child(el("ol").children(list.into_iter().map(|(_, row)| row)))
            .maybe(rest),
    )
}

fn path_row(step: &Track, number: &str, took: u64, total: u64) -> (u64, Node) {
    let mut note = step.title.clone();
    if step.waited().saturating_mul(2) > took {
        note = format!("{note}; waited {}", length(step.waited()));
    }
    if !step.tries.is_empty() {
        let paused = length(step.spent(SegmentKind::Pause));
        let tries = if step.tries.len() == 1 { "try" } else { "tries" };
        note = format!("{note}; {} failed {tries}, {paused} of pause", step.tries.len());
    }
    let row = el("li")
        .child(el("span").class("took").text(&length(took)))
        .child(el("span").class("share").text(&share(took, total)))
        .child(
            el("span")
                .class("who")
                .child(el("b").class("no").text(&format!("{number} ")))
                .child(link(step))
                .child(el("small").text(&format!(" {note}"))),
        );
    (took, row)
}

/// A step's name without its layer.
pub(crate) fn short(step: &Track) -> String {
    step.id.as_str().split_once('/').map_or(step.id.as_str(), |(_, rest)| rest).to_owned()
}
