//! The platform layer: machines on Proxmox, Talos on them, one etcd, a VIP, Ready nodes.
//!
//! Each module has `declare` (pure: what steps there are, with their needs) and `build` (the same steps with
//! the code behind them). What one step hands to another is in [`outputs`], step names are in [`ids`].
//!
//! ```text
//! secrets/read ─▶ inventory ─▶ secrets/escrow ─┐
//!                     └─▶ preflight ─▶ image ──┴▶ vm/N ─▶ config/N ─▶ bootstrap ─▶ etcd ─┐
//!                                                                        └─▶ vip ─▶ access ─▶ nodes
//! ```

pub mod ids;
pub mod nodes;
pub mod outputs;
pub mod proxmox;
pub mod site;
pub mod talos;

use castle_engine::Graph;
use castle_model::{Spec, StepDecl};

pub use site::Site;

/// Every step of the platform layer.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    [proxmox::declare(spec), talos::declare(spec), nodes::declare(spec)].concat()
}

/// Adds every step of the platform layer, with the code behind it.
pub fn build(site: &Site, graph: &mut Graph) {
    proxmox::build(site, graph);
    talos::build(site, graph);
    nodes::build(site, graph);
}
