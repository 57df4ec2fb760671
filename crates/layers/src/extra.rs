//! The steps of this part. (Being built.)

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};
use castle_wire::World;

/// The steps of this part.
#[must_use]
pub fn declare(_spec: &Spec) -> Vec<StepDecl> {
    Vec::new()
}

/// Adds the steps of this part.
pub fn build(_graph: &mut Graph, _spec: &Arc<Spec>, _world: &World) {}
