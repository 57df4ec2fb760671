//! How objects come by controllers and go: finalizers, owners, namespaces that empty first.

use std::collections::BTreeMap;

use serde_json::Value;

use super::complete::uuid;
use super::store::{key, parts};
use super::{Kubernetes, Work, named, set_condition};
use crate::durations::Process;
use crate::turn::Turn;

/// The finalizer of an object whose dependents go first.
const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an object whose dependents stay.
const ORPHAN: &str = "orphan";

/// What becomes of the dependents of an object that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Kubernetes {
    /// Deletes as the server does: namespaces empty first, finalizers hold, what is owned goes along.
    pub(super) fn delete(&mut self, turn: &mut Turn<'_>, place: &str, how: Propagation) {
        let Some(object) = self.store.get(place) else { return };
        let (group, plural, _, name) = parts(place);
        let is_namespace = group.is_empty() && plural == "namespaces";
        let mut finalizers: Vec<Value> = object["metadata"]["finalizers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|f| *f != FOREGROUND && *f != ORPHAN)
            .cloned()
            .collect();
        match how {
            Propagation::Background => {}
            Propagation::Foreground => finalizers.push(FOREGROUND.into()),
            Propagation::Orphan => finalizers.push(ORPHAN.into()),
        }
        if !is_namespace && finalizers.is_empty() {
            self.remove(turn, place);
            return;
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let name = name.to_owned();
        let known = object["metadata"]["deletionTimestamp"].is_string();
        self.mark_deleting(place, &finalizers, 0);
        let key = place.to_owned();
        match how {
            Propagation::Foreground => self.collects(turn, place, Work::Foreground { key, uid }),
            Propagation::Orphan => self.collects(turn, place, Work::Orphan { key, uid }),
            Propagation::Background if is_namespace && !known => {
                self.store.change(place, |object| object["status"]["phase"] = "Terminating".into());
                let subject = name.clone();
                self.later(turn, Process::NamespaceEmpty, &subject, Work::NamespaceGone { name });
            }
            Propagation::Background => {}
        }
    }

    /// The garbage collector notices a little later.
    fn collects(&self, turn: &mut Turn<'_>, place: &str, work: Work) {
        self.later(turn, Process::Collect, named(place), work);
    }

    /// Notes on an object that it is being deleted.
    pub(super) fn mark_deleting(&mut self, place: &str, finalizers: &[Value], grace: u64) {
        let stamp = self.stamp();
        self.store.change(place, |object| {
            let metadata = &mut object["metadata"];
            if metadata["deletionTimestamp"].is_null() {
                metadata["deletionTimestamp"] = stamp.into();
                metadata["deletionGracePeriodSeconds"] = grace.into();
                if let Some(generation) = metadata["generation"].as_i64() {
                    metadata["generation"] = (generation + 1).into();
                }
            }
            if !finalizers.is_empty() {
                metadata["finalizers"] = finalizers.into();
            }
        });
    }

    /// A kubelet has stopped the containers of a pod that is being deleted.
    pub(super) fn pod_stopped(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        let pod = self.store.get(place).filter(|pod| pod["metadata"]["uid"] == uid);
        let Some(pod) = pod else { return };
        if pod["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            self.remove(turn, place);
        }
    }

    /// Removes an object; the garbage collector notices later that it owned others.
    pub(super) fn remove(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(gone) = self.store.remove(place) else { return };
        self.plans.remove(place);
        let uid = gone["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if !self.dependents(&uid).is_empty() {
            self.collects(turn, place, Work::Ownerless { uid });
        }
        let (group, plural, namespace, name) = parts(place);
        match (group, plural) {
            ("apiextensions.k8s.io", "customresourcedefinitions") => {
                let (plural, group) = name.split_once('.').unwrap_or((name, ""));
                for place in self.store.keys(group, plural) {
                    self.remove(turn, &place);
                }
            }
            ("", "pods") => self.pod_gone(turn, namespace, &gone),
            _ => {}
        }
    }

    /// The places of everything that an object owns.
    fn dependents(&self, uid: &str) -> Vec<String> {
        let owned = |object: &Value| {
            let owners = object["metadata"]["ownerReferences"].as_array();
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == uid))
        };
        let all = self.store.under("").filter(|(_, object)| owned(object));
        all.map(|(key, _)| key.clone()).collect()
    }

    /// The garbage collector: what a removed object owned goes, unless it has another owner.
    pub(super) fn ownerless(&mut self, turn: &mut Turn<'_>, uid: &str) {
        for place in self.dependents(uid) {
            let left = self.disown(&place, uid);
            if left == 0 {
                self.delete(turn, &place, Propagation::Background);
            }
        }
    }

    /// Takes an owner from an object that has others, and tells how many those are.
    fn disown(&mut self, place: &str, uid: &str) -> usize {
        let Some(object) = self.store.get(place) else { return 0 };
        let others: Vec<Value> = object["metadata"]["ownerReferences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|owner| owner["uid"] != uid)
            .cloned()
            .collect();
        let left = others.len();
        if left > 0 {
            self.store
                .change(place, |object| object["metadata"]["ownerReferences"] = others.into());
        }
        left
    }

    /// The garbage collector: an object goes once everything is gone that it owned.
    pub(super) fn foreground(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        if self.store.get(place).is_none_or(|object| object["metadata"]["uid"] != uid) {
            return;
        }
        let owned = self.dependents(uid);
        if owned.is_empty() {
            self.release(turn, place, FOREGROUND);
            return;
        }
        for dependent in owned {
            let leaving = |o: &Value| o["metadata"]["deletionTimestamp"].is_string();
            if self.store.get(&dependent).is_some_and(|o| !leaving(o)) {
                self.delete(turn, &dependent, Propagation::Foreground);
            }
        }
        let (key, uid) = (place.to_owned(), uid.to_owned());
        self.collects(turn, place, Work::Foreground { key, uid });
    }

    /// The garbage collector: what an object owned is nobody's, and the object goes.
    pub(super) fn orphan(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        for dependent in self.dependents(uid) {
            if self.disown(&dependent, uid) == 0 {
                self.store.change(&dependent, |object| {
                    object["metadata"].as_object_mut().map(|m| m.shift_remove("ownerReferences"));
                });
            }
        }
        self.release(turn, place, ORPHAN);
    }

    /// Takes a finalizer from an object, which goes if it was the last.
    fn release(&mut self, turn: &mut Turn<'_>, place: &str, finalizer: &str) {
        self.store.change(place, |object| {
            if let Some(all) = object["metadata"]["finalizers"].as_array_mut() {
                all.retain(|other| other != finalizer);
            }
        });
        let free = self.store.get(place).is_some_and(|object| {
            object["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty)
        });
        if free {
            self.remove(turn, place);
        }
    }

    /// The namespace controller: what is inside is deleted, and the namespace goes once it is empty.
    pub(super) fn namespace_gone(&mut self, turn: &mut Turn<'_>, name: &str) {
        let inside = |cluster: &Self| -> Vec<String> {
            let all = cluster.store.under("").filter(|(key, _)| parts(key).2 == name);
            all.map(|(key, _)| key.clone()).collect()
        };
        for place in inside(self) {
            self.delete(turn, &place, Propagation::Background);
        }
        let left = inside(self);
        let namespace = key("", "namespaces", "", name);
        if left.is_empty() {
            self.remove(turn, &namespace);
            return;
        }
        let mut by_kind: BTreeMap<String, usize> = BTreeMap::new();
        let mut by_finalizer: BTreeMap<String, usize> = BTreeMap::new();
        for place in &left {
            let (group, plural, _, _) = parts(place);
            *by_kind.entry(format!("{plural}.{group}")).or_default() += 1;
            let object = self.store.get(place);
            let finalizers = object.and_then(|o| o["metadata"]["finalizers"].as_array());
            for finalizer in finalizers.into_iter().flatten().filter_map(Value::as_str) {
                *by_finalizer.entry(finalizer.to_owned()).or_default() += 1;
            }
        }
        let told = |all: BTreeMap<String, usize>, word: &str| -> String {
            let all: Vec<String> = all
                .iter()
                .map(|(what, count)| format!("{what} {word} {count} resource instances"))
                .collect();
            all.join(", ")
        };
        let remain = format!("Some resources are remaining: {}", told(by_kind, "has"));
        let held = format!(
            "Some content in the namespace has finalizers remaining: {}",
            told(by_finalizer, "in")
        );
        let stamp = self.stamp();
        let conditions = [
            (
                "NamespaceDeletionDiscoveryFailure",
                false,
                "ResourcesDiscovered",
                "All resources successfully discovered",
            ),
            (
                "NamespaceDeletionGroupVersionParsingFailure",
                false,
                "ParsedGroupVersions",
                "All legacy kube types successfully parsed",
            ),
            (
                "NamespaceDeletionContentFailure",
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization",
            ),
            ("NamespaceContentRemaining", true, "SomeResourcesRemain", remain.as_str()),
            ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", held.as_str()),
        ];
        self.store.change(&namespace, |object| {
            for (kind, holds, reason, message) in conditions {
                set_condition(object, kind, holds, reason, message, &stamp);
            }
        });
        let work = Work::NamespaceGone { name: name.to_owned() };
        self.later(turn, Process::NamespaceAgain, name, work);
    }

    /// Stores an object that a controller makes, unless it is there already.
    pub(super) fn make(
        &mut self,
        turn: &mut Turn<'_>,
        resource: (&str, &str),
        mut object: Value,
    ) -> String {
        let (group, plural) = resource;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &object["metadata"];
        let place = key(group, plural, &text(&metadata["namespace"]), &text(&metadata["name"]));
        if self.store.get(&place).is_none() {
            object["metadata"]["uid"] = uuid(turn).into();
            object["metadata"]["creationTimestamp"] = self.stamp().into();
            if !group.is_empty() {
                object["metadata"]["generation"] = 1.into();
            }
            self.store.put(&place, object);
            self.touched(turn, &place);
        }
        place
    }
}
