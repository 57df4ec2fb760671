//! Rules for what makes pods: Deployment, ReplicaSet, DaemonSet, StatefulSet, Job, CronJob.

use castle_model::{Bug, Verdict, planted};
use serde_json::Value;

use super::{failed, is_set, ready, unseen, waiting};
use crate::object::{Condition, Object};

const UNSEEN: &str = "has not been seen by its controller yet";

/// How many replicas are wanted; one if nothing is said, as the API does.
fn wanted(object: &Object) -> i64 {
    object.at("/spec/replicas").and_then(Value::as_i64).unwrap_or(1)
}

/// Why no pods can be made: a quota, an admission, a missing account.
fn no_pods(object: &Object) -> Option<Verdict> {
    let failure = object.condition("ReplicaFailure").filter(Condition::holds)?;
    Some(waiting(object, format!("cannot make its pods: {}", failure.words())))
}

pub(super) fn deployment(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, UNSEEN);
    }
    if let Some(verdict) = no_pods(object) {
        return verdict;
    }
    let wanted = wanted(object);
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let (updated, all, available) =
        (status("updatedReplicas"), status("replicas"), status("availableReplicas"));
    let late = object
        .condition("Progressing")
        .filter(|c| c.status() == "False")
        .map(|c| format!(" ({})", c.words()))
        .unwrap_or_default();
    let paused = if is_set(object, "/spec/paused") { "; its rollout is paused" } else { "" };
    if updated < wanted {
        let words = format!("has {updated} of {wanted} replicas of the new revision{late}{paused}");
        return waiting(object, words);
    }
    if all > updated {
        let old = all.saturating_sub(updated);
        return waiting(object, format!("still has {old} old replicas{paused}"));
    }
    if planted(Bug::PodsMadeIsReady) {
        return ready(object, format!("has {all} of {wanted} replicas"));
    }
    if available < wanted {
        return waiting(object, format!("has {available} of {wanted} replicas available{late}"));
    }
    if let Some(condition) = object.condition("Available").filter(|c| c.status() == "False") {
        return waiting(object, format!("is not available: {}", condition.words()));
    }
    ready(object, format!("has {available} of {wanted} replicas available{paused}"))
}

pub(super) fn replica_set(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, UNSEEN);
    }
    if let Some(verdict) = no_pods(object) {
        return verdict;
    }
    let wanted = wanted(object);
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let (all, available) = (status("replicas"), status("availableReplicas"));
    if all > wanted {
        return waiting(object, format!("still has {} too many", all.saturating_sub(wanted)));
    }
    let words = format!("has {available} of {wanted} replicas available");
    if available < wanted { waiting(object, words) } else { ready(object, words) }
}

pub(super) fn daemon_set(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, UNSEEN);
    }
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let wanted = status("desiredNumberScheduled");
    let (updated, available) = (status("updatedNumberScheduled"), status("numberAvailable"));
    let by_hand = object.text("/spec/updateStrategy/type") == Some("OnDelete");
    if updated < wanted && !by_hand {
        return waiting(object, format!("is rolled out on {updated} of {wanted} nodes"));
    }
    if available < wanted {
        return waiting(object, format!("is available on {available} of {wanted} nodes"));
    }
    let words = format!("is available on {available} of {wanted} nodes");
    let old = wanted.saturating_sub(updated);
    if by_hand && old > 0 {
        return ready(object, format!("{words}; {old} keep the old revision until deleted"));
    }
    ready(object, words)
}

pub(super) fn stateful_set(object: &Object) -> Verdict {
    if unseen(object) {
        return waiting(object, UNSEEN);
    }
    let wanted = wanted(object);
    let status = |field: &str| object.number(&format!("/status/{field}"));
    let (all, serving, updated) =
        (status("replicas"), status("readyReplicas"), status("updatedReplicas"));
    if serving < wanted {
        return waiting(object, format!("has {serving} of {wanted} replicas ready"));
    }
    if all > wanted {
        return waiting(object, format!("still has {} too many", all.saturating_sub(wanted)));
    }
    let words = format!("has {serving} of {wanted} replicas ready");
    if object.text("/spec/updateStrategy/type") == Some("OnDelete") {
        return ready(object, format!("{words}; a new revision comes when pods are deleted"));
    }
    let rolling = object.text("/status/currentRevision") != object.text("/status/updateRevision");
    let kept = object.number("/spec/updateStrategy/rollingUpdate/partition").max(0);
    let new = wanted.saturating_sub(kept).max(0);
    if rolling && updated < new {
        return waiting(object, format!("has {updated} of {new} replicas of the new revision"));
    }
    if rolling && kept > 0 {
        let words = format!("{words}; the first {kept} keep the old revision on purpose");
        return ready(object, words);
    }
    ready(object, words)
}

pub(super) fn job(object: &Object) -> Verdict {
    if let Some(end) = object.condition("Failed").filter(Condition::holds) {
        return failed(object, end.words(), "look at the log of its pods");
    }
    if object.condition("Complete").is_some_and(|c| c.holds()) {
        return ready(object, "has finished");
    }
    if is_set(object, "/spec/suspend") {
        return waiting(object, "is suspended");
    }
    if let Some(end) = object.condition("FailureTarget").filter(Condition::holds) {
        return waiting(object, format!("is about to fail: {}", end.words()));
    }
    let failures = object.number("/status/failed");
    let words = format!("is running {} pods", object.number("/status/active"));
    if failures > 0 {
        return waiting(object, format!("{words}; {failures} have failed"));
    }
    waiting(object, words)
}

/// A CronJob is ready by being there: its runs are Jobs of their own.
pub(super) fn cron_job(object: &Object) -> Verdict {
    if is_set(object, "/spec/suspend") {
        return ready(object, "is there, suspended: it starts nothing");
    }
    match object.text("/status/lastScheduleTime") {
        Some(last) => ready(object, format!("is there, last started at {last}")),
        None => ready(object, "is there, never started so far"),
    }
}
