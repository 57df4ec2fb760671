//! How the API server says no: `Status` objects with its own words.

use serde_json::{Value, json};

use super::kinds::Resource;
use crate::turn::HttpReply;

/// A refusal, on its way to the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct No {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// What the object is, or what each part of the refusal is about.
    pub(super) details: Option<Box<Value>>,
}

impl No {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None }
    }

    /// The same refusal, about an object of a kind.
    pub(super) fn about(self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({"name": name, "group": resource.group, "kind": resource.plural});
        if resource.group.is_empty() {
            details.as_object_mut().map(|map| map.shift_remove("group"));
        }
        Self { details: Some(Box::new(details)), ..self }
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.full_name()))
            .about(resource, name)
    }

    pub(super) fn no_such_path() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(super) fn exists(resource: &Resource, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{} \"{name}\" already exists", resource.full_name()),
        )
        .about(resource, name)
    }

    pub(super) fn modified(resource: &Resource, name: &str) -> Self {
        let full = resource.full_name();
        Self::new(
            409,
            "Conflict",
            format!(
                "Operation cannot be fulfilled on {full} \"{name}\": the object has been modified; please apply your changes to the latest version and try again"
            ),
        )
        .about(resource, name)
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn invalid(resource: &Resource, name: &str, why: &str) -> Self {
        let kind = match resource.group.as_str() {
            "" => resource.kind.clone(),
            group => format!("{}.{group}", resource.kind),
        };
        let mut no = Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {why}"));
        let (field, message) = why.split_once(": ").unwrap_or(("", why));
        let reason = match message.split(':').next() {
            Some("Required value") => "FieldValueRequired",
            Some("Forbidden") => "FieldValueForbidden",
            Some("Unsupported value") => "FieldValueNotSupported",
            _ => "FieldValueInvalid",
        };
        let mut details = json!({"name": name, "group": resource.group, "kind": resource.kind,
            "causes": [{"reason": reason, "message": message, "field": field}]});
        if resource.group.is_empty() {
            details.as_object_mut().map(|map| map.shift_remove("group"));
        }
        no.details = Some(Box::new(details));
        no
    }

    /// Other managers own what an applier wants otherwise: each with its fields.
    pub(super) fn conflicts(mut all: Vec<(String, Vec<String>)>) -> Self {
        all.sort();
        let causes: Vec<Value> = all
            .iter()
            .flat_map(|(manager, fields)| fields.iter().map(move |field| (manager, field)))
            .map(|(manager, field)| {
                let message = format!("conflict with {manager}");
                json!({"reason": "FieldManagerConflict", "message": message, "field": field})
            })
            .collect();
        let message = match (causes.len(), all.as_slice()) {
            (1, [(manager, fields)]) => {
                format!("Apply failed with 1 conflict: conflict with {manager}: {}", fields[0])
            }
            (count, all) => {
                let lines: Vec<String> = all
                    .iter()
                    .map(|(manager, fields)| {
                        format!("conflicts with {manager}:\n- {}", fields.join("\n- "))
                    })
                    .collect();
                format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
            }
        };
        let details = Some(Box::new(json!({"causes": causes})));
        Self { details, ..Self::new(409, "Conflict", message) }
    }

    /// An applied list has an entry twice.
    pub(super) fn duplicate(config: &Value, why: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &config["metadata"];
        let message = format!(
            "failed to create typed patch object ({}/{}; {}, Kind={}): {why}",
            text(&metadata["namespace"]),
            text(&metadata["name"]),
            text(&config["apiVersion"]),
            text(&config["kind"]),
        );
        Self::new(500, "", message)
    }

    /// Something that the server needed failed.
    pub(super) fn internal(why: &str) -> Self {
        let details = Some(Box::new(json!({"causes": [{"message": why}]})));
        let message = format!("Internal error occurred: {why}");
        Self { details, ..Self::new(500, "InternalError", message) }
    }

    pub(super) fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if let Some(details) = &self.details {
            status["details"] = (**details).clone();
        }
        status["code"] = self.code.into();
        status
    }

    pub(super) fn reply(&self) -> HttpReply {
        HttpReply::json(self.code, &self.status())
    }
}
