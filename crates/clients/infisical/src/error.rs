//! Why a call failed: what the server said, or what stood in its place, and what a person can do about it.

use castle_model::time::Moment;
use castle_model::{Class, Failure};
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use castle_wire::{CallError, Reply};
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::catalogue;
use crate::client::{LONGEST_PAUSE, retry_after};

/// How much of a page's title is told.
const LONGEST_TITLE: usize = 80;

/// What a server says when it says no.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The status.
    pub status: u16,
    /// The name of the error; on 404 that of an operation.
    pub error: String,
    /// Its words; several findings are joined.
    pub message: String,
    /// The server's name of the request, for its log.
    pub request: Option<String>,
    /// For how many seconds it asks to be left alone; 0 if it does not.
    pub wait: u32,
}

/// Why a call to Infisical failed.
#[derive(Debug, Error)]
pub enum InfisicalError {
    /// The client could not be made.
    #[error("cannot set up the Infisical client for {host}")]
    Open {
        /// The server.
        host: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// There is no answer.
    #[error("no answer from Infisical")]
    Call(#[source] CallError),
    /// The login was refused.
    #[error("{host} refuses the login ({}): {}{}", .refusal.status, .refusal.message, opens(*.until))]
    Login {
        /// The server.
        host: String,
        /// What it says.
        refusal: Refusal,
        /// When a lock that the server spoke of is over at the latest.
        until: Option<Moment>,
    },
    /// The server says no.
    #[error("{host} answers {}: {}{}", .refusal.status, .refusal.message, shown(.refusal.request.as_deref()))]
    Answer {
        /// The server.
        host: String,
        /// What it says.
        refusal: Refusal,
    },
    /// The server does not know the API that is spoken here.
    #[error("{host} is too old for the v4 API: version 0.150 or later is needed ({said})")]
    TooOld {
        /// The server.
        host: String,
        /// What it says.
        said: String,
    },
    /// Something else than Infisical answers: a proxy, a login page.
    #[error("what answers at {host} is not the API of Infisical: status {status}, {seen}")]
    Astray {
        /// Where we asked.
        host: String,
        /// The status.
        status: u16,
        /// What it sent, in a few words.
        seen: String,
    },
    /// The server hides a value, which would otherwise be taken for the value itself.
    #[error("{host} hides the value of `{key}`")]
    Hidden {
        /// The server.
        host: String,
        /// Whose value; several are joined.
        key: String,
    },
    /// A key that no secret can have; nothing was sent.
    #[error("`{key}` cannot be the name of a secret in Infisical: {why}")]
    Name {
        /// The key.
        key: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A path that no folder can have; nothing was sent.
    #[error("`{name}` in the path {path} cannot be the name of a folder in Infisical")]
    Folder {
        /// The whole path.
        path: String,
        /// The name in it that cannot be.
        name: String,
    },
    /// More than the server takes at once; nothing was sent.
    #[error("{call} would send {size} bytes, and Infisical takes {limit} at once")]
    TooLarge {
        /// Method and path.
        call: String,
        /// How much it is.
        size: usize,
        /// How much it may be.
        limit: usize,
    },
    /// The server answers something that we do not understand.
    #[error("{host} gave an answer to {call} that cannot be read: {why}")]
    Malformed {
        /// The server.
        host: String,
        /// Method and path.
        call: String,
        /// What is wrong with it.
        why: String,
    },
}

fn shown(request: Option<&str>) -> String {
    request.map(|id| format!(" ({id})")).unwrap_or_default()
}

fn opens(until: Option<Moment>) -> String {
    until.map(|at| format!("; open again by {at} at the latest")).unwrap_or_default()
}

impl InfisicalError {
    /// Decides whether the same call may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Call(error) => error.class(),
            Self::Login { refusal, .. } | Self::Answer { refusal, .. } => {
                catalogue::meaning(refusal.status, &refusal.message).class
            }
            Self::Astray { status: 502..=504, .. } => Class::Transient,
            Self::Astray { .. }
            | Self::Open { .. }
            | Self::TooOld { .. }
            | Self::Name { .. }
            | Self::Folder { .. }
            | Self::TooLarge { .. } => Class::Invalid,
            Self::Hidden { .. } => Class::Denied,
            Self::Malformed { .. } => Class::Bug,
        }
    }

    /// Whether the folder or secret asked about does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Answer { .. }) && self.class() == Class::Gone
    }

    /// Whether something is there already that was to be made.
    #[must_use]
    pub fn is_existing(&self) -> bool {
        matches!(self, Self::Answer { .. }) && self.class() == Class::Conflict
    }

    /// Whether the server says that the token is no good any more, so that another one would help. A missing right is
    /// never that.
    pub(crate) fn is_stale_token(&self) -> bool {
        matches!(self, Self::Answer { refusal, .. }
            if refusal.status == 401 || (refusal.status == 403 && refusal.error == "TokenError"))
    }

    /// Whether it is not known if the call had an effect: look before trying again.
    pub(crate) fn is_undecided(&self) -> bool {
        match self {
            Self::Answer { refusal, .. } => refusal.status >= 500,
            Self::Astray { status, .. } => *status >= 500,
            Self::Call(error) => error.sent() == castle_wire::rest::Sent::Unknown,
            _ => false,
        }
    }

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let hint = match self {
            Self::Call(error) => return error.failure(what),
            Self::Login { refusal, .. } | Self::Answer { refusal, .. } => {
                let (status, message) = (refusal.status, &refusal.message);
                return catalogue::failure(status, message, what, self.to_string())
                    .wait(refusal.wait);
            }
            Self::Open { .. } => None,
            Self::TooOld { .. } => Some("upgrade the server"),
            Self::Astray { .. } => Some(
                "compare `host` with the address of Infisical itself; a proxy or a login page in front of it must let the \
                 API through",
            ),
            Self::Hidden { .. } => {
                Some("give the machine identity the right to read values (readValue) on this path")
            }
            Self::Name { .. } => {
                Some("rename it: everything but a colon and a slash is taken, up to 500 characters")
            }
            Self::Folder { .. } => {
                Some("use letters, digits, `-` and `_` only: Infisical takes no dot in a folder")
            }
            Self::TooLarge { .. } => Some("keep less in one entry"),
            Self::Malformed { .. } => Some(
                "is it Infisical that answers? Compare `host` with its address; if it is right, please report this with the \
                 version of Infisical",
            ),
        };
        let failure = Failure::new(self.class(), what, chain(self));
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// The frame of every error.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Frame {
    req_id: Option<String>,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    error: String,
}

/// Reads an answer that is not a success.
pub(crate) fn refused(host: &str, reply: &Reply) -> InfisicalError {
    let host = host.to_owned();
    if let Some(seen) = page(reply) {
        return InfisicalError::Astray { host, status: reply.status.as_u16(), seen };
    }
    let refusal = refusal(reply);
    // Only the router answers without an id: no such route, and every route of ours is one of v4's time.
    let unrouted = refusal.status == 404 && refusal.error == "Not Found";
    if unrouted && refusal.request.is_none() && refusal.message.starts_with("Route ") {
        return InfisicalError::TooOld { host, said: refusal.message };
    }
    InfisicalError::Answer { host, refusal }
}

/// What somebody else sent in the place of Infisical: where it leads, or how the page calls itself. Never the page.
pub(crate) fn page(reply: &Reply) -> Option<String> {
    if reply.status.is_redirection() {
        let location = reply.header("location").unwrap_or("nowhere");
        let location = location.split(['?', '#']).next().unwrap_or_default();
        return Some(format!("it sends us to {}", plain(location)));
    }
    let html = reply.header("content-type").is_some_and(|kind| kind.starts_with("text/html"));
    let text = reply.text();
    if !html && !text.trim_start().starts_with('<') {
        return None;
    }
    // Found in the lower-cased text, whose bytes are where those of the text are.
    let lower = text.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        let end = begin + lower[begin..].find('<')?;
        Some(plain(&text[begin..end])).filter(|title| !title.is_empty())
    });
    Some(match title {
        Some(title) => format!("a page titled \"{title}\""),
        None => "a page without a title".to_owned(),
    })
}

/// Foreign text in one short line.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(LONGEST_TITLE).collect()
}

/// What a refusing answer says.
fn refusal(reply: &Reply) -> Refusal {
    let status = reply.status.as_u16();
    let wait = match (status, retry_after(reply)) {
        (429 | 503, Some(seconds)) => seconds,
        (429, None) => u32::try_from(LONGEST_PAUSE.as_secs()).unwrap_or(u32::MAX),
        _ => 0,
    };
    let reason = || reply.status.canonical_reason().unwrap_or("no reason given").to_owned();
    let Ok(frame) = serde_json::from_slice::<Frame>(&reply.body) else {
        // Something in front of the server answered.
        return Refusal { status, error: String::new(), message: reason(), request: None, wait };
    };
    let message = match &frame.message {
        Value::String(text) => text.clone(),
        Value::Array(findings) => {
            let said: Vec<String> = findings.iter().map(finding).collect();
            said.join("; ")
        }
        Value::Null => reason(),
        other => other.to_string(),
    };
    Refusal { status, error: frame.error, message, request: frame.req_id, wait }
}

/// One finding of a validation: where, and what.
fn finding(value: &Value) -> String {
    let place: Vec<String> = value["path"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
        .collect();
    format!("{}: {}", place.join("."), value["message"].as_str().unwrap_or("not accepted"))
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::{HeaderMap, StatusCode};

    use super::*;

    fn reply(status: u16, body: &'static str) -> Reply {
        Reply {
            status: StatusCode::from_u16(status).unwrap(),
            reason: None,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        }
    }

    #[test]
    fn refusals_are_read_as_recorded() {
        let one = refusal(&reply(
            401,
            r#"{"reqId":"req-f4dd","statusCode":401,"message":"Invalid credentials","error":"UnauthorizedError"}"#,
        ));
        assert_eq!(one.message, "Invalid credentials");
        assert_eq!(one.request.as_deref(), Some("req-f4dd"));
        let many = refusal(&reply(
            422,
            r#"{"reqId":"r","statusCode":422,"error":"ValidationFailure","message":[
                {"code":"custom","message":"Secret name cannot contain colon or forward slash.","path":["secrets",0,"secretKey"]},
                {"code":"invalid_type","message":"Required","path":["environment"]}]}"#,
        ));
        assert_eq!(
            many.message,
            "secrets.0.secretKey: Secret name cannot contain colon or forward slash.; environment: Required"
        );
        assert_eq!(refusal(&reply(502, "")).message, "Bad Gateway");
        assert_eq!(refusal(&reply(404, "{}")).message, "Not Found");
    }

    #[test]
    fn a_page_is_named_by_its_title_and_never_shown() {
        for (body, seen) in [
            ("<html><head><TITLE lang=en>Sign\n in </TITLE>", Some("a page titled \"Sign in\"")),
            ("<!doctype html><title></title>hunter2", Some("a page without a title")),
            ("<html><title>cut off", Some("a page without a title")),
            ("{}", None),
        ] {
            assert_eq!(page(&reply(200, body)).as_deref(), seen);
        }
    }

    #[test]
    fn a_route_that_is_not_there_is_told_from_a_thing_that_is_not_there() {
        let route = r#"{"message":"Route GET:/api/v4/secrets not found","error":"Not Found","statusCode":404}"#;
        assert!(matches!(refused("h", &reply(404, route)), InfisicalError::TooOld { .. }));
        let folder = r#"{"reqId":"r","message":"Folder with path '/x' not found","error":"Not Found","statusCode":404}"#;
        assert!(refused("h", &reply(404, folder)).is_missing());
    }
}
