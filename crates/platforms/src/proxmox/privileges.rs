//! The least privileges that castle's token needs: one table, for the preflight, for the reference page and for the
//! rehearsal, which gives its token exactly these.

use std::collections::BTreeMap;

use castle_model::{Failure, Finding, VmId};
use castle_proxmox::Proxmox;

use super::wanted::Wanted;

/// The zone of the bridges that are a node's own.
const LOCAL: &str = "localnetwork";

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
    /// The bridge.
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

    /// Its path in an ACL, for a storage of disks, one of images, a node, and a bridge of that node's own.
    #[must_use]
    pub fn path(self, disks: &str, images: &str, node: &str, bridge: &str) -> String {
        match self {
            Self::Guests => "/vms".to_owned(),
            Self::Disks => format!("/storage/{disks}"),
            Self::Images => format!("/storage/{images}"),
            Self::Node => format!("/nodes/{node}"),
            Self::Network => format!("/sdn/zones/localnetwork/{bridge}"),
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

    /// Whether what is needed there is used below it: at a guest.
    fn reaches_down(self) -> bool {
        self == Self::Guests
    }

    /// What is needed there.
    pub fn privileges(self) -> impl Iterator<Item = &'static Need> {
        NEEDS.iter().filter(move |need| need.place == self)
    }
}

/// Privileges at a path, each with whether it holds below the path, too.
type Rights = BTreeMap<String, bool>;

/// What the token may.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// At each place.
    places: BTreeMap<Place, Rights>,
    /// At each declared VM, where it lacks something for all of them: it may have been given these alone, or a pool
    /// that they are in.
    each: BTreeMap<VmId, Rights>,
    /// Whether the bridge is a vnet of a zone.
    vnet: bool,
}

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
        let mut held = Self { places: held, ..Self::default() };
        if !held.is_whole(Place::Guests) {
            for vmid in spec.nodes.iter().map(|node| node.vmid) {
                let path = format!("/vms/{vmid}");
                let found = client.privileges(&path).await;
                let found = found
                    .map_err(|error| error.failure(format!("ask what the token may at {path}")))?;
                held.each.insert(vmid, found);
            }
        }
        Ok(held)
    }

    /// Asks anew what the token may at the bridge, which is a vnet: then its zone decides. Which zone that is Proxmox
    /// tells only to those with SDN.Audit, so any that the token may use counts.
    pub(super) async fn look_at_vnet(
        &mut self,
        client: &Proxmox,
        vnet: &str,
    ) -> Result<(), Failure> {
        let all = client.all_privileges().await;
        let all = all.map_err(|error| error.failure("ask what the token may in zones"))?;
        let usable = all.iter().any(|(path, held)| {
            let below = held.get("SDN.Use");
            match path.trim_matches('/').split('/').collect::<Vec<_>>()[..] {
                ["" | "sdn"] | ["sdn", "zones"] => below == Some(&true),
                ["sdn", "zones", zone] => zone != LOCAL && below == Some(&true),
                ["sdn", "zones", zone, name] => zone != LOCAL && name == vnet && below.is_some(),
                _ => false,
            }
        });
        self.vnet = true;
        let held = usable.then(|| ("SDN.Use".to_owned(), true)).into_iter().collect();
        self.places.insert(Place::Network, held);
        Ok(())
    }

    /// What is held by whoever has these.
    #[cfg(test)]
    pub(super) fn of(needs: &[Need]) -> Self {
        let mut held: BTreeMap<Place, BTreeMap<String, bool>> = BTreeMap::new();
        for need in needs {
            held.entry(need.place).or_default().insert(need.privilege.to_owned(), true);
        }
        Self { places: held, ..Self::default() }
    }

    /// Whether it has a privilege, wherever that is used.
    pub(super) fn has(&self, place: Place, privilege: &str) -> bool {
        self.everywhere(place, privilege)
            || (place == Place::Guests
                && !self.each.is_empty()
                && self.each.values().all(|held| held.contains_key(privilege)))
    }

    /// Whether it has a privilege at a place and at all that may come to be there.
    fn everywhere(&self, place: Place, privilege: &str) -> bool {
        self.below(place, privilege).is_some_and(|below| below || !place.reaches_down())
    }

    /// Whether the token may see the declared VMs and no others: what is not shown may be there all the same.
    pub(super) fn is_short_sighted(&self) -> bool {
        self.has(Place::Guests, "VM.Audit") && !self.everywhere(Place::Guests, "VM.Audit")
    }

    /// The path that a privilege is missing at, for a person: that of single VMs if others have it.
    fn gap(&self, spec: &Wanted, need: &Need) -> String {
        let lacks = |held: &Rights| !held.contains_key(need.privilege);
        if need.place == Place::Guests && self.each.values().any(|held| !lacks(held)) {
            let gaps = self.each.iter().filter(|(_, held)| lacks(held));
            return gaps.map(|(vmid, _)| format!("/vms/{vmid}")).collect::<Vec<_>>().join(", ");
        }
        if need.place == Place::Network && self.vnet {
            return format!("/sdn/zones/ZONE/{}", spec.platform.bridge);
        }
        path(spec, need.place)
    }

    /// Whether a privilege that it has at a place holds below, too.
    fn below(&self, place: Place, privilege: &str) -> Option<bool> {
        self.places.get(&place)?.get(privilege).copied()
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
                let path = self.gap(spec, need);
                let granted = if need.place == Place::Guests { "/vms" } else { &path };
                let role = need.place.role();
                let lacks = match self.below(need.place, need.privilege) {
                    Some(_) => format!("the token has {} only there, and not below (it was given with `--propagate 0`), where it", need.privilege),
                    None => format!("the token lacks {}, which", need.privilege),
                };
                Finding::new(
                    format!("privileges at {path}"),
                    format!("{lacks} is needed to {}", need.why),
                    format!(
                        "on the host: pveum role modify {role} --append 1 --privs {}; pveum acl modify {granted} --roles {role} \
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
    place.path(&platform.storage, &platform.image_storage, &platform.node, &platform.bridge)
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
`DISKS` is the castle file's `storage`, `IMAGES` its `image_storage`, `NODE` its `node`, `BRIDGE` its `bridge`. Where one
storage is both, it gets both roles: `--roles CastleDisks,CastleImages`.

## Commands

To be run once, as root on the host. A token with privilege separation has only what both it and its user were given, so every
role is granted twice. `pveum user token add` shows the token's secret, once.

```sh
";

/// How it ends.
const END: &str = "```

The token's name is then `castle@pve!castle`.

Other ways to give the same are as good, because what counts is what Proxmox grants at the place of use:

- `CastleGuests` at `/vms/VMID` for each declared VM instead of `/vms`. Then the token sees these VMs alone: memory that other
  guests take is not counted before the birth, and VMs of the castle with other numbers are not found after its end. castle says so.
- a pool that the VMs are in (`/pool/POOL`), once they are there: castle makes them outside of any pool.
- `CastleNetwork` at any path above the bridge. Where the bridge is a vnet, `/sdn/zones/ZONE/VNET` of its own zone takes the place
  of `localnetwork`.
";

/// The reference page.
#[must_use]
pub fn page() -> String {
    let path = |place: Place| place.path("DISKS", "IMAGES", "NODE", "BRIDGE");
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
