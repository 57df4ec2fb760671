//! Reads the files for people back, as `talosctl` and `kubectl` would: what is given out is proven by use.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use castle_model::time::Moment;
use serde::Deserialize;
use thiserror::Error;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::access::{KubeAccess, TalosAccess};
use crate::authority::decode;

/// Why a file cannot be used. It never quotes the file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the {file} cannot be used: {problem}")]
pub struct HandoutError {
    /// Which file.
    pub file: &'static str,
    /// What is wrong with it.
    pub problem: &'static str,
}

/// From when until when a certificate is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// Not before this.
    pub from: Moment,
    /// Not after this.
    pub until: Moment,
}

impl Validity {
    /// Whether it is valid, and will be for at least a third of its whole life: who finds it in a drawer can use it.
    #[must_use]
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.from <= now && self.until.since(now) >= self.until.since(self.from) / 3
    }
}

#[derive(Deserialize)]
struct Talosconfig {
    context: String,
    contexts: std::collections::BTreeMap<String, TalosContext>,
}

#[derive(Deserialize)]
struct TalosContext {
    endpoints: Vec<Ipv4Addr>,
    ca: String,
    crt: String,
    key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    clusters: Vec<Named<ClusterPart>>,
    users: Vec<Named<UserPart>>,
    contexts: Vec<Named<ContextPart>>,
    current_context: String,
}

#[derive(Deserialize)]
struct Named<T> {
    name: String,
    #[serde(alias = "cluster", alias = "user", alias = "context")]
    part: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct ClusterPart {
    server: String,
    certificate_authority_data: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct UserPart {
    client_certificate_data: String,
    client_key_data: String,
}

#[derive(Deserialize)]
struct ContextPart {
    cluster: String,
    user: String,
}

impl TalosAccess {
    /// Reads a talosconfig: who castle is, and the machines that it names.
    ///
    /// # Errors
    /// If it is not one, or names no machine.
    pub fn from_talosconfig(text: &Secret) -> Result<(Self, Vec<Ipv4Addr>), HandoutError> {
        let file = "talosconfig";
        let wrong = |problem| HandoutError { file, problem };
        let config: Talosconfig =
            yaml_serde::from_str(text.expose()).map_err(|_| wrong("it is not one"))?;
        let context =
            config.contexts.get(&config.context).ok_or_else(|| wrong("its context is missing"))?;
        if context.endpoints.is_empty() {
            return Err(wrong("it names no machine"));
        }
        let access = Self {
            authority: decoded(file, &context.ca)?,
            certificate: decoded(file, &context.crt)?,
            key: Secret::new(decoded(file, &context.key)?),
        };
        Ok((access, context.endpoints.clone()))
    }

    /// From when until when the administrator's certificate is valid.
    ///
    /// # Errors
    /// If it is not a certificate.
    pub fn validity(&self) -> Result<Validity, HandoutError> {
        validity("talosconfig", &self.certificate)
    }
}

impl KubeAccess {
    /// Reads a kubeconfig: who castle is, and where the API server is.
    ///
    /// # Errors
    /// If it is not one.
    pub fn from_kubeconfig(text: &Secret) -> Result<Self, HandoutError> {
        let file = "kubeconfig";
        let wrong = |problem| HandoutError { file, problem };
        let config: Kubeconfig =
            yaml_serde::from_str(text.expose()).map_err(|_| wrong("it is not one"))?;
        let context = part(&config.contexts, &config.current_context)
            .ok_or_else(|| wrong("its context is missing"))?;
        let cluster = part(&config.clusters, &context.cluster)
            .ok_or_else(|| wrong("its cluster is missing"))?;
        let user =
            part(&config.users, &context.user).ok_or_else(|| wrong("its user is missing"))?;
        Ok(Self {
            server: cluster.server.clone(),
            authority: decoded(file, &cluster.certificate_authority_data)?,
            certificate: decoded(file, &user.client_certificate_data)?,
            key: Secret::new(decoded(file, &user.client_key_data)?),
        })
    }

    /// From when until when the administrator's certificate is valid.
    ///
    /// # Errors
    /// If it is not a certificate.
    pub fn validity(&self) -> Result<Validity, HandoutError> {
        validity("kubeconfig", &self.certificate)
    }
}

fn part<'a, T>(parts: &'a [Named<T>], name: &str) -> Option<&'a T> {
    parts.iter().find(|part| part.name == name).map(|part| &part.part)
}

fn decoded(file: &'static str, text: &str) -> Result<String, HandoutError> {
    let wrong =
        HandoutError { file, problem: "one of its certificates or keys is not base64 text" };
    let bytes = STANDARD.decode(text).map_err(|_| wrong.clone())?;
    String::from_utf8(bytes).map_err(|_| wrong)
}

fn validity(file: &'static str, certificate: &str) -> Result<Validity, HandoutError> {
    let wrong = || HandoutError { file, problem: "its certificate can not be read" };
    let der = decode(file, certificate).map_err(|_| wrong())?;
    let (_, certificate) = X509Certificate::from_der(&der).map_err(|_| wrong())?;
    let moment = |seconds: i64| Moment(u64::try_from(seconds).unwrap_or(0).saturating_mul(1000));
    let validity = certificate.validity();
    Ok(Validity {
        from: moment(validity.not_before.timestamp()),
        until: moment(validity.not_after.timestamp()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bundle;
    use crate::testing::{FixedClock, TestEntropy, spec};

    #[test]
    fn what_is_given_out_is_read_back() {
        let entropy = TestEntropy::new(3);
        let bundle = Bundle::generate(&entropy, &FixedClock).unwrap();
        let spec = spec();
        let kube = KubeAccess::issue(&spec, &bundle, &entropy, &FixedClock).unwrap();
        assert_eq!(KubeAccess::from_kubeconfig(&kube.kubeconfig(&spec)), Ok(kube));
        let talos = TalosAccess::issue(&bundle, &entropy, &FixedClock).unwrap();
        let (read, endpoints) = TalosAccess::from_talosconfig(&talos.talosconfig(&spec)).unwrap();
        assert_eq!(read, talos);
        assert_eq!(endpoints, [spec.nodes[0].address]);
    }

    #[test]
    fn a_certificate_is_fresh_until_a_third_of_its_life_is_left() {
        let entropy = TestEntropy::new(3);
        let bundle = Bundle::generate(&entropy, &FixedClock).unwrap();
        let kube = KubeAccess::issue(&spec(), &bundle, &entropy, &FixedClock).unwrap();
        let talos = TalosAccess::issue(&bundle, &entropy, &FixedClock).unwrap();
        let valid = kube.validity().unwrap();
        assert_eq!(talos.validity(), Ok(valid));
        let now = castle_wire::Clock::now(&FixedClock);
        assert_eq!(
            (now.since(valid.from), valid.until.since(valid.from)),
            (300_000, 31_536_000_000)
        );
        let last = Moment(valid.until.0 - 31_536_000_000 / 3);
        let after = |moment: Moment| Moment(moment.0 + 1);
        let told: Vec<bool> =
            [Moment(valid.from.0 - 1), valid.from, last, after(last), after(valid.until)]
                .map(|moment| valid.is_fresh(moment))
                .to_vec();
        assert_eq!(told, [false, true, true, false, false]);
        let broken = KubeAccess { certificate: "hunter2".to_owned(), ..kube };
        let error = broken.validity().unwrap_err().to_string();
        assert_eq!(error, "the kubeconfig cannot be used: its certificate can not be read");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_not_quoted() {
        let text =
            Secret::new("context: a\ncontexts: {b: {endpoints: [], ca: hunter2, crt: x, key: y}}");
        let error = TalosAccess::from_talosconfig(&text).unwrap_err();
        assert_eq!(error.to_string(), "the talosconfig cannot be used: its context is missing");
        assert!(KubeAccess::from_kubeconfig(&Secret::new("hunter2: [")).is_err());
    }
}
