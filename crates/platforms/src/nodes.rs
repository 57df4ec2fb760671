//! The steps of this part of the platform. (Being built.)

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};

use crate::site::Site;

/// The steps of this part.
#[must_use]
pub fn declare(_spec: &Spec) -> Vec<StepDecl> {
    Vec::new()
}

/// Adds the steps of this part.
pub fn build(_site: &Site, _graph: &mut Graph) {}
