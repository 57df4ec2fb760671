//! What every emulated server shares: the turn it acts in, the calls it answers, the effects it leaves due.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::net::Ipv4Addr;
use std::pin::Pin;

use castle_model::time::Moment;
use serde::{Deserialize, Serialize};

use crate::durations::{Draws, Process};

mod dice;
mod exchange;

pub use dice::Dice;
pub(crate) use exchange::json_bytes;
pub use exchange::{HttpBody, HttpCall, HttpReply, Peer};

/// One turn of the world: a part of the datacenter handles one call or one due effect in it.
pub struct Turn<'a> {
    /// Virtual milliseconds since the world was born.
    pub now: u64,
    /// Seeded randomness.
    pub dice: &'a mut Dice,
    /// Effects to come, with the delay from now in milliseconds.
    pub due: &'a mut Vec<(u64, Effect)>,
    /// What other parts of the datacenter must hear of at once, in order.
    pub signals: &'a mut Vec<Signal>,
    /// Every length of time that was drawn.
    pub draws: &'a mut Draws,
}

impl Turn<'_> {
    /// Leaves an effect due after `delay` milliseconds.
    pub fn after(&mut self, delay: u64, effect: impl Into<Effect>) {
        self.due.push((delay, effect.into()));
    }

    /// Draws how long a process takes for a subject (a machine by its number, say), in milliseconds, and keeps
    /// it on record.
    pub fn draw(&mut self, what: Process, subject: &(impl ToString + ?Sized)) -> u64 {
        self.draw_after(what, subject, None).0
    }

    /// The same for a process that begins by the end of another one, given by its number: how long it takes, and its
    /// own number.
    pub fn draw_after(
        &mut self,
        what: Process,
        subject: &(impl ToString + ?Sized),
        after: Option<u64>,
    ) -> (u64, u64) {
        let ms = self.dice.triangular(what.span());
        (ms, self.draws.record(what, subject.to_string(), (self.now, ms), after))
    }

    /// Leaves an effect due after a process that begins now.
    pub fn after_draw(
        &mut self,
        what: Process,
        subject: &(impl ToString + ?Sized),
        effect: impl Into<Effect>,
    ) {
        let delay = self.draw(what, subject);
        self.after(delay, effect);
    }

    /// Tells the other parts.
    pub fn signal(&mut self, signal: Signal) {
        self.signals.push(signal);
    }
}

/// An effect that is due at some time, by the part that will handle it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// For Proxmox.
    Proxmox(crate::proxmox::Effect),
    /// For the Talos machines.
    Talos(crate::talos::Effect),
    /// For the Kubernetes cluster.
    Kubernetes(crate::kubernetes::Effect),
}

impl From<crate::proxmox::Effect> for Effect {
    fn from(effect: crate::proxmox::Effect) -> Self {
        Self::Proxmox(effect)
    }
}

impl From<crate::talos::Effect> for Effect {
    fn from(effect: crate::talos::Effect) -> Self {
        Self::Talos(effect)
    }
}

impl From<crate::kubernetes::Effect> for Effect {
    fn from(effect: crate::kubernetes::Effect) -> Self {
        Self::Kubernetes(effect)
    }
}

/// What one part of the datacenter tells the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Signal {
    /// A VM was switched on.
    VmStarted(VmFacts),
    /// A VM was switched off; its disks keep what they hold.
    VmStopped {
        /// Which.
        vmid: u32,
    },
    /// A VM and its disks are gone.
    VmDestroyed {
        /// Which.
        vmid: u32,
    },
    /// A machine switched itself off.
    MachineHalted {
        /// Which.
        vmid: u32,
    },
    /// A new cluster was born: etcd started on its first control plane with nothing in it.
    ClusterBorn {
        /// The cluster's id, from its machine config.
        cluster: String,
    },
    /// A cluster is gone for good: no disk remembers anything of its etcd.
    ClusterLost {
        /// The cluster's id.
        cluster: String,
    },
    /// A machine's kubelet has joined the cluster (its Node object appears, not Ready until its network is up).
    NodeJoined {
        /// The cluster that it belongs to.
        cluster: String,
        /// The node's name.
        name: String,
        /// Its address.
        address: Ipv4Addr,
        /// Whether it is a control plane.
        control_plane: bool,
        /// Whether it has a disk for user volumes.
        data_disk: bool,
        /// System extensions in its image.
        extensions: Vec<String>,
        /// The version of Kubernetes that its config asks for, such as `v1.36.3`.
        version: String,
        /// The id of the boot that its machine is in.
        boot_id: String,
        /// What the machine is.
        hardware: Hardware,
    },
    /// A node is Ready, or not any more.
    NodeReady {
        /// The cluster that it belongs to.
        cluster: String,
        /// The node's name.
        name: String,
        /// Whether it is.
        ready: bool,
    },
    /// A machine that is a node lost the disk of its user volumes, or sees it again.
    DataDisk {
        /// The cluster that it belongs to.
        cluster: String,
        /// The node's name.
        name: String,
        /// Whether it sees the disk.
        there: bool,
    },
    /// A machine that was a node is gone or off.
    NodeLost {
        /// The cluster that it belonged to.
        cluster: String,
        /// The node's name.
        name: String,
    },
}

/// What a machine is, as its kubelet tells the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    /// How many processors it has.
    pub cores: u64,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Size of the system disk in GiB.
    pub disk_gib: u64,
    /// The SMBIOS UUID.
    pub uuid: String,
    /// The version of Talos, such as `v1.13.9`.
    pub talos: String,
}

/// What a VM brings along when it is switched on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VmFacts {
    /// Its number.
    pub vmid: u32,
    /// Its name in Proxmox, which cloud-init hands to the machine as its host name.
    pub name: String,
    /// The SMBIOS UUID, lower case with hyphens.
    pub uuid: String,
    /// The static address that cloud-init gives, if any.
    pub address: Option<Ipv4Addr>,
    /// Changes whenever the system disk is made anew, so that a machine knows whether its disk remembers.
    pub disk: String,
    /// The file name of the imported image, such as `talos-1.13.9-88d1f7a5….qcow2`; none if there is no bootable disk.
    pub image: Option<String>,
    /// Size of the system disk in GiB.
    pub disk_gib: u64,
    /// Size of the second disk in GiB, if there is one.
    pub data_disk_gib: Option<u64>,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// How many processors it has.
    #[serde(default)]
    pub cores: u64,
    /// System extensions in the image. Proxmox leaves it empty: the world then fills it in on the way to the
    /// machine, from the schematic whose id is in the image's file name.
    pub extensions: Vec<String>,
}

/// The servers that speak HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Proxmox VE.
    Proxmox,
    /// Infisical.
    Infisical,
    /// The image factory, the manifests and the Git host.
    Sources,
    /// The Kubernetes API.
    Kubernetes,
}

impl Server {
    /// The name in traces and counts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxmox => "proxmox",
            Self::Infisical => "infisical",
            Self::Sources => "sources",
            Self::Kubernetes => "kubernetes",
        }
    }
}

/// What answers at an address of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Listen {
    /// Talos' API without client certificates, before the machine has a config.
    Maintenance {
        /// Whose.
        vmid: u32,
    },
    /// Talos' API with client certificates.
    Secure {
        /// Whose.
        vmid: u32,
    },
    /// The Kubernetes API server of a control plane, at its own address or at the shared one.
    KubeApi {
        /// Whose.
        vmid: u32,
    },
    /// Talos' API of a machine that belongs to somebody else.
    Foreign {
        /// Whose.
        vmid: u32,
    },
    /// Something takes connections and says nothing.
    Mute {
        /// Whose.
        vmid: u32,
    },
    /// The host is there and nothing listens at that port.
    Refused,
}

/// What a listener's TLS certificate is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The authority that issues it; none for a self-signed one.
    pub authority: Option<Authority>,
    /// CN of the certificate.
    pub common_name: String,
    /// DNS names in it.
    pub names: Vec<String>,
    /// Addresses in it.
    pub addresses: Vec<Ipv4Addr>,
    /// The certificate (PEM) of the authority that client certificates are verified by. Talos' secure API
    /// demands one, the Kubernetes API takes a client without one for anonymous; none: never asked for.
    pub client_authority: Option<String>,
    /// Changes whenever open connections must break: the boot, and what changed in it.
    pub generation: (u64, u64),
    /// By how many seconds the clock that it was made by is ahead of the world's.
    pub clock_off: i64,
}

/// A certificate authority with its key.
#[derive(Clone, PartialEq, Eq)]
pub struct Authority {
    /// The certificate, PEM.
    pub certificate: String,
    /// The private key, PEM: PKCS#8, SEC 1, or PKCS#8 under Talos' own label `ED25519 PRIVATE KEY`.
    pub key: String,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(…)")
    }
}

/// The way from a machine's gRPC services into the world.
pub trait Door: Send + Sync {
    /// Puts one call to a machine.
    ///
    /// # Errors
    /// What the machine refuses with.
    fn call(
        &self,
        vmid: u32,
        call: crate::talos::Call,
    ) -> Result<crate::talos::Reply, crate::talos::Refusal>;

    /// The time of day at a moment of the world.
    fn time_of_day(&self, at: u64) -> Moment;

    /// Waits until some machine may have changed after this call was *made* (not after it is first polled): take the
    /// future, look, and then wait, so that no change is missed.
    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// What the cluster reads beyond its own walls: secrets from Infisical, repositories from the Git host.
pub trait Neighbours {
    /// One secret, as External Secrets asks for it.
    ///
    /// # Errors
    /// The server's words, as they stand in a condition's message.
    fn secret(&self, query: &SecretQuery<'_>) -> Result<String, String>;

    /// The commit that a branch is at, as Flux asks for it. Credentials are user and password.
    ///
    /// # Errors
    /// The server's words, as they stand in a condition's message.
    fn git_head(
        &self,
        url: &str,
        branch: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<String, String>;

    /// The files of a commit, by their paths; none if there is no such commit.
    fn git_files(&self, url: &str, commit: &str) -> Option<&BTreeMap<String, String>>;
}

/// Which secret, and who asks.
#[derive(Clone, Copy)]
pub struct SecretQuery<'a> {
    /// When, in virtual milliseconds: an identity can be locked out for a while.
    pub at: u64,
    /// The server, such as `https://eu.infisical.com`.
    pub host: &'a str,
    /// Universal-auth client id.
    pub client_id: &'a str,
    /// Universal-auth client secret.
    pub client_secret: &'a str,
    /// The project's slug.
    pub project: &'a str,
    /// The environment's slug.
    pub environment: &'a str,
    /// The folder.
    pub path: &'a str,
    /// The key.
    pub key: &'a str,
}
