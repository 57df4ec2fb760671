//! Machines without power: nothing that was on one goes on, whatever the cluster still believes, until its kubelet is back.

use serde_json::Value;

use super::admission::includes;
use super::kinds::condition;
use super::store::key;
use super::{Kubernetes, Work};
use crate::durations::Process;
use crate::turn::Turn;

impl Kubernetes {
    /// A machine went down. Its pods and controllers stop at once; the cluster notices a silent kubelet after 40 s.
    pub(super) fn node_lost(&mut self, turn: &mut Turn<'_>, name: &str) {
        if let Some(facts) = self.nodes.get_mut(name) {
            facts.joined += 1;
            facts.off = true;
            facts.losses += 1;
            let joined = facts.joined;
            let work = Work::NodeSilent { name: name.to_owned(), joined };
            self.later(turn, Process::NodeSilent, name, work);
        }
    }

    /// The kubelet of a node is back: what ran there before the machine went down starts again.
    pub(super) fn node_returns(&mut self, turn: &mut Turn<'_>, node: &str) {
        let off = self.nodes.get_mut(node).is_some_and(|facts| std::mem::take(&mut facts.off));
        if !off {
            return;
        }
        // A pod that had not begun is begun by its workload.
        let begun: Vec<(String, String, bool)> = self
            .store
            .all("", "pods")
            .filter(|(_, pod)| {
                pod["spec"]["nodeName"] == node && pod["status"]["startTime"].is_string()
            })
            .filter_map(|(key, pod)| {
                let uid = pod["metadata"]["uid"].as_str()?.to_owned();
                Some((key.clone(), uid, pod["status"]["phase"] == "Running"))
            })
            .collect();
        for (place, uid, ran) in begun {
            if ran {
                self.pod_started(turn, &place, &uid);
                self.pod_changed(turn, &place);
            } else {
                self.pull(turn, &place, &uid, 0);
            }
        }
    }

    /// Whether a node's machine has power and its kubelet works.
    pub(super) fn has_power(&self, node: &str) -> bool {
        self.nodes.get(node).is_none_or(|facts| !facts.off)
    }

    /// How often the machine under a pod has gone down: what was due on it before comes to nothing.
    pub(super) fn losses(&self, pod: &Value) -> u64 {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        self.nodes.get(node).map_or(0, |facts| facts.losses)
    }

    /// Whether what a kubelet began with a pod goes on: its machine has not gone down since.
    pub(super) fn goes_on(&self, place: &str, losses: u64) -> bool {
        self.store.get(place).is_some_and(|pod| {
            let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
            self.has_power(node) && self.losses(pod) == losses
        })
    }

    /// Whether a pod is ready, and truly runs.
    pub(super) fn runs(&self, pod: &Value) -> bool {
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        condition(pod, "Ready") && self.has_power(node)
    }

    /// Whether a pod behind a service runs.
    pub(super) fn answers(&self, namespace: &str, service: &str) -> bool {
        self.store.get(&key("", "services", namespace, service)).is_some_and(|service| {
            let prefix = format!("/pods/{namespace}/");
            self.store.under(&prefix).any(|(_, pod)| {
                includes(&pod["metadata"]["labels"], &service["spec"]["selector"]) && self.runs(pod)
            })
        })
    }

    /// Whether the controller that a Deployment runs can act: a pod of it runs.
    pub(super) fn acts(&self, namespace: &str, deployment: &str) -> bool {
        self.store
            .get(&key("apps", "deployments", namespace, deployment))
            .is_some_and(|workload| self.pods_of(workload).iter().any(|(_, pod)| self.runs(pod)))
    }
}
