//! Troubles: what goes wrong in the datacenter because somebody says so, such as a test.
//!
//! A trouble is an input of the world like any other: it is logged, and a replay meets it again.

use serde::{Deserialize, Serialize};

pub use crate::infisical::InfisicalTrouble;
pub use crate::kubernetes::{FluxTrouble, KubernetesTrouble, Named};
pub use crate::proxmox::{Breakage, Fault, Moment, ProxmoxTrouble};
pub use crate::sources::file::{Download, SourcesTrouble};
pub use crate::sources::git::GitTrouble;
pub use crate::talos::TalosTrouble;

/// Something that goes wrong, by the part that suffers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// In Proxmox, or done to it by others who use it.
    Proxmox(ProxmoxTrouble),
    /// With the machines.
    Talos(TalosTrouble),
    /// With Infisical, or in front of it.
    Infisical(InfisicalTrouble),
    /// At the Git host, or in a repository by others who push to it.
    Git(GitTrouble),
    /// With Flux.
    Flux(FluxTrouble),
    /// With downloads.
    Sources(SourcesTrouble),
    /// In the cluster.
    Kubernetes(KubernetesTrouble),
}

impl From<GitTrouble> for Trouble {
    fn from(trouble: GitTrouble) -> Self {
        Self::Git(trouble)
    }
}

impl From<FluxTrouble> for Trouble {
    fn from(trouble: FluxTrouble) -> Self {
        Self::Flux(trouble)
    }
}

impl From<KubernetesTrouble> for Trouble {
    fn from(trouble: KubernetesTrouble) -> Self {
        Self::Kubernetes(trouble)
    }
}

impl From<SourcesTrouble> for Trouble {
    fn from(trouble: SourcesTrouble) -> Self {
        Self::Sources(trouble)
    }
}

impl From<InfisicalTrouble> for Trouble {
    fn from(trouble: InfisicalTrouble) -> Self {
        Self::Infisical(trouble)
    }
}

impl From<TalosTrouble> for Trouble {
    fn from(trouble: TalosTrouble) -> Self {
        Self::Talos(trouble)
    }
}

impl From<ProxmoxTrouble> for Trouble {
    fn from(trouble: ProxmoxTrouble) -> Self {
        Self::Proxmox(trouble)
    }
}
