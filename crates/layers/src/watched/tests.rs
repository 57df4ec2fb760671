//! What is told of a layer that Flux installs, as it comes up.

use serde_json::{Value, json};

use super::*;
use crate::{engine, networking, storage};

fn there(values: &[Value]) -> Objects {
    let objects = values.iter().map(|value| Object::new(value.clone()).unwrap());
    objects.map(|object| (object.id(), object)).collect()
}

fn definition(name: &str, established: bool) -> Value {
    let status = if established { "True" } else { "False" };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
        "status": {"conditions": [{"type": "Established", "status": status}, {"type": "NamesAccepted", "status": "True"}]}})
}

fn deployment(namespace: &str, ready: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "controller", "namespace": namespace, "generation": 1},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": ready, "availableReplicas": ready,
            "conditions": [{"type": "Available", "status": if ready > 0 { "True" } else { "False" }}]}})
}

fn hook(namespace: &str, bundle: &str) -> Value {
    json!({"apiVersion": HOOKS, "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "hooks"},
        "webhooks": [{"name": "a.b.c", "clientConfig": {"caBundle": bundle, "service": {"namespace": namespace, "name": "hook"}}}]})
}

fn slice(namespace: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": "hook-1", "namespace": namespace, "labels": {"kubernetes.io/service-name": "hook"}},
        "endpoints": [{"addresses": ["10.244.1.2"], "conditions": {"ready": true}}]})
}

fn told(watched: &Watched, values: &[Value]) -> String {
    match watched.judge(&castle_config::example(), &there(values)) {
        Verdict::Ready(words) => format!("ready: {words}"),
        Verdict::Waiting(reason) => format!("waiting: {reason}"),
        Verdict::Failed(failure) => format!("failed: {failure}"),
    }
}

#[test]
fn metallb_by_flux_is_there_when_all_of_it_is() {
    let watched = &networking::WATCHED;
    let space = watched.namespace;
    let mut values: Vec<Value> = Vec::new();
    let mut lines = vec![told(watched, &values)];
    values.extend(watched.definitions.iter().map(|name| definition(name, false)));
    lines.push(told(watched, &values));
    values = watched.definitions.iter().map(|name| definition(name, true)).collect();
    lines.push(told(watched, &values));
    // What runs elsewhere is not its.
    values.push(deployment("other", 0));
    lines.push(told(watched, &values));
    values.push(deployment(space, 0));
    lines.push(told(watched, &values));
    values.pop();
    values.extend([deployment(space, 1), hook(space, "")]);
    lines.push(told(watched, &values));
    values.pop();
    values.push(hook(space, "QQ=="));
    lines.push(told(watched, &values));
    values.push(slice(space));
    lines.push(told(watched, &values));
    values.push(json!({"apiVersion": "metallb.io/v1beta1", "kind": "IPAddressPool",
        "metadata": {"name": "home", "namespace": space}, "spec": {"addresses": ["192.168.1.230-192.168.1.245"]}}));
    lines.push(told(watched, &values));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    waiting: Flux has not made ipaddresspools.metallb.io yet
    waiting: CustomResourceDefinition ipaddresspools.metallb.io is not established: Established is False; also CustomResourceDefinition l2advertisements.metallb.io
    waiting: nothing runs in metallb-system yet
    waiting: nothing runs in metallb-system yet
    waiting: Deployment metallb-system/controller has 0 of 1 replicas available
    waiting: ValidatingWebhookConfiguration hooks has no caBundle for a.b.c
    waiting: the webhook service metallb-system/hook has no endpoints yet
    waiting: there is no IPAddressPool yet
    ready: 1 workload runs, 1 webhook is served; there is an IPAddressPool
    "#);
}

#[test]
fn what_the_other_layers_are_for_is_judged_too() {
    let up = |watched: &Watched| -> Vec<Value> {
        let mut values: Vec<Value> =
            watched.definitions.iter().map(|name| definition(name, true)).collect();
        values.push(deployment(watched.namespace, 1));
        values
    };
    let mut lines = Vec::new();
    let mut engine = up(&engine::WATCHED);
    lines.push(told(&engine::WATCHED, &engine));
    engine.push(json!({"apiVersion": "external-secrets.io/v1", "kind": "ClusterSecretStore", "metadata": {"name": "vault"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "InvalidProviderConfig", "message": "no such host"}]}}));
    lines.push(told(&engine::WATCHED, &engine));
    lines.push(told(&storage::WATCHED, &up(&storage::WATCHED)));
    insta::assert_snapshot!(lines.join("\n"), @r#"
    ready: 1 workload runs, 0 webhooks are served; there is no ClusterSecretStore yet
    waiting: ClusterSecretStore vault is not ready: InvalidProviderConfig: no such host
    waiting: Longhorn does not know the node worker-01 yet
    "#);
}

#[test]
fn the_step_is_observed_after_the_handover_and_leaves_nothing() {
    let decl = declare(&networking::WATCHED, networking::metallb_id(), "metallb");
    assert_eq!(decl.needs, [gitops::handover_id()]);
    assert_eq!(castle_model::Verb::Create.word_for(decl.wording), "observe");
}
