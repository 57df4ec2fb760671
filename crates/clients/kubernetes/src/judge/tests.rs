//! The judge's rules, kind by kind, on objects as real servers show them.

use serde_json::{Value, json};

use super::*;

mod table;

fn say(api_version: &str, kind: &str, rest: &Value) -> String {
    let mut value = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "generation": 2}});
    for (key, part) in rest.as_object().unwrap() {
        if key == "metadata" {
            for (field, entry) in part.as_object().unwrap() {
                value["metadata"][field] = entry.clone();
            }
        } else {
            value[key] = part.clone();
        }
    }
    match judge(&Object::new(value).unwrap()) {
        Verdict::Ready(words) => format!("ready: {words}"),
        Verdict::Waiting(words) => format!("waiting: {words}"),
        Verdict::Failed(failure) => format!("failed: {failure}"),
    }
}

fn check(api_version: &str, kind: &str, cases: &[(Value, &str)]) {
    for (rest, wanted) in cases {
        assert_eq!(say(api_version, kind, rest), *wanted, "{rest}");
    }
}

#[test]
fn deployments() {
    check(
        "apps/v1",
        "Deployment",
        &[
            (json!({}), "waiting: Deployment x has not been seen by its controller yet"),
            (
                json!({"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}),
                "waiting: Deployment x has not been seen by its controller yet",
            ),
            (
                json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1}}),
                "waiting: Deployment x has 1 of 2 replicas of the new revision",
            ),
            (
                json!({"status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 2}}),
                "waiting: Deployment x still has 1 old replicas",
            ),
            (
                json!({"status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1}}),
                "waiting: Deployment x has 0 of 1 replicas available",
            ),
            (
                json!({"status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}}),
                "ready: Deployment x has 1 of 1 replicas available",
            ),
            (
                json!({"spec": {"replicas": 0}, "status": {"observedGeneration": 2}}),
                "ready: Deployment x has 0 of 0 replicas available",
            ),
        ],
    );
}

#[test]
fn daemon_sets_and_stateful_sets() {
    check(
        "apps/v1",
        "DaemonSet",
        &[
            (json!({}), "waiting: DaemonSet x has not been seen by its controller yet"),
            (
                json!({"status": {"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 5, "numberAvailable": 4}}),
                "waiting: DaemonSet x is available on 4 of 5 nodes",
            ),
            (
                json!({"status": {"observedGeneration": 2, "desiredNumberScheduled": 5, "updatedNumberScheduled": 5, "numberAvailable": 5}}),
                "ready: DaemonSet x is available on 5 of 5 nodes",
            ),
        ],
    );
    check(
        "apps/v1",
        "StatefulSet",
        &[
            (
                json!({"status": {"observedGeneration": 2, "readyReplicas": 0}}),
                "waiting: StatefulSet x has 0 of 1 replicas ready",
            ),
            (
                json!({"spec": {"replicas": 2}, "status": {"observedGeneration": 2, "readyReplicas": 2, "updatedReplicas": 1,
            "currentRevision": "a", "updateRevision": "b"}}),
                "waiting: StatefulSet x has 1 of 2 replicas of the new revision",
            ),
            (
                json!({"status": {"observedGeneration": 2, "readyReplicas": 1, "updatedReplicas": 1}}),
                "ready: StatefulSet x has 1 of 1 replicas ready",
            ),
        ],
    );
}

#[test]
fn pods_and_jobs() {
    check(
        "v1",
        "Pod",
        &[
            (json!({}), "waiting: Pod x is Pending, not ready"),
            (
                json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "main", "state": {"waiting":
            {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"a:1\""}}}]}}),
                "waiting: Pod x waits in container main: ImagePullBackOff: Back-off pulling image \"a:1\"",
            ),
            (
                json!({"status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/5 nodes are available: 5 node(s) had untolerated taint {a: b}. \
            preemption: 0/5 nodes are available: 5 Preemption is not helpful for scheduling."}]}}),
                "waiting: Pod x finds no node: Unschedulable: 0/5 nodes are available: 5 node(s) had untolerated taint {a: b}",
            ),
            (
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}}),
                "waiting: Pod x is Running, not ready",
            ),
            (
                json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}),
                "ready: Pod x is ready",
            ),
            (
                json!({"status": {"phase": "Failed", "reason": "Evicted"}}),
                "failed: wait for Pod x: Evicted",
            ),
            (
                json!({"metadata": {"deletionTimestamp": "2026-02-02T00:00:00Z"}}),
                "waiting: Pod x is being deleted",
            ),
        ],
    );
    check(
        "batch/v1",
        "Job",
        &[
            (json!({"status": {"active": 1}}), "waiting: Job x is running 1 pods"),
            (
                json!({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}),
                "ready: Job x has finished",
            ),
            (
                json!({"status": {"conditions": [{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}]}}),
                "failed: wait for Job x: BackoffLimitExceeded",
            ),
        ],
    );
}

#[test]
fn nodes_claims_services() {
    check(
        "v1",
        "Node",
        &[
            (json!({}), "waiting: Node x has not reported yet"),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "KubeletNotReady",
            "message": "container runtime network not ready"}]}}),
                "waiting: Node x is not Ready: KubeletNotReady: container runtime network not ready",
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
                "ready: Node x is Ready",
            ),
        ],
    );
    check(
        "v1",
        "PersistentVolumeClaim",
        &[
            (
                json!({"status": {"phase": "Pending"}}),
                "waiting: PersistentVolumeClaim x is Pending",
            ),
            (
                json!({"spec": {"volumeName": "pvc-1"}, "status": {"phase": "Bound"}}),
                "ready: PersistentVolumeClaim x is bound to pvc-1",
            ),
            (
                json!({"status": {"phase": "Lost"}}),
                "failed: wait for PersistentVolumeClaim x: its volume is lost",
            ),
        ],
    );
    check(
        "v1",
        "Service",
        &[
            (json!({"spec": {"type": "ClusterIP"}}), "ready: Service x is there"),
            (json!({"spec": {"type": "LoadBalancer"}}), "waiting: Service x has no address yet"),
            (
                json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "192.168.1.230"}]}}}),
                "ready: Service x has 192.168.1.230",
            ),
        ],
    );
}

#[test]
fn endpoints_without_a_word_are_ready() {
    check(
        "discovery.k8s.io/v1",
        "EndpointSlice",
        &[
            (json!({"endpoints": null}), "waiting: EndpointSlice x has 0 of 0 endpoints ready"),
            (
                json!({"endpoints": [{"addresses": ["10.244.0.7"], "conditions": {"ready": false}}]}),
                "waiting: EndpointSlice x has 0 of 1 endpoints ready",
            ),
            (
                json!({"endpoints": [{"addresses": [], "conditions": {"ready": true}}]}),
                "waiting: EndpointSlice x has 0 of 1 endpoints ready",
            ),
            (
                json!({"endpoints": [{"addresses": ["10.244.0.7"], "conditions": {}}]}),
                "ready: EndpointSlice x has 1 ready at 10.244.0.7",
            ),
            (
                json!({"endpoints": [{"addresses": ["fd00::7"], "conditions": {"ready": true}}]}),
                "ready: EndpointSlice x has 1 ready at fd00::7",
            ),
        ],
    );
}

#[test]
fn definitions_and_webhooks() {
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        &[
            (json!({}), "waiting: CustomResourceDefinition x is not established yet"),
            (
                json!({"status": {"conditions": [{"type": "Established", "status": "True"}]}}),
                "ready: CustomResourceDefinition x is established",
            ),
            (
                json!({"status": {"conditions": [{"type": "NamesAccepted", "status": "False", "reason": "PluralConflict",
            "message": "\"x\" is already in use"}]}}),
                "failed: wait for CustomResourceDefinition x: PluralConflict: \"x\" is already in use",
            ),
        ],
    );
    let hook = |bundle: Value| json!({"webhooks": [{"name": "a.metallb.io", "clientConfig": {"service": {}, "caBundle": bundle}}]});
    check(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        &[
            (
                hook(Value::Null),
                "waiting: ValidatingWebhookConfiguration x has no caBundle for a.metallb.io",
            ),
            (
                hook(json!("")),
                "waiting: ValidatingWebhookConfiguration x has no caBundle for a.metallb.io",
            ),
            (
                hook(json!("LS0t")),
                "ready: ValidatingWebhookConfiguration x has the authority of its 1 webhooks",
            ),
        ],
    );
}

#[test]
fn custom_kinds_by_their_conditions() {
    let at = |generation: i64, status: &str| {
        json!({"status": {"observedGeneration": generation, "conditions": [
        {"type": "Ready", "status": status, "reason": "Why", "message": "words", "observedGeneration": generation}]}})
    };
    for (version, kind) in [
        ("source.toolkit.fluxcd.io/v1", "GitRepository"),
        ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ] {
        check(
            version,
            kind,
            &[
                (
                    json!({}),
                    &format!("waiting: {kind} x has not been looked at by its controller yet"),
                ),
                (
                    at(1, "True"),
                    &format!("waiting: {kind} x has not been seen in its newest form yet"),
                ),
                (at(2, "False"), &format!("waiting: {kind} x is not ready: Why: words")),
                (at(2, "True"), &format!("ready: {kind} x Why: words")),
            ],
        );
    }
    // As Flux 2.9 writes it while a unit has never been ready.
    let never = |generation: i64| {
        json!({"status": {"observedGeneration": -1, "conditions": [
            {"type": "Reconciling", "status": "True", "reason": "ProgressingWithRetry", "message": "Detecting drift", "observedGeneration": generation},
            {"type": "Ready", "status": "False", "reason": "ReconciliationFailed",
                "message": "ConfigMap/default/x dry-run failed: expected\n  string\n", "observedGeneration": generation}]}})
    };
    check(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        &[
            (
                never(2),
                "waiting: Kustomization x is not ready: ReconciliationFailed: ConfigMap/default/x dry-run failed: expected string",
            ),
            (never(1), "waiting: Kustomization x has not been seen in its newest form yet"),
            (
                json!({"status": {"observedGeneration": -1, "conditions": [{"type": "Ready", "status": "True", "reason": "Why"}]}}),
                "waiting: Kustomization x has not been seen in its newest form yet",
            ),
        ],
    );
    check(
        "source.toolkit.fluxcd.io/v1",
        "GitRepository",
        &[(
            json!({"status": {"conditions": [{"type": "Stalled", "status": "True", "reason": "URLInvalid", "message": "no"}]}}),
            "failed: wait for GitRepository x: URLInvalid: no",
        )],
    );
    // External Secrets writes no generation.
    check(
        "external-secrets.io/v1",
        "ClusterSecretStore",
        &[
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "InvalidProviderConfig",
            "message": "unable to log in"}]}}),
                "waiting: ClusterSecretStore x is not ready: InvalidProviderConfig: unable to log in",
            ),
            (
                json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "Valid", "message": "store validated"}]}}),
                "ready: ClusterSecretStore x Valid: store validated",
            ),
        ],
    );
    check("metallb.io/v1beta1", "IPAddressPool", &[(json!({}), "ready: IPAddressPool x is there")]);
}

#[test]
fn longhorn_nodes_need_a_disk() {
    let disk = |status: &str| {
        json!({"status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "diskStatus": {"disk-1": {"conditions": [{"type": "Schedulable", "status": status}]}}}})
    };
    check(
        "longhorn.io/v1beta2",
        "Node",
        &[
            (json!({}), "waiting: Node x has no disk that takes volumes yet"),
            (disk("False"), "waiting: Node x has no disk that takes volumes yet"),
            (disk("True"), "ready: Node x has 1 disks that take volumes"),
        ],
    );
}

#[test]
fn many_are_judged_together() {
    let object = |name: &str, phase: &str| {
        Object::new(
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
            "status": {"phase": phase}}),
        )
        .unwrap()
    };
    let all: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|n| object(n, "Pending")).collect();
    assert_eq!(
        judge_all(&all),
        Verdict::Waiting("PersistentVolumeClaim a is Pending; and 4 more".into())
    );
    assert_eq!(judge_all([&object("a", "Bound")]), Verdict::Ready("1 ready".into()));
    assert!(matches!(
        judge_all([&object("a", "Pending"), &object("b", "Lost")]),
        Verdict::Failed(_)
    ));
}
