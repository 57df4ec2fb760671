//! The rules for a pod: what it waits for, in which container, in the words of the kubelet and the scheduler.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, waiting};
use crate::object::{Condition, Object};

const STATUSES: [&str; 2] = ["/status/initContainerStatuses", "/status/containerStatuses"];

/// What a container waits for in the normal course of things; anything else is told before it.
const USUAL: [&str; 2] = ["PodInitializing", "ContainerCreating"];

pub(super) fn pod(object: &Object) -> Verdict {
    let phase = object.text("/status/phase").unwrap_or("Pending");
    match phase {
        "Succeeded" => ready(object, "has finished"),
        "Failed" => failed(object, ended(object), "look at the pod's log"),
        _ if object.condition("Ready").is_some_and(|c| c.holds()) => ready(object, "is ready"),
        _ => waiting(object, held(object).unwrap_or_else(|| format!("is {phase}, not ready"))),
    }
}

/// Why a pod has failed: what the kubelet says of the whole, else the container that ended with an error.
fn ended(object: &Object) -> String {
    let said = |key| object.text(key).filter(|text| !text.is_empty());
    match (said("/status/reason"), said("/status/message")) {
        (Some(reason), Some(message)) => format!("{reason}: {message}"),
        (Some(words), None) | (None, Some(words)) => words.to_owned(),
        (None, None) => containers(object)
            .find_map(|status| {
                let end = status.pointer("/state/terminated")?;
                let code = end.get("exitCode").and_then(Value::as_i64).filter(|code| *code != 0)?;
                Some(format!("container {}{}", name(status), exit(end, code)))
            })
            .unwrap_or_else(|| "its containers ended with an error".to_owned()),
    }
}

/// What keeps a pod: a container that waits, no node that takes it, or a container that does not answer its probe.
fn held(object: &Object) -> Option<String> {
    let waits = |usual: bool| {
        containers(object).find_map(|status| {
            let reason = text(status.pointer("/state/waiting")?, "reason");
            (!reason.is_empty() && USUAL.contains(&reason) == usual)
                .then(|| waits_in(status, reason))
        })
    };
    waits(false)
        .or_else(|| {
            let condition = object.condition("PodScheduled").filter(|c| c.status() == "False")?;
            Some(format!("finds no node: {}", without_preemption(&condition.words())))
        })
        .or_else(|| preparing(object))
        .or_else(|| waits(true))
        .or_else(|| unready(object))
        .or_else(|| gates(object))
}

/// The scheduler's words, without what it says each time of pods that it could have pushed aside.
fn without_preemption(words: &str) -> &str {
    let end = words.find("preemption: ").unwrap_or(words.len());
    words[..end].trim_end_matches([' ', ',', '.'])
}

fn waits_in(status: &Value, reason: &str) -> String {
    let said = status.pointer("/state/waiting").map_or("", |waiting| text(waiting, "message"));
    let message = if said.is_empty() { String::new() } else { format!(": {said}") };
    let words = format!("waits in container {}: {reason}{message}", name(status));
    let last = status.pointer("/lastState/terminated");
    match last.and_then(|end| Some((end, end.get("exitCode").and_then(Value::as_i64)?))) {
        Some((end, code)) => format!("{words}; it{}{}", exit(end, code), restarts(status)),
        None => words,
    }
}

/// An init container that is at work; one that stays beside the others is ready while it runs.
fn preparing(object: &Object) -> Option<String> {
    let phase = object.text("/status/phase").unwrap_or("Pending");
    object.entries("/status/initContainerStatuses").iter().find_map(|status| {
        status.pointer("/state/running")?;
        let is_ready = status.get("ready").and_then(Value::as_bool).unwrap_or(false);
        (!is_ready).then(|| format!("is {phase}: its init container {} is running", name(status)))
    })
}

/// A container that runs and is not ready, or has ended where it should run.
fn unready(object: &Object) -> Option<String> {
    let phase = object.text("/status/phase").unwrap_or("Pending");
    object.entries("/status/containerStatuses").iter().find_map(|status| {
        let is_ready = status.get("ready").and_then(Value::as_bool).unwrap_or(false);
        if is_ready {
            return None;
        }
        if let Some(end) = status.pointer("/state/terminated") {
            let code = end.get("exitCode").and_then(Value::as_i64).unwrap_or(0);
            return Some(format!("is {phase}: container {}{}", name(status), exit(end, code)));
        }
        status.pointer("/state/running")?;
        Some(format!(
            "is {phase}: container {} runs and is not ready{}",
            name(status),
            restarts(status)
        ))
    })
}

/// Readiness gates of the pod's own that nobody has set yet.
fn gates(object: &Object) -> Option<String> {
    object.entries("/spec/readinessGates").iter().find_map(|gate| {
        let kind = gate.get("conditionType").and_then(Value::as_str)?;
        let words = match object.condition(kind) {
            Some(condition) if condition.holds() => return None,
            Some(condition) => Condition::words(&condition),
            None => "nobody has said a word".to_owned(),
        };
        Some(format!("waits for its readiness gate {kind}: {words}"))
    })
}

fn containers(object: &Object) -> impl Iterator<Item = &Value> {
    STATUSES.iter().flat_map(|at| object.entries(at))
}

fn name(status: &Value) -> &str {
    status.get("name").and_then(Value::as_str).unwrap_or("?")
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn exit(end: &Value, code: i64) -> String {
    let reason = text(end, "reason");
    if reason.is_empty() {
        format!(" ended with code {code}")
    } else {
        format!(" ended with code {code} ({reason})")
    }
}

fn restarts(status: &Value) -> String {
    match status.get("restartCount").and_then(Value::as_i64).unwrap_or(0) {
        0 => String::new(),
        count => format!(", restarted {count} times"),
    }
}
