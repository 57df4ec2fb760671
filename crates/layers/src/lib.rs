//! The layers around the platform: secrets before it; engine, networking, storage, gitops and your own after it.
//!
//! Each module has `declare` (pure: what steps there are, with their needs) and `build` (the same steps with
//! the code behind them). All of a castle's steps together: [`declare`] and [`build`].

pub mod engine;
pub mod extra;
pub mod gitops;
pub mod networking;
pub mod secrets;
pub mod storage;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};
use castle_platforms::Site;

/// Every step of a castle, the platform's included.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    [
        secrets::declare(spec),
        castle_platforms::declare(spec),
        engine::declare(spec),
        networking::declare(spec),
        storage::declare(spec),
        gitops::declare(spec),
        extra::declare(spec),
    ]
    .concat()
}

/// Every step of a castle with the code behind it.
#[must_use]
pub fn build(site: &Site) -> Graph {
    let mut graph = Graph::new();
    secrets::build(site, &mut graph);
    castle_platforms::build(site, &mut graph);
    engine::build(site, &mut graph);
    networking::build(site, &mut graph);
    storage::build(site, &mut graph);
    gitops::build(site, &mut graph);
    extra::build(site, &mut graph);
    graph
}
