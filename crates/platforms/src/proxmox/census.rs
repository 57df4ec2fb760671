//! Every guest that a castle could meet, anywhere in the cluster, with its configuration and its owner: for those who
//! ask the world and not our records.

use castle_model::{CastleName, Failure, VmId};
use castle_proxmox::{Config, Guest, GuestKind, Proxmox};

use super::disks::config_of;
use super::inventory::{abandoned, sight};
use super::mark::{Mark, Owner, castle_tag, owner};
use super::wanted::Wanted;

/// Whose a guest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// This castle's, proven.
    Ours(Mark),
    /// It bears this castle's tag and can not be proven: somebody copied it, or changed its mark.
    Doubtful(String),
    /// It is just being made, and bears no mark yet.
    InTheMaking,
    /// Another castle's, proven.
    Castle(CastleName),
    /// Somebody's, as far as anybody can tell.
    Somebody(String),
}

/// A guest that was met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Met {
    pub(super) guest: Guest,
    pub(super) config: Config,
    pub(super) whose: Whose,
}

impl Met {
    /// In words: what it is, its number and its name.
    pub(super) fn named(&self) -> String {
        let kind = match self.guest.kind {
            GuestKind::Vm => "VM",
            GuestKind::Container => "container",
        };
        let own = ["name", "hostname"].into_iter().find_map(|key| self.config.get(key));
        format!("{kind} {} `{}`", self.guest.vmid, own.unwrap_or(&self.guest.name))
    }

    /// Its owner in words.
    pub(super) fn whose_words(&self) -> String {
        match &self.whose {
            Whose::Ours(mark) => format!("{} of this castle, life {}", mark.node, mark.incarnation),
            Whose::Doubtful(why) => format!("perhaps this castle's: {why}"),
            Whose::InTheMaking => "it is just being made, and bears no mark yet".to_owned(),
            Whose::Castle(castle) => format!("of castle {castle}"),
            Whose::Somebody(why) => format!("somebody else's: {why}"),
        }
    }

    pub(super) fn is_ours(&self) -> bool {
        matches!(self.whose, Whose::Ours(_))
    }
}

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Census {
    /// Guests in the castle's range, at its numbers, or with its tag anywhere.
    pub(super) met: Vec<Met>,
    /// Names of other castles with guests on this cluster.
    pub(super) neighbours: Vec<String>,
    /// Every number that a guest has, whoever's.
    pub(super) taken: Vec<VmId>,
    /// Whether the token sees the declared VMs alone.
    pub(super) short_sighted: bool,
}

impl Census {
    /// Looks at all of them.
    ///
    /// # Errors
    /// If Proxmox does not answer, or the token may not see VMs.
    pub(super) async fn take(client: &Proxmox, spec: &Wanted) -> Result<Self, Failure> {
        let short_sighted = sight(client, spec).await?;
        let what = format!("list the guests of {}", spec.platform.endpoint);
        let guests = client.guests().await.map_err(|error| error.failure(what))?;
        let mut census = Self { short_sighted, ..Self::default() };
        census.taken = guests.iter().map(|guest| guest.vmid).collect();
        census.neighbours = neighbours(spec, &guests);
        for guest in guests {
            if !(is_near(spec, guest.vmid) || guest.tags.contains(&castle_tag(&spec.name))) {
                continue;
            }
            // One that went between the two questions is gone.
            let Some(config) = config_of(client, &guest).await? else { continue };
            let whose = whose(client, spec, &guest, &config).await?;
            census.met.push(Met { guest, config, whose });
        }
        Ok(census)
    }

    /// Whether a guest is just being made, so that nobody can say whose it is.
    pub(super) fn is_growing(&self) -> bool {
        self.met.iter().any(|met| met.whose == Whose::InTheMaking)
    }

    /// The guest of a number.
    pub(super) fn at(&self, vmid: VmId) -> Option<&Met> {
        self.met.iter().find(|met| met.guest.vmid == vmid)
    }
}

/// Whether a number is in the castle's range, or one of its nodes'.
pub(super) fn is_near(spec: &Wanted, vmid: VmId) -> bool {
    let (first, last) = spec.platform.vmids;
    (first..=last).contains(&vmid) || is_declared(spec, vmid)
}

/// Whether a number is one of the castle's nodes'.
pub(super) fn is_declared(spec: &Wanted, vmid: VmId) -> bool {
    spec.nodes.iter().any(|node| node.vmid == vmid)
}

async fn whose(
    client: &Proxmox,
    spec: &Wanted,
    guest: &Guest,
    config: &Config,
) -> Result<Whose, Failure> {
    if guest.kind == GuestKind::Container {
        return Ok(Whose::Somebody("castle makes no containers".to_owned()));
    }
    Ok(match owner(guest.vmid, config) {
        Owner::Castle(mark) if mark.castle == spec.name => Whose::Ours(mark),
        Owner::Castle(mark) => Whose::Castle(mark.castle),
        Owner::Somebody { .. } if config.lock() == Some("create") => {
            match abandoned(client, &guest.node, guest.vmid).await? {
                Some(why) => Whose::Somebody(why),
                None => Whose::InTheMaking,
            }
        }
        Owner::Somebody { why } if config.tags().contains(&castle_tag(&spec.name)) => {
            Whose::Doubtful(why)
        }
        Owner::Somebody { why } => Whose::Somebody(why),
    })
}

/// The names of other castles with guests on the cluster: they may want what castles share.
pub(super) fn neighbours(spec: &Wanted, guests: &[Guest]) -> Vec<String> {
    let own = castle_tag(&spec.name);
    let theirs = guests
        .iter()
        .filter(|guest| guest.tags.contains(super::mark::TAG) && !guest.tags.contains(&own));
    let mut names: Vec<String> = theirs
        .flat_map(|guest| &guest.tags)
        .filter_map(|tag| tag.strip_prefix("castle-").map(str::to_owned))
        .collect();
    names.sort();
    names.dedup();
    names
}
