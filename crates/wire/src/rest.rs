//! HTTP calls to one server: each with a deadline, a limit on the reply, and a plain word on what is known afterwards.

use std::error::Error;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use http::response::Parts;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use thiserror::Error;
use tokio::time::timeout;

use crate::connector::{ConnectError, Connector, End, EndRecord, rustls_error};
use crate::tls::{TlsError, Verify, client_config};
use crate::wiped::wiped;
use crate::world::World;

/// How long one call may take, from dialling to the last byte of the reply.
pub const CALL_DEADLINE: Duration = Duration::from_secs(40);

/// How large a reply may be. The largest that we read are manifests of a few MiB.
pub const REPLY_LIMIT: usize = 8 * 1024 * 1024;

/// Why a client for a server cannot be made.
#[derive(Debug, Error)]
pub enum OpenError {
    /// The address is not one.
    #[error("`{base}` is not the address of a server: {why}")]
    Address {
        /// What was given.
        base: String,
        /// What is wrong with it.
        why: String,
    },
    /// TLS cannot be set up.
    #[error("TLS to {base} cannot be set up")]
    Tls {
        /// The server.
        base: String,
        /// Why not.
        #[source]
        source: TlsError,
    },
}

/// A client of one server. Clones share its connections.
#[derive(Clone)]
pub struct Rest {
    client: Client<Connector, Full<Bytes>>,
    base: String,
    deadline: Duration,
    limit: usize,
}

/// What a server answered.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The reason phrase, where the server sent its own (HTTP/1 only).
    pub reason: Option<String>,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Reply {
    /// The body as text, with what is not UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The value of a header, if it is plain text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What is known about a request whose call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// Nothing of it left.
    No,
    /// The other side refused to hear it.
    Rejected,
    /// It left, and whether it had an effect is not known: look before trying again.
    Unknown,
    /// It was answered; only the answer could not be used.
    Answered,
}

/// Why there is no reply.
#[derive(Debug, Error)]
pub enum CallError {
    /// The request is malformed: a defect of ours.
    #[error("{call}: the request cannot be made")]
    Request {
        /// Method and address.
        call: Call,
        /// What is wrong with it.
        #[source]
        source: http::Error,
    },
    /// No connection came about.
    #[error("{call}: no connection")]
    Connect {
        /// Method and address.
        call: Call,
        /// Why not.
        #[source]
        source: Box<ConnectError>,
    },
    /// The other side refused us by a TLS alert after the handshake.
    #[error("{call}: the server refused us by the TLS alert {alert:?}")]
    Rejected {
        /// Method and address.
        call: Call,
        /// The alert.
        alert: rustls::AlertDescription,
    },
    /// The connection ended before anything was sent.
    #[error("{call}: the connection ended before the request was sent")]
    NotSent {
        /// Method and address.
        call: Call,
        /// What ended it.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection broke after the request had been sent.
    #[error(
        "{call}: the connection broke after the request was sent; whether it had an effect is unknown"
    )]
    Broken {
        /// Method and address.
        call: Call,
        /// What broke it.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// No complete reply came in time.
    #[error("{call}: no reply within {} s; whether it had an effect is unknown", .after.as_secs())]
    Deadline {
        /// Method and address.
        call: Call,
        /// How long was waited.
        after: Duration,
    },
    /// The reply is larger than we read.
    #[error("{call}: the reply is larger than {limit} bytes")]
    TooLarge {
        /// Method and address.
        call: Call,
        /// The limit.
        limit: usize,
    },
}

/// Which call it was: method, server and path. The query is left out, because values can stand in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Server and path.
    pub address: String,
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.address)
    }
}

impl CallError {
    /// What is known about the request.
    #[must_use]
    pub fn sent(&self) -> Sent {
        match self {
            Self::Request { .. } | Self::Connect { .. } | Self::NotSent { .. } => Sent::No,
            Self::Rejected { .. } => Sent::Rejected,
            Self::Broken { .. } | Self::Deadline { .. } => Sent::Unknown,
            Self::TooLarge { .. } => Sent::Answered,
        }
    }
}

impl Rest {
    /// A client of the server at `base` (`https://host[:port]`, with a path in front of all others if one is given).
    ///
    /// # Errors
    /// If the address or the certificates cannot be used.
    pub fn open(world: &World, base: &str, verify: &Verify) -> Result<Self, OpenError> {
        let base = base.trim_end_matches('/');
        let refuse = |why: String| OpenError::Address { base: base.to_owned(), why };
        let uri: Uri = base.parse().map_err(|e: http::uri::InvalidUri| refuse(e.to_string()))?;
        if uri.scheme_str() != Some("https") {
            return Err(refuse("only https is spoken".to_owned()));
        }
        if uri.query().is_some() || uri.authority().is_some_and(|a| a.as_str().contains('@')) {
            return Err(refuse("it may hold neither a query nor a user".to_owned()));
        }
        let config = client_config(verify, None, world.clock.clone(), &[b"http/1.1"])
            .map_err(|source| OpenError::Tls { base: base.to_owned(), source })?;
        Ok(Self::over(Connector::new(world.dialer.clone(), config), base))
    }

    /// A client over a connector of one's own.
    #[must_use]
    pub fn over(connector: Connector, base: &str) -> Self {
        // One client per target: a pool over many hosts drops idle connections in hash order.
        let client = Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .build(connector);
        Self {
            client,
            base: base.trim_end_matches('/').to_owned(),
            deadline: CALL_DEADLINE,
            limit: REPLY_LIMIT,
        }
    }

    /// Sets how long one call may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how large a reply may be.
    #[must_use]
    pub fn limit(mut self, bytes: usize) -> Self {
        self.limit = bytes;
        self
    }

    /// The server's address.
    #[must_use]
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Makes one call and reads the whole reply, whatever its status.
    ///
    /// # Errors
    /// If there is no reply; [`CallError::sent`] says what is known about the request then.
    pub async fn request(
        &self,
        method: Method,
        path_and_query: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: impl Into<Bytes>,
    ) -> Result<Reply, CallError> {
        let (call, request) = self.prepared(method, path_and_query, headers, body.into())?;
        let after = self.deadline;
        match timeout(after, self.exchange(&call, request)).await {
            Ok(result) => result,
            Err(_) => Err(CallError::Deadline { call, after }),
        }
    }

    /// Reads a reply piece by piece, however large it is; the deadline is for its beginning and for each piece, not for
    /// all of it. What comes with a status that is no success is given in the reply, up to the limit.
    ///
    /// # Errors
    /// As [`Rest::request`].
    pub async fn stream(
        &self,
        path_and_query: &str,
        mut piece: impl FnMut(&[u8]) + Send,
    ) -> Result<Reply, CallError> {
        let all = |_: &Parts, bytes: &[u8]| {
            piece(bytes);
            ControlFlow::Continue(())
        };
        self.pieces(path_and_query, Vec::new(), all).await
    }

    /// The same with headers of one's own. Each piece comes with the head of its reply, and may be the last one wanted.
    ///
    /// # Errors
    /// As [`Rest::request`].
    pub async fn pieces(
        &self,
        path_and_query: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        mut piece: impl FnMut(&Parts, &[u8]) -> ControlFlow<()> + Send,
    ) -> Result<Reply, CallError> {
        let (call, request) = self.prepared(Method::GET, path_and_query, headers, Bytes::new())?;
        let after = self.deadline;
        let late = || CallError::Deadline { call: call.clone(), after };
        let asked = timeout(after, self.client.request(request)).await.map_err(|_| late())?;
        let (head, mut body) = asked.map_err(|error| told_apart(call.clone(), error))?.into_parts();
        if !head.status.is_success() {
            let read = timeout(after, self.collected(&call, body)).await.map_err(|_| late())?;
            return Ok(replied(head, read?));
        }
        while let Some(frame) = timeout(after, body.frame()).await.map_err(|_| late())? {
            let broken = |error| CallError::Broken { call: call.clone(), source: Box::new(error) };
            if let Some(bytes) = frame.map_err(broken)?.data_ref()
                && piece(&head, bytes).is_break()
            {
                break;
            }
        }
        Ok(replied(head, Bytes::new()))
    }

    fn prepared(
        &self,
        method: Method,
        path_and_query: &str,
        headers: Vec<(HeaderName, HeaderValue)>,
        body: Bytes,
    ) -> Result<(Call, Request<Full<Bytes>>), CallError> {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let call = Call { method: method.clone(), address: format!("{}{path}", self.base) };
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path_and_query}", self.base))
            .body(Full::new(wiped(body)))
            .map_err(|source| CallError::Request { call: call.clone(), source })?;
        request.headers_mut().extend(headers);
        Ok((call, request))
    }

    async fn collected(&self, call: &Call, body: Incoming) -> Result<Bytes, CallError> {
        match Limited::new(body, self.limit).collect().await {
            Ok(collected) => Ok(collected.to_bytes()),
            Err(error) if error.is::<LengthLimitError>() => {
                Err(CallError::TooLarge { call: call.clone(), limit: self.limit })
            }
            Err(source) => Err(CallError::Broken { call: call.clone(), source }),
        }
    }

    async fn exchange(
        &self,
        call: &Call,
        request: Request<Full<Bytes>>,
    ) -> Result<Reply, CallError> {
        let response =
            self.client.request(request).await.map_err(|error| told_apart(call.clone(), error))?;
        let (head, body) = response.into_parts();
        Ok(replied(head, self.collected(call, body).await?))
    }
}

fn replied(head: Parts, body: Bytes) -> Reply {
    let reason = head.extensions.get::<ReasonPhrase>();
    Reply {
        status: head.status,
        reason: reason.map(|r| String::from_utf8_lossy(r.as_bytes()).into_owned()),
        headers: head.headers,
        body,
    }
}

/// Tells the errors of hyper apart by what they mean for the request.
fn told_apart(call: Call, error: hyper_util::client::legacy::Error) -> CallError {
    if let Some(alert) = alert_in(&error) {
        return CallError::Rejected { call, alert };
    }
    let mut never_left = error.is_connect();
    let mut step: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = step {
        if let Some(source) = current.downcast_ref::<ConnectError>() {
            return CallError::Connect { call, source: Box::new(source.clone()) };
        }
        if let Some(error) = current.downcast_ref::<hyper::Error>() {
            never_left |= error.is_canceled() || error.is_closed();
        }
        step = current.source();
    }
    let source = Box::new(error);
    if never_left {
        CallError::NotSent { call, source }
    } else {
        CallError::Broken { call, source }
    }
}

/// The alert by which the other side refused us, from the error or from what the connection noted.
fn alert_in(error: &hyper_util::client::legacy::Error) -> Option<rustls::AlertDescription> {
    let mut step: Option<&(dyn Error + 'static)> = error.source();
    while let Some(current) = step {
        let inside = current.downcast_ref::<io::Error>().and_then(rustls_error);
        if let Some(rustls::Error::AlertReceived(alert)) = inside {
            return Some(*alert);
        }
        step = current.source();
    }
    let mut extras = http::Extensions::new();
    error.connect_info()?.get_extras(&mut extras);
    match extras.get::<EndRecord>()?.last()? {
        End::Alert(alert) => Some(alert),
        End::Closed | End::Broken(_) => None,
    }
}
