//! Lists with pages, and watches.

use std::pin::pin;
use std::time::Duration;

use castle_kubernetes::{Object, Place, Seen};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use super::Case;
use super::api::{Api, Side, config_map};
use super::kinds::establish;

pub(super) const CASES: &[Case] = &[
    ("pages", |api| Box::pin(pages(api))),
    ("pages that are too old", |api| Box::pin(old_pages(api))),
    ("selectors", |api| Box::pin(selectors(api))),
    ("watch", |api| Box::pin(watch(api))),
    ("watch lines", |api| Box::pin(watch_lines(api))),
    ("watch from too long ago", |api| Box::pin(too_old(api))),
    ("client watches", |api| Box::pin(client_watches(api))),
];

/// Makes some objects that nobody else has the label of.
async fn fill(api: &Api, names: &[&str]) {
    for name in names {
        let mut body = config_map(name, &json!({"of": name}));
        body["metadata"]["labels"] = json!({"case": "yes", "name": name});
        let made = api.raw.post(&api.core("configmaps?fieldManager=us"), &body).await.unwrap();
        made.must_succeed();
    }
}

/// The names of a list, and what it says of itself.
fn brief(list: &Value) -> Value {
    let names = list["items"]
        .as_array()
        .map(|items| items.iter().map(|item| item["metadata"]["name"].clone()).collect::<Vec<_>>());
    let kinds = list["items"]
        .as_array()
        .map(|items| items.iter().filter(|item| item.get("kind").is_some()).count());
    json!({"kind": list["kind"], "apiVersion": list["apiVersion"], "names": names, "with kind": kinds,
        "metadata": list["metadata"], "message": list["message"], "reason": list["reason"]})
}

async fn pages(api: &Api) {
    fill(api, &["a", "b", "c", "d", "e"]).await;
    let first = api.raw.get(&api.core("configmaps?labelSelector=case&limit=2")).await.unwrap();
    api.note("first", json!([first.code, brief(&first.body)]));
    let mut next = first.body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    for step in ["second", "third"] {
        let path = api.core(&format!("configmaps?labelSelector=case&limit=2&continue={next}"));
        let page = api.raw.get(&path).await.unwrap();
        api.note(step, json!([page.code, brief(&page.body)]));
        page.body["metadata"]["continue"].as_str().unwrap_or_default().clone_into(&mut next);
    }
    let bad = api.raw.get(&api.core("configmaps?limit=2&continue=nonsense")).await.unwrap();
    api.noted("nonsense", bad);
}

async fn old_pages(api: &Api) {
    fill(api, &["a", "b", "c"]).await;
    let first = api.raw.get(&api.core("configmaps?labelSelector=case&limit=1")).await.unwrap();
    let next = first.body["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    forget(api).await;
    let path = api.core(&format!("configmaps?labelSelector=case&limit=1&continue={next}"));
    api.noted("an old page", api.raw.get(&path).await.unwrap());
}

/// Lets a server forget what was before: the real one by compacting its store, the emulated one by time.
async fn forget(api: &Api) {
    fill(api, &["later"]).await;
    if api.side == Side::Emulated {
        castle_reality::nap(Duration::from_mins(10)).await;
        return;
    }
    let there = api.raw.get(&api.core("configmaps/later")).await.unwrap().body;
    let revision = there["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let body = format!("{{\"revision\":\"{revision}\"}}");
    let request = format!(
        "POST /v3/kv/compaction HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect("127.0.0.1:2379").await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

async fn selectors(api: &Api) {
    fill(api, &["a", "b", "c"]).await;
    for query in [
        "labelSelector=name%3Db",
        "labelSelector=case,name!%3Db",
        "labelSelector=name+in+(a,c)",
        "labelSelector=name+notin+(a),case",
        "labelSelector=!other,case",
        "fieldSelector=metadata.name%3Da",
        "labelSelector=%3D%3D",
    ] {
        let answer = api.raw.get(&api.core(&format!("configmaps?{query}"))).await.unwrap();
        api.note(query, json!([answer.code, brief(&answer.body)["names"], answer.body["message"]]));
    }
}

/// Changes what a watch must see.
async fn stir(api: &Api) {
    fill(api, &["seen"]).await;
    let path = api.core("configmaps/seen");
    api.raw.merge(&path, &json!({"data": {"of": "another"}})).await.unwrap().must_succeed();
    // It is in the selection no more, and then again.
    api.raw
        .merge(&path, &json!({"metadata": {"labels": {"case": null}}}))
        .await
        .unwrap()
        .must_succeed();
    api.raw
        .merge(&path, &json!({"metadata": {"labels": {"case": "yes"}}}))
        .await
        .unwrap()
        .must_succeed();
    api.raw.delete(&path).await.unwrap().must_succeed();
}

async fn place(api: &Api) -> String {
    let list = api.raw.get(&api.core("configmaps?labelSelector=case")).await.unwrap();
    list.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned()
}

fn lines(answer: &castle_reality::Answer) -> Vec<Value> {
    let text = match &answer.body {
        Value::String(text) => text.clone(),
        one => one.to_string(),
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

async fn watch(api: &Api) {
    fill(api, &["before"]).await;
    let from = place(api).await;
    stir(api).await;
    let path = api.core(&format!(
        "configmaps?watch=true&labelSelector=case&timeoutSeconds=2&resourceVersion={from}"
    ));
    let events: Vec<Value> = lines(&api.raw.get(&path).await.unwrap())
        .iter()
        .map(|line| {
            json!([
                line["type"],
                line["object"]["metadata"]["name"],
                line["object"]["data"],
                line["object"]["kind"]
            ])
        })
        .collect();
    api.note("events", events.into());
    let path = api.core("configmaps?watch=true&labelSelector=case&timeoutSeconds=2");
    let events: Vec<Value> = lines(&api.raw.get(&path).await.unwrap())
        .iter()
        .map(|line| json!([line["type"], line["object"]["metadata"]["name"]]))
        .collect();
    api.note("from nowhere", events.into());
}

async fn watch_lines(api: &Api) {
    fill(api, &["before"]).await;
    let path = api.core(
        "configmaps?watch=true&labelSelector=case&timeoutSeconds=3&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan",
    );
    let list = lines(&api.raw.get(&path).await.unwrap());
    api.note("initial events", list.into_iter().take(2).collect::<Vec<_>>().into());
}

/// The kind is new, and so is what the server remembers of it.
async fn too_old(api: &Api) {
    let group = "five.castle.test";
    establish(api, group, "Namespaced").await;
    let path = api.group(&format!("{group}/v1"), "gardens");
    let answer = api
        .raw
        .get(&format!("{path}?watch=true&timeoutSeconds=1&resourceVersion=1"))
        .await
        .unwrap();
    api.note("status", answer.code.into());
    api.note("lines", lines(&answer).into());
    let nonsense = format!("{path}?watch=true&timeoutSeconds=1&resourceVersion=nonsense");
    api.noted("nonsense", api.raw.get(&nonsense).await.unwrap());
    let listed = format!("{path}?resourceVersion=nonsense");
    api.noted("nonsense, listed", api.raw.get(&listed).await.unwrap());
}

async fn client_watches(api: &Api) {
    fill(api, &["before"]).await;
    let listing = api.client.list("v1", "ConfigMap", Some(&api.space), "case").await.unwrap();
    let shown: Vec<Value> = listing.items.iter().map(|item| item.value().clone()).collect();
    api.note("list", shown.into());
    let place = Place::within("v1", "ConfigMap", &api.space).only("case");
    let events = api.client.watch(&place, &listing.resource_version).await.unwrap();
    stir(api).await;
    // When bookmarks come is the server's own affair.
    let spoken = |event: &Result<Seen, _>| std::future::ready(!matches!(event, Ok(Seen::Bookmark)));
    let mut events = pin!(events.filter(spoken));
    let name = |object: &Object| object.name().to_owned();
    for _ in 0..5 {
        let seen = match timeout(Duration::from_secs(20), events.next()).await {
            Ok(Some(Ok(Seen::There(object)))) => json!(["there", name(&object)]),
            Ok(Some(Ok(Seen::Gone(object)))) => json!(["gone", name(&object)]),
            Ok(Some(Ok(Seen::Bookmark))) => json!("bookmark"),
            Ok(Some(Err(error))) => json!(["error", error.to_string()]),
            Ok(None) => json!("end"),
            Err(_) => json!("silence"),
        };
        api.note("event", seen);
    }
    let listing = api.client.list("v1", "ConfigMap", Some(&api.space), "case").await.unwrap();
    api.note("after", listing.items.len().into());
}
