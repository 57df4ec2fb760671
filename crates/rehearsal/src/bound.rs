//! The earliest moment at which a castle could stand: what the datacenter drew, along the edges that physics has.
//!
//! The bound knows nothing of castle's plan. It takes every length of time that was drawn and asks only what had to be
//! over before: an image is downloaded before a disk is imported from it, a machine boots after it got power, etcd takes
//! one learner at a time, a pod starts after its image is there. Within the cluster each draw knows by the end of which
//! other it began; where a client asked for it, the list below says what the question itself had to wait for. What
//! castle needs beyond that is its own doing, and a benchmark compares the two.

use std::collections::{BTreeMap, BTreeSet};

use crate::durations::{Draw, Process};

pub mod far;

/// Which other draw an edge begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// That of the same machine.
    Same,
    /// The one that is over first, of whatever machine.
    First,
    /// The one that is over first of those whose object's name begins like this.
    FirstOf(&'static str),
    /// The one that is over first of the pods of this Deployment, whose own names end with two words more.
    PodOf(&'static str),
    /// Every earlier one, of whatever machine: they go one after the other.
    Each,
    /// Every earlier one of a machine that is to run etcd.
    ControlPlanes,
}

/// An edge: the process can not begin before another is over.
pub type Edge = (Process, From, Process);

/// What physics asks for on the way from an empty host to a castle that Flux has built.
pub const EDGES: &[Edge] = &[
    (Process::VmCreate, From::First, Process::ImageDownload),
    (Process::VmConfigure, From::Same, Process::VmCreate),
    (Process::DiskResize, From::Same, Process::VmCreate),
    (Process::VmStart, From::Same, Process::VmCreate),
    (Process::VmStart, From::Same, Process::VmConfigure),
    (Process::VmStart, From::Same, Process::DiskResize),
    (Process::Boot, From::Same, Process::VmStart),
    (Process::ListenerLingers, From::Same, Process::Boot),
    (Process::ListenerSwap, From::Same, Process::ListenerLingers),
    (Process::Runtime, From::Same, Process::ListenerSwap),
    (Process::EtcdPull, From::Same, Process::Runtime),
    (Process::Kubelet, From::Same, Process::Runtime),
    (Process::EtcdBootstrap, From::Same, Process::EtcdPull),
    // An edge that safety adds to physics: nobody begins an etcd before every control plane has said that it has
    // none, over an API that proves who it is.
    (Process::EtcdBootstrap, From::ControlPlanes, Process::ListenerSwap),
    (Process::EtcdJoin, From::Same, Process::EtcdPull),
    (Process::EtcdJoin, From::First, Process::EtcdBootstrap),
    (Process::EtcdJoin, From::Each, Process::EtcdPromotion),
    (Process::EtcdPromotion, From::Same, Process::EtcdJoin),
    (Process::Election, From::First, Process::EtcdBootstrap),
    (Process::ControlPlanePull, From::Same, Process::EtcdBootstrap),
    (Process::ControlPlanePull, From::Same, Process::EtcdPromotion),
    (Process::ApiServer, From::Same, Process::ControlPlanePull),
    (Process::Register, From::Same, Process::Kubelet),
    (Process::Register, From::First, Process::ApiServer),
    (Process::NodeNetwork, From::Same, Process::Register),
    (Process::NodeReady, From::Same, Process::NodeNetwork),
    (Process::AddonPull, From::Same, Process::NodeReady),
    (Process::AddonStart, From::Same, Process::AddonPull),
    // What is written into the cluster: somebody must answer there.
    (Process::Established, From::First, Process::ApiServer),
    (Process::Rollout, From::First, Process::ApiServer),
    // A pod of every node needs the node's network, one that may be anywhere a Ready node.
    (Process::MetallbPull, From::Same, Process::NodeNetwork),
    (Process::LonghornManagerPull, From::Same, Process::NodeNetwork),
    (Process::LonghornPull, From::Same, Process::NodeNetwork),
    (Process::AppPull, From::Same, Process::NodeNetwork),
    (Process::ExternalSecretsPull, From::Same, Process::NodeReady),
    (Process::FluxPull, From::Same, Process::NodeReady),
    // A store is accepted by the webhook and looked at by the controller, and a secret comes through a good store.
    (Process::StoreCheck, From::FirstOf("external-secrets/"), Process::Webhook),
    (
        Process::StoreCheck,
        From::PodOf("external-secrets/external-secrets"),
        Process::ExternalSecretsStart,
    ),
    (Process::SecretSync, From::First, Process::StoreCheck),
    (Process::AddressGiven, From::First, Process::MetallbWebhook),
    (Process::ClaimBind, From::First, Process::LonghornDisk),
    (Process::ClaimBind, From::FirstOf("longhorn-system/csi-provisioner"), Process::LonghornStart),
    // Flux fetches with the token that came through the store.
    (Process::GitFetch, From::FirstOf("flux-system/source-controller"), Process::FluxStart),
    (Process::GitFetch, From::FirstOf("flux-system/"), Process::SecretSync),
    (Process::FluxLevel, From::FirstOf("flux-system/kustomize-controller"), Process::FluxStart),
    (Process::FluxLevel, From::First, Process::GitFetch),
    // The other edge of safety: a cluster is handed over with all of its nodes, not before.
    (Process::FluxLevel, From::Each, Process::NodeReady),
    // And on the way down: the keys to Proxmox come from far away, a VM is switched off before it is removed, and an image goes
    // when nothing of ours runs from it.
    (Process::VmStop, From::FirstOf(far::KEYS), Process::AnswerFar),
    (Process::VmDestroy, From::Same, Process::VmStop),
    (Process::VolumeDelete, From::Each, Process::VmDestroy),
    // Safety again: what opens the machines is kept until there is none.
    (Process::AnswerFar, From::Each, Process::VmDestroy),
];

/// Something that is to be reached: a process, and how the name of its object begins.
pub type Goal = (Process, &'static str);

/// What the platform is made for: chains that end elsewhere keep nobody waiting.
pub const PLATFORM: &[Goal] = &[
    (Process::EtcdPromotion, ""),
    (Process::Election, ""),
    (Process::ApiServer, ""),
    (Process::NodeReady, ""),
    (Process::FlannelStart, ""),
    (Process::ProxyStart, ""),
    (Process::AddonStart, ""),
];

/// What the handover waits for: the root of the tree, built.
pub const HANDOVER: &[Goal] =
    &[(Process::FluxLevel, ROOT), (Process::Requeue, ROOT), (Process::FluxHealth, ROOT)];

/// What the other layers and Flux are to have brought at the end.
pub const CLUSTER: &[Goal] = &[
    (Process::ExternalSecretsStart, ""),
    (Process::SecretSync, ""),
    (Process::MetallbStart, ""),
    (Process::MetallbWebhook, ""),
    (Process::LonghornManagerStart, ""),
    (Process::LonghornStart, ""),
    (Process::LonghornDisk, ""),
    (Process::ClaimBind, ""),
    (Process::FluxStart, ""),
    (Process::GitFetch, ""),
    (Process::FluxLevel, ""),
    (Process::FluxHealth, ""),
    (Process::Requeue, ""),
    (Process::HelmInstall, ""),
    (Process::AppStart, ""),
];

/// What is to be gone at the end of a way down.
pub const GONE: &[Goal] =
    &[(Process::VmDestroy, ""), (Process::VolumeDelete, ""), (Process::AnswerFar, far::GONE)];

/// The root of the tree that Flux builds.
const ROOT: &str = "flux-system/flux-system";

/// What is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    /// Draws that began earlier do not count, in virtual milliseconds.
    pub since: u64,
    /// Nor do goals that were reached later: somebody stopped waiting before.
    pub until: u64,
    /// The numbers of machines by the names of their nodes.
    pub names: &'a BTreeMap<String, String>,
    /// What is to be reached.
    pub goals: &'a [&'a [Goal]],
}

/// The bound, and the chain of draws that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Critical {
    /// Milliseconds from the first draw's begin.
    pub ms: u64,
    /// The draws on the longest chain, in their order.
    pub chain: Vec<Draw>,
}

/// Draws that are over at some time, by what an edge asks for.
#[derive(Default)]
struct Earlier<'a> {
    /// The latest of a machine.
    same: BTreeMap<(Process, &'a str), usize>,
    first: BTreeMap<Process, usize>,
    each: BTreeMap<Process, usize>,
    voters: BTreeMap<Process, usize>,
    /// The first by the edge's beginning of a name.
    named: BTreeMap<(Process, &'static str), usize>,
}

/// The longest chain through what was drawn.
///
/// Draws are looked at in the order in which they were made, so that what an edge begins at is known already.
#[must_use]
pub fn longest(draws: &[Draw], question: &Question<'_>) -> Critical {
    let draws: Vec<&Draw> = draws.iter().filter(|draw| draw.begun_at >= question.since).collect();
    let machines: Vec<&str> = draws.iter().map(|draw| machine_of(draw, question.names)).collect();
    let pulls = (0..draws.len()).filter(|index| draws[*index].what == Process::EtcdPull);
    let voters: BTreeSet<&str> = pulls.map(|index| machines[index]).collect();
    let numbers: BTreeMap<u64, usize> =
        draws.iter().enumerate().map(|(index, draw)| (draw.number, index)).collect();
    // When each could be over at the earliest, and which one before it decides that.
    let mut over: Vec<(u64, Option<usize>)> = Vec::new();
    let mut earlier = Earlier::default();
    for (index, draw) in draws.iter().enumerate() {
        let by = draw.after.and_then(|number| numbers.get(&number)).copied();
        let edges = EDGES.iter().filter(|(process, ..)| *process == draw.what);
        let needs = edges.filter_map(|(_, from, before)| match from {
            From::Same => earlier.same.get(&(*before, machines[index])),
            From::First => earlier.first.get(before),
            From::FirstOf(name) | From::PodOf(name) => earlier.named.get(&(*before, name)),
            From::Each => earlier.each.get(before),
            From::ControlPlanes => earlier.voters.get(before),
        });
        let decisive = needs.copied().chain(by).max_by_key(|other| over[*other].0);
        let begin = decisive.map_or(0, |other| over[other].0);
        over.push((begin + draw.ms, decisive));
        let votes = voters.contains(machines[index]);
        earlier.add(draw, (machines[index], votes), (index, &over));
    }
    let reached = |draw: &Draw| {
        let named = |name: &str| object_of(draw).starts_with(name);
        let wanted = question.goals.iter().copied().flatten();
        draw.begun_at + draw.ms <= question.until
            && wanted.into_iter().any(|(what, name)| *what == draw.what && named(name))
    };
    let last =
        (0..draws.len()).filter(|index| reached(draws[*index])).max_by_key(|index| over[*index].0);
    let mut chain = Vec::new();
    let mut at = last;
    while let Some(index) = at {
        chain.push(draws[index].clone());
        at = over[index].1;
    }
    chain.reverse();
    Critical { ms: last.map_or(0, |index| over[index].0), chain }
}

impl<'a> Earlier<'a> {
    fn add(
        &mut self,
        draw: &Draw,
        (machine, votes): (&'a str, bool),
        (index, over): (usize, &[(u64, Option<usize>)]),
    ) {
        let sooner = |held: &mut usize| {
            if over[index].0 < over[*held].0 {
                *held = index;
            }
        };
        let later = |held: &mut usize| {
            if over[index].0 >= over[*held].0 {
                *held = index;
            }
        };
        self.same.insert((draw.what, machine), index);
        self.first.entry(draw.what).and_modify(sooner).or_insert(index);
        self.each.entry(draw.what).and_modify(later).or_insert(index);
        if votes {
            self.voters.entry(draw.what).and_modify(later).or_insert(index);
        }
        for (_, from, before) in EDGES {
            let (name, is_it) = match from {
                From::FirstOf(name) => (*name, object_of(draw).starts_with(name)),
                From::PodOf(name) => (*name, deployment_of(draw) == Some(name)),
                From::Same | From::First | From::Each | From::ControlPlanes => continue,
            };
            if is_it && *before == draw.what {
                self.named.entry((draw.what, name)).and_modify(sooner).or_insert(index);
            }
        }
    }
}

/// The machine that a draw is of: the first word of its subject, a node by its number.
fn machine_of<'a>(draw: &'a Draw, names: &'a BTreeMap<String, String>) -> &'a str {
    let first = draw.subject.split(' ').next().unwrap_or_default();
    names.get(first).map_or(first, String::as_str)
}

/// The object that a draw is of: the last word of its subject.
fn object_of(draw: &Draw) -> &str {
    draw.subject.rsplit(' ').next().unwrap_or_default()
}

/// The Deployment of the pod that a draw is of.
fn deployment_of(draw: &Draw) -> Option<&str> {
    object_of(draw).rsplitn(3, '-').nth(2)
}

#[cfg(test)]
mod tests;
