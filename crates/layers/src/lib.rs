//! The layers around the platform: secrets before it; engine, networking, storage, gitops and your own after it.
//!
//! Each module has `declare` (pure: what steps there are, with their needs) and `build` (the same steps with
//! the code behind them). All of a castle's steps together: [`declare`] and [`build`].

pub mod audit;
pub mod engine;
pub mod extra;
pub mod gitops;
mod manifest;
pub mod networking;
mod objects;
mod overlay;
mod release;
pub mod secrets;
pub mod sets;
mod silent;
pub mod storage;
mod trial;
mod watched;
pub mod wipe;

use std::sync::Arc;

use castle_engine::Graph;
/// A machine identity of Infisical.
pub use castle_infisical::Credentials;
use castle_model::{Spec, StepDecl};
use castle_platforms::cluster::Cluster;
use castle_wire::World;

pub use release::adjusted;
use secrets::source::Access;
use silent::InCluster;

/// Every step of a castle, the platform's included.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    [
        secrets::declare(spec),
        sets::declare(spec).into_iter().collect(),
        castle_platforms::declare(spec),
        engine::declare(spec),
        networking::declare(spec),
        storage::declare(spec),
        gitops::declare(spec),
        extra::declare(spec),
    ]
    .concat()
}

/// Every step of a castle with the code behind it. The access is the one to the secret sources.
#[must_use]
pub fn build(spec: &Arc<Spec>, world: &World, access: Access) -> Graph {
    let mut graph = Graph::new();
    secrets::build(&mut graph, spec, world, access);
    sets::build(&mut graph, spec, world);
    castle_platforms::build(&mut graph, spec, world);
    let mut inside = Graph::new();
    engine::build(&mut inside, spec, world);
    networking::build(&mut inside, spec, world);
    storage::build(&mut inside, spec, world);
    gitops::build(&mut inside, spec, world);
    extra::build(&mut inside, spec, world);
    let cluster = Cluster::new(spec, world);
    graph.add_all(inside, |step| Arc::new(InCluster { step, cluster: cluster.clone() }));
    graph
}

#[cfg(test)]
mod tests;
