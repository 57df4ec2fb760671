//! Rules for what the cluster itself is made of: nodes, namespaces, claims, services, definitions, webhooks.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, waiting};
use crate::object::Object;

pub(super) fn node(object: &Object) -> Verdict {
    match object.condition("Ready") {
        Some(condition) if condition.holds() => ready(object, "is Ready"),
        Some(condition) => waiting(object, format!("is not Ready: {}", condition.words())),
        None => waiting(object, "has not reported yet"),
    }
}

pub(super) fn namespace(object: &Object) -> Verdict {
    match object.text("/status/phase") {
        Some("Terminating") => waiting(object, "is being deleted"),
        _ => ready(object, "is active"),
    }
}

pub(super) fn claim(object: &Object) -> Verdict {
    match object.text("/status/phase") {
        Some("Bound") => {
            let volume = object.text("/spec/volumeName").unwrap_or("a volume");
            ready(object, format!("is bound to {volume}"))
        }
        Some("Lost") => {
            failed(object, "its volume is lost", "delete the claim and restore its data")
        }
        phase => waiting(object, format!("is {}", phase.unwrap_or("Pending"))),
    }
}

pub(super) fn service(object: &Object) -> Verdict {
    if object.text("/spec/type") != Some("LoadBalancer") {
        return ready(object, "is there");
    }
    let addresses: Vec<_> = object
        .entries("/status/loadBalancer/ingress")
        .iter()
        .filter_map(|i| i.get("ip").or_else(|| i.get("hostname")).and_then(Value::as_str))
        .collect();
    if addresses.is_empty() {
        waiting(object, "has no address yet")
    } else {
        ready(object, format!("has {}", addresses.join(", ")))
    }
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

pub(super) fn definition(object: &Object) -> Verdict {
    if let Some(names) = object.condition("NamesAccepted").filter(|c| c.status() == "False") {
        return failed(object, names.words(), "another definition has taken the name");
    }
    match object.condition("Established") {
        Some(condition) if condition.holds() => ready(object, "is established"),
        Some(condition) => waiting(object, format!("is not established: {}", condition.words())),
        None => waiting(object, "is not established yet"),
    }
}

pub(super) fn api_service(object: &Object) -> Verdict {
    match object.condition("Available") {
        Some(condition) if condition.holds() => ready(object, "is available"),
        Some(condition) => waiting(object, format!("is not available: {}", condition.words())),
        None => waiting(object, "has not been looked at yet"),
    }
}

pub(super) fn webhooks(object: &Object) -> Verdict {
    let hooks = object.entries("/webhooks");
    let without: Vec<_> = hooks
        .iter()
        .filter(|h| h.pointer("/clientConfig/service").is_some())
        .filter(|h| {
            h.pointer("/clientConfig/caBundle").and_then(Value::as_str).is_none_or(str::is_empty)
        })
        .filter_map(|h| h.get("name").and_then(Value::as_str))
        .collect();
    if without.is_empty() {
        ready(object, format!("has the authority of its {} webhooks", hooks.len()))
    } else {
        waiting(object, format!("has no caBundle for {}", without.join(", ")))
    }
}
