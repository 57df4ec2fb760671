//! Whole stories of the controllers: the webhook race, a synced secret, a bound volume, a Flux tree.

use super::*;
use crate::kubernetes::KubernetesTrouble;

fn webhook(namespace: &str, service: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "hook"},
        "webhooks": [{
            "name": "l2advertisementvalidationwebhook.metallb.io", "failurePolicy": "Fail",
            "clientConfig": {"service": {"namespace": namespace, "name": service, "path": "/validate-metallb-io-v1beta1-ipaddresspool"}},
            "rules": [{"apiGroups": ["metallb.io"], "apiVersions": ["v1beta1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["ipaddresspools"]}],
        }],
    })
}

pub(super) fn pool(range: &str) -> Value {
    json!({"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
        "metadata": {"name": "p", "namespace": "metallb-system"}, "spec": {"addresses": [range]}})
}

const POOL: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools/p";
pub(super) const POOL_DRY: &str = "/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools/p?fieldManager=castle&force=true&dryRun=All";

pub(super) fn metallb(rig: &mut Rig) {
    rig.namespace("metallb-system");
    rig.definition("metallb.io", "v1beta1", "ipaddresspools", "IPAddressPool", "Namespaced");
    rig.good(
        "/api/v1/namespaces/metallb-system/services/metallb-webhook-service",
        &json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "metallb-webhook-service", "namespace": "metallb-system"},
            "spec": {"selector": {"app": "controller"}, "ports": [{"port": 443, "targetPort": 9443}]},
        }),
    );
    rig.deployment("metallb-system", "controller");
    rig.good(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
        &webhook("metallb-system", "metallb-webhook-service"),
    );
}

#[test]
fn a_webhook_serves_later_than_its_pod_looks_ready() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    rig.pass(1_500);
    let message = |rig: &mut Rig| {
        let (status, no) = rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9"));
        (status, no["message"].as_str().unwrap_or_default().to_owned())
    };
    let post = "Internal error occurred: failed calling webhook \"l2advertisementvalidationwebhook.metallb.io\": \
        failed to call webhook: Post \"https://metallb-webhook-service.metallb-system.svc:443/validate-metallb-io-v1beta1-ipaddresspool?timeout=10s\": ";
    let none = format!("{post}no endpoints available for service \"metallb-webhook-service\"");
    assert_eq!(message(&mut rig), (500, none.clone()));
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(status, _)| *status == 500) {
        let now = message(&mut rig);
        if seen.last() != Some(&now) {
            seen.push(now);
        }
        rig.pass(100);
    }
    let [first, refused, good] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((first, good.0), (&(500, none), 201));
    assert!(refused.1.starts_with(&format!("{post}dial tcp 10.244.")), "{refused:?}");
    assert!(refused.1.ends_with(":9443: connect: connection refused"), "{refused:?}");
    let controller = "/apis/apps/v1/namespaces/metallb-system/deployments/controller";
    assert_eq!(rig.get(controller)["status"]["availableReplicas"], 1, "available was not serving");
    rig.pass(13_000);
    let slices = rig.get("/apis/discovery.k8s.io/v1/namespaces/metallb-system/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dmetallb-webhook-service");
    assert_eq!(slices["items"][0]["endpoints"][0]["conditions"]["ready"], true);
    let hook =
        rig.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook");
    assert!(!hook["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap().is_empty());
    assert_eq!(rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9")).0, 201);
    let (status, no) = rig.apply(POOL, &pool("10.0.0.999"));
    assert_eq!(status, 403);
    assert!(no["message"].as_str().unwrap().contains("denied the request"), "{no}");
    rig.good(POOL, &pool("10.0.0.1-10.0.0.9"));
    balanced(&mut rig, "web", &json!({}));
    assert_eq!(address(&mut rig, "web"), "10.0.0.1");
}

/// A service that wants an address, with annotations of MetalLB's.
fn balanced(rig: &mut Rig, name: &str, annotations: &Value) {
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    rig.good(&format!("/api/v1/namespaces/default/services/{name}"), &service);
    rig.pass(2_000);
}

fn address(rig: &mut Rig, name: &str) -> String {
    let service = rig.get(&format!("/api/v1/namespaces/default/services/{name}"));
    let ingress = &service["status"]["loadBalancer"]["ingress"][0]["ip"];
    ingress.as_str().unwrap_or_default().to_owned()
}

fn told(rig: &mut Rig, name: &str) -> Vec<String> {
    let path =
        format!("/api/v1/namespaces/default/events?fieldSelector=involvedObject.name={name}");
    let items = rig.get(&path)["items"].as_array().unwrap().clone();
    items
        .iter()
        .map(|e| format!("{} {}", e["reason"].as_str().unwrap(), e["message"].as_str().unwrap()))
        .collect()
}

#[test]
fn addresses_are_given_by_the_rules_of_metallb() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    rig.definition("metallb.io", "v1beta1", "l2advertisements", "L2Advertisement", "Namespaced");
    rig.pass(60_000);
    rig.good(POOL, &pool("10.0.0.1-10.0.0.2"));
    let mut kept = pool("10.0.9.1-10.0.9.9");
    kept["metadata"]["name"] = "kept".into();
    kept["spec"]["autoAssign"] = false.into();
    rig.good("/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools/kept", &kept);
    kept["metadata"]["name"] = "twice".into();
    let (_, no) =
        rig.apply("/apis/metallb.io/v1beta1/namespaces/metallb-system/ipaddresspools/twice", &kept);
    assert!(
        no["message"]
            .as_str()
            .unwrap()
            .ends_with("overlaps with already defined CIDR \"10.0.9.1-10.0.9.9\""),
        "{no}"
    );
    balanced(&mut rig, "one", &json!({"metallb.io/allow-shared-ip": "key"}));
    balanced(&mut rig, "two", &json!({"metallb.universe.tf/loadBalancerIPs": "10.0.0.2"}));
    balanced(&mut rig, "three", &json!({}));
    balanced(&mut rig, "four", &json!({"metallb.io/address-pool": "kept"}));
    balanced(&mut rig, "five", &json!({"metallb.io/loadBalancerIPs": "10.7.7.7"}));
    balanced(
        &mut rig,
        "six",
        &json!({"metallb.io/allow-shared-ip": "key", "metallb.io/loadBalancerIPs": "10.0.0.1"}),
    );
    let all = ["one", "two", "three", "four", "five", "six"].map(|name| address(&mut rig, name));
    assert_eq!(all, ["10.0.0.1", "10.0.0.2", "", "10.0.9.1", "", ""]);
    assert_eq!(
        told(&mut rig, "three"),
        ["AllocationFailed Failed to allocate IP for \"default/three\": no available IPs"]
    );
    assert_eq!(
        told(&mut rig, "five"),
        [
            "AllocationFailed Failed to allocate IP for \"default/five\": [\"10.7.7.7\"] is not allowed in config"
        ]
    );
    assert_eq!(
        told(&mut rig, "six"),
        [
            "AllocationFailed Failed to allocate IP for \"default/six\": port TCP/80 is already in use on \"10.0.0.1\""
        ]
    );
    assert_eq!(
        told(&mut rig, "two"),
        ["IPAllocated Assigned IP [\"10.0.0.2\"]"],
        "nobody announces it"
    );
    let mut speaker = deployment("metallb-system", "speaker", 1);
    speaker["kind"] = "DaemonSet".into();
    speaker["spec"].as_object_mut().unwrap().remove("replicas");
    rig.good("/apis/apps/v1/namespaces/metallb-system/daemonsets/speaker", &speaker);
    rig.good("/apis/metallb.io/v1beta1/namespaces/metallb-system/l2advertisements/l2",
        &json!({"apiVersion": "metallb.io/v1beta1", "kind": "L2Advertisement",
            "metadata": {"name": "l2", "namespace": "metallb-system"}, "spec": {"ipAddressPools": ["p"]}}));
    rig.pass(60_000);
    assert!(told(&mut rig, "two").contains(
        &"nodeAssigned announcing from node \"worker-01\" with protocol \"layer2\"".to_owned()
    ));
    assert_eq!(told(&mut rig, "four").len(), 1, "its pool is not advertised");
    rig.call("DELETE", "/api/v1/namespaces/default/services/two", &Value::Null);
    rig.pass(5_000);
    balanced(&mut rig, "three", &json!({"again": "yes"}));
    assert_eq!(address(&mut rig, "three"), "10.0.0.2");
}

#[test]
fn a_webhook_can_be_cut_off_refused_slow_or_gone() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    rig.pass(60_000);
    let reason = |rig: &mut Rig| {
        let (_, no) = rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9"));
        no["message"].as_str().and_then(|m| m.rsplit(": ").next()).unwrap_or("good").to_owned()
    };
    assert_eq!(reason(&mut rig), "good");
    for (trouble, why) in [
        (KubernetesTrouble::WebhooksCutOff([192, 168, 1, 210].into(), 1_000), "no route to host"),
        (KubernetesTrouble::WebhooksCutOff([192, 168, 1, 9].into(), 1_000), "good"),
        (
            KubernetesTrouble::WebhookRefused(
                "metallb-system/metallb-webhook-service".into(),
                1_000,
            ),
            "connection refused",
        ),
        (
            KubernetesTrouble::WebhookSlow("metallb-system/metallb-webhook-service".into(), 1_000),
            "context deadline exceeded",
        ),
    ] {
        rig.turn(|cluster, turn| cluster.suffer(turn, &trouble));
        assert_eq!(reason(&mut rig), why, "{trouble:?}");
        rig.pass(1_000);
        assert_eq!(reason(&mut rig), "good", "{trouble:?} is over");
    }
    let path = "/api/v1/namespaces/metallb-system/services/metallb-webhook-service";
    rig.call("DELETE", path, &Value::Null);
    assert_eq!(reason(&mut rig), "service \"metallb-webhook-service\" not found");
}

#[test]
fn applying_the_webhooks_again_keeps_their_authority() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    rig.pass(60_000);
    rig.good(
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook",
        &webhook("metallb-system", "metallb-webhook-service"),
    );
    assert_eq!(rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9")).0, 201);
}

fn external_secrets(rig: &mut Rig) {
    rig.namespace("external-secrets");
    rig.definition(
        "external-secrets.io",
        "v1",
        "clustersecretstores",
        "ClusterSecretStore",
        "Cluster",
    );
    rig.definition("external-secrets.io", "v1", "externalsecrets", "ExternalSecret", "Namespaced");
    rig.deployment("external-secrets", "external-secrets");
    rig.pass(40_000);
    let reference =
        |key: &str| json!({"name": "identity", "namespace": "external-secrets", "key": key});
    rig.good("/apis/external-secrets.io/v1/clustersecretstores/infisical", &json!({
        "apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "metadata": {"name": "infisical"},
        "spec": {"provider": {"infisical": {"hostAPI": "https://eu.infisical.com",
            "auth": {"universalAuthCredentials": {"clientId": reference("id"), "clientSecret": reference("secret")}},
            "secretsScope": {"projectSlug": "p", "environmentSlug": "dev", "secretsPath": "/"}}}},
    }));
}

fn identity(rig: &mut Rig, secret: &str) {
    rig.good("/api/v1/namespaces/external-secrets/secrets/identity", &json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "identity", "namespace": "external-secrets"},
        "stringData": {"id": "me", "secret": secret}}));
}

fn git_secret(rig: &mut Rig) {
    rig.good("/apis/external-secrets.io/v1/namespaces/flux-system/externalsecrets/flux-system", &json!({
        "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
        "metadata": {"name": "flux-system", "namespace": "flux-system"},
        "spec": {"secretStoreRef": {"name": "infisical", "kind": "ClusterSecretStore"},
            "target": {"name": "flux-system", "template": {"data": {"username": "git", "password": "{{ .token }}"}}},
            "data": [{"secretKey": "token", "remoteRef": {"key": "GITHUB_TOKEN"}}]},
    }));
}

#[test]
fn a_secret_comes_through_when_the_identity_is_right() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    external_secrets(&mut rig);
    rig.namespace("flux-system");
    git_secret(&mut rig);
    let store = "/apis/external-secrets.io/v1/clustersecretstores/infisical";
    let reason = |rig: &mut Rig| {
        rig.get(store)["status"]["conditions"][0]["message"].as_str().unwrap().to_owned()
    };
    rig.pass(10_000);
    assert!(reason(&mut rig).contains("secrets \"identity\" not found"));
    identity(&mut rig, "wrong");
    rig.pass(10_000);
    assert!(reason(&mut rig).contains("Invalid credentials"));
    identity(&mut rig, "right");
    rig.pass(20_000);
    assert_eq!(reason(&mut rig), "store validated");
    let secret = rig.get("/api/v1/namespaces/flux-system/secrets/flux-system");
    assert_eq!(secret["data"], json!({"username": "Z2l0", "password": "Z2hwXzE="}));
    assert_eq!(rig.cluster.synced_secrets(), 1);
    let empty = KubernetesTrouble::EmptySecrets(60_000);
    rig.turn(|cluster, turn| cluster.suffer(turn, &empty));
    let path = "/apis/external-secrets.io/v1/namespaces/flux-system/externalsecrets/flux-system";
    rig.raw(
        "PATCH",
        path,
        "application/merge-patch+json",
        &json!({"spec": {"refreshInterval": "1h"}}),
    );
    rig.pass(10_000);
    let secret = rig.get("/api/v1/namespaces/flux-system/secrets/flux-system");
    assert_eq!(secret["data"]["password"], "", "synced, it says, and there is nothing");
    assert_eq!(rig.get(path)["status"]["conditions"][0]["reason"], "SecretSynced");
}

#[test]
fn a_claim_is_bound_when_longhorn_has_disks_and_drivers() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.namespace("longhorn-system");
    rig.definition("longhorn.io", "v1beta2", "nodes", "Node", "Namespaced");
    rig.definition("longhorn.io", "v1beta2", "volumes", "Volume", "Namespaced");
    rig.pass(2_000);
    let class = "kind: StorageClass\napiVersion: storage.k8s.io/v1\nmetadata:\n  name: longhorn\n  annotations:\n    \
        storageclass.kubernetes.io/is-default-class: \"true\"\nprovisioner: driver.longhorn.io\nreclaimPolicy: Delete\n\
        volumeBindingMode: Immediate\nparameters:\n  numberOfReplicas: \"2\"\n";
    rig.good("/api/v1/namespaces/longhorn-system/configmaps/longhorn-storageclass",
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "longhorn-storageclass", "namespace": "longhorn-system"}, "data": {"storageclass.yaml": class}}));
    rig.deployment("longhorn-system", "longhorn-driver-deployer");
    let mut manager = deployment("longhorn-system", "longhorn-manager", 1);
    manager["kind"] = "DaemonSet".into();
    manager["spec"].as_object_mut().unwrap().remove("replicas");
    rig.good("/apis/apps/v1/namespaces/longhorn-system/daemonsets/longhorn-manager", &manager);
    let claim = "/api/v1/namespaces/default/persistentvolumeclaims/probe";
    rig.good(
        claim,
        &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "probe", "namespace": "default"},
        "spec": {"storageClassName": "longhorn", "resources": {"requests": {"storage": "1Gi"}}}}),
    );
    rig.pass(30_000);
    assert_eq!(rig.get(claim)["status"]["phase"], "Pending");
    rig.pass(200_000);
    assert_eq!(rig.get(claim)["status"]["phase"], "Bound");
    let nodes = rig.get("/apis/longhorn.io/v1beta2/namespaces/longhorn-system/nodes");
    assert_eq!(nodes["items"].as_array().unwrap().len(), 2, "the control plane carries no volumes");
    assert_eq!(nodes["items"][0]["kind"], "Node");
    let volume =
        rig.get("/apis/longhorn.io/v1beta2/namespaces/longhorn-system/volumes")["items"][0].clone();
    assert_eq!(volume["spec"]["numberOfReplicas"], 2, "by the class of the manifest");
    assert_eq!(volume["status"]["conditions"][0]["status"], "True");
    lose_and_find_a_disk(&mut rig);
    let ask = |name: &str, size: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "default"},
            "spec": {"resources": {"requests": {"storage": size}}}})
    };
    let big = "/api/v1/namespaces/default/persistentvolumeclaims/big";
    rig.good(big, &ask("big", "100Gi"));
    rig.pass(20_000);
    assert_eq!(rig.get(big)["status"]["phase"], "Pending", "a disk of 100 GiB has 1 GiB promised");
    let events =
        rig.get("/api/v1/namespaces/default/events?fieldSelector=reason=ProvisioningFailed");
    let why = events["items"][0]["message"].as_str().unwrap();
    assert!(why.contains("insufficient storage"), "{why}");
    rig.call("DELETE", claim, &Value::Null);
    rig.pass(30_000);
    let bound = rig.get(big);
    assert_eq!(
        (&bound["status"]["phase"], &bound["spec"]["storageClassName"]),
        (&json!("Bound"), &json!("longhorn"))
    );
    rig.call("DELETE", big, &Value::Null);
    rig.pass(1_000);
    assert_eq!(rig.get("/api/v1/persistentvolumes")["items"], json!([]));
}

/// Longhorn sees that a disk is gone under it, and that it is there again.
fn lose_and_find_a_disk(rig: &mut Rig) {
    let says = |rig: &mut Rig| {
        let node = rig.get("/apis/longhorn.io/v1beta2/namespaces/longhorn-system/nodes/worker-01");
        let disk = &node["status"]["diskStatus"]["default-disk"]["conditions"];
        let text = |at: usize, key: &str| disk[at][key].as_str().unwrap_or_default().to_owned();
        (text(0, "status"), text(1, "status"), text(1, "reason"))
    };
    let well = ("True".to_owned(), "True".to_owned(), String::new());
    let lost = ("False".to_owned(), "False".to_owned(), "DiskNotReady".to_owned());
    assert_eq!(says(rig), well);
    let data_disk =
        |there| Signal::DataDisk { cluster: "one".into(), name: "worker-01".into(), there };
    rig.hear(&data_disk(false));
    assert_eq!(says(rig), lost);
    rig.hear(&data_disk(true));
    assert_eq!(says(rig), well);
}

#[test]
fn flux_builds_the_tree_in_the_order_of_its_needs() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    external_secrets(&mut rig);
    rig.namespace("flux-system");
    identity(&mut rig, "right");
    rig.definition(
        "source.toolkit.fluxcd.io",
        "v1",
        "gitrepositories",
        "GitRepository",
        "Namespaced",
    );
    rig.definition(
        "kustomize.toolkit.fluxcd.io",
        "v1",
        "kustomizations",
        "Kustomization",
        "Namespaced",
    );
    rig.pass(2_000);
    let source =
        "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system";
    rig.good(source, &json!({"apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "flux-system", "namespace": "flux-system"},
        "spec": {"interval": "1m", "url": "https://git/x", "ref": {"branch": "main"}, "secretRef": {"name": "flux-system"}}}));
    rig.deployment("flux-system", "source-controller");
    rig.deployment("flux-system", "kustomize-controller");
    rig.pass(60_000);
    let failing =
        rig.get(source)["status"]["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(failing.contains("secrets \"flux-system\" not found"), "{failing}");
    git_secret(&mut rig);
    rig.pass(30_000);
    assert_eq!(rig.get(source)["status"]["artifact"]["revision"], "main@sha1:c0ffee");
    let folder = "/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations";
    let root = |path: &str| {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
        "metadata": {"name": "flux-system", "namespace": "flux-system"},
        "spec": {"interval": "10m", "retryInterval": "5s", "path": path, "prune": true,
            "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
            "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-vars"}]}}})
    };
    rig.good(&format!("{folder}/flux-system"), &root("./clusters/blue"));
    rig.pass(16_000);
    let reason =
        rig.get(&format!("{folder}/flux-system"))["status"]["conditions"][0]["message"].clone();
    assert_eq!(
        reason,
        "substitute from 'ConfigMap/cluster-vars' error: configmaps \"cluster-vars\" not found"
    );
    // Somebody holds one unit back, so that what depends on it has to wait, whatever the dice say.
    let held = |back: bool| {
        json!({"apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": "core", "namespace": "flux-system"}, "spec": {"suspend": back}})
    };
    rig.good(&format!("{folder}/core"), &held(true));
    rig.good(
        "/api/v1/namespaces/flux-system/configmaps/cluster-vars",
        &json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "cluster-vars", "namespace": "flux-system"}, "data": {}}),
    );
    rig.pass(60_000);
    let apps = rig.get(&format!("{folder}/apps"));
    assert_eq!(
        apps["status"]["conditions"][0]["message"],
        "dependency 'flux-system/core' is not ready"
    );
    rig.good(&format!("{folder}/core"), &held(false));
    rig.pass(80_000);
    let all = rig.get(folder);
    let states: Vec<String> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| {
            format!(
                "{} {} {}",
                k["metadata"]["name"].as_str().unwrap(),
                k["status"]["conditions"][0]["status"].as_str().unwrap(),
                k["status"]["lastAppliedRevision"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        states,
        [
            "apps True main@sha1:c0ffee",
            "base True main@sha1:c0ffee",
            "core True main@sha1:c0ffee",
            "flux-system True main@sha1:c0ffee"
        ]
    );
    rig.good(&format!("{folder}/flux-system"), &root("./nowhere"));
    rig.pass(16_000);
    let reason =
        rig.get(&format!("{folder}/flux-system"))["status"]["conditions"][0]["message"].clone();
    assert!(reason.as_str().unwrap().contains("path not found"), "{reason}");
}
