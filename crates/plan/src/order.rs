//! An order in which each step comes after all that it needs, or the reason why there is none.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use castle_model::{StepDecl, StepId};

/// Why steps cannot be ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderError {
    /// Two steps have one name.
    Twice(StepId),
    /// A step needs one that is not declared.
    Unknown {
        /// Which step.
        step: StepId,
        /// What it needs.
        need: StepId,
    },
    /// Steps need each other; the first is named again at the end.
    Cycle(Vec<StepId>),
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice(step) => write!(f, "two steps are called {step}"),
            Self::Unknown { step, need } => write!(f, "{step} needs {need}, which is not declared"),
            Self::Cycle(steps) => {
                let names: Vec<&str> = steps.iter().map(StepId::as_str).collect();
                write!(f, "steps need each other: {}", names.join(" -> "))
            }
        }
    }
}

impl std::error::Error for OrderError {}

/// Orders steps so that each comes after all that it needs; where there is a choice, as declared.
///
/// # Errors
/// A name stands twice, a need is unknown, or there is a cycle.
pub fn order(steps: &[StepDecl]) -> Result<Vec<usize>, OrderError> {
    let mut index = BTreeMap::new();
    for (at, step) in steps.iter().enumerate() {
        if index.insert(&step.id, at).is_some() {
            return Err(OrderError::Twice(step.id.clone()));
        }
    }
    let mut missing = vec![0; steps.len()];
    let mut dependents = vec![Vec::new(); steps.len()];
    for (at, step) in steps.iter().enumerate() {
        for need in step.needs.iter().collect::<BTreeSet<_>>() {
            let unknown = || OrderError::Unknown { step: step.id.clone(), need: need.clone() };
            dependents[*index.get(need).ok_or_else(unknown)?].push(at);
            missing[at] += 1;
        }
    }
    let mut free: BTreeSet<usize> = (0..steps.len()).filter(|at| missing[*at] == 0).collect();
    let mut ordered = Vec::with_capacity(steps.len());
    while let Some(at) = free.pop_first() {
        ordered.push(at);
        for &dependent in &dependents[at] {
            missing[dependent] -= 1;
            if missing[dependent] == 0 {
                free.insert(dependent);
            }
        }
    }
    if ordered.len() == steps.len() { Ok(ordered) } else { Err(cycle(steps, &index, &missing)) }
}

/// Walks along needs that are never met until a step comes again.
fn cycle(steps: &[StepDecl], index: &BTreeMap<&StepId, usize>, missing: &[usize]) -> OrderError {
    let mut at = missing.iter().position(|m| *m > 0).unwrap_or_default();
    let mut path: Vec<usize> = Vec::new();
    loop {
        if let Some(from) = path.iter().position(|p| *p == at) {
            let mut names: Vec<StepId> =
                path[from..].iter().map(|p| steps[*p].id.clone()).collect();
            names.push(steps[at].id.clone());
            return OrderError::Cycle(names);
        }
        path.push(at);
        let next = steps[at].needs.iter().map(|n| index[n]).find(|n| missing[*n] > 0);
        let Some(next) = next else { return OrderError::Cycle(vec![steps[at].id.clone()]) };
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, needs: &[&str]) -> StepDecl {
        StepDecl::new(StepId::new("l", name), name, "vm", "it is done")
            .needs(needs.iter().map(|n| StepId::new("l", n)))
    }

    #[test]
    fn needs_come_first_and_ties_as_declared() {
        let steps = [step("c", &["b"]), step("b", &[]), step("a", &[])];
        assert_eq!(order(&steps), Ok(vec![1, 0, 2]));
    }

    #[test]
    fn a_cycle_is_printed_as_the_cycle() {
        let steps =
            [step("start", &["a"]), step("a", &["b"]), step("b", &["c"]), step("c", &["a"])];
        let error = order(&steps).unwrap_err();
        assert_eq!(error.to_string(), "steps need each other: l/a -> l/b -> l/c -> l/a");
    }

    #[test]
    fn unknown_and_doubled_names_are_found() {
        assert!(matches!(order(&[step("a", &["x"])]), Err(OrderError::Unknown { .. })));
        assert!(matches!(order(&[step("a", &[]), step("a", &[])]), Err(OrderError::Twice(_))));
    }
}
