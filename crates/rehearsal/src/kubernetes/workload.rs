//! Workloads: Deployments by their ReplicaSets, DaemonSets and StatefulSets become pods, and tell how many there are.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Work, clear_condition, named, set_condition};
use crate::durations::Process;
use crate::turn::Turn;

impl Kubernetes {
    /// A workload's controller: the right pods exist, old ones go, and the status tells the truth.
    pub(super) fn roll_out(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(workload) = self.store.shared(place) else { return };
        if workload["metadata"]["deletionTimestamp"].is_string() {
            return;
        }
        let template = &workload["spec"]["template"];
        let revision = hex::encode(Sha256::digest(template.to_string()))[..10].to_owned();
        let owner = match parts(place).1 {
            "deployments" => self.replica_set(turn, &workload, &revision),
            _ => place.to_owned(),
        };
        for (pod, object) in self.pods_of(&workload) {
            let labels = &object["metadata"]["labels"];
            let of = labels["pod-template-hash"].as_str();
            if of.or(labels["controller-revision-hash"].as_str()) != Some(&revision) {
                self.remove(turn, &pod);
            }
        }
        let refused = self.fill_up(turn, (place, &owner), &workload, &revision).err();
        self.start_pods(turn, &workload);
        let stamp = self.stamp();
        if let Some(why) = &refused {
            let component = match parts(&owner).1 {
                "replicasets" => "replicaset-controller",
                "daemonsets" => "daemonset-controller",
                _ => "statefulset-controller",
            };
            let message = format!("Error creating: {why}");
            self.warn(turn, &owner, (component, "FailedCreate"), &message);
            self.plan(turn, place, Process::RolloutAgain);
        }
        if owner != place {
            self.store.change(&owner, |set| match &refused {
                Some(why) => {
                    set_condition(set, "ReplicaFailure", true, "FailedCreate", why, &stamp);
                }
                None => clear_condition(set, "ReplicaFailure"),
            });
        }
        self.recount(place);
    }

    /// Makes the pods that are missing and removes those that are too many.
    ///
    /// # Errors
    /// Why a pod was refused.
    fn fill_up(
        &mut self,
        turn: &mut Turn<'_>,
        (place, owner): (&str, &str),
        workload: &Value,
        revision: &str,
    ) -> Result<(), String> {
        let there = self.pods_of(workload);
        let nodes = self.eligible(&workload["spec"]["template"]);
        if parts(place).1 == "daemonsets" {
            let taken: BTreeSet<&str> =
                there.iter().filter_map(|(_, pod)| pod["spec"]["nodeName"].as_str()).collect();
            for node in nodes.iter().filter(|node| !taken.contains(node.as_str())) {
                self.make_pod(turn, owner, (revision, None), Some(node))?;
            }
            return Ok(());
        }
        let wanted = workload["spec"]["replicas"].as_u64().unwrap_or(1);
        let wanted = usize::try_from(wanted).unwrap_or(1);
        for (pod, _) in there.iter().skip(wanted) {
            self.remove(turn, pod);
        }
        let ready = self.nodes_with_network(&nodes);
        let mut made = Ok(());
        for index in there.len()..wanted {
            let node = ready.get(index % ready.len().max(1)).cloned();
            let ordinal = (parts(place).1 == "statefulsets").then_some(index);
            made = self.make_pod(turn, owner, (revision, ordinal), node.as_deref());
            if made.is_err() {
                break;
            }
        }
        self.schedule(turn, workload, &ready);
        made
    }

    /// The ReplicaSet of a Deployment for a revision; those of others are scaled down.
    fn replica_set(&mut self, turn: &mut Turn<'_>, deployment: &Value, revision: &str) -> String {
        let metadata = &deployment["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let own = format!("{name}-{revision}");
        let mut template = deployment["spec"]["template"].clone();
        template["metadata"]["labels"]["pod-template-hash"] = revision.into();
        let mut selector = deployment["spec"]["selector"].clone();
        selector["matchLabels"]["pod-template-hash"] = revision.into();
        let number = self.replica_sets(deployment).len() + 1;
        let replicas = deployment["spec"]["replicas"].clone();
        let place = self.make(
            turn,
            ("apps", "replicasets"),
            json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet",
                "metadata": {
                    "name": own, "namespace": metadata["namespace"], "labels": template["metadata"]["labels"],
                    "annotations": {"deployment.kubernetes.io/revision": number.to_string()},
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": metadata["uid"],
                        "controller": true, "blockOwnerDeletion": true,
                    }],
                },
                "spec": {"replicas": replicas, "selector": selector, "template": template},
                "status": {"replicas": 0},
            }),
        );
        for (other, set) in self.replica_sets(deployment) {
            let wanted = if other == place { replicas.clone() } else { 0.into() };
            if set["spec"]["replicas"] != wanted {
                self.store.change(&other, |set| {
                    set["spec"]["replicas"] = wanted;
                    let generation = set["metadata"]["generation"].as_i64().unwrap_or(0);
                    set["metadata"]["generation"] = (generation + 1).into();
                });
            }
        }
        place
    }

    fn replica_sets(&self, deployment: &Value) -> Vec<(String, Arc<Value>)> {
        let namespace = deployment["metadata"]["namespace"].as_str().unwrap_or_default();
        self.owned_by("apps/replicasets", namespace, &[&deployment["metadata"]["uid"]])
    }

    /// The objects of a kind in a namespace whose first owner is one of these.
    fn owned_by(&self, kind: &str, namespace: &str, uids: &[&Value]) -> Vec<(String, Arc<Value>)> {
        self.store
            .under(&format!("{kind}/{namespace}/"))
            .filter(|(_, object)| uids.contains(&&object["metadata"]["ownerReferences"][0]["uid"]))
            .map(|(key, object)| (key.clone(), object.clone()))
            .collect()
    }

    /// The pods of a workload.
    pub(super) fn pods_of(&self, workload: &Value) -> Vec<(String, Arc<Value>)> {
        let namespace = workload["metadata"]["namespace"].as_str().unwrap_or_default();
        if workload["kind"] != "Deployment" {
            return self.owned_by("/pods", namespace, &[&workload["metadata"]["uid"]]);
        }
        let sets = self.replica_sets(workload);
        let uids: Vec<&Value> = sets.iter().map(|(_, set)| &set["metadata"]["uid"]).collect();
        self.owned_by("/pods", namespace, &uids)
    }

    /// The place of the workload that owns a pod, if it is still there.
    pub(super) fn owner(&self, pod: &Value) -> Option<String> {
        let namespace = pod["metadata"]["namespace"].as_str()?;
        let reference = &pod["metadata"]["ownerReferences"][0];
        let name = reference["name"].as_str()?;
        let plural = match reference["kind"].as_str()? {
            "ReplicaSet" => {
                let set = self.store.get(&key("apps", "replicasets", namespace, name))?;
                let name = set["metadata"]["ownerReferences"][0]["name"].as_str()?;
                let place = key("apps", "deployments", namespace, name);
                return self.store.get(&place).map(|_| place);
            }
            "DaemonSet" => "daemonsets",
            "StatefulSet" => "statefulsets",
            _ => return None,
        };
        let place = key("apps", plural, namespace, name);
        self.store.get(&place).map(|_| place)
    }

    /// Writes the counters of a workload's status.
    pub(super) fn recount(&mut self, place: &str) {
        let Some(workload) = self.store.shared(place) else { return };
        let pods = self.pods_of(&workload);
        let is_ready = |pod: &Value| condition(pod, "Ready");
        let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
        match parts(place).1 {
            "deployments" => self.recount_deployment(place, &workload, &pods),
            "daemonsets" => {
                let wanted = self.eligible(&workload["spec"]["template"]).len();
                let all = pods.len();
                self.store.change(place, |set| {
                    set["status"] = counted(json!({
                        "observedGeneration": set["metadata"]["generation"],
                        "updatedNumberScheduled": all, "numberAvailable": ready,
                        "numberUnavailable": wanted.saturating_sub(ready),
                    }));
                    set["status"]["desiredNumberScheduled"] = wanted.into();
                    set["status"]["currentNumberScheduled"] = all.into();
                    set["status"]["numberReady"] = ready.into();
                    set["status"]["numberMisscheduled"] = 0.into();
                });
            }
            _ => {
                let all = pods.len();
                self.store.change(place, |set| {
                    let revision =
                        format!("{}-1", set["metadata"]["name"].as_str().unwrap_or_default());
                    set["status"] = counted(json!({
                        "observedGeneration": set["metadata"]["generation"], "readyReplicas": ready,
                        "currentReplicas": all, "updatedReplicas": all, "availableReplicas": ready,
                    }));
                    set["status"]["replicas"] = all.into();
                    set["status"]["currentRevision"] = revision.clone().into();
                    set["status"]["updateRevision"] = revision.into();
                });
            }
        }
    }

    fn recount_deployment(&mut self, place: &str, workload: &Value, pods: &[(String, Arc<Value>)]) {
        let stamp = self.stamp();
        let mut newest: Option<(String, Option<String>)> = None;
        for (at, set) in self.replica_sets(workload) {
            let uid = &set["metadata"]["uid"];
            let own =
                pods.iter().filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == *uid);
            let (all, ready) = own.fold((0, 0), |(all, ready), (_, pod)| {
                (all + 1, ready + usize::from(condition(pod, "Ready")))
            });
            self.store.change(&at, |set| {
                let conditions = set["status"]["conditions"].take();
                set["status"] = counted(json!({
                    "fullyLabeledReplicas": all, "readyReplicas": ready, "availableReplicas": ready,
                    "observedGeneration": set["metadata"]["generation"],
                }));
                set["status"]["replicas"] = all.into();
                if !conditions.is_null() {
                    set["status"]["conditions"] = conditions;
                }
            });
            if set["spec"]["replicas"] != 0 || newest.is_none() {
                let failure = set["status"]["conditions"].as_array().into_iter().flatten();
                let mut failure = failure.filter(|c| c["type"] == "ReplicaFailure");
                let why = failure.find_map(|c| c["message"].as_str()).map(str::to_owned);
                newest = Some((parts(&at).3.to_owned(), why));
            }
        }
        let ready = pods.iter().filter(|(_, pod)| condition(pod, "Ready")).count();
        let all = pods.len();
        let (set, failure) = newest.unwrap_or_default();
        self.store.change(place, |workload| {
            let wanted = workload["spec"]["replicas"].as_u64().unwrap_or(1);
            let conditions = workload["status"]["conditions"].take();
            workload["status"] = counted(json!({
                "observedGeneration": workload["metadata"]["generation"], "replicas": all, "updatedReplicas": all,
                "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": all - ready,
            }));
            if !conditions.is_null() {
                workload["status"]["conditions"] = conditions;
            }
            deployment_conditions(workload, (&set, failure.as_deref()), ready as u64 >= wanted, &stamp);
        });
    }

    /// Whether a workload has a ready pod.
    pub(super) fn is_up(&self, namespace: &str, plural: &str, name: &str) -> bool {
        self.store.get(&key("apps", plural, namespace, name)).is_some_and(|workload| {
            let status = &workload["status"];
            status["readyReplicas"].as_u64().or(status["numberReady"].as_u64()).unwrap_or(0) > 0
        })
    }

    /// A pod of a controller is ready: it looks at everything that waited for it.
    pub(super) fn controller_up(&mut self, turn: &mut Turn<'_>, owner: &str, pod: &str) {
        let (_, _, namespace, name) = parts(owner);
        let kinds: &[(&str, &str)] = match (namespace, name) {
            ("external-secrets", "external-secrets") => &[
                ("external-secrets.io", "clustersecretstores"),
                ("external-secrets.io", "secretstores"),
                ("external-secrets.io", "externalsecrets"),
            ],
            ("flux-system", "source-controller") => {
                &[("source.toolkit.fluxcd.io", "gitrepositories")]
            }
            ("flux-system", "kustomize-controller") => {
                &[("kustomize.toolkit.fluxcd.io", "kustomizations")]
            }
            ("metallb-system", "controller" | "speaker") => &[("", "services")],
            ("longhorn-system", "longhorn-manager") => {
                let node = self
                    .store
                    .get(pod)
                    .and_then(|p| p["spec"]["nodeName"].as_str().map(str::to_owned));
                self.longhorn_manager_up(turn, &node.unwrap_or_default());
                &[]
            }
            ("longhorn-system", "longhorn-driver-deployer") => {
                self.later(turn, Process::LonghornCsi, named(owner), Work::LonghornDrivers);
                &[]
            }
            ("longhorn-system", "csi-provisioner") => &[("", "persistentvolumeclaims")],
            _ => &[],
        };
        for (group, plural) in kinds {
            for place in self.store.keys(group, plural) {
                self.touched(turn, &place);
            }
        }
    }
}

/// The server leaves out counters that are zero.
fn counted(mut status: Value) -> Value {
    if let Some(map) = status.as_object_mut() {
        map.retain(|_, value| *value != 0 && !value.is_null());
    }
    status
}

fn deployment_conditions(
    workload: &mut Value,
    (set, failure): (&str, Option<&str>),
    enough: bool,
    stamp: &str,
) {
    let (reason, message) = if enough {
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    set_condition(workload, "Available", enough, reason, message, stamp);
    let (reason, message) = if enough {
        ("NewReplicaSetAvailable", format!("ReplicaSet \"{set}\" has successfully progressed."))
    } else {
        ("ReplicaSetUpdated", format!("ReplicaSet \"{set}\" is progressing."))
    };
    set_condition(workload, "Progressing", true, reason, &message, stamp);
    match failure {
        Some(why) => set_condition(workload, "ReplicaFailure", true, "FailedCreate", why, stamp),
        None => clear_condition(workload, "ReplicaFailure"),
    }
}
