//! Workloads: Deployments, DaemonSets and StatefulSets become pods, which pull, start and turn ready.

use std::sync::Arc;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::complete::uuid;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Span, Work, set_condition};
use crate::durations::Process;
use crate::turn::Turn;

/// How long the images of a workload take to pull and its containers to be ready, by namespace and name.
const TIMES: &[(&str, &str, Span, Span)] = &[
    ("kube-system", "kube-flannel", (100, 200, 400), (500, 1_000, 2_000)),
    ("kube-system", "kube-proxy", (500, 1_000, 3_000), (500, 1_000, 2_000)),
    ("external-secrets", "", (2_000, 6_000, 15_000), (4_000, 8_000, 15_000)),
    ("metallb-system", "", (2_000, 6_000, 15_000), (3_000, 6_000, 10_000)),
    ("longhorn-system", "longhorn-manager", (10_000, 25_000, 60_000), (6_000, 12_000, 25_000)),
    ("longhorn-system", "", (2_000, 6_000, 15_000), (3_000, 6_000, 12_000)),
    ("flux-system", "", (4_000, 9_000, 20_000), (3_000, 6_000, 12_000)),
    ("", "", (2_000, 5_000, 12_000), (1_000, 3_000, 6_000)),
];

impl Kubernetes {
    /// A workload's controller: the right pods exist, old ones go, and the status tells the truth.
    pub(super) fn roll_out(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(workload) = self.store.shared(place) else { return };
        let template = &workload["spec"]["template"];
        let revision = hex::encode(Sha256::digest(template.to_string()))[..10].to_owned();
        for (pod, object) in self.pods_of(&workload) {
            if object["metadata"]["labels"]["pod-template-hash"] != revision.as_str() {
                self.remove(turn, &pod);
            }
        }
        let there = self.pods_of(&workload);
        let nodes = self.eligible(template);
        if parts(place).1 == "daemonsets" {
            for node in &nodes {
                if !there.iter().any(|(_, pod)| pod["spec"]["nodeName"] == node.as_str()) {
                    self.make_pod(turn, &workload, &revision, Some(node));
                }
            }
        } else {
            let wanted =
                usize::try_from(workload["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(1);
            for (pod, _) in there.iter().skip(wanted) {
                self.remove(turn, pod);
            }
            let ready = self.nodes_with_network(&nodes);
            for index in there.len()..wanted {
                let node = ready.get(index % ready.len().max(1)).cloned();
                self.make_pod(turn, &workload, &revision, node.as_deref());
            }
            self.schedule(&workload, &ready);
        }
        self.start_pods(turn, &workload);
        self.recount(place);
    }

    /// Gives a node to pods that had none.
    fn schedule(&mut self, workload: &Value, nodes: &[String]) {
        for (index, (pod, object)) in self.pods_of(workload).into_iter().enumerate() {
            if object["spec"]["nodeName"].is_null() && !nodes.is_empty() {
                let node = nodes[index % nodes.len()].clone();
                let stamp = self.stamp();
                self.store.change(&pod, |pod| {
                    pod["spec"]["nodeName"] = node.into();
                    set_condition(pod, "PodScheduled", true, "", "", &stamp);
                });
            }
        }
    }

    fn nodes_with_network(&self, nodes: &[String]) -> Vec<String> {
        nodes
            .iter()
            .filter(|name| {
                let ready = self
                    .store
                    .get(&key("", "nodes", "", name))
                    .is_some_and(|n| condition(n, "Ready"));
                ready && self.nodes.get(*name).is_some_and(|f| f.network)
            })
            .cloned()
            .collect()
    }

    fn make_pod(
        &mut self,
        turn: &mut Turn<'_>,
        workload: &Value,
        revision: &str,
        node: Option<&str>,
    ) {
        let template = &workload["spec"]["template"];
        let name = workload["metadata"]["name"].as_str().unwrap_or_default();
        let mut labels = template["metadata"]["labels"].clone();
        labels["pod-template-hash"] = revision.into();
        let suffix = uuid(turn)[..5].to_owned();
        let mut spec = template["spec"].clone();
        if let Some(node) = node {
            spec["nodeName"] = node.into();
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{name}-{revision}-{suffix}"),
                "namespace": workload["metadata"]["namespace"],
                "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": workload["kind"], "name": name,
                    "uid": workload["metadata"]["uid"], "controller": true,
                }],
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        });
        if node.is_none() {
            let message =
                format!("0/{} nodes are available: no node is ready for it yet.", self.nodes.len());
            set_condition(
                &mut pod,
                "PodScheduled",
                false,
                "Unschedulable",
                &message,
                &self.stamp(),
            );
        }
        self.make(turn, ("", "pods"), pod);
    }

    /// Pods whose node can carry them begin to pull.
    fn start_pods(&mut self, turn: &mut Turn<'_>, workload: &Value) {
        let stamp = self.stamp();
        for (place, pod) in self.pods_of(workload) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let able = self.nodes.get(node).is_some_and(|f| f.network);
            if able && pod["status"]["startTime"].is_null() {
                self.store.change(&place, |pod| pod["status"]["startTime"] = stamp.clone().into());
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                let work = Work::PodStarted { key: place, uid };
                if is_addon(workload) {
                    self.after_draw(turn, Process::AddonPull, node, work);
                } else {
                    self.later(turn, times(workload).0, work);
                }
            }
        }
    }

    pub(super) fn pod_started(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        let Some(pod) = self.store.shared(place).filter(|p| p["metadata"]["uid"] == uid) else {
            return;
        };
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let address = if pod["spec"]["hostNetwork"] == true {
            self.nodes.get(node).map(|f| f.address.to_string()).unwrap_or_default()
        } else {
            self.counter += 1;
            let index = self.nodes.keys().position(|n| n == node).unwrap_or(0);
            format!("10.244.{index}.{}", self.counter % 250 + 2)
        };
        let stamp = self.stamp();
        self.store.change(place, |pod| {
            pod["status"]["phase"] = "Running".into();
            pod["status"]["podIP"] = address.into();
            set_condition(
                pod,
                "Ready",
                false,
                "ContainersNotReady",
                "containers with unready status",
                &stamp,
            );
        });
        let owner = self.owner(&pod).and_then(|owner| self.store.get(&owner));
        let work = Work::PodReady { key: place.to_owned(), uid: uid.to_owned() };
        if owner.is_some_and(is_addon) {
            self.after_draw(turn, Process::AddonStart, node, work);
        } else {
            self.later(turn, owner.map_or((1_000, 3_000, 6_000), |o| times(o).1), work);
        }
        self.replan_services(turn, &pod, (100, 300, 800));
    }

    pub(super) fn pod_ready(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        if self.store.get(place).is_none_or(|p| p["metadata"]["uid"] != uid) {
            return;
        }
        let stamp = self.stamp();
        self.store.change(place, |pod| set_condition(pod, "Ready", true, "", "", &stamp));
        let owner = self.store.get(place).and_then(|pod| self.owner(pod));
        self.pod_changed(turn, place);
        if let Some(owner) = owner {
            self.webhooks_up(turn, place);
            self.controller_up(turn, &owner, place);
        }
    }

    /// The readiness of a pod changed: its workload counts again and its services connect again, a little later.
    pub(super) fn pod_changed(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(pod) = self.store.shared(place) else { return };
        if let Some(owner) = self.owner(&pod) {
            self.recount(&owner);
        }
        self.replan_services(turn, &pod, (500, 1_200, 2_500));
    }

    pub(super) fn pod_gone(&mut self, turn: &mut Turn<'_>, namespace: &str, pod: &Value) {
        if let Some(owner) = self.owner(pod) {
            self.plan(turn, &owner, (50, 150, 400));
        }
        let still = self.store.all("", "pods").any(|(key, _)| parts(key).2 == namespace);
        if !still {
            self.serving.retain(|service| !service.starts_with(&format!("{namespace}/")));
        }
        self.replan_services(turn, pod, (100, 300, 800));
    }

    fn replan_services(&mut self, turn: &mut Turn<'_>, pod: &Value, span: Span) {
        for service in self.services_of(pod) {
            self.plan(turn, &service, span);
        }
    }

    /// The place of the workload that owns a pod, if it is still there.
    fn owner(&self, pod: &Value) -> Option<String> {
        let reference = &pod["metadata"]["ownerReferences"][0];
        let plural = match reference["kind"].as_str()? {
            "Deployment" => "deployments",
            "DaemonSet" => "daemonsets",
            "StatefulSet" => "statefulsets",
            _ => return None,
        };
        let place = key(
            "apps",
            plural,
            pod["metadata"]["namespace"].as_str()?,
            reference["name"].as_str()?,
        );
        self.store.get(&place).map(|_| place)
    }

    fn pods_of(&self, workload: &Value) -> Vec<(String, Arc<Value>)> {
        let namespace = workload["metadata"]["namespace"].as_str().unwrap_or_default();
        let uid = &workload["metadata"]["uid"];
        self.store
            .under(&format!("/pods/{namespace}/"))
            .filter(|(_, pod)| pod["metadata"]["ownerReferences"][0]["uid"] == *uid)
            .map(|(key, pod)| (key.clone(), pod.clone()))
            .collect()
    }

    /// Writes the counters of a workload's status.
    fn recount(&mut self, place: &str) {
        let Some(workload) = self.store.get(place) else { return };
        let pods = self.pods_of(workload);
        let all = pods.len();
        let ready = pods.iter().filter(|(_, pod)| condition(pod, "Ready")).count();
        let stamp = self.stamp();
        let daemon = parts(place).1 == "daemonsets";
        let stateful = parts(place).1 == "statefulsets";
        self.store.change(place, |workload| {
            let generation = workload["metadata"]["generation"].clone();
            let wanted = workload["spec"]["replicas"].as_u64().unwrap_or(1);
            let conditions = workload["status"]["conditions"].take();
            workload["status"] = if daemon {
                json!({"observedGeneration": generation, "desiredNumberScheduled": all, "currentNumberScheduled": all,
                    "updatedNumberScheduled": all, "numberReady": ready, "numberAvailable": ready,
                    "numberUnavailable": all - ready, "numberMisscheduled": 0})
            } else {
                json!({"observedGeneration": generation, "replicas": all, "updatedReplicas": all,
                    "readyReplicas": ready, "availableReplicas": ready, "unavailableReplicas": all - ready})
            };
            if !daemon && !stateful {
                workload["status"]["conditions"] = conditions;
                let enough = ready as u64 >= wanted;
                let (reason, message) = if enough {
                    ("MinimumReplicasAvailable", "Deployment has minimum availability.")
                } else {
                    ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
                };
                set_condition(workload, "Available", enough, reason, message, &stamp);
            }
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
    fn controller_up(&mut self, turn: &mut Turn<'_>, owner: &str, pod: &str) {
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
            ("metallb-system", "controller") => &[("", "services")],
            ("longhorn-system", "longhorn-manager") => {
                let node = self
                    .store
                    .get(pod)
                    .and_then(|p| p["spec"]["nodeName"].as_str().map(str::to_owned));
                self.longhorn_manager_up(turn, &node.unwrap_or_default());
                &[]
            }
            ("longhorn-system", "longhorn-driver-deployer") => {
                self.later(turn, (12_000, 22_000, 45_000), Work::LonghornDrivers);
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

/// How long a workload's images take to pull, and its containers to be ready.
/// What Talos runs in the cluster and waits for nobody but a Ready node: CoreDNS.
fn is_addon(workload: &Value) -> bool {
    workload["metadata"]["namespace"] == "kube-system" && workload["kind"] == "Deployment"
}

fn times(workload: &Value) -> (Span, Span) {
    let text = |field: &str| workload["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    TIMES
        .iter()
        .find(|(n, w, _, _)| (n.is_empty() || *n == namespace) && (w.is_empty() || *w == name))
        .map_or(((2_000, 5_000, 12_000), (1_000, 3_000, 6_000)), |(_, _, pull, start)| {
            (*pull, *start)
        })
}
