//! How objects come by controllers and go: finalizers, owners, namespaces that empty first.

use serde_json::Value;

use super::store::{key, parts};
use super::write::uuid;
use super::{Kubernetes, Work};
use crate::turn::Turn;

impl Kubernetes {
    /// Deletes as the server does: namespaces empty first, finalizers hold, what is owned goes along.
    pub(super) fn delete(&mut self, turn: &mut Turn<'_>, place: &str) {
        let stamp = self.stamp();
        let Some(object) = self.store.get(place) else { return };
        let (group, plural, _, name) = parts(place);
        let is_namespace = group.is_empty() && plural == "namespaces";
        let held = object["metadata"]["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if !is_namespace && !held {
            self.remove(turn, place);
            return;
        }
        if object["metadata"]["deletionTimestamp"].is_null() {
            let name = name.to_owned();
            self.store.change(place, |object| {
                object["metadata"]["deletionTimestamp"] = stamp.into();
                if is_namespace {
                    object["status"]["phase"] = "Terminating".into();
                }
            });
            if is_namespace {
                self.later(turn, (1_000, 2_000, 5_000), Work::NamespaceGone { name });
            }
        }
    }

    /// Removes an object and everything that it owns.
    pub(super) fn remove(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(gone) = self.store.remove(place) else { return };
        self.plans.remove(place);
        let uid = &gone["metadata"]["uid"];
        let owned: Vec<String> = self
            .store
            .under("")
            .filter(|(_, object)| {
                object["metadata"]["ownerReferences"]
                    .as_array()
                    .is_some_and(|o| o.iter().any(|r| r["uid"] == *uid))
            })
            .map(|(key, _)| key.clone())
            .collect();
        for place in owned {
            self.remove(turn, &place);
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

    pub(super) fn namespace_gone(&mut self, turn: &mut Turn<'_>, name: &str) {
        let inside: Vec<String> = self
            .store
            .under("")
            .filter(|(key, _)| parts(key).2 == name)
            .map(|(key, _)| key.clone())
            .collect();
        for place in inside {
            self.remove(turn, &place);
        }
        self.remove(turn, &key("", "namespaces", "", name));
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
