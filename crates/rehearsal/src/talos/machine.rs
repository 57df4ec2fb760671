//! One machine: what its disk remembers, and what of it runs in this boot.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::config::Config;
use crate::turn::{Listen, VmFacts};

/// The port of Talos' API.
const TALOS_PORT: u16 = 50_000;

/// The port of the Kubernetes API server.
const KUBERNETES_PORT: u16 = 6443;

/// All ports that a machine may listen at.
pub(super) const PORTS: [u16; 2] = [TALOS_PORT, KUBERNETES_PORT];

/// What Talos' API does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Api {
    /// Nothing listens.
    #[default]
    Down,
    /// Open to anybody, for reading and configuring.
    Maintenance,
    /// Open to certificates of its own cluster.
    Secure,
}

/// A machine: everything about one VM that is switched on, or was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// What the VM brought along when it was switched on last.
    pub(super) facts: VmFacts,
    /// What survives a loss of power.
    pub(super) disk: Disk,
    /// Whether it has power.
    pub(super) on: bool,
    /// Whether the kernel answers on the network.
    pub(super) up: bool,
    /// The number of its last boot, of all boots there were; what was due in another one never comes.
    pub(super) boot: u64,
    /// Changes whenever open connections break.
    pub(super) generation: u64,
    /// What Talos' API does.
    pub(super) api: Api,
    /// What runs in this boot.
    pub(super) running: Running,
}

/// What a system disk holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Disk {
    /// Which disk it is.
    pub(super) id: String,
    /// The config (the STATE partition).
    pub(super) config: Option<Config>,
    /// The data of etcd: of which one, and as which member.
    pub(super) etcd: Option<(u64, u64)>,
}

/// What runs; all of it ends with the power.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent thing that runs or does not"
)]
pub(super) struct Running {
    /// The container runtime.
    pub(super) runtime: bool,
    /// etcd's image is pulled, the service waits to start or runs.
    pub(super) etcd_image: bool,
    /// Bootstrap was asked for and etcd has not written its data yet.
    pub(super) bootstrap: bool,
    /// etcd.
    pub(super) etcd: bool,
    /// The kubelet.
    pub(super) kubelet: bool,
    /// The API server.
    pub(super) api_server: bool,
    /// The node is about to register.
    pub(super) registering: bool,
    /// The node is registered.
    pub(super) joined: bool,
    /// Everything is well.
    pub(super) ready: bool,
}

impl Machine {
    /// A machine that has never had power.
    pub(super) fn new(facts: &VmFacts) -> Self {
        Self {
            facts: facts.clone(),
            disk: Disk { id: facts.disk.clone(), ..Disk::default() },
            on: false,
            up: false,
            boot: 0,
            generation: 0,
            api: Api::Down,
            running: Running::default(),
        }
    }

    /// The config, if the machine has one.
    pub(super) fn config(&self) -> Option<&Config> {
        self.disk.config.as_ref()
    }

    /// Whether its config makes it a control plane.
    pub(super) fn is_control_plane(&self) -> bool {
        self.config().is_some_and(|config| config.control_plane)
    }

    /// The cluster that its config belongs to.
    pub(super) fn cluster(&self) -> Option<&str> {
        self.config().map(|config| config.cluster.as_str())
    }

    /// Its own address: the config's, else cloud-init's.
    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        self.config().and_then(|config| config.address).or(self.facts.address)
    }

    /// Its name: the config's, else cloud-init's.
    pub(super) fn hostname(&self) -> &str {
        self.config().and_then(|config| config.hostname.as_deref()).unwrap_or(&self.facts.name)
    }

    /// The shared address that its config names.
    pub(super) fn vip(&self) -> Option<Ipv4Addr> {
        self.config().and_then(|config| config.vip)
    }

    /// Whether its etcd votes or could: it runs, and the machine has power.
    pub(super) fn runs_etcd(&self) -> bool {
        self.on && self.running.etcd
    }

    /// What answers at a port.
    pub(super) fn listener(&self, vmid: u32, port: u16) -> Listen {
        match (port, self.api) {
            (TALOS_PORT, Api::Maintenance) => Listen::Maintenance { vmid },
            (TALOS_PORT, Api::Secure) => Listen::Secure { vmid },
            (KUBERNETES_PORT, _) if self.running.api_server => Listen::KubeApi { vmid },
            _ => Listen::Refused,
        }
    }

    /// The version of Talos in its image, such as `v1.13.9`, from a file name such as `talos-1.13.9-88d1.qcow2`.
    pub(super) fn version(&self) -> String {
        let number = self.image_parts().find(|part| is_version(part));
        format!("v{}", number.unwrap_or("0.0.0"))
    }

    /// The beginning of the schematic's id in its image: what follows the version in the same file name.
    pub(super) fn schematic(&self) -> &str {
        let part = self.image_parts().skip_while(|part| !is_version(part)).nth(1);
        part.and_then(|part| part.split('.').next()).unwrap_or_default()
    }

    fn image_parts(&self) -> impl Iterator<Item = &str> {
        let name = self.facts.image.as_deref().unwrap_or_default();
        name.rsplit(['/', ':']).next().unwrap_or_default().split('-')
    }
}

fn is_version(text: &str) -> bool {
    text.split('.').count() == 3 && text.split('.').all(|number| number.parse::<u16>().is_ok())
}
