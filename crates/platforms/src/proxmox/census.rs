//! Every guest that a castle could meet, anywhere in the cluster, with its configuration and its owner: for those who
//! ask the world and not our records.

use castle_model::{CastleName, Failure, VmId};
use castle_proxmox::{Config, Guest, GuestKind, Proxmox};

use super::disks::{config_of, off};
use super::half_made::{Abandoned, abandoned};
use super::inventory::sight;
use super::mark::{Mark, Owner, castle_tag, owner};
use super::wanted::Wanted;

/// Whose a guest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Whose {
    /// This castle's, proven.
    Ours(Mark),
    /// It bears this castle's tag and can not be proven: somebody copied it, or changed its mark.
    Doubtful {
        /// What does not agree.
        why: String,
        /// Whether its number may be this castle's.
        near: bool,
    },
    /// It is just being made, and bears no mark yet.
    InTheMaking,
    /// A task of ours began to make it and died on the way, so that it bears no mark.
    HalfMade(String),
    /// Another castle's, proven.
    Castle(CastleName),
    /// Somebody's, as far as anybody can tell.
    Somebody(String),
    /// It can not be looked at, so nobody can prove whose it is.
    Unseen {
        /// Why not.
        why: String,
        /// Whether it may be this castle's, by its number or its tags.
        maybe: bool,
    },
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
            Whose::Doubtful { why, near: true } | Whose::Unseen { why, maybe: true } => {
                format!("perhaps this castle's: {why}")
            }
            Whose::Doubtful { why, near: false } => {
                format!("somebody else's, by its number, with this castle's tag: {why}")
            }
            Whose::InTheMaking => "it is just being made, and bears no mark yet".to_owned(),
            Whose::HalfMade(why) => why.clone(),
            Whose::Castle(castle) => format!("of castle {castle}"),
            Whose::Somebody(why) => format!("somebody else's: {why}"),
            Whose::Unseen { why, maybe: false } => {
                format!("somebody else's, by its number and its tags: {why}")
            }
        }
    }

    /// Its tags; of one that can not be looked at those that the cluster lists.
    pub(super) fn tags(&self) -> Vec<String> {
        match self.whose {
            Whose::Unseen { .. } => self.guest.tags.iter().cloned().collect(),
            _ => self.config.tags().into_iter().collect(),
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
    /// Looks at all of them. What stands on a node that is not online is unseen; one that can not be looked at although
    /// its node is there ends the look, so that it is asked for again.
    ///
    /// # Errors
    /// If Proxmox does not answer, or the token may not see VMs.
    pub(super) async fn take(client: &Proxmox, spec: &Wanted) -> Result<Self, Failure> {
        Self::gather(client, spec, false).await
    }

    /// The same for whoever has asked long enough: a guest that still can not be looked at is unseen, and stops nobody
    /// from looking at the others.
    ///
    /// # Errors
    /// If Proxmox does not list its guests, or the token may not see VMs.
    pub(super) async fn take_what_answers(
        client: &Proxmox,
        spec: &Wanted,
    ) -> Result<Self, Failure> {
        Self::gather(client, spec, true).await
    }

    async fn gather(client: &Proxmox, spec: &Wanted, is_last: bool) -> Result<Self, Failure> {
        let short_sighted = sight(client, spec).await?;
        let what = format!("list the guests of {}", spec.platform.endpoint);
        let guests = client.guests().await.map_err(|error| error.failure(what))?;
        let mut census = Self { short_sighted, ..Self::default() };
        census.taken = guests.iter().map(|guest| guest.vmid).collect();
        census.neighbours = neighbours(spec, &guests);
        let off = off(client).await?;
        for guest in guests {
            let tagged = guest.tags.contains(&castle_tag(&spec.name));
            if !(is_near(spec, guest.vmid) || tagged) {
                continue;
            }
            let seen = match off.get(&guest.node) {
                Some(status) => Err(format!("its node is {status}, so that nobody can look at it")),
                None => match look(client, spec, &guest).await {
                    Err(failure) if is_last => Err(format!("it can not be looked at: {failure}")),
                    seen => Ok(seen?),
                },
            };
            let (config, whose) = match seen {
                Ok(Some(seen)) => seen,
                Ok(None) => continue,
                Err(why) => {
                    // Every VM of ours bears the castle's tag, but for one that is only half made.
                    let maybe = tagged || is_declared(spec, guest.vmid);
                    (Config::default(), Whose::Unseen { why, maybe })
                }
            };
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

/// A guest's configuration and whose it is; none if it went between two questions.
async fn look(
    client: &Proxmox,
    spec: &Wanted,
    guest: &Guest,
) -> Result<Option<(Config, Whose)>, Failure> {
    let Some(config) = config_of(client, guest).await? else { return Ok(None) };
    let whose = whose(client, spec, guest, &config).await?;
    Ok(Some((config, whose)))
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
            match abandoned(client, spec, (&guest.node, guest.vmid), false).await? {
                Some(Abandoned { why, ours: true }) => Whose::HalfMade(why),
                Some(Abandoned { why, ours: false }) => Whose::Somebody(why),
                None => Whose::InTheMaking,
            }
        }
        Owner::Somebody { why } if config.tags().contains(&castle_tag(&spec.name)) => {
            Whose::Doubtful { why, near: is_near(spec, guest.vmid) }
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
