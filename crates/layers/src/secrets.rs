//! The secrets layer: read what the castle needs, and keep what it could not live without.
//!
//! ```text
//!   secrets/read ─▶ platform/inventory ─▶ platform/preflight ─▶ secrets/escrow ─▶ every machine
//! ```

use std::sync::{Arc, OnceLock};

use castle_engine::Graph;
use castle_infisical::{Credentials, Infisical, InfisicalError, Place};
use castle_model::spec::EscrowAfterDown;
use castle_model::{Failure, Spec, StepDecl};
use castle_platforms::ids::{secrets_escrow, secrets_read};
use castle_platforms::proxmox::{inventory_id, preflight_id};
use castle_wire::World;

pub mod escrow;
pub mod kept;
pub mod read;
#[cfg(test)]
mod tests;

/// Declares the steps of this layer.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let host = &spec.secrets.host;
    let escrow = StepDecl::new(secrets_escrow(), format!("Talos secrets in {host}"), "escrow")
        .needs([inventory_id(), preflight_id()])
        .weight(500);
    vec![
        StepDecl::new(secrets_read(), format!("secrets from {host}"), "read")
            .weight(300)
            .always()
            .nothing_to_undo("it only reads"),
        match spec.secrets.escrow {
            EscrowAfterDown::Remove => escrow.undo(),
            EscrowAfterDown::Keep => {
                escrow.nothing_to_undo("escrowed entries are kept; the next birth overwrites them")
            }
        },
    ]
}

/// Adds the steps of this layer to a graph.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World, identity: Credentials) {
    let vault = Arc::new(Vault::new(spec, world, identity));
    for decl in declare(spec) {
        if decl.id == secrets_read() {
            graph.add(decl, read::Read(vault.clone()));
        } else {
            graph.add(decl, escrow::Escrow(vault.clone()));
        }
    }
}

/// What the steps share: where the secrets are, and one client that stays logged in.
pub(crate) struct Vault {
    spec: Arc<Spec>,
    world: World,
    credentials: Credentials,
    client: OnceLock<Infisical>,
    project: OnceLock<String>,
}

impl Vault {
    pub(crate) fn new(spec: &Arc<Spec>, world: &World, credentials: Credentials) -> Self {
        let (spec, world) = (spec.clone(), world.clone());
        Self { spec, world, credentials, client: OnceLock::new(), project: OnceLock::new() }
    }

    pub(crate) fn client(&self) -> Result<&Infisical, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = Infisical::new(&self.world, &self.spec.secrets.host, self.credentials.clone())
            .map_err(|error| self.failure("speak to", &error))?;
        Ok(self.client.get_or_init(|| client))
    }

    /// The castle's folder; the project's id is asked for once.
    pub(crate) async fn place(&self) -> Result<Place, Failure> {
        let secrets = &self.spec.secrets;
        let project = if let Some(project) = self.project.get() {
            project.clone()
        } else {
            let found = self.client()?.project(&secrets.project).await;
            let found = found.map_err(|error| self.failure("find the project in", &error))?;
            self.project.get_or_init(|| found).clone()
        };
        Ok(Place { project, environment: secrets.environment.clone(), path: secrets.path.clone() })
    }

    /// The castle's folder in words.
    fn place_words(&self) -> String {
        let secrets = &self.spec.secrets;
        format!(
            "{}, project {}, environment {}, path {}",
            secrets.host, secrets.project, secrets.environment, secrets.path
        )
    }

    fn failure(&self, doing: &str, error: &InfisicalError) -> Failure {
        let failure = error.failure(format!("{doing} {}", self.spec.secrets.host));
        failure.evidence(self.place_words())
    }
}
