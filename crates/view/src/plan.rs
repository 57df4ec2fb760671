//! A plan for a person to agree with, and as JSON.

use std::collections::BTreeMap;

use castle_model::plan::{Direction, Drift, Unseen};
use castle_model::spec::BUILT_IN_LAYERS;
use castle_model::step::Wording;
use castle_model::{CastleName, LayerName, Plan, PlannedStep, StepId, Verb};
use serde::Serialize;

use crate::style::{Style, Tone, count};

mod refused;

pub use self::refused::{Stops, stops};

/// The plan, layer by layer, with counts and everything that would be destroyed named at the end. On the way up what is left
/// as it was seen is counted, a line for each layer, and so is what can only be looked at after something else: what is to be
/// done would not be found between it.
#[must_use]
pub fn text(plan: &Plan, style: Style) -> String {
    page(plan, Runs::Whole, style)
}

/// The same where `up` is refused before it looks at anything: then it does nothing of it, whatever else stands in the way.
#[must_use]
pub fn text_of_refused(plan: &Plan, style: Style) -> String {
    page(plan, Runs::Not, style)
}

/// Whether a run of the plan would begin at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Runs {
    Whole,
    Not,
}

fn page(plan: &Plan, runs: Runs, style: Style) -> String {
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
        let of_layer = plan.steps.iter().filter(|step| step.decl.layer == *layer);
        let (calm, loud): (Vec<_>, Vec<_>) = of_layer.partition(|step| is_calm(plan, step));
        let (told, later) = folded(plan, loud);
        let lines = told.len() + later.len() + usize::from(!calm.is_empty());
        let whole = told.is_empty() && lines == 1;
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
        let of = if whole { format!("{layer}: ") } else { String::new() };
        for ((verb, word, after), number) in later {
            let prefix = format!("{} {word:<7}? ", sign(verb, None, style));
            let words = format!("{of}{}, looked at after {after}", count(number, "step"));
            text.push_str(&style.hang(&prefix, &words, Some(Tone::Quiet)));
            text.push('\n');
        }
        if !calm.is_empty() {
            text.push_str(&left(layer, calm.len(), whole, style));
            text.push('\n');
        }
    }
    text.push('\n');
    text.push_str(&style.hang("", &summary(plan), None));
    text.push('\n');
    if plan.steps.iter().any(|step| step.unknown && step.refused.is_none()) {
        let why = "cannot be looked at yet: this is what is expected. It is looked at when its turn comes, and made or mended if need be; nothing is destroyed that this plan does not name";
        text.push_str(&style.hang("?  ", why, None));
        text.push('\n');
    }
    text.push_str(&danger(plan, style));
    text.push_str(&refused::text(plan, runs, style));
    text
}

/// How many steps of each kind are only known to be looked at after which other one.
type Later<'a> = BTreeMap<(Verb, &'static str, &'a StepId), usize>;

/// The steps that have a line of their own, and those that are counted. What is to be made because nothing of it is there yet
/// is told one by one.
fn folded<'a>(plan: &Plan, steps: Vec<&'a PlannedStep>) -> (Vec<&'a PlannedStep>, Later<'a>) {
    let root = |step: &'a PlannedStep| {
        let after = step.after.as_ref()?;
        let makes = plan.step(after).is_some_and(|root| root.verb == Verb::Create);
        (step.verb == Verb::Leave || !makes).then_some((step.verb, step.word(), after))
    };
    let mut later = Later::new();
    for kind in steps.iter().filter_map(|step| root(step)) {
        *later.entry(kind).or_insert(0) += 1;
    }
    later.retain(|_, number| *number > 1);
    let alone = |kind: Option<_>| kind.is_none_or(|kind| !later.contains_key(&kind));
    let told = steps.into_iter().filter(|step| alone(root(step))).collect();
    (told, later)
}

/// What is not as castle left it: whose it is, in what it differs, and what `up` does; and what nobody knows of, because it could
/// not be looked at. Nothing if all is as it was. What the plan itself says is refused is not told once more.
#[must_use]
pub fn drift(plan: &Plan, found: &[Drift], unseen: &[Unseen], style: Style) -> String {
    let refused = |step: &StepId| plan.step(step).is_some_and(|step| step.refused.is_some());
    let found: Vec<&Drift> = found.iter().filter(|drift| !refused(&drift.step)).collect();
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

/// A plan for programs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanAnswer {
    /// Whose plan.
    pub castle: CastleName,
    /// Which way it goes.
    pub direction: Direction,
    /// The steps, each after all that it needs.
    pub steps: Vec<StepAnswer>,
    /// SHA-256 over these three, without what only this answer says, hexadecimal.
    pub hash: String,
    /// How many steps there are of each word that a person reads.
    pub counts: BTreeMap<String, usize>,
    /// Why the run would not come to its end, if that is known.
    pub stops: Option<Stops>,
    /// What is not as castle left it.
    pub drift: Vec<Drift>,
    /// What could not be looked at.
    pub unseen: Vec<Unseen>,
}

/// One step of a plan for programs.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepAnswer {
    /// The step, and what becomes of it.
    #[serde(flatten)]
    pub planned: PlannedStep,
    /// What will be done, as a person calls it: `counts` counts these words.
    pub word: &'static str,
    /// What is lost for good, in words; nothing for most.
    pub destroys: Option<&'static str>,
}

/// The plan for programs, with what is not as castle left it and what could not be looked at.
#[must_use]
pub fn answer(plan: &Plan, drift: Vec<Drift>, unseen: Vec<Unseen>) -> PlanAnswer {
    let step = |step: &PlannedStep| StepAnswer {
        planned: step.clone(),
        word: step.word(),
        destroys: step.destroys(),
    };
    PlanAnswer {
        castle: plan.castle.clone(),
        direction: plan.direction,
        steps: plan.steps.iter().map(step).collect(),
        hash: plan.hash.clone(),
        counts: plan.counts(),
        stops: stops(plan),
        drift,
        unseen,
    }
}

/// The same where `up` is refused before it looks at anything.
#[must_use]
pub fn answer_of_refused(plan: &Plan, drift: Vec<Drift>, unseen: Vec<Unseen>) -> PlanAnswer {
    PlanAnswer { stops: refused::stops_of(plan, Runs::Not), ..answer(plan, drift, unseen) }
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
    let mark = if step.unknown && step.refused.is_none() { "?" } else { " " };
    let widest = plan.steps.iter().map(|s| kind(s).chars().count()).max().unwrap_or(0).min(24);
    let sign = match step.refused {
        Some(_) => style.signs.pick("✕", "x"),
        None => sign(step.verb, step.decl.wording, style),
    };
    let prefix = format!("{sign} {:<7}{mark} {:<widest$}  ", step.word(), kind(step));
    let tone = match step.verb {
        _ if step.refused.is_some() => Some(Tone::Bad),
        Verb::Replace | Verb::Remove => Some(Tone::Bad),
        Verb::Leave | Verb::Forget => Some(Tone::Quiet),
        Verb::Update => Some(Tone::Wait),
        Verb::Create | Verb::Adopt => None,
    };
    let reason = arrows(&step.reason, style);
    let lost = step.destroys().map(|lost| format!(" [{lost}]")).unwrap_or_default();
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
    let mut counts: BTreeMap<(bool, Verb, &str), usize> = BTreeMap::new();
    for step in &plan.steps {
        *counts.entry((step.refused.is_none(), step.verb, step.word())).or_default() += 1;
    }
    let parts: Vec<String> = counts
        .into_iter()
        .map(|(kind, number)| match kind {
            (false, ..) => format!("{number} refused"),
            (_, Verb::Leave, _) => format!("{number} to leave alone"),
            (_, _, word) => format!("{number} to {word}"),
        })
        .collect();
    match (plan.steps.is_empty(), plan.is_quiet()) {
        (true, _) => "nothing to do".to_owned(),
        (_, true) if plan.refused().next().is_none() => {
            format!("{}: the world will not be touched", parts.join(", "))
        }
        _ => parts.join(", "),
    }
}

fn danger(plan: &Plan, style: Style) -> String {
    let steps: Vec<&PlannedStep> = plan.destructive().collect();
    if steps.is_empty() {
        return String::new();
    }
    let what = match steps.len() {
        _ if plan.is_held() => {
            format!("{} would destroy something for good:", count(steps.len(), "step"))
        }
        1 => "this step destroys something for good:".to_owned(),
        number => format!("these {number} steps destroy something for good:"),
    };
    let will = if plan.is_held() { "would" } else { "will" };
    let mut text = format!("\n{}\n", style.paint(Tone::Bad, &what));
    for step in steps {
        let how = match (step.verb, step.decl.wording) {
            (Verb::Replace, Some(Wording::Set)) => "changed, and what it no longer has is removed",
            (Verb::Replace, _) => "destroyed and made anew: what is on it is lost",
            (_, Some(Wording::Reset)) => "reset: what this castle put on it is wiped",
            _ => "removed",
        };
        text.push_str(&style.hang("  ", &format!("{} {will} be {how}", step.decl.title), None));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests;
