//! What a machine is told and asked as a whole: its version, its config, its services.

use castle_model::Secret;
use castle_talos_proto::machine::ApplyConfigurationRequest;
use castle_talos_proto::machine::apply_configuration_request::Mode;

use crate::client::{CALL_DEADLINE, Talos};
use crate::error::TalosError;

/// What the machine did with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// In Talos' words, such as `Applied configuration without a reboot`.
    pub details: String,
    /// What it dislikes but accepts.
    pub warnings: Vec<String>,
}

/// A service of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name, such as `etcd`.
    pub id: String,
    /// Its state, such as `Running` or `Preparing`.
    pub state: String,
    /// Whether it is healthy, if that is known.
    pub healthy: Option<bool>,
}

impl Talos {
    /// The version of Talos that runs, such as `v1.13.9`.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn version(&self) -> Result<String, TalosError> {
        let mut client = self.machine();
        let reply = self.call("Version", CALL_DEADLINE, client.version(())).await?;
        let version = reply.messages.into_iter().next().and_then(|message| message.version);
        version.map(|version| version.tag).ok_or_else(|| self.empty("Version"))
    }

    /// Sends the machine its config. Talos chooses itself whether that needs a reboot.
    ///
    /// # Errors
    /// If the call fails; the machine's own words never quote a secret.
    pub async fn apply(&self, config: &Secret) -> Result<Applied, TalosError> {
        let request = ApplyConfigurationRequest {
            data: config.expose().as_bytes().to_vec(),
            mode: Mode::Auto.into(),
            dry_run: false,
        };
        let mut client = self.machine();
        let call = client.apply_configuration(request);
        let reply = self.call("ApplyConfiguration", CALL_DEADLINE, call).await?;
        let message = reply.messages.into_iter().next();
        message
            .map(|done| Applied { details: done.mode_details, warnings: done.warnings })
            .ok_or_else(|| self.empty("ApplyConfiguration"))
    }

    /// The machine's services.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn services(&self) -> Result<Vec<Service>, TalosError> {
        let mut client = self.machine();
        let reply = self.call("ServiceList", CALL_DEADLINE, client.service_list(())).await?;
        let list = reply.messages.into_iter().next().ok_or_else(|| self.empty("ServiceList"))?;
        let known = |health: castle_talos_proto::machine::ServiceHealth| {
            (!health.unknown).then_some(health.healthy)
        };
        Ok(list
            .services
            .into_iter()
            .map(|service| Service {
                id: service.id,
                state: service.state,
                healthy: service.health.and_then(known),
            })
            .collect())
    }
}
