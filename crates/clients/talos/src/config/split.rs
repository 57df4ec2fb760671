//! The generation of Talos 1.14: a small main document, and everything else in documents of its own.

use serde_json::{Value, json};

use super::{Draft, audit_policy, document, kubernetes_endpoint, ours, pod_security};

/// All documents that Talos' generator makes, in its order: with the one that installs, 29 for a control plane and 15
/// for a worker. Name servers, host name and encryption are written into those that are there anyway.
pub(super) fn documents(draft: &Draft, encryption: Option<&Value>) -> Vec<Value> {
    let mut documents = vec![main(draft)];
    documents.extend(machine(draft, encryption));
    documents.extend(node(draft));
    if draft.is_control_plane() {
        documents.extend(authorities(draft));
        documents.extend(components(draft));
    }
    documents
}

fn main(draft: &Draft) -> Value {
    let mut cluster = json!({ "token": draft.bundle.bootstrap_token.expose() });
    if draft.is_control_plane() {
        cluster["etcd"] = json!({ "ca": draft.authority(&draft.bundle.etcd) });
    }
    json!({
        "version": "v1alpha1",
        "debug": false,
        "persist": true,
        "machine": {
            "type": draft.machine_type(),
            "token": draft.bundle.trustd_token.expose(),
            "ca": draft.authority(&draft.bundle.os),
            "certSANs": draft.spec.machine.cert_sans,
            "features": { "diskQuotaSupport": true },
        },
        "cluster": cluster,
    })
}

/// What makes the machine a machine.
fn machine(draft: &Draft, encryption: Option<&Value>) -> Vec<Value> {
    let Draft { spec, node, bundle, .. } = draft;
    let identity = json!({
        "clusterID": bundle.cluster_id,
        "clusterSecret": bundle.cluster_secret.expose(),
    });
    let install = json!({
        "installer": { "image": draft.installer() },
        "provisioning": {
            "diskSelector": { "match": format!("disk.dev_path == \"{}\"", draft.install_disk()) },
            "wipe": false,
        },
    });
    let mut resolver = json!({ "hostDNS": { "enabled": true, "forwardKubeDNSToHost": true } });
    resolver["nameservers"] = ours::nameservers(spec);
    let mut ephemeral = json!({ "name": "EPHEMERAL", "mount": { "secure": true } });
    if let Some(encryption) = encryption {
        ephemeral["encryption"] = encryption.clone();
    }
    let discovery = json!({ "name": "default", "endpoint": "https://discovery.talos.dev/" });
    let mut documents = vec![
        document("DiscoveryServiceConfig", discovery),
        document("DiscoveryIdentityConfig", identity),
        document("UnattendedInstallConfig", install),
        document("ResolverConfig", resolver),
        document("VolumeConfig", ephemeral),
        document("FilesystemTrimConfig", json!({ "interval": "168h0m0s" })),
        document("SecurityProfileConfig", json!({ "workloadIsolation": true })),
    ];
    documents.extend(ours::mirrors(spec));
    documents.push(document("HostnameConfig", json!({ "hostname": node.name, "auto": "off" })));
    documents
}

/// What makes the machine a node.
fn node(draft: &Draft) -> Vec<Value> {
    let Draft { spec, bundle, .. } = draft;
    let cluster = json!({ "clusterName": spec.name, "endpoint": kubernetes_endpoint(spec) });
    let mut node = json!({ "nodeIP": {} });
    let certificate = &bundle.kubernetes.certificate;
    let authority = if draft.is_control_plane() {
        node["labels"] = json!({
            "node-role.kubernetes.io/control-plane": "",
            "node.kubernetes.io/exclude-from-external-load-balancers": "",
        });
        node["taints"] = json!({ "node-role.kubernetes.io/control-plane": "NoSchedule" });
        let key = bundle.kubernetes.key.expose();
        json!({ "issuingCA": { "cert": certificate, "key": key } })
    } else {
        json!({ "acceptedCAs": [certificate] })
    };
    let kubelet = json!({
        "image": draft.kubelet_image(),
        "config": {},
        "defaultRuntimeSeccompProfileEnabled": true,
    });
    let network = json!({
        "dnsDomain": "cluster.local",
        "podSubnets": [spec.network.pods],
        "serviceSubnets": [spec.network.services],
    });
    vec![
        document("KubeClusterConfig", cluster),
        document("KubeNodeConfig", node),
        document("KubeletConfig", kubelet),
        document("KubeNetworkConfig", network),
        document("KubeAPIServerCAConfig", authority),
        document("KubePrismConfig", json!({ "port": 7445 })),
    ]
}

/// Who may do what in the cluster, and what keeps its secrets.
fn authorities(draft: &Draft) -> Vec<Value> {
    let Draft { spec, bundle, .. } = draft;
    let aggregator = json!({
        "issuingCA": {
            "cert": bundle.aggregator.certificate,
            "key": bundle.aggregator.key.expose(),
        },
    });
    let paths = ["/livez", "/readyz", "/healthz"].map(|path| json!({ "path": path }));
    let anonymous = json!({ "conditions": paths, "enabled": true });
    let authentication = json!({ "configuration": { "anonymous": anonymous, "jwt": [] } });
    let mut documents = vec![
        document("KubeAggregatorCAConfig", aggregator),
        document(
            "KubeAdmissionControlConfig",
            json!({ "name": "PodSecurity", "configuration": pod_security() }),
        ),
        document("KubeAuditPolicyConfig", json!({ "configuration": audit_policy() })),
        document("KubeAuthenticationConfig", authentication),
        document("KubeAuthorizerConfig", json!({ "name": "node", "type": "Node" })),
        document("KubeAuthorizerConfig", json!({ "name": "rbac", "type": "RBAC" })),
    ];
    // Upstream's name of the key: with another, what an older version of Talos encrypted can not be read. Without
    // encryption the document is needed all the same.
    let provider = if spec.machine.secretbox {
        json!({ "secretbox": { "keys": [{ "name": "key2", "secret": bundle.secretbox.expose() }] } })
    } else {
        json!({ "identity": {} })
    };
    let resources = json!([{ "providers": [provider], "resources": ["secrets"] }]);
    let config = json!({ "config": { "resources": resources } });
    documents.push(document("KubeEtcdEncryptionConfig", config));
    documents.push(document(
        "KubeServiceAccountConfig",
        json!({
            "issuer": {
                "privateKey": bundle.service_account.expose(),
                "issuerURL": kubernetes_endpoint(spec),
            },
        }),
    ));
    documents
}

/// The programs of the control plane.
fn components(draft: &Draft) -> Vec<Value> {
    let image = |name: &str| draft.kubernetes_image(name);
    let mut server = json!({ "image": image("kube-apiserver") });
    if !draft.spec.machine.cert_sans.is_empty() {
        server["certExtraSANs"] = json!(draft.spec.machine.cert_sans);
    }
    let with_config = |name: &str| json!({ "image": image(name), "config": {} });
    vec![
        document("KubeAPIServerConfig", server),
        document(
            "KubeControllerManagerConfig",
            json!({ "image": image("kube-controller-manager") }),
        ),
        document("KubeSchedulerConfig", with_config("kube-scheduler")),
        document("KubeProxyConfig", with_config("kube-proxy")),
        document("KubeFlannelCNIConfig", json!({ "backendType": "vxlan", "backendPort": 4789 })),
        document("KubeCoreDNSConfig", json!({ "enabled": draft.spec.machine.coredns })),
    ]
}
