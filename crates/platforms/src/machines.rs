//! Machines that stand already and wait in maintenance mode: they are recognised, taken, and given back.
//!
//! ```text
//!   secrets/read ─▶ platform/inventory ─▶ platform/preflight ─▶ secrets/escrow ─▶ platform/machine/<node> ─▶ boot …
//!                                               └─▶ platform/image ───────────────────┘
//! ```
//!
//! No VM bears a mark here. Which life the castle is in is told by the escrowed secrets together with the machines
//! that answer under their authority; which machine is which, by its SMBIOS UUID.

use std::sync::Arc;

use castle_engine::Graph;
use castle_model::spec::{Body, NodeSpec, PlatformSpec, Role};
use castle_model::{NodeName, Spec, StepDecl, StepId};

use crate::ids::{secrets_escrow, secrets_read};
use crate::proxmox::{image_id, inventory_id, preflight_id};
use crate::talos::Realm;

pub mod identity;
mod installer;
mod inventory;
mod life;
mod machine;
mod preflight;

pub use life::alive;

/// The step that recognises the machine of one node.
#[must_use]
pub fn machine_id(node: &NodeName) -> StepId {
    StepId::of("platform", "machine", node.as_str())
}

/// Declares the steps of this platform; none if the castle file's machines come from elsewhere.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    if !matches!(spec.platform, PlatformSpec::Machines(_)) {
        return Vec::new();
    }
    let count = spec.nodes.len();
    let mut decls = vec![
        StepDecl::new(
            inventory_id(),
            format!("who answers at {count} addresses"),
            "preflight",
            inventory::PROVES,
        )
        .needs([secrets_read()])
        .weight(500)
        .only("it only looks"),
        StepDecl::new(
            preflight_id(),
            format!("{count} machines and addresses"),
            "preflight",
            preflight::PROVES,
        )
        .needs([inventory_id()])
        .weight(500)
        .only("it only looks"),
        StepDecl::new(
            image_id(),
            format!("installer of Talos {}", spec.talos),
            "preflight",
            installer::PROVES,
        )
        .needs([preflight_id()])
        .weight(500)
        .nothing_to_undo("the image factory keeps what it was told, for everybody"),
    ];
    let planes: Vec<StepId> = spec.control_planes().map(|node| machine_id(&node.name)).collect();
    for node in spec.nodes.iter().filter(|node| matches!(node.body, Body::Standing(_))) {
        let title = format!("machine {} at {}", node.name, node.address);
        let mut decl = StepDecl::new(machine_id(&node.name), title, "machine", machine::PROVES)
            .needs([image_id(), secrets_escrow()])
            .lives_on([secrets_escrow()])
            .weight(500)
            .reset();
        if node.role == Role::Worker {
            // So that on the way down, where needs are turned round, workers are reset first.
            decl = decl.needs(planes.iter().cloned());
        }
        decls.push(decl);
    }
    decls
}

/// Adds the steps of this platform to a graph.
pub(crate) fn build(graph: &mut Graph, spec: &Arc<Spec>, realm: &Realm) {
    for decl in declare(spec) {
        let node = |node: &&NodeSpec| machine_id(&node.name) == decl.id;
        if decl.id == inventory_id() {
            graph.add(decl, inventory::LookAround(realm.clone()));
        } else if decl.id == preflight_id() {
            graph.add(decl, preflight::Preflight(realm.clone()));
        } else if decl.id == image_id() {
            graph.add(decl, installer::Installer(realm.clone()));
        } else if let Some(node) = spec.nodes.iter().find(node).cloned() {
            graph.add(decl, machine::Machine { realm: realm.clone(), node });
        }
    }
}
