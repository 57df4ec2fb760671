//! The earliest moment at which a castle could stand: what the datacenter drew, along the edges that physics has.
//!
//! The bound knows nothing of castle's plan. It takes every length of time that was drawn and asks only what had to be
//! over before: an image is downloaded before a disk is imported from it, a machine boots after it got power, etcd takes
//! one learner at a time, a pod starts after its image is there. Within the cluster each draw knows by the end of which
//! other it began; where a client asked for it, the list below says what the question itself had to wait for. What
//! castle needs beyond that is its own doing, and a benchmark compares the two.

use std::collections::{BTreeMap, BTreeSet};

use crate::durations::{Draw, Process};

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
    // And on the way down: a VM is switched off before it is removed, and an image goes when nothing of ours runs from it.
    (Process::VmDestroy, From::Same, Process::VmStop),
    (Process::VolumeDelete, From::Each, Process::VmDestroy),
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
pub const GONE: &[Goal] = &[(Process::VmDestroy, ""), (Process::VolumeDelete, "")];

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
mod tests {
    use super::*;

    fn draw(what: Process, subject: &str, begun_at: u64, ms: u64) -> Draw {
        Draw { number: 0, what, subject: subject.to_owned(), begun_at, ms, after: None }
    }

    /// The bound of the platform, whenever it was reached.
    fn platform(draws: &[Draw], since: u64, names: &BTreeMap<String, String>) -> Critical {
        longest(draws, &Question { since, until: u64::MAX, names, goals: &[PLATFORM] })
    }

    #[test]
    fn waiting_does_not_count_and_chains_do() {
        let draws = [
            draw(Process::ImageDownload, "talos.qcow2", 0, 5000),
            draw(Process::VmCreate, "421", 9000, 1000),
            draw(Process::VmCreate, "422", 9000, 2000),
            draw(Process::VmStart, "421", 20_000, 3000),
            draw(Process::VmStart, "422", 20_000, 1000),
            draw(Process::Boot, "421", 23_000, 1000),
            draw(Process::Boot, "422", 23_000, 1000),
        ];
        let found = platform(&draws, 0, &BTreeMap::new());
        assert_eq!(found.ms, 0, "nothing of what the platform is for was reached");
        let boot = |ms| draw(Process::ApiServer, "421", 30_000, ms);
        let own = draw(Process::ControlPlanePull, "421", 24_000, 10_000);
        let found = platform(&[&draws[..], &[own, boot(2000)]].concat(), 0, &BTreeMap::new());
        // No edge leads from the boot to the images here: 10 + 2.
        assert_eq!(found.ms, 12_000);
        let joins = [
            draw(Process::ListenerLingers, "421", 0, 1),
            draw(Process::ListenerSwap, "421", 0, 1),
            draw(Process::Runtime, "421", 0, 1),
            draw(Process::EtcdPull, "421", 0, 1),
            draw(Process::EtcdBootstrap, "421", 0, 1),
            draw(Process::Election, "1", 0, 1),
        ];
        let found = platform(&[&draws[..], &joins].concat(), 0, &BTreeMap::new());
        // 5 + 1 + 3 + 1, and six times a millisecond, however late each of them began.
        assert_eq!(found.ms, 10_006);
        let chain: Vec<&str> = found.chain.iter().map(|draw| draw.what.name()).collect();
        assert_eq!(chain[..4], ["image-download", "vm-create", "vm-start", "boot"]);
    }

    #[test]
    fn etcd_begins_when_every_control_plane_has_answered() {
        let draws = [
            draw(Process::ListenerSwap, "421", 0, 1000),
            draw(Process::ListenerSwap, "422", 0, 7000),
            draw(Process::ListenerSwap, "431", 0, 9000),
            draw(Process::EtcdPull, "421", 0, 100),
            draw(Process::EtcdPull, "422", 0, 100),
            draw(Process::EtcdBootstrap, "421", 0, 2000),
            draw(Process::Election, "1", 0, 1000),
        ];
        assert_eq!(platform(&draws, 0, &BTreeMap::new()).ms, 10_000, "a worker is not waited for");
    }

    #[test]
    fn learners_come_one_after_the_other_and_nodes_have_names() {
        let draws = [
            draw(Process::EtcdBootstrap, "421", 0, 4000),
            draw(Process::EtcdJoin, "422", 0, 1000),
            draw(Process::EtcdPromotion, "422", 0, 6000),
            draw(Process::EtcdJoin, "423", 0, 1000),
            draw(Process::EtcdPromotion, "423", 0, 6000),
        ];
        assert_eq!(platform(&draws, 0, &BTreeMap::new()).ms, 18_000);
        let ended = [
            draw(Process::NodeReady, "1", 0, 2000),
            draw(Process::ProxyStart, "1 kube-proxy", 0, 2500),
        ];
        assert_eq!(platform(&ended, 0, &BTreeMap::new()).ms, 2500, "Ready nodes are not enough");
        let names = BTreeMap::from([("cp-01".to_owned(), "421".to_owned())]);
        let draws = [
            draw(Process::Register, "421", 0, 1000),
            draw(Process::NodeNetwork, "cp-01", 0, 2000),
            draw(Process::NodeReady, "cp-01", 0, 3000),
        ];
        assert_eq!(platform(&draws, 0, &names).ms, 6000);
        assert_eq!(platform(&draws, 1, &names).ms, 0, "what was drawn before does not count");
    }

    #[test]
    fn what_follows_by_itself_follows_what_it_began_by() {
        let mut draws = vec![
            draw(Process::ApiServer, "421", 0, 1000),
            draw(Process::NodeNetwork, "w-01", 0, 5000),
            draw(Process::Rollout, "longhorn-system/longhorn-manager", 9000, 100),
            draw(
                Process::LonghornManagerPull,
                "w-01 longhorn-system/longhorn-manager-x",
                9100,
                2000,
            ),
            draw(Process::LonghornManagerStart, "w-01 longhorn-system/longhorn-manager-x", 0, 300),
            draw(Process::InstanceManagerPull, "w-01", 0, 40),
            draw(Process::LonghornDisk, "w-01", 0, 5),
        ];
        for (index, draw) in draws.iter_mut().enumerate() {
            draw.number = index as u64;
            draw.after = (index > 2).then(|| index as u64 - 1);
        }
        let names = BTreeMap::new();
        let asked = |until| Question { since: 0, until, names: &names, goals: &[CLUSTER] };
        // The rollout waits for the API server alone, the pull for the node's network, too.
        assert_eq!(longest(&draws, &asked(u64::MAX)).ms, 5000 + 2000 + 300 + 40 + 5);
        assert_eq!(longest(&draws, &asked(4)).ms, 0, "nothing was reached by then");
        draws[1].ms = 10;
        assert_eq!(longest(&draws, &asked(u64::MAX)).ms, 1000 + 100 + 2000 + 300 + 40 + 5);
    }

    #[test]
    fn the_way_down_is_as_long_as_its_slowest_machine_and_the_image_after_it() {
        let draws = [
            draw(Process::VmStop, "421", 0, 1000),
            draw(Process::VmStop, "422", 0, 1500),
            draw(Process::VmDestroy, "421", 1000, 1400),
            draw(Process::VmDestroy, "422", 1500, 800),
            draw(Process::VolumeDelete, "image", 2400, 200),
        ];
        let names = BTreeMap::new();
        let asked = Question { since: 0, until: u64::MAX, names: &names, goals: &[GONE] };
        assert_eq!(longest(&draws, &asked).ms, 1000 + 1400 + 200);
    }

    #[test]
    fn a_name_tells_which_of_many_is_meant() {
        let draws = [
            draw(Process::Webhook, "longhorn-system/longhorn-admission-webhook", 0, 1000),
            draw(Process::Webhook, "external-secrets/external-secrets-webhook", 0, 3000),
            draw(
                Process::ExternalSecretsStart,
                "w external-secrets/external-secrets-webhook-a-b",
                0,
                2000,
            ),
            draw(Process::ExternalSecretsStart, "w external-secrets/external-secrets-a-b", 0, 4000),
            draw(Process::StoreCheck, "infisical", 0, 500),
            draw(Process::SecretSync, "external-secrets/castle-probe", 0, 2000),
            draw(Process::SecretSync, "flux-system/flux-system", 0, 4000),
            draw(Process::GitFetch, "flux-system/flux-system", 0, 100),
            draw(Process::NodeReady, "1", 0, 9000),
            draw(Process::FluxLevel, "flux-system/apps", 0, 50),
            draw(Process::FluxLevel, "flux-system/flux-system", 0, 10),
        ];
        let names = BTreeMap::new();
        let asked = |goals| Question { since: 0, until: u64::MAX, names: &names, goals };
        // The controller's own pod is waited for, not the one whose name begins alike.
        assert_eq!(longest(&draws[..8], &asked(&[CLUSTER])).ms, 4000 + 500 + 4000 + 100);
        // Without every node nothing is handed over, and the root alone is the handover.
        assert_eq!(longest(&draws, &asked(&[HANDOVER])).ms, 9000 + 10);
        assert_eq!(longest(&draws, &asked(&[CLUSTER])).ms, 9000 + 50);
    }
}
