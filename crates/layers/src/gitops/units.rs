//! How the units of a tree stand: ready, resting, held up by others, or a cause in themselves. Pure.
//!
//! A unit that waits for another is never the cause of anything. One that waits for a unit that does not exist, that
//! rests, or that waits for it in turn will wait for ever, which is a cause, and is told at once.

use std::collections::{BTreeMap, BTreeSet};

use castle_kubernetes::judge::judge;
use castle_kubernetes::{Object, ObjectId};
use castle_model::Verdict;
use castle_platforms::cluster::Objects;
use serde_json::Value;

use super::contents::{circles, waits_for};
use super::handover::root;
use super::revision::{applied, source};
use super::{HELM, KUSTOMIZE};

/// How one unit stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Ready at what its source holds, at this revision.
    Ready(String),
    /// Suspended on purpose.
    Resting,
    /// Held up by these, which are not ready.
    Blocked(Vec<String>),
    /// All that it waits for is ready, and it is not.
    Late(String),
    /// Not ready for a reason of its own.
    Cause(String),
}

/// The units of the tree by their names.
pub(super) fn units(there: &Objects) -> BTreeMap<ObjectId, State> {
    let tree = tree(there);
    let grown = |id: &ObjectId| tree.as_ref().is_none_or(|tree| tree.contains(id));
    all_units(there).into_iter().filter(|(id, _)| grown(id)).collect()
}

/// The units that are not of the tree and neither ready nor suspended: somebody made them beside the repository.
pub(super) fn beside(there: &Objects) -> Vec<String> {
    let Some(tree) = tree(there) else { return Vec::new() };
    let late = |state: &State| !matches!(state, State::Ready(_) | State::Resting);
    all_units(there)
        .into_iter()
        .filter(|(id, state)| !tree.contains(id) && late(state))
        .map(|(id, _)| id.name)
        .collect()
}

/// What grows from the root: what a member has applied, and what a member waits for. None before the root says what it
/// has applied: until then everything counts.
fn tree(there: &Objects) -> Option<BTreeSet<ObjectId>> {
    let is_unit = |object: &&Object| object.kind() == "Kustomization";
    made(there.get(&root())?).next()?;
    let mut children: BTreeMap<ObjectId, Vec<ObjectId>> = BTreeMap::new();
    for unit in there.values().filter(is_unit) {
        let grows = made(unit).filter_map(made_unit).chain(needs(unit));
        children.entry(unit.id()).or_default().extend(grows);
        if let Some(parent) = maker(unit) {
            children.entry(parent).or_default().push(unit.id());
        }
    }
    let (mut tree, mut next) = (BTreeSet::new(), vec![root()]);
    while let Some(id) = next.pop() {
        if tree.insert(id.clone()) {
            next.extend(children.remove(&id).unwrap_or_default());
        }
    }
    Some(tree)
}

/// The entries of a unit's inventory, as `namespace_name_group_kind` each.
fn made(unit: &Object) -> impl Iterator<Item = [&str; 4]> {
    unit.entries("/status/inventory/entries").iter().filter_map(|entry| {
        let parts: Vec<&str> = entry.get("id")?.as_str()?.split('_').collect();
        parts.try_into().ok()
    })
}

fn made_unit([namespace, name, group, kind]: [&str; 4]) -> Option<ObjectId> {
    let unit = kind == "Kustomization" && KUSTOMIZE.starts_with(group);
    unit.then(|| ObjectId::namespaced(KUSTOMIZE, kind, namespace, name))
}

/// The unit that has applied a unit, as Flux writes it on what it applies.
fn maker(unit: &Object) -> Option<ObjectId> {
    let name = unit.label("kustomize.toolkit.fluxcd.io/name")?;
    let namespace = unit.label("kustomize.toolkit.fluxcd.io/namespace")?;
    Some(ObjectId::namespaced(KUSTOMIZE, "Kustomization", namespace, name))
}

fn all_units(there: &Objects) -> BTreeMap<ObjectId, State> {
    let all: BTreeMap<ObjectId, &Object> = there
        .values()
        .filter(|object| object.kind() == "Kustomization" && object.api_version() == KUSTOMIZE)
        .map(|object| (object.id(), object))
        .collect();
    let edges = all.iter().map(|(id, unit)| (id.clone(), needs(unit))).collect();
    let circles = circles(&edges);
    let ready: BTreeSet<&ObjectId> = all
        .iter()
        .filter(|(_, unit)| matches!(applied(unit, there), Verdict::Ready(_)))
        .map(|(id, _)| id)
        .collect();
    all.iter()
        .map(|(id, unit)| {
            let circle = circles.iter().find(|circle| circle.contains(id));
            (id.clone(), Looked { there, all: &all, ready: &ready }.state(unit, circle))
        })
        .collect()
}

/// What a unit waits for.
fn needs(unit: &Object) -> Vec<ObjectId> {
    waits_for(unit)
        .into_iter()
        .map(|(namespace, name)| {
            ObjectId::namespaced(KUSTOMIZE, "Kustomization", &namespace, &name)
        })
        .collect()
}

pub(super) fn is_resting(unit: &Object) -> bool {
    unit.at("/spec/suspend").and_then(Value::as_bool) == Some(true)
}

struct Looked<'a> {
    there: &'a Objects,
    all: &'a BTreeMap<ObjectId, &'a Object>,
    ready: &'a BTreeSet<&'a ObjectId>,
}

impl Looked<'_> {
    fn state(&self, unit: &Object, circle: Option<&Vec<ObjectId>>) -> State {
        if is_resting(unit) {
            return State::Resting;
        }
        let why = match applied(unit, self.there) {
            Verdict::Ready(revision) => return State::Ready(revision),
            Verdict::Waiting(why) => why,
            Verdict::Failed(failure) => format!("{}: {}", unit.id(), failure.why),
        };
        let id = unit.id();
        let (needs, own) = (needs(unit), source(unit));
        // A need with a readiness of its own (`readyExpr`) is judged by Flux alone.
        let judged = unit.entries("/spec/dependsOn").iter().any(|n| n.get("readyExpr").is_some());
        if let Some(missing) = needs.iter().find(|need| !self.all.contains_key(need)) {
            return State::Cause(format!("{id} depends on {missing}, which is not there"));
        }
        if let Some(circle) = circle {
            let names: Vec<&str> = circle.iter().map(|id| id.name.as_str()).collect();
            return State::Cause(format!("{id} waits in a circle: {}", names.join(", ")));
        }
        let resting = |need: &&ObjectId| self.all.get(need).is_some_and(|unit| is_resting(unit));
        let late: Vec<&ObjectId> =
            needs.iter().filter(|need| !self.is_met(need, own.as_ref())).collect();
        if let Some(need) = late.iter().find(|need| resting(need)) {
            return State::Cause(format!("{id} depends on {need}, which is suspended"));
        }
        if !late.is_empty() {
            return State::Blocked(late.iter().map(|need| need.name.clone()).collect());
        }
        let why = format!("{why}{}", self.releases(unit));
        if needs.is_empty() || judged || self.was_tried(unit) {
            return State::Cause(why);
        }
        State::Late(why)
    }

    /// Whether Flux has tried the unit with what its source holds now: then it was not forgotten, and failed by itself.
    fn was_tried(&self, unit: &Object) -> bool {
        let waits = unit.condition("Ready").is_some_and(|c| c.reason() == "DependencyNotReady");
        let held = source(unit).and_then(|source| self.there.get(&source));
        let held = held.and_then(|source| source.text("/status/artifact/revision"));
        !waits && held.is_some() && held == unit.text("/status/lastAttemptedRevision")
    }

    /// Whether a need is ready as its dependents see it: at the same revision only if the source is the same.
    fn is_met(&self, need: &ObjectId, own: Option<&ObjectId>) -> bool {
        if self.ready.contains(need) {
            return true;
        }
        let Some(unit) = self.all.get(need) else { return false };
        source(unit).as_ref() != own && matches!(judge(unit), Verdict::Ready(_))
    }

    /// The releases of a unit that are not ready, in words: what a health check waits for.
    fn releases(&self, unit: &Object) -> String {
        let mut late = String::new();
        for entry in made(unit) {
            let [namespace, name, "helm.toolkit.fluxcd.io", "HelmRelease"] = entry else {
                continue;
            };
            let id = ObjectId::namespaced(HELM, "HelmRelease", namespace, name);
            if let Some(release) = self.there.get(&id)
                && let Verdict::Waiting(why) = judge(release)
            {
                late.push_str("; ");
                late.push_str(&why);
            }
        }
        late
    }
}

#[cfg(test)]
mod tests;
