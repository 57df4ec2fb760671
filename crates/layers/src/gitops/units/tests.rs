//! Which units count, which are causes and which only wait.

use serde_json::json;

use super::super::NAMESPACE;
use super::super::revision::tests::{holding, picture, unit};
use super::*;

const NOW: &str = "main@sha1:2";

fn ours(name: &str, needs: &[&str]) -> Value {
    let mut value = unit(name, &json!({"kind": "GitRepository", "name": NAMESPACE}), NOW);
    let needs: Vec<Value> = needs.iter().map(|name| json!({"name": name})).collect();
    value["spec"]["dependsOn"] = needs.into();
    value
}

fn not_ready(mut value: Value, reason: &str, message: &str) -> Value {
    value["status"]["conditions"][0] =
        json!({"type": "Ready", "status": "False", "reason": reason, "message": message});
    value
}

fn waiting(name: &str, needs: &[&str]) -> Value {
    not_ready(ours(name, needs), "DependencyNotReady", "dependency is not ready")
}

fn say(mut objects: Vec<Value>) -> Vec<String> {
    objects.push(holding("GitRepository", NAMESPACE, NOW));
    let units = units(&picture(objects));
    units
        .into_iter()
        .map(|(id, state)| {
            let words = match state {
                State::Ready(_) => "ready".to_owned(),
                State::Resting => "rests".to_owned(),
                State::Blocked(by) => format!("waits for {}", by.join(", ")),
                State::Late(why) => format!("late: {why}"),
                State::Cause(why) => why,
            };
            format!("{}: {words}", id.name)
        })
        .collect()
}

#[test]
fn what_never_becomes_ready_is_a_cause_at_once() {
    let mut resting = waiting("resting", &[]);
    resting["spec"]["suspend"] = true.into();
    assert_eq!(
        say(vec![
            waiting("a", &["ghost"]),
            waiting("b", &["c"]),
            waiting("c", &["b"]),
            resting,
            waiting("d", &["resting"]),
            waiting("e", &["d"]),
        ]),
        [
            "a: Kustomization flux-system/a depends on Kustomization flux-system/ghost, which is not there",
            "b: Kustomization flux-system/b waits in a circle: b, c",
            "c: Kustomization flux-system/c waits in a circle: b, c",
            "d: Kustomization flux-system/d depends on Kustomization flux-system/resting, which is suspended",
            "e: waits for d",
            "resting: rests",
        ]
    );
}

#[test]
fn a_unit_that_was_tried_and_failed_is_a_cause_whatever_it_depends_on() {
    // As Flux 2.9 leaves a unit that never was ready.
    let mut failed = not_ready(ours("b", &["a"]), "ReconciliationFailed", "dry-run failed");
    let tried = |failed: &mut Value, revision: &str| {
        failed["status"]["lastAppliedRevision"] = Value::Null;
        failed["status"]["lastAttemptedRevision"] = revision.into();
    };
    tried(&mut failed, NOW);
    let why = "Kustomization flux-system/b is not ready: ReconciliationFailed: dry-run failed";
    assert_eq!(say(vec![ours("a", &[]), failed.clone()])[1], format!("b: {why}"));
    tried(&mut failed, "main@sha1:1");
    assert_eq!(say(vec![ours("a", &[]), failed])[1], format!("b: late: {why}"));
}

#[test]
fn a_unit_whose_needs_are_met_is_late() {
    let late = "late: Kustomization flux-system/b is not ready: DependencyNotReady: dependency is not ready";
    assert_eq!(
        say(vec![ours("a", &[]), waiting("b", &["a"])]),
        ["a: ready", &format!("b: {late}")]
    );
    // Ready, but at what the source held before.
    let mut old = ours("a", &[]);
    old["status"]["lastAppliedRevision"] = "main@sha1:1".into();
    assert_eq!(say(vec![old, waiting("b", &["a"])])[1], "b: waits for a");
    // Of another source, whose revisions are its own: ready is enough.
    let mut other = unit("a", &json!({"kind": "OCIRepository", "name": "x"}), "1@sha256:9");
    other["status"]["conditions"][0]["status"] = "True".into();
    assert_eq!(say(vec![other, waiting("b", &["a"])])[1], format!("b: {late}"));
    // A need in another namespace.
    let mut far = waiting("b", &["a"]);
    far["spec"]["dependsOn"][0]["namespace"] = "away".into();
    assert!(say(vec![ours("a", &[]), far])[1].contains("away/a, which is not there"));
}

#[test]
fn only_what_grows_from_the_root_counts() {
    let made = |unit: &mut Value, names: &[&str]| {
        let entries: Vec<Value> = names
            .iter()
            .map(|name| json!({"id": format!("flux-system_{name}_kustomize.toolkit.fluxcd.io_Kustomization"), "v": "v1"}))
            .collect();
        unit["status"]["inventory"]["entries"] = entries.into();
    };
    let mut root = ours(NAMESPACE, &[]);
    let mut a = ours("a", &["needed"]);
    let mut labelled = ours("labelled", &[]);
    labelled["metadata"]["labels"] = json!({
        "kustomize.toolkit.fluxcd.io/name": "b", "kustomize.toolkit.fluxcd.io/namespace": NAMESPACE});
    let beside = not_ready(ours("beside", &[]), "BuildFailed", "broken");
    let all = |root: &Value, a: &Value| {
        vec![
            root.clone(),
            a.clone(),
            ours("b", &[]),
            ours("needed", &[]),
            labelled.clone(),
            beside.clone(),
        ]
    };
    assert_eq!(say(all(&root, &a)).len(), 6, "the root has not said yet what it made");
    made(&mut root, &["a"]);
    made(&mut a, &["b"]);
    let ready = ["a: ready", "b: ready", "flux-system: ready", "labelled: ready", "needed: ready"];
    assert_eq!(say(all(&root, &a)), ready);
    let there = picture([all(&root, &a), vec![holding("GitRepository", NAMESPACE, NOW)]].concat());
    assert_eq!(super::beside(&there), ["beside"]);
}

#[test]
fn a_release_that_is_not_ready_is_named_with_its_unit() {
    let mut late = not_ready(ours("a", &[]), "HealthCheckFailed", "timeout");
    late["status"]["inventory"]["entries"] =
        json!([{"id": "ingress_traefik_helm.toolkit.fluxcd.io_HelmRelease", "v": "v2"}]);
    let release = json!({"apiVersion": HELM, "kind": "HelmRelease",
        "metadata": {"name": "traefik", "namespace": "ingress"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "InstallFailed", "message": "no chart"}]}});
    assert_eq!(
        say(vec![late, release]),
        ["a: Kustomization flux-system/a is not ready: HealthCheckFailed: timeout; \
          HelmRelease ingress/traefik is not ready: InstallFailed: no chart"]
    );
}
