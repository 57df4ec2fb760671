//! Tables, which `kubectl get` prints: the server says which columns there are and what stands in them.

use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("tables", |api| Box::pin(tables(api))),
    ("tables of defined kinds", |api| Box::pin(defined(api))),
    ("lists without contents", |api| Box::pin(without_contents(api))),
];

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A table without what must differ: ages, times, addresses, and the words that explain columns.
fn brief(table: &Value) -> Value {
    let list = |name: &str| table[name].as_array().cloned().unwrap_or_default();
    let columns: Vec<Value> = list("columnDefinitions")
        .iter()
        .map(|c| json!([c["name"], c["type"], c["format"], c["priority"]]))
        .collect();
    let rows: Vec<Value> = list("rows")
        .iter()
        .map(|row| {
            let cells = row["cells"].as_array().cloned().unwrap_or_default();
            let cells: Vec<Value> = cells.iter().map(plain).collect();
            let object = &row["object"];
            json!([cells, object["kind"], object["apiVersion"], object["metadata"]["name"]])
        })
        .collect();
    json!({"kind": table["kind"], "apiVersion": table["apiVersion"], "columns": columns, "rows": rows})
}

fn plain(cell: &Value) -> Value {
    let Some(text) = cell.as_str() else { return cell.clone() };
    let numbered = text.trim_end_matches(['s', 'm']);
    if numbered != text && !numbered.is_empty() && numbered.bytes().all(|b| b.is_ascii_digit()) {
        return "<age>".into();
    }
    if text.len() == 20 && text.ends_with('Z') {
        return "<time>".into();
    }
    if text.split('.').count() == 4 && text.split('.').all(|part| part.parse::<u8>().is_ok()) {
        return "<address>".into();
    }
    cell.clone()
}

async fn ask(api: &Api, step: &str, path: &str) {
    let answer = api.raw.table(path).await.unwrap();
    api.note(step, json!([answer.code, brief(&answer.body)]));
}

async fn make(api: &Api, path: &str, body: &Value) {
    api.raw.post(path, body).await.unwrap().must_succeed();
}

async fn tables(api: &Api) {
    make(api, &api.core("configmaps"), &config_map("settings", &json!({"a": "1", "b": "2"}))).await;
    let named = "configmaps?fieldSelector=metadata.name=settings";
    ask(api, "a list", &api.core(named)).await;
    ask(api, "one", &api.core("configmaps/settings")).await;
    ask(api, "no object", &api.core(&format!("{named}&includeObject=None"))).await;
    ask(api, "none", &api.core("configmaps?labelSelector=nobody=has-it")).await;
    ask(api, "not there", &api.core("configmaps/nothing")).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}, "type": "Opaque", "data": {"k": "eA=="}});
    make(api, &api.core("secrets"), &secret).await;
    ask(api, "secret", &api.core("secrets/key")).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}, {"name": "dns", "port": 53, "protocol": "UDP"}]},
    });
    let mut service = service;
    service["spec"]["ports"][0]["name"] = "http".into();
    make(api, &api.core("services"), &service).await;
    ask(api, "service", &api.core("services/web")).await;
    make(
        api,
        &api.core("serviceaccounts"),
        &json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "own"}}),
    )
    .await;
    ask(api, "service account", &api.core("serviceaccounts/own")).await;
    ask(api, "namespace", &format!("/api/v1/namespaces/{}", api.space)).await;
}

async fn defined(api: &Api) {
    let group = "tables.castle.test";
    let column =
        |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("ponds.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"plural": "ponds", "singular": "pond", "kind": "Pond", "listKind": "PondList"},
            "versions": [
                {
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                    "additionalPrinterColumns": [
                        column("Ready", "string", ".state.conditions[?(@.type==\"Ready\")].status"),
                        column("Size", "integer", ".size"),
                        column("Deep", "boolean", ".deep"),
                        column("Fish", "string", ".fish"),
                        column("Age", "date", ".metadata.creationTimestamp"),
                        column("Nothing", "string", ".nothing"),
                    ],
                },
                {
                    "name": "v2", "served": true, "storage": false,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                },
            ],
        },
    });
    make(api, DEFINITIONS, &definition).await;
    api.until(&format!("/apis/{group}/v1/ponds"), |_| true).await;
    ask(api, "definition", &format!("{DEFINITIONS}/ponds.{group}")).await;
    let pond = json!({
        "apiVersion": format!("{group}/v1"), "kind": "Pond", "metadata": {"name": "one"}, "size": 3, "deep": true, "fish": "carp",
        "state": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
    });
    make(api, &api.group(&format!("{group}/v1"), "ponds"), &pond).await;
    ask(api, "columns", &api.group(&format!("{group}/v1"), "ponds")).await;
    ask(api, "no columns", &api.group(&format!("{group}/v2"), "ponds/one")).await;
}

/// What a survey asks for where contents may be secret or large.
async fn without_contents(api: &Api) {
    let accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let names = api.core("configmaps?limit=2&labelSelector=app");
    let ask = async |step: &str, path: &str| {
        let answer = api.raw.accepting(accept, path).await.unwrap();
        let list = answer.body;
        let items: Vec<Value> = list["items"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|item| {
                let keys: Vec<&String> =
                    item.as_object().into_iter().flatten().map(|(key, _)| key).collect();
                json!([item["kind"], item["apiVersion"], item["metadata"]["name"], keys])
            })
            .collect();
        let rest = &list["metadata"]["remainingItemCount"];
        api.note(step, json!([answer.code, list["kind"], list["apiVersion"], items, rest]));
        list["metadata"]["continue"].as_str().unwrap_or_default().to_owned()
    };
    ask("nothing there", &names).await;
    for name in ["one", "three", "two"] {
        let mut map = config_map(name, &json!({"a": "1"}));
        map["metadata"]["labels"] = json!({"app": "names"});
        make(api, &api.core("configmaps"), &map).await;
    }
    let next = ask("the first page", &names).await;
    ask("the second page", &format!("{names}&continue={next}")).await;
    ask("a namespace that is not there", "/api/v1/namespaces/nowhere/configmaps").await;
}
