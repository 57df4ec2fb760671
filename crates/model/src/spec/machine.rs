//! What every machine's Talos is told beyond the necessary: certificates, encryption, registries, patches.

use serde::{Deserialize, Serialize};

use super::{Role, SecretRef};
use crate::name::NodeName;

/// What every machine's Talos is told beyond the necessary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSpec {
    /// Names and addresses that certificates of the machines and of the API server carry besides their own.
    pub cert_sans: Vec<String>,
    /// Whether Kubernetes' secrets are encrypted in etcd, by the bundle's secretbox key.
    pub secretbox: bool,
    /// How the disks are encrypted, if they are.
    pub disk_encryption: Option<DiskEncryption>,
    /// Whether Talos installs and keeps CoreDNS.
    pub coredns: bool,
    /// Kernel modules to load.
    pub kernel_modules: Vec<String>,
    /// Registries with mirrors or credentials, by host.
    pub registries: Vec<RegistrySpec>,
    /// Patches of the generated config, in the order in which they are applied.
    pub patches: Vec<PatchSpec>,
}

/// Where the key comes from that a disk is encrypted with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskEncryption {
    /// Derived from the machine's UUID: against disks that are thrown away, not against thieves of machines.
    NodeId,
    /// Sealed by the machine's TPM.
    Tpm,
    /// A passphrase.
    Passphrase(SecretRef),
}

/// A container registry as the machines see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrySpec {
    /// The registry's host, such as `docker.io`.
    pub host: String,
    /// Servers that are asked in its place, in this order.
    pub mirrors: Vec<String>,
    /// Whether the registry itself is never asked when all mirrors fail.
    pub skip_fallback: bool,
    /// The PEM certificate of the authority that its certificate (or that of its mirror) is verified by.
    pub ca: Option<String>,
    /// Who the machines are to it.
    pub username: Option<SecretRef>,
    /// The password.
    pub password: Option<SecretRef>,
}

/// A patch of the generated machine configs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PatchSpec {
    /// The machines whose config it changes.
    pub target: PatchTarget,
    /// Where it stands, for messages: a file's path, or `castle.hcl:40`.
    pub origin: String,
    /// The patch: YAML documents to be merged.
    pub text: String,
}

/// The machines that a patch is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchTarget {
    /// All of them.
    All,
    /// Those of one role.
    Role(Role),
    /// One.
    Node(NodeName),
}

impl MachineSpec {
    /// The keys that it needs from the secret source.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretRef> {
        let disk = self.disk_encryption.iter().filter_map(|encryption| match encryption {
            DiskEncryption::Passphrase(key) => Some(key),
            DiskEncryption::NodeId | DiskEncryption::Tpm => None,
        });
        let registries = self.registries.iter();
        disk.chain(
            registries.flat_map(|registry| registry.username.iter().chain(&registry.password)),
        )
    }
}

impl Default for MachineSpec {
    fn default() -> Self {
        Self {
            cert_sans: Vec::new(),
            secretbox: true,
            disk_encryption: None,
            coredns: true,
            kernel_modules: Vec::new(),
            registries: Vec::new(),
            patches: Vec::new(),
        }
    }
}
