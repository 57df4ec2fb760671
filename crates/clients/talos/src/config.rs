//! The machine config of one node, for both generations of Talos' format: a function of bundle, spec and secrets.
//!
//! Up to 1.13 one main document holds nearly everything ([`mod@single`]); from 1.14 on it is split into many
//! ([`mod@split`]). What castle adds of its own (network, volumes, registries) is the same for both ([`mod@ours`]).
//! Patches of the castle file come last.

pub mod birth;
mod ours;
pub mod redact;
mod single;
mod split;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::spec::{
    NodeSpec, PatchSpec, PatchTarget, PlatformSpec, Role, SecretRef, Spec, Version,
};
use castle_model::{Class, Failure, Secret};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::authority::Authority;
use crate::bundle::Bundle;
use crate::patch;

/// The network interface of VMs: disk images for nocloud boot with `net.ifnames=0`.
pub const LINK: &str = "eth0";

/// The name of the volume on the second disk; it is mounted at `/var/mnt/longhorn`.
pub const DATA_VOLUME: &str = "longhorn";

/// The port of the Kubernetes API server, on every control plane and at the VIP.
pub const KUBERNETES_PORT: u16 = 6443;

/// The system disk of VMs.
const VM_DISK: &str = "/dev/sda";

/// The generations of the format, each named after the version of Talos that began it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Contract {
    /// One main document, with network documents beside it.
    V1_12,
    /// The same, without an empty network section.
    V1_13,
    /// Many documents.
    V1_14,
}

impl Contract {
    /// The generation that a version of Talos reads, if it is known here.
    #[must_use]
    pub fn of(talos: Version) -> Option<Self> {
        match (talos.major, talos.minor) {
            (1, 12) => Some(Self::V1_12),
            (1, 13) => Some(Self::V1_13),
            (1, 14) => Some(Self::V1_14),
            _ => None,
        }
    }
}

/// A machine config, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineConfig {
    /// The documents, as YAML. It holds keys of the cluster.
    pub text: Secret,
    /// What is odd about it, for a person.
    pub warnings: Vec<String>,
}

/// What gives the value of a secret that a castle file refers to.
pub type Secrets<'a> = &'a dyn Fn(&SecretRef) -> Result<Secret, Failure>;

/// What one config is made from.
struct Draft<'a> {
    spec: &'a Spec,
    node: &'a NodeSpec,
    bundle: &'a Bundle,
    schematic: &'a str,
    contract: Contract,
}

/// The address of the Kubernetes API, through the VIP.
#[must_use]
pub fn kubernetes_endpoint(spec: &Spec) -> String {
    format!("https://{}:{KUBERNETES_PORT}", spec.network.vip)
}

/// For castle files whose machines need no secret.
///
/// # Errors
/// Always: it is a bug to ask.
pub fn without_secrets(key: &SecretRef) -> Result<Secret, Failure> {
    Err(Failure::bug(format!("use the secret `{}`", key.0), "no secrets were read"))
}

/// Writes the machine config of a node: a function of its arguments alone. `schematic` is the id of the image
/// factory's schematic, from which upgrades will take their image.
///
/// # Errors
/// If the castle wants a version of Talos whose config is written differently, if a secret is not there, or if a
/// patch can not be applied.
pub fn machine_config(
    spec: &Spec,
    node: &NodeSpec,
    bundle: &Bundle,
    schematic: &str,
    secrets: Secrets,
) -> Result<MachineConfig, Failure> {
    let Some(contract) = Contract::of(spec.talos) else {
        return Err(Failure::new(
            Class::Invalid,
            format!("write the machine config of {}", node.name),
            format!("the config format of Talos {} is not known to this castle", spec.talos),
        )
        .hint("use Talos 1.12, 1.13 or 1.14"));
    };
    let draft = Draft { spec, node, bundle, schematic, contract };
    let encryption = ours::encryption(spec, secrets)?;
    let mut documents = match contract {
        Contract::V1_12 | Contract::V1_13 => single::documents(&draft),
        Contract::V1_14 => split::documents(&draft, encryption.as_ref()),
    };
    ours::add(&draft, encryption.as_ref(), secrets, &mut documents)?;
    let mut warnings = Vec::new();
    for patch in spec.machine.patches.iter().filter(|patch| is_for(patch, node)) {
        let patched = patch::apply(&documents, &patch.text, contract)
            .map_err(|error| refused(&error, patch, node))?;
        if patched == documents {
            warnings.push(format!("the patch {} changes nothing on {}", patch.origin, node.name));
        }
        warnings.extend(patch::lost(&documents, &patched).into_iter().map(|what| {
            format!("the patch {} does not repeat {what}, so it is lost", patch.origin)
        }));
        documents = patched;
    }
    Ok(MachineConfig { text: Secret::new(write(&documents)), warnings })
}

fn is_for(patch: &PatchSpec, node: &NodeSpec) -> bool {
    match &patch.target {
        PatchTarget::All => true,
        PatchTarget::Role(role) => *role == node.role,
        PatchTarget::Node(name) => *name == node.name,
    }
}

fn refused(error: &patch::PatchError, patch: &PatchSpec, node: &NodeSpec) -> Failure {
    let what = format!("apply the patch {} to the machine config of {}", patch.origin, node.name);
    Failure::new(Class::Invalid, what, error.to_string()).hint(error.cure())
}

/// Writes documents one after the other.
///
/// # Panics
/// Never: plain values always become YAML.
#[must_use]
pub fn write(documents: &[Value]) -> String {
    let mut text = String::new();
    for document in documents {
        if !text.is_empty() {
            text.push_str("---\n");
        }
        text.push_str(&yaml_serde::to_string(document).expect("plain values become YAML"));
    }
    text
}

/// Reads documents that [`write`] wrote, or a machine gave back; none if the text is not YAML.
#[must_use]
pub fn read(text: &str) -> Option<Vec<Value>> {
    let documents = yaml_serde::Deserializer::from_str(text).map(Value::deserialize);
    let documents: Result<Vec<Value>, _> = documents.collect();
    Some(documents.ok()?.into_iter().filter(|document| !document.is_null()).collect())
}

impl Draft<'_> {
    fn is_control_plane(&self) -> bool {
        self.node.role == Role::ControlPlane
    }

    /// What Talos calls the role.
    fn machine_type(&self) -> &'static str {
        match self.node.role {
            Role::ControlPlane => "controlplane",
            Role::Worker => "worker",
        }
    }

    /// The image that installs and upgrades Talos.
    fn installer(&self) -> String {
        let platform = match &self.spec.platform {
            PlatformSpec::Proxmox(_) => "nocloud",
            PlatformSpec::Machines(machines) => &machines.installer,
        };
        let Self { schematic, spec, .. } = self;
        let registry = spec.downloads.installers();
        format!("{registry}/{platform}-installer/{schematic}:v{}", spec.talos)
    }

    fn install_disk(&self) -> &str {
        match &self.spec.platform {
            PlatformSpec::Proxmox(_) => VM_DISK,
            PlatformSpec::Machines(machines) => &machines.install_disk,
        }
    }

    fn link(&self) -> &str {
        match &self.spec.platform {
            PlatformSpec::Proxmox(_) => LINK,
            PlatformSpec::Machines(machines) => &machines.link,
        }
    }

    /// An image of Kubernetes' own.
    fn kubernetes_image(&self, name: &str) -> String {
        format!("registry.k8s.io/{name}:v{}", self.spec.kubernetes)
    }

    fn kubelet_image(&self) -> String {
        format!("ghcr.io/siderolabs/kubelet:v{}", self.spec.kubernetes)
    }

    /// An authority as a main document holds it; a worker is never given a key to sign with.
    fn authority(&self, authority: &Authority) -> Value {
        let key = if self.is_control_plane() {
            STANDARD.encode(authority.key.expose())
        } else {
            String::new()
        };
        json!({ "crt": STANDARD.encode(&authority.certificate), "key": key })
    }
}

/// A document beside the main one.
fn document(kind: &str, mut body: Value) -> Value {
    let mut whole = json!({ "apiVersion": "v1alpha1", "kind": kind });
    if let (Some(whole), Some(body)) = (whole.as_object_mut(), body.as_object_mut()) {
        whole.append(body);
    }
    whole
}

/// The policy that Talos itself writes: baseline enforced everywhere but in kube-system.
fn pod_security() -> Value {
    json!({
        "apiVersion": "pod-security.admission.config.k8s.io/v1alpha1",
        "kind": "PodSecurityConfiguration",
        "defaults": {
            "enforce": "baseline",
            "enforce-version": "latest",
            "audit": "restricted",
            "audit-version": "latest",
            "warn": "restricted",
            "warn-version": "latest",
        },
        "exemptions": { "namespaces": ["kube-system"], "runtimeClasses": [], "usernames": [] },
    })
}

/// What Talos itself has the API server record.
fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [{ "level": "Metadata" }],
    })
}

#[cfg(test)]
mod tests;
