//! The engine layer: External Secrets, and the store through which the cluster reads the castle's secrets.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::release::{Release, step};

mod overlay;
pub(crate) mod store;

/// The namespace that the release brings.
pub(crate) const NAMESPACE: &str = "external-secrets";
/// The store's name.
pub(crate) const STORE: &str = "infisical";

pub(crate) const RELEASE: Release =
    Release { component: "external-secrets", overlay: overlay::overlay, makes: &[] };

/// The step that installs the operator.
#[must_use]
pub fn operator_id() -> StepId {
    StepId::new("engine", "operator")
}

/// The step that makes the store and proves it.
#[must_use]
pub fn store_id() -> StepId {
    StepId::new("engine", "store")
}

/// Whether the cluster reads secrets by itself: only Infisical can be asked from there.
pub(crate) fn has_store(spec: &Spec) -> bool {
    spec.engine.enabled && spec.secrets.infisical().is_some()
}

/// The steps of this layer; none if it is switched off.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !spec.engine.enabled {
        return Vec::new();
    }
    let mut steps = vec![
        StepDecl::new(operator_id(), "External Secrets", "operator")
            .needs([ids::access()])
            .weight(16_000)
            .contained("the VMs")
            .notes(RELEASE.notes(spec)),
    ];
    if has_store(spec) {
        steps.push(
            StepDecl::new(store_id(), format!("secret store {STORE}"), "store")
                .needs([operator_id(), ids::secrets_read()])
                .weight(4_000)
                .contained("the VMs"),
        );
    }
    steps
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        if decl.id == operator_id() {
            graph.add(decl, step(&RELEASE, &cluster));
        } else {
            graph.add(decl, store::SecretStore(cluster.clone()));
        }
    }
}
