//! TLS by our own rules: who is believed and why, with time from the World and no switch to believe everyone.

use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use castle_model::Secret;
use castle_model::spec::Trust;
use rustls::client::danger::ServerCertVerifier;
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::time_provider::TimeProvider;
use rustls::{CipherSuite, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::verifier::{ByChain, ByLeaf};
use crate::world::{Clock, World};

/// The SHA-256 of a certificate in DER form.
pub type Fingerprint = [u8; 32];

/// The label that Talos gives to Ed25519 keys; PEM readers know only the plain one.
const TALOS_KEY_LABEL: &str = "ED25519 PRIVATE KEY";

/// Why a TLS configuration cannot be made.
#[derive(Debug, Error)]
pub enum TlsError {
    /// There is no authority to verify servers by.
    #[error(
        "this system has no list of authorities to verify servers by (install its ca-certificates, or name a file with SSL_CERT_FILE)"
    )]
    NoRoots,
    /// The list of authorities that was named can not be read.
    #[error("the list of authorities {file} can not be read")]
    RootsFile {
        /// Which.
        file: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A certificate could not be read.
    #[error("the certificate of {whose} cannot be read as PEM")]
    Certificate {
        /// Whose it is, in words.
        whose: &'static str,
        /// What the reader says.
        #[source]
        source: rustls_pki_types::pem::Error,
    },
    /// A private key could not be read.
    #[error("the private key cannot be read as PEM")]
    Key(#[source] rustls_pki_types::pem::Error),
    /// A fingerprint could not be read.
    #[error("`{0}` is not a SHA-256 fingerprint (64 hexadecimal digits)")]
    Fingerprint(String),
    /// rustls refuses a certificate or key.
    #[error("the certificates given cannot be used")]
    Refused(#[source] rustls::Error),
    /// The roots cannot be used.
    #[error("the certificates of the authorities cannot be used")]
    Verifier(#[source] rustls::server::VerifierBuilderError),
}

/// How the certificate of a server is judged.
#[derive(Debug, Clone)]
pub enum Verify {
    /// By authorities that everybody knows: chain, name and validity.
    Roots(Arc<Vec<CertificateDer<'static>>>),
    /// By the authorities in this PEM text alone: chain, name and validity.
    Authority(String),
    /// It must be exactly this certificate. Chain, name and validity do not matter then: the pin says it all.
    Fingerprint(Fingerprint),
    /// Any certificate, which is recorded; from then on that one alone. Only for machines that have no identity yet (Talos in maintenance mode);
    /// the handshake's signature is still checked, so the recorded certificate is that of the machine that answered.
    RecordOnly(Arc<Recorded>),
}

impl Verify {
    /// How the castle file's `trust` is judged in this world.
    ///
    /// # Errors
    /// If a fingerprint is not 64 hexadecimal digits.
    pub fn from_trust(trust: &Trust, world: &World) -> Result<Self, TlsError> {
        Ok(match trust {
            Trust::System => Self::Roots(world.roots.clone()),
            Trust::Authority(pem) => Self::Authority(pem.clone()),
            Trust::Fingerprint(text) => Self::Fingerprint(parse_fingerprint(text)?),
        })
    }
}

/// The certificate that a server showed first, where any is accepted.
#[derive(Debug, Default)]
pub struct Recorded(Mutex<Option<CertificateDer<'static>>>);

impl Recorded {
    /// The certificate, if one was shown yet.
    #[must_use]
    pub fn certificate(&self) -> Option<CertificateDer<'static>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Its fingerprint, if one was shown yet.
    #[must_use]
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.certificate().map(|der| fingerprint(&der))
    }

    /// Notes the first certificate, and gives the one that is noted: a connection that is made anew must not end at
    /// another machine than the one that was looked at.
    pub(crate) fn note(&self, certificate: &CertificateDer<'_>) -> Fingerprint {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fingerprint(place.get_or_insert_with(|| certificate.clone().into_owned()))
    }
}

/// Who we are to a server that wants to know.
pub struct ClientIdentity {
    /// Our certificate, then those up to the authority.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its private key.
    pub key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads an identity from PEM texts.
    ///
    /// # Errors
    /// If one of them is not PEM of the right kind.
    pub fn from_pem(certificate: &str, key: &Secret) -> Result<Self, TlsError> {
        Ok(Self { chain: certificates(certificate, "the client")?, key: private_key(key)? })
    }
}

impl Clone for ClientIdentity {
    fn clone(&self) -> Self {
        Self { chain: self.chain.clone(), key: self.key.clone_key() }
    }
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// Makes the TLS side of a client: who is believed, who we are, by which clock, for which protocols (ALPN).
///
/// Sessions are never resumed, because a resumed session skips the check of the certificate.
///
/// # Errors
/// If certificates or keys cannot be read or used.
pub fn client_config(
    verify: &Verify,
    identity: Option<ClientIdentity>,
    clock: Arc<dyn Clock>,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = provider();
    let verifier = verifier(verify, &provider)?;
    let builder = ClientConfig::builder_with_details(provider, Arc::new(WorldTime(clock)))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Refused)?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = match identity {
        Some(own) => {
            builder.with_client_auth_cert(own.chain, own.key).map_err(TlsError::Refused)?
        }
        None => builder.with_no_client_auth(),
    };
    config.resumption = Resumption::disabled();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The cryptography of all our connections.
///
/// AES-128 comes first, as in Go's own TLS, so that a server which follows the client's order takes SHA-256 for its keys:
/// processors have instructions for that one, and a third of a handshake is hashing.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
        let mut provider = aws_lc_rs::default_provider();
        provider
            .cipher_suites
            .sort_by_key(|suite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256);
        Arc::new(provider)
    });
    PROVIDER.clone()
}

fn verifier(
    verify: &Verify,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, TlsError> {
    let mut store = RootCertStore::empty();
    match verify {
        // A system's list is long and old; one that cannot be read takes nothing from the others.
        Verify::Roots(roots) => drop(store.add_parsable_certificates(roots.iter().cloned())),
        Verify::Authority(pem) => {
            for root in certificates(pem, "the authority")? {
                store.add(root).map_err(TlsError::Refused)?;
            }
        }
        Verify::Fingerprint(wanted) => return Ok(Arc::new(ByLeaf::pinned(*wanted, provider))),
        Verify::RecordOnly(place) => return Ok(Arc::new(ByLeaf::noted(place.clone(), provider))),
    }
    if store.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map_err(TlsError::Verifier)?;
    Ok(Arc::new(ByChain::new(chain)))
}

/// Reads every certificate of a PEM text; `whose` names it in errors.
///
/// # Errors
/// If there is none, or one is malformed.
pub fn certificates(
    pem: &str,
    whose: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fail = |source| TlsError::Certificate { whose, source };
    let read: Vec<_> =
        CertificateDer::pem_slice_iter(pem.as_bytes()).collect::<Result<_, _>>().map_err(fail)?;
    if read.is_empty() {
        return Err(fail(rustls_pki_types::pem::Error::NoItemsFound));
    }
    Ok(read)
}

/// Reads a private key from PEM, with Talos' own label for Ed25519 keys accepted too.
///
/// # Errors
/// If there is none, or it is malformed.
pub fn private_key(pem: &Secret) -> Result<PrivateKeyDer<'static>, TlsError> {
    let relabelled = Secret::new(pem.expose().replace(TALOS_KEY_LABEL, "PRIVATE KEY"));
    PrivateKeyDer::from_pem_slice(relabelled.expose().as_bytes()).map_err(TlsError::Key)
}

/// The fingerprint of a certificate.
#[must_use]
pub fn fingerprint(certificate: &[u8]) -> Fingerprint {
    Sha256::digest(certificate).into()
}

/// A fingerprint as people write it: `AB:CD:…`.
#[must_use]
pub fn show_fingerprint(fingerprint: &Fingerprint) -> String {
    let pairs: Vec<String> = fingerprint.iter().map(|byte| format!("{byte:02X}")).collect();
    pairs.join(":")
}

/// Reads a fingerprint, with or without colons, in either case.
///
/// # Errors
/// If it is not 32 bytes in hexadecimal digits.
pub fn parse_fingerprint(text: &str) -> Result<Fingerprint, TlsError> {
    let digits = text.replace(':', "");
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| TlsError::Fingerprint(text.to_owned()))?;
    Ok(bytes)
}

/// The World's time, for certificates.
struct WorldTime(Arc<dyn Clock>);

impl fmt::Debug for WorldTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorldTime")
    }
}

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_millis(self.0.now().0)))
    }
}
