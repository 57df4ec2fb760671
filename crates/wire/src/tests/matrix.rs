//! The twelve ways in which TLS can be wrong: each is refused by name, once, for REST and for gRPC alike.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::{Arc, Mutex};

use castle_model::{Class, Failure};
use http::Method;
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_RSA_SHA256,
};
use rustls::ServerConfig;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_rustls::TlsAcceptor;
use tonic::transport::Endpoint;

use super::{FixedClock, TODAY, YEAR, read_request};
use crate::connector::{ConnectError, Connector};
use crate::dialer::{BoxedStream, DialFuture, Dialer};
use crate::failure::chain;
use crate::rest::{CallError, Rest, Sent};
use crate::tls::{Verify, certificates, client_config, parse_fingerprint, show_fingerprint};

/// What answers at the other end of one connection.
#[derive(Clone)]
enum Peer {
    /// A server with this configuration, that gives this answer to one request.
    Tls(Arc<ServerConfig>, &'static [u8]),
    /// Somebody who says these bytes to whatever comes.
    Bytes(Vec<u8>),
}

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
const MOVED: &[u8] =
    b"HTTP/1.1 301 Moved\r\nconnection: close\r\nlocation: http://pve.lan:8006/\r\ncontent-length: 0\r\n\r\n";

/// Gives each dial the next peer, the last one for ever; notes what was dialled.
struct Line {
    peers: Mutex<VecDeque<Peer>>,
    dialled: Mutex<Vec<(String, u16)>>,
}

impl Line {
    fn of(peers: impl IntoIterator<Item = Peer>) -> Arc<Self> {
        let peers = Mutex::new(peers.into_iter().collect());
        Arc::new(Self { peers, dialled: Mutex::default() })
    }
}

impl Dialer for Line {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        self.dialled.lock().unwrap().push((host.to_owned(), port));
        let mut peers = self.peers.lock().unwrap();
        let peer = if peers.len() > 1 { peers.pop_front() } else { peers.front().cloned() };
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        #[expect(clippy::disallowed_methods, reason = "the server lives as long as the test")]
        drop(tokio::spawn(serve(theirs, peer.unwrap())));
        Box::pin(async move { Ok(Box::new(ours) as BoxedStream) })
    }
}

async fn serve(mut pipe: DuplexStream, peer: Peer) {
    let (config, answer) = match peer {
        Peer::Tls(config, answer) => (config, answer),
        Peer::Bytes(bytes) => {
            pipe.read_u8().await.unwrap();
            pipe.write_all(&bytes).await.unwrap();
            let mut rest = Vec::new();
            pipe.read_to_end(&mut rest).await.ok();
            return;
        }
    };
    let Ok(mut stream) = TlsAcceptor::from(config).accept(pipe).await else { return };
    read_request(&mut stream).await;
    stream.write_all(answer).await.unwrap();
    stream.shutdown().await.ok();
}

/// An authority, by the name that every one of its kind bears.
fn authority(key: KeyPair) -> (String, Issuer<'static, KeyPair>) {
    let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    (pem, Issuer::new(params, key))
}

/// What a good server's certificate holds.
fn leaf() -> CertificateParams {
    let mut params = CertificateParams::new(vec!["pve.lan".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2027, 1, 1);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

fn config(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> Arc<ServerConfig> {
    let provider = rustls::crypto::aws_lc_rs::default_provider();
    let der = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let key = provider.key_provider.load_private_key(der).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(provider));
    let resolver = Shows(Arc::new(CertifiedKey::new(chain, key)));
    let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = builder.with_cert_resolver(Arc::new(resolver));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Arc::new(config)
}

/// Shows one chain, even an empty one, which rustls' own builders refuse.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

/// One wrong way: what answers, who is believed, what time it is.
struct Case {
    peers: Vec<Peer>,
    verify: Verify,
    now: u64,
}

/// A server with this certificate, under an authority that is believed.
fn signed(params: &CertificateParams, now: u64) -> Case {
    let (pem, issuer) = authority(KeyPair::generate().unwrap());
    let key = KeyPair::generate().unwrap();
    let shown = params.signed_by(&key, &issuer).unwrap().der().clone();
    let peers = vec![Peer::Tls(config(vec![shown], &key), OK)];
    Case { peers, verify: Verify::Authority(pem), now }
}

fn strange(peers: Vec<Peer>) -> Case {
    let (pem, _) = authority(KeyPair::generate().unwrap());
    Case { peers, verify: Verify::Authority(pem), now: TODAY }
}

fn self_signed(is_authority: bool) -> Case {
    let key = KeyPair::generate().unwrap();
    let mut params = leaf();
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    let shown = params.self_signed(&key).unwrap().der().clone();
    let mut case = strange(vec![Peer::Tls(config(vec![shown], &key), OK)]);
    // As a real run has them: the system's roots, among which it is not.
    let (pem, _) = authority(KeyPair::generate().unwrap());
    let roots = certificates(&pem, "the system").unwrap();
    case.verify = Verify::Roots(Arc::new(roots));
    case
}

/// A certificate whose signature is said to be by SHA-1: the last byte of RSA's algorithm, in both of its places.
fn sha1() -> Case {
    let (pem, issuer) = authority(KeyPair::generate_for(&PKCS_RSA_SHA256).unwrap());
    let key = KeyPair::generate().unwrap();
    let mut der = leaf().signed_by(&key, &issuer).unwrap().der().to_vec();
    let sha256 = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x0b];
    let places: Vec<usize> = (0..der.len() - 9).filter(|at| der[*at..at + 9] == sha256).collect();
    assert_eq!(places.len(), 2);
    for at in places {
        der[at + 8] = 0x05;
    }
    let peers = vec![Peer::Tls(config(vec![der.into()], &key), OK)];
    Case { peers, verify: Verify::Authority(pem), now: TODAY }
}

/// A server's hello in TLS 1.1.
fn old_hello() -> Vec<u8> {
    let mut hello = vec![0x16, 0x03, 0x02, 0x00, 42, 0x02, 0x00, 0x00, 38, 0x03, 0x02];
    hello.extend([7; 32]);
    hello.extend([0x00, 0x00, 0x2f, 0x00]);
    hello
}

fn cases() -> BTreeMap<&'static str, Case> {
    let mut other_name = leaf();
    other_name.subject_alt_names =
        CertificateParams::new(vec!["other.lan".to_owned()]).unwrap().subject_alt_names;
    let mut for_clients = leaf();
    for_clients.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let mut wrong_ca = signed(&leaf(), TODAY);
    wrong_ca.verify = strange(Vec::new()).verify;
    let mut wrong_pin = signed(&leaf(), TODAY);
    wrong_pin.verify = Verify::Fingerprint([0xab; 32]);
    let empty = strange(vec![Peer::Tls(config(Vec::new(), &KeyPair::generate().unwrap()), OK)]);
    BTreeMap::from([
        ("expired", signed(&leaf(), TODAY + 2 * YEAR)),
        ("not yet valid", signed(&leaf(), TODAY - YEAR)),
        ("wrong host", signed(&other_name, TODAY)),
        ("self-signed", self_signed(false)),
        ("self-signed authority", self_signed(true)),
        ("wrong CA", wrong_ca),
        ("wrong pin", wrong_pin),
        ("TLS 1.1, by alert", strange(vec![Peer::Bytes(vec![0x15, 3, 2, 0, 2, 2, 70])])),
        ("TLS 1.1, by hello", strange(vec![Peer::Bytes(old_hello())])),
        ("no TLS", strange(vec![Peer::Bytes(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec())])),
        ("SHA-1", sha1()),
        ("empty chain", empty),
        ("wrong purpose", signed(&for_clients, TODAY)),
    ])
}

fn connector(line: &Arc<Line>, case: &Case, protocol: &[u8]) -> Connector {
    let clock = Arc::new(FixedClock(Mutex::new(case.now)));
    Connector::new(line.clone(), client_config(&case.verify, None, clock, &[protocol]).unwrap())
}

/// What a REST call to it ends in.
async fn by_rest(case: &Case) -> Failure {
    let line = Line::of(case.peers.clone());
    let rest = Rest::over(connector(&line, case, b"http/1.1"), "https://pve.lan:8006");
    let error = rest.request(Method::GET, "/version", Vec::new(), "").await.unwrap_err();
    assert_eq!(error.sent(), Sent::No, "{error:?}");
    assert_eq!(line.dialled.lock().unwrap().len(), 1, "a refusal is not tried again");
    error.failure("ask")
}

/// What a gRPC channel to it ends in.
async fn by_grpc(case: &Case) -> ConnectError {
    let line = Line::of(case.peers.clone());
    let endpoint = Endpoint::from_static("https://pve.lan:8006");
    let channel = endpoint.connect_with_connector(connector(&line, case, b"h2")).await;
    let error = channel.unwrap_err();
    assert_eq!(line.dialled.lock().unwrap().len(), 1, "a refusal is not tried again");
    let mut step: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(current) = step {
        if let Some(found) = current.downcast_ref::<ConnectError>() {
            return found.clone();
        }
        step = current.source();
    }
    panic!("no reason in {}", chain(&error));
}

/// Fingerprints of certificates that are made anew for each run.
fn masked(text: &str) -> String {
    let is_print = |word: &str| word.len() == 95 && word.matches(':').count() == 31;
    let words = text.split(' ').map(|word| {
        let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        if is_print(bare) && !bare.starts_with("AB:AB:AB") {
            word.replace(bare, "F1:…")
        } else {
            word.to_owned()
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn every_wrong_way_is_refused_by_name_and_never_retried() {
    let mut told = Vec::new();
    for (name, case) in cases() {
        let failure = by_rest(&case).await;
        assert!(
            matches!(failure.class, Class::Denied | Class::Invalid),
            "{name} would be tried again: {failure:?}"
        );
        let grpc = by_grpc(&case).await;
        assert_eq!(grpc.class(), failure.class, "{name}");
        assert_eq!(grpc.hint(), failure.hint, "{name}");
        let why = failure.why.rsplit_once("failed: ").unwrap().1;
        assert!(chain(&grpc).ends_with(why), "{name}: {}", chain(&grpc));
        let cure = failure.hint.clone().unwrap_or_else(|| panic!("{name} has no cure"));
        told.push(masked(&format!("{name} ({}): {why}\n  {cure}", failure.class)));
    }
    insta::assert_snapshot!(told.join("\n"), @r#"
    SHA-1 (denied): its certificate is signed in a way that is no longer believed, such as by SHA-1 (fingerprint F1:…)
      renew the server's certificate: SHA-1 has been forged
    TLS 1.1, by alert (denied): it speaks no TLS that is still believed: 1.2 or 1.3 is needed (received fatal alert: ProtocolVersion)
      update the server, or what stands in front of it
    TLS 1.1, by hello (invalid): it speaks no TLS that is still believed: 1.2 or 1.3 is needed (peer is incompatible: ServerDoesNotSupportTls12Or13)
      update the server, or what stands in front of it
    empty chain (denied): it shows no certificate at all
      give the server a certificate
    expired (denied): its certificate was valid until 2027-01-01T00:00:00.000Z, and here it is 2028-02-02T02:40:00.000Z (fingerprint F1:…)
      renew the server's certificate, and compare both clocks
    no TLS (invalid): what answers there does not speak TLS (received corrupt message of type InvalidContentType)
      compare host and port with where the server listens
    not yet valid (denied): its certificate is not valid before 2026-01-01T00:00:00.000Z, and here it is 2025-02-02T02:40:00.000Z (fingerprint F1:…)
      compare both clocks: one of them is wrong
    self-signed (denied): nobody who is known here has signed its certificate (fingerprint F1:…)
      if it is the right server, make its authority known: to this system (SSL_CERT_FILE names another list), or by `ca` or `fingerprint` where the castle file takes them
    self-signed authority (denied): nobody who is known here has signed its certificate (fingerprint F1:…)
      if it is the right server, make its authority known: to this system (SSL_CERT_FILE names another list), or by `ca` or `fingerprint` where the castle file takes them
    wrong CA (denied): nobody who is known here has signed its certificate (fingerprint F1:…)
      if it is the right server, make its authority known: to this system (SSL_CERT_FILE names another list), or by `ca` or `fingerprint` where the castle file takes them
    wrong host (denied): its certificate is for other.lan, not for pve.lan (fingerprint F1:…)
      use a name that the certificate holds, or pin it where the castle file takes a `fingerprint`
    wrong pin (denied): the certificate has the fingerprint F1:…, not the pinned AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB:AB: somebody else answers, or it was renewed
      compare it with the server's own display; if it is right, write: fingerprint = "F1:…"
    wrong purpose (denied): its certificate is not for servers (its extended key usage lacks serverAuth) (fingerprint F1:…)
      give the server a certificate with the purpose `serverAuth`
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_changes_in_the_middle_is_noticed() {
    let first = signed(&leaf(), TODAY);
    let second = signed(&leaf(), TODAY);
    let case = Case {
        peers: [first.peers.clone(), second.peers].concat(),
        verify: first.verify.clone(),
        now: TODAY,
    };
    let line = Line::of(case.peers.clone());
    let rest = Rest::over(connector(&line, &case, b"http/1.1"), "https://pve.lan:8006");
    assert_eq!(rest.request(Method::GET, "/", Vec::new(), "").await.unwrap().text(), "ok");
    let error = rest.request(Method::GET, "/", Vec::new(), "").await.unwrap_err();
    assert!(matches!(error, CallError::Connect { .. }), "{error:?}");
    assert_eq!(error.class(), Class::Denied);
    assert_eq!(line.dialled.lock().unwrap().len(), 2);
    // The same with a pin: not even the same authority makes it right.
    let pinned = Verify::Fingerprint([1; 32]);
    let again = Case { peers: first.peers, verify: pinned, now: TODAY };
    assert!(by_rest(&again).await.why.contains("it was renewed"));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_followed_to_where_there_is_no_tls() {
    let mut case = signed(&leaf(), TODAY);
    if let Peer::Tls(_, answer) = &mut case.peers[0] {
        *answer = MOVED;
    }
    let line = Line::of(case.peers.clone());
    let rest = Rest::over(connector(&line, &case, b"http/1.1"), "https://pve.lan:8006");
    let reply = rest.request(Method::GET, "/", Vec::new(), "").await.unwrap();
    assert_eq!(
        (reply.status.as_u16(), reply.header("location")),
        (301, Some("http://pve.lan:8006/"))
    );
    assert_eq!(*line.dialled.lock().unwrap(), [("pve.lan".to_owned(), 8006)]);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_a_little_behind_is_waited_for() {
    // 2026-01-01T00:00:00Z less half a minute.
    let case = signed(&leaf(), 1_767_225_600_000 - 30_000);
    assert_eq!(by_rest(&case).await.class, Class::Transient);
}

#[tokio::test(start_paused = true)]
async fn the_fingerprint_of_an_unknown_certificate_is_told() {
    let case = self_signed(false);
    let failure = by_rest(&case).await;
    let printed = failure.why.rsplit_once("fingerprint ").unwrap().1.trim_end_matches(')');
    assert_eq!(printed.len(), 95);
    // Pinned by what was told, the same server is believed.
    let pin = parse_fingerprint(printed).unwrap();
    let line = Line::of(case.peers.clone());
    let pinned = Case { verify: Verify::Fingerprint(pin), ..case };
    let rest = Rest::over(connector(&line, &pinned, b"http/1.1"), "https://pve.lan:8006");
    assert_eq!(rest.request(Method::GET, "/", Vec::new(), "").await.unwrap().text(), "ok");
    assert_eq!(show_fingerprint(&pin), printed);
}
