//! Server-side apply, and the other ways to change an object.

use castle_kubernetes::{Mode, Object};
use serde_json::{Value, json};

use super::Case;
use super::api::{Api, config_map};

pub(super) const CASES: &[Case] = &[
    ("apply creates changes and leaves", |api| Box::pin(create_change_leave(api))),
    ("apply conflicts", |api| Box::pin(conflicts(api))),
    ("apply removes what is no longer wanted", |api| Box::pin(removal(api))),
    ("apply dry run", |api| Box::pin(dry_run(api))),
    ("apply containers by name", |api| Box::pin(containers(api))),
    ("apply ports by number and protocol", |api| Box::pin(ports(api))),
    ("apply conditions by type", |api| Box::pin(conditions(api))),
    ("apply after update", |api| Box::pin(after_update(api))),
    ("patches", |api| Box::pin(patches(api))),
    ("replace", |api| Box::pin(replace(api))),
    ("client applies", |api| Box::pin(client_applies(api))),
];

async fn create_change_leave(api: &Api) {
    let path = api.core("configmaps/one");
    let wanted = config_map("one", &json!({"a": "1", "b": "2"}));
    let made = api.apply("create", "castle", &path, &wanted).await;
    let same = api.apply("leave", "castle", &path, &wanted).await;
    let version = |object: &Value| object["metadata"]["resourceVersion"].clone();
    api.note("nothing was written", (version(&made) == version(&same)).into());
    let wanted = config_map("one", &json!({"a": "1", "b": "3"}));
    let changed = api.apply("change", "castle", &path, &wanted).await;
    api.note("something was written", (version(&changed) != version(&same)).into());
    api.get("get", &path).await;
}

async fn conflicts(api: &Api) {
    let path = api.core("configmaps/one");
    api.apply("first", "castle", &path, &config_map("one", &json!({"a": "1", "b": "2"}))).await;
    let other = config_map("one", &json!({"a": "9", "b": "8", "c": "7"}));
    api.apply("second", "flux", &path, &other).await;
    api.get("unchanged", &path).await;
    let one = config_map("one", &json!({"a": "9"}));
    api.apply("second, one field", "flux", &path, &one).await;
    let same = config_map("one", &json!({"a": "1"}));
    api.apply("second, the same value", "flux", &path, &same).await;
    api.apply("forced", "flux", &format!("{path}?force=true"), &one).await;
    let first = config_map("one", &json!({"a": "1", "b": "2"}));
    api.apply("first again", "castle", &path, &first).await;
}

async fn removal(api: &Api) {
    let path = api.core("configmaps/one");
    let labelled = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "labels": {"app": "x", "tier": "y"}}, "data": {"a": "1", "b": "2"},
    });
    api.apply("first", "castle", &path, &labelled).await;
    api.apply("another's field", "flux", &path, &config_map("one", &json!({"b": "2", "c": "3"})))
        .await;
    api.apply("less", "castle", &path, &config_map("one", &json!({"a": "1"}))).await;
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    api.apply("nothing", "castle", &path, &nothing).await;
}

async fn dry_run(api: &Api) {
    let path = api.core("configmaps/one");
    let wanted = config_map("one", &json!({"a": "1"}));
    api.apply("try to create", "castle", &format!("{path}?dryRun=All"), &wanted).await;
    api.get("not there", &path).await;
    api.apply("create", "castle", &path, &wanted).await;
    let other = config_map("one", &json!({"a": "2"}));
    api.apply("try to change", "castle", &format!("{path}?dryRun=All"), &other).await;
    api.get("as before", &path).await;
    api.delete("try to delete", &format!("{path}?dryRun=All"), &Value::Null).await;
    api.get("still there", &path).await;
    let posted = config_map("two", &json!({}));
    api.post("try to post", &api.core("configmaps?dryRun=All"), &posted).await;
    api.get("not there either", &api.core("configmaps/two")).await;
}

fn deployment(containers: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "one"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "one"}}, "template": {
            "metadata": {"labels": {"app": "one"}}, "spec": {"containers": containers},
        }},
    })
}

/// Of a deployment's containers only what was applied: the server adds defaults of its own.
fn shown(object: &Value) -> Value {
    let each = |container: &Value| json!({"name": container["name"], "image": container["image"], "env": container["env"]});
    let list = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    json!({
        "containers": list.map(|list| list.iter().map(each).collect::<Vec<_>>()),
        // Controllers have their say at a time of their own.
        "managers": managers.map(|list| list.iter().filter(|entry| entry["subresource"].is_null()).map(|entry| json!({
            "manager": entry["manager"], "operation": entry["operation"],
            "containers": entry.pointer("/fieldsV1/f:spec/f:template/f:spec/f:containers"),
        })).collect::<Vec<_>>()),
        "message": object["message"],
    })
}

async fn containers(api: &Api) {
    let path = api.group("apps/v1", "deployments/one");
    let apply = async |step: &str, manager: &str, containers: &Value| {
        let path = format!("{path}?fieldManager={manager}");
        let answer = api.raw.apply(&path, &deployment(containers)).await.unwrap();
        api.note(step, json!({"code": answer.code, "shown": shown(&answer.body)}));
    };
    let web = json!({"name": "web", "image": "web:1", "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}]});
    apply("two", "castle", &json!([web, {"name": "side", "image": "side:1"}])).await;
    let foreign = json!([{"name": "web", "env": [{"name": "C", "value": "3"}]}, {"name": "extra", "image": "extra:1"}]);
    apply("another's", "flux", &foreign).await;
    let web = json!({"name": "web", "image": "web:2", "env": [{"name": "B", "value": "2"}]});
    apply("one less, one env less", "castle", &json!([web])).await;
    apply("another's image", "flux", &json!([{"name": "web", "image": "web:3"}])).await;
}

async fn ports(api: &Api) {
    let path = api.core("services/one");
    let service = |ports: &Value| {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"},
            "spec": {"selector": {"app": "one"}, "ports": ports}})
    };
    let apply = async |step: &str, manager: &str, ports: &Value| {
        let path = format!("{path}?fieldManager={manager}");
        let answer = api.raw.apply(&path, &service(ports)).await.unwrap();
        let managers: Vec<Value> = answer
            .body
            .pointer("/metadata/managedFields")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|entry| json!([entry["manager"], entry.pointer("/fieldsV1/f:spec/f:ports")]))
            .collect();
        api.note(step, json!({
            "code": answer.code, "ports": answer.body.pointer("/spec/ports"), "managers": managers, "message": answer.body["message"],
        }));
    };
    let web = json!({"name": "web", "port": 80, "targetPort": 8080, "protocol": "TCP"});
    let dns = json!({"name": "dns", "port": 53, "targetPort": 53, "protocol": "UDP"});
    apply("two", "castle", &json!([web, dns])).await;
    let tcp = json!({"name": "dns-tcp", "port": 53, "targetPort": 53, "protocol": "TCP"});
    apply("the same number by another protocol", "flux", &json!([tcp])).await;
    apply("one less", "castle", &json!([web])).await;
}

async fn conditions(api: &Api) {
    let path = api.core("pods/one");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"automountServiceAccountToken": false, "containers": [{"name": "web", "image": "web:1"}], "readinessGates": [{"conditionType": "a/b"}]}});
    let made = api.raw.post(&api.core("pods"), &pod).await.unwrap();
    api.note("create", json!({"code": made.code}));
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "lastTransitionTime": "2026-02-02T00:00:00Z"});
    let apply = async |step: &str, manager: &str, conditions: &Value| {
        let body = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "status": {"conditions": conditions}});
        let path = format!("{path}/status?fieldManager={manager}");
        let answer = api.raw.apply(&path, &body).await.unwrap();
        let mut types: Vec<Value> = answer
            .body
            .pointer("/status/conditions")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|c| json!([c["type"], c["status"]]))
            .collect();
        types.sort_by_key(Value::to_string);
        api.note(
            step,
            json!({"code": answer.code, "conditions": types, "message": answer.body["message"]}),
        );
    };
    apply("one", "castle", &json!([condition("a/b", "True")])).await;
    apply("another", "flux", &json!([condition("c/d", "False")])).await;
    apply("the same by another", "flux", &json!([condition("a/b", "False")])).await;
    apply("none", "flux", &json!([])).await;
}

async fn after_update(api: &Api) {
    let path = api.core("configmaps/one");
    let posted = config_map("one", &json!({"a": "1", "b": "2"}));
    api.post("create", &api.core("configmaps?fieldManager=kubectl-create"), &posted).await;
    api.apply("the same", "castle", &path, &config_map("one", &json!({"a": "1"}))).await;
    api.apply("another value", "castle", &path, &config_map("one", &json!({"a": "2"}))).await;
    api.apply(
        "forced",
        "castle",
        &format!("{path}?force=true"),
        &config_map("one", &json!({"a": "2"})),
    )
    .await;
    let edit = json!({"data": {"a": "3"}});
    api.merge("edited by hand", &format!("{path}?fieldManager=kubectl-edit"), &edit).await;
    api.get("get", &path).await;
}

async fn patches(api: &Api) {
    let path = api.core("configmaps/one");
    let posted = config_map("one", &json!({"a": "1", "b": "2"}));
    api.post("create", &api.core("configmaps?fieldManager=us"), &posted).await;
    api.merge("merge", &format!("{path}?fieldManager=us"), &json!({"data": {"a": null, "c": "3"}}))
        .await;
    let add = json!([
        {"op": "test", "path": "/data/b", "value": "2"},
        {"op": "replace", "path": "/data/b", "value": "4"},
        {"op": "add", "path": "/data/d", "value": "5"},
        {"op": "remove", "path": "/data/c"},
    ]);
    api.json_patch("json patch", &format!("{path}?fieldManager=us"), &add).await;
    let wrong = json!([{"op": "test", "path": "/data/b", "value": "9"}]);
    api.json_patch("a test that fails", &path, &wrong).await;
    let missing = json!([{"op": "remove", "path": "/data/nothing"}]);
    api.json_patch("a path that is not there", &path, &missing).await;
    api.merge("merge of nobody", &api.core("configmaps/nobody"), &json!({"data": {}})).await;
    let stale = json!({"metadata": {"resourceVersion": "1"}, "data": {"a": "1"}});
    api.merge("merge of an old one", &path, &stale).await;
}

async fn replace(api: &Api) {
    let path = api.core("configmaps/one");
    let posted = config_map("one", &json!({"a": "1"}));
    let made = api.post("create", &api.core("configmaps?fieldManager=us"), &posted).await;
    let mut next = made.clone();
    next["data"] = json!({"b": "2"});
    api.put("replace", &format!("{path}?fieldManager=us"), &next).await;
    api.put("replace an old one", &path, &next).await;
    let other = config_map("two", &json!({}));
    api.put("replace by another name", &path, &other).await;
    api.post("create again", &api.core("configmaps"), &posted).await;
}

async fn client_applies(api: &Api) {
    let object = |data: &Value| {
        let mut value = config_map("one", data);
        value["metadata"]["namespace"] = api.space.clone().into();
        Object::new(value).unwrap()
    };
    let wanted = object(&json!({"a": "1"}));
    let value = |object: Object| object.into_value();
    api.understood("try", api.client.apply(&wanted, Mode::DryRun).await.map(value));
    api.understood("apply", api.client.apply(&wanted, Mode::Real).await.map(value));
    let got = api.client.get(&wanted.id()).await.map(|found| found.map_or(Value::Null, value));
    api.understood("get", got);
    let kind = Object::new(
        json!({"apiVersion": "example.org/v1", "kind": "Nothing", "metadata": {"name": "x"}}),
    );
    api.understood("no such kind", api.client.apply(&kind.unwrap(), Mode::Real).await.map(value));
    api.understood("delete", api.client.delete(&wanted.id()).await.map(Value::from));
    api.understood("delete again", api.client.delete(&wanted.id()).await.map(Value::from));
}
