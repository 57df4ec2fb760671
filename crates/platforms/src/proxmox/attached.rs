//! Volumes that would die with their guest although another guest has them attached, too: whoever did that wants them kept.

use castle_model::{Failure, VmId};
use castle_proxmox::{Config, Guest, GuestKind, Proxmox};
use futures::stream::{self, StreamExt as _};

use super::disks::{config_of, number_of, off};
use super::inventory::AT_ONCE;
use crate::audit::patiently;

/// Which guest has which volume attached, as far as guests can be looked at.
#[derive(Debug, Default)]
pub(super) struct Attached(Vec<Use>);

/// A volume in a guest's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Use {
    /// The guest.
    user: VmId,
    kind: GuestKind,
    /// The key of its configuration.
    key: String,
    pub(super) volid: String,
}

impl Attached {
    /// Asks every guest but one, which is `but`'s number. A guest that the token does not see, whose node is off, or that
    /// gives no answer for half a minute, has nothing as far as anybody can tell.
    ///
    /// # Errors
    /// If Proxmox does not list its guests or nodes.
    pub(super) async fn look(client: &Proxmox, but: Option<VmId>) -> Result<Self, Failure> {
        let what = "look which guests have the disks of others";
        let guests = client.guests().await.map_err(|error| error.failure(what))?;
        let off = off(client).await?;
        let asked = guests
            .into_iter()
            .filter(|guest| Some(guest.vmid) != but && !off.contains_key(&guest.node))
            .map(|guest| async move {
                let config = patiently(what, |_| (), || config_of(client, &guest)).await;
                Self::of(&guest, config.ok().flatten().as_ref())
            });
        let found: Vec<Vec<Use>> = stream::iter(asked).buffered(AT_ONCE).collect().await;
        Ok(Self(found.into_iter().flatten().collect()))
    }

    fn of(guest: &Guest, config: Option<&Config>) -> Vec<Use> {
        let volumes = config.map(Config::volumes).unwrap_or_default();
        let each = volumes.into_iter().map(|(key, volid)| Use {
            user: guest.vmid,
            kind: guest.kind,
            key: key.to_owned(),
            volid: volid.to_owned(),
        });
        each.collect()
    }

    /// The volumes that Proxmox would destroy with a guest, and that another one has.
    pub(super) fn held(&self, vmid: VmId, config: &Config) -> Held {
        let own = config.volumes();
        let dies = |volid: &str| {
            number_of(volid) == Some(vmid) && own.values().any(|named| *named == volid)
        };
        let held = self.0.iter().filter(|one| one.user != vmid && dies(&one.volid));
        Held(held.cloned().collect())
    }
}

/// What another guest has of a guest that is to go.
#[derive(Debug, Default)]
pub(super) struct Held(pub(super) Vec<Use>);

impl Held {
    /// Why the guest stays; none if nobody has anything of it.
    pub(super) fn why(&self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let each: Vec<String> =
            self.0.iter().map(|one| format!("guest {} has its {}", one.user, one.volid)).collect();
        Some(format!("{}, and Proxmox would destroy that with it", each.join(", ")))
    }

    /// What to do about it.
    pub(super) fn cure(&self) -> String {
        let commands = self.0.iter().map(|one| {
            let command = if one.kind == GuestKind::Vm { "qm" } else { "pct" };
            format!("{command} set {} --delete {}", one.user, one.key)
        });
        let commands: Vec<String> = commands.collect();
        format!(
            "detach it there ({}): it goes with its own guest then, unless you give it away first (qm disk move … --target-vmid …)",
            commands.join("; ")
        )
    }

    /// Each in words.
    pub(super) fn staying(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|one| format!("{}, which guest {} has, too", one.volid, one.user))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn only_what_would_die_with_its_guest_is_held() {
        let config = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            Config(pairs.collect::<BTreeMap<_, _>>())
        };
        let one = |user, key: &str, volid: &str| Use {
            user: VmId(user),
            kind: GuestKind::Vm,
            key: key.to_owned(),
            volid: volid.to_owned(),
        };
        let attached = Attached(vec![
            one(431, "scsi1", "lvm:vm-431-disk-2"),
            one(425, "scsi5", "lvm:vm-431-disk-2"),
            one(425, "scsi6", "lvm:vm-431-disk-9"),
            one(425, "scsi7", "lvm:vm-999-disk-0"),
        ]);
        let own =
            config(&[("unused0", "lvm:vm-431-disk-2"), ("scsi3", "lvm:vm-999-disk-0,size=1G")]);
        let held = attached.held(VmId(431), &own);
        assert_eq!(held.0, [one(425, "scsi5", "lvm:vm-431-disk-2")]);
        assert!(held.cure().contains("(qm set 425 --delete scsi5)"), "{}", held.cure());
        assert_eq!(
            attached.held(VmId(425), &config(&[("scsi5", "lvm:vm-431-disk-2")])).why(),
            None
        );
    }
}
