//! Who castle is to the cluster: a Talos administrator and a Kubernetes administrator, made from the bundle offline.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::time::Moment;
use castle_model::{Secret, Spec};
use castle_wire::tls::{TlsError, client_config};
use castle_wire::{ClientIdentity, Clock, Entropy, Verify, World};
use rcgen::KeyUsagePurpose;
use rustls::ClientConfig;
use serde_json::json;

use crate::authority::{KeyError, LeafSubject};
use crate::bundle::Bundle;
use crate::client::PROTOCOLS;
use crate::config::kubernetes_endpoint;

/// How long the certificates are valid: a year, as `talosctl` gives them.
const LIFE: Duration = Duration::from_hours(8760);

/// How far back the certificates begin: they are used at once, by machines whose clock may lag behind ours, and one
/// that finds them not valid yet would look like a machine of somebody else.
const LEEWAY_MS: u64 = 300_000;

/// What opens Talos' API on every machine of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalosAccess {
    /// The certificate of the authority that the machines' own certificates come from, PEM.
    pub authority: String,
    /// The administrator's certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

/// The same, read and ready for any number of handshakes: each of them verifies anew, but reading the key costs more
/// than a handshake does.
#[derive(Clone)]
pub struct TalosEntry(pub(crate) Arc<ClientConfig>);

/// What opens the Kubernetes API as an administrator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KubeAccess {
    /// The server, through the VIP: `https://192.168.1.210:6443`.
    pub server: String,
    /// The certificate of the cluster's authority, PEM.
    pub authority: String,
    /// The administrator's certificate, PEM.
    pub certificate: String,
    /// Its key, PEM.
    pub key: Secret,
}

impl TalosAccess {
    /// Issues an administrator's certificate from the bundle.
    ///
    /// # Errors
    /// If the bundle's authority is damaged.
    pub fn issue(
        bundle: &Bundle,
        entropy: &dyn Entropy,
        clock: &dyn Clock,
    ) -> Result<Self, KeyError> {
        let subject = LeafSubject {
            common_name: None,
            organization: "os:admin",
            key_usages: &[KeyUsagePurpose::DigitalSignature],
            from: Moment(clock.now().0.saturating_sub(LEEWAY_MS)),
            life: LIFE,
        };
        let leaf = bundle.os.issue("Talos administrator", &subject, entropy)?;
        Ok(Self {
            authority: bundle.os.certificate.clone(),
            certificate: leaf.certificate,
            key: leaf.key,
        })
    }

    /// Reads the certificates for the handshake.
    ///
    /// # Errors
    /// If one of them, or the key, cannot be read or used.
    pub fn entry(&self, world: &World) -> Result<TalosEntry, TlsError> {
        let identity = ClientIdentity::from_pem(&self.certificate, &self.key)?;
        let verify = Verify::Authority(self.authority.clone());
        client_config(&verify, Some(identity), world.clock.clone(), PROTOCOLS).map(TalosEntry)
    }

    /// The talosconfig for `talosctl`. The VIP is never an endpoint: it is gone whenever etcd is.
    ///
    /// # Panics
    /// Never: plain values always become YAML.
    #[must_use]
    pub fn talosconfig(&self, spec: &Spec) -> Secret {
        let endpoints: Vec<Ipv4Addr> = spec.control_planes().map(|node| node.address).collect();
        let name = spec.name.as_str();
        let text = yaml_serde::to_string(&json!({
            "context": name,
            "contexts": { name: {
                "endpoints": endpoints,
                "ca": STANDARD.encode(&self.authority),
                "crt": STANDARD.encode(&self.certificate),
                "key": STANDARD.encode(self.key.expose()),
            }},
        }));
        Secret::new(text.expect("plain values become YAML"))
    }
}

impl KubeAccess {
    /// Issues an administrator's certificate from the bundle.
    ///
    /// # Errors
    /// If the bundle's authority is damaged.
    pub fn issue(
        spec: &Spec,
        bundle: &Bundle,
        entropy: &dyn Entropy,
        clock: &dyn Clock,
    ) -> Result<Self, KeyError> {
        let subject = LeafSubject {
            common_name: Some("admin"),
            organization: "system:masters",
            key_usages: &[KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment],
            from: Moment(clock.now().0.saturating_sub(LEEWAY_MS)),
            life: LIFE,
        };
        let leaf = bundle.kubernetes.issue("Kubernetes administrator", &subject, entropy)?;
        Ok(Self {
            server: kubernetes_endpoint(spec),
            authority: bundle.kubernetes.certificate.clone(),
            certificate: leaf.certificate,
            key: leaf.key,
        })
    }

    /// The kubeconfig for `kubectl`.
    ///
    /// # Panics
    /// Never: plain values always become YAML.
    #[must_use]
    pub fn kubeconfig(&self, spec: &Spec) -> Secret {
        let cluster = spec.name.as_str();
        let user = format!("admin@{cluster}");
        let text = yaml_serde::to_string(&json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": cluster, "cluster": {
                "server": self.server,
                "certificate-authority-data": STANDARD.encode(&self.authority),
            }}],
            "users": [{ "name": user, "user": {
                "client-certificate-data": STANDARD.encode(&self.certificate),
                "client-key-data": STANDARD.encode(self.key.expose()),
            }}],
            "contexts": [{ "name": user, "context": {
                "cluster": cluster, "namespace": "default", "user": user,
            }}],
            "current-context": user,
        }));
        Secret::new(text.expect("plain values become YAML"))
    }
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer as _, X509Certificate};

    use super::*;
    use crate::authority::decode;
    use crate::testing::{FixedClock, TestEntropy, spec};

    fn subject_of(certificate: &str, authority: &str) -> (String, Vec<bool>) {
        let der = decode("test", certificate).unwrap();
        let (_, leaf) = X509Certificate::from_der(&der).unwrap();
        let der = decode("test", authority).unwrap();
        let (_, issuer) = X509Certificate::from_der(&der).unwrap();
        assert_eq!(leaf.issuer(), issuer.subject());
        let usage = leaf.extended_key_usage().unwrap().unwrap().value;
        (leaf.subject().to_string(), vec![usage.client_auth, usage.server_auth, usage.any])
    }

    #[test]
    fn certificates_name_an_administrator_and_allow_client_authentication_alone() {
        let entropy = TestEntropy::new(3);
        let bundle = Bundle::generate(&entropy, &FixedClock).unwrap();
        let talos = TalosAccess::issue(&bundle, &entropy, &FixedClock).unwrap();
        assert_eq!(
            subject_of(&talos.certificate, &talos.authority),
            ("O=os:admin".to_owned(), vec![true, false, false])
        );
        assert!(talos.key.expose().starts_with("-----BEGIN ED25519 PRIVATE KEY-----"));
        let kube = KubeAccess::issue(&spec(), &bundle, &entropy, &FixedClock).unwrap();
        assert_eq!(
            subject_of(&kube.certificate, &kube.authority),
            ("O=system:masters, CN=admin".to_owned(), vec![true, false, false])
        );
        assert!(!format!("{talos:?} {kube:?}").contains("PRIVATE KEY"));
    }

    #[test]
    fn a_machine_whose_clock_lags_takes_the_certificates_too() {
        let entropy = TestEntropy::new(3);
        let bundle = Bundle::generate(&entropy, &FixedClock).unwrap();
        let talos = TalosAccess::issue(&bundle, &entropy, &FixedClock).unwrap();
        let kube = KubeAccess::issue(&spec(), &bundle, &entropy, &FixedClock).unwrap();
        for certificate in [talos.certificate, kube.certificate] {
            let der = decode("test", &certificate).unwrap();
            let (_, leaf) = X509Certificate::from_der(&der).unwrap();
            let begins = u64::try_from(leaf.validity().not_before.timestamp()).unwrap();
            assert_eq!(FixedClock.now().0 / 1000 - begins, 300);
        }
    }

    #[test]
    fn the_files_for_people_name_the_right_servers() {
        let entropy = TestEntropy::new(3);
        let bundle = Bundle::generate(&entropy, &FixedClock).unwrap();
        let spec = spec();
        let kube = KubeAccess::issue(&spec, &bundle, &entropy, &FixedClock).unwrap();
        let config: serde_json::Value =
            yaml_serde::from_str(kube.kubeconfig(&spec).expose()).unwrap();
        assert_eq!(config["clusters"][0]["cluster"]["server"], "https://192.168.1.210:6443");
        assert_eq!(config["current-context"], "admin@blue");
        let talos = TalosAccess::issue(&bundle, &entropy, &FixedClock).unwrap();
        let config: serde_json::Value =
            yaml_serde::from_str(talos.talosconfig(&spec).expose()).unwrap();
        assert_eq!(config["contexts"]["blue"]["endpoints"], json!(["192.168.1.211"]));
    }
}
