//! The networking layer: MetalLB, and the addresses that it may give to load balancers.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::LayerOwner;
use castle_model::{Spec, StepDecl, StepId, Verdict};
use castle_platforms::cluster::Cluster;
use castle_platforms::ids;
use castle_wire::World;

use crate::release::{Release, step};
use crate::watched::{self, Watched, WatchedStep};

mod overlay;
pub(crate) mod pool;
mod probe;

/// The namespace that the release brings.
pub(crate) const NAMESPACE: &str = "metallb-system";

pub(crate) const RELEASE: Release = Release {
    layer: "networking",
    component: "metallb",
    proves: "MetalLB runs and its webhook serves",
    overlay: overlay::overlay,
    makes: &[],
    yields: false,
};

/// What is looked at where Flux installs it.
pub(crate) const WATCHED: Watched = Watched {
    title: "MetalLB",
    proves: "MetalLB, as Flux installed it, runs and has a pool of addresses",
    namespace: NAMESPACE,
    definitions: &["ipaddresspools.metallb.io", "l2advertisements.metallb.io"],
    also: &[("metallb.io/v1beta1", "IPAddressPool", Some(NAMESPACE))],
    works: |_, there| match there.values().filter(|o| o.kind() == "IPAddressPool").count() {
        0 => Verdict::Waiting("there is no IPAddressPool yet".to_owned()),
        1 => Verdict::Ready("there is an IPAddressPool".to_owned()),
        count => Verdict::Ready(format!("there are {count} IPAddressPools")),
    },
};

/// The step that installs MetalLB.
#[must_use]
pub fn metallb_id() -> StepId {
    StepId::new("networking", "metallb")
}

/// The step that makes the pool of addresses.
#[must_use]
pub fn pool_id() -> StepId {
    StepId::new("networking", "pool")
}

/// The steps of this layer; none if it is switched off.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !spec.networking.enabled {
        return Vec::new();
    }
    if spec.networking.owner == LayerOwner::Flux {
        return vec![watched::declare(&WATCHED, metallb_id(), "metallb")];
    }
    vec![
        StepDecl::new(metallb_id(), "MetalLB", "metallb", RELEASE.proves)
            .set()
            .needs([ids::access()])
            .weight(15_000)
            .lives_on([ids::bootstrap()])
            .disturbed_by([ids::nodes()])
            .contained("the VMs")
            .notes(RELEASE.notes(spec)),
        StepDecl::new(
            pool_id(),
            format!("address pool {}", spec.network.pool),
            "pool",
            pool::PROVES,
        )
        .needs([metallb_id()])
        .weight(6_000)
        .lives_on([ids::bootstrap()])
        .disturbed_by([ids::nodes()])
        .contained("the VMs"),
    ]
}

/// Adds the steps of this layer.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        if spec.networking.owner == LayerOwner::Flux {
            graph.add(decl, WatchedStep { cluster: cluster.clone(), watched: &WATCHED });
        } else if decl.id == metallb_id() {
            graph.add(decl, step(&RELEASE, &cluster));
        } else {
            graph.add(decl, pool::Pool(cluster.clone()));
        }
    }
}
