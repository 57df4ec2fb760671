//! The generation of Talos 1.12 and 1.13: one main document that holds nearly everything.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Contract, Draft, audit_policy, document, kubernetes_endpoint, ours, pod_security};

/// The main document, and those beside it that Talos' generator makes.
pub(super) fn documents(draft: &Draft) -> Vec<Value> {
    let main = json!({
        "version": "v1alpha1",
        "debug": false,
        "persist": true,
        "machine": machine(draft),
        "cluster": cluster(draft),
    });
    let hostname =
        document("HostnameConfig", json!({ "hostname": draft.node.name, "auto": "off" }));
    let mut documents = vec![main];
    documents.extend(ours::mirrors(draft.spec));
    documents.push(hostname);
    documents
}

fn machine(draft: &Draft) -> Value {
    let wanted = &draft.spec.machine;
    let mut machine = json!({
        "type": draft.machine_type(),
        "token": draft.bundle.trustd_token.expose(),
        "ca": draft.authority(&draft.bundle.os),
        "certSANs": wanted.cert_sans,
        "kubelet": {
            "image": draft.kubelet_image(),
            "defaultRuntimeSeccompProfileEnabled": true,
            "disableManifestsDirectory": true,
        },
    });
    if draft.contract == Contract::V1_12 {
        machine["network"] = json!({});
    }
    machine["install"] = json!({
        "disk": draft.install_disk(),
        "image": draft.installer(),
        "wipe": false,
        "grubUseUKICmdline": true,
    });
    machine["features"] = json!({
        "diskQuotaSupport": true,
        "kubePrism": { "enabled": true, "port": 7445 },
        "hostDNS": { "enabled": true, "forwardKubeDNSToHost": true },
    });
    if !wanted.kernel_modules.is_empty() {
        let modules = wanted.kernel_modules.iter().map(|name| json!({ "name": name }));
        machine["kernel"] = json!({ "modules": modules.collect::<Vec<_>>() });
    }
    if draft.is_control_plane() {
        machine["nodeLabels"] =
            json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "" });
    }
    machine
}

fn cluster(draft: &Draft) -> Value {
    let Draft { spec, bundle, .. } = draft;
    let mut cluster = json!({
        "id": bundle.cluster_id,
        "secret": bundle.cluster_secret.expose(),
        "controlPlane": { "endpoint": kubernetes_endpoint(spec) },
        "clusterName": spec.name,
        "network": {
            "dnsDomain": "cluster.local",
            "podSubnets": [spec.network.pods],
            "serviceSubnets": [spec.network.services],
        },
        "token": bundle.bootstrap_token.expose(),
        "ca": draft.authority(&bundle.kubernetes),
        "discovery": {
            "enabled": true,
            "registries": { "kubernetes": { "disabled": true }, "service": {} },
        },
    });
    if draft.is_control_plane() {
        for (key, value) in control_plane(draft) {
            cluster[key] = value;
        }
    }
    cluster
}

/// What only control planes are told about the cluster.
fn control_plane(draft: &Draft) -> Vec<(&'static str, Value)> {
    let Draft { spec, bundle, .. } = draft;
    let mut parts = Vec::new();
    if spec.machine.secretbox {
        parts.push(("secretboxEncryptionSecret", json!(bundle.secretbox.expose())));
    }
    parts.push(("aggregatorCA", draft.authority(&bundle.aggregator)));
    let key = STANDARD.encode(bundle.service_account.expose());
    parts.push(("serviceAccount", json!({ "key": key })));
    let mut server = json!({ "image": draft.kubernetes_image("kube-apiserver") });
    if !spec.machine.cert_sans.is_empty() {
        server["certSANs"] = json!(spec.machine.cert_sans);
    }
    server["admissionControl"] =
        json!([{ "name": "PodSecurity", "configuration": pod_security() }]);
    server["auditPolicy"] = audit_policy();
    parts.push(("apiServer", server));
    for (key, name) in [
        ("controllerManager", "kube-controller-manager"),
        ("proxy", "kube-proxy"),
        ("scheduler", "kube-scheduler"),
    ] {
        parts.push((key, json!({ "image": draft.kubernetes_image(name) })));
    }
    parts.push(("etcd", json!({ "ca": draft.authority(&bundle.etcd) })));
    if !spec.machine.coredns {
        parts.push(("coreDNS", json!({ "disabled": true })));
    }
    parts
}
