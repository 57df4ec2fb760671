//! What follows on what in a machine's life, and how long each takes.

use super::machine::{Api, Machine, Troubles};
use super::note::Noted;
use super::{Effect, Milestone, Talos};
use crate::durations::Process;
use crate::turn::{Hardware, Signal, Turn, VmFacts};

/// The etcd of an earlier life that nobody else remembers: its number, and that of the member.
pub(super) const STALE: (u64, u64) = (u64::MAX, 1);

impl Talos {
    /// A VM got power: it boots from its disk, which remembers if it is the same one.
    pub(super) fn switch_on(&mut self, turn: &mut Turn<'_>, facts: &VmFacts) {
        let troubles = self.troubles.get(&facts.vmid).cloned().unwrap_or_default();
        let machine = self
            .machines
            .entry(facts.vmid)
            .or_insert_with(|| Machine::new(facts, troubles.clone()));
        if machine.on {
            return;
        }
        let other_disk = machine.disk.id != facts.disk;
        if other_disk {
            machine.disk = Machine::new(facts, Troubles::default()).disk;
        }
        let stale = std::mem::take(&mut machine.troubles.stale);
        if stale {
            machine.disk.etcd = Some(STALE);
        }
        machine.facts = facts.clone();
        // One disk was told to have a past; the one after it has none.
        if let Some(troubles) = self.troubles.get_mut(&facts.vmid).filter(|_| stale) {
            troubles.stale = false;
        }
        self.boot(turn, facts.vmid);
        if other_disk {
            self.disk_lost(turn, facts.vmid);
        }
    }

    /// A machine begins to boot, with what its disk remembers.
    pub(super) fn boot(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        self.boots += 1;
        machine.on = true;
        machine.boot = self.boots;
        machine.booted = turn.now;
        machine.generation += 1;
        machine.noted = Noted::default();
        let saved = machine.disk.saved.clone();
        machine.adopt(saved);
        if machine.facts.image.is_some() && !machine.disk.wiped && !machine.troubles.dead {
            self.later(turn, vmid, Process::Boot, Milestone::Kernel);
        }
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
                self.pull(turn, vmid);
                self.usurp(turn, vmid);
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
            Milestone::KubeletFailed => machine.running.kubelet_failed = true,
            Milestone::Booted => machine.running.booted = true,
            Milestone::Goodbye => self.goodbye(turn, vmid),
            Milestone::Deaf => self.deafen(turn, vmid),
            Milestone::Down => self.down(turn, vmid),
            Milestone::ApiServer => {
                machine.running.api_server = true;
                self.register(turn);
            }
            Milestone::Node => self.node(turn, vmid),
        }
    }

    /// Leaves the next step of a machine due.
    pub(super) fn later(&self, turn: &mut Turn<'_>, vmid: u32, what: Process, next: Milestone) {
        let delay = turn.draw(what, &vmid);
        self.after(turn, vmid, delay, next);
    }

    /// Leaves a step of a machine due after so many milliseconds.
    pub(super) fn after(&self, turn: &mut Turn<'_>, vmid: u32, delay: u64, milestone: Milestone) {
        let boot = self.machines.get(&vmid).map_or(0, |machine| machine.boot);
        turn.after(delay, Effect::Reached { vmid, boot, milestone });
    }

    /// The images of etcd and the kubelet come, as soon as the clock is right.
    pub(super) fn pull(&self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid) else { return };
        if machine.troubles.clock_astray {
            return;
        }
        if machine.is_control_plane() {
            let cached = machine.disk.etcd.is_some();
            let what = if cached { Process::EtcdCached } else { Process::EtcdPull };
            self.later(turn, vmid, what, Milestone::EtcdImage);
        }
        if machine.troubles.pulls_limited {
            self.later(turn, vmid, Process::KubeletGivesUp, Milestone::KubeletFailed);
        } else {
            self.later(turn, vmid, Process::Kubelet, Milestone::Kubelet);
        }
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
            // Data of another life are no use: etcd then waits for ever to be taken in.
            if self.is_member(vmid) {
                self.later(turn, vmid, Process::EtcdRestart, Milestone::Etcd);
            }
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
            || self
                .machines
                .values()
                .any(|other| other.gives_trust() && other.cluster() == cluster.as_deref());
        let signer = self.signer(machine).filter(|_| !control_plane).cloned();
        // A worker that waits for its certificate boots on meanwhile, and comes here a second time.
        let first = !machine.running.runtime;
        if let Some(machine) = self.machines.get_mut(&vmid).filter(|_| trusted) {
            machine.api = Api::Secure;
            machine.signed_by = signer;
            machine.generation += 1;
        }
        self.announce(turn, vmid);
        if first {
            self.later(turn, vmid, Process::Runtime, Milestone::Runtime);
        }
        self.entrust(turn, vmid);
    }

    /// Workers that wait for a certificate get it from a control plane that can give one.
    pub(super) fn entrust(&self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get(&vmid).filter(|machine| machine.gives_trust()) else {
            return;
        };
        let waiting = self
            .machines
            .iter()
            .filter(|(_, other)| other.up && other.api == Api::Down)
            .filter(|(_, other)| other.cluster() == machine.cluster())
            .filter(|(_, other)| !other.is_control_plane() && other.config().is_some());
        for (worker, _) in waiting {
            self.later(turn, *worker, Process::Trust, Milestone::Secure);
        }
    }

    /// Every kubelet that can reach an API server of its cluster that can write registers its node.
    pub(super) fn register(&mut self, turn: &mut Turn<'_>) {
        let served: Vec<String> = self
            .machines
            .values()
            .filter(|machine| machine.serves_kubernetes())
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
            extensions: machine.extensions(),
            version: machine.kubernetes_version(),
            boot_id: machine.boot_id(),
            hardware: Hardware {
                cores: machine.facts.cores.max(1),
                memory_mib: machine.facts.memory_mib,
                disk_gib: machine.facts.disk_gib,
                uuid: machine.facts.uuid.clone(),
                talos: machine.version(),
            },
        });
        if machine.troubles.data_disk_gone {
            self.tell_data_disk(turn, vmid, false);
        }
    }

    /// Lets the cluster know whether a machine that is a node sees the disk of its user volumes.
    pub(super) fn tell_data_disk(&self, turn: &mut Turn<'_>, vmid: u32, there: bool) {
        let node = self
            .machines
            .get(&vmid)
            .filter(|machine| machine.running.joined && machine.facts.data_disk_gib.is_some());
        let Some((machine, cluster)) = node.and_then(|m| Some((m, m.cluster()?))) else { return };
        let (cluster, name) = (cluster.to_owned(), machine.hostname().to_owned());
        turn.signal(Signal::DataDisk { cluster, name, there });
    }
}
