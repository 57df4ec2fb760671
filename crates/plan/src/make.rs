//! The verbs: what becomes of each step, and why.

use std::collections::BTreeSet;

use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::{
    Bug, CastleName, Failure, Observed, Plan, PlannedStep, StepDecl, StepId, UndoKind, Verb,
    planted,
};
use sha2::{Digest, Sha256};

use crate::drift::GONE;
use crate::order::{OrderError, order};
use crate::survey::{Look, Survey};

/// The plan towards the castle file. `known` are the steps whose outcome a journal of ours already holds.
///
/// # Errors
/// The steps cannot be ordered.
pub fn up(
    castle: &CastleName,
    steps: &[StepDecl],
    survey: &Survey,
    known: &BTreeSet<StepId>,
) -> Result<Plan, OrderError> {
    // What this plan makes anew, and what is expected to be done again because it lived on that.
    let mut anew: BTreeSet<&StepId> = BTreeSet::new();
    let mut planned = Vec::new();
    for at in order(steps)? {
        let decl = &steps[at];
        let look = survey.get(&decl.id);
        let again = again(decl, look, known, &anew);
        let expected = again.is_some();
        let step = again.unwrap_or_else(|| {
            let step = planned_up(decl, survey, known);
            match disturbed(decl, survey, known) {
                Some(by) => later(step, by),
                None => step,
            }
        });
        if expected || (!step.unknown && makes_anew(step.verb, decl)) {
            anew.insert(&decl.id);
        }
        planned.push(step);
    }
    Ok(sealed(castle, Direction::Up, planned))
}

/// Whether nothing that lived on the object of a step outlives what is done with it.
fn makes_anew(verb: Verb, decl: &StepDecl) -> bool {
    match (verb, decl.wording) {
        (Verb::Create, wording) => !matches!(wording, Some(Wording::Prove | Wording::Observe)),
        (Verb::Replace, wording) => wording != Some(Wording::Set),
        _ => false,
    }
}

/// What is expected of a step that was done before and lived on what is made anew by now: it can not be looked at yet, and it
/// is gone.
fn again(
    decl: &StepDecl,
    look: Option<&Look>,
    known: &BTreeSet<StepId>,
    anew: &BTreeSet<&StepId>,
) -> Option<PlannedStep> {
    let home = decl.lives_on.first()?;
    let Some(Look::After(need)) = look else { return None };
    let gone = decl.lives_on.iter().all(|home| anew.contains(home));
    (gone && known.contains(&decl.id)).then(|| {
        let why = format!("done before, and gone with {home}");
        let step = PlannedStep::new(decl.clone(), Verb::Create, why).expected();
        PlannedStep { after: Some(need.clone()), ..step }
    })
}

/// What disturbs a step that was done before: what was done before, too, and is not as it was.
///
/// In a life in which it was never done it is still on its way, and disturbs nothing.
fn disturbed<'a>(
    decl: &'a StepDecl,
    survey: &Survey,
    known: &BTreeSet<StepId>,
) -> Option<&'a StepId> {
    let right = |by: &StepId| matches!(survey.get(by), Some(Look::Seen(Observed::Right { .. })));
    let mut by = decl.disturbed_by.iter().filter(|_| known.contains(&decl.id));
    by.find(|by| known.contains(*by) && !right(by))
}

/// The same step, left as it is for now, and looked at after this one. What is to be mended is mended at once.
fn later(step: PlannedStep, by: &StepId) -> PlannedStep {
    if step.verb != Verb::Leave || step.refused.is_some() {
        return step;
    }
    let step = PlannedStep { until: Some(by.clone()), ..step };
    if step.unknown {
        return step;
    }
    PlannedStep { reason: seen_again(by), after: Some(by.clone()), ..step.expected() }
}

/// What is told of a step that was done before and is to be looked at in its turn.
fn seen_again(after: &StepId) -> String {
    format!("done before; to be seen again after {after}")
}

/// The plan towards nothing: needs turned round, so that what was made last goes first.
///
/// # Errors
/// The steps cannot be ordered.
pub fn down(castle: &CastleName, steps: &[StepDecl], survey: &Survey) -> Result<Plan, OrderError> {
    order(steps)?;
    let after = |step: &StepDecl| -> Vec<StepId> {
        if planted(Bug::OrderNotTurned) {
            return step.needs.clone();
        }
        steps.iter().filter(|s| s.needs.contains(&step.id)).map(|s| s.id.clone()).collect()
    };
    let turned: Vec<StepDecl> = steps
        .iter()
        .map(|step| StepDecl {
            needs: after(step),
            // Lanes are for what is scarce while making; removals do not disturb each other.
            lane: None,
            ..step.clone()
        })
        .collect();
    let planned = order(&turned)?
        .into_iter()
        .map(|at| {
            let decl = turned[at].clone();
            let (verb, reason, unknown) = verb_down(&decl, survey.get(&decl.id));
            PlannedStep { unknown, ..PlannedStep::new(decl, verb, reason) }
        })
        .collect();
    Ok(sealed(castle, Direction::Down, planned))
}

/// One step on the way up. What was done before and does not answer is expected to stand.
fn planned_up(decl: &StepDecl, survey: &Survey, known: &BTreeSet<StepId>) -> PlannedStep {
    let step = |verb, reason: &str| PlannedStep::new(decl.clone(), verb, reason);
    let before = known.contains(&decl.id);
    let silent = if before { Verb::Leave } else { Verb::Create };
    let seen = match survey.get(&decl.id) {
        None => return step(Verb::Create, "not looked at").expected(),
        Some(Look::After(need)) => {
            let why = match survey.get(need) {
                _ if before => seen_again(need),
                Some(Look::Seen(Observed::Absent)) => match decl.wording {
                    Some(Wording::Prove) => "not so yet".to_owned(),
                    Some(Wording::Observe) => "looked at when its turn comes".to_owned(),
                    _ => "not there yet".to_owned(),
                },
                _ => format!("looked at after {need}"),
            };
            return PlannedStep { after: Some(need.clone()), ..step(silent, &why).expected() };
        }
        Some(Look::Failed(failure)) if failure.is_transient() => {
            return step(silent, &format!("could not look: {failure}")).expected();
        }
        Some(Look::Failed(failure)) => return refused(decl, failure.clone()),
        Some(Look::Leftover(_)) => {
            return step(Verb::Create, "looked at for removal only").expected();
        }
        Some(Look::Seen(seen)) => seen,
    };
    match seen {
        Observed::Absent if before => step(Verb::Create, GONE),
        Observed::Absent => step(Verb::Create, "not there yet"),
        Observed::Unused { why } => step(Verb::Create, why),
        // What makes nothing cannot be taken charge of either.
        Observed::Right { evidence } if before || matches!(decl.undo, UndoKind::Nothing { .. }) => {
            step(Verb::Leave, evidence)
        }
        Observed::Right { evidence } => step(Verb::Adopt, evidence),
        Observed::Wrong { why, replace: false } => step(Verb::Update, why),
        Observed::Wrong { why, replace: true } => step(Verb::Replace, why),
        Observed::Foreign { owner } => {
            refused(decl, Failure::foreign(format!("adopt {}", decl.id), owner))
        }
        Observed::Unknown { why } => step(silent, why).expected(),
    }
}

/// A step that can not be done as things are. The run looks once more when it comes there.
fn refused(decl: &StepDecl, failure: Failure) -> PlannedStep {
    let step = PlannedStep::new(decl.clone(), Verb::Leave, failure.why.clone()).expected();
    PlannedStep { refused: Some(Box::new(failure)), ..step }
}

fn verb_down(decl: &StepDecl, look: Option<&Look>) -> (Verb, String, bool) {
    match &decl.undo {
        UndoKind::Contained { within } => (Verb::Forget, format!("goes with {within}"), false),
        UndoKind::Nothing { why } => (Verb::Leave, why.clone(), false),
        UndoKind::Explicit => match look {
            Some(Look::Leftover(Some(what))) => (Verb::Remove, what.clone(), false),
            Some(Look::Leftover(None)) => (Verb::Leave, "nothing there".to_owned(), false),
            Some(Look::Failed(failure)) => {
                (Verb::Remove, format!("could not look: {failure}"), true)
            }
            Some(Look::Seen(_) | Look::After(_)) | None => {
                (Verb::Remove, "not looked at".to_owned(), true)
            }
        },
    }
}

fn sealed(castle: &CastleName, direction: Direction, steps: Vec<PlannedStep>) -> Plan {
    let body = serde_json::to_vec(&(castle, direction, &steps)).expect("plans are plain data");
    let hash = hex::encode(Sha256::digest(body));
    Plan { castle: castle.clone(), direction, steps, hash }
}

#[cfg(test)]
mod tests;
