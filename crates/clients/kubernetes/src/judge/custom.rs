//! Rules for kinds that a definition brings: by their conditions, with the generation they were written for.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, waiting};
use crate::object::{Condition, Object};

const OLDER: &str = "has not been seen in its newest form yet";

/// For kinds whose controller is known to write a `Ready` condition: without one it has not looked yet.
pub(super) fn must_say_ready(object: &Object) -> Verdict {
    if object.condition("Ready").is_none() && object.condition("Stalled").is_none() {
        return waiting(object, "has not been looked at by its controller yet");
    }
    by_conditions(object)
}

/// For any kind: `Stalled` fails, `Reconciling` waits, `Ready` or `Available` decides, and an older generation does not count.
///
/// Flux writes -1 as the generation of a status that never was ready, while its conditions tell theirs: what they say of
/// the newest one is the reason that a person looks for.
pub(super) fn by_conditions(object: &Object) -> Verdict {
    let generation = object.number("/metadata/generation");
    let seen = object.at("/status/observedGeneration").and_then(Value::as_i64);
    let stale = seen.is_some_and(|seen| seen < generation);
    let fresh = |condition: &Condition| match condition.observed_generation() {
        Some(seen) => seen >= generation,
        None => !stale,
    };
    let current = |kind: &str| object.condition(kind).filter(fresh);
    if let Some(stalled) = current("Stalled").filter(Condition::holds) {
        return failed(
            object,
            stalled.words(),
            "its controller will not try again: correct the object",
        );
    }
    let condition = ["Ready", "Available"].iter().find_map(|kind| object.condition(kind));
    let busy = current("Reconciling").filter(Condition::holds);
    match (condition, busy) {
        (Some(condition), _) if !fresh(&condition) => waiting(object, OLDER),
        (Some(condition), _) if !condition.holds() => {
            waiting(object, format!("is not ready: {}", condition.words()))
        }
        _ if stale => waiting(object, OLDER),
        (_, Some(busy)) => waiting(object, format!("is being worked on: {}", busy.words())),
        (Some(condition), None) => ready(object, condition.words()),
        (None, None) => ready(object, "is there"),
    }
}

/// External Secrets writes no generation into conditions; an ExternalSecret tells in its own way what it was synced from.
pub(super) fn external_secrets(object: &Object) -> Verdict {
    let synced = object
        .text("/status/syncedResourceVersion")
        .and_then(|version| version.split('-').next()?.parse::<i64>().ok());
    match object.kind() {
        "ExternalSecret"
            if synced.is_some_and(|seen| seen < object.number("/metadata/generation")) =>
        {
            match object.condition("Ready").filter(|c| c.status() == "False") {
                Some(condition) => waiting(object, format!("is not ready: {}", condition.words())),
                None => waiting(object, OLDER),
            }
        }
        "ExternalSecret"
        | "ClusterExternalSecret"
        | "PushSecret"
        | "SecretStore"
        | "ClusterSecretStore" => must_say_ready(object),
        _ => by_conditions(object),
    }
}
