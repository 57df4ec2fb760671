//! The API server's own rules: pages, patches, dry runs, deletion, finalizers, owners, namespaces, schemas.

use super::*;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

fn make(rig: &mut Rig, name: &str) -> Value {
    let (status, made) = rig.call("POST", MAPS, &map(name));
    assert_eq!(status, 201, "{made}");
    made
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap();
    items.iter().map(|o| o["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn owned(name: &str, owner: &Value) -> Value {
    let mut object = map(name);
    object["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]);
    object
}

fn widgets(rig: &mut Rig) {
    let object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "required": ["size"], "properties": {
                        "size": {"type": "integer"}, "mode": {"type": "string", "default": "safe"}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]},
    });
    rig.good(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.org",
        &object,
    );
    rig.pass(2_000);
}

fn widget(spec: &Value) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget",
        "metadata": {"name": "w", "namespace": "default"}, "spec": spec})
}

#[test]
fn pages_show_the_list_as_it_was_at_the_first() {
    let mut rig = Rig::born();
    for name in ["a", "b", "c", "d", "e"] {
        make(&mut rig, name);
    }
    let first = rig.get(&format!("{MAPS}?limit=2"));
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    make(&mut rig, "bb");
    rig.call("DELETE", &format!("{MAPS}/d"), &Value::Null);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    let second = rig.get(&format!("{MAPS}?limit=2&continue={token}"));
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let rest = second["metadata"]["continue"].as_str().unwrap();
    let last = rig.get(&format!("{MAPS}?limit=2&continue={rest}"));
    assert_eq!((names(&last), &last["metadata"]["continue"]), (vec!["e".to_owned()], &Value::Null));
    assert_eq!(names(&rig.get(MAPS)), ["a", "b", "bb", "c", "e"]);
    for round in 0..2_100 {
        rig.good(MAP, &config_map(&json!({"x": round.to_string()})));
    }
    let (status, old) = rig.call("GET", &format!("{MAPS}?limit=2&continue={token}"), &Value::Null);
    assert_eq!((status, &old["reason"]), (410, &json!("Expired")));
    let go_on = old["metadata"]["continue"].as_str().unwrap();
    assert_eq!(names(&rig.get(&format!("{MAPS}?continue={go_on}"))), ["bb", "c", "e"]);
    assert_eq!(rig.call("GET", &format!("{MAPS}?continue=nonsense"), &Value::Null).0, 400);
}

#[test]
fn a_watch_by_label_sees_objects_come_and_go() {
    let mut rig = Rig::born();
    let version = rig.get(MAPS)["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let path = format!("{MAPS}?watch=true&labelSelector=on&resourceVersion={version}");
    let HttpBody::Watch(mut cursor) = rig.raw("GET", &path, "", &Value::Null).body else {
        panic!("no watch")
    };
    make(&mut rig, "a");
    for labels in [json!({"on": "1"}), json!({"on": "2"}), json!({"on": null})] {
        let patch = json!({"metadata": {"labels": labels}});
        rig.raw("PATCH", &format!("{MAPS}/a"), "application/merge-patch+json", &patch);
    }
    let lines = rig.cluster.watch_lines(&mut cursor).unwrap();
    let words: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_slice::<Value>(line).unwrap()["type"].clone())
        .collect();
    assert_eq!(words, ["ADDED", "MODIFIED", "DELETED"]);
    let path = format!(
        "{MAPS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let HttpBody::Watch(mut cursor) = rig.raw("GET", &path, "", &Value::Null).body else {
        panic!("no watch")
    };
    let lines = rig.cluster.watch_lines(&mut cursor).unwrap();
    let last: Value = serde_json::from_slice(lines.last().unwrap()).unwrap();
    assert_eq!(last["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[test]
fn a_definition_prunes_fills_in_and_refuses() {
    let mut rig = Rig::born();
    widgets(&mut rig);
    let (status, made) = rig.call("POST", WIDGETS, &widget(&json!({"size": 1, "odd": 2})));
    assert_eq!((status, &made["spec"]), (201, &json!({"size": 1, "mode": "safe"})));
    assert_eq!(made["metadata"]["generation"], 1);
    let strict = format!("{WIDGETS}?fieldValidation=Strict");
    let (status, no) = rig.call("POST", &strict, &widget(&json!({"size": 1, "odd": 2})));
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (
            400,
            "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.odd\""
        )
    );
    let (status, no) = rig.apply(&format!("{WIDGETS}/w"), &widget(&json!({"size": 1, "odd": 2})));
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (
            500,
            "failed to create typed patch object (default/w; example.org/v1, Kind=Widget): .spec.odd: field not declared in schema"
        )
    );
    let (status, no) = rig.apply(&format!("{WIDGETS}/v"), &{
        let mut other = widget(&json!({}));
        other["metadata"]["name"] = "v".into();
        other
    });
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (422, "Widget.example.org \"v\" is invalid: spec.size: Required value")
    );
    assert_eq!(
        no["details"]["causes"],
        json!([{"reason": "FieldValueRequired", "message": "Required value", "field": "spec.size"}])
    );
    let (status, no) = rig.call("PUT", &format!("{WIDGETS}/w"), &widget(&json!({"size": 2})));
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (
            422,
            "widgets.example.org \"w\" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update"
        )
    );
    let mut odd = map("odd");
    odd["spec"] = json!({});
    let (status, no) = rig.apply(&format!("{MAPS}/odd"), &odd);
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (
            500,
            "failed to create typed patch object (default/odd; /v1, Kind=ConfigMap): .spec: field not declared in schema"
        )
    );
}

#[test]
fn status_is_written_apart() {
    let mut rig = Rig::born();
    widgets(&mut rig);
    let path = format!("{WIDGETS}/w");
    let mut object = widget(&json!({"size": 1}));
    object["status"] = json!({"phase": "Made up"});
    let (_, made) = rig.call("POST", WIDGETS, &object);
    assert_eq!(made["status"], Value::Null, "the object itself carries no status");
    let mut told = made.clone();
    told["status"] = json!({"phase": "Ready"});
    told["spec"]["size"] = 9.into();
    let (status, written) = rig.call("PUT", &format!("{path}/status"), &told);
    assert_eq!((status, &written["status"]["phase"]), (200, &json!("Ready")));
    assert_eq!(
        (&written["spec"]["size"], &written["metadata"]["generation"]),
        (&json!(1), &json!(1))
    );
    let managers = written["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(managers.last().unwrap()["subresource"], "status");
    let merged = rig.raw(
        "PATCH",
        &path,
        "application/merge-patch+json",
        &json!({"spec": {"size": 2}, "status": null}),
    );
    let merged = whole(&merged);
    assert_eq!(
        (&merged["status"]["phase"], &merged["metadata"]["generation"]),
        (&json!("Ready"), &json!(2))
    );
    assert_eq!(rig.call("GET", &format!("{MAPS}/a/status"), &Value::Null).0, 404);
}

#[test]
fn finalizers_hold_until_they_are_taken_away() {
    let mut rig = Rig::born();
    let mut object = map("held");
    object["metadata"]["finalizers"] = json!(["example.org/hold"]);
    rig.call("POST", MAPS, &object);
    let path = format!("{MAPS}/held");
    let (status, left) = rig.call("DELETE", &path, &Value::Null);
    assert_eq!((status, left["kind"].as_str().unwrap()), (200, "ConfigMap"));
    assert!(left["metadata"]["deletionTimestamp"].is_string());
    let patch = json!([{"op": "remove", "path": "/metadata/finalizers/0"}]);
    rig.raw("PATCH", &path, "application/json-patch+json", &patch);
    assert_eq!(rig.call("GET", &path, &Value::Null).0, 404);
    let no = rig.raw("PATCH", MAP, "application/json-patch+json", &patch);
    assert_eq!(no.status, 404);
    make(&mut rig, "a");
    let no = rig.raw("PATCH", MAP, "application/json-patch+json", &patch);
    assert_eq!(
        (no.status, whole(&no)["message"].as_str().unwrap()),
        (422, "the server rejected our request due to an error in our request")
    );
}

#[test]
fn dependents_go_after_before_or_not_at_all() {
    let mut rig = Rig::born();
    for (policy, first_look, later) in [
        ("Background", ["404", "200"], ["404", "404"]),
        ("Foreground", ["200", "200"], ["404", "404"]),
        ("Orphan", ["200", "200"], ["404", "200"]),
    ] {
        let owner = make(&mut rig, "owner");
        rig.call("POST", MAPS, &owned("child", &owner));
        let look = |rig: &mut Rig| {
            ["owner", "child"]
                .map(|n| rig.call("GET", &format!("{MAPS}/{n}"), &Value::Null).0.to_string())
        };
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        rig.call("DELETE", &format!("{MAPS}/owner"), &options);
        assert_eq!(look(&mut rig), first_look, "{policy}");
        rig.pass(5_000);
        assert_eq!(look(&mut rig), later, "{policy}");
        rig.call("DELETE", &format!("{MAPS}/child"), &Value::Null);
    }
}

#[test]
fn what_has_another_owner_stays() {
    let mut rig = Rig::born();
    let (one, two) = (make(&mut rig, "one"), make(&mut rig, "two"));
    let mut child = owned("child", &one);
    let other = owned("child", &two)["metadata"]["ownerReferences"][0].clone();
    child["metadata"]["ownerReferences"].as_array_mut().unwrap().push(other);
    rig.call("POST", MAPS, &child);
    rig.call("DELETE", &format!("{MAPS}/one"), &Value::Null);
    rig.pass(5_000);
    let left = rig.get(&format!("{MAPS}/child"));
    assert_eq!(left["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
}

#[test]
fn deletion_has_preconditions_and_dry_runs() {
    let mut rig = Rig::born();
    make(&mut rig, "a");
    let (status, no) = rig.call("DELETE", MAP, &json!({"preconditions": {"uid": "another"}}));
    assert_eq!(status, 409);
    assert!(
        no["message"].as_str().unwrap().starts_with(
            "Operation cannot be fulfilled on configmaps \"a\": the UID in the precondition (another) does not match"
        ),
        "{no}"
    );
    assert_eq!(rig.call("DELETE", &format!("{MAP}?dryRun=All"), &Value::Null).0, 200);
    assert_eq!(rig.call("DELETE", MAP, &json!({"dryRun": ["All"]})).0, 200);
    assert_eq!(rig.get(MAP)["metadata"]["name"], "a");
    let (status, gone) = rig.call("DELETE", MAP, &Value::Null);
    assert_eq!((status, &gone["status"]), (200, &json!("Success")));
    let (status, no) = rig.call("DELETE", "/api/v1/namespaces/kube-system", &Value::Null);
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (403, "namespaces \"kube-system\" is forbidden: this namespace may not be deleted")
    );
    make(&mut rig, "x");
    make(&mut rig, "y");
    rig.call("DELETE", MAPS, &Value::Null);
    assert_eq!(names(&rig.get(MAPS)), Vec::<String>::new());
}

#[test]
fn a_namespace_waits_for_what_is_held_in_it() {
    let mut rig = Rig::born();
    rig.namespace("a");
    let mut object = map("held");
    object["metadata"]["namespace"] = "a".into();
    object["metadata"]["finalizers"] = json!(["example.org/hold"]);
    rig.call("POST", "/api/v1/namespaces/a/configmaps", &object);
    rig.call("DELETE", "/api/v1/namespaces/a", &Value::Null);
    rig.pass(10_000);
    let namespace = rig.get("/api/v1/namespaces/a");
    let messages: Vec<&str> = namespace["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["status"] == "True")
        .map(|c| c["message"].as_str().unwrap())
        .collect();
    assert_eq!(
        messages,
        [
            "Some resources are remaining: configmaps. has 1 resource instances",
            "Some content in the namespace has finalizers remaining: example.org/hold in 1 resource instances"
        ]
    );
    let patch = json!({"metadata": {"finalizers": null}});
    let path = "/api/v1/namespaces/a/configmaps/held";
    rig.raw("PATCH", path, "application/merge-patch+json", &patch);
    rig.pass(10_000);
    assert_eq!(rig.call("GET", "/api/v1/namespaces/a", &Value::Null).0, 404);
}

#[test]
fn a_dry_run_leaves_no_mark() {
    let mut rig = Rig::born();
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "default"},
        "spec": {"ports": [{"port": 80}]}});
    let before = rig.cluster.clone();
    let path = "/api/v1/namespaces/default/services";
    let (status, tried) = rig.call("POST", &format!("{path}?dryRun=All"), &service);
    assert_eq!((status, &tried["spec"]["ports"][0]["targetPort"]), (201, &json!(80)));
    assert_eq!(rig.cluster, before);
}

#[test]
fn a_selector_cannot_be_changed() {
    let mut rig = Rig::born();
    rig.deployment("default", "web");
    let mut other = deployment("default", "web", 1);
    other["spec"]["selector"]["matchLabels"] = json!({"app": "other"});
    other["spec"]["template"]["metadata"]["labels"] = json!({"app": "other"});
    let (status, no) = rig.apply("/apis/apps/v1/namespaces/default/deployments/web", &other);
    assert_eq!(status, 422);
    assert!(no["message"].as_str().unwrap().ends_with("field is immutable"), "{no}");
}

#[test]
fn what_means_nothing_is_refused_and_writes_nothing() {
    let mut rig = Rig::born();
    let json = "application/json";
    for (method, query, media, code, words) in [
        ("POST", "dryRun=foo", json, 422, "dryRun: Unsupported value: [\"foo\"]"),
        ("POST", "fieldValidation=foo", json, 422, "fieldValidation: Unsupported value: \"foo\""),
        ("POST", "", "text/plain", 415, "unknown format"),
        ("GET", "limit=abc", json, 400, "strconv.ParseInt: parsing \"abc\": invalid syntax"),
        ("GET", "labelSelector=a+b", json, 400, "found 'b', expected: in, notin"),
        ("DELETE", "labelSelector=a+b", json, 400, "found 'b', expected: in, notin"),
    ] {
        let reply = rig.raw(method, &format!("{MAPS}?{query}"), media, &map("one"));
        let told = whole(&reply)["message"].as_str().unwrap_or_default().to_owned();
        assert_eq!(reply.status, code, "{method} {query}: {told}");
        assert!(told.contains(words), "{method} {query}: {told}");
    }
    assert_eq!(rig.get(MAPS)["items"], json!([]));
}
