//! What a cluster holds when it is born: its namespaces, its network, its name server.

use serde_json::{Value, json};

use super::Kubernetes;
use crate::turn::Turn;

impl Kubernetes {
    /// Fills a new cluster with what Talos applies first.
    pub(super) fn populate(&mut self, turn: &mut Turn<'_>) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            self.make(
                turn,
                ("", "namespaces"),
                json!({
                    "apiVersion": "v1", "kind": "Namespace",
                    "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                    "status": {"phase": "Active"},
                }),
            );
        }
        self.make(turn, ("", "services"), json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kubernetes", "namespace": "default"},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]},
        }));
        self.make(turn, ("", "services"), json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "kube-dns", "namespace": "kube-system"},
            "spec": {"type": "ClusterIP", "clusterIP": "10.96.0.10", "ports": [{"name": "dns", "port": 53}],
                "selector": {"k8s-app": "kube-dns"}},
        }));
        for (name, image) in [
            ("kube-flannel", "ghcr.io/siderolabs/flannel"),
            ("kube-proxy", "registry.k8s.io/kube-proxy"),
        ] {
            self.make(
                turn,
                ("apps", "daemonsets"),
                workload("DaemonSet", "kube-system", name, image, 0),
            );
        }
        self.make(
            turn,
            ("apps", "deployments"),
            workload("Deployment", "kube-system", "coredns", "registry.k8s.io/coredns/coredns", 2),
        );
    }
}

/// A Deployment or DaemonSet that runs everywhere it may.
pub(super) fn workload(
    kind: &str,
    namespace: &str,
    name: &str,
    image: &str,
    replicas: u32,
) -> Value {
    let app = if name == "coredns" { "kube-dns" } else { name };
    let host_network = matches!(name, "kube-flannel" | "kube-proxy");
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"k8s-app": app}},
        "spec": {
            "selector": {"matchLabels": {"k8s-app": app}},
            "template": {
                "metadata": {"labels": {"k8s-app": app}},
                "spec": {
                    "hostNetwork": host_network,
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [{"name": name, "image": image}],
                },
            },
        },
    });
    if kind == "Deployment" {
        object["spec"]["replicas"] = replicas.into();
    }
    object
}
