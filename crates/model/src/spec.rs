//! The castle that a user wants: validated, complete, free of syntax. `config` makes it from `castle.hcl`.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::address::{AddressRange, Subnet};
use crate::deadline::Deadlines;
use crate::lock::Lock;
use crate::name::{CastleName, NodeName, VmId};

mod downloads;
mod layers;
mod machine;
mod secrets;

pub use downloads::{DownloadsSpec, FACTORY};
pub use layers::{
    EngineSpec, ExtraLayer, GitCredentials, GitopsSpec, LayerOwner, NetworkingSpec, ObjectPatch,
    ResourcesSpec, StorageSpec, UrlManifest,
};
pub use machine::{DiskEncryption, MachineSpec, PatchSpec, PatchTarget, RegistrySpec};
pub use secrets::{
    EnvSpec, EscrowAfterDown, EscrowFile, EscrowPlace, EscrowSpec, FileSpec, InfisicalSpec,
    ReaderSpec, SecretRef, SecretsSpec, Shape, SopsSpec, SourceSpec,
};

/// The six layers that are built in, in the order of their foundations.
pub const BUILT_IN_LAYERS: [&str; 6] =
    ["secrets", "platform", "engine", "networking", "storage", "gitops"];

/// A whole castle as wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// Its name.
    pub name: CastleName,
    /// The version of Talos, such as 1.13.9.
    pub talos: Version,
    /// The version of Kubernetes, such as 1.36.3.
    pub kubernetes: Version,
    /// Where secrets come from.
    pub secrets: SecretsSpec,
    /// Where machines come from.
    pub platform: PlatformSpec,
    /// Addresses.
    pub network: NetworkSpec,
    /// What every machine's Talos is told beyond the necessary.
    #[serde(default)]
    pub machine: MachineSpec,
    /// The machines, control planes first, each in the order of its number.
    pub nodes: Vec<NodeSpec>,
    /// External Secrets.
    pub engine: EngineSpec,
    /// MetalLB.
    pub networking: NetworkingSpec,
    /// Longhorn.
    pub storage: StorageSpec,
    /// Flux.
    pub gitops: GitopsSpec,
    /// Layers beyond those built in, in an order in which each comes after those it names.
    pub layers: Vec<ExtraLayer>,
    /// Where what is installed is fetched from.
    #[serde(default)]
    pub downloads: DownloadsSpec,
    /// Deadlines that differ from the defaults.
    pub deadlines: Deadlines,
    /// What `castle.lock` pins.
    #[serde(default)]
    pub lock: Lock,
}

/// A version of three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Version {
    /// Changes when things break.
    pub major: u16,
    /// Changes with features.
    pub minor: u16,
    /// Changes with repairs.
    pub patch: u16,
}

/// Where machines come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum PlatformSpec {
    /// castle makes VMs on Proxmox VE.
    Proxmox(ProxmoxSpec),
    /// The machines stand already and wait in maintenance mode.
    Machines(MachinesSpec),
}

/// A host with Proxmox VE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxmoxSpec {
    /// The API, such as `https://pve.lan:8006`.
    pub endpoint: String,
    /// How its certificate is verified.
    pub trust: Trust,
    /// Who castle is to the API.
    pub token: TokenSpec,
    /// The Proxmox node that carries the VMs.
    pub node: String,
    /// The storage for disks.
    pub storage: String,
    /// A storage that takes content `import`, for the Talos image.
    pub image_storage: String,
    /// The network bridge.
    pub bridge: String,
    /// The VM ids that the castle may use, both ends included.
    pub vmids: (VmId, VmId),
    /// Talos system extensions in the image, sorted.
    pub extensions: Vec<String>,
}

/// An API token of Proxmox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TokenSpec {
    /// Its name `USER@REALM!ID` and its secret, each under a key of its own.
    Parts {
        /// The name.
        id: SecretRef,
        /// The secret.
        secret: SecretRef,
    },
    /// Both in one string: `USER@REALM!ID=SECRET`.
    Whole(SecretRef),
}

/// Machines that castle did not make: bare metal, or VMs of anybody's making.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachinesSpec {
    /// The platform of the image that they booted, as the image factory calls it: `metal`, `nocloud`.
    pub installer: String,
    /// The disk that Talos is installed to, if it is not installed yet.
    pub install_disk: String,
    /// The network interface that carries the node's address.
    pub link: String,
    /// Talos system extensions in the installer's image, sorted.
    pub extensions: Vec<String>,
}

/// How a server's certificate is verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trust {
    /// By the system's roots.
    System,
    /// By this PEM certificate of an authority.
    Authority(String),
    /// By the SHA-256 fingerprint of the certificate itself: 64 lower-case hexadecimal digits.
    Fingerprint(String),
}

/// Addresses of the castle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkSpec {
    /// The network that the machines are in.
    pub subnet: Subnet,
    /// Its gateway.
    pub gateway: Ipv4Addr,
    /// The address that the control planes share.
    pub vip: Ipv4Addr,
    /// Name servers.
    pub nameservers: Vec<Ipv4Addr>,
    /// Time servers.
    pub ntp: Vec<String>,
    /// Addresses for load balancers.
    pub pool: AddressRange,
    /// Addresses of pods.
    pub pods: Subnet,
    /// Addresses of services.
    pub services: Subnet,
}

/// What a machine is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Runs etcd and the API server.
    ControlPlane,
    /// Runs what the cluster hosts.
    Worker,
}

/// One machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Its name, such as `cp-01`.
    pub name: NodeName,
    /// What it is for.
    pub role: Role,
    /// Its static address.
    pub address: Ipv4Addr,
    /// What it is made of.
    pub body: Body,
}

/// What a machine is made of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Body {
    /// A VM that castle makes.
    Vm(VmSpec),
    /// A machine that stands already.
    Standing(StandingSpec),
}

/// A VM that castle makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmSpec {
    /// Its number in Proxmox.
    pub vmid: VmId,
    /// Virtual processors.
    pub cores: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The system disk in GiB.
    pub disk_gib: u64,
    /// A second disk for volumes, in GiB.
    pub data_disk_gib: Option<u64>,
}

/// A machine that stands already.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandingSpec {
    /// Its SMBIOS UUID, if the castle file names it; else the one seen at first contact is recorded.
    pub uuid: Option<String>,
    /// Whether it has a second disk for volumes.
    pub data_disk: bool,
}

impl Spec {
    /// The control planes.
    pub fn control_planes(&self) -> impl Iterator<Item = &NodeSpec> {
        self.nodes.iter().filter(|n| n.role == Role::ControlPlane)
    }

    /// The workers.
    pub fn workers(&self) -> impl Iterator<Item = &NodeSpec> {
        self.nodes.iter().filter(|n| n.role == Role::Worker)
    }

    /// Every key that a run needs from the secret source, sorted, each once.
    #[must_use]
    pub fn required_secrets(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.platform.secrets().map(|key| key.0.clone()).collect();
        keys.extend(self.machine.secrets().map(|key| key.0.clone()));
        keys.extend(self.secrets.secrets().map(|key| key.0.clone()));
        if self.gitops.enabled {
            keys.extend(self.gitops.token.iter().map(|t| t.0.clone()));
        }
        keys.extend(self.secrets.require.iter().cloned());
        keys.sort();
        keys.dedup();
        keys
    }

    /// The form that the value of a key must have: as the castle uses it, else as the file declares it.
    #[must_use]
    pub fn shape(&self, key: &str) -> Shape {
        let token = self.gitops.token.iter();
        let registries = &self.machine.registries;
        let mut tokens = self.platform.secrets().chain(self.secrets.secrets()).chain(token).chain(
            registries
                .iter()
                .flat_map(|registry| registry.username.iter().chain(&registry.password)),
        );
        let declared = self.secrets.shapes.get(key).copied();
        if tokens.any(|used| used.0 == key) { Shape::Token } else { declared.unwrap_or_default() }
    }
}

impl PlatformSpec {
    /// The Proxmox host, where castle makes VMs.
    #[must_use]
    pub fn proxmox(&self) -> Option<&ProxmoxSpec> {
        match self {
            Self::Proxmox(proxmox) => Some(proxmox),
            Self::Machines(_) => None,
        }
    }

    /// The Proxmox host, to be changed.
    pub fn proxmox_mut(&mut self) -> Option<&mut ProxmoxSpec> {
        match self {
            Self::Proxmox(proxmox) => Some(proxmox),
            Self::Machines(_) => None,
        }
    }

    /// Talos system extensions in the image, sorted.
    #[must_use]
    pub fn extensions(&self) -> &[String] {
        match self {
            Self::Proxmox(proxmox) => &proxmox.extensions,
            Self::Machines(machines) => &machines.extensions,
        }
    }

    /// The keys that it needs from the secret source.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let keys = match self {
            Self::Proxmox(ProxmoxSpec { token: TokenSpec::Parts { id, secret }, .. }) => {
                [Some(id), Some(secret)]
            }
            Self::Proxmox(ProxmoxSpec { token: TokenSpec::Whole(token), .. }) => {
                [Some(token), None]
            }
            Self::Machines(_) => [None, None],
        };
        keys.into_iter().flatten()
    }
}

impl NodeSpec {
    /// The VM that castle makes for it.
    #[must_use]
    pub fn vm(&self) -> Option<&VmSpec> {
        match &self.body {
            Body::Vm(vm) => Some(vm),
            Body::Standing(_) => None,
        }
    }

    /// Whether it has a second disk for volumes.
    #[must_use]
    pub fn has_data_disk(&self) -> bool {
        match &self.body {
            Body::Vm(vm) => vm.data_disk_gib.is_some(),
            Body::Standing(machine) => machine.data_disk,
        }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a version of three numbers, such as 1.13.9");
        let mut parts = text.split('.').map(|p| p.parse::<u16>().map_err(|_| wrong()));
        let mut next = || parts.next().unwrap_or_else(|| Err(wrong()));
        let version = Self { major: next()?, minor: next()?, patch: next()? };
        if parts.next().is_some() {
            return Err(wrong());
        }
        Ok(version)
    }
}

impl TryFrom<String> for Version {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_three_numbers() {
        assert_eq!("1.13.9".parse(), Ok(Version { major: 1, minor: 13, patch: 9 }));
        for bad in ["1.13", "v1.13.9", "1.13.9.1", "1.13.x", ""] {
            assert!(bad.parse::<Version>().is_err(), "{bad}");
        }
    }
}
