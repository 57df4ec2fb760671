//! Tables, which `kubectl get` prints: the server says which columns there are and what stands in them.

use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("tables", |api| Box::pin(tables(api))),
    ("tables of defined kinds", |api| Box::pin(defined(api))),
    ("columns that are refused", |api| Box::pin(refused(api))),
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

const GROUP: &str = "tables.castle.test";

/// A definition of a kind in this group whose versions have these columns.
fn definition(plural: &str, kind: &str, versions: &[(&str, Value)]) -> Value {
    let mut storage = true;
    let versions: Vec<Value> = versions
        .iter()
        .map(|(name, columns)| {
            let mut version = json!({
                "name": name, "served": true, "storage": std::mem::take(&mut storage),
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            });
            if !columns.is_null() {
                version["additionalPrinterColumns"] = columns.clone();
            }
            version
        })
        .collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": versions,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
        },
    })
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

/// Every type of column at every sort of value, and the paths that definitions use. Nothing asks for all of a map: the real
/// server tells of it in an order that it draws anew each time.
fn many() -> Value {
    let kinds = ["string", "integer", "number", "boolean", "date"];
    let fields = [
        "list", "map", "none", "whole", "part", "even", "large", "deep", "fish", "empty", "odd",
        "zone",
    ];
    let mut columns = Vec::new();
    for kind in kinds {
        for field in fields {
            columns.push(column(&format!("{kind} {field}"), kind, &format!(".{field}")));
        }
    }
    for (at, path) in [
        ".things[0].name",
        ".things[-1].name",
        ".things[9].name",
        ".things[1:].name",
        ".things[*].name",
        ".map['b']",
        ".things[?(@.size>1)].name",
        ".things[?(@.size>=3)].name",
        ".things[?(@.size<1)].name",
        ".things[?(@.name!=\"a\")].name",
        ".things[?(@.extra)].name",
        ".things[?(@.name=='b')].size",
        ".things.name",
        ".fish.name",
        ".metadata.labels.example\\.org/zone",
        ".map[?(@.b==1)]",
    ]
    .into_iter()
    .enumerate()
    {
        columns.push(column(&format!("path {at}"), "string", path));
    }
    columns.into()
}

async fn defined(api: &Api) {
    let mut wide = column("Wide", "string", ".fish");
    wide["priority"] = 1.into();
    wide["description"] = "which fish".into();
    let columns = json!([
        column("Ready", "string", ".state.conditions[?(@.type==\"Ready\")].status"),
        column("Size", "integer", ".size"),
        column("Deep", "boolean", ".deep"),
        column("Fish", "string", ".fish"),
        column("Age", "date", ".metadata.creationTimestamp"),
        column("Nothing", "string", ".nothing"),
        wide,
    ]);
    let versions = [("v1", columns), ("v2", Value::Null), ("v3", many())];
    make(api, DEFINITIONS, &definition("ponds", "Pond", &versions)).await;
    api.until(&format!("/apis/{GROUP}/v1/ponds"), |_| true).await;
    ask(api, "definition", &format!("{DEFINITIONS}/ponds.{GROUP}")).await;
    let pond = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "Pond", "size": 3, "deep": true, "fish": "carp",
        "metadata": {"name": "one", "labels": {"example.org/zone": "north"}},
        "state": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
        "list": ["<a>", "b & c", 1], "map": {"b": 1, "a": {"d": [true, 2.5], "c": null}}, "none": null, "whole": 3, "part": 2.75,
        "even": 4.0, "large": 5_000_000_000_i64, "empty": "", "odd": "1999-12-31", "zone": "2001-02-03T04:05:06+07:00",
        "things": [{"name": "a", "size": 1}, {"name": "b", "size": 2, "extra": {}}, {"name": "c", "size": 3}],
    });
    make(api, &api.group(&format!("{GROUP}/v1"), "ponds"), &pond).await;
    let ponds = api.group(&format!("{GROUP}/v1"), "ponds");
    ask(api, "columns", &ponds).await;
    ask(api, "no columns", &api.group(&format!("{GROUP}/v2"), "ponds/one")).await;
    ask(api, "many columns", &api.group(&format!("{GROUP}/v3"), "ponds/one")).await;
    let told = api.raw.table(&ponds).await.unwrap().body;
    let words = told["columnDefinitions"].as_array().into_iter().flatten().skip(1);
    api.note("what explains them", words.map(|c| c["description"].clone()).collect());
}

/// Columns that no definition may have.
async fn refused(api: &Api) {
    let mut odd = column("Odd", "string", ".odd");
    odd["format"] = "roman".into();
    for (step, column) in [
        ("type", column("Odd", "text", ".odd")),
        ("no type", json!({"name": "Odd", "jsonPath": ".odd"})),
        ("no name", json!({"name": "", "type": "string", "jsonPath": ".odd"})),
        ("no path", json!({"name": "Odd", "type": "string"})),
        ("empty path", column("Odd", "string", "")),
        ("path", column("Odd", "string", "odd")),
        ("format", odd),
    ] {
        let wrong = json!([column]);
        for (which, versions) in [
            ("in the one version", vec![("v1", wrong.clone())]),
            ("in both", vec![("v1", wrong.clone()), ("v2", wrong.clone())]),
            ("in the second", vec![("v1", Value::Null), ("v2", wrong.clone())]),
        ] {
            let definition = definition("oddities", "Oddity", &versions);
            let answer = api.raw.post(DEFINITIONS, &definition).await.unwrap();
            let told = json!([answer.code, answer.body["reason"], answer.body["message"]]);
            api.note(&format!("{step}, {which}"), told);
        }
    }
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
