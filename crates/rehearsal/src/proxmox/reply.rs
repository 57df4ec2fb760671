//! How Proxmox words its answers: data, errors with the text as reason phrase, bare refusals.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::turn::{HttpBody, HttpReply};

/// A good answer, before it is wrapped.
pub(super) struct Answer {
    data: Value,
    total: Option<usize>,
    changed: bool,
}

impl Answer {
    /// An answer that changed nothing.
    pub(super) fn read(data: Value) -> Self {
        Self { data, total: None, changed: false }
    }

    /// The answer of a call that changed the world.
    pub(super) fn changed(data: Value) -> Self {
        Self { data, total: None, changed: true }
    }

    /// A page of a longer list.
    pub(super) fn page(data: Value, total: usize) -> Self {
        Self { data, total: Some(total), changed: false }
    }

    /// The reply on the wire.
    pub(super) fn reply(self) -> HttpReply {
        let mut body = Map::new();
        body.insert("data".to_owned(), self.data);
        if let Some(total) = self.total {
            body.insert("total".to_owned(), json!(total));
        }
        let reply = json_reply(200, None, &Value::Object(body));
        if self.changed { reply.changed() } else { reply }
    }
}

/// Why a call was not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refusal {
    /// A text, in the body and as reason phrase.
    Failed {
        /// The HTTP status.
        status: u16,
        /// The text, without line end.
        text: String,
    },
    /// Parameters that are wrong, each with its reason.
    Invalid(BTreeMap<String, String>),
    /// Only a status line.
    Bare {
        /// The HTTP status.
        status: u16,
        /// The reason phrase.
        reason: String,
    },
    /// A plain text body.
    Plain {
        /// The HTTP status.
        status: u16,
        /// The text.
        text: String,
    },
}

impl Refusal {
    /// The usual failure, a 500.
    pub(super) fn failed(text: impl Into<String>) -> Self {
        Self::Failed { status: 500, text: text.into() }
    }

    /// A missing privilege.
    pub(super) fn denied(on: &str) -> Self {
        let text = if on.is_empty() {
            "Permission check failed".to_owned()
        } else {
            format!("Permission check failed ({on})")
        };
        Self::Failed { status: 403, text }
    }

    /// One wrong parameter.
    pub(super) fn parameter(name: &str, text: impl Into<String>) -> Self {
        Self::Invalid(BTreeMap::from([(name.to_owned(), text.into())]))
    }

    /// The reply on the wire.
    pub(super) fn reply(self) -> HttpReply {
        match self {
            Self::Failed { status, text } => {
                // A path that is not implemented is the one text without a line end.
                let message = if status == 501 { text.clone() } else { format!("{text}\n") };
                json_reply(status, Some(&text), &json!({"data": null, "message": message}))
            }
            Self::Invalid(errors) => {
                let text = "Parameter verification failed.";
                let body = json!({"data": null, "message": format!("{text}\n"), "errors": errors});
                json_reply(400, Some(text), &body)
            }
            Self::Bare { status, reason } => HttpReply {
                reason: Some(reason),
                headers: vec![("connection".to_owned(), "close".to_owned())],
                ..HttpReply::empty(status)
            },
            Self::Plain { status, text } => HttpReply {
                reason: first_line(&text),
                headers: vec![("connection".to_owned(), "close".to_owned())],
                body: HttpBody::Whole(Bytes::from(text)),
                ..HttpReply::empty(status)
            },
        }
    }
}

/// What a status is said with where no call explains it: the proxy's bare reasons, a denial, a lock that was waited
/// for in vain.
pub(crate) fn refusal(status: u16) -> HttpReply {
    let bare = |reason: &str| Refusal::Bare { status, reason: reason.to_owned() };
    let refused = match status {
        400 => {
            Refusal::parameter("vmid", "invalid format - value does not look like a valid VM ID")
        }
        401 => bare("Authentication failed!"),
        403 => Refusal::denied(""),
        500 => Refusal::failed("got timeout"),
        595 => bare("No route to host"),
        596 => bare("Connection timed out"),
        _ => bare(
            http::StatusCode::from_u16(status)
                .ok()
                .and_then(|s| s.canonical_reason())
                .unwrap_or("Error"),
        ),
    };
    refused.reply()
}

fn json_reply(status: u16, reason: Option<&str>, body: &Value) -> HttpReply {
    HttpReply {
        reason: reason.and_then(first_line),
        headers: vec![("content-type".to_owned(), "application/json;charset=UTF-8".to_owned())],
        ..HttpReply::json(status, body)
    }
}

fn first_line(text: &str) -> Option<String> {
    text.lines().next().map(str::to_owned)
}
