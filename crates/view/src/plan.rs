//! A plan for a person to agree with, and as JSON.

use std::collections::BTreeMap;

use castle_model::plan::{Direction, Drift, Unseen};
use castle_model::spec::BUILT_IN_LAYERS;
use castle_model::step::Wording;
use castle_model::{LayerName, Plan, PlannedStep, StepId, Verb};

use crate::style::{Style, Tone, count};

/// The plan, layer by layer, with counts and everything that would be destroyed named at the end. On the way up what is left
/// as it was seen is counted, a line for each layer: what is to be done would not be found between it.
#[must_use]
pub fn text(plan: &Plan, style: Style) -> String {
    let way = match plan.direction {
        Direction::Up => "up",
        Direction::Down => "down",
    };
    let hash: String = plan.hash.chars().take(8).collect();
    let steps = count(plan.steps.len(), "step");
    let head = format!("plan {hash} for castle {}: {way}, {steps}", plan.castle);
    let mut text = style.hang("", &head, Some(Tone::Title)) + "\n";
    // Whether the layer before it was one line.
    let mut short = None;
    for layer in layers(plan) {
        let of_layer = || plan.steps.iter().filter(|step| step.decl.layer == *layer);
        let (calm, told): (Vec<_>, Vec<_>) = of_layer().partition(|step| is_calm(plan, step));
        let whole = told.is_empty();
        if short != Some(true) || !whole {
            text.push('\n');
        }
        short = Some(whole);
        if !whole {
            text.push_str(layer.as_str());
            text.push('\n');
        }
        for step in told {
            text.push_str(&row(plan, step, style));
            text.push('\n');
            for note in notes(step) {
                text.push_str(&style.hang("             - ", note, Some(Tone::Quiet)));
                text.push('\n');
            }
        }
        if !calm.is_empty() {
            text.push_str(&left(layer, calm.len(), whole, style));
            text.push('\n');
        }
    }
    text.push('\n');
    text.push_str(&style.hang("", &summary(plan), None));
    text.push('\n');
    if plan.steps.iter().any(|step| step.unknown) {
        let why = "cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need be; nothing is destroyed that this plan does not name";
        text.push_str(&style.hang("?  ", why, None));
        text.push('\n');
    }
    text.push_str(&danger(plan, style));
    text
}

/// What is not as castle left it: whose it is, in what it differs, and what `up` does; and what nobody knows of, because it could
/// not be looked at. Nothing if all is as it was.
#[must_use]
pub fn drift(found: &[Drift], unseen: &[Unseen], style: Style) -> String {
    let steps = found.iter().map(|drift| &drift.step).chain(unseen.iter().map(|dark| &dark.step));
    let steps = steps.map(|step| short(step).chars().count()).max().unwrap_or(0).min(24);
    let mut text = String::new();
    if !found.is_empty() {
        let things = match found.len() {
            1 => "1 thing is not as castle left it".to_owned(),
            number => format!("{number} things are not as castle left them"),
        };
        let head = format!("drift: {things}; whose, what, and what `up` does");
        text.push_str(&title(&head, style));
    }
    let owners = found.iter().map(|drift| drift.owner.chars().count()).max().unwrap_or(0);
    for Drift { step, owner, what, then } in found {
        let prefix = format!("  {owner:<owners$}  {:<steps$}  ", short(step));
        let what = arrows(what, style);
        text.push_str(&style.hang(&prefix, &format!("{what}: {then}"), None));
        text.push('\n');
    }
    if !unseen.is_empty() {
        let head = "unknown: what could not be looked at, and why; `up` looks again before it acts";
        text.push_str(&title(head, style));
    }
    for Unseen { step, why, behind } in unseen {
        let more = match behind {
            0 => String::new(),
            number => format!("; {} behind it", count(*number, "step")),
        };
        let prefix = format!("  {:<steps$}  ", short(step));
        text.push_str(&style.hang(&prefix, &format!("{why}{more}"), None));
        text.push('\n');
    }
    text
}

/// From what to what, with the arrow that the terminal can show.
fn arrows(text: &str, style: Style) -> String {
    text.replace(" -> ", &format!(" {} ", style.signs.pick("→", "->")))
}

/// The head of a part, after an empty line.
fn title(words: &str, style: Style) -> String {
    format!("\n{}\n", style.hang("", words, Some(Tone::Title)))
}

/// The plan as one JSON object, with what is not as castle left it and what could not be looked at.
///
/// # Errors
/// Never for a plan that was made by castle; the signature is that of the serialiser.
pub fn json(
    plan: &Plan,
    drift: &[Drift],
    unseen: &[Unseen],
) -> Result<serde_json::Value, serde_json::Error> {
    let mut value = serde_json::to_value(plan)?;
    value["drift"] = serde_json::to_value(drift)?;
    value["unseen"] = serde_json::to_value(unseen)?;
    Ok(value)
}

/// The layers in the order of their first step; on the way up those built in come first, in the order of the house: a look
/// ahead, such as that into the repository, does not put its layer first.
fn layers(plan: &Plan) -> Vec<&LayerName> {
    let mut layers = Vec::new();
    for step in &plan.steps {
        if !layers.contains(&&step.decl.layer) {
            layers.push(&step.decl.layer);
        }
    }
    if plan.direction == Direction::Up {
        let place =
            |layer: &&LayerName| BUILT_IN_LAYERS.iter().position(|name| *name == layer.as_str());
        layers.sort_by_key(|layer| place(layer).unwrap_or(BUILT_IN_LAYERS.len()));
    }
    layers
}

/// Whether a step was seen as it should be, and is left so.
fn is_calm(plan: &Plan, step: &PlannedStep) -> bool {
    plan.direction == Direction::Up && step.verb == Verb::Leave && !step.unknown
}

/// The line for the steps of a layer that are left alone; all of it, if so.
fn left(layer: &LayerName, number: usize, whole: bool, style: Style) -> String {
    let steps = match (number, whole) {
        (1, true) => "1 step as it should be".to_owned(),
        (_, true) => format!("{number} steps as they should be"),
        (1, false) => "1 more step as it should be".to_owned(),
        (_, false) => format!("{number} more steps as they should be"),
    };
    let text = if whole { format!("{layer}: {steps}") } else { steps };
    style.hang("  leave    ", &text, Some(Tone::Quiet))
}

/// One step as a line of a diff: sign, verb, what, then from what to what, or why; and what is lost, in words.
fn row(plan: &Plan, step: &PlannedStep, style: Style) -> String {
    let mark = if step.unknown { "?" } else { " " };
    let widest = plan.steps.iter().map(|s| kind(s).chars().count()).max().unwrap_or(0).min(24);
    let sign = sign(step.verb, step.decl.wording, style);
    let prefix = format!("{sign} {:<7}{mark} {:<widest$}  ", step.word(), kind(step));
    let tone = match step.verb {
        Verb::Replace | Verb::Remove => Some(Tone::Bad),
        Verb::Leave | Verb::Forget => Some(Tone::Quiet),
        Verb::Update => Some(Tone::Wait),
        Verb::Create | Verb::Adopt => None,
    };
    let reason = arrows(&step.reason, style);
    let lost = loses(step).map(|lost| format!(" [{lost}]")).unwrap_or_default();
    style.hang(&prefix, &format!("{}: {reason}{lost}", step.decl.title), tone)
}

/// The sign of a verb, as in a diff: what is left alone has none.
fn sign(verb: Verb, wording: Option<Wording>, style: Style) -> &'static str {
    match (verb, wording) {
        (Verb::Create | Verb::Update, Some(Wording::Prove | Wording::Observe)) => ".",
        (Verb::Create, _) => "+",
        (Verb::Adopt, _) => "*",
        (Verb::Update, _) | (Verb::Replace, Some(Wording::Set)) => "~",
        (Verb::Replace, _) => style.signs.pick("±", "!"),
        (Verb::Remove, _) => "-",
        (Verb::Leave | Verb::Forget, _) => " ",
    }
}

/// What is lost for good by a step, in words.
fn loses(step: &PlannedStep) -> Option<&'static str> {
    match (step.verb, step.decl.wording) {
        (Verb::Replace, Some(Wording::Set)) => Some("removes what it no longer has"),
        (Verb::Replace, _) => Some("destroys what is on it"),
        (Verb::Remove, Some(Wording::Reset)) => Some("wipes what this castle put on it"),
        (Verb::Remove, _) => Some("destroys it"),
        _ => None,
    }
}

/// What is said about how a step is done, where something is done.
fn notes(step: &PlannedStep) -> impl Iterator<Item = &str> {
    let told = matches!(step.verb, Verb::Create | Verb::Update | Verb::Replace);
    step.decl.notes.iter().filter(move |_| told).map(String::as_str)
}

/// The step's name without its layer, which stands above.
fn kind(step: &PlannedStep) -> &str {
    short(&step.decl.id)
}

/// A step's name without its layer.
fn short(id: &StepId) -> &str {
    let id = id.as_str();
    id.split_once('/').map_or(id, |(_, rest)| rest)
}

fn summary(plan: &Plan) -> String {
    let mut counts: BTreeMap<(Verb, &str), usize> = BTreeMap::new();
    for step in &plan.steps {
        *counts.entry((step.verb, step.word())).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .into_iter()
        .map(|((verb, word), number)| match verb {
            Verb::Leave => format!("{number} to leave alone"),
            _ => format!("{number} to {word}"),
        })
        .collect();
    match (plan.steps.is_empty(), plan.is_quiet()) {
        (true, _) => "nothing to do".to_owned(),
        (_, true) => format!("{}: the world will not be touched", parts.join(", ")),
        _ => parts.join(", "),
    }
}

fn danger(plan: &Plan, style: Style) -> String {
    let steps: Vec<&PlannedStep> = plan.destructive().collect();
    if steps.is_empty() {
        return String::new();
    }
    let what = match steps.len() {
        1 => "this step destroys something for good:".to_owned(),
        number => format!("these {number} steps destroy something for good:"),
    };
    let mut text = format!("\n{}\n", style.paint(Tone::Bad, &what));
    for step in steps {
        let how = match (step.verb, step.decl.wording) {
            (Verb::Replace, Some(Wording::Set)) => "changed, and what it no longer has is removed",
            (Verb::Replace, _) => "destroyed and made anew: what is on it is lost",
            (_, Some(Wording::Reset)) => "reset: what this castle put on it is wiped",
            _ => "removed",
        };
        text.push_str(&style.hang("  ", &format!("{} will be {how}", step.decl.title), None));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
