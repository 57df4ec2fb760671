//! Dials, does TLS, and hands the stream to hyper, kube or tonic; says apart what can go wrong on the way.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Uri;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::dialer::{BoxedStream, Dialer};
use crate::verifier::{Distrusted, PinMismatch};

/// How long dialling and the handshake may take together, unless told otherwise. A machine that boots drops packets,
/// so waiting longer tells nothing that the next try would not.
pub const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// Why no connection came about. In every case nothing of a request was sent.
#[derive(Debug, Clone, Error)]
pub enum ConnectError {
    /// The address is not one that we dial.
    #[error("`{uri}` cannot be dialled: {why}")]
    BadUri {
        /// The address.
        uri: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing answers there.
    #[error("cannot connect to {target}")]
    Dial {
        /// Host and port.
        target: String,
        /// What the system says.
        #[source]
        source: Arc<io::Error>,
    },
    /// The deadline passed before somebody answered.
    #[error("no answer from {target} within {} s", .after.as_secs_f64())]
    DialDeadline {
        /// Host and port.
        target: String,
        /// How long was waited.
        after: Duration,
    },
    /// The deadline passed between the first byte and the end of the handshake.
    #[error("{target} accepts connections but did not finish the TLS handshake within {} s", .after.as_secs_f64())]
    HandshakeDeadline {
        /// Host and port.
        target: String,
        /// How long was waited.
        after: Duration,
    },
    /// The handshake failed.
    #[error("the TLS handshake with {target} failed")]
    Tls {
        /// Host and port.
        target: String,
        /// What failed in it.
        #[source]
        source: HandshakeError,
    },
}

/// What failed in a handshake.
#[derive(Debug, Clone, Error)]
pub enum HandshakeError {
    /// The server showed another certificate than the pinned one.
    #[error(transparent)]
    Pin(PinMismatch),
    /// The server's certificate is not believed.
    #[error(transparent)]
    Certificate(Distrusted),
    /// The server does not believe us, or does not speak TLS as we do.
    #[error("{}", told(.0))]
    Rustls(rustls::Error),
    /// The connection broke.
    #[error("the connection broke")]
    Broken(#[source] Arc<io::Error>),
}

impl HandshakeError {
    fn new(error: io::Error) -> Self {
        let Some(found) = rustls_error(&error) else { return Self::Broken(Arc::new(error)) };
        if let rustls::Error::InvalidCertificate(rustls::CertificateError::Other(other)) = found {
            if let Some(mismatch) = other.0.downcast_ref::<PinMismatch>() {
                return Self::Pin(*mismatch);
            }
            if let Some(distrusted) = other.0.downcast_ref::<Distrusted>() {
                return Self::Certificate(distrusted.clone());
            }
        }
        Self::Rustls(found.clone())
    }
}

/// What a failed handshake means, where rustls' own words do not tell.
fn told(error: &rustls::Error) -> String {
    use rustls::AlertDescription::{InsufficientSecurity, ProtocolVersion};
    use rustls::Error::{AlertReceived, InvalidMessage, NoCertificatesPresented, PeerIncompatible};
    match error {
        NoCertificatesPresented => "it shows no certificate at all".to_owned(),
        AlertReceived(ProtocolVersion | InsufficientSecurity) | PeerIncompatible(_) => {
            format!("it speaks no TLS that is still believed: 1.2 or 1.3 is needed ({error})")
        }
        InvalidMessage(_) => format!("what answers there does not speak TLS ({error})"),
        other => other.to_string(),
    }
}

/// The TLS error inside an I/O error; `source()` skips it, so it is fetched by hand.
#[must_use]
pub fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref::<rustls::Error>()
}

/// How a connection ended, as far as the stream itself saw. On HTTP/2 the errors above it no longer tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The other side said goodbye properly.
    Closed,
    /// The other side refused us by a TLS alert, such as a client certificate that it does not accept.
    Alert(rustls::AlertDescription),
    /// The connection broke.
    Broken(io::ErrorKind),
}

/// The last end of a connection, shared by all clones of a connector.
#[derive(Debug, Clone, Default)]
pub struct EndRecord(Arc<Mutex<Option<End>>>);

impl EndRecord {
    /// How the connection ended that ended last; none while nothing has ended since the last good handshake.
    #[must_use]
    pub fn last(&self) -> Option<End> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, end: Option<End>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = end;
    }

    fn note(&self, error: &io::Error) {
        self.set(Some(match rustls_error(error) {
            Some(rustls::Error::AlertReceived(alert)) => End::Alert(*alert),
            _ => End::Broken(error.kind()),
        }));
    }
}

/// Opens TLS connections for one client: a `tower::Service<Uri>`.
#[derive(Clone)]
pub struct Connector {
    dialer: Arc<dyn Dialer>,
    config: Arc<ClientConfig>,
    deadline: Duration,
    dial_deadline: Option<Duration>,
    target: Option<(String, u16)>,
    name: Option<String>,
    end: EndRecord,
}

impl Connector {
    /// A connector that dials the host of each address and verifies that name, within [`CONNECT_DEADLINE`].
    #[must_use]
    pub fn new(dialer: Arc<dyn Dialer>, config: Arc<ClientConfig>) -> Self {
        Self {
            dialer,
            config,
            deadline: CONNECT_DEADLINE,
            dial_deadline: None,
            target: None,
            name: None,
            end: EndRecord::default(),
        }
    }

    /// Sets how long dialling and handshake may take together.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Sets how long dialling alone may take, where that is known to be short.
    #[must_use]
    pub fn dial_deadline(mut self, deadline: Duration) -> Self {
        self.dial_deadline = Some(deadline);
        self
    }

    /// Dials this place, whatever the address says.
    #[must_use]
    pub fn dial_at(mut self, host: impl Into<String>, port: u16) -> Self {
        self.target = Some((host.into(), port));
        self
    }

    /// Verifies this name (or IP address), whatever the address says.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How the last connection that ended did so.
    #[must_use]
    pub fn ends(&self) -> EndRecord {
        self.end.clone()
    }

    /// Dials and does TLS.
    ///
    /// # Errors
    /// Says which of the two failed, and how.
    pub async fn connect(&self, uri: &Uri) -> Result<TlsConnection, ConnectError> {
        let bad = |why| ConnectError::BadUri { uri: uri.to_string(), why };
        if uri.scheme_str() != Some("https") {
            return Err(bad("only https is spoken"));
        }
        let uri_host = uri.host().ok_or_else(|| bad("it names no host"))?;
        let uri_host = uri_host.trim_start_matches('[').trim_end_matches(']');
        let (host, port) = match &self.target {
            Some((host, port)) => (host.as_str(), *port),
            None => (uri_host, uri.port_u16().unwrap_or(443)),
        };
        let name = self.name.as_deref().unwrap_or(uri_host).to_owned();
        let name = ServerName::try_from(name).map_err(|_| bad("its host is not a name"))?;
        let target = format!("{host}:{port}");
        let after = self.deadline;
        let begin = tokio::time::Instant::now();
        let dial = self.dial_deadline.unwrap_or(after).min(after);
        let stream = match timeout(dial, self.dialer.dial(host, port)).await {
            Err(_) => return Err(ConnectError::DialDeadline { target, after: dial }),
            Ok(Err(error)) => {
                return Err(ConnectError::Dial { target, source: Arc::new(error) });
            }
            Ok(Ok(stream)) => stream,
        };
        let handshake = TlsConnector::from(self.config.clone()).connect(name, stream);
        match timeout(after.saturating_sub(begin.elapsed()), handshake).await {
            Err(_) => Err(ConnectError::HandshakeDeadline { target, after }),
            Ok(Err(error)) => Err(ConnectError::Tls { target, source: HandshakeError::new(error) }),
            Ok(Ok(stream)) => {
                self.end.set(None);
                Ok(TlsConnection { stream, own: EndRecord::default(), shared: self.end.clone() })
            }
        }
    }
}

impl tower::Service<Uri> for Connector {
    type Response = TokioIo<TlsConnection>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await.map(TokioIo::new) })
    }
}

/// A connection after its handshake. It notes how it ends.
pub struct TlsConnection {
    stream: TlsStream<BoxedStream>,
    /// Its own end, which hyper carries along with errors and answers.
    own: EndRecord,
    /// The connector's last end.
    shared: EndRecord,
}

impl TlsConnection {
    /// Whether both sides agreed on HTTP/2.
    #[must_use]
    pub fn is_http2(&self) -> bool {
        self.stream.get_ref().1.alpn_protocol() == Some(b"h2")
    }

    /// A write fails as soon as the other side is gone; what it said before it went may be unread, or not even be
    /// noticed yet. Whoever refuses our certificate does exactly that: an alert, and away. So the failure waits for
    /// the end of what there is to read, which a broken connection always has.
    fn written<T>(
        &mut self,
        context: &mut Context<'_>,
        polled: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        match polled {
            Poll::Ready(Err(error)) if rustls_error(&error).is_none() => {
                let words = ready!(self.poll_last_words(context));
                self.noted(Poll::Ready(Err(words.unwrap_or(error))))
            }
            other => self.noted(other),
        }
    }

    /// Reads to the end; the alert in it, if there is one.
    fn poll_last_words(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let mut space = [0; 4096];
        loop {
            let mut buffer = ReadBuf::new(&mut space);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                Err(error) if rustls_error(&error).is_some() => return Poll::Ready(Some(error)),
                Ok(()) | Err(_) => return Poll::Ready(None),
            }
        }
    }

    fn noted<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Poll::Ready(Err(error)) = &polled {
            self.own.note(error);
            self.shared.note(error);
        }
        polled
    }
}

impl Connection for TlsConnection {
    fn connected(&self) -> Connected {
        let connected = Connected::new().extra(self.own.clone());
        if self.is_http2() { connected.negotiated_h2() } else { connected }
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        if matches!(polled, Poll::Ready(Ok(()))) && buffer.filled().len() == before {
            self.own.set(Some(End::Closed));
            self.shared.set(Some(End::Closed));
        }
        self.noted(polled)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.written(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
