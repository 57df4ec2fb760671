//! The steps that make machines on Proxmox VE: look around, check, fetch the image, make the VMs.
//!
//! ```text
//!   secrets/read ─▶ platform/inventory ─▶ platform/preflight ─▶ platform/image ─┐
//!                                                └─▶ secrets/escrow ────────────┴─▶ platform/vm/<node>
//! ```

use std::sync::{Arc, OnceLock};

use castle_engine::{Context, Graph};
use castle_model::spec::{ProxmoxSpec, TokenSpec};
use castle_model::{Failure, NodeName, StepDecl, StepId};
use castle_proxmox::{Proxmox, Token};
use castle_wire::World;

use self::wanted::Wanted;
use crate::handed::{SECRETS, SecretValues};
use crate::ids::{secrets_escrow, secrets_read};

mod attached;
pub(crate) mod audit;
mod census;
mod disks;
mod half_made;
pub mod image;
pub mod inventory;
pub mod mark;
pub mod preflight;
pub mod privileges;
pub mod recognise;
mod removal;
mod shape;
mod strays;
mod task;
#[cfg(test)]
mod tests;
pub mod vm;
pub mod wanted;
pub mod wipe;

/// How many VMs are made at a time on one storage: imports are bound by its writes, and more only slow each other.
const IMPORTS_AT_ONCE: usize = 3;

/// The step that looks at every guest.
#[must_use]
pub fn inventory_id() -> StepId {
    StepId::new("platform", "inventory")
}

/// The step that checks the host and the addresses.
#[must_use]
pub fn preflight_id() -> StepId {
    StepId::new("platform", "preflight")
}

/// The step that puts the Talos image on the image storage.
#[must_use]
pub fn image_id() -> StepId {
    StepId::new("platform", "image")
}

/// The step that looks after VMs of ours that the castle file no longer names.
#[must_use]
pub fn strays_id() -> StepId {
    StepId::new("platform", "strays")
}

/// The step that makes the VM of one node.
#[must_use]
pub fn vm_id(node: &NodeName) -> StepId {
    StepId::of("platform", "vm", node.as_str())
}

/// Declares the steps of this platform, in the order of their foundations.
#[must_use]
pub fn declare(spec: &Wanted) -> Vec<StepDecl> {
    let platform = &spec.platform;
    let mut decls = vec![
        StepDecl::new(
            inventory_id(),
            format!("guests of {}", platform.endpoint),
            "preflight",
            inventory::PROVES,
        )
        .needs([secrets_read()])
        .weight(200)
        .only("it only looks"),
        StepDecl::new(
            preflight_id(),
            format!("host {} and addresses", platform.node),
            "preflight",
            preflight::PROVES,
        )
        .needs([inventory_id()])
        .weight(3000)
        .only("it only looks"),
        StepDecl::new(image_id(), image::title(spec), "image", image::PROVES)
            .needs([preflight_id()])
            .weight(9000)
            .undo(),
    ];
    decls.push(
        StepDecl::new(
            strays_id(),
            "VMs that the castle file no longer names",
            "vm",
            strays::PROVES,
        )
        .needs([StepId::new("secrets", "escrow")])
        .weight(200)
        .observed("on the way up it is only told of")
        .undo(),
    );
    for node in &spec.nodes {
        let title = format!("VM {} ({}) on {}", node.name, node.vmid, platform.node);
        decls.push(
            StepDecl::new(vm_id(&node.name), title, "vm", vm::PROVES)
                .needs([image_id(), secrets_escrow()])
                // A life that is begun anew has no machine of the old one.
                .lives_on([secrets_escrow()])
                .lane(format!("imports into {}", platform.storage), IMPORTS_AT_ONCE)
                .weight(5000)
                .undo(),
        );
    }
    decls
}

/// Adds the steps of this platform to a graph.
///
/// # Panics
/// Never: each declaration has its step.
pub fn build(graph: &mut Graph, spec: Wanted, world: &World) {
    let site = Arc::new(Site { spec, world: world.clone(), client: OnceLock::new() });
    for decl in declare(&site.spec) {
        if decl.id == inventory_id() {
            graph.add(decl, inventory::LookAround(site.clone()));
        } else if decl.id == preflight_id() {
            graph.add(decl, preflight::Preflight(site.clone()));
        } else if decl.id == image_id() {
            graph.add(decl, image::Image(site.clone()));
        } else if decl.id == strays_id() {
            graph.add(decl, strays::Strays(site.clone()));
        } else {
            let node = site.spec.nodes.iter().find(|node| vm_id(&node.name) == decl.id);
            let node = node.expect("every other step is that of a node").clone();
            graph.add(decl, vm::Vm { site: site.clone(), node });
        }
    }
}

/// What the steps share: the castle file, the outside, and one client.
pub(crate) struct Site {
    pub(crate) spec: Wanted,
    pub(crate) world: World,
    client: OnceLock<Proxmox>,
}

impl Site {
    /// The client, made when the token is first at hand; one for all steps, so that they share its connections.
    pub(crate) fn client(&self, cx: &Context) -> Result<Proxmox, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let secrets = cx.outputs().get(&SECRETS)?;
        let client = enter(&self.world, &self.spec.platform, &secrets)?;
        Ok(self.client.get_or_init(|| client).clone())
    }
}

/// A client of the castle's Proxmox.
pub(crate) fn enter(
    world: &World,
    platform: &ProxmoxSpec,
    secrets: &SecretValues,
) -> Result<Proxmox, Failure> {
    let token = match &platform.token {
        TokenSpec::Parts { id, secret } => Token::of(secrets.get(id)?, secrets.get(secret)?),
        TokenSpec::Whole(token) => Token::whole(secrets.get(token)?),
    };
    Proxmox::new(world, &platform.endpoint, &platform.trust, &token)
        .map_err(|error| error.failure(format!("speak to Proxmox at {}", platform.endpoint)))
}
