//! Layers of one's own: a folder of manifests, applied after the layers that it names and judged like all others.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::{ExtraLayer, LayerOwner};
use castle_model::{LayerName, Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::manifest::{ManifestStep, Set, Source};
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
            let title = format!("manifests of {}", layer.name);
            let proves = format!("the objects of the layer {} are there and ready", layer.name);
            StepDecl::new(manifests_id(&layer.name), title, deadline(spec, &layer.name), proves)
                .set()
                .needs(needs)
                .weight(10_000)
                .lives_on([ids::bootstrap()])
                .disturbed_by([ids::nodes()])
                .contained("the VMs")
        })
        .collect()
}

/// Adds the steps of these layers.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for (layer, decl) in spec.layers.iter().zip(declare(spec)) {
        let (cluster, set) = (cluster.clone(), set(layer));
        graph.add(
            decl,
            ManifestStep { cluster, set, makes: &[], yields: false, only_applied: false },
        );
    }
}

/// The objects of such a layer.
pub(crate) fn set(layer: &ExtraLayer) -> Set {
    Set { layer: layer.name.clone(), source: Source::Files(layer.clone()), overlay: |_| Vec::new() }
}

/// The key of the layer's deadline: its own name if the castle file sets that, else the one of all such layers.
fn deadline<'a>(spec: &Spec, layer: &'a LayerName) -> &'a str {
    if spec.deadlines.0.contains_key(layer.as_str()) { layer.as_str() } else { "manifests" }
}

/// The step whose proof says that a layer is there; none if it is switched off. Gitops is there with its handover:
/// what Flux builds afterwards is Flux' own business.
fn last_step(spec: &Spec, layer: &LayerName) -> Option<StepId> {
    match layer.as_str() {
        "secrets" => Some(ids::secrets_escrow()),
        "platform" => Some(ids::nodes()),
        "engine" => engine::last_id(spec),
        "networking" if spec.networking.owner == LayerOwner::Flux => {
            spec.networking.enabled.then(networking::metallb_id)
        }
        "networking" => spec.networking.enabled.then(networking::pool_id),
        "storage" if spec.storage.owner == LayerOwner::Flux => {
            spec.storage.enabled.then(storage::longhorn_id)
        }
        "storage" => spec.storage.enabled.then(storage::volume_id),
        "gitops" => spec.gitops.enabled.then(gitops::handover_id),
        _ => Some(manifests_id(layer)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_deadline_by_the_layers_name_is_nearer_than_that_of_all_such_layers() {
        let mut spec = castle_config::example();
        let layer = |name: &str| ExtraLayer {
            name: name.parse().unwrap(),
            after: Vec::new(),
            manifests: BTreeMap::new(),
            url: None,
        };
        spec.layers = vec![layer("metrics"), layer("other")];
        let lengths = |spec: &Spec| -> Vec<Duration> {
            declare(spec).iter().map(|decl| spec.deadlines.get(&decl.deadline)).collect()
        };
        let minutes = Duration::from_mins;
        assert_eq!(lengths(&spec), [minutes(5), minutes(5)]);
        spec.deadlines.0.insert("metrics".into(), minutes(10));
        assert_eq!(lengths(&spec), [minutes(10), minutes(5)]);
        spec.deadlines.0.insert("manifests".into(), minutes(2));
        assert_eq!(lengths(&spec), [minutes(10), minutes(2)]);
    }
}
