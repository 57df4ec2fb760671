//! Which life a castle of standing machines is in: the escrowed one, if a machine answers under its authority.

use castle_engine::Context;
use castle_model::{Class, Failure, Incarnation, Spec};
use castle_talos::{Presence, TalosAccess};
use castle_wire::World;
use castle_wire::failure::chain;

use super::inventory::{Standing, YARD};
use crate::cluster::few;
use crate::handed::Life;

/// The life that the machines are in; none if none of them has a config.
///
/// # Errors
/// A conflict, if a machine has a config of another cluster; transient, if those with a config do not answer now.
pub async fn alive(
    cx: &Context,
    spec: &Spec,
    world: &World,
    kept: Option<&Life>,
) -> Result<Option<Incarnation>, Failure> {
    let what = "tell which life the castle is in";
    let yard = cx.outputs().get(&YARD)?;
    let in_use: Vec<_> = spec
        .nodes
        .iter()
        .filter(|node| yard.at.get(&node.name) == Some(&Standing::Configured))
        .collect();
    let names: Vec<String> =
        in_use.iter().map(|node| format!("{} at {}", node.name, node.address)).collect();
    if in_use.is_empty() {
        return Ok(None);
    }
    let Some(kept) = kept else {
        return Err(Failure::new(
            Class::Conflict,
            what,
            format!("machines have a config already ({}), but no Talos secrets are kept", few(&names)),
        )
        .hint("they belong to somebody else, or the secrets of this castle are lost: put an earlier version of the entry back, or reset the machines at their console"));
    };
    let access = TalosAccess::issue(&kept.bundle, world.entropy.as_ref(), world.clock.as_ref())
        .map_err(|error| Failure::new(Class::Invalid, what, chain(&error)))?;
    let mut last = String::new();
    for (node, name) in in_use.iter().zip(&names) {
        match Presence::look(world, node.address, Some(&access)).await {
            Presence::Ours(_) => return Ok(Some(kept.incarnation.clone())),
            Presence::Foreign { why } => {
                let why = format!("{name} has a config of another cluster ({why})");
                return Err(Failure::new(Class::Conflict, what, why).hint(
                    "castle never touches it: reset the machine at its console if it is yours, or choose another address in the castle file",
                ));
            }
            Presence::Maintenance(_) => last = format!("{name} has just lost its config"),
            Presence::Silent { why } | Presence::Untimely { why } => last = why,
        }
    }
    Err(Failure::new(Class::Transient, what, last))
}
