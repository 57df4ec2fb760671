//! The life of kinds: definitions, discovery, objects of them, their status.

use serde_json::{Value, json};

use super::Case;
use super::api::Api;

pub(super) const CASES: &[Case] = &[
    ("definition", |api| Box::pin(definition(api))),
    ("definition goes", |api| Box::pin(goes(api))),
    ("status of a kind", |api| Box::pin(status(api))),
    ("discovery", |api| Box::pin(discovery(api))),
    ("scope", |api| Box::pin(scope(api))),
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition of a kind in a group of the case's own.
fn kind(group: &str, scope: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("gardens.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": "gardens", "singular": "garden", "kind": "Garden", "listKind": "GardenList", "shortNames": ["gdn"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer", "minimum": 1}, "trees": {"type": "array", "items": {"type": "string"}},
                        "fence": {"type": "string", "default": "wood"},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                }}},
            }],
        },
    })
}

fn garden(group: &str, spec: &Value) -> Value {
    json!({"apiVersion": format!("{group}/v1"), "kind": "Garden", "metadata": {"name": "one"}, "spec": spec})
}

pub(super) async fn establish(api: &Api, group: &str, scope: &str) {
    let made = api.raw.post(DEFINITIONS, &kind(group, scope)).await.unwrap();
    made.must_succeed();
    established(api, group).await;
}

async fn established(api: &Api, group: &str) -> Value {
    let path = format!("{DEFINITIONS}/gardens.{group}");
    let there = api
        .until(&path, |object| {
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            conditions
                .into_iter()
                .flatten()
                .any(|c| c["type"] == "Established" && c["status"] == "True")
        })
        .await;
    // Established is said a moment before it is so.
    api.until(&format!("/apis/{group}/v1/gardens"), |_| true).await;
    there
}

async fn definition(api: &Api) {
    let group = "one.castle.test";
    let path = api.group(&format!("{group}/v1"), "gardens");
    api.get("before", &path).await;
    api.get("discovery before", &format!("/apis/{group}/v1")).await;
    let made = api.raw.post(DEFINITIONS, &kind(group, "Namespaced")).await.unwrap();
    api.note("create", made.code.into());
    let there = established(api, group).await;
    let mut conditions: Vec<Value> =
        there["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.sort_by_key(|condition| condition["type"].to_string());
    api.note("conditions", conditions.into());
    api.note("accepted names", there["status"]["acceptedNames"].clone());
    api.note("stored versions", there["status"]["storedVersions"].clone());
    api.get("discovery", &format!("/apis/{group}/v1")).await;
    api.get("no objects", &path).await;
    api.apply("an object", "castle", &format!("{path}/one"), &garden(group, &json!({"size": 3})))
        .await;
    let wrong = garden(group, &json!({"size": "three"}));
    api.apply("a wrong type", "castle", &format!("{path}/one"), &wrong).await;
    api.post("a wrong type, posted", &path, &wrong).await;
    let mut none = garden(group, &json!({"fence": "iron"}));
    none["metadata"]["name"] = "two".into();
    api.post("a field missing", &path, &none).await;
    let mut small = garden(group, &json!({"size": 0}));
    small["metadata"]["name"] = "two".into();
    api.post("too small", &path, &small).await;
    let unknown = garden(group, &json!({"size": 3, "colour": "green"}));
    api.apply("a field that is not defined", "castle", &format!("{path}/one"), &unknown).await;
    let mut two = garden(group, &json!({"size": 3, "colour": "green"}));
    two["metadata"]["name"] = "two".into();
    let made = api.raw.post(&path, &two).await.unwrap();
    api.note("a field that is not defined, posted", json!([made.code, made.body["spec"]]));
    api.get("list", &path).await;
}

async fn goes(api: &Api) {
    let group = "two.castle.test";
    establish(api, group, "Namespaced").await;
    let path = api.group(&format!("{group}/v1"), "gardens");
    api.apply("an object", "castle", &format!("{path}/one"), &garden(group, &json!({"size": 3})))
        .await;
    let definition = format!("{DEFINITIONS}/gardens.{group}");
    let gone = api.raw.delete(&definition).await.unwrap();
    api.note("delete", gone.code.into());
    api.until_gone(&definition).await;
    api.until_gone(&path).await;
    api.get("its objects", &format!("{path}/one")).await;
    api.get("discovery", &format!("/apis/{group}/v1")).await;
    establish(api, group, "Namespaced").await;
    api.get("nothing came back", &path).await;
}

async fn status(api: &Api) {
    let group = "three.castle.test";
    establish(api, group, "Namespaced").await;
    let path = api.group(&format!("{group}/v1"), "gardens/one");
    let mut wanted = garden(group, &json!({"size": 3}));
    wanted["status"] = json!({"grows": "yes"});
    api.apply("status with the object", "castle", &path, &wanted).await;
    let status = json!({"status": {"grows": "slowly"}, "spec": {"size": 9}});
    api.merge("merged", &format!("{path}/status?fieldManager=gardener"), &status).await;
    api.merge("spec", &format!("{path}?fieldManager=us"), &json!({"spec": {"size": 4}})).await;
    api.merge("the same spec", &format!("{path}?fieldManager=us"), &json!({"spec": {"size": 4}}))
        .await;
    api.get("get status", &format!("{path}/status")).await;
}

async fn discovery(api: &Api) {
    let of = |list: &Value, names: &[&str]| -> Value {
        let all = list["resources"].as_array().cloned().unwrap_or_default();
        let wanted = |entry: &&Value| names.iter().any(|name| entry["name"] == *name);
        let each = |entry: &Value| {
            json!([entry["name"], entry["kind"], entry["namespaced"], entry["singularName"]])
        };
        let mut found: Vec<Value> = all.iter().filter(wanted).map(each).collect();
        found.sort_by_key(Value::to_string);
        found.into()
    };
    for (path, names) in [
        (
            "/api/v1",
            &[
                "configmaps",
                "namespaces",
                "namespaces/status",
                "pods",
                "pods/status",
                "services",
                "secrets",
                "nodes",
            ][..],
        ),
        ("/apis/apps/v1", &["deployments", "deployments/status", "daemonsets", "statefulsets"]),
        ("/apis/storage.k8s.io/v1", &["storageclasses"]),
        ("/apis/discovery.k8s.io/v1", &["endpointslices"]),
        ("/apis/admissionregistration.k8s.io/v1", &["validatingwebhookconfigurations"]),
        ("/apis/rbac.authorization.k8s.io/v1", &["clusterroles", "roles"]),
    ] {
        let list = api.raw.get(path).await.unwrap();
        api.note(path, json!([list.code, list.body["groupVersion"], of(&list.body, names)]));
    }
    let core = api.raw.get("/api").await.unwrap().body;
    api.note("core", json!([core["kind"], core["versions"]]));
    let version = api.raw.get("/version").await.unwrap().body;
    api.note("version", json!([version["gitVersion"], version["major"], version["minor"]]));
}

async fn scope(api: &Api) {
    let group = "four.castle.test";
    establish(api, group, "Cluster").await;
    let wanted = garden(group, &json!({"size": 1}));
    let path = format!("/apis/{group}/v1/gardens/one");
    api.apply("where it belongs", "castle", &path, &wanted).await;
    let inside = api.group(&format!("{group}/v1"), "gardens/one");
    api.apply("in a namespace", "castle", &inside, &wanted).await;
    let outside = super::api::config_map("one", &json!({}));
    api.apply("a map in no namespace", "castle", "/api/v1/configmaps/one", &outside).await;
}
