//! Rules for what runs: Deployment, DaemonSet, StatefulSet, Pod, Job.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, unseen, waiting};
use crate::object::{Condition, Object};

pub(super) fn deployment(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, "has not been seen by its controller yet");
    }
    let wanted = object.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let (updated, all, available) =
        (status("updatedReplicas"), status("replicas"), status("availableReplicas"));
    if let Some(failure) = object.condition("ReplicaFailure").filter(Condition::holds) {
        return waiting(object, format!("cannot make its pods: {}", failure.words()));
    }
    if updated < wanted {
        return waiting(object, format!("has {updated} of {wanted} replicas of the new revision"));
    }
    if all > updated {
        return waiting(object, format!("still has {} old replicas", all - updated));
    }
    if available < wanted {
        let late = object
            .condition("Progressing")
            .filter(|c| c.status() == "False")
            .map(|c| format!(" ({})", c.words()))
            .unwrap_or_default();
        return waiting(object, format!("has {available} of {wanted} replicas available{late}"));
    }
    ready(object, format!("has {available} of {wanted} replicas available"))
}

pub(super) fn daemon_set(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, "has not been seen by its controller yet");
    }
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let wanted = status("desiredNumberScheduled");
    let (updated, available) = (status("updatedNumberScheduled"), status("numberAvailable"));
    if updated < wanted {
        return waiting(object, format!("is rolled out on {updated} of {wanted} nodes"));
    }
    if available < wanted {
        return waiting(object, format!("is available on {available} of {wanted} nodes"));
    }
    ready(object, format!("is available on {available} of {wanted} nodes"))
}

pub(super) fn stateful_set(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, "has not been seen by its controller yet");
    }
    let wanted = object.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1);
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let (ready_replicas, updated) = (status("readyReplicas"), status("updatedReplicas"));
    if ready_replicas < wanted {
        return waiting(object, format!("has {ready_replicas} of {wanted} replicas ready"));
    }
    let rolling = object.text("/status/currentRevision") != object.text("/status/updateRevision");
    if rolling && updated < wanted {
        return waiting(object, format!("has {updated} of {wanted} replicas of the new revision"));
    }
    ready(object, format!("has {ready_replicas} of {wanted} replicas ready"))
}

pub(super) fn pod(object: &Object) -> Verdict {
    let phase = object.text("/status/phase").unwrap_or("Pending");
    match phase {
        "Succeeded" => ready(object, "has finished"),
        "Failed" => {
            let why = object
                .text("/status/message")
                .or_else(|| object.text("/status/reason"))
                .unwrap_or("its containers ended with an error");
            failed(object, why, "look at the pod's log")
        }
        _ if object.condition("Ready").is_some_and(|c| c.holds()) => ready(object, "is ready"),
        _ => waiting(object, pod_words(object).unwrap_or_else(|| format!("is {phase}, not ready"))),
    }
}

/// What keeps a pod: a container that waits, or no node that takes it.
fn pod_words(object: &Object) -> Option<String> {
    let container = ["/status/initContainerStatuses", "/status/containerStatuses"]
        .iter()
        .flat_map(|at| object.entries(at))
        .find_map(|status| {
            let waiting = status.pointer("/state/waiting")?;
            let text = |key: &str| waiting.get(key).and_then(Value::as_str).unwrap_or_default();
            let name = status.get("name").and_then(Value::as_str).unwrap_or("?");
            let message = if text("message").is_empty() {
                String::new()
            } else {
                format!(": {}", text("message"))
            };
            Some(format!("waits in container {name}: {}{message}", text("reason")))
        });
    let unschedulable = || {
        object
            .condition("PodScheduled")
            .filter(|c| c.status() == "False")
            .map(|c| format!("finds no node: {}", c.words()))
    };
    container.or_else(unschedulable)
}

pub(super) fn job(object: &Object) -> Verdict {
    if let Some(end) = object.condition("Failed").filter(Condition::holds) {
        return failed(object, end.words(), "look at the log of its pods");
    }
    if object.condition("Complete").is_some_and(|c| c.holds()) {
        return ready(object, "has finished");
    }
    waiting(object, format!("is running {} pods", object.number("/status/active")))
}
