//! Longhorn: managers find disks, the deployer makes the CSI drivers, and claims are bound.

use serde_json::json;

use super::birth::workload;
use super::kinds::condition;
use super::store::{key, parts};
use super::{Kubernetes, Work, set_condition};
use crate::turn::Turn;

const NAMESPACE: &str = "longhorn-system";
/// The extension without which no volume can be attached.
const ISCSI: &str = "iscsi-tools";

impl Kubernetes {
    /// A manager runs on a node: the node is known to Longhorn, and its disk soon.
    pub(super) fn longhorn_manager_up(&mut self, turn: &mut Turn<'_>, node: &str) {
        if !self.knows("longhorn.io", "nodes") {
            return;
        }
        self.make(turn, ("storage.k8s.io", "storageclasses"), json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass",
            "metadata": {"name": "longhorn", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
            "provisioner": "driver.longhorn.io", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
            "allowVolumeExpansion": true,
        }));
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
            } else {
                let why =
                    format!("node {node} is down: iscsiadm: executable file not found in $PATH");
                set_condition(object, "Ready", false, "ManagerPodDown", &why, &stamp);
            }
        });
        if able {
            // The instance manager's image, then the node's disks.
            self.later(
                turn,
                (11_000, 26_000, 65_000),
                Work::LonghornDisk { node: node.to_owned() },
            );
        }
    }

    pub(super) fn longhorn_disk(&mut self, node: &str) {
        let path = match self.nodes.get(node) {
            Some(facts) if facts.data_disk => "/var/mnt/longhorn",
            _ => "/var/lib/longhorn",
        };
        let stamp = self.stamp();
        self.store.change(&key("longhorn.io", "nodes", NAMESPACE, node), |object| {
            object["spec"]["disks"]["default-disk"] =
                json!({"path": path, "allowScheduling": true});
            object["status"]["diskStatus"]["default-disk"] = json!({"conditions": [
                {"type": "Ready", "status": "True", "lastTransitionTime": stamp},
                {"type": "Schedulable", "status": "True", "lastTransitionTime": stamp},
            ]});
        });
    }

    /// What the deployer makes, as workloads of their own.
    pub(super) fn longhorn_drivers(&mut self, turn: &mut Turn<'_>) {
        if self.store.get(&key("", "namespaces", "", NAMESPACE)).is_none() {
            return;
        }
        self.make(turn, ("storage.k8s.io", "csidrivers"), json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "driver.longhorn.io"},
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

    /// A claim's controller: with a provisioner and a disk it gets its volume.
    pub(super) fn bind(&mut self, turn: &mut Turn<'_>, place: &str) {
        let Some(claim) = self.store.shared(place) else { return };
        let class = claim["spec"]["storageClassName"].as_str().unwrap_or("longhorn");
        if claim["status"]["phase"] == "Bound" || class != "longhorn" {
            return;
        }
        let disk = self.store.all("longhorn.io", "nodes").any(|(_, node)| {
            condition(node, "Ready") && !node["status"]["diskStatus"]["default-disk"].is_null()
        });
        if !disk || !self.is_up(NAMESPACE, "deployments", "csi-provisioner") {
            self.plan(turn, place, (2_000, 3_000, 5_000));
            return;
        }
        let volume = format!("pvc-{}", claim["metadata"]["uid"].as_str().unwrap_or_default());
        let (_, _, namespace, name) = parts(place);
        let size = claim["spec"]["resources"]["requests"]["storage"].clone();
        self.make(turn, ("", "persistentvolumes"), json!({
            "apiVersion": "v1", "kind": "PersistentVolume",
            "metadata": {"name": volume, "ownerReferences": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "name": name, "uid": claim["metadata"]["uid"]}]},
            "spec": {"capacity": {"storage": size}, "storageClassName": class, "claimRef": {"namespace": namespace, "name": name},
                "csi": {"driver": "driver.longhorn.io", "volumeHandle": volume}},
            "status": {"phase": "Bound"},
        }));
        self.store.change(place, |claim| {
            claim["spec"]["volumeName"] = volume.into();
            claim["status"] = json!({"phase": "Bound", "capacity": {"storage": size}});
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
