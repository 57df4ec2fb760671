//! The client itself: one token, one way in, one way to read answers and errors.

use std::collections::BTreeMap;

use castle_model::spec::Trust;
use castle_model::{Bug, Class, Failure, Secret, planted};
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use castle_wire::tls::show_fingerprint;
use castle_wire::verifier::Fault;
use castle_wire::{CallError, HandshakeError, Reply, Rest, Verify, World};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;

use crate::catalogue;
use crate::form;
use crate::lenient;

/// The path in front of every call.
const PREFIX: &str = "/api2/json";

/// A client of one Proxmox cluster.
#[derive(Clone)]
pub struct Proxmox {
    rest: Rest,
    authorization: HeaderValue,
    /// The token's name, as tasks bear it.
    name: Secret,
}

/// Why a call to Proxmox failed.
#[derive(Debug, Error)]
pub enum ProxmoxError {
    /// The client could not be made.
    #[error("cannot set up the Proxmox client for {endpoint}")]
    Open {
        /// The API's address.
        endpoint: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// The token holds characters that no header takes.
    #[error("the Proxmox token holds characters that cannot be sent")]
    Token,
    /// There is no answer.
    #[error("no answer from Proxmox")]
    Call(#[source] CallError),
    /// Proxmox says no.
    #[error("Proxmox answers {status}: {text}")]
    Answer {
        /// The status.
        status: StatusCode,
        /// Its words, with those about single parameters.
        text: String,
    },
    /// What answers sends us elsewhere. Proxmox' API never does.
    #[error("what answers at {endpoint} is not the API of Proxmox: it sends us to {location}")]
    Redirect {
        /// Where we asked.
        endpoint: String,
        /// Where it sends us.
        location: String,
    },
    /// Proxmox answers something that we do not understand.
    #[error("Proxmox gave an answer to {call} that cannot be read: {why}")]
    Malformed {
        /// Method and path.
        call: String,
        /// What is wrong with it.
        why: String,
    },
}

impl ProxmoxError {
    /// Decides whether the same call may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Open { .. } | Self::Token | Self::Redirect { .. } => Class::Invalid,
            Self::Call(error) => error.class(),
            Self::Answer { status, text } => catalogue::meaning(status.as_u16(), text).class,
            Self::Malformed { .. } => Class::Bug,
        }
    }

    /// Whether Proxmox says that the guest, volume or task asked about does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        let gone = matches!(self, Self::Answer { .. }) && self.class() == Class::Gone;
        gone || planted(Bug::UnreachableIsGone)
    }

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        match self {
            Self::Call(error) => {
                let mut failure = error.failure(what);
                if let CallError::Connect { source, .. } = error {
                    failure.hint = source.handshake().and_then(cure).or(failure.hint);
                }
                failure
            }
            Self::Redirect { .. } => Failure::new(self.class(), what, chain(self)).hint(
                "compare `endpoint` with the address of the Proxmox host; its API listens on port 8006",
            ),
            Self::Answer { status, text } => catalogue::failure(status.as_u16(), text, what),
            Self::Malformed { .. } => Failure::new(self.class(), what, chain(self)).hint(
                "is it Proxmox that answers? Compare `endpoint` with the address of the host; if it is right, please report this \
                 with the version of Proxmox VE",
            ),
            _ => Failure::new(self.class(), what, chain(self)),
        }
    }
}

/// An API token, whole: `USER@REALM!ID=SECRET`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token(Secret);

impl Token {
    /// A token from its name (`USER@REALM!ID`) and its secret.
    #[must_use]
    pub fn of(id: &Secret, secret: &Secret) -> Self {
        Self(Secret::new(format!("{}={}", id.expose().trim(), secret.expose().trim())))
    }

    /// A token that is kept in one string.
    #[must_use]
    pub fn whole(token: &Secret) -> Self {
        Self(Secret::new(token.expose().trim().to_owned()))
    }
}

/// What to do where the host's certificate is not believed: Proxmox makes its own, so that a pin is the usual cure.
fn cure(error: &HandshakeError) -> Option<String> {
    let pin = |seen| {
        format!(
            "compare the fingerprint with the one that the host shows (node, System, Certificates; or there: openssl x509 \
             -in /etc/pve/local/pve-ssl.pem -noout -fingerprint -sha256); if they are equal, write in platform \"proxmox\": \
             fingerprint = \"{}\"",
            show_fingerprint(seen)
        )
    };
    match error {
        HandshakeError::Pin(mismatch) => Some(pin(&mismatch.seen)),
        HandshakeError::Certificate(distrusted) => match distrusted.fault() {
            Fault::Issuer | Fault::Name | Fault::Purpose => Some(pin(&distrusted.seen)),
            Fault::Expired => Some(
                "renew the host's certificate there (pvecm updatecerts --force), and compare both clocks"
                    .to_owned(),
            ),
            _ => None,
        },
        _ => None,
    }
}

/// The frame around every answer.
#[derive(Deserialize)]
struct Frame {
    #[serde(default)]
    data: Value,
    message: Option<String>,
    #[serde(default)]
    errors: BTreeMap<String, Value>,
}

impl Proxmox {
    /// A client of the API at `endpoint`.
    ///
    /// # Errors
    /// If the address, the trust or the token cannot be used.
    pub fn new(
        world: &World,
        endpoint: &str,
        trust: &Trust,
        token: &Token,
    ) -> Result<Self, ProxmoxError> {
        let fail = |source| ProxmoxError::Open { endpoint: endpoint.to_owned(), source };
        let verify = Verify::from_trust(trust, world)
            .map_err(|source| fail(OpenError::Tls { base: endpoint.to_owned(), source }))?;
        let rest = Rest::open(world, endpoint, &verify).map_err(fail)?;
        let value = format!("PVEAPIToken={}", token.0.expose());
        let mut authorization = HeaderValue::try_from(value).map_err(|_| ProxmoxError::Token)?;
        authorization.set_sensitive(true);
        let whole = token.0.expose();
        let name = Secret::new(whole.split_once('=').map_or(whole, |(name, _)| name).to_owned());
        Ok(Self { rest, authorization, name })
    }

    /// The token's name, as tasks bear it: `USER@REALM!ID`.
    pub(crate) fn token_name(&self) -> &str {
        self.name.expose()
    }

    /// The API's address.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        self.rest.base()
    }

    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<T, ProxmoxError> {
        let data = self.call(Method::GET, path, query, None).await?;
        read(&format!("GET {path}"), data)
    }

    pub(crate) async fn post(
        &self,
        path: &str,
        form: &[(&str, String)],
    ) -> Result<Value, ProxmoxError> {
        self.call(Method::POST, path, &[], Some(form)).await
    }

    pub(crate) async fn put(
        &self,
        path: &str,
        form: &[(&str, String)],
    ) -> Result<Value, ProxmoxError> {
        self.call(Method::PUT, path, &[], Some(form)).await
    }

    /// Parameters go into the query: Proxmox refuses a DELETE with a body.
    pub(crate) async fn delete(
        &self,
        path: &str,
        query: &[(&str, String)],
    ) -> Result<Value, ProxmoxError> {
        self.call(Method::DELETE, path, query, None).await
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, String)],
        form: Option<&[(&str, String)]>,
    ) -> Result<Value, ProxmoxError> {
        let mut address = format!("{PREFIX}{path}");
        if !query.is_empty() {
            address = format!("{address}?{}", form::encode(query));
        }
        let mut headers: Vec<(HeaderName, HeaderValue)> =
            vec![(AUTHORIZATION, self.authorization.clone())];
        let body = form.map(form::encode).unwrap_or_default();
        if form.is_some() {
            let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.push((CONTENT_TYPE, kind));
        }
        let call = format!("{method} {path}");
        let reply = self.rest.request(method, &address, headers, body).await;
        let reply = reply.map_err(ProxmoxError::Call)?;
        elsewhere(self.endpoint(), &reply)?;
        judge(&call, &reply)
    }
}

/// Reads the data of an answer.
pub(crate) fn read<T: DeserializeOwned>(call: &str, data: Value) -> Result<T, ProxmoxError> {
    serde_json::from_value(data)
        .map_err(|e| ProxmoxError::Malformed { call: call.to_owned(), why: e.to_string() })
}

/// Refuses to be sent elsewhere: the token would go along.
fn elsewhere(endpoint: &str, reply: &Reply) -> Result<(), ProxmoxError> {
    if !reply.status.is_redirection() {
        return Ok(());
    }
    let location = reply.header("location").unwrap_or("nowhere").to_owned();
    Err(ProxmoxError::Redirect { endpoint: endpoint.to_owned(), location })
}

/// The data of a good answer, or what a bad one says.
fn judge(call: &str, reply: &Reply) -> Result<Value, ProxmoxError> {
    let frame = serde_json::from_slice::<Frame>(&reply.body);
    if reply.status.is_success() {
        return match frame {
            Ok(frame) => Ok(frame.data),
            Err(e) => Err(ProxmoxError::Malformed { call: call.to_owned(), why: e.to_string() }),
        };
    }
    // Newer servers say why in the body, older ones in the reason phrase only, and a dead one nowhere.
    let (message, errors) = match frame {
        Ok(frame) => (frame.message, frame.errors),
        Err(_) => (None, BTreeMap::new()),
    };
    let message = message.map(|m| m.trim().to_owned()).filter(|m| !m.is_empty());
    let mut text = message
        .or_else(|| reply.reason.clone())
        .or_else(|| reply.status.canonical_reason().map(str::to_owned))
        .unwrap_or_else(|| "no reason given".to_owned());
    for (parameter, problem) in &errors {
        let problem = lenient::text(problem).split_whitespace().collect::<Vec<_>>().join(" ");
        text = format!("{text} {parameter}: {problem}");
    }
    Err(ProxmoxError::Answer { status: reply.status, text })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn said(status: u16, reason: Option<&str>, body: &'static str) -> String {
        let reply = Reply {
            status: StatusCode::from_u16(status).unwrap(),
            reason: reason.map(str::to_owned),
            headers: http::HeaderMap::new(),
            body: Bytes::from_static(body.as_bytes()),
        };
        judge("GET /x", &reply).unwrap_err().to_string()
    }

    #[test]
    fn the_reason_is_found_wherever_the_server_puts_it() {
        assert_eq!(said(401, Some("No ticket"), ""), "Proxmox answers 401 Unauthorized: No ticket");
        assert_eq!(
            said(500, Some("VM is locked (clone)"), r#"{"data":null}"#),
            "Proxmox answers 500 Internal Server Error: VM is locked (clone)"
        );
        assert_eq!(
            said(
                400,
                None,
                r#"{"data":null,"message":"Parameter verification failed.\n","errors":{"vmid":"invalid format - value does not look like a valid VM ID\n"}}"#
            ),
            "Proxmox answers 400 Bad Request: Parameter verification failed. \
             vmid: invalid format - value does not look like a valid VM ID"
        );
    }

    #[test]
    fn nobody_is_followed_elsewhere() {
        let mut reply = Reply {
            status: StatusCode::MOVED_PERMANENTLY,
            reason: None,
            headers: http::HeaderMap::new(),
            body: Bytes::new(),
        };
        let plain = HeaderValue::from_static("http://pve.lan:8006/");
        reply.headers.insert(http::header::LOCATION, plain);
        let error = elsewhere("https://pve.lan", &reply).unwrap_err();
        assert_eq!(error.class(), Class::Invalid);
        assert_eq!(
            error.to_string(),
            "what answers at https://pve.lan is not the API of Proxmox: it sends us to http://pve.lan:8006/"
        );
        assert!(error.failure("look").hint.unwrap().contains("8006"));
        reply.status = StatusCode::OK;
        assert!(elsewhere("https://pve.lan", &reply).is_ok());
    }

    #[test]
    fn a_good_answer_gives_its_data() {
        let reply = Reply {
            status: StatusCode::OK,
            reason: None,
            headers: http::HeaderMap::new(),
            body: Bytes::from_static(br#"{"data":{"version":"9.2.11"}}"#),
        };
        assert_eq!(judge("GET /version", &reply).unwrap()["version"], "9.2.11");
    }
}
