//! The storage layer: Longhorn, and the proof that a volume can be had.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::{LayerOwner, NodeSpec};
use castle_model::{Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::release::{Release, step};
use crate::watched::{self, Watched, WatchedStep};

pub(crate) mod longhorn;
mod overlay;
pub(crate) mod volume;

/// The namespace that the release brings.
pub(crate) const NAMESPACE: &str = "longhorn-system";

pub(crate) const RELEASE: Release = Release {
    layer: "storage",
    component: "longhorn",
    proves: "Longhorn's managers and CSI drivers run, on machines that have what it needs",
    overlay: overlay::overlay,
    yields: false,
    makes: &[
        ("Deployment", NAMESPACE, "csi-attacher"),
        ("Deployment", NAMESPACE, "csi-provisioner"),
        ("Deployment", NAMESPACE, "csi-resizer"),
        ("Deployment", NAMESPACE, "csi-snapshotter"),
        ("DaemonSet", NAMESPACE, "longhorn-csi-plugin"),
    ],
};

/// What is looked at where Flux installs it.
pub(crate) const WATCHED: Watched = Watched {
    title: "Longhorn",
    proves: "Longhorn, as Flux installed it, runs, and every storage node has a disk",
    namespace: NAMESPACE,
    definitions: &["nodes.longhorn.io", "volumes.longhorn.io"],
    also: &[
        (volume::VERSION, "Node", Some(NAMESPACE)),
        ("storage.k8s.io/v1", "StorageClass", None),
    ],
    works: volume::disks,
};

/// The step that installs Longhorn.
#[must_use]
pub fn longhorn_id() -> StepId {
    StepId::new("storage", "longhorn")
}

/// The step that proves that volumes can be had.
#[must_use]
pub fn volume_id() -> StepId {
    StepId::new("storage", "volume")
}

/// The steps of this layer; none if it is switched off.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !spec.storage.enabled {
        return Vec::new();
    }
    if spec.storage.owner == LayerOwner::Flux {
        return vec![watched::declare(&WATCHED, longhorn_id(), "longhorn")];
    }
    vec![
        StepDecl::new(longhorn_id(), "Longhorn", "longhorn", RELEASE.proves)
            .set()
            .needs([ids::access()])
            // It asks its machines what they run with: they answer as ours once they have their configs.
            .needs(storage_nodes(spec).into_iter().map(ids::config))
            .weight(80_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .contained("the VMs")
            .notes(RELEASE.notes(spec)),
        StepDecl::new(volume_id(), "probe volume", "volume", volume::PROVES)
            .needs([longhorn_id(), ids::nodes()])
            .weight(10_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .contained("the VMs"),
    ]
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        if spec.storage.owner == LayerOwner::Flux {
            graph.add(decl, WatchedStep { cluster: cluster.clone(), watched: &WATCHED });
        } else if decl.id == longhorn_id() {
            let release = step(&RELEASE, &cluster);
            graph.add(decl, longhorn::Longhorn { cluster: cluster.clone(), release });
        } else {
            graph.add(decl, volume::Volume(cluster.clone()));
        }
    }
}

/// The nodes that carry volumes: those with a disk for them, or else every worker.
pub(crate) fn storage_nodes(spec: &Spec) -> Vec<&NodeSpec> {
    let with_disk: Vec<&NodeSpec> = spec.nodes.iter().filter(|n| n.has_data_disk()).collect();
    if with_disk.is_empty() { spec.workers().collect() } else { with_disk }
}
