//! Planted bugs: small deliberate defects that show whether the proof would find such ones.
//!
//! A site asks `planted(Bug::X)` and does the wrong thing if the answer is yes. Without debug assertions the answer is a
//! constant no, so that a release holds none of them; with them it is yes only in a thread that has called [`plant`],
//! which `crates/proof` alone does. Why it is so, and not a feature: `docs/decisions/0007-planted-bugs.md`.

#[cfg(debug_assertions)]
use std::cell::Cell;

/// A deliberate defect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Bug {
    /// A step acts, then says that it is going to.
    ActBeforeIntent,
    /// An entry of the journal counts as durable before it is synced.
    SyncSkipped,
    /// A step is done without its proof.
    GateSkipped,
    /// What can never succeed is tried again.
    RetryOfAnything,
    /// Who asks for a pause is asked again at once.
    WaitIgnored,
    /// A wait goes on long after its deadline.
    DeadlineIgnored,
    /// A step that is right is done once more.
    RightActedOn,
    /// What could not be looked at is taken for absent, and made.
    UnknownActedOn,
    /// Nobody looks for what is left before it is called gone.
    LeftoverUnseen,
    /// A step starts although something that it needs is not done.
    NeedsIgnored,
    /// More steps of a lane run at a time than fit.
    LaneIgnored,
    /// A new intent forgets the task that an earlier run had begun.
    TaskForgotten,
    /// Removals go in the order of making.
    OrderNotTurned,
    /// The name of a Proxmox task is not written down.
    TaskUnnamed,
    /// A Proxmox task that failed counts as done.
    TaskFailureIsSuccess,
    /// A VM at our number counts as ours, whatever its mark says.
    OwnershipUnchecked,
    /// What stands at our number is deleted, whatever its mark says.
    NumberIsProof,
    /// A mark counts without the UUID that goes with it.
    UuidUnchecked,
    /// Every guest in the range is switched off, whoever's it is.
    NeighbourStopped,
    /// A VM that can not be asked for counts as gone.
    UnreachableIsGone,
    /// What is under way is made a second time instead of being looked for.
    SecondDownload,
    /// The bootstrap goes to another control plane than the first.
    BootstrapMoved,
    /// The Talos secrets are kept after the first machine has its config.
    KeptTooLate,
    /// Secrets stand in the proof of a step.
    SecretTold,
    /// A workload counts as ready when its pods were made.
    PodsMadeIsReady,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 25] = [
        Self::ActBeforeIntent,
        Self::SyncSkipped,
        Self::GateSkipped,
        Self::RetryOfAnything,
        Self::WaitIgnored,
        Self::DeadlineIgnored,
        Self::RightActedOn,
        Self::UnknownActedOn,
        Self::LeftoverUnseen,
        Self::NeedsIgnored,
        Self::LaneIgnored,
        Self::TaskForgotten,
        Self::OrderNotTurned,
        Self::TaskUnnamed,
        Self::TaskFailureIsSuccess,
        Self::OwnershipUnchecked,
        Self::NumberIsProof,
        Self::UuidUnchecked,
        Self::NeighbourStopped,
        Self::UnreachableIsGone,
        Self::SecondDownload,
        Self::BootstrapMoved,
        Self::KeptTooLate,
        Self::SecretTold,
        Self::PodsMadeIsReady,
    ];
}

#[cfg(debug_assertions)]
thread_local! {
    static PLANTED: Cell<Option<Bug>> = const { Cell::new(None) };
}

/// Whether this bug is to be met here.
#[cfg(debug_assertions)]
#[must_use]
pub fn planted(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether this bug is to be met here: never.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn planted(_: Bug) -> bool {
    false
}

/// A bug that is met in this thread for as long as this lives.
#[cfg(debug_assertions)]
#[derive(Debug)]
#[must_use]
pub struct Plant {
    before: Option<Bug>,
}

/// Plants a bug in everything that this thread does.
#[cfg(debug_assertions)]
pub fn plant(bug: Bug) -> Plant {
    Plant { before: PLANTED.replace(Some(bug)) }
}

#[cfg(debug_assertions)]
impl Drop for Plant {
    fn drop(&mut self) {
        PLANTED.set(self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(debug_assertions)]
    fn a_bug_is_met_only_where_and_while_it_is_planted() {
        assert!(Bug::ALL.iter().all(|bug| !planted(*bug)));
        let plant = plant(Bug::SecretTold);
        let met: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| planted(*bug)).collect();
        assert_eq!(met, [Bug::SecretTold]);
        let elsewhere = std::thread::spawn(|| planted(Bug::SecretTold)).join().unwrap();
        assert!(!elsewhere);
        drop(plant);
        assert!(!planted(Bug::SecretTold));
    }

    /// A release has nothing to switch on: this is evaluated when it is compiled.
    #[cfg(not(debug_assertions))]
    const _: () = assert!(!planted(Bug::SecretTold));
}
