//! The whole datacenter as one value, and the one function that changes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::birth::Birth;
use crate::durations::{Draws, Process};
use crate::infisical::{self, Infisical};
use crate::kubernetes::Kubernetes;
use crate::proxmox::{self, Proxmox};
use crate::queue::Queue;
use crate::sources::Sources;
use crate::talos::{self, Talos};
use crate::trouble::Trouble;
use crate::turn::{
    Dice, Effect, HttpCall, HttpReply, Neighbours, SecretQuery, Server, Signal, Turn,
};

/// The format of the datacenter on disk. A change that an older reader would misread raises it.
pub const FORMAT: u32 = 13;

/// How many signals one input may set off: a loop between parts is a bug, and must not hang.
const SIGNALS_MAX: usize = 10_000;

/// Everything there is: it is saved, loaded and compared as one value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Datacenter {
    /// What it was built for.
    pub birth: Birth,
    /// Virtual milliseconds since birth at the last change.
    pub now: u64,
    /// By how many milliseconds its birth is later than the usual one: a world that was served lives in the days of
    /// those outside.
    pub dawn: u64,
    /// How many processes have opened it.
    pub opens: u64,
    /// Changing calls that each server has carried out, over the whole life of the world.
    pub mutations: BTreeMap<String, u64>,
    /// What is due.
    pub queue: Queue,
    /// Proxmox VE.
    pub proxmox: Proxmox,
    /// Infisical.
    pub infisical: Infisical,
    /// Image factory, manifests, Git.
    pub sources: Sources,
    /// The machines.
    pub talos: Talos,
    /// The cluster.
    pub kubernetes: Kubernetes,
    /// Every length of time that was drawn from the table, so that a bound can be computed from what took so long.
    pub draws: Draws,
    dice: Dice,
}

/// What happens to the world from outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// The first due effect happens.
    Fire,
    /// A request reached a server.
    Http {
        /// Which server.
        server: Server,
        /// The request.
        call: HttpCall,
    },
    /// A call reached a machine.
    Talos {
        /// Which machine.
        vmid: u32,
        /// The call.
        call: talos::Call,
    },
    /// Something goes wrong.
    Trouble(Trouble),
    /// The process that hosts the world ends its day: time stands still from here.
    Rest,
    /// A process opened the world.
    Open {
        /// What its castle file asks for, if that differs from what the world was built for: what is new in
        /// it is added.
        birth: Option<Box<Birth>>,
        /// How much later than usual the world's birth is from now on, if that changes.
        dawn: Option<u64>,
    },
}

/// What the world answers.
#[derive(Debug)]
pub struct Output {
    /// The answer.
    pub answer: Answer,
    /// Whether the world changed: such an input is logged, because a replay needs it.
    pub changed: bool,
    /// Whether the call counts as a change that a client made (a login changes tokens and does not count).
    pub counted: bool,
    /// Whom it concerns.
    pub concerns: Concerns,
}

/// Who may have something new to hear after an input.
#[derive(Debug, Clone, Copy)]
pub struct Concerns {
    /// Whoever follows a machine: its listeners, or what it tells of itself.
    pub machines: bool,
    /// Whoever follows objects of the cluster.
    pub cluster: bool,
}

/// The answer to an input.
#[derive(Debug)]
pub enum Answer {
    /// Nothing is asked.
    Done,
    /// An effect of this part happened.
    Fired(&'static str),
    /// The answer to a request.
    Http(HttpReply),
    /// The answer of a machine.
    Talos(Result<talos::Reply, talos::Refusal>),
}

impl Datacenter {
    /// A datacenter as it stands before the first castle.
    #[must_use]
    pub fn new(birth: Birth) -> Self {
        Self {
            now: 0,
            dawn: 0,
            opens: 0,
            mutations: BTreeMap::new(),
            queue: Queue::default(),
            proxmox: Proxmox::new(&birth.proxmox),
            infisical: Infisical::new(&birth.infisical),
            sources: Sources::new(&birth.sources),
            talos: Talos::default(),
            kubernetes: Kubernetes::default(),
            draws: Draws::default(),
            dice: Dice::new(birth.seed),
            birth,
        }
    }

    /// The one transition: live calls, due effects and replays all go through it.
    pub fn input(&mut self, at: u64, input: &Input) -> Output {
        let dice = self.dice.clone();
        let place = self.kubernetes.place();
        let (mut due, mut signals) = (Vec::new(), Vec::new());
        let fired =
            matches!(input, Input::Fire | Input::Open { .. } | Input::Rest | Input::Trouble(_));
        let (answer, wrote, counted, mut machines) = self.apply(at, input, &mut due, &mut signals);
        let changed = fired || wrote || !due.is_empty() || !signals.is_empty() || dice != self.dice;
        machines |= self.deliver(at, &mut due, &mut signals);
        for (delay, effect) in due {
            self.queue.push(at + delay, effect);
        }
        // A read leaves no mark, not even its time: it is not logged, and a replay must not miss it.
        if changed {
            self.now = self.now.max(at);
        }
        if counted {
            let server = answer.server();
            *self.mutations.entry(server.to_owned()).or_default() += 1;
        }
        let dawns = matches!(input, Input::Open { dawn: Some(_), .. });
        // What somebody breaks may change how the cluster is without a new version of any object.
        let told = dawns || matches!(input, Input::Trouble(_));
        let concerns = Concerns { machines, cluster: told || self.kubernetes.place() != place };
        Output { answer: answer.into(), changed, counted, concerns }
    }

    /// Lets the first due effect happen.
    fn fire(
        &mut self,
        at: u64,
        due: &mut Vec<(u64, Effect)>,
        signals: &mut Vec<Signal>,
    ) -> (Applied, bool, bool, bool) {
        let outside = Outside { infisical: &self.infisical, sources: &self.sources };
        let paralysed = self.kubernetes.cluster().is_some_and(|id| !self.talos.quorum(id));
        let mut turn = Turn { now: at, dice: &mut self.dice, due, signals, draws: &mut self.draws };
        match self.queue.pop() {
            None => (Applied::Done, false, false, false),
            Some((_, Effect::Proxmox(effect))) => {
                self.proxmox.fire(&mut turn, effect);
                (Applied::Fired("proxmox"), true, false, false)
            }
            Some((_, Effect::Talos(effect))) => {
                self.talos.fire(&mut turn, effect);
                (Applied::Fired("talos"), true, false, true)
            }
            Some((_, Effect::Kubernetes(effect))) if paralysed => {
                // No controller can write: it tries again, unless its cluster is a past one.
                if self.kubernetes.owns(&effect) {
                    turn.after(Process::ControllerAgain.usual(), effect);
                }
                (Applied::Fired("kubernetes"), true, false, false)
            }
            Some((_, Effect::Kubernetes(effect))) => {
                self.kubernetes.fire(&mut turn, effect, &outside);
                (Applied::Fired("kubernetes"), true, false, false)
            }
        }
    }

    fn apply(
        &mut self,
        at: u64,
        input: &Input,
        due: &mut Vec<(u64, Effect)>,
        signals: &mut Vec<Signal>,
    ) -> (Applied, bool, bool, bool) {
        if matches!(input, Input::Fire) {
            return self.fire(at, due, signals);
        }
        let outside = Outside { infisical: &self.infisical, sources: &self.sources };
        let paralysed = self.kubernetes.cluster().is_some_and(|id| !self.talos.quorum(id));
        let mut turn = Turn { now: at, dice: &mut self.dice, due, signals, draws: &mut self.draws };
        match input {
            // It was carried out above.
            Input::Fire => (Applied::Done, false, false, false),
            Input::Http { server, call } => {
                let met = (self.proxmox.troubles_met(), self.sources.troubles_met());
                let (reply, counts) = match server {
                    Server::Proxmox => (self.proxmox.call(&mut turn, call), proxmox::counts(call)),
                    Server::Infisical => {
                        (self.infisical.call(&mut turn, call), infisical::counts(call))
                    }
                    Server::Sources => (self.sources.call(call), true),
                    Server::Kubernetes if paralysed => (Kubernetes::without_etcd(call), true),
                    Server::Kubernetes => (self.kubernetes.call(&mut turn, call, &outside), true),
                };
                let wrote = reply.mutated;
                // A call that met a trouble used it up, whatever else it did.
                let after = (self.proxmox.troubles_met(), self.sources.troubles_met());
                let changed = wrote || after != met;
                (Applied::Http(*server, reply), changed, wrote && counts, false)
            }
            Input::Talos { vmid, call } => {
                let writes = call.mutates();
                let answer = self.talos.call(&mut turn, *vmid, call.clone());
                let counted = writes && answer.is_ok();
                (Applied::Talos(answer), writes, counted, writes)
            }
            Input::Trouble(Trouble::Proxmox(trouble)) => {
                self.proxmox.suffer(&mut turn, trouble);
                (Applied::Done, true, false, true)
            }
            Input::Trouble(Trouble::Talos(trouble)) => {
                self.talos.suffer(&mut turn, trouble);
                (Applied::Done, true, false, true)
            }
            Input::Trouble(Trouble::Infisical(trouble)) => {
                self.infisical.suffer(trouble);
                (Applied::Done, true, false, false)
            }
            Input::Trouble(Trouble::Git(trouble)) => {
                self.sources.git_suffers(trouble);
                (Applied::Done, true, false, false)
            }
            Input::Trouble(Trouble::Flux(trouble)) => {
                self.kubernetes.flux_suffers(&mut turn, trouble);
                (Applied::Done, true, false, false)
            }
            Input::Trouble(Trouble::Sources(trouble)) => {
                self.sources.suffer(trouble);
                (Applied::Done, true, false, false)
            }
            Input::Trouble(Trouble::Kubernetes(trouble)) => {
                if !(paralysed && trouble.writes()) {
                    self.kubernetes.suffer(&mut turn, trouble);
                }
                (Applied::Done, true, false, false)
            }
            Input::Rest => (Applied::Done, true, false, false),
            Input::Open { birth, dawn } => {
                self.opens += 1;
                if let Some(dawn) = *dawn {
                    self.dawn = dawn;
                    self.kubernetes.dawns(dawn);
                }
                if let Some(birth) = birth {
                    self.proxmox.ensure(&birth.proxmox);
                    self.infisical.ensure(&birth.infisical);
                    self.sources.ensure(&birth.sources);
                    self.birth.ensure(birth);
                }
                for facts in &self.birth.machines {
                    if !self.talos.knows(facts.vmid) {
                        turn.signal(Signal::VmStarted(facts.clone()));
                    }
                }
                (Applied::Done, true, false, false)
            }
        }
    }

    /// Hands signals on until all is quiet, and says whether a machine heard one.
    fn deliver(
        &mut self,
        at: u64,
        due: &mut Vec<(u64, Effect)>,
        signals: &mut Vec<Signal>,
    ) -> bool {
        let mut machines = false;
        let mut heard = 0;
        while heard < signals.len() && heard < SIGNALS_MAX {
            let mut signal = signals[heard].clone();
            heard += 1;
            let mut turn =
                Turn { now: at, dice: &mut self.dice, due, signals, draws: &mut self.draws };
            match &mut signal {
                Signal::VmStarted(facts) => {
                    if facts.extensions.is_empty() {
                        facts.extensions = self.sources.extensions(facts.image.as_deref());
                    }
                    self.talos.heard(&mut turn, &signal);
                    machines = true;
                }
                Signal::VmStopped { .. }
                | Signal::VmDestroyed { .. }
                | Signal::NodeReady { .. } => {
                    self.talos.heard(&mut turn, &signal);
                    machines = true;
                }
                Signal::MachineHalted { vmid } => self.proxmox.halted(&mut turn, *vmid),
                Signal::ClusterBorn { .. }
                | Signal::ClusterLost { .. }
                | Signal::NodeJoined { .. }
                | Signal::DataDisk { .. }
                | Signal::NodeLost { .. } => self.kubernetes.heard(&mut turn, &signal),
            }
        }
        machines
    }
}

/// An answer that still knows whose it is.
enum Applied {
    Done,
    Fired(&'static str),
    Http(Server, HttpReply),
    Talos(Result<talos::Reply, talos::Refusal>),
}

impl Applied {
    fn server(&self) -> &'static str {
        match self {
            Self::Done | Self::Fired(_) => "datacenter",
            Self::Http(server, _) => server.name(),
            Self::Talos(_) => "talos",
        }
    }
}

impl From<Applied> for Answer {
    fn from(applied: Applied) -> Self {
        match applied {
            Applied::Done => Self::Done,
            Applied::Fired(part) => Self::Fired(part),
            Applied::Http(_, reply) => Self::Http(reply),
            Applied::Talos(answer) => Self::Talos(answer),
        }
    }
}

/// What the cluster reaches beyond its own walls.
struct Outside<'a> {
    infisical: &'a Infisical,
    sources: &'a Sources,
}

impl Neighbours for Outside<'_> {
    fn secret(&self, query: &SecretQuery<'_>) -> Result<String, String> {
        self.infisical.read(query)
    }

    fn git_head(
        &self,
        url: &str,
        branch: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<String, String> {
        self.sources.git_head(url, branch, credentials)
    }

    fn git_files(&self, url: &str, commit: &str) -> Option<&BTreeMap<String, String>> {
        self.sources.git_files(url, commit)
    }
}

#[cfg(test)]
mod tests;
