//! Disks by the number that they bear: on which storages they lie, which configuration names them, who else has them.

use std::collections::BTreeMap;

use castle_model::{Failure, VmId};
use castle_proxmox::{Config, Guest, GuestKind, Proxmox, Volume};
use futures::FutureExt as _;
use futures::stream::{self, StreamExt as _};

use super::inventory::AT_ONCE;

/// The kinds of content that guests hold. Backups bear a number, too, and are nobody's leftovers.
const HELD: [&str; 2] = ["images", "rootdir"];

/// A disk on a storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Disk {
    pub(super) vmid: VmId,
    pub(super) volid: String,
    pub(super) size: u64,
    /// The node that has it; none if every node of the cluster does.
    pub(super) node: Option<String>,
}

impl Disk {
    fn of(volume: Volume, node: Option<String>) -> Option<Self> {
        let vmid = u32::try_from(volume.vmid).ok().filter(|vmid| *vmid > 0)?;
        Some(Self { vmid: VmId(vmid), volid: volume.volid, size: volume.size, node })
    }
}

/// The disks of some numbers on every storage that a node sees.
///
/// # Errors
/// If Proxmox does not answer, or a storage can not be read: what lies there is not known then.
pub(super) async fn bearing(
    client: &Proxmox,
    node: &str,
    wanted: impl Fn(VmId) -> bool,
) -> Result<Vec<Disk>, Failure> {
    let what = || format!("look for disks on the storages of {node}");
    let storages = client.storages(node).await.map_err(|error| error.failure(what()))?;
    let mut lists = Vec::new();
    for storage in storages.iter().filter(|storage| storage.enabled) {
        for kind in HELD.into_iter().filter(|kind| storage.takes(kind)) {
            lists.push(client.content(node, &storage.storage, Some(kind)).map(move |listed| {
                listed.map(|volumes| (volumes, (!storage.shared).then(|| node.to_owned())))
            }));
        }
    }
    let mut lists = stream::iter(lists).buffered(AT_ONCE);
    let mut found = Vec::new();
    while let Some(listed) = lists.next().await {
        let (volumes, on) = listed.map_err(|error| error.failure(what()))?;
        let disks = volumes.into_iter().filter_map(|volume| Disk::of(volume, on.clone()));
        found.extend(disks.filter(|disk| wanted(disk.vmid)));
    }
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whose number a volume bears, by its name: `local-lvm:vm-421-disk-0`, `local:421/vm-421-disk-0.qcow2`.
pub(super) fn number_of(volid: &str) -> Option<VmId> {
    let name = volid.rsplit([':', '/']).next()?;
    let rest =
        ["vm-", "base-", "subvol-", "basevol-"].iter().find_map(|kind| name.strip_prefix(kind))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(VmId)
}

/// The volumes in a guest's configuration that bear another guest's number: Proxmox leaves them when it goes.
pub(super) fn borrowed(vmid: VmId, config: &Config) -> Vec<(String, VmId)> {
    let named = config.volumes().into_values();
    let other = named.filter_map(|volid| Some((volid.to_owned(), number_of(volid)?)));
    other.filter(|(_, owner)| *owner != vmid).collect()
}

/// Disks that bear a guest's number and are not in its configuration.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Loose {
    /// Those that no guest has.
    pub(super) free: Vec<String>,
    /// Those in the configuration of another guest.
    pub(super) lent: Vec<(String, VmId)>,
    /// Whether guests are hidden from us, or on a node that is off, so that nobody can say who has them.
    pub(super) blind: bool,
}

impl Loose {
    /// Looks for them. The other guests are asked only where there is something to ask about.
    pub(super) async fn look(
        client: &Proxmox,
        node: &str,
        vmid: VmId,
        config: &Config,
    ) -> Result<Self, Failure> {
        let own: Vec<&str> = config.volumes().into_values().collect();
        let mut disks = bearing(client, node, |number| number == vmid).await?;
        disks.retain(|disk| !own.contains(&disk.volid.as_str()));
        let everywhere = disks.iter().any(|disk| disk.node.is_none());
        let mut free: Vec<String> = disks.into_iter().map(|disk| disk.volid).collect();
        if free.is_empty() {
            return Ok(Self::default());
        }
        let what = format!("look who has the disks that bear the number {vmid}");
        let seen = client.privileges("/vms").await.map_err(|error| error.failure(&what))?;
        let Users { had: mut lent, unseen } = users(client, &free).await?;
        let blind = seen.get("VM.Audit") != Some(&true) || (unseen && everywhere);
        lent.retain(|(_, user)| *user != vmid);
        free.retain(|volid| !lent.iter().any(|(had, _)| had == volid));
        Ok(Self { free, lent, blind })
    }

    /// What stays of them, in words: what another guest has, and what Proxmox could not take without that.
    pub(super) fn staying(&self) -> Vec<String> {
        let lent = self.lent.iter().map(|(volid, user)| format!("{volid}, which guest {user} has"));
        let free = self.free.iter().filter(|_| !self.may_go());
        let why = if self.blind {
            "not every guest can be seen, and one may have it"
        } else {
            "Proxmox takes all that bear the number, or none"
        };
        let free = free.map(|volid| format!("{volid}: {why}"));
        lent.chain(free).collect()
    }

    /// Whether Proxmox may remove whatever bears the number.
    pub(super) fn may_go(&self) -> bool {
        !self.free.is_empty() && self.lent.is_empty() && !self.blind
    }
}

/// Which guests have some volumes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Users {
    /// The volumes, each with a guest that has it.
    pub(super) had: Vec<(String, VmId)>,
    /// Whether there are guests on nodes that are not online: they may have what every node of the cluster has.
    pub(super) unseen: bool,
}

/// Which guests have some volumes in their configuration, whatever number those bear.
pub(super) async fn users(client: &Proxmox, volids: &[String]) -> Result<Users, Failure> {
    if volids.is_empty() {
        return Ok(Users::default());
    }
    let guests = client.guests().await;
    let guests = guests.map_err(|error| error.failure("look which guests have some disks"))?;
    let off = off(client).await?;
    let mut found = Users::default();
    for guest in guests {
        if off.contains_key(&guest.node) {
            found.unseen = true;
            continue;
        }
        let Some(config) = config_of(client, &guest).await? else { continue };
        let had: Vec<&str> = config.volumes().into_values().collect();
        let had = volids.iter().filter(|volid| had.contains(&volid.as_str()));
        found.had.extend(had.map(|volid| (volid.clone(), guest.vmid)));
    }
    Ok(found)
}

/// The nodes of the cluster that are not online, each with its status: nothing on them can be asked for.
pub(super) async fn off(client: &Proxmox) -> Result<BTreeMap<String, String>, Failure> {
    let nodes = client.nodes().await.map_err(|error| error.failure("list the nodes"))?;
    let off = nodes.into_iter().filter(|node| node.status != "online");
    Ok(off.map(|node| (node.node, node.status)).collect())
}

/// A guest's configuration; none if it has gone.
pub(super) async fn config_of(client: &Proxmox, guest: &Guest) -> Result<Option<Config>, Failure> {
    let config = match guest.kind {
        GuestKind::Vm => client.vm_config(&guest.node, guest.vmid).await,
        GuestKind::Container => client.container_config(&guest.node, guest.vmid).await,
    };
    match config {
        Ok(config) => Ok(Some(config)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.failure(format!("read the configuration of guest {}", guest.vmid))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_bears_the_number_of_its_owner() {
        for (volid, number) in [
            ("local-lvm:vm-421-disk-0", Some(421)),
            ("local-lvm:vm-421-cloudinit", Some(421)),
            ("local:421/vm-421-disk-0.qcow2", Some(421)),
            ("local:700/base-700-disk-0.qcow2/701/vm-701-disk-0.qcow2", Some(701)),
            ("tank:subvol-999-disk-1", Some(999)),
            ("local:iso/talos.iso", None),
            ("local:import/talos-1.13.9.qcow2", None),
        ] {
            assert_eq!(number_of(volid), number.map(VmId), "{volid}");
        }
    }

    #[test]
    fn what_bears_another_number_is_borrowed() {
        let config = Config(BTreeMap::from([
            ("scsi0".to_owned(), "local-lvm:vm-421-disk-0,size=40G".to_owned()),
            ("scsi2".to_owned(), "local-lvm:vm-999-disk-0,size=8G".to_owned()),
        ]));
        let found = borrowed(VmId(421), &config);
        assert_eq!(found, [("local-lvm:vm-999-disk-0".to_owned(), VmId(999))]);
        assert_eq!(borrowed(VmId(999), &Config::default()), []);
    }
}
