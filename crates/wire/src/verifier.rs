//! Who is believed: by the chain of authorities or by the certificate itself, and what is told of one that is not.

use std::fmt;
use std::sync::Arc;

use castle_model::time::Moment;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{CertificateError, DigitallySignedStruct, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use thiserror::Error;

use crate::tls::{Fingerprint, Recorded, fingerprint, show_fingerprint};

/// A server showed another certificate than the pinned one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "the certificate has the fingerprint {}, not the pinned {}: somebody else answers, or it was renewed",
    show_fingerprint(.seen),
    show_fingerprint(.wanted)
)]
pub struct PinMismatch {
    /// The pinned fingerprint.
    pub wanted: Fingerprint,
    /// That of the certificate shown.
    pub seen: Fingerprint,
}

/// A certificate that the chain of authorities does not speak for.
#[derive(Debug, Clone, PartialEq)]
pub struct Distrusted {
    /// Its fingerprint.
    pub seen: Fingerprint,
    /// What is wrong with it.
    pub why: CertificateError,
    /// The time by which it was judged.
    pub now: Moment,
}

/// The kinds of fault that a certificate can have, as far as the cures differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Nobody known has signed it, or it has signed itself.
    Issuer,
    /// It is for another name.
    Name,
    /// It is over.
    Expired,
    /// It has not begun, by this many milliseconds.
    NotYet(u64),
    /// It is not for servers.
    Purpose,
    /// It is signed in a way that nobody should believe any more.
    Signature,
    /// Something else.
    Other,
}

impl Distrusted {
    /// What kind of fault it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match &self.why {
            // Another authority of the same name, as every Talos and Proxmox cluster has one, gives a bad signature.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Fault::Issuer,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Fault::Name
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => Fault::Expired,
            CertificateError::NotValidYet => Fault::NotYet(u64::MAX),
            CertificateError::NotValidYetContext { not_before, .. } => {
                Fault::NotYet(moment(*not_before).since(self.now))
            }
            CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
                Fault::Purpose
            }
            CertificateError::UnsupportedSignatureAlgorithmContext { .. }
            | CertificateError::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
                Fault::Signature
            }
            // webpki's word for a certificate of an authority that is shown as a server's.
            CertificateError::Other(other) if other.to_string().contains("CaUsedAsEndEntity") => {
                Fault::Issuer
            }
            _ => Fault::Other,
        }
    }
}

impl fmt::Display for Distrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.why, self.fault()) {
            (CertificateError::ExpiredContext { not_after, .. }, _) => {
                write!(
                    f,
                    "its certificate was valid until {}, and here it is {}",
                    moment(*not_after),
                    self.now
                )?;
            }
            (CertificateError::NotValidYetContext { not_before, .. }, _) => {
                write!(
                    f,
                    "its certificate is not valid before {}, and here it is {}",
                    moment(*not_before),
                    self.now
                )?;
            }
            (CertificateError::NotValidForNameContext { expected, presented }, _) => {
                let names: Vec<String> = presented.iter().map(|name| plain(name)).collect();
                let names = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
                write!(f, "its certificate is for {names}, not for {}", expected.to_str())?;
            }
            (_, Fault::Issuer) => {
                f.write_str("nobody who is known here has signed its certificate")?;
            }
            (_, Fault::Purpose) => f.write_str(
                "its certificate is not for servers (its extended key usage lacks serverAuth)",
            )?,
            (_, Fault::Signature) => f.write_str(
                "its certificate is signed in a way that is no longer believed, such as by SHA-1",
            )?,
            (why, _) => write!(f, "its certificate is not believed: {why}")?,
        }
        write!(f, " (fingerprint {})", show_fingerprint(&self.seen))
    }
}

impl std::error::Error for Distrusted {}

/// A name as rustls writes it, `DnsName("pve.lan")`, without what is around it.
fn plain(name: &str) -> String {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"').to_owned()
}

/// A moment at which a certificate was valid, or will be, if its dates are what is wrong with it.
fn in_its_life(why: &CertificateError) -> Option<UnixTime> {
    match why {
        CertificateError::ExpiredContext { not_after, .. } => Some(*not_after),
        CertificateError::NotValidYetContext { not_before, .. } => Some(*not_before),
        _ => None,
    }
}

fn moment(time: UnixTime) -> Moment {
    Moment(time.as_secs().saturating_mul(1000))
}

/// Verifies by the chain up to an authority, by name and by time; what is refused is kept for the telling.
#[derive(Debug)]
pub(crate) struct ByChain(Arc<WebPkiServerVerifier>);

impl ByChain {
    pub(crate) fn new(chain: Arc<WebPkiServerVerifier>) -> Self {
        Self(chain)
    }
}

impl ServerCertVerifier for ByChain {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let judged =
            self.0.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        judged.map_err(|error| match error {
            rustls::Error::InvalidCertificate(why) => {
                // Dates are judged first. Who signed it says more, so that is asked at a moment of its life.
                let then = in_its_life(&why).and_then(|then| {
                    let chain = &self.0;
                    chain
                        .verify_server_cert(
                            end_entity,
                            intermediates,
                            server_name,
                            ocsp_response,
                            then,
                        )
                        .err()
                });
                let why = match then {
                    Some(rustls::Error::InvalidCertificate(worse)) => worse,
                    _ => why,
                };
                let seen = fingerprint(end_entity);
                let told = Arc::new(Distrusted { seen, why, now: moment(now) });
                CertificateError::Other(OtherError(told)).into()
            }
            other => other,
        })
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

/// Verifies by the certificate itself, whoever signed it; that the server holds its key is checked all the same.
#[derive(Debug)]
pub(crate) struct ByLeaf {
    rule: LeafRule,
    provider: Arc<CryptoProvider>,
}

#[derive(Debug)]
enum LeafRule {
    /// Only this one.
    Pinned(Fingerprint),
    /// Any, and it is noted; then only this one.
    Noted(Arc<Recorded>),
}

impl ByLeaf {
    pub(crate) fn pinned(wanted: Fingerprint, provider: &Arc<CryptoProvider>) -> Self {
        Self { rule: LeafRule::Pinned(wanted), provider: provider.clone() }
    }

    pub(crate) fn noted(place: Arc<Recorded>, provider: &Arc<CryptoProvider>) -> Self {
        Self { rule: LeafRule::Noted(place), provider: provider.clone() }
    }
}

impl ServerCertVerifier for ByLeaf {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let wanted = match &self.rule {
            LeafRule::Noted(place) => place.note(end_entity),
            LeafRule::Pinned(wanted) => *wanted,
        };
        let seen = fingerprint(end_entity);
        if seen != wanted {
            let mismatch = Arc::new(PinMismatch { wanted, seen });
            return Err(CertificateError::Other(OtherError(mismatch)).into());
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
