//! Webhooks that are not there, are not ready, or say no. Each is for objects of its case's namespace alone.

use castle_kubernetes::{Mode, Object};
use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map, patiently};

pub(super) const CASES: &[Case] = &[
    ("webhook without a service", |api| Box::pin(no_service(api))),
    ("webhook without endpoints", |api| Box::pin(no_endpoints(api))),
    ("webhook where nobody listens", |api| Box::pin(nobody_listens(api))),
    ("webhook that may fail", |api| Box::pin(may_fail(api))),
    ("webhook for others", |api| Box::pin(for_others(api))),
];

const CONFIGURATIONS: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

/// A configuration with one webhook by a service of the case.
pub(super) fn configuration(api: &Api, policy: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": api.space},
        "webhooks": [{
            "name": "check.castle.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": policy,
            "timeoutSeconds": 5,
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": api.space}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"], "scope": "*"}],
            "clientConfig": {"service": {"namespace": api.space, "name": "hook", "path": "/check", "port": 443}},
        }],
    })
}

/// Makes the configuration and waits until the server heeds it: it needs a moment.
async fn configure(api: &Api, policy: &str) {
    api.raw.post(CONFIGURATIONS, &configuration(api, policy)).await.unwrap().must_succeed();
    if policy == "Fail" {
        heeded(api).await;
    }
}

async fn heeded(api: &Api) {
    patiently(async || {
        let path = api.core("configmaps?dryRun=All");
        let tried = api.raw.post(&path, &config_map("probe", &json!({}))).await.unwrap();
        (tried.code >= 400).then_some(())
    })
    .await;
}

async fn remove(api: &Api) {
    api.raw.delete(&format!("{CONFIGURATIONS}/{}", api.space)).await.unwrap().must_succeed();
}

async fn service(api: &Api) {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"ports": [{"name": "web", "port": 443, "targetPort": 9443}]}});
    api.raw.post(&api.core("services"), &service).await.unwrap().must_succeed();
}

/// Tries a write in all ways: plainly, and as our client does.
async fn attempt(api: &Api) {
    let path = api.core("configmaps");
    api.post("create", &path, &config_map("one", &json!({"a": "1"}))).await;
    api.apply("apply", "castle", &format!("{path}/one"), &config_map("one", &json!({"a": "1"})))
        .await;
    api.post("try", &format!("{path}?dryRun=All"), &config_map("one", &json!({"a": "1"}))).await;
    let mut wanted = config_map("one", &json!({"a": "1"}));
    wanted["metadata"]["namespace"] = api.space.clone().into();
    let result = api.client.apply(&Object::new(wanted).unwrap(), Mode::DryRun).await;
    api.understood("client", result.map(|_| json!("taken")));
}

async fn no_service(api: &Api) {
    configure(api, "Fail").await;
    attempt(api).await;
    remove(api).await;
}

async fn no_endpoints(api: &Api) {
    service(api).await;
    configure(api, "Fail").await;
    // The server learns of the service a moment later.
    settled(api, "service \"hook\" not found").await;
    attempt(api).await;
    remove(api).await;
}

async fn nobody_listens(api: &Api) {
    service(api).await;
    let slice = json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "hook-a", "labels": {"kubernetes.io/service-name": "hook"}},
        "endpoints": [{"addresses": ["10.244.9.9"], "conditions": {"ready": true}}],
        "ports": [{"name": "web", "port": 9443}],
    });
    let path = api.group("discovery.k8s.io/v1", "endpointslices");
    api.raw.post(&path, &slice).await.unwrap().must_succeed();
    configure(api, "Fail").await;
    settled(api, "service \"hook\" not found").await;
    settled(api, "no endpoints available").await;
    attempt(api).await;
    remove(api).await;
}

/// Waits until the server says something else.
async fn settled(api: &Api, before: &str) {
    patiently(async || {
        let path = api.core("configmaps?dryRun=All");
        let tried = api.raw.post(&path, &config_map("probe", &json!({}))).await.unwrap();
        let message = tried.body["message"].as_str().unwrap_or_default().to_owned();
        (!message.contains(before)).then_some(())
    })
    .await;
}

async fn may_fail(api: &Api) {
    configure(api, "Ignore").await;
    attempt(api).await;
    remove(api).await;
}

async fn for_others(api: &Api) {
    let mut wanted = configuration(api, "Fail");
    wanted["webhooks"][0]["rules"][0]["operations"] = json!(["UPDATE"]);
    api.raw.post(CONFIGURATIONS, &wanted).await.unwrap().must_succeed();
    let made = api.raw.post(&api.core("configmaps"), &config_map("one", &json!({}))).await.unwrap();
    api.note("create", made.code.into());
    patiently(async || {
        let path = api.core("configmaps/one?dryRun=All");
        let tried = api.raw.merge(&path, &json!({"data": {"a": "1"}})).await.unwrap();
        (tried.code >= 400).then_some(())
    })
    .await;
    api.merge("update", &api.core("configmaps/one"), &json!({"data": {"a": "1"}})).await;
    let gone = api.raw.delete(&api.core("configmaps/one")).await.unwrap();
    api.note("delete", gone.code.into());
    remove(api).await;
}
