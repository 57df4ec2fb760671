//! The layers above the platform as wanted: who installs each, in which version, with which settings and patches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{SecretRef, Version};
use crate::name::LayerName;

/// Who installs a built-in layer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LayerOwner {
    /// castle applies it and proves it.
    #[default]
    Castle,
    /// Flux does, from the repository; castle applies nothing of it and only runs its gates.
    Flux,
}

/// Settings of External Secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EngineSpec {
    /// Whether the castle has it.
    pub enabled: bool,
    /// Who installs it.
    pub owner: LayerOwner,
    /// The version, if the castle file names one; else the catalogue's.
    pub version: Option<Version>,
    /// Copies of each of its Deployments, if the castle file says how many.
    pub replicas: Option<u32>,
    /// What its containers ask for, if the castle file says.
    pub resources: ResourcesSpec,
    /// Patches of its objects, in the order in which they are applied.
    pub patches: Vec<ObjectPatch>,
}

/// What a container asks for, as Kubernetes writes quantities: `100m`, `128Mi`. What is none stays as released.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourcesSpec {
    /// Processor time that is set aside.
    pub cpu: Option<String>,
    /// Memory that is set aside.
    pub memory: Option<String>,
    /// Memory beyond which it is ended.
    pub memory_limit: Option<String>,
}

/// Settings of MetalLB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkingSpec {
    /// Whether the castle has it.
    pub enabled: bool,
    /// Who installs it.
    pub owner: LayerOwner,
    /// The version, if the castle file names one; else the catalogue's.
    pub version: Option<Version>,
    /// Whether speakers run on control planes, and those announce addresses, too.
    pub control_planes: bool,
    /// Patches of its objects, in the order in which they are applied.
    pub patches: Vec<ObjectPatch>,
}

impl Default for NetworkingSpec {
    fn default() -> Self {
        Self {
            enabled: false,
            owner: LayerOwner::Castle,
            version: None,
            control_planes: true,
            patches: Vec::new(),
        }
    }
}

/// Settings of Longhorn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageSpec {
    /// Whether the castle has it.
    pub enabled: bool,
    /// Who installs it.
    #[serde(default)]
    pub owner: LayerOwner,
    /// The version, if the castle file names one; else the catalogue's.
    #[serde(default)]
    pub version: Option<Version>,
    /// Copies of each volume.
    pub replicas: u32,
    /// The folder of each storage node that volumes live in; none: where Talos mounts the data disk, or Longhorn's own default.
    #[serde(default)]
    pub data_path: Option<String>,
    /// How much may be promised of a disk, in percent of it; none: Longhorn's own default.
    #[serde(default)]
    pub over_provisioning: Option<u32>,
    /// Patches of its objects, in the order in which they are applied.
    #[serde(default)]
    pub patches: Vec<ObjectPatch>,
}

/// Settings of Flux and of the repository it follows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitopsSpec {
    /// Whether castle installs Flux and hands over.
    pub enabled: bool,
    /// The version, if the castle file names one; else the catalogue's.
    pub version: Option<Version>,
    /// The repository, https.
    pub url: String,
    /// The branch it follows.
    pub branch: String,
    /// The folder of this cluster in the repository.
    pub path: String,
    /// The token that reads the repository; none for a public one.
    pub token: Option<SecretRef>,
    /// How the token comes into the cluster.
    pub credentials: GitCredentials,
    /// Values for the ConfigMap `cluster-vars`.
    pub vars: BTreeMap<String, String>,
    /// Kustomizations whose being ready is told as an event of its own, in the order of the castle file.
    pub milestones: Vec<String>,
    /// Patches of its objects, in the order in which they are applied.
    pub patches: Vec<ObjectPatch>,
}

/// How the repository's token comes into the cluster.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitCredentials {
    /// Through External Secrets, from where the castle reads its secrets.
    Engine,
    /// Placed by castle itself.
    #[default]
    Direct,
}

/// A patch of one object of a release, or of all that fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectPatch {
    /// The kind of the objects that it changes.
    pub kind: String,
    /// Their name; none: all of the kind.
    pub name: Option<String>,
    /// Where it stands, for messages: a file's path, or `castle.hcl:40`.
    pub origin: String,
    /// The patch: one YAML document that is merged into the object (RFC 7386, lists with a key field by that key).
    pub text: String,
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
    /// A manifest that is fetched, in place of files.
    #[serde(default)]
    pub url: Option<UrlManifest>,
}

/// A manifest at an address, by its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlManifest {
    /// The address, https or file.
    pub url: String,
    /// SHA-256 of the text, 64 lower-case hexadecimal digits.
    pub sha256: String,
}
