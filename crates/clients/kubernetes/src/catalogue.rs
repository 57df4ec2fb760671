//! The catalogue of what an API server says when it refuses: which class, and what a person can do.

use castle_model::Class;

/// A refusal as the server words it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// The machine-readable reason, such as `AlreadyExists`.
    pub reason: String,
    /// The message for a person.
    pub message: String,
}

/// One line of the catalogue: every given part must match.
struct Entry {
    /// The HTTP status; 0 for any.
    code: u16,
    /// A part of the message; empty for any.
    part: &'static str,
    class: Class,
    hint: &'static str,
}

const fn entry(code: u16, part: &'static str, class: Class, hint: &'static str) -> Entry {
    Entry { code, part, class, hint }
}

/// The first line that matches decides, so texts come before bare codes.
const CATALOGUE: &[Entry] = &[
    entry(
        0,
        "denied the request",
        Class::Invalid,
        "the webhook looked at the object and refused it: correct the object",
    ),
    entry(
        0,
        "violates PodSecurity",
        Class::Denied,
        "label the namespace with pod-security.kubernetes.io/enforce=privileged",
    ),
    entry(0, "exceeded quota", Class::Denied, "raise the namespace's ResourceQuota"),
    // The call to a webhook that is not serving yet: the seeds' race.
    entry(
        0,
        "failed calling webhook",
        Class::Transient,
        "the webhook behind it is not serving yet",
    ),
    entry(
        0,
        "failed to call webhook",
        Class::Transient,
        "the webhook behind it is not serving yet",
    ),
    entry(
        0,
        "conversion webhook for",
        Class::Transient,
        "the conversion webhook is not serving yet",
    ),
    entry(
        0,
        "is being terminated",
        Class::Transient,
        "the namespace is on its way out; wait until it is gone",
    ),
    entry(
        0,
        "because it is being terminated",
        Class::Transient,
        "the namespace is on its way out; wait until it is gone",
    ),
    entry(
        0,
        "no matches for kind",
        Class::Gone,
        "its CustomResourceDefinition is not installed or not established",
    ),
    entry(
        0,
        "could not find the requested resource",
        Class::Gone,
        "its CustomResourceDefinition is not installed or not established",
    ),
    entry(0, "etcdserver: leader changed", Class::Transient, "etcd is electing"),
    entry(0, "etcdserver: request timed out", Class::Transient, "etcd is slow or has no quorum"),
    entry(0, "etcdserver: no leader", Class::Transient, "etcd has no quorum"),
    entry(0, "storage is (re)initializing", Class::Transient, "the API server is starting"),
    entry(
        0,
        "the server is currently unable to handle the request",
        Class::Transient,
        "the API server or an extension of it is starting",
    ),
    entry(404, "namespaces \"", Class::Gone, "the namespace must be made first"),
    entry(400, "", Class::Invalid, "the object does not parse on the server"),
    entry(
        401,
        "",
        Class::Denied,
        "the client certificate is not accepted: is this the castle's own API server?",
    ),
    entry(403, "", Class::Denied, "the user lacks the right"),
    entry(404, "", Class::Gone, "it is not there"),
    entry(405, "", Class::Invalid, "the resource does not know this verb"),
    entry(
        409,
        "",
        Class::Conflict,
        "someone else owns or has changed it: `kubectl get -o yaml --show-managed-fields` shows who",
    ),
    entry(410, "", Class::Transient, "the place in the watch is too old: list again"),
    entry(413, "", Class::Invalid, "the object is too large for etcd"),
    entry(415, "", Class::Bug, ""),
    entry(422, "", Class::Invalid, "the object breaks a rule of its schema"),
    entry(429, "", Class::Transient, "the API server is busy"),
    entry(500, "", Class::Transient, "the API server has trouble of its own"),
    entry(502, "", Class::Transient, "the API server is not up behind its balancer"),
    entry(503, "", Class::Transient, "the API server is starting or busy"),
    entry(504, "", Class::Transient, "the API server was too slow"),
];

/// The class of a refusal and what to do about it.
#[must_use]
pub fn classify(refusal: &Refusal) -> (Class, &'static str) {
    CATALOGUE
        .iter()
        .find(|e| (e.code == 0 || e.code == refusal.code) && refusal.message.contains(e.part))
        .map_or((Class::Bug, "an answer that castle does not know"), |e| (e.class, e.hint))
}

/// Whether a refusal says that a webhook could not be called, so that the same call may succeed soon.
#[must_use]
pub fn is_webhook_race(message: &str) -> bool {
    (message.contains("failed calling webhook") || message.contains("failed to call webhook"))
        && !message.contains("denied the request")
}

#[cfg(test)]
mod tests {
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
            Class::Conflict,
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
        (
            404,
            r#"no matches for kind "IPAddressPool" in version "metallb.io/v1beta1""#,
            Class::Gone,
        ),
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
    ];

    #[test]
    fn every_known_text_has_its_class() {
        for (code, message, class) in SEEN {
            let refusal =
                Refusal { code: *code, reason: String::new(), message: (*message).to_owned() };
            assert_eq!(classify(&refusal).0, *class, "{message}");
        }
    }

    #[test]
    fn only_a_call_that_failed_is_the_race() {
        assert!(is_webhook_race(SEEN[0].1));
        assert!(!is_webhook_race(SEEN[6].1));
    }
}
