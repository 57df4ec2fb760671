//! Clients that nobody would write on purpose: garbage, silence, one byte at a time, too much of everything.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use castle_wire::tls::client_config;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::life::{boot, download};
use super::*;
use crate::fault::{Names, Rule};
use crate::host::dial::{Found, find, pause};
use crate::host::patience::Patience;
use crate::host::serve::{self, Target};
use crate::turn::Server;

/// A connection from outside to a server, before a word is said.
fn connect(host: &Host, name: &str, port: u16) -> DuplexStream {
    let Found::Target(target) = find(&host.shared, name, port) else { panic!("nobody is there") };
    connect_to(host, target)
}

fn connect_to(host: &Host, target: Target) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let patience = Some(Patience::of(&target));
    host.shared.spawn(serve::connection(host.shared.clone(), target, far, patience));
    near
}

/// The same, after the handshake.
pub(super) async fn secured(host: &Host, name: &'static str, port: u16) -> TlsStream<DuplexStream> {
    let verify = Verify::Roots(host.world().roots.clone());
    spoken(host, (name, port), (&verify, b"http/1.1")).await
}

/// The same, with a check of the server and a protocol of the caller's choice.
async fn spoken(
    host: &Host,
    (name, port): (&'static str, u16),
    (verify, protocol): (&Verify, &[u8]),
) -> TlsStream<DuplexStream> {
    let config = client_config(verify, None, host.world().clock.clone(), &[protocol]).unwrap();
    let name_of = ServerName::try_from(name).unwrap();
    TlsConnector::from(config).connect(name_of, connect(host, name, port)).await.unwrap()
}

/// The same, over HTTP/2 to the server of the manifests.
async fn over_http2(host: &Host) -> TlsStream<DuplexStream> {
    let verify = Verify::Roots(host.world().roots.clone());
    spoken(host, ("raw.githubusercontent.com", 443), (&verify, b"h2")).await
}

/// Asks on an HTTP/2 connection, which is served meanwhile, and gives the head of the answer.
async fn asked<C: Future>(
    sender: &mut http2::SendRequest<Body>,
    connection: Pin<&mut C>,
    request: Request<Body>,
) -> hyper::Result<Response<hyper::body::Incoming>> {
    tokio::select! {
        biased;
        response = sender.send_request(request) => response,
        _ = connection => panic!("the connection is gone before an answer"),
    }
}

const MANIFEST: &str =
    "https://raw.githubusercontent.com/longhorn/longhorn/v1.10.0/deploy/longhorn.yaml";

/// All that comes until the end.
pub(super) async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a server answers to bytes, whatever they are.
pub(super) async fn told(host: &Host, name: &'static str, port: u16, bytes: &[u8]) -> String {
    let mut stream = secured(host, name, port).await;
    // A server that has heard enough may close before all is said.
    drop(stream.write_all(bytes).await);
    drop(stream.flush().await);
    rest(&mut stream).await
}

#[tokio::test(start_paused = true)]
async fn servers_that_share_an_address_speak_their_own_protocols_whoever_comes_first() {
    let both: [(Server, &[u8]); 2] = [(Server::Proxmox, b"http/1.1"), (Server::Infisical, b"h2")];
    for order in [[0, 1], [1, 0]] {
        let host = memory(1);
        let verify = Verify::Roots(host.world().roots.clone());
        for (server, protocol) in order.map(|place| both[place]) {
            let all: [&[u8]; 2] = [b"h2", b"http/1.1"];
            let config = client_config(&verify, None, host.world().clock.clone(), &all).unwrap();
            let target = Target::Endpoint { server, host: "127.0.0.1".to_owned() };
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let connector = TlsConnector::from(config);
            let stream = connector.connect(name, connect_to(&host, target)).await.unwrap();
            assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol), "{server:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn garbage_instead_of_tls_ends_the_connection() {
    let host = memory(1);
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 500], &[0x16, 3, 1, 0xff, 0xff, 1, 2]] {
        let mut stream = connect(&host, "pve.lan", 8006);
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer).await);
        // A TLS alert, or nothing.
        assert!(answer.is_empty() || answer[0] == 0x15, "{answer:?}");
    }
    assert_eq!(host.requests().len(), 0);
    assert_eq!(get(&host, "https://factory.talos.dev", "/versions").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_silent_is_let_go() {
    let host = memory(1);
    let began = host.now();
    let mut silent = connect(&host, "pve.lan", 8006);
    assert_eq!(rest(&mut silent).await, "");
    assert_eq!(host.now() - began, 5_000, "no handshake");

    let mut silent = secured(&host, "pve.lan", 8006).await;
    let began = host.now();
    assert_eq!(rest(&mut silent).await, "");
    assert_eq!(host.now() - began, 5_000, "not a word");

    let mut slow = secured(&host, "pve.lan", 8006).await;
    slow.write_all(b"GET /api2/json/version HTTP/1.1\r\nhost: p").await.unwrap();
    let began = host.now();
    rest(&mut slow).await;
    assert_eq!(host.now() - began, 5_000, "half a head");

    let mut slow = secured(&host, "factory.talos.dev", 443).await;
    let began = host.now();
    for _ in 0..14 {
        slow.write_all(b"a").await.unwrap();
        pause(Duration::from_secs(2)).await;
    }
    rest(&mut slow).await;
    assert_eq!(host.now() - began, 30_000, "a head that never ends");

    let mut slow = secured(&host, "pve.lan", 8006).await;
    let head =
        b"POST /api2/json/nodes/pve/qemu HTTP/1.1\r\nhost: p\r\ncontent-length: 100\r\n\r\nv";
    slow.write_all(head).await.unwrap();
    let began = host.now();
    rest(&mut slow).await;
    assert_eq!(host.now() - began, 60_000, "a body that never ends");
    assert_eq!(host.requests().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn too_much_of_a_request_is_refused() {
    let host = memory(1);
    let status = |answer: &str| answer.lines().next().unwrap_or_default().to_owned();
    let proxmox = async |bytes: &[u8]| status(&told(&host, "pve.lan", 8006, bytes).await);
    let body = (512 << 10) + 1;
    let head = format!(
        "POST /api2/json/nodes/pve/qemu HTTP/1.1\r\nhost: p\r\ncontent-length: {body}\r\n\r\n"
    );
    let request = [head.into_bytes(), vec![b'x'; body]].concat();
    assert_eq!(proxmox(&request).await, "HTTP/1.1 501 for data too large");
    let large = 17 << 20;
    let head = format!("POST /schematics HTTP/1.1\r\nhost: f\r\ncontent-length: {large}\r\n\r\n");
    let request = [head.into_bytes(), vec![b'x'; large]].concat();
    let answer = told(&host, "factory.talos.dev", 443, &request).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 413"), "{answer}");
    assert!(
        host.requests().iter().all(|request| request.server != "proxmox"),
        "nothing came through"
    );
}

/// Over HTTP/2 whoever is not heard to the end is reset, and takes that for the answer: so the server hears it all.
#[tokio::test(start_paused = true)]
async fn too_much_of_a_request_is_refused_in_words_over_http2_too() {
    let host = memory(1);
    for announced in [true, false] {
        let io = TokioIo::new(over_http2(&host).await);
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let connection = host.shared.spawn(async move { drop(connection.await) });
        let last = Arc::new(AtomicBool::new(false));
        let asked_for = last.clone();
        let pieces = stream::iter(0..17).map(move |number| {
            asked_for.store(number == 16, Ordering::Relaxed);
            Ok::<_, io::Error>(Bytes::from(vec![b'x'; 1 << 20]))
        });
        let mut request = Request::post("https://raw.githubusercontent.com/much");
        if announced {
            request = request.header("content-length", 17 << 20);
        }
        let request = request.body(Body::from_stream(pieces)).unwrap();
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), 413, "announced: {announced}");
        assert!(last.load(Ordering::Relaxed), "the client was let send all of it");
        assert!(answer.into_body().collect().await.unwrap().to_bytes().is_empty());
        connection.abort();
    }
    assert_eq!(host.requests().len(), 0, "nothing came through");
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_come_twice_and_is_no_other_calls() {
    let host = memory(1);
    let token = host.read(|world| {
        let birth = &world.birth.proxmox;
        format!("PVEAPIToken={}={}", birth.token_id, birth.token_secret)
    });
    let names = Names::of(&spec(3, 2));
    host.arm(vec![Rule::parse("proxmox: answers twice", &names).unwrap()]);
    let mut stream = secured(&host, "pve.lan", 8006).await;
    let head = "GET /api2/json/version HTTP/1.1\r\nhost: p\r\nconnection: close\r\n";
    let request = format!("{head}authorization: {token}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let told = rest(&mut stream).await;
    let (one, other) = told.split_at(told.len() / 2);
    assert!(one.starts_with("HTTP/1.1 200") && one == other, "{told}");

    let before = host.strikes().len();
    let pin = Verify::Fingerprint(parse_fingerprint(&host.proxmox_fingerprint().unwrap()).unwrap());
    let client = Rest::open(&host.world(), "https://pve.lan:8006", &pin).unwrap();
    for (path, status) in [("/version", 200), ("/nosuch", 501), ("/version", 200), ("/nodes", 200)]
    {
        let headers = vec![(http::header::AUTHORIZATION, HeaderValue::from_str(&token).unwrap())];
        let path = format!("/api2/json{path}");
        let reply = client.request(Method::GET, &path, headers, "").await.unwrap();
        assert_eq!(reply.status, status, "{path}");
        assert_eq!(reply.text().contains("repoid"), path.ends_with("version"), "{path}");
    }
    assert_eq!(host.strikes().len() - before, 4, "each of them came twice");
}

#[tokio::test(start_paused = true)]
async fn a_hundred_who_never_read_do_not_stall_the_world() {
    let host = memory(1);
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = secured(&host, "raw.githubusercontent.com", 443).await;
        let path = "/longhorn/longhorn/v1.10.0/deploy/longhorn.yaml";
        let request = format!("GET {path} HTTP/1.1\r\nhost: r\r\n\r\n");
        // The same question again and again; the answers are never taken.
        stream.write_all(request.repeat(20).as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
        idle.push(stream);
    }
    let before = host.now();
    assert_eq!(get(&host, "https://factory.talos.dev", "/versions").await.status, 200);
    assert!(host.now() - before < 1_000);
}

#[tokio::test(start_paused = true)]
async fn whoever_holds_an_http2_connection_for_nothing_is_let_go() {
    let host = memory(1);
    let began = host.now();
    let mut silent = over_http2(&host).await;
    rest(&mut silent).await;
    assert_eq!(host.now() - began, 70_000, "not even a preface");

    let began = host.now();
    let mut dead = over_http2(&host).await;
    dead.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    rest(&mut dead).await;
    assert_eq!(host.now() - began, 40_000, "no answer to a ping");

    let io = TokioIo::new(over_http2(&host).await);
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let mut connection = pin!(connection);
    let request = Request::get(MANIFEST).body(Body::empty()).unwrap();
    let answer = asked(&mut sender, connection.as_mut(), request).await.unwrap();
    tokio::select! {
        biased;
        body = answer.into_body().collect() => assert!(body.unwrap().to_bytes().len() > 1_000),
        _ = connection.as_mut() => panic!("the connection is gone before the answer is"),
    }
    let began = host.now();
    connection.await.unwrap();
    assert_eq!(host.now() - began, 60_000, "one answer, and then pings alone");
    drop(sender);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_read_holds_no_http2_connection() {
    let host = memory(1);
    let io = TokioIo::new(over_http2(&host).await);
    let mut client = http2::Builder::new(TokioExecutor::new());
    let client = client.initial_stream_window_size(1);
    let (mut sender, connection) = client.handshake(io).await.unwrap();
    let mut connection = pin!(connection);
    let request = Request::get(MANIFEST).body(Body::empty()).unwrap();
    let answer = asked(&mut sender, connection.as_mut(), request).await.unwrap();
    let began = host.now();
    drop(connection.await);
    assert_eq!(host.now() - began, 70_000, "a minute, and ten seconds to part");
    drop((answer, sender));
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_machine_whose_body_never_ends_is_broken_off() {
    let host = memory(3);
    host.spawn_driver();
    download(&host).await;
    boot(&host, &spec(1, 0).nodes[0]).await;
    let anyone = Verify::RecordOnly(Arc::default());
    let machine = spoken(&host, ("192.168.1.211", 50_000), (&anyone, b"h2")).await;
    let client = http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = client.handshake(TokioIo::new(machine)).await.unwrap();
    let request = Request::post("https://192.168.1.211:50000/machine.MachineService/Version")
        .header("content-type", "application/grpc")
        .body(Body::from_stream(stream::pending::<io::Result<Bytes>>()))
        .unwrap();
    let began = host.now();
    let answer = asked(&mut sender, pin!(connection), request).await;
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(host.now() - began, 60_000);
}
