//! Rules for what the cluster itself is made of: nodes, namespaces, claims, volumes, services, ingresses, endpoints.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, is_set, ready, waiting};
use crate::object::{Condition, Object};

pub(super) fn node(object: &Object) -> Verdict {
    let cordoned = if is_set(object, "/spec/unschedulable") { ", cordoned" } else { "" };
    match object.condition("Ready") {
        Some(condition) if condition.holds() => ready(object, format!("is Ready{cordoned}")),
        Some(condition) => {
            waiting(object, format!("is not Ready{cordoned}: {}", condition.words()))
        }
        None => waiting(object, "has not reported yet"),
    }
}

/// One that ends is told before any rule is asked.
pub(super) fn namespace(object: &Object) -> Verdict {
    ready(object, "is active")
}

pub(super) fn claim(object: &Object) -> Verdict {
    match object.text("/status/phase") {
        Some("Bound") => {
            let volume = object.text("/spec/volumeName").unwrap_or("a volume");
            let resizing = ["FileSystemResizePending", "Resizing", "ControllerResizeError"]
                .iter()
                .find_map(|kind| object.condition(kind).filter(Condition::holds))
                .map(|c| format!("; being resized: {}", c.words()))
                .unwrap_or_default();
            ready(object, format!("is bound to {volume}{resizing}"))
        }
        Some("Lost") => {
            failed(object, "its volume is lost", "delete the claim and restore its data")
        }
        phase => {
            let class = object
                .text("/spec/storageClassName")
                .filter(|class| !class.is_empty())
                .map(|class| format!(", of class {class}"))
                .unwrap_or_default();
            waiting(object, format!("is {}{class}", phase.unwrap_or("Pending")))
        }
    }
}

pub(super) fn volume(object: &Object) -> Verdict {
    let claim = |key: &str| object.text(&format!("/spec/claimRef/{key}")).unwrap_or("?");
    match object.text("/status/phase") {
        Some("Available") => ready(object, "is available"),
        Some("Bound") => {
            ready(object, format!("is bound to {}/{}", claim("namespace"), claim("name")))
        }
        Some("Released") => ready(object, "is released: its claim is gone, its data is kept"),
        Some("Failed") => failed(
            object,
            object.text("/status/message").unwrap_or("it could not be reclaimed"),
            "look at its provisioner, then delete the volume",
        ),
        phase => waiting(object, format!("is {}", phase.unwrap_or("Pending"))),
    }
}

/// The addresses that a load balancer has given.
fn addresses(object: &Object) -> Vec<&str> {
    object
        .entries("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|entry| {
            let text = |key| entry.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
            text("ip").or_else(|| text("hostname"))
        })
        .collect()
}

pub(super) fn service(object: &Object) -> Verdict {
    if object.text("/spec/type") != Some("LoadBalancer") {
        return ready(object, "is there");
    }
    let addresses = addresses(object);
    if !addresses.is_empty() {
        return ready(object, format!("has {}", addresses.join(", ")));
    }
    let class = object
        .text("/spec/loadBalancerClass")
        .map(|class| format!(" of class {class}"))
        .unwrap_or_default();
    waiting(object, format!("has no address{class} yet"))
}

/// Not every controller writes an address, so none is waited for.
pub(super) fn ingress(object: &Object) -> Verdict {
    let addresses = addresses(object);
    if addresses.is_empty() {
        return ready(object, "is there; no controller has given it an address");
    }
    ready(object, format!("has {}", addresses.join(", ")))
}

/// An endpoint whose `ready` is missing counts as ready, as the API says.
pub(super) fn endpoint_slice(object: &Object) -> Verdict {
    let endpoints = object.entries("/endpoints");
    let serving: Vec<_> = endpoints
        .iter()
        .filter(|e| e.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true))
        .filter_map(|e| e.pointer("/addresses/0").and_then(Value::as_str))
        .collect();
    if serving.is_empty() {
        waiting(object, format!("has 0 of {} endpoints ready", endpoints.len()))
    } else {
        ready(object, format!("has {} ready at {}", serving.len(), serving.join(", ")))
    }
}
