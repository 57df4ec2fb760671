//! Longhorn: managers find disks, the deployer makes the CSI drivers, and claims are bound where replicas fit.

use serde_json::{Value, json};

use super::birth::workload;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Effect, Kubernetes, Work, set_condition};
use crate::durations::Process;
use crate::turn::Turn;

const NAMESPACE: &str = "longhorn-system";
/// The extension without which no volume can be attached.
const ISCSI: &str = "iscsi-tools";
const DRIVER: &str = "driver.longhorn.io";
/// How much a data disk holds, and how much of the system's disk is left.
const SIZES: (u64, u64) = (100 << 30, 20 << 30);

impl Kubernetes {
    /// A manager runs on a node: the node is known to Longhorn, and its disk soon.
    pub(super) fn longhorn_manager_up(&mut self, turn: &mut Turn<'_>, node: &str) {
        if !self.knows("longhorn.io", "nodes") {
            return;
        }
        let class = self.longhorn_class();
        self.make(turn, ("storage.k8s.io", "storageclasses"), class);
        let place = self.make(
            turn,
            ("longhorn.io", "nodes"),
            json!({
                "apiVersion": "longhorn.io/v1beta2", "kind": "Node",
                "metadata": {"name": node, "namespace": NAMESPACE},
                "spec": {"name": node, "allowScheduling": true},
            }),
        );
        let able =
            self.nodes.get(node).is_some_and(|f| f.extensions.iter().any(|e| e.contains(ISCSI)));
        let stamp = self.stamp();
        self.store.change(&place, |object| {
            if able {
                set_condition(object, "Ready", true, "", "", &stamp);
                set_condition(object, "Schedulable", true, "", "", &stamp);
            } else {
                let why =
                    format!("node {node} is down: iscsiadm: executable file not found in $PATH");
                set_condition(object, "Ready", false, "ManagerPodDown", &why, &stamp);
            }
        });
        if able {
            // The instance manager's image, then the node's disks.
            let (pull, pulled) = turn.draw_after(Process::InstanceManagerPull, node, self.by);
            let (found, number) = turn.draw_after(Process::LonghornDisk, node, Some(pulled));
            let work = Work::LonghornDisk { node: node.to_owned() };
            turn.after(pull + found, Effect { era: self.era, drawn: Some(number), work });
        }
    }

    /// The StorageClass that the manifest wants.
    fn longhorn_class(&self) -> Value {
        let place = key("", "configmaps", NAMESPACE, "longhorn-storageclass");
        let text = self.store.get(&place).and_then(|map| map["data"]["storageclass.yaml"].as_str());
        let read = text.and_then(|text| yaml_serde::from_str::<Value>(text).ok());
        read.filter(|class| class["metadata"]["name"].is_string()).unwrap_or_else(|| {
            json!({
                "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
                "metadata": {"name": "longhorn", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
                "allowVolumeExpansion": true, "parameters": {"numberOfReplicas": "3"},
            })
        })
    }

    /// A setting that the manifest gives.
    fn longhorn_setting(&self, name: &str) -> Option<String> {
        let place = key("", "configmaps", NAMESPACE, "longhorn-default-setting");
        let text = self.store.get(&place)?["data"]["default-setting.yaml"].as_str()?;
        match yaml_serde::from_str::<Value>(text).ok()?.get(name)? {
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        }
    }

    pub(super) fn longhorn_disk(&mut self, turn: &mut Turn<'_>, node: &str) {
        if !self.has_power(node) {
            return;
        }
        let of_data = self.nodes.get(node).is_some_and(|facts| facts.data_disk);
        let fallback = if of_data { "/var/mnt/longhorn" } else { "/var/lib/longhorn" };
        let path =
            self.longhorn_setting("default-data-path").unwrap_or_else(|| fallback.to_owned());
        let size = if of_data { SIZES.0 } else { SIZES.1 };
        let conditions = self.disk_conditions(node, &path);
        self.store.change(&key("longhorn.io", "nodes", NAMESPACE, node), |object| {
            object["spec"]["disks"]["default-disk"] =
                json!({"path": path, "allowScheduling": true, "storageReserved": 0});
            object["status"]["diskStatus"]["default-disk"] = json!({
                "storageMaximum": size, "storageAvailable": size, "storageScheduled": 0,
                "conditions": conditions,
            });
        });
        for place in self.store.keys("longhorn.io", "volumes") {
            self.replicate(turn, &place);
        }
    }

    /// A node's data disk is gone, or there again: its manager sees so, if it has found the disk before.
    pub(super) fn data_disk(&mut self, turn: &mut Turn<'_>, node: &str, there: bool) {
        let Some(facts) = self.nodes.get_mut(node) else { return };
        facts.disk_lost = !there;
        let place = key("longhorn.io", "nodes", NAMESPACE, node);
        let Some(known) = self.store.get(&place) else { return };
        let disk = &known["spec"]["disks"]["default-disk"];
        let Some(path) = disk["path"].as_str().map(str::to_owned) else { return };
        let conditions = self.disk_conditions(node, &path);
        self.store.change(&place, |object| {
            object["status"]["diskStatus"]["default-disk"]["conditions"] = conditions;
        });
        for place in self.store.keys("longhorn.io", "volumes") {
            self.replicate(turn, &place);
        }
    }

    /// What a node's manager says of its disk.
    fn disk_conditions(&self, node: &str, path: &str) -> Value {
        let stamp = self.stamp();
        if self.nodes.get(node).is_none_or(|facts| !facts.disk_lost) {
            return json!([
                {"type": "Ready", "status": "True", "lastTransitionTime": stamp},
                {"type": "Schedulable", "status": "True", "lastTransitionTime": stamp},
            ]);
        }
        let disk = format!("default-disk({path}) on node {node} is not ready");
        let why = format!(
            "Disk {disk}: Get disk information error: open {path}/longhorn-disk.cfg: input/output error"
        );
        json!([
            {"type": "Ready", "status": "False", "lastTransitionTime": stamp, "reason": "NoDiskInfo", "message": why},
            {"type": "Schedulable", "status": "False", "lastTransitionTime": stamp, "reason": "DiskNotReady",
                "message": format!("Disk {disk}")},
        ])
    }

    /// Puts the replicas that a volume still wants on disks that have none of it.
    fn replicate(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(volume) = self.store.shared(place) else { return };
        let name = parts(place).3;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let wanted = volume["spec"]["numberOfReplicas"].as_u64().unwrap_or(3);
        let wanted = usize::try_from(wanted).unwrap_or(3);
        let size = text(&volume["spec"]["size"]);
        let there: Vec<String> = self
            .store
            .all("longhorn.io", "replicas")
            .filter(|(_, replica)| replica["spec"]["volumeName"] == name)
            .map(|(_, replica)| text(&replica["spec"]["nodeID"]))
            .collect();
        let bytes: u64 = size.parse().unwrap_or(0);
        let fitting: Vec<String> = self
            .disks()
            .into_iter()
            .filter(|(node, room)| *room >= bytes && !there.contains(node))
            .map(|(node, _)| node)
            .take(wanted.saturating_sub(there.len()))
            .collect();
        let all = there.len() + fitting.len();
        for node in fitting {
            let replica = json!({
                "apiVersion": "longhorn.io/v1beta2", "kind": "Replica",
                "metadata": {"name": format!("{name}-r-{node}"), "namespace": NAMESPACE,
                    "ownerReferences": volume["metadata"]["ownerReferences"]},
                "spec": {"volumeName": name, "nodeID": node, "volumeSize": size, "dataEngine": "v1"},
                "status": {"currentState": "stopped"},
            });
            self.make(turn, ("longhorn.io", "replicas"), replica);
        }
        let stamp = self.stamp();
        self.store.change(place, |volume| {
            if all >= wanted {
                set_condition(volume, "Scheduled", true, "", "", &stamp);
            } else {
                let why = "precheck new replica failed: insufficient storage; hard anti-affinity";
                set_condition(volume, "Scheduled", false, "ReplicaSchedulingFailure", why, &stamp);
            }
        });
    }

    /// What the deployer makes, as workloads of their own.
    pub(super) fn longhorn_drivers(&mut self, turn: &mut Turn<'_>) {
        let there = self.store.get(&key("", "namespaces", "", NAMESPACE)).is_some();
        if !there || !self.acts(NAMESPACE, "longhorn-driver-deployer") {
            return;
        }
        self.make(turn, ("storage.k8s.io", "csidrivers"), json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER},
            "spec": {"attachRequired": true},
        }));
        for name in ["csi-attacher", "csi-provisioner", "csi-resizer", "csi-snapshotter"] {
            let image = format!("longhornio/{name}");
            self.make(
                turn,
                ("apps", "deployments"),
                workload("Deployment", NAMESPACE, name, &image, 3),
            );
        }
        self.make(
            turn,
            ("apps", "daemonsets"),
            workload(
                "DaemonSet",
                NAMESPACE,
                "longhorn-csi-plugin",
                "longhornio/longhorn-manager",
                0,
            ),
        );
    }

    /// A claim's controller: with a provisioner and a disk that has room it gets its volume.
    pub(super) fn bind(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(claim) = self.store.shared(place) else { return };
        if claim["status"]["phase"] == "Bound" {
            return;
        }
        let Some(class) = self.class_of(&claim) else {
            let name = claim["spec"]["storageClassName"].as_str().unwrap_or_default();
            if !name.is_empty() {
                let why = format!("storageclass.storage.k8s.io \"{name}\" not found");
                self.warn(turn, place, ("persistentvolume-controller", "ProvisioningFailed"), &why);
            }
            self.plan(turn, place, Process::ClaimAgain);
            return;
        };
        let waits = class["volumeBindingMode"] == "WaitForFirstConsumer";
        if class["provisioner"] != DRIVER || waits {
            return;
        }
        let disks = self.disks();
        if disks.is_empty() || !self.acts(NAMESPACE, "csi-provisioner") {
            self.plan(turn, place, Process::ClaimAgain);
            return;
        }
        let size = claim["spec"]["resources"]["requests"]["storage"].as_str().unwrap_or("0");
        let bytes = quantity(size);
        let name = class["metadata"]["name"].as_str().unwrap_or_default();
        if disks.iter().all(|(_, room)| *room < bytes) {
            let why = format!(
                "failed to provision volume with StorageClass \"{name}\": rpc error: code = Internal desc = Bad response \
                statusCode [500]. Status [500 Internal Server Error]. Body: [message=unable to create volume: insufficient \
                storage for a replica of {size}]"
            );
            self.warn(turn, place, (DRIVER, "ProvisioningFailed"), &why);
            self.plan(turn, place, Process::ClaimNoRoom);
            return;
        }
        let wanted = class["parameters"]["numberOfReplicas"].as_str().unwrap_or("3");
        let wanted: usize = wanted.parse().unwrap_or(3);
        self.provision(turn, (place, &claim), &class, wanted);
    }

    /// The class of a claim: the one that it names, else the default one.
    fn class_of(&self, claim: &Value) -> Option<Value> {
        let default = "storageclass.kubernetes.io/is-default-class";
        match claim["spec"]["storageClassName"].as_str() {
            Some(name) => {
                self.store.get(&key("storage.k8s.io", "storageclasses", "", name)).cloned()
            }
            None => self
                .store
                .all("storage.k8s.io", "storageclasses")
                .find(|(_, class)| class["metadata"]["annotations"][default] == "true")
                .map(|(_, class)| class.clone()),
        }
    }

    /// The nodes whose disk takes replicas, with the bytes that may still be promised on each.
    fn disks(&self) -> Vec<(String, u64)> {
        let percent = self.longhorn_setting("storage-over-provisioning-percentage");
        let percent = percent.and_then(|p| p.parse::<u64>().ok()).unwrap_or(100);
        self.store
            .all("longhorn.io", "nodes")
            .filter_map(|(place, node)| {
                let disk = &node["status"]["diskStatus"]["default-disk"];
                let name = parts(place).3;
                let lost = self.nodes.get(name).is_some_and(|facts| facts.disk_lost);
                let well = condition(node, "Ready") && self.has_power(name) && !lost;
                let open = node["spec"]["allowScheduling"] != false && well;
                let maximum = disk["storageMaximum"].as_u64().filter(|_| open)?;
                let promised: u64 = self
                    .store
                    .all("longhorn.io", "replicas")
                    .filter(|(_, replica)| replica["spec"]["nodeID"] == name)
                    .filter_map(|(_, replica)| {
                        replica["spec"]["volumeSize"].as_str()?.parse::<u64>().ok()
                    })
                    .sum();
                Some((name.to_owned(), (maximum / 100 * percent).saturating_sub(promised)))
            })
            .collect()
    }

    fn provision(
        &mut self,
        turn: &mut Turn<'_>,
        (place, claim): (&str, &Value),
        class: &Value,
        wanted: usize,
    ) {
        let uid = &claim["metadata"]["uid"];
        let volume = format!("pvc-{}", uid.as_str().unwrap_or_default());
        let (_, _, namespace, name) = parts(place);
        let size = claim["spec"]["resources"]["requests"]["storage"].clone();
        let bytes = quantity(size.as_str().unwrap_or_default()).to_string();
        // All of it goes with the claim, as its reclaim policy says.
        let owners = json!([{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": name, "uid": uid}]);
        self.make(turn, ("", "persistentvolumes"), json!({
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": volume, "ownerReferences": owners},
            "spec": {"capacity": {"storage": size}, "storageClassName": class["metadata"]["name"],
                "accessModes": claim["spec"]["accessModes"], "persistentVolumeReclaimPolicy": class["reclaimPolicy"],
                "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": namespace, "name": name, "uid": uid},
                "csi": {"driver": DRIVER, "volumeHandle": volume}},
            "status": {"phase": "Bound"},
        }));
        let held = self.make(
            turn,
            ("longhorn.io", "volumes"),
            json!({
                "apiVersion": "longhorn.io/v1beta2", "kind": "Volume",
                "metadata": {"name": volume, "namespace": NAMESPACE, "ownerReferences": owners},
                "spec": {"numberOfReplicas": wanted, "size": bytes, "frontend": "blockdev", "dataEngine": "v1"},
                "status": {"state": "detached", "robustness": "unknown"},
            }),
        );
        self.replicate(turn, &held);
        self.store.change(place, |claim| {
            claim["spec"]["volumeName"] = volume.into();
            claim["spec"]["storageClassName"] = class["metadata"]["name"].clone();
            claim["status"] = json!({"phase": "Bound", "capacity": {"storage": size},
                "accessModes": claim["spec"]["accessModes"]});
        });
    }

    /// Whether a kind is defined.
    pub(super) fn knows(&self, group: &str, plural: &str) -> bool {
        let place = key(
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "",
            &format!("{plural}.{group}"),
        );
        self.store.get(&place).is_some()
    }
}

/// `1Gi` in bytes.
fn quantity(text: &str) -> u64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().unwrap_or(0);
    let unit = match &text[digits..] {
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "k" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        _ => 1,
    };
    number.saturating_mul(unit)
}
