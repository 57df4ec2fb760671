//! Rules for kinds that a definition brings: by their conditions, with the generation they were written for.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, waiting};
use crate::object::{Condition, Object};

/// For kinds whose controller is known to write a `Ready` condition: without one it has not looked yet.
pub(super) fn must_say_ready(object: &Object) -> Verdict {
    if object.condition("Ready").is_none() && object.condition("Stalled").is_none() {
        return waiting(object, "has not been looked at by its controller yet");
    }
    by_conditions(object)
}

/// For any kind: `Stalled` fails, `Ready` or `Available` decides, and an older generation does not count.
pub(super) fn by_conditions(object: &Object) -> Verdict {
    let generation = object.number("/metadata/generation");
    let older = |seen: Option<i64>| seen.is_some_and(|seen| seen < generation);
    if older(object.at("/status/observedGeneration").and_then(Value::as_i64)) {
        return waiting(object, "has not been seen in its newest form yet");
    }
    if let Some(stalled) = object.condition("Stalled").filter(Condition::holds) {
        return failed(
            object,
            stalled.words(),
            "its controller will not try again: correct the object",
        );
    }
    let condition = ["Ready", "Available"].iter().find_map(|kind| object.condition(kind));
    match condition {
        Some(condition) if older(condition.observed_generation()) => {
            waiting(object, "has not been seen in its newest form yet")
        }
        Some(condition) if condition.holds() => ready(object, condition.words()),
        Some(condition) => waiting(object, format!("is not ready: {}", condition.words())),
        None => ready(object, "is there"),
    }
}

/// A Longhorn node is ready when it has a disk that takes volumes.
pub(super) fn longhorn_node(object: &Object) -> Verdict {
    if let Some(condition) = object.condition("Ready").filter(|c| !c.holds()) {
        return waiting(object, format!("is not ready: {}", condition.words()));
    }
    if object.at("/spec/allowScheduling").and_then(Value::as_bool) == Some(false) {
        return waiting(object, "is switched off for volumes");
    }
    let disks = object.at("/status/diskStatus").and_then(Value::as_object);
    let schedulable = disks.map_or(0, |disks| {
        disks
            .values()
            .filter(|disk| {
                disk.get("conditions").and_then(Value::as_array).is_some_and(|conditions| {
                    conditions.iter().any(|c| {
                        c.get("type").and_then(Value::as_str) == Some("Schedulable")
                            && c.get("status").and_then(Value::as_str) == Some("True")
                    })
                })
            })
            .count()
    });
    if schedulable == 0 {
        return waiting(object, "has no disk that takes volumes yet");
    }
    ready(object, format!("has {schedulable} disks that take volumes"))
}
