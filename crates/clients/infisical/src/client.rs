//! The client itself: one server, one identity, one way to send, to try again, and to read what comes.

use std::sync::Arc;
use std::time::Duration;

use castle_model::spec::Trust;
use castle_model::{Bug, Secret, planted};
use castle_wire::rest::OpenError;
use castle_wire::{Clock, Reply, Rest, Verify, World};
use http::Method;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::error::{InfisicalError, page, refused};
use crate::session::{Credentials, Session};

/// The largest body that the server takes; above it, it answers 500 or nothing at all.
pub const LARGEST_REQUEST: usize = 1 << 20;
/// How long a call may be repeated in silence. A longer wait is left to whoever called: he can tell of it
/// ([`Failure::asked_to_wait`](castle_model::Failure::asked_to_wait)).
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The first pause before a call is made again, where the server does not say how long; it doubles.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest such pause.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(16);
/// How often a call is made again that met a gateway without its server.
const REPETITIONS: u32 = 2;

/// When a call may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// Whenever it failed transiently: twice has the effect of once.
    Idempotent,
    /// Only if the server turned it away unheard.
    IfUnheard,
}

/// A client of one Infisical server as one machine identity. Clones share the login.
#[derive(Clone)]
pub struct Infisical {
    pub(crate) rest: Rest,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) credentials: Credentials,
    pub(crate) session: Arc<Mutex<Session>>,
    patience: Duration,
}

impl Infisical {
    /// A client of the server at `host`, believed by the system's roots; nothing is sent yet.
    ///
    /// # Errors
    /// If the address cannot be used.
    pub fn new(
        world: &World,
        host: &str,
        credentials: Credentials,
    ) -> Result<Self, InfisicalError> {
        Self::with_trust(world, host, &Trust::System, credentials)
    }

    /// A client of the server at `host`, whose certificate is believed by `trust`; nothing is sent yet.
    ///
    /// # Errors
    /// If the address or the trust cannot be used.
    pub fn with_trust(
        world: &World,
        host: &str,
        trust: &Trust,
        credentials: Credentials,
    ) -> Result<Self, InfisicalError> {
        let fail = |source| InfisicalError::Open { host: host.to_owned(), source };
        let verify = Verify::from_trust(trust, world)
            .map_err(|source| fail(OpenError::Tls { base: host.to_owned(), source }))?;
        // Others want the address with `/api`, so that people have it at hand like that.
        let base = host.trim_end_matches('/');
        let base = base.strip_suffix("/api").unwrap_or(base);
        let rest = Rest::open(world, base, &verify).map_err(fail)?;
        let (clock, session) = (world.clock.clone(), Arc::default());
        Ok(Self { rest, clock, credentials, session, patience: PATIENCE })
    }

    /// Sets how long a call may be repeated in silence.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// The server's address.
    #[must_use]
    pub fn host(&self) -> &str {
        self.rest.base()
    }

    /// One call as the identity, which may be made again. An expired token is replaced once; a missing right never is.
    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path_and_query: &str,
        body: Option<&Value>,
    ) -> Result<T, InfisicalError> {
        self.call_again((method, path_and_query, body), Again::Idempotent).await
    }

    /// One call as the identity.
    pub(crate) async fn call_again<T: DeserializeOwned>(
        &self,
        (method, path_and_query, body): (Method, &str, Option<&Value>),
        again: Again,
    ) -> Result<T, InfisicalError> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let call = format!("{method} {path}");
        let token = self.token().await?;
        let request = (method.clone(), path_and_query, body);
        let first = self.judge(&call, &self.insist(request, Some(&token), again).await?);
        match first {
            Err(error) if error.is_stale_token() => {
                self.drop_token(&token).await;
                let token = self.token().await?;
                let request = (method, path_and_query, body);
                self.judge(&call, &self.insist(request, Some(&token), again).await?)
            }
            other => other,
        }
    }

    /// Sends until there is an answer that more patience would not change.
    pub(crate) async fn insist(
        &self,
        (method, path_and_query, body): (Method, &str, Option<&Value>),
        token: Option<&Secret>,
        again: Again,
    ) -> Result<Reply, InfisicalError> {
        let end = Instant::now() + self.patience;
        let mut tries = 0;
        loop {
            let outcome = self.send(method.clone(), path_and_query, token, body).await;
            let pause = pause(&outcome, tries, again);
            let left = end.saturating_duration_since(Instant::now());
            // To wait for less than what the server asks for would only make it angrier.
            match pause.filter(|pause| *pause <= left) {
                Some(pause) => rest(pause).await,
                None => return outcome,
            }
            tries += 1;
        }
    }

    /// Sends once.
    pub(crate) async fn send(
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
        if body.len() > LARGEST_REQUEST {
            let call = format!("{method} {path_and_query}");
            let (size, limit) = (body.len(), LARGEST_REQUEST);
            return Err(InfisicalError::TooLarge { call, size, limit });
        }
        self.rest.request(method, path_and_query, headers, body).await.map_err(InfisicalError::Call)
    }

    pub(crate) fn malformed(&self, call: &str, why: impl Into<String>) -> InfisicalError {
        let host = self.host().to_owned();
        InfisicalError::Malformed { host, call: call.to_owned(), why: why.into() }
    }

    pub(crate) fn judge<T: DeserializeOwned>(
        &self,
        call: &str,
        reply: &Reply,
    ) -> Result<T, InfisicalError> {
        if !reply.status.is_success() {
            return Err(refused(self.host(), reply));
        }
        serde_json::from_slice(&reply.body).map_err(|e| match page(reply) {
            Some(seen) => {
                let (host, status) = (self.host().to_owned(), reply.status.as_u16());
                InfisicalError::Astray { host, status, seen }
            }
            // The reader's own words can quote the text, so only the place is told.
            None => self.malformed(
                call,
                format!("{:?} error at line {}, column {}", e.classify(), e.line(), e.column()),
            ),
        })
    }
}

/// How long to wait before the call is made again; none if it is not.
fn pause(outcome: &Result<Reply, InfisicalError>, tries: u32, again: Again) -> Option<Duration> {
    let growing = FIRST_PAUSE.saturating_mul(1 << tries.min(8)).min(LONGEST_PAUSE);
    // No connection, or a silent server: whoever waits for us tries again, and tells about it meanwhile.
    let reply = outcome.as_ref().ok()?;
    let pause = retry_after(reply).map_or(growing, |seconds| Duration::from_secs(seconds.into()));
    match reply.status.as_u16() {
        429 => Some(pause),
        502..=504 if tries < REPETITIONS && again == Again::Idempotent => Some(pause),
        500 if tries == 0 && again == Again::Idempotent => Some(pause),
        _ => None,
    }
}

/// For how many seconds the server asks to be left alone, if it does and in a way that can be read.
pub(crate) fn retry_after(reply: &Reply) -> Option<u32> {
    let asked = reply.header("retry-after").filter(|_| !planted(Bug::WaitIgnored));
    asked.and_then(|text| text.trim().parse().ok())
}

#[expect(
    clippy::disallowed_methods,
    reason = "what the server's rate limit asks for is spent here, within `patience`"
)]
async fn rest(pause: Duration) {
    tokio::time::sleep(pause).await;
}
