//! What the secret source keeps of a castle, read without a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use castle_model::{Class, Failure, Secret, Spec};
use castle_platforms::escrow::BUNDLE_KEY;
use castle_platforms::handed::escrowed_incarnation;
use castle_wire::World;

use super::source::{Access, Sources};

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
pub async fn kept(spec: &Arc<Spec>, world: &World, access: &Access) -> Result<Kept, Failure> {
    let sources = Sources::open(spec, world, access)?;
    let keeper = &sources.escrow.0;
    let bundle = keeper.kept().await?.remove(BUNDLE_KEY);
    let what = format!("find the Talos secrets of the castle `{}`", spec.name);
    let Some(bundle) = bundle else {
        let why = format!("there is no {BUNDLE_KEY}: the castle was not raised yet, or is gone");
        return Err(Failure::new(Class::Gone, what, why)
            .evidence(keeper.place())
            .hint("raise the castle first (`up`), or give the secrets by --bundle FILE"));
    };
    escrowed_incarnation(&spec.name, &bundle).map_err(|why| {
        Failure::new(Class::Conflict, what, why)
            .evidence(keeper.place())
            .hint("give each castle a place of its own")
    })?;
    let values = sources.gather(spec).await?.values;
    Ok(Kept { bundle, values })
}
