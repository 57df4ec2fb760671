//! The storage layer: Longhorn, and the proof that a volume can be had.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::release::{Release, step};

mod overlay;
pub(crate) mod volume;

/// The namespace that the release brings.
pub(crate) const NAMESPACE: &str = "longhorn-system";

pub(crate) const RELEASE: Release = Release {
    component: "longhorn",
    overlay: overlay::overlay,
    makes: &[
        ("Deployment", NAMESPACE, "csi-attacher"),
        ("Deployment", NAMESPACE, "csi-provisioner"),
        ("Deployment", NAMESPACE, "csi-resizer"),
        ("Deployment", NAMESPACE, "csi-snapshotter"),
        ("DaemonSet", NAMESPACE, "longhorn-csi-plugin"),
    ],
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
    vec![
        StepDecl::new(longhorn_id(), "Longhorn", "longhorn")
            .needs([ids::access()])
            .weight(80_000)
            .contained("the VMs")
            .notes(RELEASE.notes(spec)),
        StepDecl::new(volume_id(), "probe volume", "volume")
            .needs([longhorn_id(), ids::nodes()])
            .weight(10_000)
            .contained("the VMs"),
    ]
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        if decl.id == longhorn_id() {
            graph.add(decl, step(&RELEASE, &cluster));
        } else {
            graph.add(decl, volume::Volume(cluster.clone()));
        }
    }
}
