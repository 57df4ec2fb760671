//! The secrets layer: read what the castle needs, and keep what it could not live without.
//!
//! ```text
//!   secrets/read ─▶ platform/inventory ─▶ platform/preflight ─▶ secrets/escrow ─▶ every machine
//!         └─▶ gitops/repository ──────────────────────────────────────┤
//!             platform/manifests ─────────────────────────────────────┘
//! ```

use std::sync::{Arc, OnceLock};

use castle_engine::Graph;
use castle_model::spec::EscrowAfterDown;
use castle_model::{Failure, Spec, StepDecl};
use castle_platforms::ids::{repository, secrets_escrow, secrets_read};
use castle_platforms::proxmox::{inventory_id, preflight_id};
use castle_wire::World;

use crate::sets;

mod environment;
pub mod escrow;
pub mod files;
pub mod gather;
mod infisical;
mod invented;
pub mod kept;
pub mod look;
pub mod private;
pub mod read;
mod sealed;
pub mod shape;
pub mod source;
#[cfg(test)]
mod tests;

use source::{Access, Sources};

/// Declares the steps of this layer.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    // No machine is made before its castle is known to have a repository to be handed over to, and manifests that fit.
    let repository = spec.gitops.enabled.then(repository);
    let manifests = sets::declare(spec).map(|decl| decl.id);
    let escrow = StepDecl::new(
        secrets_escrow(),
        format!("Talos secrets in {}", castle_platforms::escrow::words(spec)),
        "escrow",
        escrow::PROVES,
    )
    .needs([inventory_id(), preflight_id()])
    .needs(repository)
    .needs(manifests)
    .weight(500);
    vec![
        StepDecl::new(
            secrets_read(),
            format!("secrets from {}", words(spec)),
            "read",
            read::PROVES,
        )
        .weight(300)
        .always()
        .nothing_to_undo("it only reads"),
        match spec.secrets.escrow.after_down {
            EscrowAfterDown::Remove => escrow.undo(),
            EscrowAfterDown::Keep => {
                escrow.nothing_to_undo("escrowed entries are kept; the next birth overwrites them")
            }
        },
    ]
}

/// The sources in words, in their order.
#[must_use]
pub fn words(spec: &Spec) -> String {
    let sources: Vec<String> = spec.secrets.sources.iter().map(ToString::to_string).collect();
    sources.join(", then ")
}

/// Adds the steps of this layer to a graph.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World, access: Access) {
    let vault = Arc::new(Vault::new(spec, world, access));
    for decl in declare(spec) {
        if decl.id == secrets_read() {
            graph.add(decl, read::Read(vault.clone()));
        } else {
            graph.add(decl, escrow::Escrow(vault.clone()));
        }
    }
}

/// What the steps share: the sources, opened once.
pub(crate) struct Vault {
    spec: Arc<Spec>,
    world: World,
    access: Access,
    sources: OnceLock<Sources>,
}

impl Vault {
    pub(crate) fn new(spec: &Arc<Spec>, world: &World, access: Access) -> Self {
        let (spec, world) = (spec.clone(), world.clone());
        Self { spec, world, access, sources: OnceLock::new() }
    }

    pub(crate) fn sources(&self) -> Result<&Sources, Failure> {
        if let Some(sources) = self.sources.get() {
            return Ok(sources);
        }
        let opened = Sources::open(&self.spec, &self.world, &self.access)?;
        Ok(self.sources.get_or_init(|| opened))
    }

    fn words(&self) -> String {
        words(&self.spec)
    }
}
