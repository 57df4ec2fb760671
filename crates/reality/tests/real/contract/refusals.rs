//! How the server says no.

use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("not found", |api| Box::pin(not_found(api))),
    ("invalid objects", |api| Box::pin(invalid(api))),
    ("pod security", |api| Box::pin(pod_security(api))),
    ("malformed bodies", |api| Box::pin(malformed(api))),
    ("namespace that is not there", |api| Box::pin(no_namespace(api))),
    ("default values", |api| Box::pin(defaults(api))),
];

async fn not_found(api: &Api) {
    api.get("an object", &api.core("configmaps/nobody")).await;
    api.get("an object of a group", &api.group("apps/v1", "deployments/nobody")).await;
    api.get("a namespace", "/api/v1/namespaces/nobody").await;
    api.get("a kind", &api.core("gardens")).await;
    api.get("a group", &api.group("nobody.castle.test/v1", "gardens")).await;
    api.delete("deletion", &api.core("configmaps/nobody"), &Value::Null).await;
    api.get("a list in no namespace", "/api/v1/namespaces/nobody/configmaps").await;
}

async fn invalid(api: &Api) {
    let path = api.core("configmaps");
    api.post("a bad name", &path, &config_map("Big_Name", &json!({}))).await;
    let mut labelled = config_map("one", &json!({}));
    labelled["metadata"]["labels"] = json!({"a": "not a value!"});
    api.post("a bad label", &path, &labelled).await;
    let none = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}});
    api.post("no name", &path, &none).await;
    api.post("a bad key", &path, &config_map("one", &json!({"a b": "1"}))).await;
    let services = api.core("services");
    let service = |spec: &Value| json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": spec});
    api.post("a service without ports", &services, &service(&json!({}))).await;
    api.post(
        "a service with a bad port",
        &services,
        &service(&json!({"ports": [{"port": 70000}]})),
    )
    .await;
    let deployments = api.group("apps/v1", "deployments");
    let deployment = |labels: &Value| {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"},
            "spec": {"selector": {"matchLabels": {"app": "one"}}, "template": {
                "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
            }},
        })
    };
    api.post("labels that do not match", &deployments, &deployment(&json!({"app": "two"}))).await;
    let bare = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"}, "spec": {}});
    api.post("an empty deployment", &deployments, &bare).await;
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "wrong.castle.test"},
        "spec": {"group": "castle.test", "scope": "Namespaced", "names": {"plural": "gardens", "kind": "Garden", "singular": "garden", "listKind": "GardenList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]},
    });
    api.post(
        "a definition by another name",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        &definition,
    )
    .await;
}

/// Asks until a namespace is held to a level: a real server learns of the label by a watch of its own, a moment later.
async fn enforced(api: &Api, level: &str, privileged: &Value) {
    let path = format!("{}?dryRun=All", api.core("pods"));
    for _ in 0..2000 {
        let said = api.raw.post(&path, privileged).await.unwrap();
        let message = said.body["message"].as_str().unwrap_or_default();
        if message.contains(&format!("\"{level}:")) {
            return;
        }
    }
    panic!("the namespace is not held to {level}");
}

async fn pod_security(api: &Api) {
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
    let space = format!("/api/v1/namespaces/{}", api.space);
    api.raw.merge(&space, &labels).await.unwrap().must_succeed();
    let bold = json!({"automountServiceAccountToken": false, "hostNetwork": true,
        "containers": [{"name": "web", "image": "web:1", "securityContext": {"privileged": true}}]});
    let pod = |spec: &Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": spec});
    // Without a service account's token in the way.
    let plain = json!({"automountServiceAccountToken": false, "containers": [{"name": "web", "image": "web:1"}]});
    enforced(api, "restricted", &pod(&bold)).await;
    api.post("a plain pod", &api.core("pods"), &pod(&plain)).await;
    api.post("a privileged pod", &api.core("pods"), &pod(&bold)).await;
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}});
    api.raw.merge(&space, &labels).await.unwrap().must_succeed();
    enforced(api, "baseline", &pod(&bold)).await;
    api.post("a privileged pod, baseline", &api.core("pods"), &pod(&bold)).await;
    let made = api.raw.post(&api.core("pods"), &pod(&plain)).await.unwrap();
    api.note("a plain pod, baseline", made.code.into());
}

async fn malformed(api: &Api) {
    let path = api.core("configmaps/one");
    let other = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
    api.apply("another kind", "castle", &path, &other).await;
    let version = json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "one"}});
    api.apply("another version", "castle", &path, &version).await;
    api.apply("another name", "castle", &path, &config_map("two", &json!({}))).await;
    let bare = json!({"metadata": {"name": "one"}});
    api.apply("no kind", "castle", &path, &bare).await;
    let nobody = api.raw.apply(&path, &config_map("one", &json!({}))).await.unwrap();
    api.noted("no manager", nobody);
    let managed = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "managedFields": [{"manager": "x"}]}});
    api.apply("with managed fields", "castle", &path, &managed).await;
    let mut elsewhere = config_map("one", &json!({}));
    elsewhere["metadata"]["namespace"] = "default".into();
    api.apply("another namespace", "castle", &path, &elsewhere).await;
    let unknown = api.core("configmaps/one?fieldValidation=Strict");
    let mut field = config_map("one", &json!({}));
    field["nonsense"] = 1.into();
    api.apply("an unknown field, strictly", "castle", &unknown, &field).await;
    let unchecked = api.core("configmaps/one?fieldValidation=Ignore");
    api.apply("an unknown field, though nobody asks for it", "castle", &unchecked, &field).await;
    api.apply("a wrong type", "castle", &path, &config_map("one", &json!({"a": 1}))).await;
}

async fn no_namespace(api: &Api) {
    let path = "/api/v1/namespaces/nobody/configmaps";
    api.post("create", path, &config_map("one", &json!({}))).await;
    api.apply("apply", "castle", &format!("{path}/one"), &config_map("one", &json!({}))).await;
}

async fn defaults(api: &Api) {
    let space = api.raw.get(&format!("/api/v1/namespaces/{}", api.space)).await.unwrap().body;
    api.note("a namespace", json!({"labels": space["metadata"]["labels"], "spec": space["spec"], "status": space["status"]}));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": {"ports": [{"port": 80}]}});
    let made = api.raw.post(&api.core("services"), &service).await.unwrap().body;
    api.note("a service", json!({"spec": made["spec"], "status": made["status"]}));
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "one"}}, "template": {
            "metadata": {"labels": {"app": "one"}}, "spec": {"containers": [{"name": "web", "image": "web:1"}]},
        }},
    });
    let made = api.raw.post(&api.group("apps/v1", "deployments"), &deployment).await.unwrap().body;
    api.note("a deployment", made["spec"].clone());
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": "b"}});
    let made = api.raw.post(&api.core("secrets"), &secret).await.unwrap().body;
    api.note(
        "a secret",
        json!({"type": made["type"], "data": made["data"], "stringData": made["stringData"]}),
    );
}
