//! Rules for what the API server itself learns from: definitions, aggregated APIs, webhooks.

use castle_model::Verdict;
use serde_json::Value;

use super::{failed, ready, waiting};
use crate::object::Object;

/// Bundles that generators write where a certificate is to be put in later: an end of line or two, encoded.
const PLACEHOLDERS: [&str; 3] = ["", "Cg==", "Cgo="];

pub(super) fn definition(object: &Object) -> Verdict {
    if let Some(names) = object.condition("NamesAccepted").filter(|c| c.status() == "False") {
        return failed(object, names.words(), "another definition has taken the name");
    }
    match object.condition("Established") {
        // Waiting for the conversion here would wait for pods that are applied after the definition.
        Some(condition) if condition.holds() => match object.at("/spec/conversion/webhook") {
            Some(hook)
                if object.text("/spec/conversion/strategy") == Some("Webhook")
                    && lacks_authority(hook) =>
            {
                ready(object, "is established; its conversion webhook has no caBundle yet")
            }
            _ => ready(object, "is established"),
        },
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

/// As far as the object alone tells: that each webhook can be found and believed, not that it answers.
pub(super) fn webhooks(object: &Object) -> Verdict {
    let hooks = object.entries("/webhooks");
    let named = |wrong: &dyn Fn(&Value) -> bool| {
        let names: Vec<_> = hooks
            .iter()
            .filter(|hook| wrong(hook))
            .map(|hook| hook.get("name").and_then(Value::as_str).unwrap_or("?"))
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = named(&lacks_place) {
        return waiting(object, format!("says no service and no address for {names}"));
    }
    if let Some(names) = named(&lacks_authority) {
        return waiting(object, format!("has no caBundle for {names}"));
    }
    ready(object, format!("has the authority of its {} webhooks", hooks.len()))
}

/// Whether a webhook names neither an address nor a service.
fn lacks_place(hook: &Value) -> bool {
    hook.pointer("/clientConfig/url").is_none() && hook.pointer("/clientConfig/service").is_none()
}

/// Whether a webhook behind a service has nothing that its certificate could be believed by.
fn lacks_authority(hook: &Value) -> bool {
    hook.pointer("/clientConfig/service").is_some()
        && hook
            .pointer("/clientConfig/caBundle")
            .and_then(Value::as_str)
            .is_none_or(|bundle| PLACEHOLDERS.contains(&bundle.trim()))
}
