//! Whether somebody agrees that things are destroyed, and to how much.

use std::collections::BTreeSet;

use castle_model::{Plan, StepId};

use super::Session;
use crate::exit::Problem;
use crate::output;

/// Whether somebody has agreed that things are destroyed.
#[derive(Debug, Clone)]
pub(crate) enum Consent {
    /// Whoever sits there is asked.
    Ask,
    /// Somebody has agreed to whatever the plan shows.
    Given,
    /// Somebody has agreed to this, and to nothing more.
    Agreed(BTreeSet<StepId>),
}

impl Consent {
    /// That of `--yes`.
    pub(crate) fn of(yes: bool) -> Self {
        if yes { Self::Given } else { Self::Ask }
    }
}

impl Session<'_> {
    /// Asks before anything is removed or replaced; what is known to be in vain is refused, whoever has agreed.
    pub(super) fn consent(&self, plan: &Plan, consent: &Consent) -> Result<(), Problem> {
        held(plan, &self.castle.command).map_or(Ok(()), Err)?;
        let destructive: Vec<_> = plan.destructive().collect();
        if destructive.is_empty() || matches!(consent, Consent::Given) {
            return Ok(());
        }
        if let Consent::Agreed(agreed) = consent {
            return beyond(plan, agreed).map_or(Ok(()), Err);
        }
        let name = &self.castle.spec.name;
        output::say(&format!(
            "This will destroy of castle `{name}` ({} in all):",
            destructive.len()
        ));
        for step in &destructive {
            output::say(&format!("  {} {}: {}", step.word(), step.decl.title, step.reason));
        }
        if !self.settings.stdin_is_terminal {
            return Err(Problem::refused("nothing was done: nobody is there to agree")
                .hint("add --yes to agree beforehand"));
        }
        output::say(&format!("Type the castle's name ({name}) to agree:"));
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer).ok();
        if answer.trim() == name.as_str() {
            Ok(())
        } else {
            Err(Problem::refused("nothing was done: that is not the castle's name"))
        }
    }
}

/// Refuses a plan that would destroy something though it is known not to come to its end.
fn held(plan: &Plan, command: &str) -> Option<Problem> {
    if !plan.is_held() {
        return None;
    }
    let destroyed = plan.destructive().map(|step| format!("{} {}", step.word(), step.decl.title));
    let what = format!(
        "nothing was done: this would {}, in vain: it can not come to its end",
        destroyed.collect::<Vec<_>>().join(", ")
    );
    let mut problem = Problem::refused(what);
    for step in plan.refused() {
        problem.causes.push(format!("{} is refused: {}", step.decl.title, step.reason));
        for said in step.refused.iter().flat_map(|failure| failure.seen()) {
            if !problem.seen.contains(&said) {
                problem.seen.push(said);
            }
        }
    }
    let hints: BTreeSet<&str> =
        plan.refused().filter_map(|step| step.refused.as_ref()?.hint.as_deref()).collect();
    let mut hint = hints.into_iter().collect::<Vec<_>>().join("; ");
    if hint.is_empty() {
        hint = format!("`{command} plan` shows all of it");
    }
    Some(problem.hint(hint))
}

/// Refuses what a plan would destroy beyond what was agreed to.
fn beyond(plan: &Plan, agreed: &BTreeSet<StepId>) -> Option<Problem> {
    let step = plan.destructive().find(|step| !agreed.contains(&step.decl.id))?;
    let what = format!(
        "nothing was done: the world has changed since you agreed, and it would {} {}",
        step.word(),
        step.decl.title
    );
    let hint = "run the same command again, and look at what it shows";
    Some(Problem::refused(what).hint(hint))
}

#[cfg(test)]
mod tests {
    use castle_model::StepDecl;
    use castle_plan::{Look, Survey};

    use super::*;
    use crate::exit::Exit;

    #[test]
    fn nothing_is_destroyed_beyond_what_was_agreed_to() {
        let ids = ["image", "vm"].map(|kind| StepId::new("platform", kind));
        let decls = ids.clone().map(|id| StepDecl::new(id, "a thing", "vm", "it is done").undo());
        let there = |id: &StepId| (id.clone(), Look::Leftover(Some("it is there".to_owned())));
        let survey: Survey = ids.iter().map(there).collect();
        let plan = castle_plan::down(&"blue".parse().unwrap(), &decls, &survey).unwrap();
        assert!(beyond(&plan, &ids.clone().into()).is_none());
        let refused = beyond(&plan, &[ids[0].clone()].into()).unwrap();
        assert_eq!(refused.exit, Exit::Refused);
        assert!(refused.what.contains("would remove a thing"), "{}", refused.what);
    }
}
