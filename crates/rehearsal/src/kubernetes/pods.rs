//! Pods: they are admitted, get a node, pull, start and turn ready.

use serde_json::{Value, json};

use super::complete::uuid;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Work, named, set_condition};
use crate::durations::Process;
use crate::turn::Turn;

/// What a workload takes for its images and for its start, by namespace and name.
const TIMES: &[(&str, &str, Process, Process)] = &[
    ("kube-system", "kube-flannel", Process::FlannelPull, Process::FlannelStart),
    ("kube-system", "kube-proxy", Process::ProxyPull, Process::ProxyStart),
    ("kube-system", "coredns", Process::AddonPull, Process::AddonStart),
    ("external-secrets", "", Process::ExternalSecretsPull, Process::ExternalSecretsStart),
    ("metallb-system", "", Process::MetallbPull, Process::MetallbStart),
    (
        "longhorn-system",
        "longhorn-manager",
        Process::LonghornManagerPull,
        Process::LonghornManagerStart,
    ),
    ("longhorn-system", "", Process::LonghornPull, Process::LonghornStart),
    ("flux-system", "", Process::FluxPull, Process::FluxStart),
];

impl Kubernetes {
    /// Makes a pod of a ReplicaSet, a DaemonSet or a StatefulSet.
    ///
    /// # Errors
    /// Why its namespace does not take it.
    pub(super) fn make_pod(
        &mut self,
        turn: &mut Turn<'_>,
        owner: &str,
        (revision, ordinal): (&str, Option<usize>),
        node: Option<&str>,
    ) -> Result<(), String> {
        let Some(set) = self.store.shared(owner) else { return Ok(()) };
        let template = &set["spec"]["template"];
        let (_, plural, namespace, own) = parts(owner);
        let name = match ordinal {
            Some(ordinal) => format!("{own}-{ordinal}"),
            None => format!("{own}-{}", &uuid(turn)[..5]),
        };
        self.secure(namespace, &template["spec"])
            .map_err(|why| format!("pods \"{name}\" is forbidden: {why}"))?;
        let mut labels = template["metadata"]["labels"].clone();
        if plural != "replicasets" {
            labels["controller-revision-hash"] = revision.into();
        }
        let mut spec = template["spec"].clone();
        if let Some(node) = node {
            spec["nodeName"] = node.into();
        }
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": name, "generateName": format!("{own}-"), "namespace": namespace, "labels": labels,
                "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": set["kind"], "name": own, "uid": set["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": spec,
            "status": {"phase": "Pending"},
        });
        let stamp = self.stamp();
        if node.is_some() {
            set_condition(&mut pod, "PodScheduled", true, "", "", &stamp);
        }
        self.make(turn, ("", "pods"), pod);
        Ok(())
    }

    /// Gives a node to pods that had none, or says why there is none.
    pub(super) fn schedule(&mut self, turn: &mut Turn<'_>, workload: &Value, nodes: &[String]) {
        let stamp = self.stamp();
        for (index, (place, pod)) in self.pods_of(workload).into_iter().enumerate() {
            if !pod["spec"]["nodeName"].is_null() {
                continue;
            }
            if let Some(node) = nodes.get(index % nodes.len().max(1)).cloned() {
                self.store.change(&place, |pod| {
                    pod["spec"]["nodeName"] = node.into();
                    set_condition(pod, "PodScheduled", true, "", "", &stamp);
                });
                continue;
            }
            let why = self.unschedulable(&workload["spec"]["template"]);
            self.store.change(&place, |pod| {
                set_condition(pod, "PodScheduled", false, "Unschedulable", &why, &stamp);
            });
            self.warn(turn, &place, ("default-scheduler", "FailedScheduling"), &why);
        }
    }

    /// Why no node takes a pod, in the scheduler's words.
    fn unschedulable(&self, template: &Value) -> String {
        let all = self.store.all("", "nodes").count();
        if all == 0 {
            return "no nodes available to schedule pods".to_owned();
        }
        let eligible = self.eligible(template);
        let mut reasons: Vec<String> = Vec::new();
        let mut because = |count: usize, why: &str| {
            if count > 0 {
                reasons.push(format!("{count} node(s) {why}"));
            }
        };
        let barred = self
            .store
            .all("", "nodes")
            .filter(|(place, _)| !eligible.iter().any(|name| name == parts(place).3));
        let (tainted, others): (Vec<_>, Vec<_>) =
            barred.partition(|(_, node)| node["spec"]["taints"].is_array());
        because(others.len(), "didn't match Pod's node affinity/selector");
        because(tainted.len(), "had untolerated taint {node-role.kubernetes.io/control-plane: }");
        because(eligible.len(), "had untolerated taint {node.kubernetes.io/not-ready: }");
        format!(
            "0/{all} nodes are available: {}. preemption: 0/{all} nodes are available: {all} Preemption is not helpful for scheduling.",
            reasons.join(", ")
        )
    }

    pub(super) fn nodes_with_network(&self, nodes: &[String]) -> Vec<String> {
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

    /// Pods whose node can carry them begin to pull.
    pub(super) fn start_pods(&mut self, turn: &mut Turn<'_>, workload: &Value) {
        let stamp = self.stamp();
        for (place, pod) in self.pods_of(workload) {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            let able = self.nodes.get(node).is_some_and(|f| f.network && !f.off);
            if able && pod["status"]["startTime"].is_null() {
                self.store.change(&place, |pod| {
                    pod["status"]["startTime"] = stamp.clone().into();
                    let waiting = json!({"waiting": {"reason": "ContainerCreating"}});
                    set_containers(pod, |_| waiting.clone(), false);
                });
                let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
                self.pull(turn, &place, &uid, 0);
            }
        }
    }

    /// A kubelet pulls the images of a pod, and tries again later where a registry refuses.
    pub(super) fn pull(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str, attempt: u32) {
        let Some(pod) = self.store.shared(place).filter(|p| p["metadata"]["uid"] == uid) else {
            return;
        };
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let images: Vec<String> = pod["spec"]["containers"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|container| container["image"].as_str().map(str::to_owned))
            .collect();
        let refused = images.iter().find_map(|image| {
            let no = self.pulls.pull(self.now, node, image).err()?;
            Some((image.clone(), no))
        });
        let (key, uid, losses) = (place.to_owned(), uid.to_owned(), self.losses(&pod));
        let Some((image, why)) = refused else {
            let owner = self.owner(&pod).and_then(|owner| self.store.shared(&owner));
            let work = Work::PodStarted { key, uid, losses };
            let what = owner.map_or(Process::AppPull, |owner| times(&owner).0);
            self.later(turn, what, &format!("{node} {}", named(place)), work);
            return;
        };
        let failed = format!("Failed to pull image \"{image}\": {why}");
        self.warn(turn, place, ("kubelet", "Failed"), &failed);
        let back_off = format!("Back-off pulling image \"{image}\": ErrImagePull: {why}");
        self.warn(
            turn,
            place,
            ("kubelet", "BackOff"),
            &format!("Back-off pulling image \"{image}\""),
        );
        self.store.change(place, |pod| {
            let waiting = |container: &Value| {
                if container["image"] == image.as_str() {
                    json!({"waiting": {"reason": "ImagePullBackOff", "message": back_off}})
                } else {
                    json!({"waiting": {"reason": "ContainerCreating"}})
                }
            };
            set_containers(pod, waiting, false);
        });
        let wait = (Process::PullBackOff.usual() << attempt.min(5)).min(300_000);
        let work = Work::PullAgain { key, uid, attempt: attempt + 1, losses };
        self.exactly(turn, (Process::PullBackOff, wait), named(place), work);
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
            let names: Vec<&str> = pod["spec"]["containers"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|c| c["name"].as_str())
                .collect();
            let why = format!("containers with unready status: [{}]", names.join(" "));
            set_condition(pod, "Ready", false, "ContainersNotReady", &why, &stamp);
            set_containers(pod, |_| json!({"running": {"startedAt": stamp}}), false);
        });
        let owner = self.owner(&pod).and_then(|owner| self.store.get(&owner));
        let losses = self.losses(&pod);
        let work = Work::PodReady { key: place.to_owned(), uid: uid.to_owned(), losses };
        let what = owner.map_or(Process::AppStart, |owner| times(owner).1);
        self.later(turn, what, &format!("{node} {}", named(place)), work);
        self.replan_services(turn, &pod, Process::Endpoints);
    }

    pub(super) fn pod_ready(&mut self, turn: &mut Turn<'_>, place: &str, uid: &str) {
        if self.store.get(place).is_none_or(|p| p["metadata"]["uid"] != uid) {
            return;
        }
        let stamp = self.stamp();
        self.store.change(place, |pod| {
            set_condition(pod, "Ready", true, "", "", &stamp);
            let since = pod["status"]["containerStatuses"][0]["state"].clone();
            set_containers(pod, |_| since.clone(), true);
        });
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
        self.replan_services(turn, &pod, Process::EndpointsReady);
    }

    pub(super) fn pod_gone(&mut self, turn: &mut Turn<'_>, namespace: &str, pod: &Value) {
        if let Some(owner) = self.owner(pod) {
            self.plan(turn, &owner, Process::Rollout);
        }
        let still = self.store.all("", "pods").any(|(key, _)| parts(key).2 == namespace);
        if !still {
            self.serving.retain(|service| !service.starts_with(&format!("{namespace}/")));
        }
        self.replan_services(turn, pod, Process::Endpoints);
    }

    fn replan_services(&mut self, turn: &mut Turn<'_>, pod: &Value, what: Process) {
        for service in self.services_of(pod) {
            self.plan(turn, &service, what);
        }
    }
}

/// Writes the states of a pod's containers.
fn set_containers(pod: &mut Value, state: impl Fn(&Value) -> Value, ready: bool) {
    let running = pod["status"]["phase"] == "Running";
    let statuses: Vec<Value> = pod["spec"]["containers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|container| {
            json!({
                "name": container["name"], "image": container["image"], "ready": ready, "started": running,
                "restartCount": 0, "state": state(container),
            })
        })
        .collect();
    pod["status"]["containerStatuses"] = statuses.into();
}

/// What a workload takes for its images, and for its start.
fn times(workload: &Value) -> (Process, Process) {
    let text = |field: &str| workload["metadata"][field].as_str().unwrap_or_default().to_owned();
    let (namespace, name) = (text("namespace"), text("name"));
    TIMES
        .iter()
        .find(|(n, w, _, _)| (n.is_empty() || *n == namespace) && (w.is_empty() || *w == name))
        .map_or((Process::AppPull, Process::AppStart), |(_, _, pull, start)| (*pull, *start))
}
