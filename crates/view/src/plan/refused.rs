//! What a plan says of the steps that can not be done as things are: once, in words, and what to do about each.

use castle_model::{Plan, PlannedStep};
use serde::Serialize;

use super::{Runs, kind};
use crate::style::{Style, Tone};

/// Why a run would not come to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stops {
    /// Whether `up` refuses the whole plan: it would destroy something in vain.
    pub held: bool,
    /// How many steps are refused; each says why.
    pub refused: usize,
    /// How many steps stand behind them.
    pub behind: usize,
    /// All of it in words.
    pub says: String,
}

/// Why the run of a plan would not come to its end, if that is known.
#[must_use]
pub fn stops(plan: &Plan) -> Option<Stops> {
    stops_of(plan, Runs::Whole)
}

pub(super) fn stops_of(plan: &Plan, runs: Runs) -> Option<Stops> {
    let says = sentence(plan, runs)?;
    let (refused, behind) = (plan.refused().count(), plan.behind_refused());
    Some(Stops { held: plan.is_held(), refused, behind, says })
}

/// What `up` would do about a plan with steps that are refused, in words.
fn sentence(plan: &Plan, runs: Runs) -> Option<String> {
    let refused = match plan.refused().count() {
        0 => return None,
        1 => "1 step is refused".to_owned(),
        number => format!("{number} steps are refused"),
    };
    let destroyed = match plan.destructive().count() {
        1 => "1 thing".to_owned(),
        number => format!("{number} things"),
    };
    let them = if plan.refused().count() == 1 { "it" } else { "them" };
    let behind = match plan.behind_refused() {
        0 => String::new(),
        1 => format!(", and 1 step stands behind {them}"),
        number => format!(", and {number} steps stand behind {them}"),
    };
    Some(if runs == Runs::Not {
        format!("`up` is refused before it does any of this; beside that, {refused}{behind}")
    } else if plan.is_held() {
        format!(
            "`up` refuses this plan: {refused}{behind}, so {destroyed} would be destroyed in vain; nothing is touched before that is mended"
        )
    } else {
        format!(
            "`up` would fail: {refused}{behind}; what does not need {them} is done all the same"
        )
    })
}

/// The same for a person, with what to do about each step; why each is refused stands in its own line of the plan.
pub(super) fn text(plan: &Plan, runs: Runs, style: Style) -> String {
    let Some(says) = sentence(plan, runs) else { return String::new() };
    let mut text = format!("\n{}\n", style.hang("", &says, Some(Tone::Bad)));
    for (steps, cures) in cures(plan) {
        let names: Vec<&str> = steps.into_iter().map(kind).collect();
        text.push_str(&style.hang("  ", &names.join(", "), None));
        text.push('\n');
        for (label, said) in cures {
            text.push_str(&style.hang(&format!("    {label:<10}"), &said, None));
            text.push('\n');
        }
    }
    text
}

type Cures = Vec<(&'static str, String)>;

/// What was seen and is to be done, each with the steps that it is the same for.
fn cures(plan: &Plan) -> Vec<(Vec<&PlannedStep>, Cures)> {
    let mut all: Vec<(Vec<&PlannedStep>, Cures)> = Vec::new();
    for step in plan.refused() {
        let Some(failure) = &step.refused else { continue };
        let mut said = failure.seen();
        said.extend(failure.hint.clone().map(|hint| ("hint", hint)));
        match all.iter_mut().find(|(_, other)| *other == said) {
            Some((steps, _)) => steps.push(step),
            None => all.push((vec![step], said)),
        }
    }
    all.retain(|(_, said)| !said.is_empty());
    all
}
