//! The client itself: one server, one identity, one way to read answers and errors.

use std::sync::Arc;

use castle_model::{Class, Failure, Secret};
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use castle_wire::{CallError, Reply, Rest, Verify, World};
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::catalogue;
use crate::session::{Credentials, Login, Session};

/// A client of one Infisical server as one machine identity. Clones share the login.
#[derive(Clone)]
pub struct Infisical {
    rest: Rest,
    credentials: Credentials,
    session: Arc<Mutex<Session>>,
}

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
    #[error("{host} refuses the login ({}): {}", .refusal.status, .refusal.message)]
    Login {
        /// The server.
        host: String,
        /// What it says.
        refusal: Refusal,
    },
    /// The server says no.
    #[error("{host} answers {}: {}{}", .refusal.status, .refusal.message, shown(.refusal.request.as_deref()))]
    Answer {
        /// The server.
        host: String,
        /// What it says.
        refusal: Refusal,
    },
    /// The server hides a value, which would otherwise be taken for the value itself.
    #[error("{host} hides the value of `{key}`")]
    Hidden {
        /// The server.
        host: String,
        /// Whose value.
        key: String,
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

impl InfisicalError {
    /// Decides whether the same call may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Open { .. } => Class::Invalid,
            Self::Call(error) => error.class(),
            Self::Login { refusal, .. } | Self::Answer { refusal, .. } => {
                catalogue::meaning(refusal.status, &refusal.message).class
            }
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

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        match self {
            Self::Call(error) => error.failure(what),
            Self::Login { refusal, .. } | Self::Answer { refusal, .. } => {
                catalogue::failure(refusal.status, &refusal.message, what, self.to_string())
            }
            Self::Hidden { .. } => Failure::new(self.class(), what, self.to_string()).hint(
                "give the machine identity the right to read values (readValue) on this path",
            ),
            _ => Failure::new(self.class(), what, chain(self)),
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

impl Infisical {
    /// A client of the server at `host`; nothing is sent yet.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn new(
        world: &World,
        host: &str,
        credentials: Credentials,
    ) -> Result<Self, InfisicalError> {
        let rest = Rest::open(world, host, &Verify::Roots(world.roots.clone()))
            .map_err(|source| InfisicalError::Open { host: host.to_owned(), source })?;
        Ok(Self { rest, credentials, session: Arc::default() })
    }

    /// The server's address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.rest.base()
    }

    /// Logs in, unless that is done.
    ///
    /// # Errors
    /// If the server does not answer or refuses; a refusal is remembered and never provoked again.
    pub async fn login(&self) -> Result<(), InfisicalError> {
        self.token().await.map(drop)
    }

    async fn token(&self) -> Result<Secret, InfisicalError> {
        let mut session = self.session.lock().await;
        if let Some(token) = &session.token {
            return Ok(token.clone());
        }
        if let Some(refusal) = &session.refused {
            return Err(self.login_refused(refusal.clone()));
        }
        let path = "/api/v1/auth/universal-auth/login";
        let body = json!({
            "clientId": self.credentials.client_id.expose().trim(),
            "clientSecret": self.credentials.client_secret.expose().trim(),
        });
        let reply = self.send(Method::POST, path, None, Some(&body)).await?;
        match self.judge::<Login>("POST login", &reply) {
            Ok(login) => {
                let token = Secret::new(login.access_token);
                session.token = Some(token.clone());
                Ok(token)
            }
            Err(InfisicalError::Answer { refusal, .. }) => {
                if refusal.status == 401 {
                    session.refused = Some(refusal.clone());
                }
                Err(self.login_refused(refusal))
            }
            Err(error) => Err(error),
        }
    }

    fn login_refused(&self, refusal: Refusal) -> InfisicalError {
        InfisicalError::Login { host: self.host().to_owned(), refusal }
    }

    /// One call as the identity. An expired token is replaced once; a missing right never is.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<&Value>,
    ) -> Result<T, InfisicalError> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let call = format!("{method} {path}");
        let token = self.token().await?;
        let reply = self.send(method.clone(), path_and_query, Some(&token), body).await?;
        let first = self.judge(&call, &reply);
        let expired = match &first {
            Err(InfisicalError::Answer { refusal, .. }) => {
                refusal.status == 401 || (refusal.status == 403 && refusal.error == "TokenError")
            }
            _ => false,
        };
        if !expired {
            return first;
        }
        {
            let mut session = self.session.lock().await;
            if session.token.as_ref() == Some(&token) {
                session.token = None;
            }
        }
        let token = self.token().await?;
        let reply = self.send(method, path_and_query, Some(&token), body).await?;
        self.judge(&call, &reply)
    }

    async fn send(
        &self,
        method: Method,
        path_and_query: &str,
        token: Option<&Secret>,
        body: Option<&Value>,
    ) -> Result<Reply, InfisicalError> {
        let mut headers = Vec::new();
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {}", token.expose()));
            let mut value =
                value.map_err(|_| self.malformed("POST login", "the token cannot be sent"))?;
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
        if body.is_some() {
            headers.push((CONTENT_TYPE, HeaderValue::from_static("application/json")));
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        self.rest.request(method, path_and_query, headers, body).await.map_err(InfisicalError::Call)
    }

    pub(crate) fn malformed(&self, call: &str, why: impl Into<String>) -> InfisicalError {
        let host = self.host().to_owned();
        InfisicalError::Malformed { host, call: call.to_owned(), why: why.into() }
    }

    fn judge<T: DeserializeOwned>(&self, call: &str, reply: &Reply) -> Result<T, InfisicalError> {
        if reply.status.is_success() {
            // The reader's own words can quote the text, so only the place is told.
            return serde_json::from_slice(&reply.body).map_err(|e| {
                self.malformed(
                    call,
                    format!("{:?} error at line {}, column {}", e.classify(), e.line(), e.column()),
                )
            });
        }
        Err(InfisicalError::Answer { host: self.host().to_owned(), refusal: refusal(reply) })
    }
}

/// What a refusing answer says.
fn refusal(reply: &Reply) -> Refusal {
    let status = reply.status.as_u16();
    let Ok(frame) = serde_json::from_slice::<Frame>(&reply.body) else {
        // Something in front of the server answered.
        let message = reply.status.canonical_reason().unwrap_or("no reason given").to_owned();
        return Refusal { status, error: String::new(), message, request: None };
    };
    let message = match &frame.message {
        Value::String(text) => text.clone(),
        Value::Array(findings) => {
            let said: Vec<String> = findings.iter().map(finding).collect();
            said.join("; ")
        }
        other => other.to_string(),
    };
    Refusal { status, error: frame.error, message, request: frame.req_id }
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

    fn said(status: u16, body: &'static str) -> Refusal {
        refusal(&Reply {
            status: StatusCode::from_u16(status).unwrap(),
            reason: None,
            headers: HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        })
    }

    #[test]
    fn refusals_are_read_as_recorded() {
        let one = said(
            401,
            r#"{"reqId":"req-f4dd","statusCode":401,"message":"Invalid credentials","error":"UnauthorizedError"}"#,
        );
        assert_eq!(one.message, "Invalid credentials");
        assert_eq!(one.request.as_deref(), Some("req-f4dd"));
        let many = said(
            422,
            r#"{"reqId":"r","statusCode":422,"error":"ValidationFailure","message":[
                {"code":"custom","message":"Secret name cannot contain colon or forward slash.","path":["secrets",0,"secretKey"]},
                {"code":"invalid_type","message":"Required","path":["environment"]}]}"#,
        );
        assert_eq!(
            many.message,
            "secrets.0.secretKey: Secret name cannot contain colon or forward slash.; environment: Required"
        );
        assert_eq!(said(502, "<html>").message, "Bad Gateway");
    }

    #[test]
    fn a_refused_login_names_the_host() {
        let refusal =
            said(401, r#"{"statusCode":401,"message":"Invalid credentials","error":"x"}"#);
        let error = InfisicalError::Login { host: "https://eu.infisical.com".to_owned(), refusal };
        let failure = error.failure("log in");
        assert_eq!(
            failure.why,
            "https://eu.infisical.com refuses the login (401): Invalid credentials"
        );
        assert_eq!(failure.class, Class::Denied);
    }
}
