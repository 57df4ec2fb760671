//! Nodes: they join, get their network, turn Ready, and fall silent.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::store::{key, parts};
use super::{Kubernetes, Work, set_condition};
use crate::durations::Process;
use crate::turn::{Hardware, Signal, Turn};

/// What is known of a machine that joined.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is true or not of a machine, whatever the others are"
)]
pub(super) struct NodeFacts {
    pub(super) address: Ipv4Addr,
    pub(super) control_plane: bool,
    pub(super) data_disk: bool,
    pub(super) extensions: Vec<String>,
    /// Of Kubernetes, such as `v1.36.3`.
    pub(super) version: String,
    /// The id of the boot that its machine is in.
    #[serde(default)]
    pub(super) boot_id: String,
    /// What the machine is.
    #[serde(default)]
    pub(super) hardware: Hardware,
    /// Counts its joins, so that what an earlier one left due comes to nothing.
    pub(super) joined: u64,
    /// Whether pods on it can have a network.
    pub(super) network: bool,
    /// Whether its machine went down and its kubelet is not back yet.
    pub(super) off: bool,
    /// Counts how often its machine went down.
    pub(super) losses: u64,
    /// Whether its data disk is gone.
    #[serde(default)]
    pub(super) disk_lost: bool,
}

/// What Talos keeps for itself: processor time in thousandths, memory on a control plane and on a worker in MiB, disk in MiB.
const RESERVED_CPU: u64 = 50;
const RESERVED_MEMORY: [u64; 2] = [512, 384];
const RESERVED_DISK: u64 = 256;
/// What runs pods and what it runs on, as machines of Talos 1.13 tell it.
const CONTAINERD: &str = "containerd://2.2.4";
const KERNEL: &str = "6.18.0-talos";
/// What a kubelet keeps free before it evicts, in MiB.
const EVICTION_MEMORY: u64 = 100;

/// What a kubelet tells of its machine.
fn status(name: &str, facts: &NodeFacts) -> Value {
    let Hardware { cores, memory_mib, disk_gib, uuid, talos } = &facts.hardware;
    let room = |cpu: String, memory: u64, disk: u64| {
        json!({
            "cpu": cpu, "memory": format!("{}Ki", memory << 10), "ephemeral-storage": format!("{}Ki", disk << 10), "pods": "110",
        })
    };
    let kept = RESERVED_MEMORY[usize::from(!facts.control_plane)] + EVICTION_MEMORY;
    let (memory, disk) =
        (memory_mib.saturating_sub(kept), (disk_gib << 10).saturating_sub(RESERVED_DISK));
    json!({
        "addresses": [
            {"type": "InternalIP", "address": facts.address.to_string()},
            {"type": "Hostname", "address": name},
        ],
        "capacity": room(cores.to_string(), *memory_mib, disk_gib << 10),
        "allocatable": room(format!("{}m", (cores * 1000).saturating_sub(RESERVED_CPU)), memory, disk),
        "nodeInfo": {
            "bootID": facts.boot_id, "machineID": uuid.replace('-', ""), "systemUUID": uuid,
            "kubeletVersion": facts.version, "osImage": format!("Talos ({talos})"), "kernelVersion": KERNEL,
            "containerRuntimeVersion": CONTAINERD, "operatingSystem": "linux", "architecture": "amd64",
        },
    })
}

impl Kubernetes {
    pub(super) fn node_joined(&mut self, turn: &mut Turn<'_>, name: &str, mut facts: NodeFacts) {
        let before = self.nodes.get(name);
        let again = before.is_some_and(|b| b.network);
        facts.joined = before.map_or(1, |b| b.joined + 1);
        facts.network = again;
        facts.off = before.is_some_and(|b| b.off);
        facts.losses = before.map_or(0, |b| b.losses);
        let joined = facts.joined;
        let mut labels = json!({
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        });
        let mut spec = json!({});
        if facts.control_plane {
            labels["node-role.kubernetes.io/control-plane"] = "".into();
            spec["taints"] =
                json!([{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]);
        }
        let status = status(name, &facts);
        let place = self.make(turn, ("", "nodes"), json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": spec, "status": status,
        }));
        self.nodes.insert(name.to_owned(), facts);
        let stamp = self.stamp();
        self.store.change(&place, |node| {
            for (field, told) in status.as_object().into_iter().flatten() {
                node["status"][field] = told.clone();
            }
            let why = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin returns error: cni plugin not initialized";
            set_condition(node, "Ready", false, "KubeletNotReady", why, &stamp);
        });
        self.renew_lease(name);
        let (what, work) = if again {
            (Process::NodeReady, Work::NodeReady { name: name.to_owned(), joined })
        } else {
            (Process::NodeNetwork, Work::NodeNetwork { name: name.to_owned(), joined })
        };
        self.later(turn, what, name, work);
        self.replan_workloads(turn);
    }

    pub(super) fn node_network(&mut self, turn: &mut Turn<'_>, name: &str, joined: u64) {
        let Some(facts) = self.nodes.get_mut(name).filter(|f| f.joined == joined) else { return };
        facts.network = true;
        let work = Work::NodeReady { name: name.to_owned(), joined };
        self.later(turn, Process::NodeReady, name, work);
        self.replan_workloads(turn);
    }

    pub(super) fn node_ready(&mut self, turn: &mut Turn<'_>, name: &str, joined: u64) {
        if self.nodes.get(name).is_none_or(|f| f.joined != joined) {
            return;
        }
        self.tell(turn, name, true);
        let stamp = self.stamp();
        self.store.change(&key("", "nodes", "", name), |node| {
            set_condition(
                node,
                "Ready",
                true,
                "KubeletReady",
                "kubelet is posting ready status",
                &stamp,
            );
        });
        self.renew_lease(name);
        self.node_returns(turn, name);
        self.replan_workloads(turn);
    }

    /// A kubelet's lease. It is renewed when the node changes, and not every ten seconds: whoever watches would wake for nothing.
    fn renew_lease(&mut self, name: &str) {
        let Some(node) = self.store.get(&key("", "nodes", "", name)) else { return };
        let uid = node["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let stamp = self.stamp();
        let renewed = format!("{}.000000Z", stamp.trim_end_matches('Z'));
        let place = key("coordination.k8s.io", "leases", "kube-node-lease", name);
        let mut lease = self.store.get(&place).cloned().unwrap_or_else(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                "metadata": {
                    "name": name, "namespace": "kube-node-lease", "uid": format!("lease-{uid}"), "creationTimestamp": stamp,
                    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}],
                },
                "spec": {"holderIdentity": name, "leaseDurationSeconds": 40},
            })
        });
        lease["spec"]["renewTime"] = renewed.into();
        self.store.put(&place, lease);
    }

    /// The machine of a node watches it, and hears how it is.
    fn tell(&self, turn: &mut Turn<'_>, name: &str, ready: bool) {
        if let Some(cluster) = self.cluster().map(str::to_owned) {
            turn.signal(Signal::NodeReady { cluster, name: name.to_owned(), ready });
        }
    }

    pub(super) fn node_silent(&mut self, turn: &mut Turn<'_>, name: &str, joined: u64) {
        if self.nodes.get(name).is_none_or(|f| f.joined != joined) {
            return;
        }
        let stamp = self.stamp();
        self.store.change(&key("", "nodes", "", name), |node| {
            set_condition(
                node,
                "Ready",
                false,
                "NodeStatusUnknown",
                "Kubelet stopped posting node status.",
                &stamp,
            );
            if let Some(ready) = node["status"]["conditions"]
                .as_array_mut()
                .and_then(|c| c.iter_mut().find(|c| c["type"] == "Ready"))
            {
                ready["status"] = "Unknown".into();
            }
        });
        self.pods_unready(turn, name);
    }

    /// The cluster takes no pod of a node for ready that is not: so its controller does as soon as the Node says so.
    fn pods_unready(&mut self, turn: &mut Turn<'_>, name: &str) {
        let stamp = self.stamp();
        let pods: Vec<String> = self
            .store
            .all("", "pods")
            .filter(|(_, pod)| pod["spec"]["nodeName"] == name)
            .map(|(key, _)| key.clone())
            .collect();
        for pod in pods {
            self.store.change(&pod, |pod| {
                set_condition(pod, "Ready", false, "NodeNotReady", "the node is not ready", &stamp);
            });
            self.pod_changed(turn, &pod);
        }
    }

    /// A namespace may take pods now that it refused: its workloads are looked at again.
    pub(super) fn namespace_changed(&mut self, turn: &mut Turn<'_>, place: &str) {
        let name = parts(place).3;
        for plural in ["daemonsets", "deployments", "statefulsets"] {
            for place in self.store.keys("apps", plural) {
                if parts(&place).2 == name {
                    self.plan(turn, &place, Process::Rollout);
                }
            }
        }
    }

    /// Every workload is looked at again, because what it waits for may have come.
    fn replan_workloads(&mut self, turn: &mut Turn<'_>) {
        for plural in ["daemonsets", "deployments", "statefulsets"] {
            for place in self.store.keys("apps", plural) {
                self.plan(turn, &place, Process::Rollout);
            }
        }
    }

    /// The nodes that may carry a pod: the template tolerates them and they have what it selects.
    pub(super) fn eligible(&self, template: &Value) -> Vec<String> {
        let tolerations = template["spec"]["tolerations"].as_array().map_or(&[][..], Vec::as_slice);
        let tolerant = tolerations.iter().any(|t| {
            t["key"] == "node-role.kubernetes.io/control-plane"
                || (t["key"].is_null() && t["operator"] == "Exists")
        });
        let selector = &template["spec"]["nodeSelector"];
        self.store
            .all("", "nodes")
            .filter(|(key, node)| {
                let control_plane = self.nodes.get(parts(key).3).is_some_and(|f| f.control_plane);
                (tolerant || !control_plane)
                    && (selector.is_null()
                        || super::admission::includes(&node["metadata"]["labels"], selector))
            })
            .map(|(key, _)| parts(key).3.to_owned())
            .collect()
    }
}
