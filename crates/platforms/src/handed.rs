//! What the steps of the foundations hand to those above: secret values, the castle's life, who may come in.

use std::collections::BTreeMap;

use castle_engine::Key;
use castle_infisical::Credentials;
use castle_model::spec::SecretRef;
use castle_model::{CastleName, Class, Failure, Incarnation, NodeName, Secret};
use castle_talos::Bundle;
use castle_wire::World;
use castle_wire::failure::chain;

/// The values of every required key; given by `secrets/read`.
pub const SECRETS: Key<SecretValues> = Key::new("secrets/values");

/// The machine identity that reads the secret source; given by `secrets/read`.
pub const IDENTITY: Key<Credentials> = Key::new("secrets/identity");

/// The life that the castle is in, with its Talos secrets, escrowed; given by `secrets/escrow`.
pub const LIFE: Key<Life> = Key::new("secrets/life");

/// The Talos secrets that were found in escrow, whoever they belong to; given by `secrets/read`, for steps that must
/// speak to machines on the way down.
pub const KEPT: Key<Secret> = Key::new("secrets/kept");

/// A client that is proven to reach the cluster through the VIP; given by `platform/access`.
pub const CLUSTER: Key<castle_kubernetes::Kubernetes> = Key::new("platform/cluster");

/// A client of each control plane's own API server, by the node's name; given by `platform/access`.
pub const API_SERVERS: Key<Vec<(NodeName, castle_kubernetes::Kubernetes)>> =
    Key::new("platform/api-servers");

/// Secret values by key.
#[derive(Debug, Clone, Default)]
pub struct SecretValues(pub BTreeMap<String, Secret>);

impl SecretValues {
    /// The value that a reference names.
    ///
    /// # Errors
    /// A bug: the key was not among those that were required.
    pub fn get(&self, reference: &SecretRef) -> Result<&Secret, Failure> {
        self.0.get(&reference.0).ok_or_else(|| {
            Failure::bug(format!("use the secret `{}`", reference.0), "it was not read before")
        })
    }
}

/// One life of a castle.
#[derive(Clone)]
pub struct Life {
    /// Its id.
    pub incarnation: Incarnation,
    /// The Talos secrets that belong to it.
    pub bundle: Bundle,
}

/// How the line begins that tells, in an escrowed text, which castle and life it belongs to. A comment to YAML, so
/// that `talosctl` and `kubectl` read the rest as it is.
const ESCROW_LINE: &str = "# castle ";

impl Life {
    /// A new life: a random id and new Talos secrets.
    ///
    /// # Errors
    /// If keys cannot be made.
    pub fn begin(world: &World) -> Result<Self, Failure> {
        let mut id = [0; 8];
        world.entropy.fill(&mut id);
        let bundle = Bundle::generate(world.entropy.as_ref(), world.clock.as_ref())
            .map_err(|error| Failure::bug("make the Talos secrets of a new life", chain(&error)))?;
        Ok(Self { incarnation: Incarnation::from_bytes(id), bundle })
    }

    /// The text under which it is escrowed: one line that names castle and life, then the Talos secrets.
    #[must_use]
    pub fn to_escrow(&self, castle: &CastleName) -> Secret {
        self.marked(castle, &self.bundle.to_yaml())
    }

    /// Any text of this life as it is escrowed: one line that names castle and life, then the text.
    #[must_use]
    pub fn marked(&self, castle: &CastleName, text: &Secret) -> Secret {
        Secret::new(format!("{ESCROW_LINE}{castle} {}\n{}", self.incarnation, text.expose()))
    }

    /// Reads what is escrowed.
    ///
    /// # Errors
    /// If it is not a life of this castle, or cannot be read.
    pub fn from_escrow(castle: &CastleName, text: &Secret) -> Result<Self, Failure> {
        let what = "read the escrowed Talos secrets";
        let incarnation = escrowed_incarnation(castle, text)
            .map_err(|why| Failure::new(Class::Conflict, what, why))?;
        let bundle = Bundle::from_yaml(text)
            .map_err(|error| Failure::new(Class::Invalid, what, chain(&error)))?;
        Ok(Self { incarnation, bundle })
    }
}

/// Which life of this castle an escrowed text belongs to.
///
/// # Errors
/// In words, if it belongs to none.
pub fn escrowed_incarnation(castle: &CastleName, text: &Secret) -> Result<Incarnation, String> {
    let line = text.expose().lines().next().unwrap_or_default();
    let Some((owner, life)) = line.strip_prefix(ESCROW_LINE).and_then(|rest| rest.split_once(' '))
    else {
        return Err("it does not begin with the name of a castle and its life".to_owned());
    };
    if owner != castle.as_str() {
        return Err(format!("it belongs to the castle `{owner}`"));
    }
    life.trim().parse()
}

/// Whether an escrowed text says at all whose it is.
#[must_use]
pub fn is_marked(text: &Secret) -> bool {
    text.expose().starts_with(ESCROW_LINE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escrowed_text_names_its_castle_and_life() {
        let blue: CastleName = "blue".parse().unwrap();
        let text = Secret::new("# castle blue 0011223344556677\ncluster:\n  id: x\n");
        assert_eq!(escrowed_incarnation(&blue, &text), "0011223344556677".parse());
        let other = escrowed_incarnation(&"red".parse().unwrap(), &text).unwrap_err();
        assert_eq!(other, "it belongs to the castle `blue`");
        assert!(escrowed_incarnation(&blue, &Secret::new("cluster: {}")).is_err());
        assert!(escrowed_incarnation(&blue, &Secret::new("# castle blue xyz")).is_err());
    }
}
