//! The catalogue against texts as real servers and webhooks word them.

use super::*;

/// Texts as real API servers (1.36) and their webhooks word them.
const SEEN: &[(u16, &str, Class)] = &[
    (
        500,
        r#"Internal error occurred: failed calling webhook "l2advertisementvalidationwebhook.metallb.io": failed to call webhook: Post "https://metallb-webhook-service.metallb-system.svc:443/validate-metallb-io-v1beta1-l2advertisement?timeout=10s": dial tcp 10.96.12.7:443: connect: connection refused"#,
        Class::Transient,
    ),
    (
        500,
        r#"Internal error occurred: failed calling webhook "ipaddresspoolvalidationwebhook.metallb.io": failed to call webhook: Post "https://metallb-webhook-service.metallb-system.svc:443/validate-metallb-io-v1beta1-ipaddresspool?timeout=10s": no endpoints available for service "metallb-webhook-service""#,
        Class::Transient,
    ),
    (
        500,
        r#"Internal error occurred: failed calling webhook "validate.clustersecretstore.external-secrets.io": failed to call webhook: Post "https://external-secrets-webhook.external-secrets.svc:443/validate?timeout=5s": context deadline exceeded"#,
        Class::Transient,
    ),
    (
        500,
        r#"Internal error occurred: failed calling webhook "webhook.cert-manager.io": failed to call webhook: Post "https://cert-manager-webhook.cert-manager.svc:443/validate?timeout=30s": tls: failed to verify certificate: x509: certificate signed by unknown authority"#,
        Class::Transient,
    ),
    (
        500,
        r#"Internal error occurred: failed calling webhook "x.metallb.io": failed to call webhook: Post "https://webhook-service.metallb-system.svc:443/x": dial tcp 10.96.1.1:443: connect: no route to host"#,
        Class::Transient,
    ),
    (
        500,
        r#"Internal error occurred: failed calling webhook "wh.example.com": failed to call webhook: service "wh" not found"#,
        Class::Transient,
    ),
    (
        403,
        r#"admission webhook "ipaddresspoolvalidationwebhook.metallb.io" denied the request: invalid CIDR "1.2.3" in pool "default": invalid CIDR "1.2.3""#,
        Class::Invalid,
    ),
    (
        409,
        r#"Apply failed with 1 conflict: conflict with "kustomize-controller": .spec.replicas"#,
        Class::Conflict,
    ),
    (
        409,
        r#"Operation cannot be fulfilled on deployments.apps "controller": the object has been modified; please apply your changes to the latest version and try again"#,
        Class::Transient,
    ),
    (
        409,
        r#"object is being deleted: persistentvolumeclaims "castle-probe" already exists"#,
        Class::Transient,
    ),
    (
        403,
        r#"pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: main"#,
        Class::Denied,
    ),
    (413, "Request entity too large: limit is 3145728", Class::Invalid),
    (500, "etcdserver: request is too large", Class::Invalid),
    (
        422,
        r#"CustomResourceDefinition.apiextensions.k8s.io "x" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"#,
        Class::Invalid,
    ),
    (500, "etcdserver: mvcc: database space exceeded", Class::Denied),
    (
        500,
        r#"conversion webhook for metallb.io/v1beta1, Kind=BGPPeer failed: Post "https://webhook-service.metallb-system.svc:443/convert?timeout=30s": dial tcp 10.96.1.1:443: connect: connection refused"#,
        Class::Transient,
    ),
    (
        410,
        "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.",
        Class::Transient,
    ),
    (409, r#"namespaces "flux-system" already exists"#, Class::Conflict),
    (401, "Unauthorized", Class::Denied),
    (
        403,
        r#"pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default""#,
        Class::Denied,
    ),
    (
        403,
        r#"pods "speaker-x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)"#,
        Class::Denied,
    ),
    (
        403,
        r#"pods "a" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4"#,
        Class::Denied,
    ),
    (
        403,
        r#"secrets "x" is forbidden: unable to create new content in namespace flux-system because it is being terminated"#,
        Class::Transient,
    ),
    (404, r#"namespaces "metallb-system" not found"#, Class::Gone),
    (404, r#"deployments.apps "controller" not found"#, Class::Gone),
    (404, r#"no matches for kind "IPAddressPool" in version "metallb.io/v1beta1""#, Class::Gone),
    (404, "the server could not find the requested resource", Class::Gone),
    (410, "too old resource version: 1 (2044)", Class::Transient),
    (422, r#"Deployment.apps "a" is invalid: spec.selector: Required value"#, Class::Invalid),
    (
        429,
        "the server has received too many requests and has asked us to try again later",
        Class::Transient,
    ),
    (429, "storage is (re)initializing", Class::Transient),
    (500, "etcdserver: leader changed", Class::Transient),
    (500, "etcdserver: request timed out", Class::Transient),
    (503, "the server is currently unable to handle the request", Class::Transient),
    (
        504,
        "Timeout: request did not complete within requested timeout - context deadline exceeded",
        Class::Transient,
    ),
    (
        400,
        r#"Deployment in version "v1" cannot be handled as a Deployment: json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"#,
        Class::Invalid,
    ),
    (418, "I'm a teapot", Class::Bug),
    (596, "the server was not able to process the request", Class::Transient),
];

#[test]
fn every_known_text_has_its_class() {
    for (code, message, class) in SEEN {
        let (found, hint) = classify(&refusal(*code, message));
        assert_eq!(found, *class, "{message}");
        assert!(!hint.is_empty(), "{message}");
    }
}

#[test]
fn only_a_call_that_failed_is_the_race() {
    assert!(is_webhook_race(SEEN[0].1));
    assert!(!is_webhook_race(SEEN[6].1));
}
fn refusal(code: u16, message: &str) -> Refusal {
    Refusal { code, reason: String::new(), message: message.to_owned(), wait: 0 }
}

#[test]
fn a_conflict_names_who_holds_the_fields() {
    let one = r#"Apply failed with 1 conflict: conflict with "kubectl-edit" using apps/v1: .spec.replicas"#;
    assert_eq!(refusal(409, one).holders(), ["kubectl-edit"]);
    let many = "Apply failed with 3 conflicts: conflicts with \"kube-controller-manager\" with subresource \"scale\" using apps/v1:\n- .spec.replicas\nconflicts with \"before-first-apply\" using apps/v1:\n- .spec.paused\n- .spec.template";
    assert_eq!(refusal(409, many).holders(), ["kube-controller-manager", "before-first-apply"]);
    assert!(refusal(409, "namespaces \"conflict with \" already exists").holders().is_empty());
    assert!(refusal(422, one).holders().is_empty());
}
