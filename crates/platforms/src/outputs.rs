//! What the steps of different modules hand to each other. In memory only: most of it is secret.

use std::collections::BTreeMap;

use castle_engine::Key;
use castle_model::{Class, Failure, Incarnation, Secret};

/// Every secret that the run needs; given by `secrets/read`.
pub const SECRETS: Key<SecretValues> = Key::new("secrets");
/// The castle's present life; given by `secrets/escrow`.
pub const LIFE: Key<Life> = Key::new("life");
/// A client that is proven to reach the cluster through the VIP; given by `platform/access`.
pub const CLUSTER: Key<castle_kubernetes::Kubernetes> = Key::new("cluster");

/// Secrets by their key.
#[derive(Debug, Default)]
pub struct SecretValues(pub BTreeMap<String, Secret>);

impl SecretValues {
    /// One secret. That it is there and not empty was checked when they were read.
    ///
    /// # Errors
    /// A bug: nobody declared that the castle needs this key.
    pub fn get(&self, key: &str) -> Result<&Secret, Failure> {
        self.0.get(key).ok_or_else(|| {
            Failure::new(Class::Bug, format!("use the secret {key}"), "it is not among those that were read")
        })
    }
}

/// One life of a castle: which, and the secrets that all its machines share.
pub struct Life {
    /// Which.
    pub incarnation: Incarnation,
    /// Its Talos secrets.
    pub bundle: castle_talos::Bundle,
}
