//! What a machine is told and asked as a whole: its version, its config, its services.

use castle_model::Secret;
use castle_talos_proto::machine::apply_configuration_request::Mode;
use castle_talos_proto::machine::{
    ApplyConfigurationRequest, ReadRequest, RebootRequest, ResetPartitionSpec, ResetRequest,
    ServiceInfo, ServiceRestartRequest,
};

use crate::client::{CALL_DEADLINE, Talos};
use crate::error::TalosError;

/// The partitions that a reset empties: the config and identity, and all that runs and is kept.
const WIPED: [&str; 2] = ["STATE", "EPHEMERAL"];

/// Where the kernel tells which boot it is in, and how long that may be.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_BYTES: usize = 256;

/// What the machine did with a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Whether it takes a reboot.
    pub reboot: bool,
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
    /// What it said last: of its health, else of its state.
    pub said: String,
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

    /// The id of the boot that the machine is in, as its kernel gives it: another one after each start. The kubelet of that
    /// boot tells the same of its node.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn boot_id(&self) -> Result<String, TalosError> {
        let mut client = self.machine();
        let request = ReadRequest { path: BOOT_ID.to_owned() };
        let mut file = self.call("Read", CALL_DEADLINE, client.read(request)).await?;
        let mut bytes = Vec::new();
        loop {
            let next = async { file.message().await.map(tonic::Response::new) };
            let Some(part) = self.call("Read", CALL_DEADLINE, next).await? else { break };
            bytes.extend(part.bytes);
            if bytes.len() > BOOT_ID_BYTES {
                break;
            }
        }
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        if text.is_empty() { Err(self.empty("Read")) } else { Ok(text) }
    }

    /// Sends the machine its config. Talos chooses itself whether that needs a reboot.
    ///
    /// # Errors
    /// If the call fails; the machine's own words never quote a secret.
    pub async fn apply(&self, config: &Secret) -> Result<Applied, TalosError> {
        self.apply_or_try(config, false).await
    }

    /// Asks what sending the machine this config would do, without doing it.
    ///
    /// # Errors
    /// If the call fails, as [`Talos::apply`] would.
    pub async fn try_config(&self, config: &Secret) -> Result<Applied, TalosError> {
        self.apply_or_try(config, true).await
    }

    async fn apply_or_try(&self, config: &Secret, dry_run: bool) -> Result<Applied, TalosError> {
        let request = ApplyConfigurationRequest {
            data: config.expose().as_bytes().to_vec(),
            // Never the protocol's default: that is REBOOT, which 1.14 refuses.
            mode: Mode::Auto.into(),
            dry_run,
            ..ApplyConfigurationRequest::default()
        };
        let mut client = self.machine();
        let call = client.apply_configuration(request);
        let reply = self.call("ApplyConfiguration", CALL_DEADLINE, call).await?;
        let message = reply.messages.into_iter().next();
        message
            .map(|done| Applied {
                reboot: done.mode() == Mode::Reboot,
                // A dry run shows a difference below its first line, with whatever stands in the config.
                details: done.mode_details.lines().next().unwrap_or_default().to_owned(),
                warnings: done.warnings,
            })
            .ok_or_else(|| self.empty("ApplyConfiguration"))
    }

    /// Restarts the machine. It answers before it goes down.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn reboot(&self) -> Result<(), TalosError> {
        let mut client = self.machine();
        let call = client.reboot(RebootRequest::default());
        self.call("Reboot", CALL_DEADLINE, call).await?;
        Ok(())
    }

    /// Wipes what the machine was told and what it keeps, and restarts it: it comes back in maintenance mode, from the
    /// same installed disk. It does not say goodbye to etcd, because all of its members go.
    ///
    /// # Errors
    /// If the call fails. After a broken connection its outcome is unknown.
    pub async fn reset(&self) -> Result<(), TalosError> {
        let wiped = |label: &str| ResetPartitionSpec { label: label.to_owned(), wipe: true };
        let request = ResetRequest {
            graceful: false,
            reboot: true,
            // Without a list the whole disk would go, and the machine could not boot again.
            system_partitions_to_wipe: WIPED.map(wiped).to_vec(),
            ..ResetRequest::default()
        };
        let mut client = self.machine();
        self.call("Reset", CALL_DEADLINE, client.reset(request)).await?;
        Ok(())
    }

    /// The machine's services.
    ///
    /// # Errors
    /// If the call fails.
    pub async fn services(&self) -> Result<Vec<Service>, TalosError> {
        let mut client = self.machine();
        let reply = self.call("ServiceList", CALL_DEADLINE, client.service_list(())).await?;
        let list = reply.messages.into_iter().next().ok_or_else(|| self.empty("ServiceList"))?;
        Ok(list.services.into_iter().map(read).collect())
    }

    /// Stops one service of the machine and starts it again. It answers once the service is stopped.
    ///
    /// # Errors
    /// If the call fails, or the machine has no such service.
    pub async fn restart_service(&self, id: &str) -> Result<(), TalosError> {
        let mut client = self.machine();
        let call = client.service_restart(ServiceRestartRequest { id: id.to_owned() });
        self.call("ServiceRestart", CALL_DEADLINE, call).await?;
        Ok(())
    }
}

fn read(service: ServiceInfo) -> Service {
    let event = service.events.and_then(|events| events.events.into_iter().next_back());
    let health = service.health.unwrap_or_default();
    let said = [health.last_message, event.map(|event| event.msg).unwrap_or_default()];
    Service {
        id: service.id,
        state: service.state,
        healthy: (!health.unknown).then_some(health.healthy),
        said: said.into_iter().find(|text| !text.is_empty()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use castle_talos_proto::machine::{ServiceEvent, ServiceEvents, ServiceHealth};

    use super::*;

    #[test]
    fn a_service_says_how_well_it_is_and_else_what_happened_last() {
        let event = |msg: &str| ServiceEvent { msg: msg.to_owned(), ..ServiceEvent::default() };
        let mut info = ServiceInfo {
            id: "etcd".to_owned(),
            state: "Preparing".to_owned(),
            events: Some(ServiceEvents {
                events: vec![event("Pulling"), event("Waiting to join")],
            }),
            health: Some(ServiceHealth { unknown: true, ..ServiceHealth::default() }),
        };
        let service = read(info.clone());
        assert_eq!((service.healthy, service.said.as_str()), (None, "Waiting to join"));
        info.health = Some(ServiceHealth {
            last_message: "context deadline exceeded".to_owned(),
            ..ServiceHealth::default()
        });
        let service = read(info);
        assert_eq!(
            (service.healthy, service.said.as_str()),
            (Some(false), "context deadline exceeded")
        );
    }
}
