//! The discovery service: who says to belong to a cluster, for half an hour after it was heard last.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Effect, Talos};
use crate::turn::Turn;

/// How long an affiliate is kept after it was heard last, in milliseconds.
const LIFE: u64 = 30 * 60 * 1000;

/// The digits of a node's identity.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What a machine said of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Affiliate {
    hostname: String,
    address: Ipv4Addr,
    control_plane: bool,
    system: String,
    /// When it said so first.
    since: u64,
    /// When it is forgotten; none while it goes on speaking.
    until: Option<u64>,
}

/// All affiliates, by the cluster's id and the random identity that a machine keeps on its disk.
pub(super) type Discovery = BTreeMap<String, BTreeMap<String, Affiliate>>;

impl Talos {
    /// A machine with a config tells of itself, under an identity of its own.
    pub(super) fn announce(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        let (Some(config), Some(address)) = (machine.config.as_ref(), machine.address()) else {
            return;
        };
        let (cluster, control_plane) = (config.cluster.clone(), config.control_plane);
        let identity = machine.disk.identity.get_or_insert_with(|| identity(turn)).clone();
        if !machine.wanted.discovery {
            return;
        }
        let affiliate = Affiliate {
            hostname: machine.hostname().to_owned(),
            address,
            control_plane,
            system: format!("Talos ({})", machine.version()),
            since: turn.now,
            until: None,
        };
        let ghost = machine.troubles.ghost.take();
        let known = self.discovery.entry(cluster).or_default();
        if let Some(address) = ghost {
            let until = Some(turn.now + LIFE);
            known.insert(self::identity(turn), Affiliate { address, until, ..affiliate.clone() });
            turn.after(LIFE, Effect::Forget);
        }
        known.insert(identity, affiliate);
    }

    /// How many control planes of a cluster are known to the discovery service alone: nobody is where they were.
    pub(super) fn dead_ends(&self, cluster: &str) -> u64 {
        let there = |address: Ipv4Addr| {
            self.machines.values().any(|machine| machine.address() == Some(address))
        };
        let known = self.discovery.get(cluster).into_iter().flat_map(BTreeMap::values);
        let dead = known.filter(|affiliate| affiliate.control_plane && !there(affiliate.address));
        dead.count() as u64
    }

    /// A machine fell silent: what it said is kept for a while.
    pub(super) fn silence(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        if let Some(affiliate) = self.own_affiliate(vmid).filter(|own| own.until.is_none()) {
            affiliate.until = Some(turn.now + LIFE);
            turn.after(LIFE, Effect::Forget);
        }
    }

    /// A machine takes back what it said, as it does when it is reset.
    pub(super) fn retract(&mut self, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid) else { return };
        let (Some(cluster), Some(identity)) = (machine.cluster(), &machine.disk.identity) else {
            return;
        };
        let (cluster, identity) = (cluster.to_owned(), identity.clone());
        if let Some(known) = self.discovery.get_mut(&cluster) {
            known.remove(&identity);
        }
        self.discovery.retain(|_, known| !known.is_empty());
    }

    /// Forgets those who were silent for too long.
    pub(super) fn forget_silent(&mut self, now: u64) {
        for known in self.discovery.values_mut() {
            known.retain(|_, affiliate| affiliate.until.is_none_or(|until| until > now));
        }
        self.discovery.retain(|_, known| !known.is_empty());
    }

    fn own_affiliate(&mut self, vmid: u32) -> Option<&mut Affiliate> {
        let machine = self.machines.get(&vmid)?;
        let (cluster, identity) = (machine.cluster()?, machine.disk.identity.as_ref()?);
        self.discovery.get_mut(cluster)?.get_mut(identity)
    }

    /// The affiliates of a cluster, by identity.
    pub(super) fn affiliates(&self, cluster: &str) -> Vec<(String, Value)> {
        let known = self.discovery.get(cluster).into_iter().flatten();
        known
            .map(|(identity, affiliate)| (identity.clone(), affiliate.shown(identity, true)))
            .collect()
    }

    /// The addresses of a cluster's control planes and workers, as they are known.
    pub(super) fn discovered(&self, cluster: &str) -> (Vec<Ipv4Addr>, Vec<Ipv4Addr>) {
        let known = || self.discovery.get(cluster).into_iter().flat_map(BTreeMap::values);
        let of = |control_plane: bool| {
            let found: BTreeSet<Ipv4Addr> = known()
                .filter(|affiliate| affiliate.control_plane == control_plane)
                .map(|affiliate| affiliate.address)
                .collect();
            found.into_iter().collect()
        };
        (of(true), of(false))
    }

    /// The members of a cluster, by name: of two with the same name the later one is shown.
    pub(super) fn cluster_members(&self, cluster: &str) -> Vec<(String, Value)> {
        let mut latest: BTreeMap<&str, (u64, Value)> = BTreeMap::new();
        for (identity, affiliate) in self.discovery.get(cluster).into_iter().flatten() {
            let before = latest.get(affiliate.hostname.as_str()).map(|(since, _)| *since);
            if before.is_none_or(|before| before <= affiliate.since) {
                let shown = affiliate.shown(identity, false);
                latest.insert(&affiliate.hostname, (affiliate.since, shown));
            }
        }
        latest.into_iter().map(|(name, (_, shown))| (name.to_owned(), shown)).collect()
    }
}

impl Affiliate {
    fn shown(&self, identity: &str, whole: bool) -> Value {
        let mut shown = json!({
            "nodeId": identity,
            "addresses": [self.address],
            "hostname": self.hostname,
            "machineType": if self.control_plane { "controlplane" } else { "worker" },
            "operatingSystem": self.system,
        });
        if whole {
            shown["nodename"] = self.hostname.as_str().into();
        }
        if self.control_plane {
            shown["controlPlane"] = json!({ "port": 6443 });
        }
        shown
    }
}

/// A random identity: about 256 bits, in letters and digits.
fn identity(turn: &mut Turn<'_>) -> String {
    let digit = |turn: &mut Turn<'_>| {
        let index = usize::try_from(turn.dice.below(DIGITS.len() as u64)).unwrap_or(0);
        char::from(DIGITS[index])
    };
    (0..43).map(|_| digit(turn)).collect()
}
