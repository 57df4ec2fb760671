//! A server that says what a test tells it to say, over real TLS through a pipe, and notes what it was asked.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use castle_model::Secret;
use castle_model::spec::Trust;
use castle_model::time::Moment;
use castle_wire::{BoxedStream, Clock, DialFuture, Dialer, SystemEntropy, World};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::{Credentials, Infisical, Place};

/// 2026-02-02, inside the lifetime of the certificate.
pub(super) const TODAY: u64 = 1_770_000_000_000;

/// What the server says next.
pub(super) struct Answer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
}

/// A JSON answer.
pub(super) fn says(status: u16, body: &Value) -> Answer {
    let headers = vec![("content-type", "application/json; charset=utf-8".to_owned())];
    Answer { status, headers, body: body.to_string() }
}

/// A refusal in the server's envelope.
pub(super) fn refuses(status: u16, error: &str, message: &str) -> Answer {
    says(
        status,
        &json!({"reqId": "req-1", "statusCode": status, "message": message, "error": error}),
    )
}

/// A good login.
pub(super) fn logs_in(token: &str) -> Answer {
    says(
        200,
        &json!({"accessToken": token, "expiresIn": 1000, "accessTokenMaxTTL": 1000, "tokenType": "Bearer"}),
    )
}

/// A list of the folder's own secrets.
pub(super) fn lists(secrets: &Value) -> Answer {
    says(200, &json!({"secrets": secrets, "imports": []}))
}

/// The connection breaks instead of an answer.
pub(super) fn breaks() -> Answer {
    Answer { status: 0, headers: Vec::new(), body: String::new() }
}

/// Nothing comes at all.
pub(super) fn hangs() -> Answer {
    Answer { status: 1, headers: Vec::new(), body: String::new() }
}

impl Answer {
    /// With one more header.
    pub(super) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// With another body of another kind.
    pub(super) fn body(mut self, kind: &str, body: String) -> Self {
        self.headers = vec![("content-type", kind.to_owned())];
        self.body = body;
        self
    }
}

/// What the server was asked.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) target: String,
    pub(super) token: Option<String>,
    pub(super) body: Value,
}

#[derive(Default)]
struct Script {
    answers: VecDeque<Answer>,
    asked: Vec<Asked>,
}

/// The server, its clock, and a client of it.
pub(super) struct Bench {
    pub(super) client: Infisical,
    pub(super) clock: Arc<HandClock>,
    script: Arc<Mutex<Script>>,
}

/// A clock that stands still until it is set.
pub(super) struct HandClock(pub(super) Mutex<u64>);

impl Clock for HandClock {
    fn now(&self) -> Moment {
        Moment(*self.0.lock().unwrap())
    }
}

struct Server {
    config: Arc<ServerConfig>,
    script: Arc<Mutex<Script>>,
}

impl Bench {
    /// A server with this script; the login is in it.
    pub(super) fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::at("https://eu.infisical.com", answers)
    }

    /// The same for a client that was given this address.
    pub(super) fn at(host: &str, answers: impl IntoIterator<Item = Answer>) -> Self {
        let (config, authority) = tls();
        let script = Script { answers: answers.into_iter().collect(), asked: Vec::new() };
        let script = Arc::new(Mutex::new(script));
        let clock = Arc::new(HandClock(Mutex::new(TODAY)));
        let world = World {
            dialer: Arc::new(Server { config, script: script.clone() }),
            clock: clock.clone(),
            entropy: Arc::new(SystemEntropy),
            roots: Arc::default(),
            cache: None,
        };
        let credentials = Credentials {
            client_id: Secret::new("the-client-id"),
            client_secret: Secret::new(" hunter2\n"),
        };
        let trust = Trust::Authority(authority);
        let client = Infisical::with_trust(&world, host, &trust, credentials).unwrap();
        Self { client, clock, script }
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> Vec<Asked> {
        self.script.lock().unwrap().asked.clone()
    }

    /// Methods and paths of what was asked so far, without queries.
    pub(super) fn calls(&self) -> Vec<String> {
        let line = |asked: &Asked| {
            let path = asked.target.split('?').next().unwrap_or_default().to_owned();
            format!("{} {}", asked.method, path.trim_start_matches("/api/"))
        };
        self.asked().iter().map(line).collect()
    }
}

/// Where all tests look.
pub(super) fn place() -> Place {
    Place {
        project: "p1".to_owned(),
        environment: "dev".to_owned(),
        path: "/castle/blue".to_owned(),
    }
}

fn tls() -> (Arc<ServerConfig>, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let leaf_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["eu.infisical.com".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2027, 1, 1);
    let leaf = params.signed_by(&leaf_key, &issuer).unwrap().der().clone();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth();
    let key = PrivateKeyDer::try_from(leaf_key.serialize_der()).unwrap();
    (Arc::new(builder.with_single_cert(vec![leaf], key).unwrap()), authority)
}

impl Dialer for Server {
    fn dial<'a>(&'a self, _host: &'a str, _port: u16) -> DialFuture<'a> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let serving = serve(theirs, self.config.clone(), self.script.clone());
        Box::pin(async move {
            #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
            drop(tokio::spawn(serving));
            Ok(Box::new(ours) as BoxedStream)
        })
    }
}

async fn serve(pipe: DuplexStream, config: Arc<ServerConfig>, script: Arc<Mutex<Script>>) {
    let Ok(mut stream) = TlsAcceptor::from(config).accept(pipe).await else { return };
    while let Some(asked) = request(&mut stream).await {
        let answer = {
            let mut script = script.lock().unwrap();
            script.asked.push(asked);
            script.answers.pop_front().unwrap_or_else(|| refuses(418, "Script", "it is over"))
        };
        match answer.status {
            0 => return,
            1 => std::future::pending::<()>().await,
            _ => {}
        }
        let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.extend([*name, ": ", value, "\r\n"]);
        }
        head.extend(["content-length: ", &answer.body.len().to_string(), "\r\n\r\n"]);
        // A client that has read enough goes away in the middle.
        let sent = async {
            stream.write_all(head.as_bytes()).await?;
            stream.write_all(answer.body.as_bytes()).await?;
            stream.flush().await
        };
        if sent.await.is_err() {
            return;
        }
    }
}

async fn request(stream: &mut TlsStream<DuplexStream>) -> Option<Asked> {
    let mut seen = Vec::new();
    let mut buffer = vec![0; 65_536];
    let end = loop {
        if let Some(at) = seen.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        seen.extend_from_slice(&buffer[..count]);
    };
    let head = String::from_utf8(seen[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |name: &str| {
        head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let length: usize = header("content-length").map_or(0, |text| text.parse().unwrap());
    while seen.len() < end + 4 + length {
        let count = stream.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
        seen.extend_from_slice(&buffer[..count]);
    }
    let body = serde_json::from_slice(&seen[end + 4..]).unwrap_or_default();
    Some(Asked { method, target, token: header("authorization"), body })
}
