//! What every step is built from: the spec, the doors to the outside and the identity for the secret source.

use std::sync::Arc;

use castle_model::{Secret, Spec};
use castle_wire::World;

/// The surroundings of a castle's steps. Cheap to clone.
#[derive(Clone)]
pub struct Site {
    /// What is wanted.
    pub spec: Arc<Spec>,
    /// The outside.
    pub world: World,
    /// The client id of the machine identity that reads the secret source.
    pub client_id: Secret,
    /// Its client secret.
    pub client_secret: Secret,
}
