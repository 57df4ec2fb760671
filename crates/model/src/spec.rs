//! The castle that a user wants: validated, complete, free of syntax. `config` makes it from `castle.hcl`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::address::{AddressRange, Subnet};
use crate::deadline::Deadlines;
use crate::name::{CastleName, LayerName, NodeName, VmId};

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
    /// Deadlines that differ from the defaults.
    pub deadlines: Deadlines,
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

/// A reference to a secret by its key in the secret source. It stays a reference until the moment of use.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretRef(pub String);

/// The secret source: Infisical.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsSpec {
    /// The server, such as `https://eu.infisical.com`, without a trailing slash.
    pub host: String,
    /// The project's slug.
    pub project: String,
    /// The environment's slug.
    pub environment: String,
    /// The folder with the castle's secrets.
    pub path: String,
    /// Keys that must be there beyond those the castle itself uses.
    pub require: Vec<String>,
    /// What `down` does with the escrowed entries.
    pub escrow: EscrowAfterDown,
}

/// What becomes of escrowed entries when the castle goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EscrowAfterDown {
    /// Removed, once no VM of the castle is left.
    #[default]
    Remove,
    /// Kept; the next birth overwrites them.
    Keep,
}

/// The platform: Proxmox VE.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlatformSpec {
    /// The API, such as `https://pve.lan:8006`.
    pub endpoint: String,
    /// How its certificate is verified.
    pub trust: Trust,
    /// The token's name, `USER@REALM!ID`.
    pub token_id: SecretRef,
    /// The token's secret.
    pub token_secret: SecretRef,
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

/// Settings of External Secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineSpec {
    /// Whether castle installs it.
    pub enabled: bool,
}

/// Settings of MetalLB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkingSpec {
    /// Whether castle installs it.
    pub enabled: bool,
}

/// Settings of Longhorn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSpec {
    /// Whether castle installs it.
    pub enabled: bool,
    /// Copies of each volume.
    pub replicas: u32,
}

/// Settings of Flux and of the repository it follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GitopsSpec {
    /// Whether castle installs Flux and hands over.
    pub enabled: bool,
    /// The repository, https.
    pub url: String,
    /// The branch it follows.
    pub branch: String,
    /// The folder of this cluster in the repository.
    pub path: String,
    /// The token that reads the repository; none for a public one.
    pub token: Option<SecretRef>,
    /// Values for the ConfigMap `cluster-vars`.
    pub vars: BTreeMap<String, String>,
}

/// A layer beyond those built in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtraLayer {
    /// Its name.
    pub name: LayerName,
    /// Layers that must be finished before.
    pub after: Vec<LayerName>,
    /// The YAML files to apply, by their path relative to the castle file, with their text.
    pub manifests: BTreeMap<String, String>,
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
        let mut keys = vec![self.platform.token_id.0.clone(), self.platform.token_secret.0.clone()];
        if self.gitops.enabled {
            keys.extend(self.gitops.token.iter().map(|t| t.0.clone()));
        }
        keys.extend(self.secrets.require.iter().cloned());
        keys.sort();
        keys.dedup();
        keys
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
