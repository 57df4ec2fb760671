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
    /// How many seconds it asks to be left alone for; 0 if it does not say.
    pub wait: u32,
}

impl Refusal {
    /// The field managers that hold what an apply without force would change; none if it was refused for another reason.
    #[must_use]
    pub fn holders(&self) -> Vec<&str> {
        if self.code != 409 || !self.message.starts_with("Apply failed with") {
            return Vec::new();
        }
        // `conflict with "kubectl-edit" using apps/v1: .spec.replicas`, or `conflicts with` and lines of fields.
        let parts = self.message.split("conflict").skip(1);
        parts.filter_map(|part| part.split_once("with \"")?.1.split('"').next()).collect()
    }
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
    entry(
        0,
        "exceeded quota",
        Class::Denied,
        "raise the namespace's ResourceQuota, or ask for less",
    ),
    entry(
        0,
        "failed quota",
        Class::Denied,
        "the namespace's ResourceQuota wants requests and limits on every container",
    ),
    // The call to a webhook that is not serving yet: the seeds' race.
    entry(0, "failed calling webhook", Class::Transient, NOT_SERVING),
    entry(0, "failed to call webhook", Class::Transient, NOT_SERVING),
    entry(
        0,
        "conversion webhook for",
        Class::Transient,
        "the conversion webhook is not serving yet",
    ),
    entry(0, "is being terminated", Class::Transient, LEAVING),
    entry(0, "object is being deleted", Class::Transient, LEAVING),
    entry(0, "no matches for kind", Class::Gone, NO_KIND),
    entry(0, "could not find the requested resource", Class::Gone, NO_KIND),
    entry(
        0,
        "request is too large",
        Class::Invalid,
        "the object is too large for etcd: split it, or take weight out of it",
    ),
    entry(0, "etcdserver: leader changed", Class::Transient, "etcd is electing"),
    entry(0, "etcdserver: request timed out", Class::Transient, "etcd is slow or has no quorum"),
    entry(0, "etcdserver: no leader", Class::Transient, "etcd has no quorum"),
    entry(
        0,
        "etcdserver: mvcc: database space exceeded",
        Class::Denied,
        "etcd is full: compact and defragment it, then disarm its alarm",
    ),
    entry(0, "storage is (re)initializing", Class::Transient, "the API server is starting"),
    entry(
        0,
        "the server is currently unable to handle the request",
        Class::Transient,
        "the API server or an extension of it is starting",
    ),
    entry(404, "namespaces \"", Class::Gone, "the namespace must be made first"),
    entry(
        409,
        "Apply failed with",
        Class::Conflict,
        "another manager holds these fields: let one of the two go (`enabled = false` or `owner = \"flux\"` in the castle file)",
    ),
    // Only calls that name the version they have seen hear this; ours look again and send anew.
    entry(
        409,
        "the object has been modified",
        Class::Transient,
        "somebody wrote it at the same moment",
    ),
    entry(
        409,
        "already exists",
        Class::Conflict,
        "somebody made it in between: run the same command again to see whose it is",
    ),
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
    entry(413, "", Class::Invalid, "the object is too large: split it, or take weight out of it"),
    entry(415, "", Class::Bug, ""),
    entry(422, "", Class::Invalid, "the object breaks a rule of its schema"),
    entry(429, "", Class::Transient, "the API server is busy"),
    entry(500, "", Class::Transient, "the API server has trouble of its own"),
    entry(502, "", Class::Transient, "the API server is not up behind its balancer"),
    entry(503, "", Class::Transient, "the API server is starting or busy"),
    entry(504, "", Class::Transient, "the API server was too slow"),
];

const NOT_SERVING: &str = "the webhook behind it is not serving yet";
const LEAVING: &str = "what was there before is on its way out; wait until it is gone";
const NO_KIND: &str = "its CustomResourceDefinition is not installed or not established";

/// The class of a refusal and what to do about it.
#[must_use]
pub fn classify(refusal: &Refusal) -> (Class, &'static str) {
    CATALOGUE
        .iter()
        .find(|e| (e.code == 0 || e.code == refusal.code) && refusal.message.contains(e.part))
        .map_or_else(|| unknown(refusal.code), |e| (e.class, e.hint))
}

/// An answer that castle does not know. From 500 on the trouble is the server's, or of whoever stands before it (596 is a
/// proxy's), and may pass.
fn unknown(code: u16) -> (Class, &'static str) {
    match code {
        500.. => (Class::Transient, "the API server, or what stands before it, has trouble"),
        _ => (Class::Bug, "an answer that castle does not know"),
    }
}

/// Whether a refusal says that a webhook could not be called, so that the same call may succeed soon.
#[must_use]
pub fn is_webhook_race(message: &str) -> bool {
    (message.contains("failed calling webhook") || message.contains("failed to call webhook"))
        && !message.contains("denied the request")
}

#[cfg(test)]
mod tests;
