//! Clients that nobody would write on purpose: garbage, silence, one byte at a time, too much of everything.

use std::time::Duration;

use castle_wire::tls::client_config;
use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;
use crate::host::dial::{Found, find};
use crate::host::serve::{self, Patience};

const PATIENCE: Patience = Patience {
    handshake: Duration::from_secs(10),
    head: Duration::from_secs(30),
    body: Duration::from_mins(1),
};

/// A connection from outside to a server, before a word is said.
fn connect(host: &Host, name: &str, port: u16) -> DuplexStream {
    let Found::Target(target) = find(&host.shared, name, port) else { panic!("nobody is there") };
    let (near, far) = tokio::io::duplex(64 * 1024);
    host.shared.spawn(serve::connection(host.shared.clone(), target, far, Some(PATIENCE)));
    near
}

/// The same, after the handshake.
async fn secured(host: &Host, name: &'static str, port: u16) -> TlsStream<DuplexStream> {
    let world = host.world();
    let verify = Verify::Roots(world.roots.clone());
    let config = client_config(&verify, None, world.clock.clone(), &[b"http/1.1"]).unwrap();
    let name_of = ServerName::try_from(name).unwrap();
    TlsConnector::from(config).connect(name_of, connect(host, name, port)).await.unwrap()
}

/// All that comes until the end.
async fn rest(stream: &mut (impl tokio::io::AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    drop(stream.read_to_end(&mut bytes).await);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What a server answers to bytes, whatever they are.
async fn told(host: &Host, name: &'static str, port: u16, bytes: &[u8]) -> String {
    let mut stream = secured(host, name, port).await;
    // A server that has heard enough may close before all is said.
    drop(stream.write_all(bytes).await);
    rest(&mut stream).await
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
    assert_eq!(host.now() - began, 10_000, "no handshake");

    let mut slow = secured(&host, "pve.lan", 8006).await;
    slow.write_all(b"GET /api2/json/version HTTP/1.1\r\nhost: p").await.unwrap();
    let began = host.now();
    rest(&mut slow).await;
    assert_eq!(host.now() - began, 30_000, "half a head");

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
async fn what_is_no_request_or_too_much_of_one_is_refused() {
    let host = memory(1);
    let status = |answer: &str| answer.lines().next().unwrap_or_default().to_owned();
    let proxmox = async |bytes: &[u8]| status(&told(&host, "pve.lan", 8006, bytes).await);
    assert_eq!(proxmox(b"NONSENSE\r\n\r\n").await, "HTTP/1.1 400 Bad Request");
    assert_eq!(proxmox(b"GET /a b c HTTP/1.1\r\n\r\n").await, "HTTP/1.1 400 Bad Request");
    assert_eq!(proxmox(b"GET / HTTP/9.9\r\n\r\n").await, "HTTP/1.1 400 Bad Request");
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(500));
    let too_many = "HTTP/1.1 431 Request Header Fields Too Large";
    assert_eq!(proxmox(many.as_bytes()).await, too_many);
    let long = format!("GET / HTTP/1.1\r\na: {}\r\n\r\n", "b".repeat(1 << 20));
    assert_eq!(proxmox(long.as_bytes()).await, too_many);
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
