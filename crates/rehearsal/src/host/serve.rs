//! One connection: real TLS, then HTTP/1 or HTTP/2 as the real server speaks it, until the world breaks it off.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::{future, stream};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::server::conn::{http1, http2};
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls_pki_types::CertificateDer;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer, X509Certificate};

use super::dial::pause;
use super::echo::{Echo, Echoed};
use super::gate::head::{FIELDS_MAX, Kind};
use super::gate::{Asked, Gate};
use super::idle::{self, Calls};
use super::patience::Patience;
use super::shared::{CallDoor, Shared, Stage, WatchMark};
use super::strike::{self, Cut};
use super::tls::Certificates;
use crate::fault::Blow;
use crate::kubernetes::WatchCursor;
use crate::talos;
use crate::turn::{HttpBody, HttpCall, HttpReply, Listen, Peer, Server};

/// The largest request that a server takes; that Kubernetes' API server does, and Proxmox' daemon.
const BODY_MAX: usize = 16 * 1024 * 1024;
const KUBERNETES_BODY_MAX: usize = 3 * 1024 * 1024;
const PROXMOX_BODY_MAX: usize = 512 * 1024;

/// How much of a request that is too large is read on and forgotten.
const FORGOTTEN_MAX: usize = 16 * 1024 * 1024;

/// How many calls one HTTP/2 connection may have open, as Go's servers allow.
const STREAMS_MAX: u32 = 250;

/// The largest request that a machine takes.
const MACHINE_BODY_MAX: usize = 32 * 1024 * 1024;

/// The largest head that goes on to our library; what is larger was refused before.
const HEAD_MAX: usize = 2 * 1024 * 1024;

/// How long a connection that breaks off lives on after its last bytes.
const BREAK: Duration = Duration::from_millis(5);

/// Who was reached.
#[derive(Debug, Clone)]
pub(super) enum Target {
    /// A server with a name.
    Endpoint { server: Server, host: String },
    /// A listener of a machine, at its own address or a shared one.
    Machine { vmid: u32, listen: Listen, address: Ipv4Addr, port: u16 },
}

/// Serves one connection to its end.
pub(super) async fn connection(
    shared: Arc<Shared>,
    target: Target,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    patience: Option<Patience>,
) {
    let (listen, generation) = match &target {
        Target::Endpoint { .. } => (None, None),
        Target::Machine { vmid, listen, .. } => {
            (Some(*listen), shared.read(|world| world.talos.generation(*vmid, *listen)))
        }
    };
    let cut = Cut::default();
    let way = (cut.clone(), patience);
    let mut served = std::pin::pin!(serve(shared.clone(), target.clone(), way, stream));
    tokio::select! {
        biased;
        () = cut.made() => return,
        () = broken(&shared, &target, listen, generation) => {}
        () = &mut served => return,
    }
    if let Some(grace) = shared.time.grace() {
        // Whether it ends by itself or not: it has had its time.
        drop(tokio::time::timeout(grace, served).await);
    }
}

/// Ends when the listener that the connection was made to is not the same any more.
async fn broken(
    shared: &Shared,
    target: &Target,
    listen: Option<Listen>,
    generation: Option<(u64, u64)>,
) {
    let Target::Machine { vmid, address, port, .. } = target else {
        return std::future::pending().await;
    };
    loop {
        let changed = shared.machines_changed();
        let same = shared.read(|world| {
            let now = world.talos.listen(*address, *port);
            now == listen && now.and_then(|now| world.talos.generation(*vmid, now)) == generation
        });
        if !same {
            return;
        }
        changed.await;
    }
}

/// Takes what comes and says nothing, until the client goes.
async fn mute(mut stream: impl AsyncRead + Unpin) {
    let mut ignored = [0; 1024];
    while matches!(stream.read(&mut ignored).await, Ok(read) if read > 0) {}
}

async fn serve(
    shared: Arc<Shared>,
    target: Target,
    (cut, patience): (Cut, Option<Patience>),
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
) {
    let identity = match &target {
        Target::Endpoint { .. } => None,
        Target::Machine { vmid, listen, .. } => {
            shared.read(|world| world.talos.identity(*vmid, *listen))
        }
    };
    if let Target::Machine { listen: Listen::Mute { .. }, .. } = &target {
        return mute(stream).await;
    }
    // A server without a usable certificate, or a handshake that fails, just ends: the client has the reason.
    let Ok(config) = shared.certificates.config(&target, identity.as_ref(), shared.time) else {
        return;
    };
    let handshake = TlsAcceptor::from(config).accept(stream);
    let Ok(Ok(tls)) = within(patience.map(|patience| patience.handshake), handshake).await else {
        return;
    };
    let (_, session) = tls.get_ref();
    let known = |chain: &[CertificateDer<'_>]| match (&target, &identity) {
        (Target::Machine { listen: Listen::KubeApi { .. }, .. }, Some(identity)) => {
            Certificates::believes(identity, chain, shared.time)
        }
        _ => true,
    };
    let shown = session.peer_certificates().filter(|chain| known(chain));
    let peer = shown.and_then(|chain| peer(chain.first()?));
    let h2 = session.alpn_protocol() == Some(b"h2");
    if !h2 && target.protocols() == [b"h2"] {
        // gRPC's server hangs up on whoever has not agreed to it.
        return;
    }
    let (kind, time, echo) = (target.kind(), shared.time, Echo::default());
    let tasks = Tasks(shared.clone());
    let whom = Whom { target, peer, cut, echo: echo.clone(), patience, asked: None };
    let service = |counted| service(shared, whom, counted);
    // How a connection ends is the client's to tell.
    if h2 {
        over_http2(TokioIo::new(tls), tasks, patience, service).await;
        return;
    }
    let stream = Echoed::new(tls, echo);
    let mut server = http1::Builder::new();
    server.auto_date_header(false);
    let Some(patience) = patience else {
        return drop(server.serve_connection(TokioIo::new(stream), service(None)).await);
    };
    let calls = Calls::new();
    let gate = Gate::new(stream, kind, (time, calls.clone()));
    let service = service(Some((calls.clone(), Some(gate.asked()))));
    server.max_headers(FIELDS_MAX + 1).max_buf_size(HEAD_MAX);
    let mut connection = server.serve_connection(TokioIo::new(gate), service);
    let served = future::poll_fn(|context| connection.poll_without_shutdown(context));
    let ended = idle::judged(served, &calls, patience).await;
    let mut gate = connection.into_parts().io.into_inner();
    if ended.is_none() {
        gate.late();
    }
    // What breaks off in the middle says nothing more.
    if gate.has_farewell() || !matches!(ended, Some(Err(_))) {
        drop(tokio::time::timeout(patience.parting, gate.part()).await);
    }
}

/// Serves a connection over HTTP/2.
async fn over_http2<S>(
    io: TokioIo<impl AsyncRead + AsyncWrite + Unpin + Send>,
    tasks: Tasks,
    patience: Option<Patience>,
    service: impl FnOnce(Option<Counted>) -> S,
) where
    S: Service<Request<Incoming>, Response = Response<Body>, Error = io::Error>,
    S::Future: Send + 'static,
{
    let mut server = http2::Builder::new(tasks);
    server.max_concurrent_streams(STREAMS_MAX).auto_date_header(false);
    let Some(patience) = patience else {
        return drop(server.serve_connection(io, service(None)).await);
    };
    server.timer(TokioTimer::new()).keep_alive_interval(patience.ping);
    server.keep_alive_timeout(patience.parting);
    let calls = Calls::new();
    let connection = server.serve_connection(io, service(Some((calls.clone(), None))));
    let connection = std::pin::pin!(connection);
    idle::served(connection, &calls, patience, http2::Connection::graceful_shutdown).await;
}

/// Where the calls of a connection are counted, and what is held while one is answered.
type Counted = (Calls, Option<Asked>);

/// What answers the requests of a connection.
fn service(
    shared: Arc<Shared>,
    whom: Whom,
    counted: Option<Counted>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = io::Error,
    Future: Send + Unpin + 'static,
> {
    service_fn(move |request| {
        let turn = counted.as_ref();
        let turn = turn.map(|(calls, asked)| calls.begin(asked.as_ref().map(Asked::held)));
        let asked = counted.as_ref().and_then(|(_, asked)| asked.clone());
        let answer = answer(shared.clone(), Whom { asked, ..whom.clone() }, request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(match turn {
                Some(turn) => turn.over(answer),
                None => answer,
            })
        })
    })
}

/// Runs the streams of an HTTP/2 connection as tasks of the host.
#[derive(Clone)]
struct Tasks(Arc<Shared>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}

/// Whom a request reached, and from whom it came.
#[derive(Clone)]
struct Whom {
    target: Target,
    peer: Option<Peer>,
    cut: Cut,
    echo: Echo,
    patience: Option<Patience>,
    /// Knows what is wrong with the body, where strangers are judged.
    asked: Option<Asked>,
}

async fn answer(
    shared: Arc<Shared>,
    whom: Whom,
    request: Request<Incoming>,
) -> Result<Response<Body>, io::Error> {
    let Whom { target, peer, cut, echo, patience, asked } = whom;
    if request.method() == Method::OPTIONS && request.uri() == "*" && target.kind() == Kind::Go {
        // Go's server asks nobody.
        return response(shared, HttpReply::empty(200));
    }
    let (method, path) = (request.method().as_str().to_owned(), request.uri().path().to_owned());
    let query = request.uri().query().unwrap_or_default();
    let mut seen = strike::seen(&target, &method, &path);
    seen.again = shared.is_kept(&seen, query);
    let dry = query.split('&').any(|part| part == "dryRun=All");
    let blow = shared.meet(&seen);
    strike::before(&shared, blow.as_ref(), &cut).await?;
    shared.tell_call(Stage::Heard, &seen, dry);
    let (server, host) = match &target {
        Target::Endpoint { server, host } => (*server, host.clone()),
        Target::Machine { listen: Listen::KubeApi { .. }, address, .. } => {
            (Server::Kubernetes, address.to_string())
        }
        Target::Machine { vmid, listen, .. } => {
            let (vmid, listen) = (*vmid, *listen);
            let response = if let Some(response) = strike::machine_answer(blow.as_ref()) {
                shared.note_struck(&format!("talos/{vmid}"), (&method, &path), 200);
                response
            } else {
                let request = in_time(request, patience).await?;
                machine(shared.clone(), vmid, listen, peer, request).await
            };
            shared.tell_call(Stage::Carried, &seen, dry);
            strike::after(&shared, blow.as_ref(), &cut).await?;
            return Ok(response);
        }
    };
    let limit = match server {
        Server::Kubernetes => KUBERNETES_BODY_MAX,
        Server::Proxmox => PROXMOX_BODY_MAX,
        Server::Infisical | Server::Sources => BODY_MAX,
    };
    let reading = read(host, peer, request, limit);
    let Ok(call) = within(patience.map(|patience| patience.body), reading).await else {
        return Err(io::Error::from(io::ErrorKind::TimedOut));
    };
    let call = match call {
        Ok(call) => call,
        Err(Unheard::TooLarge) => return response(shared, too_large(server, limit)),
        Err(Unheard::Broken(why)) => {
            let told = asked.and_then(|asked| asked.broken());
            let reply = told.and_then(|told| unreadable(server, told)).ok_or(why)?;
            return response(shared, reply);
        }
    };
    let bodiless = call.method == "HEAD";
    // No answer: the world has ended, and the connection with it.
    let (mut reply, delay) = strike::reply(&shared, server, call, blow.as_ref())
        .ok_or_else(|| io::Error::other("the datacenter has ended"))?;
    shared.tell_call(Stage::Carried, &seen, dry);
    strike::after(&shared, blow.as_ref(), &cut).await?;
    pause(shared.time.real(delay)).await;
    shared.tell_call(Stage::Answered, &seen, dry);
    if bodiless && let HttpBody::Whole(body) = &reply.body {
        // HTTP/2 takes a body where none may be as a breach.
        reply.headers.push(("content-length".to_owned(), body.len().to_string()));
        reply.body = HttpBody::Whole(Bytes::new());
    }
    let response = response(shared.clone(), reply)?;
    if blow == Some(Blow::AnswersTwice) {
        echo.next();
    }
    Ok(strike::dripped(shared, blow.as_ref(), response))
}

async fn machine(
    shared: Arc<Shared>,
    vmid: u32,
    listen: Listen,
    peer: Option<Peer>,
    request: Request<Body>,
) -> Response<Body> {
    pause(shared.time.real(shared.near())).await;
    let path = request.uri().path().to_owned();
    let door = Arc::new(CallDoor::new(shared.clone()));
    let response = talos::service::answer(door.clone(), vmid, listen, peer, request).await;
    shared.note_call(vmid, &path, response.status().as_u16(), door.counted());
    response
}

/// A request to a machine whose body has come, where somebody outside may take for ever to send it.
async fn in_time(
    request: Request<Incoming>,
    patience: Option<Patience>,
) -> io::Result<Request<Body>> {
    let Some(patience) = patience else { return Ok(request.map(Body::new)) };
    let (head, body) = request.into_parts();
    let whole = Limited::new(body, MACHINE_BODY_MAX).collect();
    let whole = within(Some(patience.body), whole).await?;
    Ok(Request::from_parts(head, Body::from(whole.map_err(io::Error::other)?.to_bytes())))
}

/// What a server says to a request whose body is too large for it.
fn too_large(server: Server, limit: usize) -> HttpReply {
    match server {
        Server::Kubernetes => HttpReply::json(
            413,
            &json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
                "message": format!("Request entity too large: limit is {limit}"),
                "reason": "RequestEntityTooLarge", "code": 413,
            }),
        ),
        // Its daemon looks at the head alone, and has no better number for it.
        Server::Proxmox => {
            HttpReply { reason: Some("for data too large".to_owned()), ..HttpReply::empty(501) }
        }
        Server::Infisical | Server::Sources => HttpReply::empty(413),
    }
}

/// What a server says to a request whose body is none, if it says anything.
fn unreadable(server: Server, why: &str) -> Option<HttpReply> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": why, "code": 500,
    });
    let mut reply = HttpReply::json(500, &status);
    reply.headers.push(("connection".to_owned(), "close".to_owned()));
    (server == Server::Kubernetes).then_some(reply)
}

/// Waits no longer than those outside are given; for ever for those inside.
async fn within<T>(
    limit: Option<Duration>,
    work: impl Future<Output = T>,
) -> Result<T, tokio::time::error::Elapsed> {
    match limit {
        Some(limit) => tokio::time::timeout(limit, work).await,
        None => Ok(work.await),
    }
}

async fn read(
    host: String,
    peer: Option<Peer>,
    request: Request<Incoming>,
    limit: usize,
) -> Result<HttpCall, Unheard> {
    let (head, body) = request.into_parts();
    let announced = head.headers.get(http::header::CONTENT_LENGTH).and_then(|v| v.to_str().ok());
    let announced = announced.and_then(|length| length.parse().ok());
    // Whoever says beforehand that it is too much is not listened to. Over HTTP/2 that would reset the stream, and a client
    // that is still sending takes the reset for the answer.
    if announced.is_some_and(|length: usize| length > limit) {
        if head.version == Version::HTTP_2 {
            forget(body).await;
        }
        return Err(Unheard::TooLarge);
    }
    let body = whole(body, limit, head.version).await?;
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    Ok(HttpCall {
        method: head.method.as_str().to_owned(),
        host,
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers.iter().map(|(n, v)| (n.as_str().to_owned(), text(v))).collect(),
        body,
        peer,
    })
}

/// Why the body of a request is not there.
enum Unheard {
    TooLarge,
    Broken(io::Error),
}

/// A body, if it is not too large.
async fn whole(mut body: Incoming, limit: usize, version: Version) -> Result<Vec<u8>, Unheard> {
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|why| Unheard::Broken(io::Error::other(why)))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > limit {
            if version == Version::HTTP_2 {
                forget(body).await;
            }
            return Err(Unheard::TooLarge);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes)
}

/// Reads on, within reason, and keeps nothing.
async fn forget(mut body: Incoming) {
    let mut left = FORGOTTEN_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let Some(rest) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else { return };
        left = rest;
    }
}

fn response(shared: Arc<Shared>, mut reply: HttpReply) -> Result<Response<Body>, io::Error> {
    let body = match reply.body {
        HttpBody::Whole(bytes) => Body::from(bytes),
        HttpBody::Watch(cursor) => Body::new(watch(shared, *cursor)),
        HttpBody::Broken { sent, promised } => {
            reply.headers.push(("content-length".to_owned(), promised.to_string()));
            Body::new(broken_off(shared, sent))
        }
        HttpBody::Cut => return Err(io::Error::from(io::ErrorKind::ConnectionReset)),
    };
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(reply.status).map_err(io::Error::other)?;
    for (name, value) in reply.headers {
        let name = HeaderName::try_from(name).map_err(io::Error::other)?;
        response
            .headers_mut()
            .append(name, HeaderValue::try_from(value).map_err(io::Error::other)?);
    }
    if let Some(reason) = reply.reason {
        let reason = ReasonPhrase::try_from(Bytes::from(reason)).map_err(io::Error::other)?;
        response.extensions_mut().insert(reason);
    }
    Ok(response)
}

/// Some bytes, then the end of the connection. It comes a moment later, so that the bytes are on their way.
fn broken_off(
    shared: Arc<Shared>,
    sent: Bytes,
) -> StreamBody<impl futures::Stream<Item = Result<Frame<Bytes>, io::Error>>> {
    StreamBody::new(stream::unfold(Some(sent), move |sent| {
        let shared = shared.clone();
        async move {
            if let Some(sent) = sent.filter(|sent| !sent.is_empty()) {
                return Some((Ok(Frame::data(sent)), None));
            }
            pause(shared.time.real(BREAK)).await;
            Some((Err(io::Error::from(io::ErrorKind::ConnectionReset)), None))
        }
    }))
}

/// A watch that is being told.
struct Told {
    shared: Arc<Shared>,
    cursor: WatchCursor,
    /// When it began, counted in ends of all watches.
    mark: WatchMark,
}

/// The lines of a watch, as the world brings them.
fn watch(
    shared: Arc<Shared>,
    cursor: WatchCursor,
) -> StreamBody<impl futures::Stream<Item = Result<Frame<Bytes>, io::Error>>> {
    let mark = shared.watch_mark();
    StreamBody::new(stream::unfold(Told { shared, cursor, mark }, |mut told| async move {
        loop {
            let Told { shared, cursor, mark } = &mut told;
            let changed = shared.cluster_changed();
            match shared.watch_mark().ends(*mark) {
                Some(false) => return None,
                Some(true) => shared.read(|world| world.kubernetes.expire(cursor)),
                None => {}
            }
            let lines = shared.read(|world| world.kubernetes.watch_lines(cursor))?;
            if lines.is_empty() {
                changed.await;
                continue;
            }
            let (late, twice) = shared.meet_events();
            if late > 0 {
                pause(shared.time.real(Duration::from_millis(late))).await;
            }
            let lines =
                if twice { [lines.concat(), lines.concat()].concat() } else { lines.concat() };
            return Some((Ok(Frame::data(Bytes::from(lines))), told));
        }
    }))
}

/// Whom a verified client certificate names.
fn peer(certificate: &[u8]) -> Option<Peer> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let text = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        name.as_str().unwrap_or_default().to_owned()
    };
    Some(Peer {
        common_name: subject.iter_common_name().map(text).next().unwrap_or_default(),
        organizations: subject.iter_organization().map(text).collect(),
    })
}
