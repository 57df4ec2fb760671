//! The machine config of one node, for Talos 1.12 and 1.13: the main document and the small ones beside it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::spec::{NodeSpec, Role, Spec};
use castle_model::{Class, Failure, Secret};
use serde_json::{Value, json};

use crate::authority::Authority;
use crate::bundle::Bundle;

/// The network interface: disk images for nocloud boot with `net.ifnames=0`.
pub const LINK: &str = "eth0";

/// The name of the volume on the second disk; it is mounted at `/var/mnt/longhorn`.
pub const DATA_VOLUME: &str = "longhorn";

/// The port of the Kubernetes API server, on every control plane and at the VIP.
pub const KUBERNETES_PORT: u16 = 6443;

/// The versions of Talos whose config this module writes, both ends included.
const SUPPORTED: ((u16, u16), (u16, u16)) = ((1, 12), (1, 13));

/// The address of the Kubernetes API, through the VIP.
#[must_use]
pub fn kubernetes_endpoint(spec: &Spec) -> String {
    format!("https://{}:{KUBERNETES_PORT}", spec.network.vip)
}

/// Writes the machine config of a node: a function of its arguments alone. `schematic` is the id of the image
/// factory's schematic, from which upgrades will take their image.
///
/// # Errors
/// If the castle wants a version of Talos whose config is written differently.
///
/// # Panics
/// Never: plain values always become YAML.
pub fn machine_config(
    spec: &Spec,
    node: &NodeSpec,
    bundle: &Bundle,
    schematic: &str,
) -> Result<Secret, Failure> {
    let wanted = (spec.talos.major, spec.talos.minor);
    if wanted < SUPPORTED.0 || wanted > SUPPORTED.1 {
        return Err(Failure::new(
            Class::Invalid,
            format!("write the machine config of {}", node.name),
            format!("the config format of Talos {} is not known to this castle", spec.talos),
        )
        .hint("use Talos 1.12 or 1.13"));
    }
    let main = json!({
        "version": "v1alpha1",
        "debug": false,
        "persist": true,
        "machine": machine(spec, node, bundle, schematic),
        "cluster": cluster(spec, node, bundle),
    });
    let mut text = String::new();
    for document in std::iter::once(main).chain(documents(spec, node)) {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&yaml_serde::to_string(&document).expect("plain values become YAML"));
    }
    Ok(Secret::new(text))
}

fn machine(spec: &Spec, node: &NodeSpec, bundle: &Bundle, schematic: &str) -> Value {
    let mut machine = json!({
        "type": machine_type(node.role),
        "token": bundle.trustd_token.expose(),
        "ca": authority(&bundle.os, node.role),
        "certSANs": [],
        "kubelet": {
            "image": format!("ghcr.io/siderolabs/kubelet:v{}", spec.kubernetes),
            "defaultRuntimeSeccompProfileEnabled": true,
            "disableManifestsDirectory": true,
        },
        "install": {
            "disk": "/dev/sda",
            "image": format!("factory.talos.dev/nocloud-installer/{schematic}:v{}", spec.talos),
            "wipe": false,
            "grubUseUKICmdline": true,
        },
        "features": {
            "diskQuotaSupport": true,
            "kubePrism": { "enabled": true, "port": 7445 },
            "hostDNS": { "enabled": true, "forwardKubeDNSToHost": true },
        },
    });
    if node.role == Role::ControlPlane {
        machine["nodeLabels"] =
            json!({ "node.kubernetes.io/exclude-from-external-load-balancers": "" });
    }
    machine
}

fn cluster(spec: &Spec, node: &NodeSpec, bundle: &Bundle) -> Value {
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
        "ca": authority(&bundle.kubernetes, node.role),
        "discovery": {
            "enabled": true,
            "registries": { "kubernetes": { "disabled": true }, "service": {} },
        },
    });
    if node.role == Role::ControlPlane {
        let image = |name: &str| format!("registry.k8s.io/{name}:v{}", spec.kubernetes);
        cluster["secretboxEncryptionSecret"] = json!(bundle.secretbox.expose());
        cluster["aggregatorCA"] = authority(&bundle.aggregator, node.role);
        cluster["serviceAccount"] =
            json!({ "key": STANDARD.encode(bundle.service_account.expose()) });
        cluster["apiServer"] = json!({
            "image": image("kube-apiserver"),
            "admissionControl": [pod_security()],
            "auditPolicy": {
                "apiVersion": "audit.k8s.io/v1",
                "kind": "Policy",
                "rules": [{ "level": "Metadata" }],
            },
        });
        cluster["controllerManager"] = json!({ "image": image("kube-controller-manager") });
        cluster["proxy"] = json!({ "image": image("kube-proxy") });
        cluster["scheduler"] = json!({ "image": image("kube-scheduler") });
        cluster["etcd"] = json!({ "ca": authority(&bundle.etcd, node.role) });
    }
    cluster
}

/// The default that Talos itself writes: baseline enforced everywhere but in kube-system.
fn pod_security() -> Value {
    json!({
        "name": "PodSecurity",
        "configuration": {
            "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1",
            "kind": "PodSecurityConfiguration",
            "defaults": {
                "enforce": "baseline",
                "enforce-version": "latest",
                "audit": "restricted",
                "audit-version": "latest",
                "warn": "restricted",
                "warn-version": "latest",
            },
            "exemptions": { "namespaces": ["kube-system"], "runtimeClasses": [], "usernames": [] },
        },
    })
}

/// The small documents. One link document switches DHCP off on all links, which is what a castle wants.
fn documents(spec: &Spec, node: &NodeSpec) -> Vec<Value> {
    let document = |kind: &str, mut body: Value| {
        let mut whole = json!({ "apiVersion": "v1alpha1", "kind": kind });
        if let (Some(whole), Some(body)) = (whole.as_object_mut(), body.as_object_mut()) {
            whole.append(body);
        }
        whole
    };
    let network = &spec.network;
    let address = format!("{}/{}", node.address, network.subnet.prefix());
    let nameservers: Vec<Value> =
        network.nameservers.iter().map(|server| json!({ "address": server })).collect();
    let mut documents = vec![
        document("HostnameConfig", json!({ "hostname": node.name, "auto": "off" })),
        document(
            "LinkConfig",
            json!({
                "name": LINK,
                "addresses": [{ "address": address }],
                "routes": [{ "gateway": network.gateway }],
            }),
        ),
        document("ResolverConfig", json!({ "nameservers": nameservers })),
        document("TimeSyncConfig", json!({ "ntp": { "servers": network.ntp } })),
    ];
    if node.role == Role::ControlPlane {
        documents.push(document("Layer2VIPConfig", json!({ "name": network.vip, "link": LINK })));
    }
    if node.has_data_disk() {
        documents.push(document(
            "UserVolumeConfig",
            json!({
                "name": DATA_VOLUME,
                "provisioning": { "diskSelector": { "match": "!system_disk" }, "minSize": "1GiB" },
            }),
        ));
    }
    documents
}

/// What Talos calls the role.
fn machine_type(role: Role) -> &'static str {
    match role {
        Role::ControlPlane => "controlplane",
        Role::Worker => "worker",
    }
}

/// An authority as a config holds it; a worker is never given a key to sign with.
fn authority(authority: &Authority, role: Role) -> Value {
    let key = match role {
        Role::ControlPlane => STANDARD.encode(authority.key.expose()),
        Role::Worker => String::new(),
    };
    json!({ "crt": STANDARD.encode(&authority.certificate), "key": key })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FixedClock, TestEntropy, spec};

    fn config_of(node: usize) -> (Vec<Value>, Secret) {
        let spec = spec();
        let bundle = Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap();
        let text = machine_config(&spec, &spec.nodes[node], &bundle, "88d1").unwrap();
        let again = machine_config(&spec, &spec.nodes[node], &bundle, "88d1").unwrap();
        assert_eq!(text, again, "the same input gives the same config");
        let documents = text
            .expose()
            .split("---\n")
            .filter(|text| !text.starts_with("  -----"))
            .map(|document| yaml_serde::from_str(document).unwrap())
            .collect();
        (documents, text)
    }

    fn kinds(documents: &[Value]) -> Vec<&str> {
        documents.iter().filter_map(|document| document["kind"].as_str()).collect()
    }

    #[test]
    fn a_control_plane_holds_the_vip_and_every_authority() {
        let (documents, _) = config_of(0);
        assert_eq!(
            kinds(&documents),
            ["HostnameConfig", "LinkConfig", "ResolverConfig", "TimeSyncConfig", "Layer2VIPConfig"]
        );
        let main = &documents[0];
        assert_eq!(main["machine"]["type"], "controlplane");
        assert_eq!(main["cluster"]["controlPlane"]["endpoint"], "https://192.168.1.210:6443");
        for path in ["/machine/ca/key", "/cluster/ca/key", "/cluster/etcd/ca/key"] {
            assert!(!main.pointer(path).unwrap().as_str().unwrap().is_empty(), "{path}");
        }
        insta::assert_snapshot!(yaml_serde::to_string(&documents[1..]).unwrap(), @r#"
        - apiVersion: v1alpha1
          kind: HostnameConfig
          hostname: cp-01
          auto: off
        - apiVersion: v1alpha1
          kind: LinkConfig
          name: eth0
          addresses:
          - address: 192.168.1.211/24
          routes:
          - gateway: 192.168.1.1
        - apiVersion: v1alpha1
          kind: ResolverConfig
          nameservers:
          - address: 192.168.1.1
        - apiVersion: v1alpha1
          kind: TimeSyncConfig
          ntp:
            servers:
            - time.cloudflare.com
        - apiVersion: v1alpha1
          kind: Layer2VIPConfig
          name: 192.168.1.210
          link: eth0
        "#);
    }

    #[test]
    fn a_worker_is_given_no_key_to_sign_with() {
        let (documents, text) = config_of(1);
        assert_eq!(kinds(&documents).last(), Some(&"UserVolumeConfig"));
        assert!(!kinds(&documents).contains(&"Layer2VIPConfig"));
        let bundle = Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap();
        for authority in [&bundle.os, &bundle.kubernetes, &bundle.etcd, &bundle.aggregator] {
            assert!(!text.expose().contains(&STANDARD.encode(authority.key.expose())));
        }
        assert!(!text.expose().contains(bundle.secretbox.expose()));
        assert_eq!(documents[0]["machine"]["ca"]["key"], "");
        assert!(documents[0]["cluster"].get("apiServer").is_none());
    }

    #[test]
    fn an_unknown_config_format_is_refused() {
        let mut spec = spec();
        spec.talos = "1.14.0".parse().unwrap();
        let bundle = Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap();
        let failure = machine_config(&spec, &spec.nodes[0], &bundle, "x").unwrap_err();
        assert_eq!(failure.class, Class::Invalid);
    }
}
