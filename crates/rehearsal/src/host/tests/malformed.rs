//! Requests that are none, or nearly: each server says to them what the real one says.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::wire::{rest, secured, told};
use super::*;

const PROXMOX: (&str, u16) = ("pve.lan", 8006);
const INFISICAL: (&str, u16) = ("eu.infisical.com", 443);
const FACTORY: (&str, u16) = ("factory.talos.dev", 443);

/// An answer with its dates masked.
fn masked(answer: &str) -> String {
    let lines = answer.split("\r\n").map(|line| match line.split_once(": ") {
        Some((name @ ("Date" | "Expires"), date)) => {
            assert!(date.ends_with(" GMT") && date.len() == 29, "{date}");
            format!("{name}: *")
        }
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\r\n")
}

async fn said(host: &Host, (name, port): (&'static str, u16), bytes: &[u8]) -> String {
    masked(&told(host, name, port, bytes).await)
}

/// The first line of an answer.
fn status(answer: &str) -> &str {
    answer.split("\r\n").next().unwrap_or_default()
}

/// What libpve-http-server-perl's `AnyEvent.pm` makes of each, and the order of headers that its answers were recorded with.
#[tokio::test(start_paused = true)]
async fn proxmox_daemon_answers_what_is_no_request_in_its_words() {
    let host = memory(1);
    let rest = "Cache-Control: max-age=0\r\nConnection: close\r\nDate: *\r\nPragma: no-cache\r\nServer: pve-api-daemon/3.0\r\nExpires: *\r\n\r\n";
    let head = "GET /api2/json/version HTTP/1.1\r\n";
    for (bytes, line) in [
        ("NONSENSE\r\n\r\n".to_owned(), "HTTP/1.0 400 bad request"),
        ("GET /\r\n\r\n".to_owned(), "HTTP/1.0 400 bad request"),
        ("GET  / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.0 400 bad request"),
        ("\r\n\nGET / http/1.1\r\n\r\n".to_owned(), "HTTP/1.0 400 bad request"),
        ("GET / HTTP/1\r\n\r\n".to_owned(), "HTTP/1.0 400 bad request"),
        (
            "GET / HTTP/9.9\r\n\r\n".to_owned(),
            "HTTP/1.0 506 http protocol version 9.9 not supported",
        ),
        (
            "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
            "HTTP/1.0 506 http protocol version 2.0 not supported",
        ),
        ("GET me@there/x HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.0 400 invalid url"),
        (format!("{head}nonsense\r\n\r\n"), "HTTP/1.1 506 unable to parse request header"),
        (format!("{head}: x\r\n\r\n"), "HTTP/1.1 506 unable to parse request header"),
        (format!("{head}a b: x\r\n\r\n"), "HTTP/1.1 506 unable to parse request header"),
        (
            format!("{head}transfer-encoding: chunked\r\n\r\n"),
            "HTTP/1.1 501 chunked transfer encoding not supported",
        ),
        (
            format!("{head}transfer-encoding: gzip\r\n\r\n"),
            "HTTP/1.1 501 Unknown transfer encoding 'gzip'",
        ),
        ("get / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 501 method 'get' not available"),
        ("OPTIONS * HTTP/1.0\r\n\r\n".to_owned(), "HTTP/1.0 501 method 'OPTIONS' not available"),
        ("CONNECT x:1 HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 501 method 'CONNECT' not available"),
        ("G@T / HTTP/1.1\r\n\r\n".to_owned(), "HTTP/1.1 501 method 'G@T' not available"),
    ] {
        let answer = said(&host, PROXMOX, bytes.as_bytes()).await;
        assert_eq!(answer, format!("{line}\r\n{rest}"), "{bytes:?}");
    }
    assert_eq!(host.requests().len(), 0, "nothing came through");
}

#[tokio::test(start_paused = true)]
async fn proxmox_daemon_takes_what_others_would_not() {
    let host = memory(1);
    let close = "connection: close\r\n";
    for head in [
        // Anywhere in the line; ends of lines without CR; a name before its colon; a field of two lines; no host.
        format!("please GET /api2/json/version HTTP/1.1 now\r\n{close}\r\n"),
        format!("GET /api2/json/version HTTP/1.7\n{close}\n"),
        format!("GET /api2/json/version HTTP/1.1\r\n{close}a : b\r\n\r\n"),
        format!("GET /api2/json/version HTTP/1.1\r\n{close}a: b\r\n c\r\n\r\n"),
        format!("GET /api2/json/version HTTP/1.1\r\n{close}a(b): c\0\r\n\r\n"),
        format!("GET https://elsewhere/api2/json/version HTTP/1.1\r\n{close}\r\n"),
        "GET /api2/json/version HTTP/1.0\r\n\r\n".to_owned(),
    ] {
        let answer = told(&host, PROXMOX.0, PROXMOX.1, head.as_bytes()).await;
        assert!(status(&answer).ends_with(" 401 No ticket"), "{head:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn proxmox_daemon_dies_of_many_lines_and_of_long_ones() {
    let host = memory(1);
    let head = "GET /api2/json/version HTTP/1.1\r\nconnection: close\r\n";
    let with = |more: &str| format!("{head}{more}\r\n").into_bytes();
    let enough = told(&host, PROXMOX.0, PROXMOX.1, &with(&"a: b\r\n".repeat(61))).await;
    assert_eq!(status(&enough), "HTTP/1.1 401 No ticket");
    for more in ["a: b\r\n".repeat(62), format!("a: {}\r\n", "b".repeat(8 * 1024))] {
        let began = host.now();
        assert_eq!(told(&host, PROXMOX.0, PROXMOX.1, &with(&more)).await, "");
        assert_eq!(host.now() - began, 5_000);
    }
    let began = host.now();
    let long = [b"GET /".to_vec(), vec![b'a'; 70_000]].concat();
    assert_eq!(told(&host, PROXMOX.0, PROXMOX.1, &long).await, "");
    assert!(host.now() - began < 1_000, "its buffer is full");
}

const CLIENT_ERROR: &str = "HTTP/1.1 400 Bad Request\r\nContent-Length: 65\r\nContent-Type: application/json\r\n\r\n\
     {\"error\":\"Bad Request\",\"message\":\"Client Error\",\"statusCode\":400}";
const TOO_LARGE: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 114\r\nContent-Type: application/json\r\n\r\n\
     {\"error\":\"Request Header Fields Too Large\",\"message\":\"Exceeded maximum allowed HTTP header size\",\"statusCode\":431}";
const OTHER_VERSION: &str = "HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: application/json\r\nContent-Length: 94\r\nDate: *\r\nConnection: close\r\n\r\n\
     {\"error\":\"HTTP Version Not Supported\",\"message\":\"HTTP Version Not Supported\",\"statusCode\":505}";
const NO_HOST: &str = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\nDate: *\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
const UNEXPECTED: &str = "HTTP/1.1 417 Expectation Failed\r\nDate: *\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
const BAD_URL: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 117\r\nDate: *\r\nConnection: close\r\n\r\n\
     {\"error\":\"Bad Request\",\"code\":\"FST_ERR_BAD_URL\",\"message\":\"'/api/%zz' is not a valid url component\",\"statusCode\":400}";

/// Recorded from Fastify 4.29.1 on Node 22.22.0, set up as Infisical's backend sets it up.
#[tokio::test(start_paused = true)]
async fn infisical_answers_what_is_no_request_as_fastify_does() {
    let host = memory(1);
    let head = "GET /api/status HTTP/1.1\r\nHost: x\r\n";
    let post = "POST /api/status HTTP/1.1\r\nHost: x\r\n";
    let one = |text: &str| text.as_bytes().to_vec();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (one("NONSENSE"), CLIENT_ERROR),
        (one("GET /\r\n\r\n"), OTHER_VERSION),
        (one("GET /\n\n"), CLIENT_ERROR),
        (one("GET / HTTP/2.0\r\nHost: x\r\n\r\n"), OTHER_VERSION),
        (one("GET /api/status HTTP/0.9\r\n\r\n"), OTHER_VERSION),
        (one("GET / HTTP/1.2\r\n"), CLIENT_ERROR),
        (one("GET / HTTP/9.9\r\n"), CLIENT_ERROR),
        (one("GET / HTTP/1\r\n"), CLIENT_ERROR),
        (one("GET / HTTP/1.10\r\n"), CLIENT_ERROR),
        (one("GET /x HTX"), CLIENT_ERROR),
        (one("GET /a b c HTTP/1.1\r\n"), CLIENT_ERROR),
        (one("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), CLIENT_ERROR),
        (one("get /api/status HTTP/1.1\r\n"), CLIENT_ERROR),
        (one("BREW / HTTP/1.1\r\n"), CLIENT_ERROR),
        (one("GET api/status HTTP/1.1\r\n"), CLIENT_ERROR),
        (one("GET  HTTP/1.1\r\n"), CLIENT_ERROR),
        (one("GET /a\0b HTTP/1.1\r\n"), CLIENT_ERROR),
        (b"GET /a\xff HTTP/1.1\r\n".to_vec(), CLIENT_ERROR),
        (one("GET /api/%zz HTTP/1.1\r\nHost: x\r\n\r\n"), BAD_URL),
        (one("GET /api/status HTTP/1.1\r\n\r\n"), NO_HOST),
        (one("CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n"), ""),
        (one("GET /api/status HTTP/1.1\nHost: x\n\n"), CLIENT_ERROR),
        (one("GET /api/status HTTP/1.1\r\nHost: x\n\n"), CLIENT_ERROR),
        (one(" GET /api/status HTTP/1.1\r\n"), CLIENT_ERROR),
        (one(&format!("{head}nonsense\r\n")), CLIENT_ERROR),
        (one(&format!("{head}: x")), CLIENT_ERROR),
        (one(&format!("{head}A : x")), CLIENT_ERROR),
        (one(&format!("{head}A(")), CLIENT_ERROR),
        (one(&format!("{head}A: x\0")), CLIENT_ERROR),
        (one(&format!("{head}A: x\u{7f}")), CLIENT_ERROR),
        (one(&format!("{head}A: x\ry\r\n")), CLIENT_ERROR),
        (one(&format!("{head}A: x\r\n y\r\n")), CLIENT_ERROR),
        (one(&format!("{head}Expect: nonsense\r\n\r\n")), UNEXPECTED),
        (one(&format!("{post}Content-Length: 2\r\nContent-Length: 2\r\n\r\n{{}}")), CLIENT_ERROR),
        (one(&format!("{post}Content-Length: 2, 2\r\n\r\n{{}}")), CLIENT_ERROR),
        (one(&format!("{post}Content-Length: abc\r\n\r\n{{}}")), CLIENT_ERROR),
        (one(&format!("{post}Content-Length:\r\n\r\n{{}}")), CLIENT_ERROR),
        (one(&format!("{post}Content-Length: 99999999999999999999\r\n\r\n{{}}")), CLIENT_ERROR),
        (
            one(&format!("{post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")),
            CLIENT_ERROR,
        ),
        (one(&format!("{post}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n")), CLIENT_ERROR),
        (
            one(&format!(
                "{post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            )),
            CLIENT_ERROR,
        ),
        (
            one(&format!("{post}Transfer-Encoding: chunked\r\n\r\nzz\r\n{{}}\r\n0\r\n\r\n")),
            CLIENT_ERROR,
        ),
        (
            one(&format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}x\r\n0\r\n\r\n")),
            CLIENT_ERROR,
        ),
        (one(&format!("{post}Transfer-Encoding: chunked\r\n\r\n2\n{{}}\n0\n\n")), CLIENT_ERROR),
        // 16 KiB of targets, names and values are too many; one less is not.
        (
            one(&format!("GET / HTTP/1.1\r\nHost: x\r\nA: {}\r\n\r\n", "b".repeat(16_377))),
            TOO_LARGE,
        ),
        (one(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(70_000))), TOO_LARGE),
    ];
    for (bytes, answer) in cases {
        let told = said(&host, INFISICAL, &bytes).await;
        assert_eq!(told, answer, "{:?}", String::from_utf8_lossy(&bytes[..bytes.len().min(200)]));
    }
    assert_eq!(host.requests().len(), 0, "nothing came through");
}

#[tokio::test(start_paused = true)]
async fn infisical_takes_what_fastify_takes() {
    let host = memory(1);
    let close = "Host: x\r\nConnection: close\r\n";
    for head in [
        format!("GET /api/status HTTP/1.1\r\n{close}\r\n"),
        format!("\r\n\nGET  /api/status  HTTP/1.1\r\n{close}\r\n"),
        format!("GET http://other/api/status HTTP/1.1\r\n{close}\r\n"),
        format!("GET /api/status#x HTTP/1.1\r\n{close}\r\n"),
        format!("GET /api/status HTTP/1.1\r\nHost: y\r\n{close}\r\n"),
        format!("GET /api/status HTTP/1.1\r\n{close}A: {}\r\n\r\n", "b".repeat(16_300)),
        format!("GET /api/status HTTP/1.1\r\n{}{close}\r\n", "a: b\r\n".repeat(4000)),
        format!("GET /api/status HTTP/1.1\r\n{close}Content-Length: 2\r\n\r\n{{}}"),
        "GET /api/status HTTP/1.0\r\n\r\n".to_owned(),
    ] {
        let answer = told(&host, INFISICAL.0, INFISICAL.1, head.as_bytes()).await;
        let shown = &head[..head.len().min(200)];
        assert!(status(&answer).ends_with(" 200 OK"), "{shown:?}: {answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_too_slowly_is_answered_by_infisical_alone() {
    let host = memory(1);
    let mut slow = secured(&host, INFISICAL.0, INFISICAL.1).await;
    let began = host.now();
    for byte in b"GET /api/status HTTP/1.1\r\nHost: somewhere\r\n".iter().take(3) {
        slow.write_all(&[*byte]).await.unwrap();
        crate::host::dial::pause(std::time::Duration::from_secs(25)).await;
    }
    let answer = rest(&mut slow).await;
    assert_eq!(status(&answer), "HTTP/1.1 408 Request Timeout");
    assert!(
        answer.ends_with(
            r#"{"error":"Request Timeout","message":"Client Timeout","statusCode":408}"#
        )
    );
    assert!((60_000..76_000).contains(&(host.now() - began)));
}

/// The second request is judged as the first, and answered after it.
#[tokio::test(start_paused = true)]
async fn what_follows_a_request_is_judged_when_that_is_answered() {
    let host = memory(1);
    let good = "GET /versions HTTP/1.1\r\nhost: f\r\n\r\n";
    let posted = "POST /nothing HTTP/1.1\r\nhost: f\r\ntransfer-encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n";
    let told =
        said(&host, FACTORY, format!("{good}{posted}\r\n{good}NONSENSE\r\n{good}").as_bytes())
            .await;
    let lines: Vec<&str> = told.split("HTTP/1.1 ").skip(1).map(status).collect();
    assert_eq!(lines.len(), 4, "{told}");
    assert_eq!((lines[0], lines[2], lines[3]), ("200 OK", "200 OK", "400 Bad Request"));
    assert!(told.ends_with("400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stops_in_the_middle_is_told_by_some() {
    let host = memory(1);
    for ((name, port), line) in [
        (PROXMOX, ""),
        (INFISICAL, "HTTP/1.1 400 Bad Request"),
        (FACTORY, "HTTP/1.1 400 Bad Request"),
    ] {
        for half in ["GET / HTTP/1.1\r\nHos", "GET /"] {
            let mut stream = secured(&host, name, port).await;
            stream.write_all(half.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert_eq!(status(&answer), line, "{name} {half:?}");
        }
    }
}
