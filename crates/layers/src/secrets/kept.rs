//! What the secret source keeps of a castle, read without a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use castle_infisical::Credentials;
use castle_model::{Class, Failure, Secret, Spec};
use castle_platforms::handed::escrowed_incarnation;
use castle_wire::World;

use super::Vault;
use super::escrow::BUNDLE_KEY;

/// What is kept of a castle.
pub struct Kept {
    /// The Talos secrets of its life.
    pub bundle: Secret,
    /// The values of those keys that the castle file names, as far as they are there.
    pub values: BTreeMap<String, Secret>,
}

/// Reads what is kept of a castle.
///
/// # Errors
/// If the secret source does not answer, or keeps no life of this castle.
pub async fn kept(spec: &Arc<Spec>, world: &World, identity: Credentials) -> Result<Kept, Failure> {
    let vault = Vault::new(spec, world, identity);
    let found = vault.client()?.list(&vault.place().await?).await;
    let found = found.map_err(|error| vault.failure("read the Talos secrets from", &error))?;
    let what = format!("find the Talos secrets of the castle `{}`", spec.name);
    let Some(entry) = found.own.get(BUNDLE_KEY) else {
        let why = format!("there is no {BUNDLE_KEY}: the castle was not raised yet, or is gone");
        return Err(Failure::new(Class::Gone, what, why)
            .evidence(vault.place_words())
            .hint("raise the castle first (`up`), or give the secrets by --bundle FILE"));
    };
    escrowed_incarnation(&spec.name, &entry.value).map_err(|why| {
        Failure::new(Class::Conflict, what, why)
            .evidence(vault.place_words())
            .hint("give each castle a path of its own in the secret source")
    })?;
    let keys = spec.required_secrets();
    let value = |key: &String| Some((key.clone(), found.get(key)?.value.clone()));
    let values = keys.iter().filter_map(value).collect();
    Ok(Kept { bundle: entry.value.clone(), values })
}
