//! The emulated machines: each boots, waits for a config, runs etcd and Kubernetes, and forgets with its disk.
//!
//! One [`Machine`] per VM that was ever switched on, and per machine that stands already. Everything that takes
//! time is an [`Effect`] that names the boot it belongs to, so that what a machine had begun dies with its power.
//! `life` says what follows on what and `ending` how it goes down, `etcd` who is a member and who holds the shared
//! address, `discovery` who is known to whom, `answer`, `apply`, `resource` and `health` what the API says, and
//! `service` puts it on the wire. `note` keeps what was said about a machine.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddrV4};

use serde::{Deserialize, Serialize};

use crate::turn::{Authority, Listen, ServerIdentity, Signal, Turn};

mod answer;
mod apply;
mod call;
mod config;
mod discovery;
mod ending;
mod etcd;
mod health;
mod life;
mod machine;
mod note;
mod reading;
mod resource;
mod seen;
pub mod service;
mod status;
#[cfg(test)]
mod tests;
mod trouble;

pub use call::{
    About, ApplyMode, Call, Check, ConfigText, Happening, Member, Refusal, Reply, ResetCall,
    ResourceShown, ServiceShown, What,
};
use discovery::Discovery;
use etcd::Etcd;
use machine::{KUBERNETES_PORT, Machine, PORTS, Troubles};
pub(crate) use resource::known_resources;
pub use trouble::TalosTrouble;

/// All machines and what they run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Talos {
    /// By the number of their VM.
    machines: BTreeMap<u32, Machine>,
    /// Every etcd that was bootstrapped and of which a disk still remembers, by a number.
    etcds: BTreeMap<u64, Etcd>,
    /// How many etcds were ever bootstrapped.
    births: u64,
    /// How many boots there were, of all machines that ever were. A boot's number is never given twice, because a
    /// VM's is: what a destroyed machine had begun must not reach the next one of its number.
    boots: u64,
    /// What machines have told of themselves.
    discovery: Discovery,
    /// What will be wrong with machines, by their number.
    troubles: BTreeMap<u32, Troubles>,
    /// Whether shared addresses take connections and say nothing.
    mute_vip: bool,
}

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// A machine has come a step further, if it has not been switched off since.
    Reached {
        /// Which.
        vmid: u32,
        /// In which boot.
        boot: u64,
        /// How far.
        milestone: Milestone,
    },
    /// The shared address finds a holder, if it has none.
    Election {
        /// Of which etcd.
        etcd: u64,
    },
    /// Those who were silent for too long are forgotten by the discovery service.
    Forget,
}

/// The steps of a machine's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Milestone {
    /// The kernel runs and Talos looks for a config.
    Kernel,
    /// The listener of maintenance mode is gone.
    Silent,
    /// The API listens with the machine's own certificate.
    Secure,
    /// The container runtime is up.
    Runtime,
    /// etcd's image is there.
    EtcdImage,
    /// etcd runs from its own data.
    Etcd,
    /// etcd has taken the machine in, to listen.
    Learner,
    /// The new member has told its name.
    Named,
    /// The member votes.
    Voter,
    /// The kubelet runs.
    Kubelet,
    /// The API server listens.
    ApiServer,
    /// The kubelet has registered its node.
    Node,
    /// The kubelet has given up.
    KubeletFailed,
    /// The boot is over.
    Booted,
    /// What was to be done before going down is done.
    Goodbye,
    /// Everything has stopped but the API.
    Deaf,
    /// Everything has stopped.
    Down,
}

impl Talos {
    /// Hears what happens to the VMs.
    pub fn heard(&mut self, turn: &mut Turn<'_>, signal: &Signal) {
        match signal {
            Signal::VmStarted(facts) => {
                self.switch_on(turn, facts);
                self.note_of(turn, facts.vmid);
            }
            Signal::VmStopped { vmid } => {
                self.switch_off(turn, *vmid);
                self.note(turn);
            }
            Signal::VmDestroyed { vmid } => {
                self.switch_off(turn, *vmid);
                if self.machines.remove(vmid).is_some() {
                    self.bury(*vmid);
                }
                self.disk_lost(turn, *vmid);
                self.note(turn);
            }
            Signal::NodeReady { cluster, name, ready } => {
                let node = self.machines.iter_mut().find(|(_, machine)| {
                    machine.cluster() == Some(cluster) && machine.hostname() == name
                });
                if let Some((vmid, machine)) = node.filter(|(_, machine)| machine.running.joined) {
                    machine.running.ready = *ready;
                    let vmid = *vmid;
                    self.note_of(turn, vmid);
                }
            }
            Signal::MachineHalted { .. }
            | Signal::ClusterBorn { .. }
            | Signal::ClusterLost { .. }
            | Signal::NodeJoined { .. }
            | Signal::DataDisk { .. }
            | Signal::NodeLost { .. } => {}
        }
    }

    /// Lets what is due happen.
    pub fn fire(&mut self, turn: &mut Turn<'_>, effect: Effect) {
        match effect {
            Effect::Reached { vmid, boot, milestone } => {
                if self.machines.get(&vmid).is_some_and(|m| m.on && m.boot == boot) {
                    self.reach(turn, vmid, milestone);
                    self.note_of(turn, vmid);
                }
            }
            Effect::Election { etcd } => {
                self.elect(turn, etcd);
                self.note(turn);
            }
            Effect::Forget => self.forget_silent(turn.now),
        }
    }

    /// Answers a call to a machine.
    ///
    /// # Errors
    /// What the machine refuses with.
    pub fn call(&mut self, turn: &mut Turn<'_>, vmid: u32, call: Call) -> Result<Reply, Refusal> {
        self.hears(vmid)?;
        if !call.mutates() {
            return match &call {
                Call::Apply { .. } => self.apply(turn, vmid, &call),
                other => self.read(vmid, other),
            };
        }
        let answer = self.write(turn, vmid, call);
        self.note_of(turn, vmid);
        answer
    }

    /// What answers at an address and port; none if no host has that address.
    #[must_use]
    pub fn listen(&self, address: Ipv4Addr, port: u16) -> Option<Listen> {
        let shared = self
            .etcds
            .values()
            .filter_map(|etcd| self.machines.get_key_value(&etcd.holder?))
            .find(|(_, machine)| machine.vip() == Some(address));
        let own = || {
            self.machines
                .iter()
                .find(|(_, machine)| machine.up && machine.address() == Some(address))
        };
        // Two machines with one address: the stranger's word is the last that the network heard.
        let strange =
            |machine: &Machine| machine.troubles.foreign && machine.address() == Some(address);
        if let Some((vmid, machine)) = self.machines.iter().find(|(_, machine)| strange(machine)) {
            return Some(machine.listener(*vmid, port));
        }
        if let Some((vmid, machine)) = shared {
            let listener = machine.listener(*vmid, port);
            let mute = self.mute_vip && listener != Listen::Refused;
            return Some(if mute { Listen::Mute { vmid: *vmid } } else { listener });
        }
        let (vmid, machine) = own()?;
        Some(machine.listener(*vmid, port))
    }

    /// Whether there is a machine of this number.
    #[must_use]
    pub fn knows(&self, vmid: u32) -> bool {
        self.machines.contains_key(&vmid)
    }

    /// Every address and port at which some machine listens now.
    #[must_use]
    pub fn sockets(&self) -> BTreeSet<SocketAddrV4> {
        let own = self.machines.values().filter(|machine| machine.up).map(Machine::address);
        let shared = self.machines.values().map(Machine::vip);
        own.chain(shared)
            .flatten()
            .flat_map(|address| PORTS.map(|port| SocketAddrV4::new(address, port)))
            .filter(|socket| {
                let listen = self.listen(*socket.ip(), socket.port());
                listen.is_some_and(|listen| listen != Listen::Refused)
            })
            .collect()
    }

    /// What the certificate of a listener is made from; none if the machine has none yet.
    #[must_use]
    pub fn identity(&self, vmid: u32, listen: Listen) -> Option<ServerIdentity> {
        let machine = self.machines.get(&vmid)?;
        let identity = |authority, client_authority, common_name: &str, names| ServerIdentity {
            authority,
            common_name: common_name.to_owned(),
            names,
            addresses: machine.address().into_iter().chain(self.held_vip(vmid)).collect(),
            client_authority,
            generation: (machine.boot, machine.generation),
            clock_off: machine.troubles.clock_off,
        };
        let name = machine.hostname().to_owned();
        match listen {
            Listen::Maintenance { .. } => Some(identity(None, None, &name, vec![name.clone()])),
            Listen::Secure { .. } => {
                let own = machine.config()?;
                let signer = self.signer(machine)?;
                let client = Some(own.os.certificate.clone());
                Some(identity(Some(authority(signer)), client, &name, vec![name.clone()]))
            }
            Listen::KubeApi { .. } => {
                let own = machine.config()?;
                let client = Some(own.kubernetes.certificate.clone());
                let mut names: Vec<String> = ["kubernetes", "kubernetes.default"]
                    .into_iter()
                    .chain(["kubernetes.default.svc", "kubernetes.default.svc.cluster.local"])
                    .map(str::to_owned)
                    .collect();
                names.push(name);
                let signer = Some(authority(&own.kubernetes));
                let mut made = identity(signer, client, "kube-apiserver", names);
                // The endpoint is in the certificate of every control plane, whoever holds it now.
                made.addresses.extend(own.endpoint);
                made.addresses.sort();
                made.addresses.dedup();
                // Talos makes the certificates of Kubernetes only when the clock is right.
                made.clock_off = 0;
                Some(made)
            }
            // Nobody gets to see what is behind it.
            Listen::Foreign { .. } | Listen::Mute { .. } => {
                Some(identity(None, None, &name, vec![name.clone()]))
            }
            Listen::Refused => None,
        }
    }

    /// The generation of a listener's identity, which open connections compare often: [`Self::identity`] without the keys.
    #[must_use]
    pub fn generation(&self, vmid: u32, listen: Listen) -> Option<(u64, u64)> {
        let machine = self.machines.get(&vmid)?;
        match listen {
            Listen::Refused => return None,
            Listen::KubeApi { .. } => drop(machine.config()?),
            Listen::Secure { .. } => drop(self.signer(machine)?),
            Listen::Maintenance { .. } | Listen::Foreign { .. } | Listen::Mute { .. } => {}
        }
        Some((machine.boot, machine.generation))
    }

    /// What signs the certificates of a machine's API: a worker has no key, so a control plane does it, or has done it.
    fn signer<'t>(&'t self, machine: &'t Machine) -> Option<&'t config::Pair> {
        let own = &machine.config()?.os.certificate;
        self.machines
            .values()
            .filter_map(Machine::config)
            .map(|config| &config.os)
            .find(|pair| !pair.key.is_empty() && pair.certificate == *own)
            .or_else(move || machine.signed_by.as_ref().filter(|pair| pair.certificate == *own))
    }

    /// Whether some etcd of a cluster has a quorum, so that its API servers can read and write.
    #[must_use]
    pub fn quorum(&self, cluster: &str) -> bool {
        self.etcds.iter().any(|(number, etcd)| etcd.cluster == cluster && self.healthy(*number))
    }

    /// How many etcds there are for a cluster of this id; more than one is a split brain.
    #[must_use]
    pub fn etcds_of(&self, cluster: &str) -> usize {
        self.etcds.values().filter(|etcd| etcd.cluster == cluster).count()
    }

    /// How many machines of ours have power.
    #[must_use]
    pub fn powered(&self) -> usize {
        self.machines.values().filter(|machine| machine.on && !machine.troubles.foreign).count()
    }

    /// Whether an API server of Kubernetes answers somewhere.
    #[must_use]
    pub fn serves_kubernetes(&self) -> bool {
        let serves = |(vmid, machine): (&u32, &Machine)| {
            machine.up && matches!(machine.listener(*vmid, KUBERNETES_PORT), Listen::KubeApi { .. })
        };
        self.machines.iter().any(serves)
    }
}

fn authority(pair: &config::Pair) -> Authority {
    Authority { certificate: pair.certificate.clone(), key: pair.key.clone() }
}
