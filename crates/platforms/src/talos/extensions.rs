//! What a machine really runs with, asked of the machine itself.

use castle_engine::Context;
use castle_model::Failure;
use castle_model::spec::NodeSpec;
use castle_talos::{Talos, TalosAccess, TalosError};

use super::access::TALOSCONFIG;
use crate::cluster::Cluster;

/// The system extensions of a machine of ours, by the names that Talos gives them, without their publishers.
///
/// # Errors
/// The machine does not answer, or not as ours.
pub async fn extensions(
    cluster: &Cluster,
    cx: &Context,
    node: &NodeSpec,
) -> Result<Vec<String>, Failure> {
    let what = format!("list the extensions of {}", node.name);
    let talosconfig = cx.outputs().get(&TALOSCONFIG)?;
    let (access, _) = TalosAccess::from_talosconfig(&talosconfig)
        .map_err(|error| Failure::bug(&what, error.to_string()))?;
    let failed = |error: TalosError| error.failure(&what);
    let talos = Talos::secure(&cluster.world, node.address, &access).await.map_err(failed)?;
    talos.extensions().await.map_err(failed)
}
