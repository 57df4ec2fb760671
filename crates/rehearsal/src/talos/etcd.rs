//! Who is a member of which etcd, who may join next, and who holds the shared address.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use tonic::Code;

use super::call::{Member, Refusal};
use super::machine::Machine;
use super::{Effect, Milestone, Talos};
use crate::durations::Process;
use crate::turn::{Signal, Turn};

/// One etcd: its members, on disks that may be switched off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Etcd {
    /// The cluster that its machines belong to.
    pub(super) cluster: String,
    /// Members by their machine. A destroyed machine stays a member, as in reality.
    pub(super) members: BTreeMap<u32, Member>,
    /// The machine that joins or is not promoted yet; etcd takes one at a time.
    pub(super) joining: Option<u32>,
    /// The machine that holds the shared address.
    pub(super) holder: Option<u32>,
    /// The machine that leads, as long as it votes and runs.
    pub(super) leader: Option<u32>,
}

impl Talos {
    /// How many etcds were founded since the world's birth, whoever asked for them.
    #[must_use]
    pub fn etcds_founded(&self) -> u64 {
        self.births
    }

    /// etcd runs on a machine: it has its data already, or a new one is born here.
    pub(super) fn etcd_up(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let known = self.is_member(vmid);
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        let Some(cluster) = machine.cluster().map(str::to_owned) else { return };
        if machine.running.etcd || (machine.disk.etcd.is_some() && !known) {
            return;
        }
        machine.running.etcd = true;
        machine.running.bootstrap = false;
        let first = !self.etcds.values().any(|etcd| etcd.cluster == cluster);
        let number = if let Some((etcd, _)) = machine.disk.etcd {
            etcd
        } else {
            self.births += 1;
            let member = member(turn, machine, false);
            machine.disk.etcd = Some((self.births, member.id));
            let members = BTreeMap::from([(vmid, member)]);
            let etcd = Etcd {
                cluster: cluster.clone(),
                members,
                joining: None,
                holder: None,
                leader: Some(vmid),
            };
            self.etcds.insert(self.births, etcd);
            if first {
                turn.signal(Signal::ClusterBorn { cluster });
            }
            self.births
        };
        let learner = self
            .etcds
            .get(&number)
            .and_then(|etcd| etcd.members.get(&vmid))
            .is_some_and(|member| member.learner);
        if learner {
            self.later(turn, vmid, Process::EtcdPromotion, Milestone::Voter);
        } else {
            self.start_api_server(turn, vmid);
        }
        self.settle(turn, number);
    }

    /// A machine is taken in, to listen first.
    pub(super) fn learner(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let found = self.etcds.iter_mut().find(|(_, etcd)| etcd.joining == Some(vmid));
        let (Some((number, etcd)), Some(machine)) = (found, self.machines.get_mut(&vmid)) else {
            return;
        };
        let mut member = member(turn, machine, true);
        member.hostname = String::new();
        machine.disk.etcd = Some((*number, member.id));
        machine.running.etcd = true;
        etcd.members.insert(vmid, member);
        self.later(turn, vmid, Process::EtcdName, Milestone::Named);
        self.later(turn, vmid, Process::EtcdPromotion, Milestone::Voter);
    }

    /// A new member has told its name.
    pub(super) fn named(&mut self, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid) else { return };
        let etcd = machine.disk.etcd.and_then(|(number, _)| self.etcds.get_mut(&number));
        if let Some(member) = etcd.and_then(|etcd| etcd.members.get_mut(&vmid)) {
            machine.hostname().clone_into(&mut member.hostname);
        }
    }

    /// A member votes; the next may join.
    pub(super) fn voter(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some((number, _)) = self.machines.get(&vmid).and_then(|machine| machine.disk.etcd)
        else {
            return;
        };
        self.named(vmid);
        if let Some(etcd) = self.etcds.get_mut(&number) {
            if let Some(member) = etcd.members.get_mut(&vmid) {
                member.learner = false;
            }
            etcd.joining = etcd.joining.filter(|joining| *joining != vmid);
        }
        self.start_api_server(turn, vmid);
        self.settle(turn, number);
    }

    /// A machine's etcd is gone: with its power, or in good order, which hands the shared address on at once.
    pub(super) fn left(&mut self, turn: &mut Turn<'_>, vmid: u32, graceful: bool) {
        let lost: Vec<u64> =
            self.etcds.keys().copied().filter(|number| !self.healthy(*number)).collect();
        let remembers = self.machines.get(&vmid).is_some_and(|machine| machine.disk.etcd.is_some());
        for (number, etcd) in &mut self.etcds {
            if etcd.joining == Some(vmid) && !remembers {
                etcd.joining = None;
            }
            if etcd.holder == Some(vmid) {
                etcd.holder = None;
                let what = if graceful { Process::Handover } else { Process::Lease };
                turn.after_draw(what, number, Effect::Election { etcd: *number });
            } else if etcd.holder.is_some() && lost.contains(number) {
                // Nobody can renew a lease in an etcd without a quorum.
                turn.after_draw(Process::Lease, number, Effect::Election { etcd: *number });
            }
        }
        self.admit(turn);
    }

    /// A disk is gone with all that it remembered. Its member stays in etcd, as in reality.
    pub(super) fn disk_lost(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        for etcd in self.etcds.values_mut() {
            etcd.joining = etcd.joining.filter(|joining| *joining != vmid);
        }
        self.forget_lost_etcds(turn);
        self.admit(turn);
    }

    /// The shared address goes to one of the machines whose etcd is healthy; without a quorum, to nobody.
    pub(super) fn elect(&mut self, turn: &mut Turn<'_>, number: u64) {
        if !self.healthy(number) {
            if let Some(etcd) = self.etcds.get_mut(&number) {
                etcd.holder = None;
            }
            return;
        }
        let Some(etcd) = self.etcds.get(&number).filter(|etcd| etcd.holder.is_none()) else {
            return;
        };
        let able: Vec<u32> = self.voters(etcd).map(|(vmid, _)| vmid).collect();
        let index = turn.dice.below(able.len() as u64);
        let chosen = usize::try_from(index).ok().and_then(|index| able.get(index)).copied();
        if let Some(etcd) = self.etcds.get_mut(&number) {
            etcd.holder = chosen;
        }
    }

    /// Lets the next machine join, wherever there is a healthy etcd that takes nobody in just now.
    pub(super) fn admit(&mut self, turn: &mut Turn<'_>) {
        let numbers: Vec<u64> = self.etcds.keys().copied().collect();
        for number in numbers {
            let healthy = self.healthy(number);
            let Some(etcd) = self.etcds.get(&number) else { continue };
            let dead_ends = self.dead_ends(&etcd.cluster);
            if !healthy || etcd.joining.is_some() {
                continue;
            }
            // etcd has one learner at a time; a machine that comes anew first removes the member of its own name.
            let free = |vmid: u32, machine: &Machine| {
                etcd.members
                    .iter()
                    .filter(|(_, member)| member.learner)
                    .all(|(own, member)| *own == vmid && member.hostname == machine.hostname())
            };
            let waiting = |machine: &Machine| {
                machine.running.etcd_image
                    && !machine.running.etcd
                    && !machine.running.etcd_left
                    && !machine.running.bootstrap
                    && machine.disk.etcd.is_none()
                    && machine.cluster() == Some(etcd.cluster.as_str())
            };
            let able: Vec<u32> = self
                .machines
                .iter()
                .filter(|(vmid, machine)| waiting(machine) && free(**vmid, machine))
                .map(|(vmid, _)| *vmid)
                .collect();
            if able.is_empty() {
                continue;
            }
            let index = usize::try_from(turn.dice.below(able.len() as u64)).unwrap_or(0);
            let chosen = able[index];
            if let Some(etcd) = self.etcds.get_mut(&number) {
                etcd.joining = Some(chosen);
            }
            // Whoever joins asks all that he has heard of, and waits in vain for those who are gone.
            let delay =
                turn.draw(Process::EtcdJoin, &chosen) + dead_ends * Process::EtcdDeadEnd.usual();
            self.after(turn, chosen, delay, Milestone::Learner);
        }
    }

    /// Whether more than half of the voters run.
    pub(super) fn healthy(&self, number: u64) -> bool {
        let Some(etcd) = self.etcds.get(&number) else { return false };
        let all = etcd.members.values().filter(|member| !member.learner).count();
        self.voters(etcd).count() > all / 2
    }

    /// The members that vote and run.
    pub(super) fn voters<'a>(&'a self, etcd: &'a Etcd) -> impl Iterator<Item = (u32, &'a Member)> {
        etcd.members
            .iter()
            .filter(|(_, member)| !member.learner)
            .filter(|(vmid, member)| {
                // Another machine of the same number is not the member.
                self.machines.get(vmid).is_some_and(|machine| {
                    machine.runs_etcd() && machine.disk.etcd.is_some_and(|(_, id)| id == member.id)
                })
            })
            .map(|(vmid, member)| (*vmid, member))
    }

    /// Whether a machine's own data of etcd are of a member that its etcd knows.
    pub(super) fn is_member(&self, vmid: u32) -> bool {
        let Some(machine) = self.machines.get(&vmid) else { return false };
        let Some((number, id)) = machine.disk.etcd else { return false };
        self.etcds.get(&number).is_some_and(|etcd| {
            machine.cluster() == Some(etcd.cluster.as_str())
                && etcd.members.get(&vmid).is_some_and(|member| member.id == id)
        })
    }

    /// The member that leads, if there is a quorum.
    pub(super) fn leader(&self, number: u64) -> Option<(u32, &Member)> {
        let etcd = self.etcds.get(&number).filter(|_| self.healthy(number))?;
        let preferred = self.voters(etcd).find(|(vmid, _)| Some(*vmid) == etcd.leader);
        preferred.or_else(|| self.voters(etcd).next())
    }

    /// A machine gives up its place in etcd, and its data with it.
    pub(super) fn leave(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<(), Refusal> {
        let number = self.own_etcd(vmid)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        if self.voters(etcd).all(|(other, _)| other == vmid) {
            let text = "failed to leave cluster: etcdserver: re-configuration failed due to not enough started members";
            return Err(Refusal::new(Code::Unknown, text));
        }
        self.drop_member(turn, number, vmid);
        if let Some(machine) = self.machines.get_mut(&vmid) {
            machine.disk.etcd = None;
            machine.running.etcd_left = true;
        }
        Ok(())
    }

    /// Puts a member out of the etcd that a machine is in.
    pub(super) fn remove_member(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        id: u64,
    ) -> Result<(), Refusal> {
        let number = self.own_etcd(vmid)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        let found = etcd.members.iter().find(|(_, member)| member.id == id).map(|(vmid, _)| *vmid);
        let Some(found) = found else {
            let text = format!("failed to remove member {id}: etcdserver: member not found");
            return Err(Refusal::new(Code::NotFound, text));
        };
        self.drop_member(turn, number, found);
        Ok(())
    }

    /// Lets another member lead, and says its name.
    pub(super) fn forfeit(&mut self, vmid: u32) -> Result<String, Refusal> {
        let number = self.own_etcd(vmid)?;
        let Some((leader, _)) = self.leader(number) else { return Err(Refusal::Waits) };
        if leader != vmid {
            return Ok(String::new());
        }
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        let next = self.voters(etcd).find(|(other, _)| *other != vmid);
        let Some((next, name)) = next.map(|(next, member)| (next, member.hostname.clone())) else {
            let text = "failed to forfeit leadership: cannot forfeit leadership, only one member";
            return Err(Refusal::new(Code::Unknown, text));
        };
        if let Some(etcd) = self.etcds.get_mut(&number) {
            etcd.leader = Some(next);
        }
        Ok(name)
    }

    /// The etcd that a machine is in and that has a quorum; without one nobody answers.
    fn own_etcd(&self, vmid: u32) -> Result<u64, Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        let own = machine.disk.etcd.filter(|_| machine.runs_etcd());
        own.map(|(number, _)| number).filter(|number| self.healthy(*number)).ok_or(Refusal::Waits)
    }

    fn drop_member(&mut self, turn: &mut Turn<'_>, number: u64, vmid: u32) {
        let Some(etcd) = self.etcds.get_mut(&number) else { return };
        let Some(member) = etcd.members.remove(&vmid) else { return };
        etcd.joining = etcd.joining.filter(|joining| *joining != vmid);
        if etcd.holder == Some(vmid) {
            etcd.holder = None;
            turn.after_draw(Process::Handover, &number, Effect::Election { etcd: number });
        }
        // Whoever is put out stops, and so does the API server that relied on it.
        let own = |machine: &&mut Machine| machine.disk.etcd == Some((number, member.id));
        if let Some(machine) = self.machines.get_mut(&vmid).filter(own) {
            machine.running.etcd = false;
            machine.running.api_server = false;
        }
        self.admit(turn);
    }

    /// Puts a machine's member out of its etcd, if it is in one.
    pub(super) fn put_out(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let own = self.machines.get(&vmid).and_then(|machine| machine.disk.etcd);
        if let Some((number, _)) = own {
            self.drop_member(turn, number, vmid);
        }
    }

    /// Gives every shared address to the next machine that could hold it.
    pub(super) fn move_vip(&mut self) {
        let next: Vec<(u64, Option<u32>)> = self
            .etcds
            .iter()
            .map(|(number, etcd)| {
                let able: Vec<u32> = self.voters(etcd).map(|(vmid, _)| vmid).collect();
                let after = able.iter().find(|vmid| Some(**vmid) > etcd.holder);
                (*number, after.or(able.first()).copied())
            })
            .collect();
        for (number, holder) in next {
            if let Some(etcd) = self.etcds.get_mut(&number).filter(|etcd| etcd.holder.is_some()) {
                etcd.holder = holder;
            }
        }
    }

    /// The shared address, if this machine holds it.
    pub(super) fn held_vip(&self, vmid: u32) -> Option<Ipv4Addr> {
        self.etcds.values().find(|etcd| etcd.holder == Some(vmid))?;
        self.machines.get(&vmid)?.vip()
    }

    /// Drops every etcd of which no disk remembers anything; with the last one of a cluster that cluster is gone.
    fn forget_lost_etcds(&mut self, turn: &mut Turn<'_>) {
        let machines = &self.machines;
        let before: BTreeSet<String> =
            self.etcds.values().map(|etcd| etcd.cluster.clone()).collect();
        self.etcds.retain(|number, _| {
            machines
                .values()
                .any(|machine| machine.disk.etcd.is_some_and(|(own, _)| own == *number))
        });
        for cluster in before {
            if !self.etcds.values().any(|etcd| etcd.cluster == cluster) {
                turn.signal(Signal::ClusterLost { cluster });
            }
        }
    }

    /// After a change for the better: somebody may join, and the shared address may need a holder.
    fn settle(&mut self, turn: &mut Turn<'_>, number: u64) {
        self.admit(turn);
        self.register(turn);
        let vacant = self.etcds.get(&number).is_some_and(|etcd| etcd.holder.is_none());
        if vacant && self.healthy(number) {
            turn.after_draw(Process::Election, &number, Effect::Election { etcd: number });
        }
    }
}

fn member(turn: &mut Turn<'_>, machine: &Machine, learner: bool) -> Member {
    Member {
        // Zero would mean "no leader".
        id: turn.dice.next_u64() | 1,
        hostname: machine.hostname().to_owned(),
        address: machine.address().unwrap_or(Ipv4Addr::UNSPECIFIED),
        learner,
    }
}
