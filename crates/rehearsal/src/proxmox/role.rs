//! The least privileges that a castle's token needs, by path: the one list that the rehearsal's token is born with.
//!
//! Which check asks for which:
//!
//! | path | privilege | needed by |
//! |---|---|---|
//! | `/vms` | `VM.Allocate` | create, delete |
//! | | `VM.Audit` | lists, config, status |
//! | | `VM.Config.CPU` | `cores`, `cpu`, `sockets` |
//! | | `VM.Config.Disk` | `boot`, resize |
//! | | `VM.Config.HWType` | `machine`, `scsihw`, `smbios1` |
//! | | `VM.Config.Memory` | `memory`, `balloon` |
//! | | `VM.Config.Network` | `net0`; it is also enough for `ipconfig0` and `nameserver` |
//! | | `VM.Config.Options` | `name`, `description`, `tags`, `bios`, `ostype`, `onboot`, `agent` |
//! | | `VM.PowerMgmt` | start, stop |
//! | disks' storage | `Datastore.AllocateSpace` | every new disk; it also shows the storage in lists |
//! | images' storage | `Datastore.AllocateTemplate` | download-url |
//! | | `Datastore.Audit` | its content, and disks made from it |
//! | | `Datastore.Allocate` | the removal of an image |
//! | the node | `Sys.Audit` | its memory and processors |
//! | | `Sys.AccessNetwork` | download-url |
//! | the bridge | `SDN.Use` | the bridge of a card, and bridges in lists |

use super::ProxmoxBirth;

/// Where a privilege is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// All guests.
    Guests,
    /// The storage of disks.
    Disks,
    /// The storage of images.
    Images,
    /// The node.
    Node,
    /// The bridge.
    Network,
}

/// The least privileges of a castle's token.
pub const ROLE: &[(Place, &[&str])] = &[
    (
        Place::Guests,
        &[
            "VM.Allocate",
            "VM.Audit",
            "VM.Config.CPU",
            "VM.Config.Disk",
            "VM.Config.HWType",
            "VM.Config.Memory",
            "VM.Config.Network",
            "VM.Config.Options",
            "VM.PowerMgmt",
        ],
    ),
    (Place::Disks, &["Datastore.AllocateSpace"]),
    (Place::Images, &["Datastore.Allocate", "Datastore.AllocateTemplate", "Datastore.Audit"]),
    (Place::Node, &["Sys.AccessNetwork", "Sys.Audit"]),
    (Place::Network, &["SDN.Use"]),
];

impl Place {
    /// Its path in an ACL.
    #[must_use]
    pub fn path(self, birth: &ProxmoxBirth) -> String {
        match self {
            Self::Guests => "/vms".to_owned(),
            Self::Disks => format!("/storage/{}", birth.storage),
            Self::Images => format!("/storage/{}", birth.image_storage),
            Self::Node => format!("/nodes/{}", birth.node),
            Self::Network => format!("/sdn/zones/localnetwork/{}", birth.bridge),
        }
    }
}
