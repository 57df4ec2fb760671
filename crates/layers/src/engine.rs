//! The engine layer: External Secrets, and the store through which the cluster reads the castle's secrets.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::LayerOwner;
use castle_model::{Spec, StepDecl, StepId, Verdict};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::release::{Release, step};
use crate::watched::{self, Watched, WatchedStep, all_ready};

mod overlay;
pub(crate) mod proof;
pub(crate) mod store;

/// The namespace that the release brings.
pub(crate) const NAMESPACE: &str = "external-secrets";
/// The store's name.
pub(crate) const STORE: &str = "infisical";

pub(crate) const RELEASE: Release = Release {
    layer: "engine",
    component: "external-secrets",
    proves: "External Secrets runs and its webhook serves",
    overlay: overlay::overlay,
    makes: &[],
    yields: false,
};

/// What is said where there is nothing for the cluster to read from.
const NO_STORE: &str = "no secret store: the castle's secrets are not in Infisical, so what the cluster needs of them is placed directly";

/// The step that installs the operator.
#[must_use]
pub fn operator_id() -> StepId {
    StepId::new("engine", "operator")
}

/// The step that makes the store.
#[must_use]
pub fn store_id() -> StepId {
    StepId::new("engine", "store")
}

/// The step that proves the store by a secret that comes through.
#[must_use]
pub fn proof_id() -> StepId {
    StepId::new("engine", "proof")
}

/// What is looked at where Flux installs it.
pub(crate) const WATCHED: Watched = Watched {
    title: "External Secrets",
    proves: "External Secrets, as Flux installed it, runs, and every store is Ready",
    namespace: NAMESPACE,
    definitions: &[
        "clustersecretstores.external-secrets.io",
        "externalsecrets.external-secrets.io",
    ],
    also: &[(store::VERSION, "ClusterSecretStore", None)],
    works: |_, there| match all_ready(there, "ClusterSecretStore") {
        Verdict::Ready(0) => Verdict::Ready("there is no ClusterSecretStore yet".to_owned()),
        Verdict::Ready(count) => {
            Verdict::Ready(format!("every ClusterSecretStore ({count}) is Ready"))
        }
        Verdict::Waiting(reason) => Verdict::Waiting(reason),
        Verdict::Failed(failure) => Verdict::Failed(failure),
    },
};

/// Whether the cluster reads secrets by itself: only Infisical can be asked from there, by what castle installs.
pub(crate) fn has_store(spec: &Spec) -> bool {
    let installed = spec.engine.enabled && spec.engine.owner == LayerOwner::Castle;
    installed && spec.secrets.infisical().is_some()
}

/// Whether the store is proven by a secret: not where none may come into the cluster.
fn is_proven(spec: &Spec) -> bool {
    has_store(spec) && proof::probed_key(spec).is_some()
}

/// The step whose proof says that the layer is there; none if it is switched off.
pub(crate) fn last_id(spec: &Spec) -> Option<StepId> {
    declare(spec).pop().map(|decl| decl.id)
}

/// The steps of this layer; none if it is switched off.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !spec.engine.enabled {
        return Vec::new();
    }
    if spec.engine.owner == LayerOwner::Flux {
        return vec![watched::declare(&WATCHED, operator_id(), "operator")];
    }
    let mut notes = RELEASE.notes(spec);
    if !has_store(spec) {
        notes.push(NO_STORE.to_owned());
    }
    let mut steps = vec![
        StepDecl::new(operator_id(), "External Secrets", "operator", RELEASE.proves)
            .set()
            .needs([ids::access()])
            .weight(16_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .contained("the VMs")
            .notes(notes),
    ];
    if has_store(spec) {
        steps.push(
            StepDecl::new(store_id(), format!("secret store {STORE}"), "store", store::PROVES)
                .needs([operator_id(), ids::secrets_read()])
                .weight(1_000)
                .lives_on([ids::bootstrap()])
                .disturbed_by([ids::nodes()])
                .contained("the VMs"),
        );
    }
    if is_proven(spec) {
        steps.push(
            StepDecl::new(proof_id(), format!("a secret through {STORE}"), "store", proof::PROVES)
                .needs([store_id(), ids::secrets_read()])
                .weight(3_000)
                .lives_on([ids::bootstrap()])
                .disturbed_by([ids::nodes()])
                .contained("the VMs"),
        );
    }
    steps
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        if spec.engine.owner == LayerOwner::Flux {
            graph.add(decl, WatchedStep { cluster: cluster.clone(), watched: &WATCHED });
        } else if decl.id == operator_id() {
            graph.add(decl, step(&RELEASE, &cluster));
        } else if decl.id == store_id() {
            graph.add(decl, store::SecretStore(cluster.clone()));
        } else {
            graph.add(decl, proof::Proof(cluster.clone()));
        }
    }
}
