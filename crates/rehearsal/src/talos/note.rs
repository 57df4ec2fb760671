//! What was said about a machine in this boot: each change of its services and of its status, in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{Happening, ServiceShown, What};
use super::machine::Machine;
use super::status::{Service, services, status};
use super::{Milestone, Talos};
use crate::durations::Process;
use crate::turn::Turn;

/// How many happenings a machine remembers.
const HAPPENINGS_MAX: usize = 100;

/// What is remembered of one boot.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Noted {
    /// Each service as it is, with what it said before.
    pub(super) services: BTreeMap<String, ServiceShown>,
    /// The machine's status as it is.
    pub(super) status: Value,
    /// How often it has changed.
    pub(super) version: u64,
    /// When it was first said, and when it changed last.
    pub(super) times: (u64, u64),
    /// What happened, in order.
    pub(super) happenings: Vec<Happening>,
    /// How many things have happened.
    happened: u64,
}

impl Noted {
    /// Notes that something happened.
    pub(super) fn happen(&mut self, actor: &str, what: What) {
        if self.happenings.len() >= HAPPENINGS_MAX {
            self.happenings.remove(0);
        }
        self.happened += 1;
        let number = self.happened;
        self.happenings.push(Happening { number, actor: actor.to_owned(), what });
    }

    fn services(&mut self, now: u64, current: &[Service]) {
        self.services.retain(|id, _| current.iter().any(|service| service.id == id));
        for service in current {
            let before = self.services.get(service.id);
            let same = before.is_some_and(|before| {
                before.state == service.state && before.healthy == service.healthy
            });
            if same {
                continue;
            }
            let mut events = before.map(|before| before.events.clone()).unwrap_or_default();
            events.push((now, service.state.to_owned(), service.message.clone()));
            let id = service.id.to_owned();
            let shown = ServiceShown {
                id: id.clone(),
                state: service.state.to_owned(),
                healthy: service.healthy,
                events,
            };
            self.services.insert(id.clone(), shown);
            let (state, message) = (service.state.to_owned(), service.message.clone());
            self.happen("", What::Service { id, state, message, healthy: service.healthy });
        }
    }

    fn status(&mut self, now: u64, status: Value) {
        if self.status == status {
            return;
        }
        if self.version == 0 {
            self.times.0 = now;
        }
        self.version += 1;
        self.times.1 = now;
        self.status = status.clone();
        self.happen("", What::Status(status));
    }
}

impl Talos {
    /// Notes what has changed on all machines after a turn, and lets a boot end that has nothing left to do.
    pub(super) fn note(&mut self, turn: &mut Turn<'_>) {
        let all: Vec<u32> = self.machines.keys().copied().collect();
        self.note_each(turn, &all);
    }

    /// The same after a turn of one machine. What happens to a control plane may show on others, too; what happens to a
    /// worker shows on it alone, and there may be many of them.
    pub(super) fn note_of(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let has_etcd =
            |machine: &Machine| machine.is_control_plane() || machine.disk.etcd.is_some();
        if self.machines.get(&vmid).is_none_or(has_etcd) {
            return self.note(turn);
        }
        self.note_each(turn, &[vmid]);
        #[cfg(test)]
        {
            let noted = self.machines.clone();
            self.note(turn);
            assert!(noted == self.machines, "a turn of {vmid} shows on another machine");
        }
    }

    fn note_each(&mut self, turn: &mut Turn<'_>, which: &[u32]) {
        let mut finishing = Vec::new();
        for vmid in which {
            let well = self.machines.get(vmid).is_some_and(|machine| self.member_well(machine));
            let Some(machine) = self.machines.get_mut(vmid).filter(|machine| machine.up) else {
                continue;
            };
            let current = services(machine, well);
            machine.noted.services(turn.now, &current);
            let status = status(machine, &current);
            machine.noted.status(turn.now, status);
            if runs(machine, &current) && !machine.running.finishing {
                machine.running.finishing = true;
                finishing.push(*vmid);
            }
        }
        for vmid in finishing {
            self.later(turn, vmid, Process::BootEnds, Milestone::Booted);
        }
    }

    /// Whether the machine's own member of etcd is in a quorum, or only listens.
    pub(super) fn member_well(&self, machine: &Machine) -> bool {
        machine.disk.etcd.is_some_and(|(number, _)| self.healthy(number))
    }
}

fn runs(machine: &Machine, services: &[Service]) -> bool {
    machine.config().is_some() && services.iter().all(|service| service.state == "Running")
}
