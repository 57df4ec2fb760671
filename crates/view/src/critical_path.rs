//! The chain of steps that decided how long a run took.

use std::collections::BTreeMap;

use castle_model::time::Moment;
use castle_model::{StepDecl, StepId};

use crate::progress::{Progress, StepStatus};

/// A chain of steps, each needing the one before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Path {
    /// The steps and how long each took, in milliseconds.
    pub steps: Vec<(StepId, u64)>,
    /// All of them together.
    pub total_ms: u64,
}

/// The longest chain by the times that were measured. No schedule of the same steps can be faster.
///
/// `decls` stand in an order in which each comes after what it needs, as in a plan.
#[must_use]
pub fn critical_path(progress: &Progress, decls: &[&StepDecl]) -> Path {
    longest(decls, &|id| progress.steps.get(id).and_then(|step| step.took_ms))
}

/// The longest chain at a moment of a run that goes on: what is under way counts with the time that it has taken.
#[must_use]
pub fn critical_path_so_far(progress: &Progress, decls: &[&StepDecl], now: Moment) -> Path {
    longest(decls, &|id| {
        let step = progress.steps.get(id)?;
        let under_way = matches!(step.status, StepStatus::Running | StepStatus::Waiting);
        let since = step.started.filter(|_| under_way).map(|started| now.since(started));
        step.took_ms.or(since)
    })
}

/// The longest chain by the times that the steps declare to be usual.
pub(crate) fn usual_path(decls: &[&StepDecl]) -> Path {
    let usual: BTreeMap<&StepId, u64> = decls.iter().map(|decl| (&decl.id, decl.weight)).collect();
    longest(decls, &|id| usual.get(id).copied())
}

fn longest(decls: &[&StepDecl], took: &dyn Fn(&StepId) -> Option<u64>) -> Path {
    let mut longest: BTreeMap<&StepId, (u64, Option<&StepId>)> = BTreeMap::new();
    for decl in decls {
        let Some(own) = took(&decl.id) else { continue };
        let before = decl
            .needs
            .iter()
            .filter_map(|need| longest.get(need).map(|(length, _)| (*length, need)))
            .max_by_key(|(length, _)| *length);
        let (length, through) = before.map_or((0, None), |(length, need)| (length, Some(need)));
        longest.insert(&decl.id, (length + own, through));
    }
    let mut path = Path::default();
    let mut next = longest.iter().max_by_key(|(_, (length, _))| *length).map(|(id, _)| *id);
    path.total_ms = next.and_then(|id| longest.get(id)).map_or(0, |(length, _)| *length);
    while let Some(id) = next {
        path.steps.push((id.clone(), took(id).unwrap_or(0)));
        next = longest.get(id).and_then(|(_, through)| *through);
    }
    path.steps.reverse();
    path
}
