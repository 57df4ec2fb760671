//! Who is told of every call, with the world as it is at that very moment: what is to be tried at each of them starts there.

use super::Shared;
use crate::fault::Seen;
use crate::world::Datacenter;

/// How far a call has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It was sent, and the server has done nothing yet.
    Heard,
    /// The server has done what was asked, and nobody knows of it.
    Carried,
    /// The answer is on its way to the caller, who has all of it before anything else happens.
    Answered,
}

/// A call at one moment of its life.
#[derive(Debug)]
pub struct Told<'a> {
    /// How far it has come.
    pub stage: Stage,
    /// The server, as rules name it.
    pub server: &'static str,
    /// The machine that was reached, if it is one.
    pub machine: Option<u32>,
    /// The method.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// Whether the server is asked to try it only.
    pub dry: bool,
    /// Virtual milliseconds since the world's birth.
    pub now: u64,
    /// The world at this moment.
    pub datacenter: &'a Datacenter,
    /// How many requests the servers have answered before.
    pub requests: usize,
    /// How often the world has changed since this process opened it.
    pub changes: u64,
}

/// Hears of each call. The world is locked then: it must not ask it anything.
pub(super) type CallListener = Box<dyn Fn(&Told<'_>) + Send>;

impl Shared {
    pub(in crate::host) fn listen_to_calls(&self, listener: CallListener) {
        self.state().calls = Some(listener);
    }

    /// How often the world has changed, and how many requests were answered, since this process opened it.
    pub(in crate::host) fn counted(&self) -> (u64, usize) {
        let state = self.state();
        (state.changes, state.trace.requests().len())
    }

    /// Tells who listens how far a call has come.
    pub(in crate::host) fn tell_call(&self, stage: Stage, seen: &Seen<'_>, dry: bool) {
        let state = self.state();
        let Some(listener) = &state.calls else { return };
        listener(&Told {
            stage,
            server: seen.who.name(),
            machine: seen.machine,
            method: seen.method,
            path: seen.path,
            dry,
            now: self.time.now(),
            datacenter: &state.datacenter,
            requests: state.trace.requests().len(),
            changes: state.changes,
        });
    }
}
