//! What is hardly a request: bytes that go over TLS as they are, and what comes back.

use std::time::Duration;

use serde_json::{Value, json};

use super::Case;
use super::api::Api;

pub(super) const CASES: &[Case] = &[
    ("first lines", |api| Box::pin(lines(api))),
    ("targets", |api| Box::pin(targets(api))),
    ("fields", |api| Box::pin(fields(api))),
    ("lengths and encodings", |api| Box::pin(framing(api))),
    ("heads without end", |api| Box::pin(sizes(api))),
    ("one request after another", |api| Box::pin(pipelined(api))),
    ("answers in yaml", |api| Box::pin(yaml(api))),
    ("keys that come twice", |api| Box::pin(twice(api))),
];

/// How long nothing has to come until nothing will.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Headers that only the real one has, or whose values nobody can know.
const OWN: &[&str] = &["audit-id", "cache-control", "content-length", "transfer-encoding"];

const CLOSE: &str = "Host: x\r\nConnection: close\r\n";

/// An answer as it is compared: its first line, its headers in their order, its body.
fn told(answer: &[u8]) -> Value {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let mut lines = head.split("\r\n");
    let first = lines.next().unwrap_or_default();
    let plain = |line: &str| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        let name = name.to_ascii_lowercase();
        let own = OWN.contains(&&*name) || name.starts_with("x-") || name == "date";
        (!own).then(|| format!("{name}: {value}"))
    };
    let mut headers: Vec<String> = lines.filter_map(plain).collect();
    headers.sort();
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { joined(body) } else { body.to_owned() };
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    // What a version says of itself is its own.
    let body = if body["gitVersion"].is_string() { json!("<version>") } else { body };
    let yaml = headers.iter().any(|header| header == "content-type: application/yaml");
    let body = match &body {
        Value::String(text) if yaml => json!(text.lines().map(veiled).collect::<Vec<_>>()),
        _ => body,
    };
    json!({"first": first, "headers": headers, "body": without_patched(body)})
}

/// A line of YAML without what must differ.
fn veiled(line: &str) -> String {
    let (name, value) = line.split_once(": ").unwrap_or((line, ""));
    let veils = ["uid", "resourceVersion", "creationTimestamp", "time", "delay"];
    let plain = name.trim_start_matches([' ', '-', '\'']);
    let veiled = veils.contains(&plain) && !value.is_empty();
    if veiled { format!("{name}: *") } else { line.to_owned() }
}

/// The words of a refusal without the object that a patch made: it has what must differ.
fn without_patched(mut body: Value) -> Value {
    let cut = |text: &str| match (
        text.find("Invalid value: \"{"),
        text.find(": strict decoding error"),
    ) {
        (Some(from), Some(to)) if from < to => format!("{}*{}", &text[..from], &text[to..]),
        _ => text.to_owned(),
    };
    if let Some(message) = body["message"].as_str().map(cut) {
        body["message"] = message.into();
        if let Some(cause) = body["details"]["causes"][0]["message"].as_str().map(cut) {
            body["details"]["causes"][0]["message"] = cause.into();
        }
    }
    body
}

/// A body without its chunks.
fn joined(body: &str) -> String {
    let (mut rest, mut whole) = (body, String::new());
    while let Some((size, more)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap_or_default();
        let Some(piece) = more.get(..size).filter(|_| size > 0) else { break };
        whole.push_str(piece);
        rest = more.get(size + 2..).unwrap_or_default();
    }
    whole
}

/// Sends bytes, and notes all that comes back.
async fn send(api: &Api, bytes: impl AsRef<[u8]>) {
    let bytes = bytes.as_ref();
    let step: String = String::from_utf8_lossy(bytes).chars().take(120).collect();
    let step = format!("{step:?} ({})", bytes.len());
    let (answer, ended) = api.stranger.bytes(bytes, PATIENCE).await.unwrap();
    api.note(&step, json!({"answer": told(&answer), "ended": ended}));
}

async fn lines(api: &Api) {
    for line in [
        "NONSENSE",
        "GET /version",
        "GET",
        " GET /version HTTP/1.1",
        "GET  /version HTTP/1.1",
        "GET /version  HTTP/1.1",
        "GET /version HTTP/1.1 ",
        "GET /version HTTP/1.1 x",
        "GET /a b c HTTP/1.1",
        "GET\t/version\tHTTP/1.1",
        "GET /version HTTP/0.9",
        "GET /version HTTP/1.0",
        "GET /version HTTP/1.2",
        "GET /version HTTP/2.0",
        "GET /version HTTP/9.9",
        "GET /version HTTP/1",
        "GET /version HTTP/1.10",
        "GET /version HTTP/a.b",
        "GET /version http/1.1",
        "GET /version FTP/1.1",
        "get /version HTTP/1.1",
        "BREW /version HTTP/1.1",
        "G@T /version HTTP/1.1",
        "G\u{e4}T /version HTTP/1.1",
        "TRACE /version HTTP/1.1",
        "OPTIONS /version HTTP/1.1",
        "OPTIONS * HTTP/1.1",
        "CONNECT x:443 HTTP/1.1",
        "CONNECT /version HTTP/1.1",
        "HEAD /version HTTP/1.1",
    ] {
        send(api, format!("{line}\r\n{CLOSE}\r\n")).await;
    }
    send(api, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    send(api, format!("\r\nGET /version HTTP/1.1\r\n{CLOSE}\r\n")).await;
    send(api, format!("\nGET /version HTTP/1.1\r\n{CLOSE}\r\n")).await;
    send(api, "GET /version HTTP/1.1\nHost: x\nConnection: close\n\n").await;
    send(api, "GET /version HTTP/1.1\rHost: x\rConnection: close\r\r").await;
    send(api, "NONSENSE\r\n").await;
    send(api, "NONSENSE").await;
    send(api, "\0\0\0\0\n").await;
}

async fn targets(api: &Api) {
    for target in [
        "*",
        "version",
        "?x",
        "//version",
        "/version?",
        "/version?x=%zz",
        "/version#x",
        "/version/",
        "/%76ersion",
        "/%zz",
        "/%",
        "/%0",
        "/a%00b",
        "/a\0b",
        "/a\tb",
        "/a\u{7f}b",
        "/a\u{e4}b",
        "/a\"<>^`{|}\\b",
        "/nobody/here",
        "http://other/version",
        "http://other",
        "http://other:1/version",
        "http://other:x/version",
        "http://o ther/version",
        "http://o%20ther/version",
        "http://[::1]/version",
        "http://[::1/version",
        "http://me:you@other/version",
        "ftp://other/version",
        "other:version",
        ":version",
        "1http://other/version",
    ] {
        send(api, format!("GET {target} HTTP/1.1\r\n{CLOSE}\r\n")).await;
    }
    let long = "a".repeat(70_000);
    send(api, format!("GET /{long} HTTP/1.1\r\n{CLOSE}\r\n")).await;
}

async fn fields(api: &Api) {
    let head = "GET /version HTTP/1.1\r\n";
    for field in [
        "nonsense",
        ": x",
        "A : x",
        "A B: x",
        " A: x",
        "A(B): x",
        "A\u{e4}: x",
        "A_B: x",
        "A: \u{e4}",
        "A: x\0y",
        "A: x\u{1}y",
        "A: x\u{7f}y",
        "A: x\ry",
        "A: x\r\n y",
        "A: x\r\n\ty\r\n z",
        "A:",
        "Expect: 100-continue",
        "Expect: nonsense",
        "Host: x",
        "Upgrade: nonsense\r\nConnection: upgrade",
        "Trailer: Content-Length",
    ] {
        send(api, format!("{head}{CLOSE}{field}\r\n\r\n")).await;
    }
    for first in [" A: x", "\tA: x", "A: x\nB: y"] {
        send(api, format!("{head}{first}\r\n{CLOSE}\r\n")).await;
    }
    for host in [
        "",
        "Host:\r\n",
        "Host: a b\r\n",
        "Host: a/b\r\n",
        "Host: a@b\r\n",
        "Host: \u{e4}\r\n",
        "Host: a,b\r\n",
        "host: x:1\r\n",
        "Host: a\r\nHost: b\r\n",
        "Host: a\r\nhost: a\r\n",
        "Host : x\r\n",
    ] {
        for version in ["1.0", "1.1"] {
            let line = format!("GET /version HTTP/{version}\r\n");
            send(api, format!("{line}{host}Connection: close\r\n\r\n")).await;
        }
    }
}

async fn framing(api: &Api) {
    let path = api.core("configmaps?dryRun=All");
    let head = format!("POST {path} HTTP/1.1\r\n{CLOSE}Content-Type: application/json\r\n");
    for (fields, body) in [
        ("Content-Length: 2\r\n", "{}"),
        ("Content-Length: 2\r\nContent-Length: 2\r\n", "{}"),
        ("Content-Length: 2\r\nContent-Length: 3\r\n", "{}"),
        ("Content-Length: 2, 2\r\n", "{}"),
        ("Content-Length: abc\r\n", "{}"),
        ("Content-Length: -1\r\n", "{}"),
        ("Content-Length: +2\r\n", "{}"),
        ("Content-Length: 0x2\r\n", "{}"),
        ("Content-Length: 2_0\r\n", "{}"),
        ("Content-Length:\r\n", "{}"),
        ("Content-Length: 9223372036854775808\r\n", "{}"),
        ("Content-Length: 99999999999999999999999\r\n", "{}"),
        ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: CHUNKED\r\n", "2\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2;a=b\r\n{}\r\n0\r\nA: b\r\n\r\n"),
        ("Transfer-Encoding: gzip\r\n", "{}"),
        ("Transfer-Encoding: identity\r\n", "{}"),
        ("Transfer-Encoding:\r\n", "{}"),
        ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\nTrailer: Content-Length\r\n", "0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "zz\r\n{}\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2\r\n{}x\r\n0\r\n\r\n"),
        ("Transfer-Encoding: chunked\r\n", "2\n{}\n0\n\n"),
        ("Transfer-Encoding: chunked\r\n", "\r\n{}\r\n"),
        ("Transfer-Encoding: chunked\r\n", "fffffffffffffffff\r\n"),
        ("", "{}"),
    ] {
        send(api, format!("{head}{fields}\r\n{body}")).await;
    }
    let old = head.replace("HTTP/1.1", "HTTP/1.0");
    send(api, format!("{old}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n")).await;
    send(api, format!("{old}Transfer-Encoding: gzip\r\n\r\n")).await;
}

async fn sizes(api: &Api) {
    let head = format!("GET /version HTTP/1.1\r\n{CLOSE}");
    for many in [101, 3000] {
        let fields: Vec<String> = (0..many).map(|number| format!("a{number}: b\r\n")).collect();
        let fields = fields.concat();
        send(api, format!("{head}{fields}\r\n")).await;
    }
    for size in [100_000, 1_000_000, 1_200_000] {
        send(api, format!("{head}A: {}\r\n\r\n", "b".repeat(size))).await;
    }
    send(api, "a".repeat(1_200_000)).await;
}

async fn pipelined(api: &Api) {
    let good = "GET /version HTTP/1.1\r\nHost: x\r\n\r\n";
    let path = api.core("configmaps?dryRun=All");
    let post = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n");
    let chunks = format!("{post}Transfer-Encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n");
    let length = format!("{post}Content-Length: 2\r\n\r\n{{}}");
    for after in [
        format!("{good}NONSENSE\r\n"),
        format!("{good}\r\nNONSENSE\r\n"),
        format!("{length}NONSENSE\r\n"),
        format!("{length}\r\nNONSENSE\r\n"),
        format!("{length}\r\n\r\nGET /version HTTP/9.9\r\nHost: x\r\n\r\n"),
        format!("{length}\r\n\r\n\r\nNONSENSE\r\n"),
        format!("{chunks}GET /version HTTP/1.1\r\n\r\n"),
        format!("{chunks}xx"),
    ] {
        let (answer, ended) = api.stranger.bytes(after.as_bytes(), PATIENCE).await.unwrap();
        let text = String::from_utf8_lossy(&answer);
        let firsts: Vec<&str> = text.match_indices("HTTP/1.").map(|(at, _)| &text[at..]).collect();
        let firsts: Vec<&str> = firsts.iter().filter_map(|text| text.lines().next()).collect();
        api.note(&format!("{after:?}"), json!({"firsts": firsts, "ended": ended}));
    }
}

/// Asks with a body of a media type, accepting another.
async fn ask(api: &Api, line: &str, (accept, media): (&str, &str), body: &str) {
    let length = body.len();
    let about = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: {media}\r\nContent-Length: {length}\r\n")
    };
    let head = format!("{line} HTTP/1.1\r\n{CLOSE}Accept: {accept}\r\nUser-Agent: asks/1\r\n");
    let bytes = format!("{head}{about}\r\n{body}");
    let (answer, ended) = api.stranger.bytes(bytes.as_bytes(), PATIENCE).await.unwrap();
    let line = line.replace(&api.space, "SPACE");
    let step = format!("{line} {accept} {media} {body}");
    api.note(&step, json!({"answer": told(&answer), "ended": ended}));
}

const JSON: &str = "application/json";
const YAML: &str = "application/yaml";

async fn yaml(api: &Api) {
    let long =
        "the quick brown fox jumps over the lazy dog and then goes on and on until it is long";
    let one = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "labels": {"x": "y"}, "annotations": {"n": "12", "y": "no"}},
        "data": {
            "a": "1", "a10": "x", "a2": "x", "lines": "a\n  b\n", "open": "a\nb", "more": "a\n\n", "empty": "",
            "space": " a ", "colon": "a: b", "hash": "a #b", "quote": "it's \"so\"", "tab": "a\tb", "long": long,
            "hard": format!("it's: {long}"), "umlaut": "\u{e4}", "date": "2026-01-02", "null": "null", "dash": "- a",
        },
        "binaryData": {"b": "AAEC"},
    });
    let (all, path) = (api.core("configmaps"), api.core("configmaps/one"));
    ask(api, &format!("POST {all}"), (YAML, JSON), &one.to_string()).await;
    for accept in [
        YAML,
        "application/yaml, application/json",
        "application/json, application/yaml",
        "application/json;q=0.5, application/yaml",
        "application/yaml;q=0.5, */*",
        "text/html, application/yaml;q=0.1",
    ] {
        ask(api, &format!("GET {path}"), (accept, ""), "").await;
    }
    for line in [
        format!("GET {all}?labelSelector=x%3Dy"),
        format!("GET {all}?labelSelector=x%3Dnobody"),
        format!("GET {path}x"),
        format!("GET {all}?limit=abc"),
        "GET /api/v1/nonsense".to_owned(),
        "GET /apis/nonsense/v1".to_owned(),
        "GET /apis/apps".to_owned(),
        "GET /version".to_owned(),
        "GET /readyz".to_owned(),
        format!("DELETE {path}?dryRun=All"),
    ] {
        ask(api, &line, (YAML, ""), "").await;
    }
    ask(api, &format!("POST {all}"), (YAML, JSON), &one.to_string()).await;
    ask(api, &format!("POST {all}"), (YAML, JSON), "{").await;
}

async fn twice(api: &Api) {
    let (all, path) = (api.core("configmaps?dryRun=All"), api.core("configmaps/one?dryRun=All"));
    let one = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"one\"},\"data\":{\"z\":\"1\"}}";
    let path_of_all = api.core("configmaps");
    ask(api, &format!("POST {path_of_all}"), (JSON, JSON), one).await;
    let body = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: NAME\n  name: NAME\ndata:\n  a: \"1\"\n  \"a\": \"2\"\n";
    let more = format!("{body}data:\n  b: \"1\"\nnonsense: 1\n");
    for validation in
        ["", "&fieldValidation=Warn", "&fieldValidation=Strict", "&fieldValidation=Ignore"]
    {
        for body in [body, more.as_str()] {
            let two = body.replace("NAME", "two");
            ask(api, &format!("POST {all}{validation}"), (JSON, YAML), &two).await;
            let same = body.replace("NAME", "one");
            ask(api, &format!("PUT {path}{validation}"), (JSON, YAML), &same).await;
            let line = format!("PATCH {path}&fieldManager=x{validation}");
            ask(api, &line, (JSON, "application/apply-patch+yaml"), &body.replace("NAME", "one"))
                .await;
        }
        for (media, patch) in [
            ("merge", "{\"data\":{\"a\":\"1\",\"a\":\"2\"}}"),
            ("merge", "{\"data\":{\"a\":\"1\"},\"data\":{\"b\":\"2\"},\"nonsense\":1}"),
            ("strategic-merge", "{\"data\":{\"a\":\"1\",\"a\":\"2\"}}"),
            (
                "strategic-merge",
                "{\"nonsense\":[1,true,null,\"x\"],\"data\":{\"b\":\"1\"},\"data\":{\"a\":\"2\"}}",
            ),
            (
                "json",
                "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{},\"value\":{\"a\":\"1\",\"a\":\"2\"}}]",
            ),
            (
                "json",
                "[{\"op\":\"add\",\"path\":\"/data\",\"value\":{\"a\":\"1\"},\"nonsense\":1}]",
            ),
            ("json", "[{\"op\":\"add\",\"path\":\"/nonsense\",\"value\":1}]"),
        ] {
            let media = format!("application/{media}-patch+json");
            ask(api, &format!("PATCH {path}{validation}"), (JSON, &media), patch).await;
        }
    }
}
