//! What is not as castle left it: whose it is, and what `up` would do about it.

use std::collections::BTreeSet;

use castle_model::plan::Drift;
use castle_model::step::Wording;
use castle_model::{Observed, Plan, PlannedStep, StepId, Verb};

use crate::survey::{Look, Survey};

/// What differs of a castle that stands, or stood. `known` are the steps whose outcome a journal of ours holds; where all
/// of that is lost, a castle that is adopted counts as standing.
#[must_use]
pub fn drift(plan: &Plan, survey: &Survey, known: &BTreeSet<StepId>) -> Vec<Drift> {
    let adopted = known.is_empty() && plan.steps.iter().any(|step| step.verb == Verb::Adopt);
    let stood = |step: &PlannedStep| adopted || known.contains(&step.decl.id);
    plan.steps.iter().filter(|step| stood(step)).filter_map(|step| of(step, survey)).collect()
}

fn of(step: &PlannedStep, survey: &Survey) -> Option<Drift> {
    let drift = |owner: &str, what: &str, then: &str| {
        let (owner, what, then) = (owner.to_owned(), what.to_owned(), then.to_owned());
        Some(Drift { step: step.decl.id.clone(), owner, what, then })
    };
    match survey.get(&step.decl.id)? {
        Look::Seen(Observed::Foreign { owner }) => drift("others", owner, "`up` stops here"),
        Look::Failed(failure) if !failure.is_transient() => {
            drift("castle", &failure.why, "`up` stops here")
        }
        Look::Seen(Observed::Wrong { why, .. }) => {
            drift(owner_of(step), why, consequence(step.verb, step.decl.wording))
        }
        // Where everything is lost, what is absent may never have been there.
        Look::Seen(Observed::Absent) if step.reason == GONE => {
            drift(owner_of(step), "it is gone", consequence(step.verb, step.decl.wording))
        }
        _ => None,
    }
}

/// Why a step that was done before is done once more.
pub(crate) const GONE: &str = "gone since an earlier run";

fn owner_of(step: &PlannedStep) -> &'static str {
    match step.decl.wording {
        Some(Wording::Observe) => "Flux",
        _ => "castle",
    }
}

fn consequence(verb: Verb, wording: Option<Wording>) -> &'static str {
    match (verb, wording) {
        (_, Some(Wording::Observe)) => "looked at until Flux has mended it",
        (_, Some(Wording::Prove)) => "waited for, and proven again",
        (Verb::Replace, Some(Wording::Set)) => "removed, if you agree",
        (Verb::Replace, _) => "destroyed and made anew, if you agree",
        (Verb::Create, _) => "made again",
        _ => "mended in place",
    }
}

#[cfg(test)]
mod tests {
    use castle_model::{Class, Failure, StepDecl};

    use super::*;
    use crate::up;

    fn drifts(looks: Vec<(&str, Look)>, known: &[&str]) -> Vec<String> {
        let id = |name: &str| StepId::new("l", name);
        let decl = |name: &str| match name {
            "nodes" => StepDecl::new(id(name), name, "vm").only("it only proves"),
            "watched" => StepDecl::new(id(name), name, "vm").observed("Flux makes it"),
            "set" => StepDecl::new(id(name), name, "vm").set().contained("the machines"),
            _ => StepDecl::new(id(name), name, "vm").undo(),
        };
        let steps: Vec<StepDecl> = looks.iter().map(|(name, _)| decl(name)).collect();
        let survey = looks.into_iter().map(|(name, look)| (id(name), look)).collect();
        let known = known.iter().map(|name| id(name)).collect();
        let plan = up(&"blue".parse().unwrap(), &steps, &survey, &known).unwrap();
        let told = drift(&plan, &survey, &known).into_iter();
        told.map(|d| format!("{} of {}: {}: {}", d.step, d.owner, d.what, d.then)).collect()
    }

    #[test]
    fn each_kind_of_difference_has_its_owner_and_its_consequence() {
        let wrong = |why: &str| Look::Seen(Observed::wrong(why));
        let looks = vec![
            ("right", Look::Seen(Observed::right("as wanted"))),
            ("vm", wrong("memory 4096 -> 8192")),
            ("disk", Look::Seen(Observed::stale("too large"))),
            ("image", Look::Seen(Observed::Absent)),
            ("nodes", wrong("not joined: worker-01")),
            ("watched", wrong("0 of 1 ready")),
            ("set", Look::Seen(Observed::stale("1 no longer wanted"))),
            ("taken", Look::Seen(Observed::Foreign { owner: "VM `web`".into() })),
            (
                "unfit",
                Look::Failed(Failure::new(Class::Conflict, "change it", "it can not shrink")),
            ),
            ("slow", Look::Failed(Failure::new(Class::Transient, "look", "no answer"))),
        ];
        let known = looks.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        insta::assert_snapshot!(drifts(looks, &known).join("\n"), @r"
        l/vm of castle: memory 4096 -> 8192: mended in place
        l/disk of castle: too large: destroyed and made anew, if you agree
        l/image of castle: it is gone: made again
        l/nodes of castle: not joined: worker-01: waited for, and proven again
        l/watched of Flux: 0 of 1 ready: looked at until Flux has mended it
        l/set of castle: 1 no longer wanted: removed, if you agree
        l/taken of others: VM `web`: `up` stops here
        l/unfit of castle: it can not shrink: `up` stops here
        ");
    }

    #[test]
    fn what_was_never_there_has_not_drifted() {
        let looks = || {
            vec![
                ("vm", Look::Seen(Observed::Absent)),
                ("half", Look::Seen(Observed::wrong("half made"))),
            ]
        };
        assert_eq!(drifts(looks(), &[]), [""; 0]);
        let mut adopted = looks();
        adopted.push(("image", Look::Seen(Observed::right("there"))));
        assert_eq!(drifts(adopted, &[]), ["l/half of castle: half made: mended in place"]);
    }
}
