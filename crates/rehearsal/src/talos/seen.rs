//! The machines as the datacenter itself knows them, past their API.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::Talos;
use super::machine::{Api, Machine, Troubles};

impl Talos {
    /// The machines by their VM, each with its name and what it is doing.
    #[must_use]
    pub fn inventory(&self) -> BTreeMap<u32, String> {
        let shown = |machine: &Machine| {
            let state = match (machine.on, machine.api) {
                _ if machine.troubles.foreign => "somebody else's",
                _ if machine.troubles.dead => "dead",
                (false, _) => "off",
                (true, Api::Down) => "booting",
                (true, Api::Maintenance) => "maintenance",
                (true, Api::Secure) => "configured",
            };
            format!("{} ({state})", machine.hostname())
        };
        self.machines.iter().map(|(vmid, machine)| (*vmid, shown(machine))).collect()
    }

    /// Where machines answer, by their VM.
    #[must_use]
    pub fn answering(&self) -> BTreeMap<u32, Ipv4Addr> {
        let up = self.machines.iter().filter(|(_, machine)| machine.up);
        up.filter_map(|(vmid, machine)| Some((*vmid, machine.address()?))).collect()
    }

    /// The shared address and who holds it.
    #[must_use]
    pub fn vip(&self) -> Option<(Ipv4Addr, String)> {
        self.machines.iter().find_map(|(vmid, machine)| {
            Some((self.held_vip(*vmid)?, machine.hostname().to_owned()))
        })
    }

    /// The members of every etcd that is remembered, each with what it is.
    #[must_use]
    pub fn etcd_members(&self) -> Vec<(String, String)> {
        let mut members = Vec::new();
        for (number, etcd) in &self.etcds {
            let leader = self.leader(*number).map(|(vmid, _)| vmid);
            for (vmid, member) in &etcd.members {
                let runs = self.voters(etcd).any(|(voter, _)| voter == *vmid);
                let role = match (member.learner, runs) {
                    (true, _) => "learner",
                    (false, _) if leader == Some(*vmid) => "leader",
                    (false, true) => "voter",
                    (false, false) => "down",
                };
                let name = match self.machines.get(vmid) {
                    Some(machine) => machine.hostname().to_owned(),
                    None => format!("the former VM {vmid}"),
                };
                members.push((name, role.to_owned()));
            }
        }
        members
    }

    /// What is wrong because somebody said so. A machine that never booted has no name of its own yet: `guest` knows
    /// what Proxmox calls it.
    pub(crate) fn wrong<'a>(&self, guest: impl Fn(u32) -> Option<&'a str>) -> Vec<String> {
        let mut wrong = Vec::new();
        for (vmid, troubles) in &self.troubles {
            let name = match (self.machines.get(vmid), guest(*vmid)) {
                (Some(machine), _) => machine.hostname().to_owned(),
                (None, Some(name)) => name.to_owned(),
                (None, None) => format!("machine {vmid}"),
            };
            wrong.extend(words(troubles).map(|what| format!("{name} {what}")));
        }
        if self.mute_vip {
            wrong.push("the shared address takes connections and says nothing".to_owned());
        }
        let strangers = self.machines.values().filter(|machine| machine.troubles.foreign);
        wrong.extend(strangers.filter_map(|machine| {
            Some(format!("somebody else's machine answers at {}", machine.address()?))
        }));
        wrong
    }
}

fn words(troubles: &Troubles) -> impl Iterator<Item = &'static str> {
    [
        (troubles.dead, "is dead"),
        (troubles.clock_astray, "has a clock that is not in sync"),
        (troubles.api_server_down, "runs no API server"),
        (troubles.pulls_limited, "is refused the kubelet's image"),
        (troubles.reply_lost, "loses the answer to its next bootstrap"),
        (troubles.stale, "gets a disk with an etcd of an earlier life"),
        (troubles.address.is_some(), "boots at another address than its own"),
        (troubles.unwritable, "has a disk that takes no config"),
        (troubles.data_disk_gone, "does not see its data disk"),
        (troubles.ghost.is_some(), "has a ghost in the discovery service"),
        (troubles.usurped, "will be bootstrapped by somebody else"),
        (troubles.without.is_some(), "has an image without one of its extensions"),
    ]
    .into_iter()
    .filter_map(|(is, words)| is.then_some(words))
}
