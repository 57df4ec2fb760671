//! The secrets that make a cluster itself: tokens and authorities, in the format of `talosctl gen secrets`.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use castle_model::{DigestKey, Secret};
use castle_wire::{Clock, Entropy};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroize;

use crate::authority::{Authority, KeyError, KeyKind, rsa_pem};

/// All secrets of one cluster. It is born once in an incarnation, escrowed before its first use, and kept in
/// memory only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle {
    /// Names the cluster in the discovery service; new with every incarnation.
    pub cluster_id: String,
    /// Encrypts what the discovery service is told.
    pub cluster_secret: Secret,
    /// Lets kubelets join.
    pub bootstrap_token: Secret,
    /// Encrypts secrets in etcd.
    pub secretbox: Secret,
    /// Lets machines ask trustd for certificates.
    pub trustd_token: Secret,
    /// Signs etcd's certificates.
    pub etcd: Authority,
    /// Signs Kubernetes' certificates.
    pub kubernetes: Authority,
    /// Signs the aggregation layer's certificates.
    pub aggregator: Authority,
    /// Signs the certificates of Talos' API.
    pub os: Authority,
    /// Signs service account tokens: RSA, PEM.
    pub service_account: Secret,
}

/// Why a bundle could not be made or read.
#[derive(Debug, Error)]
pub enum BundleError {
    /// A key or certificate could not be made.
    #[error("the Talos secrets could not be made")]
    Make(#[from] KeyError),
    /// The text is not a bundle. The parser's words are left out, because they may quote a secret.
    #[error(
        "the text is not a bundle of Talos secrets: it does not have the shape of `talosctl gen secrets`"
    )]
    Shape,
    /// A field is not what it should be.
    #[error("the Talos secrets are damaged: `{field}` is {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// In what way.
        problem: &'static str,
    },
}

impl Bundle {
    /// Makes the secrets of a new cluster.
    ///
    /// # Errors
    /// If a key cannot be made.
    pub fn generate(entropy: &dyn Entropy, clock: &dyn Clock) -> Result<Self, BundleError> {
        let now = clock.now();
        let authority =
            |what, kind, organization| Authority::generate(what, kind, organization, now, entropy);
        let bytes = || {
            let mut bytes = [0_u8; 32];
            entropy.fill(&mut bytes);
            bytes
        };
        Ok(Self {
            // Before 1.14 Talos writes the id in the URL alphabet and everything else in the standard one.
            cluster_id: URL_SAFE.encode(bytes()),
            cluster_secret: Secret::new(STANDARD.encode(bytes())),
            bootstrap_token: token(entropy),
            secretbox: Secret::new(STANDARD.encode(bytes())),
            trustd_token: token(entropy),
            etcd: authority("etcd authority", KeyKind::P256, "etcd")?,
            kubernetes: authority("Kubernetes authority", KeyKind::P256, "kubernetes")?,
            aggregator: authority("aggregator authority", KeyKind::P256, "")?,
            os: authority("Talos authority", KeyKind::Ed25519, "talos")?,
            service_account: rsa_pem(&entropy.rsa_4096())?,
        })
    }

    /// The key of digests for a purpose. It lives as long as the cluster, and no worker has what it is derived from.
    #[must_use]
    pub fn digest_key(&self, purpose: &str) -> DigestKey {
        DigestKey::derived(&self.secretbox, purpose)
    }

    /// Writes the bundle as `talosctl gen secrets` does.
    ///
    /// # Panics
    /// Never: plain text always becomes YAML.
    #[must_use]
    pub fn to_yaml(&self) -> Secret {
        let pair = |authority: &Authority| Pair {
            crt: STANDARD.encode(&authority.certificate),
            key: STANDARD.encode(authority.key.expose()),
        };
        let text = |secret: &Secret| secret.expose().to_owned();
        let mut shape = Shape {
            cluster: ClusterShape {
                id: self.cluster_id.clone(),
                secret: text(&self.cluster_secret),
            },
            secrets: SecretsShape {
                bootstraptoken: text(&self.bootstrap_token),
                secretboxencryptionsecret: text(&self.secretbox),
            },
            trustdinfo: TrustdShape { token: text(&self.trustd_token) },
            certs: CertsShape {
                etcd: pair(&self.etcd),
                k8s: pair(&self.kubernetes),
                k8saggregator: pair(&self.aggregator),
                k8sserviceaccount: KeyShape { key: STANDARD.encode(self.service_account.expose()) },
                os: pair(&self.os),
            },
        };
        let text = Secret::new(yaml_serde::to_string(&shape).expect("plain text becomes YAML"));
        shape.zeroize();
        text
    }

    /// Reads a bundle written by [`Bundle::to_yaml`] or by talosctl.
    ///
    /// # Errors
    /// Says which field is missing or damaged, never with its content.
    pub fn from_yaml(text: &Secret) -> Result<Self, BundleError> {
        let shape: Shape = yaml_serde::from_str(text.expose()).map_err(|_| BundleError::Shape)?;
        let CertsShape { etcd, k8s, k8saggregator, k8sserviceaccount, os } = shape.certs;
        let bundle = Self {
            cluster_id: shape.cluster.id,
            cluster_secret: Secret::new(shape.cluster.secret),
            bootstrap_token: Secret::new(shape.secrets.bootstraptoken),
            secretbox: Secret::new(shape.secrets.secretboxencryptionsecret),
            trustd_token: Secret::new(shape.trustdinfo.token),
            etcd: read_pair("certs.etcd", &etcd)?,
            kubernetes: read_pair("certs.k8s", &k8s)?,
            aggregator: read_pair("certs.k8saggregator", &k8saggregator)?,
            os: read_pair("certs.os", &os)?,
            service_account: Secret::new(read_pem(
                "certs.k8sserviceaccount.key",
                &k8sserviceaccount.key,
                "PRIVATE KEY-----",
            )?),
        };
        bundle.check()?;
        Ok(bundle)
    }

    /// Every secret of the bundle, in each form in which a machine config can hold it.
    #[must_use]
    pub fn secrets(&self) -> Vec<Secret> {
        let keys = [&self.etcd, &self.kubernetes, &self.aggregator, &self.os].map(|it| &it.key);
        let pems = keys.into_iter().chain([&self.service_account]);
        let encoded = pems.clone().map(|pem| Secret::new(STANDARD.encode(pem.expose())));
        let words =
            [&self.cluster_secret, &self.bootstrap_token, &self.secretbox, &self.trustd_token];
        words.into_iter().chain(pems.clone()).cloned().chain(encoded).collect()
    }

    /// Refuses what Talos itself would refuse later, on every machine.
    fn check(&self) -> Result<(), BundleError> {
        let short = |field, text: &str| {
            let long_enough = STANDARD.decode(text).is_ok_and(|bytes| bytes.len() == 32);
            if long_enough {
                Ok(())
            } else {
                Err(BundleError::Field { field, problem: "not 32 bytes in base64" })
            }
        };
        short("cluster.secret", self.cluster_secret.expose())?;
        short("secrets.secretboxencryptionsecret", self.secretbox.expose())?;
        let tokens = [
            ("secrets.bootstraptoken", &self.bootstrap_token),
            ("trustdinfo.token", &self.trustd_token),
        ];
        for (field, token) in tokens {
            if !is_token(token.expose()) {
                return Err(BundleError::Field {
                    field,
                    problem: "not a token (6 and 16 letters and digits around a dot)",
                });
            }
        }
        if self.cluster_id.is_empty() {
            return Err(BundleError::Field { field: "cluster.id", problem: "empty" });
        }
        Ok(())
    }
}

/// A token of the form `abcdef.0123456789abcdef`, every character equally likely.
fn token(entropy: &dyn Entropy) -> Secret {
    const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut text = String::with_capacity(23);
    let mut byte = [0_u8];
    while text.len() < 23 {
        if text.len() == 6 {
            text.push('.');
        }
        entropy.fill(&mut byte);
        // 252 is the last multiple of 36: what is above would favour the first four characters.
        if byte[0] < 252 {
            text.push(char::from(ALPHABET[usize::from(byte[0] % 36)]));
        }
    }
    Secret::new(text)
}

fn is_token(text: &str) -> bool {
    let part = |text: &str, length| {
        text.len() == length && text.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_lowercase())
    };
    text.split_once('.').is_some_and(|(id, secret)| part(id, 6) && part(secret, 16))
}

fn read_pair(field: &'static str, pair: &Pair) -> Result<Authority, BundleError> {
    Ok(Authority {
        certificate: read_pem(field, &pair.crt, "CERTIFICATE-----")?,
        key: Secret::new(read_pem(field, &pair.key, "PRIVATE KEY-----")?),
    })
}

fn read_pem(field: &'static str, text: &str, label: &str) -> Result<String, BundleError> {
    STANDARD
        .decode(text)
        .ok()
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .filter(|pem| pem.starts_with("-----BEGIN ") && pem.contains(label))
        .ok_or(BundleError::Field { field, problem: "not PEM in base64" })
}

#[derive(Serialize, Deserialize, Zeroize)]
struct Shape {
    cluster: ClusterShape,
    secrets: SecretsShape,
    trustdinfo: TrustdShape,
    certs: CertsShape,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct ClusterShape {
    id: String,
    secret: String,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct SecretsShape {
    bootstraptoken: String,
    secretboxencryptionsecret: String,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct TrustdShape {
    token: String,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct CertsShape {
    etcd: Pair,
    k8s: Pair,
    k8saggregator: Pair,
    k8sserviceaccount: KeyShape,
    os: Pair,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct Pair {
    crt: String,
    key: String,
}

#[derive(Serialize, Deserialize, Zeroize)]
struct KeyShape {
    key: String,
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer as _, X509Certificate};

    use super::*;
    use crate::authority::decode;
    use crate::testing::{FixedClock, TestEntropy};

    fn bundle() -> Bundle {
        Bundle::generate(&TestEntropy::new(7), &FixedClock).unwrap()
    }

    #[test]
    fn one_life_has_one_key_for_its_digests() {
        let (one, other) = (bundle(), Bundle::generate(&TestEntropy::new(8), &FixedClock).unwrap());
        let again = Bundle::from_yaml(&one.to_yaml()).unwrap();
        let digest = |bundle: &Bundle| bundle.digest_key("test").of("the same text");
        assert_eq!(digest(&one), digest(&again));
        assert_ne!(digest(&one), digest(&other));
    }

    #[test]
    fn a_bundle_survives_its_yaml() {
        let made = bundle();
        assert_eq!(Bundle::from_yaml(&made.to_yaml()).unwrap(), made);
        assert!(is_token(made.bootstrap_token.expose()) && is_token(made.trustd_token.expose()));
    }

    #[test]
    fn keys_come_from_the_given_randomness() {
        let (one, same) = (bundle(), bundle());
        assert_eq!(one.os, same.os, "Ed25519 is deterministic to the signature");
        assert_eq!(one.kubernetes.key, same.kubernetes.key);
        let other = Bundle::generate(&TestEntropy::new(8), &FixedClock).unwrap();
        assert_ne!(one.os.key, other.os.key);
        assert_ne!(one.cluster_id, other.cluster_id);
    }

    #[test]
    fn authorities_are_what_talos_makes() {
        let made = bundle();
        let cases = [
            (&made.os, "ED25519 PRIVATE KEY", "O=talos"),
            (&made.etcd, "EC PRIVATE KEY", "O=etcd"),
            (&made.kubernetes, "EC PRIVATE KEY", "O=kubernetes"),
            (&made.aggregator, "EC PRIVATE KEY", ""),
        ];
        for (authority, label, subject) in cases {
            let begin = format!("-----BEGIN {label}-----\n");
            assert!(authority.key.expose().starts_with(&begin), "{subject}");
            let der = decode("test", &authority.certificate).unwrap();
            let (_, certificate) = X509Certificate::from_der(&der).unwrap();
            assert_eq!(certificate.subject().to_string(), subject);
            assert!(certificate.is_ca());
            let usage = certificate.key_usage().unwrap().unwrap().value;
            assert!(usage.digital_signature() && usage.key_cert_sign() && !usage.crl_sign());
            let life = certificate.validity();
            assert_eq!((life.not_after.timestamp() - life.not_before.timestamp()) / 3600, 87_600);
        }
        assert!(made.service_account.expose().starts_with("-----BEGIN RSA PRIVATE KEY-----\nMII"));
    }

    #[test]
    fn a_damaged_bundle_is_named_and_not_shown() {
        let yaml = bundle().to_yaml();
        let cases = [
            ("\n  token: ", "\n  token: x", "trustdinfo.token"),
            ("id: ", "id: ''\n  was: ", "cluster.id"),
            ("  secret: ", "  secret: AAAA", "cluster.secret"),
            ("  os:\n    crt: ", "  os:\n    crt: '!'\n    was: ", "certs.os"),
        ];
        for (from, to, field) in cases {
            let text = Secret::new(yaml.expose().replacen(from, to, 1));
            let error = Bundle::from_yaml(&text).unwrap_err().to_string();
            assert!(error.contains(field), "{field}: {error}");
        }
        let error = Bundle::from_yaml(&Secret::new("hunter2: [")).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("hunter2"));
        assert!(!format!("{:?}", bundle()).contains("PRIVATE KEY"));
    }
}
