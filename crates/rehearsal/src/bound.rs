//! The earliest moment at which the machines of a castle could be ready: what the datacenter drew, along the edges
//! that physics has.
//!
//! The bound knows nothing of castle's plan. It takes every length of time that was drawn and asks only what had to be
//! over before: an image is downloaded before a disk is imported from it, a machine boots after it got power, etcd takes
//! one learner at a time. What castle needs beyond that is its own doing, and a benchmark compares the two.

use std::collections::{BTreeMap, BTreeSet};

use crate::durations::{Draw, Process};

/// Which other draw an edge begins at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    /// That of the same machine.
    Same,
    /// The one that is over first, of whatever machine.
    First,
    /// Every earlier one, of whatever machine: they go one after the other.
    Each,
    /// Every earlier one of a machine that is to run etcd.
    ControlPlanes,
}

/// An edge: the process can not begin before another is over.
pub type Edge = (Process, From, Process);

/// What physics asks for on the way from an empty host to Ready nodes.
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
    // The one edge that safety adds to physics: nobody begins an etcd before every control plane has said that it has
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
];

/// What the platform is made for: chains that end elsewhere keep nobody waiting.
pub const GOALS: &[Process] = &[
    Process::EtcdPromotion,
    Process::Election,
    Process::ApiServer,
    Process::NodeReady,
    Process::AddonStart,
];

/// The bound, and the chain of draws that makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Critical {
    /// Milliseconds from the first draw's begin.
    pub ms: u64,
    /// The draws on the longest chain, in their order.
    pub chain: Vec<Draw>,
}

/// The longest chain through what was drawn since a moment; `names` tells the number of a machine by its node's name.
///
/// Draws are looked at in the order in which they were made, so that what an edge begins at is known already.
#[must_use]
pub fn longest(draws: &[Draw], since: u64, names: &BTreeMap<String, String>) -> Critical {
    let draws: Vec<&Draw> = draws.iter().filter(|draw| draw.begun_at >= since).collect();
    let subject = |draw: &Draw| names.get(&draw.subject).unwrap_or(&draw.subject).clone();
    let pulls = draws.iter().filter(|draw| draw.what == Process::EtcdPull);
    let voters: BTreeSet<String> = pulls.map(|draw| subject(draw)).collect();
    // When each could be over at the earliest, and which one before it decides that.
    let mut over: Vec<(u64, Option<usize>)> = Vec::new();
    for (index, draw) in draws.iter().enumerate() {
        let mut begin = (0, None);
        for (_, from, before) in EDGES.iter().filter(|(process, ..)| *process == draw.what) {
            let mut earlier = (0..index).filter(|other| draws[*other].what == *before);
            let decisive = match from {
                From::Same => earlier.rfind(|other| subject(draws[*other]) == subject(draw)),
                From::First => earlier.min_by_key(|other| over[*other].0),
                From::Each => earlier.max_by_key(|other| over[*other].0),
                From::ControlPlanes => earlier
                    .filter(|other| voters.contains(&subject(draws[*other])))
                    .max_by_key(|other| over[*other].0),
            };
            if let Some(other) = decisive.filter(|other| over[*other].0 > begin.0) {
                begin = (over[other].0, Some(other));
            }
        }
        over.push((begin.0 + draw.ms, begin.1));
    }
    let goals = (0..draws.len()).filter(|index| GOALS.contains(&draws[*index].what));
    let last = goals.max_by_key(|index| over[*index].0);
    let mut chain = Vec::new();
    let mut at = last;
    while let Some(index) = at {
        chain.push(draws[index].clone());
        at = over[index].1;
    }
    chain.reverse();
    Critical { ms: last.map_or(0, |index| over[index].0), chain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(what: Process, subject: &str, begun_at: u64, ms: u64) -> Draw {
        Draw { what, subject: subject.to_owned(), begun_at, ms }
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
        let found = longest(&draws, 0, &BTreeMap::new());
        assert_eq!(found.ms, 0, "nothing of what the platform is for was reached");
        let boot = |ms| draw(Process::ApiServer, "421", 30_000, ms);
        let own = draw(Process::ControlPlanePull, "421", 24_000, 10_000);
        let found = longest(&[&draws[..], &[own, boot(2000)]].concat(), 0, &BTreeMap::new());
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
        let found = longest(&[&draws[..], &joins].concat(), 0, &BTreeMap::new());
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
        assert_eq!(longest(&draws, 0, &BTreeMap::new()).ms, 10_000, "a worker is not waited for");
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
        assert_eq!(longest(&draws, 0, &BTreeMap::new()).ms, 18_000);
        let names = BTreeMap::from([("cp-01".to_owned(), "421".to_owned())]);
        let draws = [
            draw(Process::Register, "421", 0, 1000),
            draw(Process::NodeNetwork, "cp-01", 0, 2000),
            draw(Process::NodeReady, "cp-01", 0, 3000),
        ];
        assert_eq!(longest(&draws, 0, &names).ms, 6000);
        assert_eq!(longest(&draws, 1, &names).ms, 0, "what was drawn before does not count");
    }
}
