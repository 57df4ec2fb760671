//! The least privileges that castle's token needs: one table, for the preflight, for the reference page and for the
//! rehearsal, which gives its token exactly these.

use std::collections::BTreeMap;

use castle_model::{Failure, Finding};
use castle_proxmox::Proxmox;

use super::wanted::Wanted;

/// What a privilege is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// All guests.
    Guests,
    /// The storage of disks.
    Disks,
    /// The storage of images.
    Images,
    /// The node.
    Node,
    /// The bridges.
    Network,
}

/// One privilege: where, which, and what for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// Where.
    pub place: Place,
    /// Which.
    pub privilege: &'static str,
    /// What for.
    pub why: &'static str,
}

const fn need(place: Place, privilege: &'static str, why: &'static str) -> Need {
    Need { place, privilege, why }
}

/// Everything that is needed, and nothing else.
pub const NEEDS: &[Need] = &[
    need(Place::Guests, "VM.Allocate", "make VMs and remove them"),
    need(
        Place::Guests,
        "VM.Audit",
        "see guests, their settings and their state; without it Proxmox hides them",
    ),
    need(Place::Guests, "VM.Config.CPU", "set processors"),
    need(Place::Guests, "VM.Config.Disk", "set the boot order, and grow disks"),
    need(
        Place::Guests,
        "VM.Config.HWType",
        "set the machine type, the SCSI controller and the SMBIOS UUID",
    ),
    need(Place::Guests, "VM.Config.Memory", "set memory"),
    need(Place::Guests, "VM.Config.Network", "set the network card and the static address"),
    need(
        Place::Guests,
        "VM.Config.Options",
        "set name, tags, description, firmware and start at boot",
    ),
    need(Place::Guests, "VM.PowerMgmt", "switch VMs on and off"),
    need(Place::Disks, "Datastore.AllocateSpace", "make disks"),
    need(Place::Images, "Datastore.Allocate", "remove the Talos image"),
    need(Place::Images, "Datastore.AllocateTemplate", "fetch the Talos image"),
    need(Place::Images, "Datastore.Audit", "see the Talos image, and make disks from it"),
    need(Place::Node, "Sys.AccessNetwork", "let the node fetch the Talos image"),
    need(Place::Node, "Sys.Audit", "see the node's memory, processors and tasks"),
    need(Place::Network, "SDN.Use", "use the bridge"),
];

impl Place {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Guests, Self::Disks, Self::Images, Self::Node, Self::Network];

    /// Its path in an ACL, for a storage of disks, one of images, and a node.
    #[must_use]
    pub fn path(self, disks: &str, images: &str, node: &str) -> String {
        match self {
            Self::Guests => "/vms".to_owned(),
            Self::Disks => format!("/storage/{disks}"),
            Self::Images => format!("/storage/{images}"),
            Self::Node => format!("/nodes/{node}"),
            Self::Network => "/sdn/zones/localnetwork".to_owned(),
        }
    }

    /// The name of the role that holds what is needed there.
    #[must_use]
    pub fn role(self) -> &'static str {
        match self {
            Self::Guests => "CastleGuests",
            Self::Disks => "CastleDisks",
            Self::Images => "CastleImages",
            Self::Node => "CastleNode",
            Self::Network => "CastleNetwork",
        }
    }

    /// Whether what is needed there is used below it: at a guest, at a bridge.
    fn reaches_down(self) -> bool {
        matches!(self, Self::Guests | Self::Network)
    }

    /// What is needed there.
    pub fn privileges(self) -> impl Iterator<Item = &'static Need> {
        NEEDS.iter().filter(move |need| need.place == self)
    }
}

/// What the token may at each place, and whether it may so below, too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Held(BTreeMap<Place, BTreeMap<String, bool>>);

impl Held {
    /// Asks Proxmox.
    pub(super) async fn look(client: &Proxmox, spec: &Wanted) -> Result<Self, Failure> {
        let mut held = BTreeMap::new();
        for place in Place::ALL {
            let path = path(spec, place);
            let found = client.privileges(&path).await;
            let found = found
                .map_err(|error| error.failure(format!("ask what the token may at {path}")))?;
            held.insert(place, found);
        }
        Ok(Self(held))
    }

    /// What is held by whoever has these.
    #[cfg(test)]
    pub(super) fn of(needs: &[Need]) -> Self {
        let mut held: BTreeMap<Place, BTreeMap<String, bool>> = BTreeMap::new();
        for need in needs {
            held.entry(need.place).or_default().insert(need.privilege.to_owned(), true);
        }
        Self(held)
    }

    /// Whether it has a privilege, wherever that is used.
    pub(super) fn has(&self, place: Place, privilege: &str) -> bool {
        self.below(place, privilege).is_some_and(|below| below || !place.reaches_down())
    }

    /// Whether a privilege that it has at a place holds below, too.
    fn below(&self, place: Place, privilege: &str) -> Option<bool> {
        self.0.get(&place)?.get(privilege).copied()
    }

    /// Whether nothing is missing at a place.
    pub(super) fn is_whole(&self, place: Place) -> bool {
        place.privileges().all(|need| self.has(place, need.privilege))
    }

    /// Everything that is missing, each with the commands that grant it.
    pub(super) fn missing(&self, spec: &Wanted) -> Vec<Finding> {
        let lacking = NEEDS.iter().filter(|need| !self.has(need.place, need.privilege));
        lacking
            .map(|need| {
                let path = path(spec, need.place);
                let role = need.place.role();
                let lacks = match self.below(need.place, need.privilege) {
                    Some(_) => format!("the token has {} only there, and not below (it was given with `--propagate 0`), where it", need.privilege),
                    None => format!("the token lacks {}, which", need.privilege),
                };
                Finding::new(
                    format!("privileges at {path}"),
                    format!("{lacks} is needed to {}", need.why),
                    format!(
                        "on the host: pveum role modify {role} --append 1 --privs {}; pveum acl modify {path} --roles {role} \
                         --users USER@REALM; and the same with --tokens 'USER@REALM!ID' (the token has only what its user has, too; \
                         docs/reference/proxmox-role.md)",
                        need.privilege
                    ),
                )
            })
            .collect()
    }
}

fn path(spec: &Wanted, place: Place) -> String {
    let platform = &spec.platform;
    place.path(&platform.storage, &platform.image_storage, &platform.node)
}

/// How the reference page begins.
const PAGE: &str = "<!-- Written by `cargo xtask docs` from the table in crates/platforms/src/proxmox/privileges.rs. -->

# Least privileges on Proxmox

castle speaks to Proxmox with an API token. These privileges are all that it needs; each is used, and the rehearsal's token has
exactly these. `castle up` asks for them before anything is made and names each one that is missing.

| path | privilege | needed to |
|---|---|---|
";

/// What it says between its table and its commands.
const COMMANDS: &str = "
`DISKS` is the castle file's `storage`, `IMAGES` its `image_storage`, `NODE` its `node`. Where one storage is both, it gets
both roles: `--roles CastleDisks,CastleImages`.

## Commands

To be run once, as root on the host. A token with privilege separation has only what both it and its user were given, so every
role is granted twice. `pveum user token add` shows the token's secret, once.

```sh
";

/// How it ends.
const END: &str = "```

The token's name is then `castle@pve!castle`. Where bridges belong to another zone than `localnetwork`, that zone's path
takes its place.
";

/// The reference page.
#[must_use]
pub fn page() -> String {
    let path = |place: Place| place.path("DISKS", "IMAGES", "NODE");
    let row =
        |need: &Need| format!("| `{}` | `{}` | {} |\n", path(need.place), need.privilege, need.why);
    let role = |place: Place| {
        let names: Vec<&str> = place.privileges().map(|need| need.privilege).collect();
        format!("pveum role add {} --privs {}\n", place.role(), names.join(","))
    };
    let grant = |place: Place| {
        let command = format!("pveum acl modify {} --roles {}", path(place), place.role());
        format!("{command} --users castle@pve\n{command} --tokens 'castle@pve!castle'\n")
    };
    let rows: String = NEEDS.iter().map(row).collect();
    let roles: String = Place::ALL.into_iter().map(role).collect();
    let token = "pveum user add castle@pve\npveum user token add castle@pve castle --privsep 1\n";
    let grants: String = Place::ALL.into_iter().map(grant).collect();
    [PAGE, &rows, COMMANDS, &roles, token, &grants, END].concat()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use castle_rehearsal::proxmox::ROLE;

    use super::*;

    #[test]
    fn the_rehearsal_gives_exactly_these() {
        let ours: BTreeSet<(String, &str)> =
            NEEDS.iter().map(|need| (format!("{:?}", need.place), need.privilege)).collect();
        let theirs: BTreeSet<(String, &str)> = ROLE
            .iter()
            .flat_map(|(place, held)| held.iter().map(move |name| (format!("{place:?}"), *name)))
            .collect();
        assert_eq!(ours, theirs);
    }
}
