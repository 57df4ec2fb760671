//! Rules for Longhorn: a node needs a disk that takes volumes, a volume needs replicas that can be read.

use castle_model::Verdict;
use serde_json::Value;

use super::{ready, waiting};
use crate::object::Object;

/// A Longhorn node is ready when it has a disk that takes volumes.
pub(super) fn node(object: &Object) -> Verdict {
    if let Some(condition) = object.condition("Ready").filter(|c| !c.holds()) {
        return waiting(object, format!("is not ready: {}", condition.words()));
    }
    if object.at("/spec/allowScheduling").and_then(Value::as_bool) == Some(false) {
        return waiting(object, "is switched off for volumes");
    }
    let disks = object.at("/status/diskStatus").and_then(Value::as_object);
    let (mut schedulable, mut refusal) = (0_usize, None);
    for (name, disk) in disks.into_iter().flatten() {
        match disk_says(disk) {
            None => {}
            Some(Ok(())) => schedulable += 1,
            Some(Err(why)) => {
                refusal.get_or_insert_with(|| format!("; {name}: {why}"));
            }
        }
    }
    if schedulable == 0 {
        let why = refusal.unwrap_or_default();
        return waiting(object, format!("has no disk that takes volumes yet{why}"));
    }
    ready(object, format!("has {schedulable} disks that take volumes"))
}

/// Whether a disk takes volumes, or what it says against it; none if it has not said anything.
fn disk_says(disk: &Value) -> Option<Result<(), String>> {
    let conditions = disk.get("conditions").and_then(Value::as_array)?;
    let text = |c: &Value, key: &str| c.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    let condition = conditions.iter().find(|c| text(c, "type") == "Schedulable")?;
    if text(condition, "status") == "True" {
        return Some(Ok(()));
    }
    let said: Vec<String> = ["reason", "message"]
        .iter()
        .map(|key| text(condition, key))
        .filter(|words| !words.is_empty())
        .collect();
    if said.is_empty() { None } else { Some(Err(said.join(": "))) }
}

/// A volume is ready while it can be used: degraded is told, faulted is waited for, since Longhorn salvages by itself.
pub(super) fn volume(object: &Object) -> Verdict {
    let filled = |pointer| object.text(pointer).filter(|text| !text.is_empty());
    let (state, robustness) = (filled("/status/state"), filled("/status/robustness"));
    if robustness == Some("faulted") {
        return waiting(
            object,
            "is faulted: no replica can be used; bring their nodes back, or salvage or restore it",
        );
    }
    let scheduled = ["Scheduled", "scheduled"].iter().find_map(|kind| object.condition(kind));
    let unplaced = scheduled.filter(|c| c.status() == "False").map(|c| c.words());
    if is_restoring(object) {
        return waiting(object, "is being restored from a backup");
    }
    match (state, unplaced) {
        (Some("attached"), unplaced) => {
            let health = robustness.unwrap_or("unknown");
            let place = object.text("/status/currentNodeID").unwrap_or("?");
            let why = unplaced.map(|why| format!("; a replica finds no disk: {why}"));
            let words = format!("is attached to {place}, {health}{}", why.unwrap_or_default());
            ready(object, words)
        }
        (_, Some(why)) => waiting(object, format!("finds no disk for its replicas: {why}")),
        (Some("detached"), None) => ready(object, "is detached: nobody uses it now"),
        (Some(state), None) => waiting(object, format!("is {state}")),
        (None, None) => waiting(object, "has not been looked at by its manager yet"),
    }
}

fn is_restoring(object: &Object) -> bool {
    ["Restore", "restore"]
        .iter()
        .any(|kind| object.condition(kind).is_some_and(|condition| condition.holds()))
}
