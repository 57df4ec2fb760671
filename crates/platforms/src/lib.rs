//! Where machines come from: the steps that turn a host and a castle file into Ready nodes of one cluster.
//!
//! [`proxmox`] makes VMs, or [`machines`] finds machines that stand already; [`talos`] makes one cluster of them,
//! [`nodes`] proves that it can carry work. [`handed`] names what these steps, and those of the secrets layer below
//! them, hand to the steps above; [`handout`] makes what people are given, [`ways`] judges what is kept of it in
//! [`escrow`]; [`ids`] are the names of steps that others need. Steps here speak through the clients; nothing here
//! speaks to the wire itself.
//!
//! ```text
//! secrets/read ─▶ inventory ─▶ preflight ─▶ secrets/escrow ─┐
//!                                  └─▶ image ───────────────┴▶ vm/N ─▶ boot/N ─▶ config/N ─▶ bootstrap ─▶ etcd
//!                                                                                                └─▶ vip ─▶ access ─▶ nodes
//!                                                                                                             └─▶ keys
//! ```

pub mod audit;
pub mod cluster;
pub mod escrow;
pub mod handed;
pub mod handout;
pub mod ids;
pub mod machines;
pub mod nodes;
pub mod proxmox;
pub mod talos;
pub mod ways;

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};
use castle_wire::World;

/// Every step of the platform layer.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let proxmox =
        proxmox::wanted::Wanted::of(spec).as_ref().map(proxmox::declare).unwrap_or_default();
    [proxmox, machines::declare(spec), talos::declare(spec), nodes::declare(spec)].concat()
}

/// Adds every step of the platform layer, with the code behind it.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    if let Some(wanted) = proxmox::wanted::Wanted::of(spec) {
        proxmox::build(graph, wanted, world);
    }
    let realm = talos::Realm::new(spec, world);
    machines::build(graph, spec, &realm);
    talos::build(graph, spec, &realm);
    nodes::build(graph, spec, world, &realm);
}
