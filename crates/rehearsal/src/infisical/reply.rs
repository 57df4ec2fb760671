//! How Infisical words its answers: bare JSON if all is well, one envelope for every error.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::turn::{HttpCall, HttpReply};

/// A good answer and whether the call changed the world.
pub(super) struct Answer {
    body: Value,
    changed: bool,
    tagged: bool,
}

impl Answer {
    /// An answer that changed nothing.
    pub(super) fn read(body: Value) -> Self {
        Self { body, changed: false, tagged: false }
    }

    /// An answer that bears a tag, by which the caller can ask whether it is still the same.
    pub(super) fn tagged(body: Value) -> Self {
        Self { body, changed: false, tagged: true }
    }

    /// The answer of a call that changed the world.
    pub(super) fn changed(body: Value) -> Self {
        Self { body, changed: true, tagged: false }
    }

    /// The reply on the wire. Success is always 200, or 304 where the caller has it already.
    pub(super) fn reply(self, call: &HttpCall) -> HttpReply {
        let mut reply = json_reply(200, &self.body);
        if self.tagged {
            let tag = URL_SAFE_NO_PAD.encode(Sha256::digest(self.body.to_string()));
            let tag = format!("\"{tag}\"");
            if call.header("if-none-match") == Some(&tag) {
                reply = HttpReply::empty(304);
            }
            reply.headers.push(("etag".to_owned(), tag));
        }
        if self.changed { reply.changed() } else { reply }
    }
}

/// Why a call was not served.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Refusal {
    status: u16,
    error: String,
    message: Value,
    /// The rules that were looked at, for a missing permission.
    details: Option<Box<Value>>,
    /// Routes that do not exist are answered without an id.
    anonymous: bool,
    changed: bool,
}

impl Refusal {
    /// A refusal by status, name and text.
    pub(super) fn new(status: u16, error: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            error: error.to_owned(),
            message: Value::String(message.into()),
            details: None,
            anonymous: false,
            changed: false,
        }
    }

    /// 401.
    pub(super) fn unauthorized(message: &str) -> Self {
        Self::new(401, "UnauthorizedError", message)
    }

    /// 403 for a token that is no good.
    pub(super) fn token(message: &str) -> Self {
        Self::new(403, "TokenError", message)
    }

    /// 404 under the usual name.
    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(404, "NotFound", message)
    }

    /// 400.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 403 for what neither role nor rule allows; with the rules that were looked at.
    pub(super) fn denied(action: &str, subject: &str, rules: Value) -> Self {
        let message = format!("You are not allowed to {action} on {subject}");
        Self { details: Some(Box::new(rules)), ..Self::new(403, "PermissionDenied", message) }
    }

    /// 500, whatever went wrong inside.
    pub(super) fn broken() -> Self {
        Self::new(500, "InternalServerError", "Something went wrong")
    }

    /// 422 with what is wrong about each field.
    pub(super) fn invalid(issues: Vec<Value>) -> Self {
        Self { message: Value::Array(issues), ..Self::new(422, "ValidationFailure", "") }
    }

    /// A route that does not exist.
    pub(super) fn no_route(method: &str, path: &str) -> Self {
        let message = format!("Route {method}:{path} not found");
        Self { anonymous: true, ..Self::new(404, "Not Found", message) }
    }

    /// Says that the world changed all the same: a failed login is counted.
    pub(super) fn changed(mut self) -> Self {
        self.changed = true;
        self
    }

    /// The text, for those who only want to read it.
    pub(super) fn text(&self) -> String {
        self.message.as_str().map_or_else(|| self.message.to_string(), str::to_owned)
    }

    /// The reply on the wire.
    pub(super) fn reply(self, call: &HttpCall, now: u64) -> HttpReply {
        let body = if self.anonymous {
            json!({"message": self.message, "error": self.error, "statusCode": self.status})
        } else {
            let mut body = json!({
                "reqId": request_id(call, now),
                "statusCode": self.status,
                "message": self.message,
                "error": self.error,
            });
            if let Some(details) = self.details {
                body["details"] = *details;
            }
            body
        };
        let reply = json_reply(self.status, &body);
        if self.changed { reply.changed() } else { reply }
    }
}

/// What a status is said with where no call explains it.
pub(crate) fn refusal(call: &HttpCall, now: u64, status: u16) -> HttpReply {
    let refused = match status {
        400 => Refusal::bad_request("Bad Request"),
        401 => Refusal::unauthorized("Failed to authorize: token has been revoked"),
        403 => Refusal::token("Your token has expired. Please re-authenticate."),
        404 => Refusal::not_found("Secret not found"),
        429 => {
            Refusal::new(429, "RateLimitExceeded", "Rate limit exceeded. Please try again later")
        }
        500 => Refusal::broken(),
        _ => {
            let name = http::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
            Refusal::new(status, &name.unwrap_or("Error").replace(' ', ""), "Something went wrong")
        }
    };
    refused.reply(call, now)
}

/// A field that is not there.
pub(super) fn required(field: &str, expected: &str) -> Value {
    json!({
        "code": "invalid_type",
        "expected": expected,
        "received": "undefined",
        "path": [field],
        "message": "Required",
    })
}

/// A field that somebody looked at and disliked, by its path.
pub(super) fn disliked(path: &Value, message: &str) -> Value {
    json!({"code": "custom", "message": message, "path": path})
}

/// A reply as this server sends it.
pub(super) fn json_reply(status: u16, body: &Value) -> HttpReply {
    let mut reply = HttpReply::json(status, body);
    reply.headers = vec![("content-type".to_owned(), "application/json; charset=utf-8".to_owned())];
    reply
}

/// An id for a request. It comes from the request, not from the dice: what is refused is not logged.
fn request_id(call: &HttpCall, now: u64) -> String {
    let text = format!("{now} {} {}?{}", call.method, call.path, call.query);
    format!("req-{}", &hex::encode(Sha256::digest(text))[..14])
}
