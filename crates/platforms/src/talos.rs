//! The steps that turn machines into a cluster: boot, config, one bootstrap, one etcd, the VIP, the ways in.
//!
//! ```text
//!   vm/N ─▶ boot/N ─▶ config/N ─▶ bootstrap ─▶ etcd
//!                    (all control      └─────▶ vip ─▶ access ─▶ keys
//!                     planes)
//! ```

use castle_engine::Graph;
use castle_model::spec::{Body, EscrowAfterDown, NodeSpec, Role};
use castle_model::{Spec, StepDecl, StepId};

use crate::machines::machine_id;
use crate::proxmox::vm_id;
use crate::{escrow, ids};

pub mod access;
mod boot;
mod bootstrap;
mod config;
mod diagnosis;
mod difference;
mod etcd;
mod evidence;
mod extensions;
mod keys;
mod realm;
#[cfg(test)]
mod tests;
mod vip;

pub use extensions::extensions;

pub(crate) use evidence::Patience;
pub(crate) use realm::Realm;
pub(crate) use vip::proven_in_this_life;

/// The journaled output that says in which life a step was proven: what was true of an earlier one proves nothing.
pub(crate) const LIFE_OUTPUT: &str = "incarnation";

/// The step that waits for one machine to answer at its address.
#[must_use]
pub fn boot_id(node: &NodeSpec) -> StepId {
    StepId::of("platform", "boot", node.name.as_str())
}

/// The step that gives a node its machine: a VM that is made, or one that stands already.
fn home_id(node: &NodeSpec) -> StepId {
    match node.body {
        Body::Vm(_) => vm_id(&node.name),
        Body::Standing(_) => machine_id(&node.name),
    }
}

/// The steps of this part.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let mut decls = Vec::new();
    for node in &spec.nodes {
        let title = format!("{} answers at {}", node.name, node.address);
        decls.push(
            StepDecl::new(boot_id(node), title, "boot", boot::PROVES)
                .needs([home_id(node), ids::secrets_escrow()])
                .lives_on([home_id(node)])
                .weight(14_000)
                .only("it only waits"),
        );
        let title = format!("Talos config of {}", node.name);
        decls.push(
            StepDecl::new(ids::config(node), title, "apply", config::PROVES)
                .needs([boot_id(node)])
                .lives_on([home_id(node)])
                .weight(if node.role == Role::ControlPlane { 3000 } else { 2000 })
                .contained(match node.body {
                    Body::Vm(_) => "the VM's disk",
                    Body::Standing(_) => "the machine's reset",
                }),
        );
    }
    decls.push(
        StepDecl::new(ids::bootstrap(), bootstrap_title(spec), "bootstrap", bootstrap::PROVES)
            .needs(ids::control_plane_configs(spec))
            .lives_on(ids::control_plane_configs(spec))
            .weight(12_000)
            .contained("the machines"),
    );
    decls.push(
        StepDecl::new(ids::etcd(), "one etcd on every control plane", "etcd", etcd::PROVES)
            .needs([ids::bootstrap()])
            .lives_on([ids::bootstrap()])
            .weight(20_000)
            .only("it only waits"),
    );
    decls.push(
        StepDecl::new(
            ids::vip(),
            format!("Kubernetes API at {}", spec.network.vip),
            "vip",
            vip::PROVES,
        )
        .needs([ids::bootstrap()])
        .lives_on([ids::bootstrap()])
        .weight(18_000)
        .only("it only waits"),
    );
    decls.push(
        StepDecl::new(ids::access(), "the way into the cluster", "vip", access::PROVES)
            .needs([ids::vip()])
            .weight(100)
            .nothing_to_undo("it lives in memory"),
    );
    decls.push(keys_decl(spec));
    decls
}

/// Nothing needs this step: what works on the cluster need not wait until the ways in are kept.
fn keys_decl(spec: &Spec) -> StepDecl {
    let title = format!("ways in kept in {}", escrow::words(spec));
    let decl = StepDecl::new(ids::keys(), title, "keys", keys::PROVES)
        .needs([ids::access(), ids::secrets_read()])
        .lives_on([ids::secrets_escrow()])
        .weight(500);
    match spec.secrets.escrow.after_down {
        EscrowAfterDown::Remove => decl.contained("the escrowed entries"),
        EscrowAfterDown::Keep => {
            decl.nothing_to_undo("escrowed entries are kept; the next birth overwrites them")
        }
    }
}

/// Adds the steps of this part.
pub(crate) fn build(graph: &mut Graph, spec: &Spec, realm: &Realm) {
    for decl in declare(spec) {
        let node = |id: &dyn Fn(&NodeSpec) -> StepId| {
            spec.nodes.iter().find(|node| id(node) == decl.id).cloned()
        };
        if let Some(node) = node(&boot_id) {
            graph.add(decl, boot::Boot { realm: realm.clone(), node });
        } else if let Some(node) = node(&ids::config) {
            graph.add(decl, config::Config { realm: realm.clone(), node });
        } else if decl.id == ids::bootstrap() {
            graph.add(decl, bootstrap::Bootstrap(realm.clone()));
        } else if decl.id == ids::etcd() {
            graph.add(decl, etcd::Etcd(realm.clone()));
        } else if decl.id == ids::vip() {
            graph.add(decl, vip::Vip(realm.clone()));
        } else if decl.id == ids::keys() {
            graph.add(decl, keys::Keys(realm.clone()));
        } else {
            graph.add(decl, access::Access(realm.clone()));
        }
    }
}

fn bootstrap_title(spec: &Spec) -> String {
    match spec.control_planes().next() {
        Some(first) => format!("bootstrap of etcd on {}", first.name),
        None => "bootstrap of etcd".to_owned(),
    }
}
