//! Objects as servers show them after others had a hand in them.

use serde_json::json;

use super::*;

/// A manager's entry.
fn entry(manager: &str, operation: &str, tree: impl Into<Value>) -> Value {
    let tree: Value = tree.into();
    json!({"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "time": "2026-11-16T10:00:00Z", "fieldsV1": tree})
}

fn wanted() -> Object {
    Object::new(json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "a", "namespace": "b", "labels": {"app": "a"}},
        "spec": {"replicas": 2, "paused": false},
    }))
    .unwrap()
}

fn all() -> Value {
    json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:replicas": {}, "f:paused": {}}})
}

fn without_replicas() -> Value {
    json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:paused": {}}})
}

fn replicas() -> Value {
    json!({"f:spec": {"f:replicas": {}}})
}

/// The wanted object as it is there, with these managers.
fn there(managers: &[Value]) -> Object {
    let mut value = wanted().into_value();
    value["metadata"]["managedFields"] = managers.into();
    Object::new(value).unwrap()
}

fn labelled(mut object: Object, part: &str, key: &str, text: &str) -> Object {
    object.put(part, key, text);
    object
}

#[test]
fn fields_that_we_do_not_apply_are_nobodys_business() {
    let controller = json!({"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}},
        "f:status": {"f:replicas": {}}});
    let object = there(&[
        entry("castle", "Apply", all()),
        entry("kube-controller-manager", "Update", controller),
        entry(
            "kustomize-controller",
            "Apply",
            json!({"f:metadata": {"f:labels": {"f:theirs": {}}}}),
        ),
    ]);
    assert_eq!(claim(&wanted(), &object), None);
    assert_eq!(drift(&wanted(), &object), None);
}

#[test]
fn another_reconciler_that_holds_our_fields_is_a_claim_even_with_our_values() {
    let shared = there(&[
        entry("castle", "Apply", all()),
        entry("kustomize-controller", "Apply", replicas()),
    ]);
    let shared = labelled(shared, "labels", "kustomize.toolkit.fluxcd.io/name", "infra");
    insta::assert_snapshot!(claim(&wanted(), &shared).unwrap(), @"Flux (Kustomization flux-system/infra): kustomize-controller applies .spec.replicas, last at 2026-11-16T10:00:00Z");
    let taken =
        there(&[entry("castle", "Apply", without_replicas()), entry("helm", "Update", replicas())]);
    let taken = labelled(taken, "annotations", "meta.helm.sh/release-name", "metallb");
    insta::assert_snapshot!(claim(&wanted(), &taken).unwrap(), @"Helm (release default/metallb): helm has written .spec.replicas, last at 2026-11-16T10:00:00Z");
}

#[test]
fn a_persons_edit_of_our_fields_is_noticed_and_no_claim() {
    let edited = there(&[
        entry("castle", "Apply", without_replicas()),
        entry("kubectl-edit", "Update", replicas()),
    ]);
    assert_eq!(claim(&wanted(), &edited), None);
    insta::assert_snapshot!(drift(&wanted(), &edited).unwrap(), @"kubectl-edit has changed .spec.replicas at 2026-11-16T10:00:00Z");
    let removed = there(&[entry("castle", "Apply", without_replicas())]);
    insta::assert_snapshot!(drift(&wanted(), &removed).unwrap(), @"somebody has removed .spec.replicas");
    insta::assert_snapshot!(drift(&wanted(), &there(&[])).unwrap(), @"castle is no longer among its field managers");
    // Written under our name, but not by an apply: that is no hold of ours.
    let other = there(&[entry("castle", "Update", all())]);
    assert!(drift(&wanted(), &other).is_some());
}

#[test]
fn an_autoscaler_and_the_certificates_of_webhooks_are_left_alone() {
    let scaled = there(&[
        entry("castle", "Apply", without_replicas()),
        entry("kube-controller-manager", "Update", replicas()),
    ]);
    assert_eq!(drift(&wanted(), &scaled), None);
    let kept = yielding(&wanted(), &scaled);
    assert_eq!(kept.at("/spec").unwrap(), &json!({"paused": false}));
    let hook = Object::new(json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "h"},
        "webhooks": [{"name": "x", "clientConfig": {"caBundle": "Cg=="}}],
    }))
    .unwrap();
    let mut filled = hook.clone().into_value();
    filled["metadata"]["managedFields"] = json!([
        entry(
            "castle",
            "Apply",
            json!({"f:webhooks": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}})
        ),
        entry(
            "controller",
            "Update",
            json!({"f:webhooks": {"k:{\"name\":\"x\"}": {"f:clientConfig": {"f:caBundle": {}}}}})
        ),
    ]);
    // The whole of `clientConfig` is gone from our entry, since the bundle was all of it.
    let filled = Object::new(filled).unwrap();
    assert_eq!(drift(&hook, &filled), None);
    assert_eq!(
        yielding(&hook, &filled).at("/webhooks/0").unwrap(),
        &json!({"name": "x", "clientConfig": {}})
    );
}

#[test]
fn a_namespace_may_be_shared_but_not_taken() {
    let namespace = Object::new(json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "n", "labels": {"a": "b"}}}))
    .unwrap();
    let shown = |ours: Value| {
        let mut value = namespace.clone().into_value();
        let label = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
        value["metadata"]["managedFields"] =
            json!([entry("castle", "Apply", ours), entry("kustomize-controller", "Apply", label)]);
        Object::new(value).unwrap()
    };
    let held = json!({"f:metadata": {"f:labels": {"f:a": {}}}});
    assert_eq!(claim(&namespace, &shown(held)), None);
    let taken = json!({"f:metadata": {"f:labels": {"f:other": {}}}});
    assert!(claim(&namespace, &shown(taken)).is_some());
}

#[test]
fn what_ties_flux_to_its_repository_is_its_own_once_it_holds_it() {
    let source = Object::new(json!({
        "apiVersion": "source.toolkit.fluxcd.io/v1", "kind": "GitRepository",
        "metadata": {"name": "flux-system", "namespace": "flux-system"}, "spec": {"interval": "1m", "url": "u"},
    }))
    .unwrap();
    let mut value = source.clone().into_value();
    value["spec"]["interval"] = "10m".into();
    value["metadata"]["managedFields"] = json!([
        entry("castle", "Apply", json!({"f:spec": {"f:url": {}}})),
        entry("kustomize-controller", "Apply", json!({"f:spec": {"f:url": {}, "f:interval": {}}})),
    ]);
    let there = Object::new(value).unwrap();
    assert_eq!((claim(&source, &there), drift(&source, &there)), (None, None));
}

#[test]
fn an_object_that_we_never_applied_has_its_owner_named() {
    let named = |object: Object| owner(&wanted(), &object).to_string();
    let kubectl = labelled(
        there(&[entry("kubectl-client-side-apply", "Update", all())]),
        "annotations",
        "kubectl.kubernetes.io/last-applied-configuration",
        "{}",
    );
    insta::assert_snapshot!(named(kubectl), @"whoever uses kubectl apply: kubectl-client-side-apply has written .metadata.labels.app, .spec.replicas, .spec.paused, last at 2026-11-16T10:00:00Z");
    let flux = labelled(there(&[]), "labels", "helm.toolkit.fluxcd.io/name", "metallb");
    assert_eq!(named(flux), "Flux (HelmRelease flux-system/metallb)");
    let argo = labelled(there(&[]), "annotations", "argocd.argoproj.io/tracking-id", "x");
    assert_eq!(named(argo), "Argo CD");
    assert_eq!(named(there(&[])), "someone unknown");
    insta::assert_snapshot!(named(there(&[entry("k9s", "Update", replicas())])), @"whoever uses k9s: k9s has written .spec.replicas, last at 2026-11-16T10:00:00Z");
}

#[test]
fn a_label_of_helm_that_we_would_put_on_ourselves_proves_nothing() {
    const LABEL: &str = "app.kubernetes.io/managed-by";
    let printed = labelled(there(&[]), "labels", LABEL, "Helm");
    assert_eq!(owner(&wanted(), &printed).owner, "Helm");
    let ours = labelled(wanted(), "labels", LABEL, "Helm");
    assert_eq!(owner(&ours, &printed).owner, "someone unknown");
}
