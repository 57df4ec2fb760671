//! Keys, certificate authorities and the leaf certificates they issue, in the forms that Talos reads.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use castle_model::time::Moment;
use castle_wire::Entropy;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::pkcs8::EncodePrivateKey as _;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, SerialNumber,
    SignatureAlgorithm, date_time_ymd,
};
use rustls_pki_types::PrivatePkcs8KeyDer;
use thiserror::Error;

/// How long an authority lives: ten years, as `talosctl gen secrets` gives it.
const AUTHORITY_LIFE: Duration = Duration::from_hours(87_600);

/// Talos' own PEM label for Ed25519 keys; the content is plain PKCS#8.
const ED25519_LABEL: &str = "ED25519 PRIVATE KEY";

/// The bytes before the seed in the PKCS#8 (version 1) form of an Ed25519 key.
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// Why keys or certificates could not be made or read.
#[derive(Debug, Error)]
pub enum KeyError {
    /// The text is not one PEM block.
    #[error("the {what} is not PEM")]
    NotPem {
        /// Which key.
        what: &'static str,
    },
    /// The key is of a kind that is not used here.
    #[error("the key of the {what} is of an unknown kind (label `{label}`)")]
    UnknownKey {
        /// Whose.
        what: &'static str,
        /// The PEM label.
        label: String,
    },
    /// The library refused.
    #[error("the certificate of the {what} could not be made")]
    Certificate {
        /// Whose.
        what: &'static str,
        /// What it said.
        #[source]
        source: rcgen::Error,
    },
    /// The key could not be written or read.
    #[error("the key of the {what} is damaged")]
    Damaged {
        /// Whose.
        what: &'static str,
    },
}

/// The kind of key an authority has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyKind {
    /// For Talos' own API.
    Ed25519,
    /// For etcd and Kubernetes.
    P256,
}

/// A certificate authority with its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key, PEM under Talos' labels.
    pub key: Secret,
}

/// A certificate with its key, to be a client with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key, PEM under Talos' labels.
    pub key: Secret,
}

/// What a client certificate says.
pub(crate) struct LeafSubject<'a> {
    pub(crate) common_name: Option<&'a str>,
    pub(crate) organization: &'a str,
    pub(crate) key_usages: &'a [KeyUsagePurpose],
    pub(crate) from: Moment,
    pub(crate) life: Duration,
}

impl Authority {
    /// Makes an authority; `organization` is its whole subject, empty for none.
    pub(crate) fn generate(
        what: &'static str,
        kind: KeyKind,
        organization: &str,
        now: Moment,
        entropy: &dyn Entropy,
    ) -> Result<Self, KeyError> {
        let (pair, key) = new_key(what, kind, entropy)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        if !organization.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, organization);
        }
        params.serial_number = Some(serial(entropy));
        set_life(&mut params, now, AUTHORITY_LIFE);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let made =
            params.self_signed(&pair).map_err(|source| KeyError::Certificate { what, source })?;
        Ok(Self { certificate: made.pem(), key })
    }

    /// Issues a client certificate with a new key of the authority's own kind.
    pub(crate) fn issue(
        &self,
        what: &'static str,
        subject: &LeafSubject<'_>,
        entropy: &dyn Entropy,
    ) -> Result<Leaf, KeyError> {
        let certificate = |source| KeyError::Certificate { what, source };
        let (signer, kind) = read_key(what, self.key.expose())?;
        let issuer = Issuer::from_ca_cert_pem(&self.certificate, signer).map_err(certificate)?;
        let (pair, key) = new_key(what, kind, entropy)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::OrganizationName, subject.organization);
        if let Some(name) = subject.common_name {
            params.distinguished_name.push(DnType::CommonName, name);
        }
        params.serial_number = Some(serial(entropy));
        set_life(&mut params, subject.from, subject.life);
        params.key_usages = subject.key_usages.to_vec();
        // Talos refuses a client certificate that allows anything beside client authentication.
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.use_authority_key_identifier_extension = true;
        let made = params.signed_by(&pair, &issuer).map_err(certificate)?;
        Ok(Leaf { certificate: made.pem(), key })
    }
}

/// An RSA key (PKCS#8 DER) as `RSA PRIVATE KEY`, the form that Talos wants for service accounts.
pub(crate) fn rsa_pem(pkcs8: &[u8]) -> Result<Secret, KeyError> {
    let what = "service accounts";
    let inner = p256::pkcs8::PrivateKeyInfo::try_from(pkcs8)
        .map_err(|_| KeyError::Damaged { what })?
        .private_key;
    Ok(pem("RSA PRIVATE KEY", inner))
}

/// Bytes as PEM under a label.
fn pem(label: &str, bytes: &[u8]) -> Secret {
    let body = STANDARD.encode(bytes);
    let mut text = format!("-----BEGIN {label}-----\n");
    for line in body.as_bytes().chunks(64) {
        text.extend(line.iter().map(|b| char::from(*b)));
        text.push('\n');
    }
    text.push_str("-----END ");
    text.push_str(label);
    text.push_str("-----\n");
    Secret::new(text)
}

/// A new key from the given randomness: for signing, and as PEM.
fn new_key(
    what: &'static str,
    kind: KeyKind,
    entropy: &dyn Entropy,
) -> Result<(KeyPair, Secret), KeyError> {
    let mut seed = [0_u8; 32];
    match kind {
        KeyKind::Ed25519 => {
            entropy.fill(&mut seed);
            let der = [&ED25519_PREFIX[..], &seed].concat();
            Ok((pair(what, &der, &PKCS_ED25519)?, pem(ED25519_LABEL, &der)))
        }
        KeyKind::P256 => {
            // All but one in 2^32 numbers are keys.
            let secret = loop {
                entropy.fill(&mut seed);
                if let Ok(secret) = p256::SecretKey::from_slice(&seed) {
                    break secret;
                }
            };
            let damaged = |_| KeyError::Damaged { what };
            let der = secret.to_pkcs8_der().map_err(damaged)?;
            let pair = pair(what, der.as_bytes(), &PKCS_ECDSA_P256_SHA256)?;
            Ok((pair, pem("EC PRIVATE KEY", &sec1(&secret))))
        }
    }
}

/// A P-256 key as SEC 1 has it. The curve must be named in it: Go refuses a key that leaves it to the surroundings.
fn sec1(secret: &p256::SecretKey) -> Vec<u8> {
    let public = secret.public_key().to_encoded_point(false);
    [
        &[0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20][..],
        &secret.to_bytes(),
        // prime256v1
        &[0xa0, 0x0a, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07],
        &[0xa1, 0x44, 0x03, 0x42, 0x00],
        public.as_bytes(),
    ]
    .concat()
}

/// Reads a key in one of the forms that Talos writes.
fn read_key(what: &'static str, text: &str) -> Result<(KeyPair, KeyKind), KeyError> {
    let label = text
        .trim_start()
        .strip_prefix("-----BEGIN ")
        .and_then(|rest| rest.split_once("-----"))
        .map(|(label, _)| label)
        .ok_or(KeyError::NotPem { what })?;
    let der = decode(what, text)?;
    match label {
        ED25519_LABEL => Ok((pair(what, &der, &PKCS_ED25519)?, KeyKind::Ed25519)),
        "EC PRIVATE KEY" => {
            let secret =
                p256::SecretKey::from_sec1_der(&der).map_err(|_| KeyError::Damaged { what })?;
            let der = secret.to_pkcs8_der().map_err(|_| KeyError::Damaged { what })?;
            Ok((pair(what, der.as_bytes(), &PKCS_ECDSA_P256_SHA256)?, KeyKind::P256))
        }
        "PRIVATE KEY" => pair(what, &der, &PKCS_ED25519)
            .map(|pair| (pair, KeyKind::Ed25519))
            .or_else(|_| Ok((pair(what, &der, &PKCS_ECDSA_P256_SHA256)?, KeyKind::P256))),
        other => Err(KeyError::UnknownKey { what, label: other.to_owned() }),
    }
}

/// The bytes of the first PEM block.
pub(crate) fn decode(what: &'static str, text: &str) -> Result<Vec<u8>, KeyError> {
    let body: String = text
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN "))
        .skip(1)
        .take_while(|line| !line.starts_with("-----END "))
        .map(str::trim)
        .collect();
    if body.is_empty() {
        return Err(KeyError::NotPem { what });
    }
    STANDARD.decode(body).map_err(|_| KeyError::NotPem { what })
}

fn pair(
    what: &'static str,
    der: &[u8],
    algorithm: &'static SignatureAlgorithm,
) -> Result<KeyPair, KeyError> {
    KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(der), algorithm)
        .map_err(|source| KeyError::Certificate { what, source })
}

/// A positive serial number of 127 random bits.
fn serial(entropy: &dyn Entropy) -> SerialNumber {
    let mut bytes = [0_u8; 16];
    entropy.fill(&mut bytes);
    bytes[0] = bytes[0] & 0x7f | 0x01;
    SerialNumber::from_slice(&bytes)
}

/// Sets from when, in whole seconds, and how long a certificate is valid.
fn set_life(params: &mut CertificateParams, from: Moment, life: Duration) {
    params.not_before = date_time_ymd(1970, 1, 1) + Duration::from_secs(from.0 / 1000);
    params.not_after = params.not_before + life;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestEntropy;

    /// Talos, written in Go, says `unknown elliptic curve` to a key that does not name its own.
    #[test]
    fn a_p256_key_names_its_curve_and_is_read_again() {
        let (pair, key) = new_key("test", KeyKind::P256, &TestEntropy::new(5)).unwrap();
        let der = decode("test", key.expose()).unwrap();
        let named = [0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
        assert_eq!(der.len(), usize::from(der[1]) + 2);
        assert!(der.windows(named.len()).any(|window| window == named));
        assert!(key.expose().starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
        let (again, _) = read_key("test", key.expose()).unwrap();
        assert_eq!(again.public_key_raw(), pair.public_key_raw());
        assert!(der.ends_with(pair.public_key_raw()));
    }
}
