//! What follows on what in a machine's life, and how long each takes.

use super::machine::{Api, Machine, Running};
use super::{Effect, Milestone, Talos};
use crate::durations::Process;
use crate::turn::{Signal, Turn, VmFacts};

impl Talos {
    /// A VM got power: it boots from its disk, which remembers if it is the same one.
    pub(super) fn switch_on(&mut self, turn: &mut Turn<'_>, facts: &VmFacts) {
        let machine = self.machines.entry(facts.vmid).or_insert_with(|| Machine::new(facts));
        if machine.on {
            return;
        }
        let other_disk = machine.disk.id != facts.disk;
        if other_disk {
            machine.disk = Machine::new(facts).disk;
        }
        self.boots += 1;
        machine.facts = facts.clone();
        machine.on = true;
        machine.boot = self.boots;
        machine.generation += 1;
        if facts.image.is_some() {
            self.later(turn, facts.vmid, Process::Boot, Milestone::Kernel);
        }
        if other_disk {
            self.disk_lost(turn, facts.vmid);
        }
    }

    /// A VM lost power: what ran is gone, what is on its disk stays.
    pub(super) fn switch_off(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get_mut(&vmid).filter(|machine| machine.on) else {
            return;
        };
        let cluster = machine.cluster().filter(|_| machine.running.joined).map(str::to_owned);
        machine.on = false;
        machine.up = false;
        machine.api = Api::Down;
        machine.generation += 1;
        machine.running = Running::default();
        if let Some(cluster) = cluster {
            turn.signal(Signal::NodeLost { cluster, name: machine.hostname().to_owned() });
        }
        self.left(turn, vmid);
    }

    /// A machine has come a step further.
    pub(super) fn reach(&mut self, turn: &mut Turn<'_>, vmid: u32, milestone: Milestone) {
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        match milestone {
            Milestone::Kernel => {
                machine.up = true;
                machine.generation += 1;
                if machine.config().is_some() {
                    self.later(turn, vmid, Process::ListenerSwap, Milestone::Secure);
                } else {
                    machine.api = Api::Maintenance;
                }
            }
            Milestone::Silent => {
                machine.api = Api::Down;
                machine.generation += 1;
                self.later(turn, vmid, Process::ListenerSwap, Milestone::Secure);
            }
            Milestone::Secure => self.secure(turn, vmid),
            Milestone::Runtime => {
                machine.running.runtime = true;
                if machine.is_control_plane() {
                    let what = if machine.disk.etcd.is_some() {
                        Process::EtcdCached
                    } else {
                        Process::EtcdPull
                    };
                    self.later(turn, vmid, what, Milestone::EtcdImage);
                }
                self.later(turn, vmid, Process::Kubelet, Milestone::Kubelet);
            }
            Milestone::EtcdImage => {
                machine.running.etcd_image = true;
                self.start_etcd(turn, vmid);
                self.admit(turn);
            }
            Milestone::Etcd => self.etcd_up(turn, vmid),
            Milestone::Learner => self.learner(turn, vmid),
            Milestone::Named => self.named(vmid),
            Milestone::Voter => self.voter(turn, vmid),
            Milestone::Kubelet => {
                machine.running.kubelet = true;
                self.register(turn);
            }
            Milestone::ApiServer => {
                machine.running.api_server = true;
                self.register(turn);
            }
            Milestone::Node => self.node(turn, vmid),
            Milestone::Ready => machine.running.ready = true,
        }
    }

    /// Leaves the next step of a machine due.
    pub(super) fn later(&self, turn: &mut Turn<'_>, vmid: u32, what: Process, next: Milestone) {
        let delay = turn.draw(what, &vmid);
        self.after(turn, vmid, delay, next);
    }

    /// Leaves a step of a machine due after so many milliseconds.
    fn after(&self, turn: &mut Turn<'_>, vmid: u32, delay: u64, milestone: Milestone) {
        let boot = self.machines.get(&vmid).map_or(0, |machine| machine.boot);
        turn.after(delay, Effect::Reached { vmid, boot, milestone });
    }

    /// A config was accepted: the answer still leaves by the old listener.
    pub(super) fn configured(&self, turn: &mut Turn<'_>, vmid: u32) {
        self.later(turn, vmid, Process::ListenerLingers, Milestone::Silent);
    }

    /// etcd starts once its image is there and it has data, or was told to begin anew.
    pub(super) fn start_etcd(&self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid) else { return };
        let running = &machine.running;
        if !running.etcd_image || running.etcd {
            return;
        }
        if machine.disk.etcd.is_some() {
            self.later(turn, vmid, Process::EtcdRestart, Milestone::Etcd);
        } else if running.bootstrap {
            self.later(turn, vmid, Process::EtcdBootstrap, Milestone::Etcd);
        }
    }

    /// The static pods of a control plane follow on its voting member of etcd.
    pub(super) fn start_api_server(&self, turn: &mut Turn<'_>, vmid: u32) {
        let pull = turn.draw(Process::ControlPlanePull, &vmid);
        let start = turn.draw(Process::ApiServer, &vmid);
        self.after(turn, vmid, pull + start, Milestone::ApiServer);
    }

    /// The secure API begins, on a worker only if a control plane can give it a certificate.
    fn secure(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid) else { return };
        if machine.api == Api::Secure {
            return;
        }
        let cluster = machine.cluster().map(str::to_owned);
        let control_plane = machine.is_control_plane();
        let trusted = control_plane
            || self.machines.values().any(|other| {
                other.api == Api::Secure
                    && other.is_control_plane()
                    && other.cluster() == cluster.as_deref()
            });
        // A worker that waits for its certificate boots on meanwhile, and comes here a second time.
        let first = !machine.running.runtime;
        if let Some(machine) = self.machines.get_mut(&vmid).filter(|_| trusted) {
            machine.api = Api::Secure;
            machine.generation += 1;
        }
        if first {
            self.later(turn, vmid, Process::Runtime, Milestone::Runtime);
        }
        if control_plane {
            let waiting: Vec<u32> = self
                .machines
                .iter()
                .filter(|(_, other)| other.up && other.api == Api::Down)
                .filter(|(_, other)| other.cluster() == cluster.as_deref())
                .filter(|(_, other)| !other.is_control_plane() && other.config().is_some())
                .map(|(vmid, _)| *vmid)
                .collect();
            for worker in waiting {
                self.later(turn, worker, Process::Trust, Milestone::Secure);
            }
        }
    }

    /// Every kubelet that can reach an API server of its cluster that can write registers its node.
    pub(super) fn register(&mut self, turn: &mut Turn<'_>) {
        let served: Vec<String> = self
            .machines
            .values()
            .filter(|machine| machine.running.api_server)
            .filter_map(|machine| machine.cluster().map(str::to_owned))
            .filter(|cluster| self.quorum(cluster))
            .collect();
        let mut ready = Vec::new();
        for (vmid, machine) in &mut self.machines {
            let reachable =
                machine.cluster().is_some_and(|own| served.iter().any(|cluster| cluster == own));
            if reachable && machine.running.kubelet && !machine.running.registering {
                machine.running.registering = true;
                ready.push(*vmid);
            }
        }
        for vmid in ready {
            self.later(turn, vmid, Process::Register, Milestone::Node);
        }
    }

    fn node(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        let Some(address) = machine.address() else { return };
        let Some(cluster) = machine.cluster().map(str::to_owned) else { return };
        machine.running.joined = true;
        turn.signal(Signal::NodeJoined {
            cluster,
            name: machine.hostname().to_owned(),
            address,
            control_plane: machine.is_control_plane(),
            data_disk: machine.facts.data_disk_gib.is_some(),
            extensions: machine.facts.extensions.clone(),
        });
        self.later(turn, vmid, Process::MachineReady, Milestone::Ready);
    }
}
