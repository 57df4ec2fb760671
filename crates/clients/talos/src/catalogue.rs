//! The catalogue of what Talos answers when it does not do as asked, and what each answer means for us.

use castle_model::Class;
use castle_wire::connector::End;
use tonic::Code;

/// One known answer.
struct Entry {
    code: Code,
    /// Part of the text; empty for any.
    text: &'static str,
    class: Class,
    hint: Option<&'static str>,
}

const fn entry(code: Code, text: &'static str, class: Class, hint: Option<&'static str>) -> Entry {
    Entry { code, text, class, hint }
}

/// The known answers of Talos 1.12 and 1.13; the first that fits decides.
const TABLE: &[Entry] = &[
    entry(Code::FailedPrecondition, "bootstrap is not available yet", Class::Transient, None),
    entry(
        Code::FailedPrecondition,
        "time is not in sync yet",
        Class::Transient,
        Some(
            "the machine cannot reach its time servers: check `ntp`, the gateway and the name servers",
        ),
    ),
    entry(Code::FailedPrecondition, "node is rebooting", Class::Transient, None),
    entry(Code::FailedPrecondition, "already being applied", Class::Transient, None),
    entry(Code::FailedPrecondition, "not supported in container mode", Class::Invalid, None),
    entry(Code::FailedPrecondition, "", Class::Conflict, None),
    entry(
        Code::AlreadyExists,
        "etcd data directory is not empty",
        Class::Conflict,
        Some(
            "etcd has run on this machine before: it is bootstrapped already, or its disk is an old one",
        ),
    ),
    entry(Code::AlreadyExists, "", Class::Conflict, None),
    entry(
        Code::Unimplemented,
        "only available on control plane nodes",
        Class::Invalid,
        Some("the machine has no config yet, or is a worker"),
    ),
    entry(Code::Unimplemented, "", Class::Invalid, None),
    entry(
        Code::InvalidArgument,
        "unknown keys found during decoding",
        Class::Invalid,
        Some(
            "the config holds something that this version of Talos does not know: look at the patches in the castle file",
        ),
    ),
    entry(Code::InvalidArgument, "", Class::Invalid, None),
    entry(
        Code::PermissionDenied,
        "no request forwarding",
        Class::Denied,
        Some("a worker passes no call on to others"),
    ),
    entry(
        Code::PermissionDenied,
        "",
        Class::Denied,
        Some("in maintenance mode a machine allows reading and configuring alone"),
    ),
    entry(Code::Unauthenticated, "", Class::Denied, None),
    entry(Code::NotFound, "", Class::Gone, None),
    entry(Code::Unavailable, "", Class::Transient, None),
    entry(Code::DeadlineExceeded, "", Class::Transient, None),
    entry(Code::Cancelled, "", Class::Transient, None),
    entry(Code::Aborted, "", Class::Transient, None),
    entry(Code::ResourceExhausted, "", Class::Transient, None),
    // What breaks below gRPC comes up as one of these two, with the words of the layer below.
    entry(Code::Unknown, "rpc not supported for learner", Class::Transient, None),
    entry(Code::Unknown, "no route to host", Class::Transient, None),
    entry(Code::Unknown, "connection refused", Class::Transient, None),
    entry(Code::Unknown, "error reading from server: EOF", Class::Transient, None),
    entry(Code::Unknown, "broken pipe", Class::Transient, None),
    entry(Code::Unknown, "connection reset", Class::Transient, None),
    entry(Code::Unknown, "transport error", Class::Transient, None),
    entry(Code::Unknown, "h2 protocol error", Class::Transient, None),
    entry(Code::Internal, "h2 protocol error", Class::Transient, None),
];

/// Judges an answer by its code, its text, and how the connection under it ended.
#[must_use]
pub fn judge(code: Code, text: &str, ended: Option<&End>) -> (Class, Option<&'static str>) {
    if let Some(End::Alert(_)) = ended {
        return (
            Class::Denied,
            Some(
                "the machine refuses our certificate: it belongs to another cluster, or is not in maintenance mode",
            ),
        );
    }
    TABLE
        .iter()
        .find(|entry| entry.code == code && text.contains(entry.text))
        .map_or((Class::Invalid, None), |entry| (entry.class, entry.hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_answers_are_known() {
        let cases = [
            (Code::FailedPrecondition, "bootstrap is not available yet", Class::Transient),
            (Code::FailedPrecondition, "time is not in sync yet", Class::Transient),
            (
                Code::FailedPrecondition,
                "configuration was already applied and node is rebooting",
                Class::Transient,
            ),
            (Code::FailedPrecondition, "method is not supported in container mode", Class::Invalid),
            (Code::AlreadyExists, "etcd data directory is not empty", Class::Conflict),
            (
                Code::Unimplemented,
                "member list is only available on control plane nodes",
                Class::Invalid,
            ),
            (Code::InvalidArgument, "etcd is not configured", Class::Invalid),
            (Code::InvalidArgument, "config not found", Class::Invalid),
            (Code::PermissionDenied, "not authorized", Class::Denied),
            (
                Code::Unavailable,
                "connection error: desc = \"transport: Error while dialing: dial tcp 10.5.0.11:50000: connect: connection refused\"",
                Class::Transient,
            ),
            (Code::Unavailable, "write: broken pipe", Class::Transient),
            (
                Code::Unavailable,
                "dial unix /system/run/machined/machine.sock: connect: no such file or directory",
                Class::Transient,
            ),
            (Code::DeadlineExceeded, "context deadline exceeded", Class::Transient),
            (Code::Cancelled, "Timeout expired", Class::Transient),
            (Code::Unknown, "error reading from server: EOF", Class::Transient),
            (Code::Unknown, "service \"\" not defined", Class::Invalid),
            (Code::Unavailable, "etcdserver: rpc not supported for learner", Class::Transient),
            (
                Code::Unavailable,
                "error reading server preface: remote error: tls: certificate required",
                Class::Transient,
            ),
            (
                Code::NotFound,
                "failed to remove member 4660: etcdserver: member not found",
                Class::Gone,
            ),
            (Code::NotFound, "resource \"vip\" is not registered", Class::Gone),
            (Code::PermissionDenied, "resource type \"\" is not supported", Class::Denied),
            (Code::PermissionDenied, "no request forwarding", Class::Denied),
            (
                Code::InvalidArgument,
                "error decoding document /v1alpha1/ (line 1): unknown keys found during decoding:\nmachine:\n",
                Class::Invalid,
            ),
            (Code::Unimplemented, "unknown service grpc.health.v1.Health", Class::Invalid),
            (
                Code::Unknown,
                "Get \"https://10.5.0.2:6443/api/v1/nodes\": dial tcp 10.5.0.2:6443: connect: no route to host",
                Class::Transient,
            ),
        ];
        for (code, text, class) in cases {
            assert_eq!(judge(code, text, None).0, class, "{code:?} {text}");
        }
    }

    #[test]
    fn an_alert_says_more_than_the_code_above_it() {
        let alert = End::Alert(rustls::AlertDescription::CertificateRequired);
        assert_eq!(judge(Code::Cancelled, "connection closed", Some(&alert)).0, Class::Denied);
        assert_eq!(judge(Code::Cancelled, "", Some(&End::Closed)).0, Class::Transient);
    }
}
