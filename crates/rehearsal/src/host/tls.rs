//! Certificates of the emulated servers: made from the world's seed, so that they are the same in each process.

use std::collections::BTreeMap;
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use castle_model::Secret;
use castle_wire::tls::{TlsError, certificates, private_key, provider};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519, SanType, SerialNumber,
};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::CryptoProvider;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{
    DigitallySignedStruct, DistinguishedName as RootName, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, UnixTime};
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::front::Moved;
use super::serve::Target;
use super::supply::VirtualTime;
use crate::birth::dice_for;
use crate::turn::{Listen, ServerIdentity};

/// How long Talos lets a certificate of its API live.
const CERTIFICATE_LIFE: Duration = Duration::from_hours(24);

/// The fixed part of an Ed25519 private key in PKCS#8 (RFC 8410); 32 bytes of key follow.
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Why a server has no certificate.
#[derive(Debug, Error)]
pub enum IdentityError {
    /// It cannot be issued.
    #[error("a certificate for {whose} cannot be issued")]
    Issue {
        /// For whom.
        whose: String,
        /// Why not.
        source: rcgen::Error,
    },
    /// The authority that a machine was given cannot be used.
    #[error("the authority of {whose} cannot be used")]
    Authority {
        /// Whose.
        whose: String,
        /// Why not.
        source: TlsError,
    },
    /// rustls refuses it.
    #[error("the TLS of {whose} cannot be set up")]
    Refused {
        /// Whose.
        whose: String,
        /// Why not.
        source: rustls::Error,
    },
    /// The verifier of client certificates refuses its authority.
    #[error("the clients' authority of {whose} cannot be used")]
    Clients {
        /// Whose.
        whose: String,
        /// Why not.
        source: rustls::server::VerifierBuilderError,
    },
}

/// The authority of the public servers, and every configuration made so far.
pub(super) struct Certificates {
    seed: u64,
    root: CertificateDer<'static>,
    issuer_pem: String,
    issuer: Issuer<'static, KeyPair>,
    made: Mutex<BTreeMap<String, Arc<ServerConfig>>>,
    /// Where machines are on loopback besides.
    also: OnceLock<Moved>,
}

/// A certificate chain and its key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Certificates {
    pub(super) fn new(seed: u64) -> Result<Self, IdentityError> {
        let name = "Castle rehearsal root";
        let wrong = |source| IdentityError::Issue { whose: name.to_owned(), source };
        let key = key(seed, name).map_err(wrong)?;
        let mut wanted = params(name, Vec::new(), seed);
        wanted.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        wanted.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        wanted.extended_key_usages = Vec::new();
        let signed = wanted.self_signed(&key).map_err(wrong)?;
        let (root, issuer_pem) = (signed.der().clone(), signed.pem());
        let issuer = Issuer::new(wanted, key);
        Ok(Self { seed, root, issuer_pem, issuer, made: Mutex::default(), also: OnceLock::new() })
    }

    pub(super) fn root(&self) -> CertificateDer<'static> {
        self.root.clone()
    }

    /// Machines of a network are reached at other addresses too, from now on.
    pub(super) fn also(&self, moved: Moved) {
        self.also.get_or_init(|| moved);
    }

    pub(super) fn root_pem(&self) -> String {
        self.issuer_pem.clone()
    }

    /// The SHA-256 fingerprint of the certificate that a named server shows.
    pub(super) fn fingerprint(&self, host: &str) -> Result<String, IdentityError> {
        let (chain, _) = self.public(host)?;
        Ok(chain.first().map(|leaf| hex::encode(Sha256::digest(leaf))).unwrap_or_default())
    }

    /// The TLS side of a server; a machine's is made anew when its identity changes.
    pub(super) fn config(
        &self,
        target: &Target,
        identity: Option<&ServerIdentity>,
        time: VirtualTime,
    ) -> Result<Arc<ServerConfig>, IdentityError> {
        let name = match (target, identity) {
            (Target::Machine { vmid, listen, .. }, Some(identity)) => {
                format!("machine {vmid} {listen:?} {}", digest(identity))
            }
            (Target::Machine { vmid, .. }, None) => format!("machine {vmid}"),
            // On sockets servers share an address, and one of them speaks HTTP/1.1 alone.
            (Target::Endpoint { host, .. }, _) => format!("{host} {:?}", target.protocols()),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(config) = made.get(&name) {
            return Ok(config.clone());
        }
        let demands = matches!(target, Target::Machine { listen: Listen::Secure { .. }, .. });
        let own = match (target, identity) {
            (Target::Endpoint { host, .. }, _) => self.public(host)?,
            (_, Some(identity)) => self.machine(&name, identity, time)?,
            (_, None) => self.public(&name)?,
        };
        let clients = identity.and_then(|identity| identity.client_authority.as_deref());
        let time = WorldTime { time, off: identity.map_or(0, |identity| identity.clock_off) };
        let (pem, asked) = match target {
            // It demands certificates of an authority that nobody here has.
            Target::Machine { listen: Listen::Foreign { .. }, .. } => {
                (Some(self.issuer_pem.as_str()), Asked::Demanded)
            }
            Target::Machine { listen: Listen::KubeApi { .. }, .. } => (clients, Asked::Looked),
            _ => (clients, if demands { Asked::Demanded } else { Asked::Allowed }),
        };
        let mut config = server_config(&name, own, pem.map(|pem| (pem, asked)), time)?;
        config.alpn_protocols = target.protocols().iter().map(|p| p.to_vec()).collect();
        let config = Arc::new(config);
        made.insert(name, config.clone());
        Ok(config)
    }

    /// Whether a certificate that a client of an API server showed is one of its authority, and of this time.
    pub(super) fn believes(
        identity: &ServerIdentity,
        chain: &[CertificateDer<'_>],
        time: VirtualTime,
    ) -> bool {
        let provider = provider();
        let Some((pem, (leaf, between))) =
            identity.client_authority.as_deref().zip(chain.split_first())
        else {
            return false;
        };
        let now = WorldTime { time, off: identity.clock_off }.now();
        verifier("an API server", pem, &provider, false).is_ok_and(|verifier| {
            let now = UnixTime::since_unix_epoch(now);
            verifier.verify_client_cert(leaf, between, now).is_ok()
        })
    }

    fn public(&self, host: &str) -> Result<Identity, IdentityError> {
        let wrong = |source| IdentityError::Issue { whose: host.to_owned(), source };
        let key = key(self.seed, host).map_err(wrong)?;
        let san = match host.parse() {
            Ok(address) => SanType::IpAddress(address),
            Err(_) => SanType::DnsName(host.try_into().map_err(wrong)?),
        };
        let leaf =
            params(host, vec![san], self.seed).signed_by(&key, &self.issuer).map_err(wrong)?;
        Ok((vec![leaf.der().clone()], private(&key)))
    }

    fn machine(
        &self,
        name: &str,
        identity: &ServerIdentity,
        time: VirtualTime,
    ) -> Result<Identity, IdentityError> {
        let wrong = |source| IdentityError::Issue { whose: name.to_owned(), source };
        let key = key(self.seed, name).map_err(wrong)?;
        let mut sans = Vec::new();
        for dns in &identity.names {
            sans.push(SanType::DnsName(dns.as_str().try_into().map_err(wrong)?));
        }
        let moved = |address: &Ipv4Addr| self.also.get().and_then(|also| also.outside(*address));
        let own = identity.addresses.iter();
        let addresses = own.clone().copied().chain(own.filter_map(moved));
        sans.extend(addresses.map(|address| SanType::IpAddress(address.into())));
        let mut wanted = params(&identity.common_name, sans, self.seed);
        if identity.clock_off != 0 {
            // Like a real machine's: from now on, by its own clock.
            let now = WorldTime { time, off: identity.clock_off }.now();
            wanted.not_before = rcgen::date_time_ymd(1970, 1, 1) + now;
            wanted.not_after = wanted.not_before + CERTIFICATE_LIFE;
        }
        let leaf = match &identity.authority {
            None => wanted.self_signed(&key).map_err(wrong)?,
            Some(authority) => {
                let unreadable =
                    |source| IdentityError::Authority { whose: name.to_owned(), source };
                let signer =
                    private_key(&Secret::new(authority.key.clone())).map_err(unreadable)?;
                let signer = KeyPair::try_from(&signer).map_err(wrong)?;
                let issuer =
                    Issuer::from_ca_cert_pem(&authority.certificate, signer).map_err(wrong)?;
                wanted.signed_by(&key, &issuer).map_err(wrong)?
            }
        };
        Ok((vec![leaf.der().clone()], private(&key)))
    }
}

/// How a server asks its clients for certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// Nobody comes in without a right one.
    Demanded,
    /// None is fine; a wrong one is not.
    Allowed,
    /// Any is taken, and looked at afterwards: an API server answers 401 to who is not known.
    Looked,
}

/// Takes any certificate whose key the client has; who it is is asked later.
#[derive(Debug)]
struct Later(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for Later {
    fn root_hint_subjects(&self) -> &[RootName] {
        self.0.root_hint_subjects()
    }

    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

/// What judges the certificates of clients.
fn verifier(
    name: &str,
    pem: &str,
    provider: &Arc<CryptoProvider>,
    demanded: bool,
) -> Result<Arc<dyn ClientCertVerifier>, IdentityError> {
    let refused = |source| IdentityError::Refused { whose: name.to_owned(), source };
    let unreadable = |source| IdentityError::Authority { whose: name.to_owned(), source };
    let unusable = |source| IdentityError::Clients { whose: name.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "the clients' authority").map_err(unreadable)? {
        roots.add(certificate).map_err(refused)?;
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone());
    let builder = if demanded { builder } else { builder.allow_unauthenticated() };
    builder.build().map_err(unusable)
}

fn server_config(
    name: &str,
    (chain, key): Identity,
    clients: Option<(&str, Asked)>,
    time: WorldTime,
) -> Result<ServerConfig, IdentityError> {
    let refused = |source| IdentityError::Refused { whose: name.to_owned(), source };
    let provider = provider();
    let builder = ServerConfig::builder_with_details(provider.clone(), Arc::new(time))
        .with_safe_default_protocol_versions()
        .map_err(refused)?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some((pem, asked)) => {
            let judge = verifier(name, pem, &provider, asked == Asked::Demanded)?;
            builder.with_client_cert_verifier(match asked {
                Asked::Looked => Arc::new(Later(judge)),
                Asked::Demanded | Asked::Allowed => judge,
            })
        }
    };
    let mut config = builder.with_single_cert(chain, key).map_err(refused)?;
    // A resumed session would skip the certificates, and they are half of what is rehearsed.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A key for one purpose, the same in each process.
fn key(seed: u64, purpose: &str) -> Result<KeyPair, rcgen::Error> {
    let mut der = ED25519_PREFIX.to_vec();
    let mut bytes = [0; 32];
    dice_for(seed, &format!("key of {purpose}")).fill(&mut bytes);
    der.extend(bytes);
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), &PKCS_ED25519)
}

fn private(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(key.serialize_der()).into()
}

fn params(name: &str, sans: Vec<SanType>, seed: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let mut serial = [0; 8];
    dice_for(seed, &format!("serial of {name}")).fill(&mut serial);
    serial[0] &= 0x7f;
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    // The world is born in February 2026 and lives for as long as somebody plays in it.
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2046, 1, 1);
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.subject_alt_names = sans;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params
}

/// Tells identities apart by all that stands in a certificate.
fn digest(identity: &ServerIdentity) -> String {
    let ServerIdentity { common_name, names, addresses, generation, client_authority, .. } =
        identity;
    let off = identity.clock_off;
    let authority = identity.authority.as_ref().map(|authority| &authority.certificate);
    let all = format!(
        "{common_name} {names:?} {addresses:?} {generation:?} {client_authority:?} {authority:?} {off}"
    );
    hex::encode(&Sha256::digest(all)[..8])
}

/// The world's time, as a server's clock shows it.
#[derive(Clone, Copy)]
struct WorldTime {
    time: VirtualTime,
    /// By how many seconds the clock is ahead.
    off: i64,
}

impl WorldTime {
    /// Since 1970.
    fn now(self) -> Duration {
        Duration::from_millis(self.time.moment().0.saturating_add_signed(self.off * 1000))
    }
}

impl fmt::Debug for WorldTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorldTime")
    }
}

impl TimeProvider for WorldTime {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(self.now()))
    }
}
