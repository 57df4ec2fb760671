//! Ownership of fields: appliers, updaters, conflicts and takeovers.

use super::*;

fn writer(manager: &str, apply: bool) -> Writer {
    Writer {
        manager: manager.to_owned(),
        apply,
        api_version: "apps/v1".to_owned(),
        subresource: String::new(),
        time: "2026-02-02T00:00:00Z".to_owned(),
    }
}

fn shape() -> Shape<'static> {
    Shape::built_in("Deployment")
}

fn apply(live: &Value, config: &Value, manager: &str, force: bool) -> Result<Value, No> {
    Managers::read(live).apply(live, config, (&writer(manager, true), force), &shape())
}

fn update(live: &Value, mut object: Value, manager: &str) -> Value {
    Managers::read(live).update(live, &mut object, &writer(manager, false), &shape());
    object
}

fn spec(replicas: u32) -> Value {
    json!({"metadata": {"name": "d"}, "spec": {"replicas": replicas, "paused": true}})
}

fn owners(object: &Value) -> Vec<String> {
    object["metadata"]["managedFields"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|e| format!("{} {} {}", e["manager"], e["operation"], e["fieldsV1"]))
        .collect()
}

#[test]
fn an_updater_keeps_its_fields_until_it_is_forced() {
    let live = apply(&json!({"metadata": {}}), &spec(1), "castle", false).unwrap();
    let mut scaled = live.clone();
    scaled["spec"]["replicas"] = 3.into();
    let live = update(&live, scaled, "kubectl");
    assert_eq!(
        owners(&live),
        [
            r#""castle" "Apply" {"f:spec":{"f:paused":{}}}"#,
            r#""kubectl" "Update" {"f:spec":{"f:replicas":{}}}"#
        ]
    );
    let no = apply(&live, &spec(1), "castle", false).unwrap_err();
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&no.status()).unwrap(),
        @r#"
    {
      "kind": "Status",
      "apiVersion": "v1",
      "metadata": {},
      "status": "Failure",
      "message": "Apply failed with 1 conflict: conflict with \"kubectl\" using apps/v1: .spec.replicas",
      "reason": "Conflict",
      "details": {
        "causes": [
          {
            "reason": "FieldManagerConflict",
            "message": "conflict with \"kubectl\" using apps/v1",
            "field": ".spec.replicas"
          }
        ]
      },
      "code": 409
    }
    "#
    );
    let live = apply(&live, &spec(1), "castle", true).unwrap();
    assert_eq!(owners(&live), [r#""castle" "Apply" {"f:spec":{"f:paused":{},"f:replicas":{}}}"#]);
}

#[test]
fn several_conflicts_are_told_by_manager() {
    let live = apply(&json!({"metadata": {}}), &spec(1), "flux", false).unwrap();
    let config = json!({"spec": {"replicas": 2, "paused": false}});
    let no = apply(&live, &config, "castle", false).unwrap_err();
    assert_eq!(
        no.message,
        "Apply failed with 2 conflicts: conflicts with \"flux\":\n- .spec.paused\n- .spec.replicas"
    );
}

#[test]
fn what_is_left_out_goes_unless_it_is_also_somebody_elses() {
    let live = apply(&json!({"metadata": {}}), &spec(1), "castle", false).unwrap();
    let live = apply(&live, &json!({"spec": {"replicas": 1}}), "flux", false).unwrap();
    let live = apply(&live, &json!({"spec": {}}), "castle", false).unwrap();
    assert_eq!(live["spec"], json!({"replicas": 1}));
    assert_eq!(
        owners(&live),
        [r#""flux" "Apply" {"f:spec":{"f:replicas":{}}}"#, r#""castle" "Apply" {"f:spec":{}}"#],
        "an applier that changed nothing has no time"
    );
}

#[test]
fn an_entry_of_a_list_is_owned_by_its_key() {
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let config =
        |containers: Value| json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let list = |object: &Value| object["spec"]["template"]["spec"]["containers"].clone();
    let first = config(json!([container("x", "a")]));
    let live = apply(&json!({"metadata": {}}), &first, "castle", false).unwrap();
    let side = config(json!([container("side", "b")]));
    let live = apply(&live, &side, "mesh", false).unwrap();
    assert_eq!(list(&live), json!([container("x", "a"), container("side", "b")]));
    let theirs = config(json!([container("x", "c")]));
    let no = apply(&live, &theirs, "mesh", false).unwrap_err();
    assert_eq!(
        no.message,
        "Apply failed with 1 conflict: conflict with \"castle\": .spec.template.spec.containers[name=\"x\"].image"
    );
    let live = apply(&live, &config(json!([])), "castle", false).unwrap();
    assert_eq!(list(&live), json!([container("side", "b")]));
}

#[test]
fn what_nobody_was_noted_for_belongs_to_who_was_before() {
    let live = json!({"metadata": {"uid": "u", "name": "d"}, "spec": {"replicas": 1}});
    let no = apply(&live, &spec(2), "castle", false).unwrap_err();
    assert_eq!(
        no.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn the_same_again_changes_nothing() {
    let live = apply(&json!({"metadata": {}}), &spec(1), "castle", false).unwrap();
    let later = Writer { time: "2027-01-01T00:00:00Z".to_owned(), ..writer("castle", true) };
    let again = Managers::read(&live).apply(&live, &spec(1), (&later, false), &shape()).unwrap();
    assert_eq!(again, live);
}

#[test]
fn status_and_the_rest_are_owned_apart() {
    let live = json!({"metadata": {}});
    let object =
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 1}, "status": {"replicas": 1}});
    let status = Writer { subresource: "status".to_owned(), ..writer("controller", false) };
    let mut told = object.clone();
    Managers::default().update(&live, &mut told, &status, &shape());
    assert_eq!(
        told["metadata"]["managedFields"],
        json!([{"manager": "controller", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-02-02T00:00:00Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:status": {"f:replicas": {}}}, "subresource": "status"}])
    );
    assert_eq!(
        owners(&update(&live, object, "kubectl")),
        [r#""kubectl" "Update" {"f:spec":{"f:replicas":{}}}"#]
    );
}
