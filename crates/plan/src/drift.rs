//! What is not as castle left it: whose it is, and what `up` would do about it.

use std::collections::BTreeSet;

use castle_model::plan::{Drift, Unseen};
use castle_model::step::Wording;
use castle_model::{Observed, Plan, PlannedStep, StepId, Verb};

use crate::survey::{Look, Survey};

/// What a look before the plan saw, what a look behind what is to be mended saw besides, and the steps whose outcome a journal of
/// ours holds; where all of that is lost, a castle that is adopted counts as standing.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The looks that the plan is made from.
    pub survey: &'a Survey,
    /// The looks that nothing relies on.
    pub further: &'a Survey,
    /// The steps that were done before.
    pub known: &'a BTreeSet<StepId>,
}

/// What differs of a castle that stands, or stood.
#[must_use]
pub fn drift(plan: &Plan, seen: Seen<'_>) -> Vec<Drift> {
    standing(plan, seen).filter_map(|step| of(step, seen)).collect()
}

/// What of a castle that stands could not be looked at, each with what stands behind it.
#[must_use]
pub fn unseen(plan: &Plan, seen: Seen<'_>) -> Vec<Unseen> {
    let last = |step: &PlannedStep| seen.last(&step.decl.id).cloned();
    // What is done again whatever is there now is no question.
    let again = |step: &PlannedStep| {
        let before = seen.known.contains(&step.decl.id);
        let unseen = matches!(seen.survey.get(&step.decl.id), Some(Look::After(_)));
        before && unseen && step.verb == Verb::Create
    };
    standing(plan, seen)
        .filter(|step| !again(step))
        .filter_map(|step| {
            let why = match last(step)? {
                // What the plan itself could not look at for good has drifted.
                Look::Failed(failure)
                    if failure.is_transient() || seen.further.contains_key(&step.decl.id) =>
                {
                    failure.to_string()
                }
                Look::Seen(Observed::Unknown { why }) => why,
                _ => return None,
            };
            let id = &step.decl.id;
            let behind =
                standing(plan, seen).filter(|other| last(other) == Some(Look::After(id.clone())));
            Some(Unseen { step: id.clone(), why, behind: behind.count() })
        })
        .collect()
}

impl<'a> Seen<'a> {
    /// The last look at a step: the further one, where there is one.
    fn last(self, step: &StepId) -> Option<&'a Look> {
        self.further.get(step).or_else(|| self.survey.get(step))
    }
}

/// The steps that stand, or stood.
fn standing<'a>(plan: &'a Plan, seen: Seen<'a>) -> impl Iterator<Item = &'a PlannedStep> {
    let adopted = seen.known.is_empty() && plan.steps.iter().any(|step| step.verb == Verb::Adopt);
    plan.steps.iter().filter(move |step| adopted || seen.known.contains(&step.decl.id))
}

fn of(step: &PlannedStep, seen: Seen<'_>) -> Option<Drift> {
    let drift = |owner: &str, what: &str, then: &str| {
        let (owner, what, then) = (owner.to_owned(), what.to_owned(), then.to_owned());
        Some(Drift { step: step.decl.id.clone(), owner, what, then })
    };
    let (id, wording) = (&step.decl.id, step.decl.wording);
    if let (Some(Look::After(need)), Some(Look::Seen(found))) =
        (seen.survey.get(id), seen.further.get(id))
    {
        // The run looks again when it comes there, and does no more than its plan showed.
        let (what, verb) = match found {
            Observed::Wrong { why, replace: false } => (why.as_str(), Verb::Update),
            // A proof is nothing that could be gone: it fails because of what it stands behind.
            Observed::Absent if wording == Some(Wording::Prove) => return None,
            Observed::Absent => (IT_IS_GONE, Verb::Create),
            Observed::Wrong { why, replace: true } => {
                return drift(owner_of(step), why, &format!("{STOPS}, after {need}"));
            }
            Observed::Foreign { owner } => {
                return drift("others", owner, &format!("{STOPS}, after {need}"));
            }
            Observed::Right { .. } | Observed::Unused { .. } | Observed::Unknown { .. } => {
                return None;
            }
        };
        return drift(
            owner_of(step),
            what,
            &format!("{}, after {need}", consequence(verb, wording)),
        );
    }
    match seen.survey.get(id)? {
        Look::Seen(Observed::Foreign { owner }) => drift("others", owner, STOPS),
        Look::Failed(failure) if !failure.is_transient() => drift("castle", &failure.why, STOPS),
        Look::Seen(Observed::Wrong { why, .. }) => {
            drift(owner_of(step), why, consequence(step.verb, wording))
        }
        // Where everything is lost, what is absent may never have been there.
        Look::Seen(Observed::Absent) if step.reason == GONE => {
            drift(owner_of(step), IT_IS_GONE, consequence(step.verb, wording))
        }
        _ => None,
    }
}

const IT_IS_GONE: &str = "it is gone";
const STOPS: &str = "`up` stops here";

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
            "nodes" => StepDecl::new(id(name), name, "vm", "it is done").only("it only proves"),
            "watched" => {
                StepDecl::new(id(name), name, "vm", "it is done").observed("Flux makes it")
            }
            "set" => {
                StepDecl::new(id(name), name, "vm", "it is done").set().contained("the machines")
            }
            _ => StepDecl::new(id(name), name, "vm", "it is done").undo(),
        };
        let steps: Vec<StepDecl> = looks.iter().map(|(name, _)| decl(name)).collect();
        let survey = looks.into_iter().map(|(name, look)| (id(name), look)).collect();
        let known = known.iter().map(|name| id(name)).collect();
        let plan = up(&"blue".parse().unwrap(), &steps, &survey, &known).unwrap();
        let seen = Seen { survey: &survey, further: &Survey::new(), known: &known };
        let told = drift(&plan, seen).into_iter();
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

    #[test]
    fn what_nothing_was_made_of_has_not_drifted() {
        let unused = Look::Seen(Observed::Unused { why: "no machine was made".into() });
        assert_eq!(drifts(vec![("secrets", unused)], &["secrets"]), [""; 0]);
    }

    #[test]
    fn what_stands_behind_a_change_is_named_with_what_comes_first() {
        let id = |name: &str| StepId::new("l", name);
        let decl = |name: &str| match name {
            "flux" => StepDecl::new(id(name), name, "vm", "it is done").observed("Flux makes it"),
            _ => StepDecl::new(id(name), name, "vm", "it is done").undo(),
        };
        let after = || Look::After(id("vm"));
        let silent = || Look::Failed(Failure::new(Class::Transient, "look at it", "no answer"));
        let looks = [
            ("vm", Look::Seen(Observed::wrong("memory 4096 -> 8192")), None),
            ("pool", after(), Some(Look::Seen(Observed::wrong("addresses a -> b")))),
            ("class", after(), Some(Look::Seen(Observed::Absent))),
            ("disk", after(), Some(Look::Seen(Observed::stale("too large")))),
            ("taken", after(), Some(Look::Seen(Observed::Foreign { owner: "VM `web`".into() }))),
            ("flux", after(), Some(Look::Seen(Observed::wrong("0 of 1 ready")))),
            ("right", after(), Some(Look::Seen(Observed::right("as wanted")))),
            ("never", after(), None),
            ("dark", after(), Some(silent())),
            ("darker", after(), Some(Look::After(id("dark")))),
            ("silent", silent(), None),
        ];
        let steps: Vec<StepDecl> = looks.iter().map(|(name, ..)| decl(name)).collect();
        let known =
            looks.iter().map(|(name, ..)| id(name)).filter(|known| *known != id("never")).collect();
        let survey = looks.iter().map(|(name, look, _)| (id(name), look.clone())).collect();
        let further =
            looks.iter().filter_map(|(name, _, look)| Some((id(name), look.clone()?))).collect();
        let plan = up(&"blue".parse().unwrap(), &steps, &survey, &known).unwrap();
        let seen = Seen { survey: &survey, further: &further, known: &known };
        let told = drift(&plan, seen).into_iter();
        let told = told.map(|d| format!("{} of {}: {}: {}", d.step, d.owner, d.what, d.then));
        let dark = unseen(&plan, seen).into_iter();
        let dark =
            dark.map(|u| format!("{} unseen: {}, and {} behind it", u.step, u.why, u.behind));
        insta::assert_snapshot!(told.chain(dark).collect::<Vec<_>>().join("\n"), @"
        l/vm of castle: memory 4096 -> 8192: mended in place
        l/pool of castle: addresses a -> b: mended in place, after l/vm
        l/class of castle: it is gone: made again, after l/vm
        l/disk of castle: too large: `up` stops here, after l/vm
        l/taken of others: VM `web`: `up` stops here, after l/vm
        l/flux of Flux: 0 of 1 ready: looked at until Flux has mended it, after l/vm
        l/dark unseen: look at it: no answer, and 1 behind it
        l/silent unseen: look at it: no answer, and 0 behind it
        ");
        // What is only known from afar is not promised.
        let pool = plan.steps.iter().find(|step| step.decl.id == id("pool")).unwrap();
        assert_eq!((pool.verb, pool.unknown), (Verb::Leave, true));
    }
}
