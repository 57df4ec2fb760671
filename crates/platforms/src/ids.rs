//! The names of steps that other steps need, in one place.

use castle_model::spec::NodeSpec;
use castle_model::{Spec, StepId};

/// Reads every required secret once. Declared by the secrets layer.
#[must_use]
pub fn secrets_read() -> StepId {
    StepId::new("secrets", "read")
}

/// Makes or finds the castle's life: its incarnation and Talos secrets, escrowed. Declared by the secrets layer.
#[must_use]
pub fn secrets_escrow() -> StepId {
    StepId::new("secrets", "escrow")
}

/// Reads the GitOps repository before anything is built. Declared by the gitops layer.
#[must_use]
pub fn repository() -> StepId {
    StepId::new("gitops", "repository")
}

/// Gives one machine its configuration.
#[must_use]
pub fn config(node: &NodeSpec) -> StepId {
    StepId::of("platform", "config", node.name.as_str())
}

/// Starts etcd on the first control plane, once in a castle's life.
#[must_use]
pub fn bootstrap() -> StepId {
    StepId::new("platform", "bootstrap")
}

/// Proves that every control plane is a voting member of one etcd.
#[must_use]
pub fn etcd() -> StepId {
    StepId::new("platform", "etcd")
}

/// Proves that the API server answers through the VIP, and goes on to.
#[must_use]
pub fn vip() -> StepId {
    StepId::new("platform", "vip")
}

/// Makes the way into the cluster: an authenticated client through the VIP.
#[must_use]
pub fn access() -> StepId {
    StepId::new("platform", "access")
}

/// Keeps the kubeconfig and the talosconfig where the castle's own secrets are kept.
#[must_use]
pub fn keys() -> StepId {
    StepId::new("platform", "keys")
}

/// Proves that every node is Ready and its network rolled out.
#[must_use]
pub fn nodes() -> StepId {
    StepId::new("platform", "nodes")
}

/// The configurations of all control planes.
#[must_use]
pub fn control_plane_configs(spec: &Spec) -> Vec<StepId> {
    spec.control_planes().map(config).collect()
}

/// The configurations of all machines.
#[must_use]
pub fn all_configs(spec: &Spec) -> Vec<StepId> {
    spec.nodes.iter().map(config).collect()
}
