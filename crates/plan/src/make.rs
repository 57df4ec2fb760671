//! The verbs: what becomes of each step, and why.

use std::collections::BTreeSet;

use castle_model::plan::Direction;
use castle_model::step::Wording;
use castle_model::{
    Bug, CastleName, Observed, Plan, PlannedStep, StepDecl, StepId, UndoKind, Verb, planted,
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
        let (verb, reason, unknown) = again.unwrap_or_else(|| verb_up(decl, look, known));
        if expected || (!unknown && makes_anew(verb, decl)) {
            anew.insert(&decl.id);
        }
        planned.push(PlannedStep { decl: decl.clone(), verb, reason, unknown });
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
) -> Option<(Verb, String, bool)> {
    let home = decl.lives_on.first()?;
    let gone = decl.lives_on.iter().all(|home| anew.contains(home));
    let unseen = matches!(look, Some(Look::After(_))) && known.contains(&decl.id);
    (gone && unseen).then(|| (Verb::Create, format!("done before, and gone with {home}"), true))
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
            PlannedStep { decl, verb, reason, unknown }
        })
        .collect();
    Ok(sealed(castle, Direction::Down, planned))
}

fn verb_up(decl: &StepDecl, look: Option<&Look>, known: &BTreeSet<StepId>) -> (Verb, String, bool) {
    let seen = match look {
        None => return (Verb::Create, "not looked at".to_owned(), true),
        Some(Look::After(need)) if known.contains(&decl.id) => {
            return (Verb::Leave, format!("done before; to be seen again after {need}"), true);
        }
        Some(Look::After(need)) => return (Verb::Create, format!("after {need}"), true),
        Some(Look::Failed(failure)) => {
            return (Verb::Create, format!("could not look: {failure}"), true);
        }
        Some(Look::Leftover(_)) => {
            return (Verb::Create, "looked at for removal only".to_owned(), true);
        }
        Some(Look::Seen(seen)) => seen,
    };
    match seen {
        Observed::Absent if known.contains(&decl.id) => (Verb::Create, GONE.to_owned(), false),
        Observed::Absent => (Verb::Create, "not there".to_owned(), false),
        // What makes nothing cannot be taken charge of either.
        Observed::Right { evidence }
            if known.contains(&decl.id) || matches!(decl.undo, UndoKind::Nothing { .. }) =>
        {
            (Verb::Leave, evidence.clone(), false)
        }
        Observed::Right { evidence } => (Verb::Adopt, evidence.clone(), false),
        Observed::Wrong { why, replace: false } => (Verb::Update, why.clone(), false),
        Observed::Wrong { why, replace: true } => (Verb::Replace, why.clone(), false),
        Observed::Foreign { owner } => {
            (Verb::Leave, format!("not ours ({owner}): the run will stop here"), true)
        }
        Observed::Unknown { why } => (Verb::Create, why.clone(), true),
    }
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
mod tests {
    use castle_model::Failure;

    use super::*;

    fn step(name: &str, needs: &[&str]) -> StepDecl {
        StepDecl::new(StepId::new("l", name), name, "vm")
            .needs(needs.iter().map(|n| StepId::new("l", n)))
    }

    fn castle() -> CastleName {
        "blue".parse().unwrap()
    }

    fn verb_of(look: Look, known: bool) -> (Verb, bool) {
        let steps = [step("a", &[]).undo()];
        let id = steps[0].id.clone();
        let known = if known { [id.clone()].into() } else { BTreeSet::new() };
        let plan = up(&castle(), &steps, &[(id, look)].into(), &known).unwrap();
        (plan.steps[0].verb, plan.steps[0].unknown)
    }

    #[test]
    fn every_look_has_its_verb() {
        let seen = Look::Seen;
        assert_eq!(verb_of(seen(Observed::Absent), false), (Verb::Create, false));
        assert_eq!(verb_of(seen(Observed::right("x")), true), (Verb::Leave, false));
        assert_eq!(verb_of(seen(Observed::right("x")), false), (Verb::Adopt, false));
        assert_eq!(verb_of(seen(Observed::wrong("x")), true), (Verb::Update, false));
        assert_eq!(verb_of(seen(Observed::stale("x")), true), (Verb::Replace, false));
        assert_eq!(
            verb_of(seen(Observed::Foreign { owner: "x".into() }), true),
            (Verb::Leave, true)
        );
        assert_eq!(verb_of(Look::After(StepId::new("l", "z")), false), (Verb::Create, true));
        assert_eq!(verb_of(Look::Failed(Failure::bug("a", "b")), false), (Verb::Create, true));
    }

    #[test]
    fn a_step_that_only_looks_is_never_adopted() {
        let steps = [step("a", &[])];
        let survey = [(steps[0].id.clone(), Look::Seen(Observed::right("x")))].into();
        let plan = up(&castle(), &steps, &survey, &BTreeSet::new()).unwrap();
        assert_eq!(plan.steps[0].verb, Verb::Leave);
    }

    /// Two machines, what is put on each, and what lives on both.
    fn castle_of_two() -> Vec<StepDecl> {
        let on = |name: &str, needs: &[&str], homes: &[&str]| {
            let homes = homes.iter().map(|home| StepId::new("l", home));
            step(name, needs).lives_on(homes).contained("the VMs")
        };
        vec![
            step("image", &[]).undo(),
            step("vm-1", &["image"]).undo(),
            step("vm-2", &["image"]).undo(),
            on("answers-1", &["vm-1"], &["vm-1"]).only("it only waits"),
            on("config-1", &["answers-1"], &["vm-1"]),
            on("config-2", &["vm-2"], &["vm-2"]),
            on("cluster", &["config-1", "config-2"], &["config-1", "config-2"]),
            on("flux", &["cluster"], &["cluster"]),
            step("keys", &["cluster"]).contained("the escrow"),
        ]
    }

    /// The plan of that castle, all of which was done before: a word for each step that is not left for certain.
    fn expected(gone: &[(&str, Look)]) -> String {
        let steps = castle_of_two();
        let known = steps.iter().map(|step| step.id.clone()).collect();
        let mut survey = Survey::new();
        for step in &steps {
            let own = gone.iter().find(|(name, _)| step.id == StepId::new("l", name));
            let behind = step.needs.iter().find(|need| {
                !matches!(survey.get(*need), Some(Look::Seen(Observed::Right { .. })))
            });
            let look = match (own, behind) {
                (_, Some(need)) => Look::After(need.clone()),
                (Some((_, look)), None) => look.clone(),
                (None, None) => Look::Seen(Observed::right("so")),
            };
            survey.insert(step.id.clone(), look);
        }
        let plan = up(&castle(), &steps, &survey, &known).unwrap();
        let told = plan.steps.iter().filter(|step| step.unknown || step.verb != Verb::Leave);
        let sign = |step: &PlannedStep| if step.unknown { "?" } else { "" };
        let words = told.map(|step| format!("{}{} {}", step.word(), sign(step), step.decl.title));
        words.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn what_lived_on_something_that_is_made_anew_is_expected_to_be_done_again() {
        let gone = || Look::Seen(Observed::Absent);
        assert_eq!(expected(&[]), "");
        assert_eq!(
            expected(&[("vm-1", gone())]),
            "create vm-1, prove? answers-1, create? config-1, leave? cluster, leave? flux, leave? keys"
        );
        assert_eq!(
            expected(&[("vm-1", gone()), ("vm-2", Look::Seen(Observed::stale("x")))]),
            "create vm-1, replace vm-2, prove? answers-1, create? config-1, create? config-2, \
             create? cluster, create? flux, leave? keys"
        );
        // Nothing lives on the image, and what is changed in place keeps what is on it.
        let after = "leave? answers-1, leave? config-1";
        assert_eq!(
            expected(&[("vm-1", Look::Seen(Observed::wrong("x")))]),
            format!("update vm-1, {after}, leave? cluster, leave? flux, leave? keys")
        );
        assert!(expected(&[("image", gone())]).starts_with("create image, leave? vm-1, "));
    }

    #[test]
    fn what_does_not_answer_is_not_taken_for_gone() {
        let silent = Look::Failed(Failure::new(castle_model::Class::Transient, "a", "b"));
        assert!(expected(&[("vm-1", silent)]).contains("leave? config-1"));
    }

    #[test]
    fn going_down_turns_the_order_round() {
        let steps = [step("first", &[]).undo(), step("second", &["first"]).contained("first")];
        let survey = [(steps[0].id.clone(), Look::Leftover(Some("VM 421".into())))].into();
        let plan = down(&castle(), &steps, &survey).unwrap();
        let short: Vec<_> = plan.steps.iter().map(|s| (s.decl.title.as_str(), s.verb)).collect();
        assert_eq!(short, [("second", Verb::Forget), ("first", Verb::Remove)]);
        assert_eq!(plan.steps[1].decl.needs, [steps[1].id.clone()]);
    }

    #[test]
    fn the_hash_is_of_the_content() {
        let steps = [step("a", &[])];
        let one = up(&castle(), &steps, &Survey::new(), &BTreeSet::new()).unwrap();
        let same = up(&castle(), &steps, &Survey::new(), &BTreeSet::new()).unwrap();
        let survey = [(steps[0].id.clone(), Look::Seen(Observed::right("x")))].into();
        let other = up(&castle(), &steps, &survey, &BTreeSet::new()).unwrap();
        assert_eq!(one.hash, same.hash);
        assert_ne!(one.hash, other.hash);
    }
}
