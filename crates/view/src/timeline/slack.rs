//! How much later each step could have ended without making the run longer, and what it directly needs.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::{StepDecl, StepId};

use crate::progress::Progress;

/// The slack of every step that has ended: whatever is behind it is taken to begin as soon as it may, and to take what it took.
pub(super) fn slack(
    progress: &Progress,
    decls: &[&StepDecl],
    spans: &BTreeMap<StepId, (u64, u64)>,
) -> BTreeMap<StepId, u64> {
    let took = |id: &StepId| progress.steps.get(id).and_then(|step| step.took_ms);
    let ended = |id: &StepId| took(id).and(spans.get(id)).map(|(_, end)| *end);
    let over = decls.iter().filter_map(|decl| ended(&decl.id)).max().unwrap_or(0);
    let mut latest: BTreeMap<&StepId, u64> = BTreeMap::new();
    let mut slack = BTreeMap::new();
    for decl in decls.iter().rev() {
        let (Some(took), Some(end)) = (took(&decl.id), ended(&decl.id)) else { continue };
        let by = latest.get(&decl.id).copied().unwrap_or(over);
        slack.insert(decl.id.clone(), by.saturating_sub(end));
        for need in &decl.needs {
            let must = latest.entry(need).or_insert(over);
            *must = (*must).min(by.saturating_sub(took));
        }
    }
    slack
}

/// What each step needs, without what one of its other needs needs already.
pub(super) fn direct_needs(decls: &[&StepDecl]) -> BTreeMap<StepId, Vec<StepId>> {
    let mut behind: BTreeMap<&StepId, BTreeSet<&StepId>> = BTreeMap::new();
    let mut direct = BTreeMap::new();
    for decl in decls {
        let through: BTreeSet<&StepId> =
            decl.needs.iter().filter_map(|need| behind.get(need)).flatten().copied().collect();
        let own = decl.needs.iter().filter(|need| !through.contains(need)).cloned();
        direct.insert(decl.id.clone(), own.collect());
        behind.insert(&decl.id, through.into_iter().chain(&decl.needs).collect());
    }
    direct
}
