//! Layers of one's own: a folder of manifests, applied after the layers that it names and judged like all others.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::{LayerName, Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::manifest::{ManifestStep, Source};
use crate::{engine, gitops, networking, storage};

/// The step that applies a layer of one's own.
#[must_use]
pub fn manifests_id(layer: &LayerName) -> StepId {
    StepId::new(layer.as_str(), "manifests")
}

/// The steps of these layers.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    spec.layers
        .iter()
        .map(|layer| {
            let mut needs = vec![ids::nodes()];
            needs.extend(layer.after.iter().filter_map(|before| last_step(spec, before)));
            StepDecl::new(
                manifests_id(&layer.name),
                format!("manifests of {}", layer.name),
                "manifests",
            )
            .needs(needs)
            .weight(10_000)
            .contained("the VMs")
        })
        .collect()
}

/// Adds the steps of these layers.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for (layer, decl) in spec.layers.iter().zip(declare(spec)) {
        let step = ManifestStep {
            cluster: cluster.clone(),
            layer: layer.name.clone(),
            source: Source::Files(layer.clone()),
            overlay: |_, _| {},
            makes: &[],
        };
        graph.add(decl, step);
    }
}

/// The step whose proof says that a layer is there; none if it is switched off. Gitops is there with its handover:
/// what Flux builds afterwards is Flux' own business.
fn last_step(spec: &Spec, layer: &LayerName) -> Option<StepId> {
    match layer.as_str() {
        "secrets" => Some(ids::secrets_escrow()),
        "platform" => Some(ids::nodes()),
        "engine" => spec.engine.enabled.then(engine::store_id),
        "networking" => spec.networking.enabled.then(networking::pool_id),
        "storage" => spec.storage.enabled.then(storage::volume_id),
        "gitops" => spec.gitops.enabled.then(gitops::handover_id),
        _ => Some(manifests_id(layer)),
    }
}
