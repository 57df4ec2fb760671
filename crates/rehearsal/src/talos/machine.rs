//! One machine: what its disk remembers, and what of it runs in this boot.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::call::ResetCall;
use super::config::{Config, Pair};
use super::note::Noted;
use super::reading::Wanted;
use crate::turn::{Listen, VmFacts};

/// The port of Talos' API.
const TALOS_PORT: u16 = 50_000;

/// The port of the Kubernetes API server.
pub(super) const KUBERNETES_PORT: u16 = 6443;

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

/// A machine: everything about one that is switched on, or was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Machine {
    /// What it brought along when it was switched on last.
    pub(super) facts: VmFacts,
    /// What survives a loss of power.
    pub(super) disk: Disk,
    /// The config that it runs by.
    pub(super) config: Option<Config>,
    /// What else its config wants.
    pub(super) wanted: Wanted,
    /// Whether it has power.
    pub(super) on: bool,
    /// Whether the kernel answers on the network.
    pub(super) up: bool,
    /// The number of its last boot, of all boots there were; what was due in another one never comes.
    pub(super) boot: u64,
    /// When it got power last.
    pub(super) booted: u64,
    /// Changes whenever open connections break.
    pub(super) generation: u64,
    /// What Talos' API does.
    pub(super) api: Api,
    /// What signed a worker's certificate in this boot: it keeps that, whatever becomes of the control planes. A real one
    /// asks for another after half of the certificate's day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) signed_by: Option<Pair>,
    /// Why it is going down, if it is.
    pub(super) ending: Option<Ending>,
    /// What runs in this boot.
    pub(super) running: Running,
    /// What was said about it in this boot.
    pub(super) noted: Noted,
    /// What is wrong with it because somebody said so.
    pub(super) troubles: Troubles,
}

/// What a system disk holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Disk {
    /// Which disk it is.
    pub(super) id: String,
    /// The config for the next boot (the STATE partition).
    pub(super) saved: Option<Config>,
    /// Who the machine is to its cluster, at random (the STATE partition).
    pub(super) identity: Option<String>,
    /// The data of etcd: of which one, and as which member (the EPHEMERAL partition).
    pub(super) etcd: Option<(u64, u64)>,
    /// Whether all of it was wiped, so that nothing boots from it.
    pub(super) wiped: bool,
}

/// Why a machine goes down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Ending {
    /// What it does.
    pub(super) sequence: Sequence,
    /// Who asked for it.
    pub(super) actor: String,
    /// Whether the API can not reach what is behind it any more.
    pub(super) deaf: bool,
}

/// How a machine goes down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Sequence {
    /// It comes up again.
    Reboot,
    /// It stays off.
    Shutdown,
    /// It forgets first.
    Reset(ResetCall),
}

impl Sequence {
    /// Its name in events.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Reboot => "reboot",
            Self::Shutdown => "shutdown",
            Self::Reset(_) => "reset",
        }
    }

    /// The stage that the machine shows meanwhile.
    pub(super) fn stage(&self) -> &'static str {
        match self {
            Self::Reboot => "rebooting",
            Self::Shutdown => "shutting-down",
            Self::Reset(_) => "resetting",
        }
    }
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
    /// etcd was left on purpose: it does not come back in this boot.
    pub(super) etcd_left: bool,
    /// The kubelet.
    pub(super) kubelet: bool,
    /// The kubelet has given up, for good.
    pub(super) kubelet_failed: bool,
    /// The API server.
    pub(super) api_server: bool,
    /// The boot is about to be over.
    pub(super) finishing: bool,
    /// The boot is over.
    pub(super) booted: bool,
    /// The node is about to register.
    pub(super) registering: bool,
    /// The node is registered.
    pub(super) joined: bool,
    /// The node is Ready.
    pub(super) ready: bool,
}

/// What is wrong with a machine because somebody said so. It outlives boots and disks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent trouble")]
pub(super) struct Troubles {
    /// It never comes up.
    pub(super) dead: bool,
    /// Its clock is never in sync.
    pub(super) clock_astray: bool,
    /// By how many seconds its clock is ahead of the world's; below zero, behind it.
    pub(super) clock_off: i64,
    /// Its API server does not run, although all that it needs does.
    pub(super) api_server_down: bool,
    /// The registry refuses it the kubelet's image.
    pub(super) pulls_limited: bool,
    /// The next bootstrap works, and nobody hears of it.
    pub(super) reply_lost: bool,
    /// It belongs to somebody else.
    pub(super) foreign: bool,
    /// Its next disk holds an etcd of an earlier life.
    pub(super) stale: bool,
    /// It has this address until it is configured, whatever it was given.
    pub(super) address: Option<Ipv4Addr>,
    /// Its data disk is not seen.
    pub(super) data_disk_gone: bool,
    /// Its disk takes no config.
    pub(super) unwritable: bool,
    /// Where an earlier self of it was that the discovery service still knows.
    pub(super) ghost: Option<Ipv4Addr>,
    /// Somebody else bootstraps it as soon as it can be.
    #[serde(default)]
    pub(super) usurped: bool,
    /// An extension that its image lacks.
    #[serde(default)]
    pub(super) without: Option<String>,
}

impl Machine {
    /// How large its data disk is, if it sees one.
    pub(super) fn data_disk(&self) -> Option<u64> {
        self.facts.data_disk_gib.filter(|_| !self.troubles.data_disk_gone)
    }

    /// The extensions of the image that it runs.
    pub(super) fn extensions(&self) -> Vec<String> {
        let lacks = |name: &String| {
            let short = name.rsplit('/').next();
            self.troubles.without.as_deref().is_some_and(|without| short == Some(without))
        };
        self.facts.extensions.iter().filter(|name| !lacks(name)).cloned().collect()
    }

    /// A machine that has never had power.
    pub(super) fn new(facts: &VmFacts, troubles: Troubles) -> Self {
        Self {
            facts: facts.clone(),
            disk: Disk { id: facts.disk.clone(), ..Disk::default() },
            config: None,
            wanted: Wanted::default(),
            on: false,
            up: false,
            boot: 0,
            booted: 0,
            generation: 0,
            api: Api::Down,
            signed_by: None,
            ending: None,
            running: Running::default(),
            noted: Noted::default(),
            troubles,
        }
    }

    /// The config that the machine runs by, if it has one.
    pub(super) fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Takes a config to run by.
    pub(super) fn adopt(&mut self, config: Option<Config>) {
        self.wanted = config.as_ref().map(|config| Wanted::of(&config.text.0)).unwrap_or_default();
        self.config = config;
    }

    /// Whether its config makes it a control plane.
    pub(super) fn is_control_plane(&self) -> bool {
        self.config().is_some_and(|config| config.control_plane)
    }

    /// The cluster that its config belongs to.
    pub(super) fn cluster(&self) -> Option<&str> {
        self.config().map(|config| config.cluster.as_str())
    }

    /// Its own address: the config's, else the one it came with.
    pub(super) fn address(&self) -> Option<Ipv4Addr> {
        let given = self.troubles.address.or(self.facts.address);
        self.config().and_then(|config| config.address).or(given)
    }

    /// The version of Kubernetes that its config asks for: the tag of the kubelet's image.
    pub(super) fn kubernetes_version(&self) -> String {
        let image = self.wanted.kubelet.split('@').next().unwrap_or_default();
        image.rsplit_once(':').map(|(_, tag)| tag.to_owned()).unwrap_or_default()
    }

    /// The id of this boot, as the kernel gives it: by its moment, so that a machine that takes another's place has its own.
    pub(super) fn boot_id(&self) -> String {
        format!("{:08x}-{:04x}-4000-8000-{:012x}", self.facts.vmid, self.boot & 0xffff, self.booted)
    }

    /// Its name: the config's, else the one it came with.
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

    /// Whether it gives certificates to workers: its own API runs, and its clock can be relied on.
    pub(super) fn gives_trust(&self) -> bool {
        self.api == Api::Secure && self.is_control_plane() && !self.troubles.clock_astray
    }

    /// Whether its own API server answers.
    pub(super) fn serves_kubernetes(&self) -> bool {
        self.running.api_server && !self.troubles.api_server_down
    }

    /// Whether the API can not reach what is behind it.
    pub(super) fn deaf(&self) -> bool {
        self.ending.as_ref().is_some_and(|ending| ending.deaf)
    }

    /// What answers at a port.
    pub(super) fn listener(&self, vmid: u32, port: u16) -> Listen {
        match (port, self.api) {
            (TALOS_PORT, _) if self.troubles.foreign => Listen::Foreign { vmid },
            (TALOS_PORT, Api::Maintenance) => Listen::Maintenance { vmid },
            (TALOS_PORT, Api::Secure) => Listen::Secure { vmid },
            (KUBERNETES_PORT, _) if self.serves_kubernetes() => Listen::KubeApi { vmid },
            _ => Listen::Refused,
        }
    }

    /// The version of Talos in its image, such as `v1.13.9`, from a file name such as `talos-1.13.9-88d1.qcow2`.
    pub(super) fn version(&self) -> String {
        let number = self.image_parts().find(|part| is_version(part));
        format!("v{}", number.unwrap_or("0.0.0"))
    }

    /// Whether its Talos is of 1.14 or later.
    pub(super) fn is_late(&self) -> bool {
        let number = |part: Option<&str>| part.and_then(|part| part.parse::<u16>().ok());
        let version = self.version();
        let mut parts = version.trim_start_matches('v').split('.');
        (number(parts.next()), number(parts.next())) >= (Some(1), Some(14))
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
