//! How the API server says no: `Status` objects with its own words.

use serde_json::{Value, json};

use super::kinds::Resource;
use crate::turn::{HttpBody, HttpReply};

/// A refusal, on its way to the client.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct No {
    pub(super) code: u16,
    pub(super) reason: &'static str,
    pub(super) message: String,
    /// What the object is, or what each part of the refusal is about.
    pub(super) details: Option<Box<Value>>,
    /// Where a list could go on.
    pub(super) proceed: Option<String>,
    /// Whether the answer is the message and nothing else.
    plain: bool,
}

impl No {
    pub(super) fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, proceed: None, plain: false }
    }

    /// The same refusal, with what it is about.
    pub(super) fn with(self, details: Value) -> Self {
        Self { details: Some(Box::new(details)), ..self }
    }

    /// The same refusal, about an object of a kind.
    pub(super) fn about(self, resource: &Resource, name: &str) -> Self {
        let mut details = json!({"name": name, "group": resource.group, "kind": resource.plural});
        for nothing in ["group", "name"] {
            if details[nothing] == "" {
                details.as_object_mut().map(|map| map.shift_remove(nothing));
            }
        }
        Self { details: Some(Box::new(details)), ..self }
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", resource.full_name()))
            .about(resource, name)
    }

    /// Nothing of the kind is served at a path; the answer is plain text.
    pub(super) fn no_such_group() -> Self {
        Self { plain: true, ..Self::new(404, "NotFound", "404 page not found\n") }
    }

    pub(super) fn no_such_path() -> Self {
        let no = Self::new(404, "NotFound", "the server could not find the requested resource");
        no.with(json!({}))
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
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    pub(super) fn conflict(resource: &Resource, name: &str, why: &str) -> Self {
        let full = resource.full_name();
        let message = format!("Operation cannot be fulfilled on {full} \"{name}\": {why}");
        Self::new(409, "Conflict", message).about(resource, name)
    }

    pub(super) fn forbidden(resource: &Resource, name: &str, why: &str) -> Self {
        let full = resource.full_name();
        Self::new(403, "Forbidden", format!("{full} \"{name}\" is forbidden: {why}"))
            .about(resource, name)
    }

    /// A patch that cannot be done.
    pub(super) fn unprocessable() -> Self {
        let message = "the server rejected our request due to an error in our request";
        Self { details: Some(Box::new(json!({}))), ..Self::new(422, "Invalid", message) }
    }

    /// A body in a form that the server does not take.
    pub(super) fn media(forms: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {forms}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A place that the server has not come to yet.
    pub(super) fn too_large(asked: u64, now: u64) -> Self {
        let details = json!({"retryAfterSeconds": 1, "causes": [
            {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]});
        let message = format!("Timeout: Too large resource version: {asked}, current: {now}");
        Self { details: Some(Box::new(details)), ..Self::new(504, "Timeout", message) }
    }

    /// Fields that come twice or that the kind does not have, where the client is strict about them.
    pub(super) fn strict(resource: &Resource, fields: &[String]) -> Self {
        let (kind, version) = (&resource.kind, &resource.version);
        Self::bad(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: strict decoding error: {}",
            fields.join(", ")
        ))
    }

    /// A patch of what then is no object, in the eyes of who is strict.
    pub(super) fn strict_patch(shown: &str, faults: &[String]) -> Self {
        let why = format!("Invalid value: {shown:?}: strict decoding error: {}", faults.join(", "));
        let cause = json!({"reason": "FieldValueInvalid", "message": why, "field": "patch"});
        let no = Self::new(422, "Invalid", format!(" \"\" is invalid: patch: {why}"));
        no.with(json!({"causes": [cause]}))
    }

    /// The server knows the path, and not what is asked of it.
    pub(super) fn not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message)
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(super) fn invalid(resource: &Resource, name: &str, why: &str) -> Self {
        Self::invalid_as(resource, &resource.kind, name, why)
    }

    /// Invalid, in the words of the part of the server that knows the kind only by its plural.
    pub(super) fn invalid_plural(resource: &Resource, name: &str, why: &str) -> Self {
        Self::invalid_as(resource, &resource.plural, name, why)
    }

    fn invalid_as(resource: &Resource, called: &str, name: &str, why: &str) -> Self {
        let kind = match resource.group.as_str() {
            "" => called.to_owned(),
            group => format!("{called}.{group}"),
        };
        let mut no = Self::new(422, "Invalid", format!("{kind} \"{name}\" is invalid: {why}"));
        let (field, message) = why.split_once(": ").unwrap_or(("", why));
        let reason = match message.split(':').next() {
            Some("Required value") => "FieldValueRequired",
            Some("Forbidden") => "FieldValueForbidden",
            Some("Unsupported value") => "FieldValueNotSupported",
            _ => "FieldValueInvalid",
        };
        let mut details = json!({"name": name, "group": resource.group, "kind": called,
            "causes": [{"reason": reason, "message": message, "field": field}]});
        for nothing in ["group", "name"] {
            if details[nothing] == "" {
                details.as_object_mut().map(|map| map.shift_remove(nothing));
            }
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

    /// An applied configuration is not of its kind's shape.
    pub(super) fn untyped(config: &Value, why: &str) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let metadata = &config["metadata"];
        let version = text(&config["apiVersion"]);
        let slash = if version.contains('/') { "" } else { "/" };
        let message = format!(
            "failed to create typed patch object ({}/{}; {slash}{version}, Kind={}): {why}",
            text(&metadata["namespace"]),
            text(&metadata["name"]),
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
        if let Some(proceed) = &self.proceed {
            status["metadata"]["continue"] = proceed.clone().into();
        }
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
        if self.plain {
            let mut reply = HttpReply::empty(self.code);
            reply.headers.push(("content-type".into(), "text/plain; charset=utf-8".into()));
            reply.body = HttpBody::Whole(self.message.clone().into());
            return reply;
        }
        HttpReply::json(self.code, &self.status())
    }
}

/// What a status is said with where no call explains it.
pub(crate) fn refusal(status: u16) -> HttpReply {
    let refused = match status {
        400 => No::new(400, "BadRequest", "the server rejected our request for an unknown reason"),
        401 => No::new(401, "Unauthorized", "Unauthorized"),
        403 => No::new(403, "Forbidden", "forbidden: User \"castle\" cannot do this"),
        404 => No::no_such_path(),
        409 => {
            let why = "the object has been modified; please apply your changes to the latest version and try again";
            No::new(409, "Conflict", format!("Operation cannot be fulfilled: {why}"))
        }
        410 => No::new(
            410,
            "Expired",
            "The provided continue parameter is too old to display a consistent list result.",
        ),
        429 => No::new(429, "TooManyRequests", "Too many requests, please try again later."),
        503 => No::new(503, "ServiceUnavailable", "apiserver not ready"),
        504 => {
            No::new(504, "Timeout", "Timeout: request did not complete within the allotted timeout")
        }
        500 => No::internal("etcdserver: leader changed"),
        _ => No::new(status, "", "the server was not able to process the request"),
    };
    refused.reply()
}
