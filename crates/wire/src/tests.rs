//! Every way a call can end, over real TLS through a pipe and on a paused clock.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use castle_model::time::Moment;
use castle_model::{Class, Secret};
use http::Method;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_ED25519,
};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::connector::{ConnectError, Connector, End};
use crate::dialer::{BoxedStream, DialFuture, Dialer};
use crate::rest::{CallError, Rest, Sent};
use crate::tls::{
    ClientIdentity, Recorded, Verify, client_config, fingerprint, private_key, show_fingerprint,
};
use crate::world::{Clock, Entropy, SystemEntropy};

mod matrix;

/// 2026-02-02, inside the lifetime of every certificate below.
const TODAY: u64 = 1_770_000_000_000;
const YEAR: u64 = 365 * 86_400_000;

struct FixedClock(Mutex<u64>);

impl Clock for FixedClock {
    fn now(&self) -> Moment {
        Moment(*self.0.lock().unwrap())
    }
}

/// What the server at the other end does.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Answers,
    Refuses,
    NeverAnswersTheDial,
    NeverFinishesTheHandshake,
    NeverReplies,
    DropsAfterTheRequest,
    ClosesProperlyAfterTheRequest,
    DropsInsideTheReply,
}

struct Server {
    config: Arc<ServerConfig>,
    manner: Manner,
    authority: String,
    leaf: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

fn server(manner: Manner, wants_client: bool) -> Server {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);

    let leaf_key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["pve.lan".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2027, 1, 1);
    let leaf = params.signed_by(&leaf_key, &issuer).unwrap().der().clone();

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(authority.der().clone()).unwrap();
    let builder = if wants_client {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let key = PrivateKeyDer::try_from(leaf_key.serialize_der()).unwrap();
    let config = Arc::new(builder.with_single_cert(vec![leaf.clone()], key).unwrap());
    Server { config, manner, authority: authority.pem(), leaf, issuer }
}

impl Dialer for Server {
    fn dial<'a>(&'a self, _host: &'a str, _port: u16) -> DialFuture<'a> {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (config, manner) = (self.config.clone(), self.manner);
        Box::pin(async move {
            match manner {
                Manner::Refuses => return Err(io::ErrorKind::ConnectionRefused.into()),
                Manner::NeverAnswersTheDial => std::future::pending().await,
                _ => {}
            }
            #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
            drop(tokio::spawn(serve(theirs, config, manner)));
            Ok(Box::new(ours) as BoxedStream)
        })
    }
}

async fn serve(pipe: DuplexStream, config: Arc<ServerConfig>, manner: Manner) {
    if manner == Manner::NeverFinishesTheHandshake {
        std::future::pending::<()>().await;
    }
    let Ok(mut stream) = TlsAcceptor::from(config).accept(pipe).await else { return };
    read_request(&mut stream).await;
    match manner {
        Manner::NeverReplies => std::future::pending().await,
        Manner::DropsAfterTheRequest => {}
        Manner::ClosesProperlyAfterTheRequest => stream.shutdown().await.unwrap(),
        Manner::DropsInsideTheReply => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
            stream.flush().await.unwrap();
        }
        _ => {
            let reply = b"HTTP/1.1 401 No ticket\r\ncontent-length: 5\r\n\r\nhello";
            stream.write_all(reply).await.unwrap();
            stream.flush().await.unwrap();
            read_request(&mut stream).await;
        }
    }
}

async fn read_request(stream: &mut TlsStream<DuplexStream>) {
    let mut seen = Vec::new();
    let mut buffer = [0; 1024];
    while !seen.windows(4).any(|w| w == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Calls the server once, at `now`, believing by `verify`.
async fn call(
    server: Server,
    verify: &Verify,
    now: u64,
    identity: Option<ClientIdentity>,
) -> Result<crate::Reply, CallError> {
    let clock = Arc::new(FixedClock(Mutex::new(now)));
    let config = client_config(verify, identity, clock, &[b"http/1.1"]).unwrap();
    let connector = Connector::new(Arc::new(server), config);
    let rest = Rest::over(connector, "https://pve.lan:8006/").limit(5);
    rest.request(Method::GET, "/version?x=hidden", Vec::new(), "").await
}

async fn error_of(manner: Manner) -> CallError {
    let server = server(manner, false);
    let verify = Verify::Authority(server.authority.clone());
    call(server, &verify, TODAY, None).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn a_reply_carries_status_reason_and_body() {
    let server = server(Manner::Answers, false);
    let verify = Verify::Authority(server.authority.clone());
    let reply = call(server, &verify, TODAY, None).await.unwrap();
    assert_eq!(reply.status, 401);
    assert_eq!(reply.reason.as_deref(), Some("No ticket"));
    assert_eq!(reply.text(), "hello");
}

#[tokio::test(start_paused = true)]
async fn a_pin_believes_its_certificate_alone() {
    let first = server(Manner::Answers, false);
    let pin = Verify::Fingerprint(fingerprint(&first.leaf));
    // Even long past its end: the pin is the proof.
    assert!(call(first, &pin, TODAY + 9 * YEAR, None).await.is_ok());

    let other = server(Manner::Answers, false);
    let seen = show_fingerprint(&fingerprint(&other.leaf));
    let error = call(other, &pin, TODAY, None).await.unwrap_err();
    assert_eq!((error.sent(), error.class()), (Sent::No, Class::Denied));
    let failure = error.failure("read the version");
    assert!(failure.hint.unwrap().contains(&format!("fingerprint = \"{seen}\"")));
    assert!(failure.why.contains("not the pinned"), "{}", failure.why);
}

#[tokio::test(start_paused = true)]
async fn time_comes_from_the_world() {
    for (now, words, class) in [
        (TODAY + 2 * YEAR, "was valid until 2027-01-01T00:00:00.000Z", Class::Denied),
        (TODAY - YEAR, "is not valid before 2026-01-01T00:00:00.000Z", Class::Denied),
    ] {
        let server = server(Manner::Answers, false);
        let verify = Verify::Authority(server.authority.clone());
        let error = call(server, &verify, now, None).await.unwrap_err();
        assert_eq!((error.sent(), error.class()), (Sent::No, class), "{words}");
        assert!(error.failure("x").why.contains(words), "{}", error.failure("x").why);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_name_and_a_foreign_authority_are_told() {
    let first = server(Manner::Answers, false);
    let verify = Verify::Authority(first.authority.clone());
    let clock = Arc::new(FixedClock(Mutex::new(TODAY)));
    let config = client_config(&verify, None, clock, &[]).unwrap();
    let connector = Connector::new(Arc::new(first), config).server_name("192.168.1.9");
    let rest = Rest::over(connector, "https://pve.lan:8006");
    let error = rest.request(Method::GET, "/", Vec::new(), "").await.unwrap_err();
    assert!(error.failure("x").hint.unwrap().contains("a name that the certificate holds"));

    let foreign = server(Manner::Answers, false);
    let error = call(foreign, &verify, TODAY, None).await.unwrap_err();
    assert!(error.failure("x").hint.unwrap().contains("`ca`"));
    assert_eq!(error.class(), Class::Denied);
}

#[tokio::test(start_paused = true)]
async fn any_certificate_is_recorded_where_that_is_asked_for() {
    let server = server(Manner::Answers, false);
    let leaf = fingerprint(&server.leaf);
    let recorded = Arc::new(Recorded::default());
    let verify = Verify::RecordOnly(recorded.clone());
    assert!(call(server, &verify, TODAY, None).await.is_ok());
    assert_eq!(recorded.fingerprint(), Some(leaf));
    // Made anew, the connection must not end at another machine.
    let other = self::server(Manner::Answers, false);
    let error = call(other, &verify, TODAY, None).await.unwrap_err();
    assert_eq!((error.sent(), error.class()), (Sent::No, Class::Denied), "{error:?}");
    assert_eq!(recorded.fingerprint(), Some(leaf));
}

#[tokio::test(start_paused = true)]
async fn a_client_certificate_is_shown_and_its_lack_is_a_rejection() {
    let server = server(Manner::Answers, true);
    let verify = Verify::Authority(server.authority.clone());
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let certificate = params.signed_by(&key, &server.issuer).unwrap();
    let pem = Secret::new(key.serialize_pem().replace("PRIVATE KEY", "ED25519 PRIVATE KEY"));
    let identity = ClientIdentity::from_pem(&certificate.pem(), &pem).unwrap();
    let reply = call(server, &verify, TODAY, Some(identity)).await;
    assert!(reply.is_ok(), "{reply:?}");

    let server = self::server(Manner::Answers, true);
    let verify = Verify::Authority(server.authority.clone());
    let error = call(server, &verify, TODAY, None).await.unwrap_err();
    assert_eq!((error.sent(), error.class()), (Sent::Rejected, Class::Denied), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn what_never_left_is_told_from_what_may_have_had_an_effect() {
    for (manner, sent, words) in [
        (Manner::Refuses, Sent::No, "cannot connect to pve.lan:8006"),
        (Manner::NeverAnswersTheDial, Sent::No, "no answer from pve.lan:8006 within 10 s"),
        (Manner::NeverFinishesTheHandshake, Sent::No, "did not finish the TLS handshake"),
        (Manner::NeverReplies, Sent::Unknown, "no reply within 40 s"),
        (Manner::DropsAfterTheRequest, Sent::Unknown, "effect is unknown"),
        (Manner::ClosesProperlyAfterTheRequest, Sent::Unknown, "effect is unknown"),
        (Manner::DropsInsideTheReply, Sent::Unknown, "effect is unknown"),
    ] {
        let error = error_of(manner).await;
        assert_eq!((error.sent(), error.class()), (sent, Class::Transient), "{error:?}");
        let why = error.failure("x").why;
        assert!(why.contains(words), "{why}");
        assert!(!why.contains("hidden"), "a query can hold values: {why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_beyond_the_limit_is_not_read() {
    let server = server(Manner::Answers, false);
    let verify = Verify::Authority(server.authority.clone());
    let clock = Arc::new(FixedClock(Mutex::new(TODAY)));
    let config = client_config(&verify, None, clock, &[]).unwrap();
    let rest = Rest::over(Connector::new(Arc::new(server), config), "https://pve.lan").limit(4);
    let error = rest.request(Method::GET, "/", Vec::new(), "").await.unwrap_err();
    assert_eq!((error.sent(), error.class()), (Sent::Answered, Class::Invalid));
}

#[tokio::test(start_paused = true)]
async fn the_connector_remembers_how_a_connection_ended() {
    let server = server(Manner::Answers, true);
    let verify = Verify::Authority(server.authority.clone());
    let clock = Arc::new(FixedClock(Mutex::new(TODAY)));
    let config = client_config(&verify, None, clock, &[]).unwrap();
    let connector = Connector::new(Arc::new(server), config).deadline(Duration::from_secs(1));
    let mut stream = connector.connect(&"https://pve.lan".parse().unwrap()).await.unwrap();
    assert_eq!(connector.ends().last(), None);
    assert!(stream.read_u8().await.is_err());
    assert!(matches!(connector.ends().last(), Some(End::Alert(_))), "{:?}", connector.ends());
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_heard_even_if_the_write_fails_first() {
    let server = server(Manner::Answers, true);
    let verify = Verify::Authority(server.authority.clone());
    let clock = Arc::new(FixedClock(Mutex::new(TODAY)));
    let config = client_config(&verify, None, clock, &[]).unwrap();
    let connector = Connector::new(Arc::new(server), config);
    let mut stream = connector.connect(&"https://pve.lan".parse().unwrap()).await.unwrap();
    let failed = async {
        loop {
            let wrote = stream.write_all(b"GET / HTTP/1.1\r\n").await;
            if let Err(error) = wrote.and(stream.flush().await) {
                return error;
            }
            tokio::task::yield_now().await;
        }
    };
    let error = tokio::time::timeout(Duration::from_secs(9), failed).await.unwrap();
    assert!(matches!(connector.ends().last(), Some(End::Alert(_))), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn dates_are_what_is_wrong_only_with_a_certificate_that_somebody_known_has_signed() {
    let ours = Arc::new(server(Manner::Answers, false));
    let theirs = server(Manner::Answers, false);
    for (authority, now, untimely) in [
        (&ours.authority, TODAY + 2 * YEAR, true),
        (&ours.authority, TODAY - YEAR, true),
        (&theirs.authority, TODAY + 2 * YEAR, false),
        (&theirs.authority, TODAY - YEAR, false),
    ] {
        let clock = Arc::new(FixedClock(Mutex::new(now)));
        let verify = Verify::Authority(authority.clone());
        let config = client_config(&verify, None, clock, &[]).unwrap();
        let connector = Connector::new(ours.clone(), config);
        let error = connector.connect(&"https://pve.lan".parse().unwrap()).await.err().unwrap();
        assert_eq!(error.handshake().unwrap().is_untimely(), untimely, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn plain_http_is_refused() {
    let server = server(Manner::Answers, false);
    let verify = Verify::Authority(server.authority.clone());
    let clock = Arc::new(FixedClock(Mutex::new(TODAY)));
    let config = client_config(&verify, None, clock, &[]).unwrap();
    let connector = Connector::new(Arc::new(server), config);
    let error = connector.connect(&"http://pve.lan".parse().unwrap()).await.err().unwrap();
    assert_eq!(error.to_string(), "`http://pve.lan/` cannot be dialled: only https is spoken");
}

#[test]
fn talos_keys_without_a_public_half_can_be_read_and_used() {
    // PKCS#8 version 1 around 32 bytes, which is what Talos writes.
    let pem = "-----BEGIN ED25519 PRIVATE KEY-----\n\
        MC4CAQAwBQYDK2VwBCIEIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f\n\
        -----END ED25519 PRIVATE KEY-----\n";
    let key = private_key(&Secret::new(pem)).unwrap();
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    assert!(provider.key_provider.load_private_key(key).is_ok());
}

#[test]
fn the_system_gives_different_bytes_each_time() {
    let (mut one, mut two) = ([0; 16], [0; 16]);
    SystemEntropy.fill(&mut one);
    SystemEntropy.fill(&mut two);
    assert_ne!(one, two);
}

#[test]
fn a_short_deadline_is_told_in_parts_of_a_second() {
    let told = |milliseconds| {
        let after = Duration::from_millis(milliseconds);
        ConnectError::DialDeadline { target: "cp-01:50000".to_owned(), after }.to_string()
    };
    assert_eq!(told(500), "no answer from cp-01:50000 within 0.5 s");
    assert_eq!(told(10_000), "no answer from cp-01:50000 within 10 s");
}
