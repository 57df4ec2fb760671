//! The steps of this layer. (Being built.)

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};
use castle_platforms::Site;

/// The steps of this layer.
#[must_use]
pub fn declare(_spec: &Spec) -> Vec<StepDecl> {
    Vec::new()
}

/// Adds the steps of this layer.
pub fn build(_site: &Site, _graph: &mut Graph) {}
