//! Rules for the kinds of Flux: all speak through `Ready`, except those that nothing reconciles.

use castle_model::Verdict;

use super::custom::{by_conditions, must_say_ready};
use super::{is_set, ready, waiting};
use crate::object::Object;

/// Whether a group belongs to Flux or its operator.
pub(super) fn is_of(group: &str) -> bool {
    group.ends_with(".toolkit.fluxcd.io") || group == "fluxcd.controlplane.io"
}

/// What is suspended keeps the verdict of its last reconciliation; that nothing will change it is told.
pub(super) fn unit(object: &Object) -> Verdict {
    let verdict = match object.kind() {
        // Nothing writes a status into these: they are looked at when somebody uses them.
        "Alert" | "Provider" => by_conditions(object),
        "HelmRepository" if object.text("/spec/type") == Some("oci") => {
            return ready(object, "is there; a repository of type oci is read by its charts");
        }
        _ => must_say_ready(object),
    };
    if !is_set(object, "/spec/suspend") {
        return verdict;
    }
    let told = |words: String| format!("{words} (suspended: nothing changes until it is resumed)");
    match verdict {
        Verdict::Ready(words) => Verdict::Ready(told(words)),
        Verdict::Waiting(_) if object.at("/status/conditions").is_none() => {
            waiting(object, "is suspended and was never looked at; resume it")
        }
        Verdict::Waiting(words) => Verdict::Waiting(told(words)),
        failed @ Verdict::Failed(_) => failed,
    }
}
