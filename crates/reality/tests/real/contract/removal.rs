//! How things go: finalizers, owners, namespaces.

use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("finalizers", |api| Box::pin(finalizers(api))),
    ("owners in the background", |api| Box::pin(owners(api, "Background"))),
    ("owners in the foreground", |api| Box::pin(owners(api, "Foreground"))),
    ("orphans", |api| Box::pin(owners(api, "Orphan"))),
    ("namespace goes", |api| Box::pin(namespace(api))),
    ("namespace held by a finalizer", |api| Box::pin(held(api))),
    ("preconditions", |api| Box::pin(preconditions(api))),
    ("endpoint slices", |api| Box::pin(slices(api))),
];

async fn finalizers(api: &Api) {
    let path = api.core("configmaps/one");
    let mut wanted = config_map("one", &json!({"a": "1"}));
    wanted["metadata"]["finalizers"] = json!(["castle.test/held"]);
    api.post("create", &api.core("configmaps?fieldManager=us"), &wanted).await;
    api.delete("delete", &path, &Value::Null).await;
    api.get("still there", &path).await;
    api.delete("delete again", &path, &Value::Null).await;
    let more = json!({"metadata": {"finalizers": ["castle.test/held", "castle.test/late"]}});
    api.merge("another finalizer now", &path, &more).await;
    api.merge("another value", &format!("{path}?fieldManager=us"), &json!({"data": {"a": "2"}}))
        .await;
    api.merge("let go", &path, &json!({"metadata": {"finalizers": null}})).await;
    api.get("gone", &path).await;
}

async fn owners(api: &Api, policy: &str) {
    let owner = config_map("owner", &json!({}));
    let owner = api.raw.post(&api.core("configmaps"), &owner).await.unwrap().expect_success();
    for (name, blocks) in [("first", true), ("second", false)] {
        let mut owned = config_map(name, &json!({}));
        owned["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }]);
        let made = api.raw.post(&api.core("configmaps"), &owned).await.unwrap();
        api.note(name, json!([made.code, made.body["metadata"]["ownerReferences"]]));
    }
    // One that holds the foreground up for long enough to be seen.
    let hold = json!({"metadata": {"finalizers": ["castle.test/held"]}});
    api.raw.merge(&api.core("configmaps/first"), &hold).await.unwrap().must_succeed();
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
    let deleted = api
        .raw
        .ask(http::Method::DELETE, &api.core("configmaps/owner"), "application/json", &options)
        .await
        .unwrap();
    api.note(
        "delete",
        json!([deleted.code, deleted.body["kind"], deleted.body["metadata"]["finalizers"]]),
    );
    match policy {
        "Orphan" => {
            api.until_gone(&api.core("configmaps/owner")).await;
            let left = api.raw.get(&api.core("configmaps/second")).await.unwrap();
            api.note("left", json!([left.code, left.body["metadata"]["ownerReferences"]]));
        }
        "Foreground" => {
            api.until_gone(&api.core("configmaps/second")).await;
            let waits = api.raw.get(&api.core("configmaps/owner")).await.unwrap();
            api.note("the owner waits", json!([waits.code, waits.body["metadata"]["finalizers"]]));
        }
        _ => {
            api.until_gone(&api.core("configmaps/owner")).await;
            api.until_gone(&api.core("configmaps/second")).await;
        }
    }
    let free = json!({"metadata": {"finalizers": null}});
    api.raw.merge(&api.core("configmaps/first"), &free).await.unwrap().must_succeed();
    if policy != "Orphan" {
        api.until_gone(&api.core("configmaps/first")).await;
        api.until_gone(&api.core("configmaps/owner")).await;
    }
    api.get("the owner", &api.core("configmaps/owner")).await;
}

async fn namespace(api: &Api) {
    let name = format!("{}-2", api.space);
    api.make_space(&name).await;
    let inside = format!("/api/v1/namespaces/{name}/configmaps");
    let made = api.raw.post(&inside, &config_map("one", &json!({}))).await.unwrap();
    made.must_succeed();
    let path = format!("/api/v1/namespaces/{name}");
    let deleted = api.raw.delete(&path).await.unwrap();
    api.note(
        "delete",
        json!([
            deleted.code,
            deleted.body["kind"],
            deleted.body["status"]["phase"],
            deleted.body["spec"]
        ]),
    );
    api.until_gone(&path).await;
    api.get("what was in it", &format!("{inside}/one")).await;
    api.make_space(&name).await;
    api.get("made anew", &format!("{inside}/one")).await;
}

async fn held(api: &Api) {
    let name = format!("{}-2", api.space);
    api.make_space(&name).await;
    let inside = format!("/api/v1/namespaces/{name}/configmaps");
    let mut wanted = config_map("one", &json!({}));
    wanted["metadata"]["finalizers"] = json!(["castle.test/held"]);
    api.raw.post(&inside, &wanted).await.unwrap().must_succeed();
    let path = format!("/api/v1/namespaces/{name}");
    api.raw.delete(&path).await.unwrap().must_succeed();
    api.post("create in it", &inside, &config_map("two", &json!({}))).await;
    let held = |space: &Value| {
        let conditions = space["status"]["conditions"].as_array();
        conditions
            .into_iter()
            .flatten()
            .any(|c| c["type"] == "NamespaceFinalizersRemaining" && c["status"] == "True")
    };
    let there = api.until(&path, held).await;
    let mut conditions = there["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.sort_by_key(|condition| condition["type"].to_string());
    api.note("why it stays", json!([there["status"]["phase"], conditions]));
    let free = json!({"metadata": {"finalizers": null}});
    api.raw.merge(&format!("{inside}/one"), &free).await.unwrap().must_succeed();
    api.until_gone(&path).await;
}

async fn preconditions(api: &Api) {
    let path = api.core("configmaps/one");
    let made =
        api.raw.post(&api.core("configmaps"), &config_map("one", &json!({}))).await.unwrap().body;
    let options = |uid: &Value| json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}});
    let wrong = "00000000-0000-4000-8000-000000000000";
    let refused = api
        .raw
        .ask(http::Method::DELETE, &path, "application/json", &options(&wrong.into()))
        .await
        .unwrap();
    // Its words hold the right uid.
    api.note("another's uid", json!([refused.code, refused.body["reason"]]));
    let done = api
        .raw
        .ask(http::Method::DELETE, &path, "application/json", &options(&made["metadata"]["uid"]))
        .await
        .unwrap();
    api.note("its uid", json!([done.code, done.body["kind"], done.body["status"]]));
}

async fn slices(api: &Api) {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"},
        "spec": {"ports": [{"name": "web", "port": 443, "targetPort": 9443}]}});
    api.raw.post(&api.core("services"), &service).await.unwrap().must_succeed();
    let slice = |name: &str, address: &str| {
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "labels": {"kubernetes.io/service-name": "one"}},
            "endpoints": [{"addresses": [address], "conditions": {"ready": true}}],
            "ports": [{"name": "web", "port": 9443}],
        })
    };
    let path = api.group("discovery.k8s.io/v1", "endpointslices");
    api.post(
        "an address of a pod",
        &format!("{path}?fieldManager=us"),
        &slice("one-a", "10.244.7.7"),
    )
    .await;
    api.post("an address of everybody", &path, &slice("one-b", "127.0.0.1")).await;
    let listed = api
        .raw
        .get(&format!("{path}?labelSelector=kubernetes.io/service-name%3Done"))
        .await
        .unwrap();
    api.note("found by its service", json!([listed.code, listed.body["items"][0]["endpoints"]]));
}
