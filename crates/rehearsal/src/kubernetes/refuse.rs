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
}

impl No {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into() }
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.full_name()))
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
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn invalid(resource: &Resource, name: &str, why: &str) -> Self {
        let kind = match resource.group.as_str() {
            "" => resource.kind.clone(),
            group => format!("{}.{group}", resource.kind),
        };
        Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {why}"))
    }

    pub(super) fn status(&self) -> Value {
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "code": self.code,
        })
    }

    pub(super) fn reply(&self) -> HttpReply {
        HttpReply::json(self.code, &self.status())
    }
}
