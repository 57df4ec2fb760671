//! Deleting by a call: preconditions, what becomes of dependents, and the answer that the server gives.

use serde_json::{Value, json};

use super::life::Propagation;
use super::refuse::No;
use super::route::Selector;
use super::shown::Shown;
use super::write::Write;
use super::{Kubernetes, Work, body, named, options, review};
use crate::durations::Process;
use crate::turn::{HttpReply, Turn};

/// Kinds whose deletion is answered with the object, even if it is gone.
const ANSWERED_WITH_OBJECT: &[&str] = &[
    "CSIDriver",
    "Namespace",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "ResourceQuota",
    "Service",
    "ServiceAccount",
    "StorageClass",
];
/// Namespaces that the server never lets go.
const KEPT: &[&str] = &["default", "kube-public", "kube-system"];

impl Write<'_> {
    pub(super) fn delete(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let place = self.place(self.name());
        let options = self.options()?;
        let live = cluster
            .store
            .shared(&place)
            .ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        self.check_preconditions(&options, &live)?;
        self.ask_webhooks(cluster, "DELETE", &live)?;
        let dry = self.query.dry_run() || options["dryRun"][0] == "All";
        let version = self.resource.api_version();
        if !dry {
            self.go(cluster, turn, (&place, &live), &options);
        }
        let left = cluster.store.shared(&place).filter(|_| !dry);
        let with_object = ANSWERED_WITH_OBJECT.contains(&self.resource.kind.as_str());
        let reply = match left {
            Some(left) => HttpReply::json(200, &Shown::alone(&left, &version)),
            None if with_object => HttpReply::json(200, &Shown::alone(&live, &version)),
            None => {
                let mut details = json!({"name": self.name(), "group": self.resource.group,
                    "kind": self.resource.plural, "uid": live["metadata"]["uid"]});
                if self.resource.group.is_empty() {
                    details.as_object_mut().map(|map| map.shift_remove("group"));
                }
                let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {},
                    "status": "Success", "details": details});
                HttpReply::json(200, &status)
            }
        };
        Ok(if dry { reply } else { reply.changed() })
    }

    /// Deletes every object of a kind that a selector means.
    pub(super) fn delete_all(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let options = self.options()?;
        let selector = Selector::parse(&self.query, &self.resource)?;
        let prefix = self.place("");
        let all: Vec<_> = cluster
            .store
            .under(&prefix)
            .filter(|(_, object)| selector.matches(object))
            .map(|(place, object)| (place.clone(), object.clone()))
            .collect();
        let dry = self.query.dry_run() || options["dryRun"][0] == "All";
        for (place, object) in all.iter().filter(|_| !dry) {
            self.go(cluster, turn, (place, object), &options);
        }
        let items: Vec<Shown<'_>> = all.iter().map(|(_, object)| Shown::in_list(object)).collect();
        let list = json!({
            "kind": format!("{}List", self.resource.kind), "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": cluster.store.version().to_string()}, "items": items,
        });
        let reply = HttpReply::json(200, &list);
        Ok(if dry { reply } else { reply.changed() })
    }

    fn go(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
        (place, live): (&str, &Value),
        options: &Value,
    ) {
        let given =
            options["propagationPolicy"].as_str().unwrap_or(self.query.get("propagationPolicy"));
        let how = match given {
            "Foreground" => Propagation::Foreground,
            "Orphan" => Propagation::Orphan,
            _ => Propagation::Background,
        };
        let now = options["gracePeriodSeconds"] == 0 || self.query.get("gracePeriodSeconds") == "0";
        let runs = self.resource.kind == "Pod" && live["spec"]["nodeName"].is_string();
        if runs && !now && live["metadata"]["deletionTimestamp"].is_null() {
            cluster.mark_deleting(place, &[], 30);
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
            let work = Work::PodStopped { key: place.to_owned(), uid };
            cluster.later(turn, Process::PodStop, named(place), work);
        } else if !runs || now {
            cluster.delete(turn, place, how);
        }
    }

    fn options(&self) -> Result<Value, No> {
        review::check_protobuf(self.call)?;
        let options = body::options(self.call)?;
        options::check_deletion(&options)?;
        Ok(options)
    }

    fn check_preconditions(&self, options: &Value, live: &Value) -> Result<(), No> {
        let name = self.name();
        let there = |field: &str| live["metadata"][field].as_str().unwrap_or_default().to_owned();
        let wanted = &options["preconditions"];
        if let Some(uid) = wanted["uid"].as_str().filter(|uid| there("uid") != *uid) {
            let why = format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been deleted and then recreated",
                there("uid")
            );
            return Err(No::conflict(&self.resource, name, &why));
        }
        let version = wanted["resourceVersion"].as_str();
        if let Some(version) = version.filter(|version| there("resourceVersion") != *version) {
            let why = format!(
                "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). The object might have been modified",
                there("resourceVersion")
            );
            return Err(No::conflict(&self.resource, name, &why));
        }
        if self.resource.kind != "Namespace" {
            return Ok(());
        }
        if KEPT.contains(&name) {
            return Err(No::forbidden(&self.resource, name, "this namespace may not be deleted"));
        }
        Ok(())
    }
}
