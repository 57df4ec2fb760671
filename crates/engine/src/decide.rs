//! What a step does with what it sees when its turn comes: as planned or less, never more (DESIGN 9.5).

use castle_model::{Class, Failure, Observed, StepId, Verb};

/// What to do now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Act with this verb, for this reason.
    Act(Verb, String),
    /// It is right already; the evidence.
    Leave(String),
    /// Stop here.
    Refuse(Failure),
}

/// Decides from the planned verb and what is seen.
#[must_use]
pub fn decide(step: &StepId, planned: Verb, observed: Observed) -> Decision {
    let refuse = |class, why: String, hint: &str| {
        Decision::Refuse(Failure::new(class, format!("{planned} {step}"), why).hint(hint))
    };
    match observed {
        Observed::Right { evidence } => Decision::Leave(evidence),
        Observed::Absent => Decision::Act(Verb::Create, "not there".to_owned()),
        Observed::Unused { why } => Decision::Act(Verb::Create, why),
        Observed::Wrong { why, replace: false } => Decision::Act(Verb::Update, why),
        Observed::Wrong { why, replace: true } if planned == Verb::Replace => {
            Decision::Act(Verb::Replace, why)
        }
        Observed::Wrong { why, replace: true } => refuse(
            Class::Conflict,
            format!("it would have to be replaced ({why}), which the plan did not show"),
            "run `castle plan` to see what would be replaced, then `castle up` again",
        ),
        Observed::Foreign { owner } => {
            Decision::Refuse(Failure::foreign(format!("{planned} {step}"), &owner))
        }
        Observed::Unknown { why } => refuse(
            Class::Transient,
            format!("it can not be looked at: {why}"),
            "nothing is done to what can not be seen; run the same command again",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(planned: Verb, observed: Observed) -> Decision {
        decide(&StepId::new("l", "s"), planned, observed)
    }

    #[test]
    fn a_run_may_do_less_but_never_more_than_planned() {
        assert_eq!(on(Verb::Create, Observed::right("x")), Decision::Leave("x".into()));
        assert!(matches!(on(Verb::Create, Observed::wrong("x")), Decision::Act(Verb::Update, _)));
        assert!(
            matches!(on(Verb::Create, Observed::stale("x")), Decision::Refuse(f) if f.class == Class::Conflict)
        );
        assert!(matches!(on(Verb::Leave, Observed::stale("x")), Decision::Refuse(_)));
        assert!(matches!(on(Verb::Replace, Observed::stale("x")), Decision::Act(Verb::Replace, _)));
        assert!(matches!(on(Verb::Replace, Observed::Absent), Decision::Act(Verb::Create, _)));
    }

    #[test]
    fn what_is_foreign_or_unknown_is_never_touched() {
        for planned in [Verb::Create, Verb::Update, Verb::Replace, Verb::Leave] {
            let foreign = Observed::Foreign { owner: "somebody".into() };
            assert!(
                matches!(on(planned, foreign), Decision::Refuse(f) if f.class == Class::Conflict)
            );
            assert!(
                matches!(on(planned, Observed::unknown("x")), Decision::Refuse(f) if f.is_transient())
            );
        }
    }
}
