//! Where rules meet the world: what they do to it, to the calls that are made, and to the program that makes them.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Shared, State};
use crate::fault::{Blow, Due, Own, Phase, Rule, Seen, Sort, Strike, WatchEnd};
use crate::trace::Request;
use crate::trouble::Trouble;
use crate::turn::{HttpBody, HttpCall, HttpReply};
use crate::world::{Datacenter, Input};

/// Hears of each strike at once. It is called while the world is locked: it must not ask it anything.
type Listener = Box<dyn Fn(&Strike) + Send>;

/// Breaks the computer that the program runs on, or mends it. It is called while the world is locked, too.
pub(in crate::host) type Breaker = Arc<dyn Fn(Own) -> bool + Send + Sync>;

/// The most answers that are kept to be given again.
const KEPT_MAX: usize = 10_000;

/// Who hears of strikes, and what is remembered for them.
#[derive(Default)]
pub(super) struct Witness {
    listener: Option<Listener>,
    /// When it began to listen, in milliseconds of the world.
    began: u64,
    /// What ends the program.
    end: Option<Arc<dyn Fn() + Send + Sync>>,
    /// What breaks the computer that the program runs on.
    own: Option<Breaker>,
    /// How many strikes were told.
    told: usize,
    dead: bool,
    /// The last answers to reads, by what was asked.
    kept: BTreeMap<String, HttpReply>,
    watches: WatchMark,
}

/// Changes whenever all watches end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::host) struct WatchMark {
    number: u64,
    expired: bool,
}

impl WatchMark {
    /// How the watches that began at an earlier mark end: whether with 410.
    pub(in crate::host) fn ends(self, earlier: Self) -> Option<bool> {
        (self.number != earlier.number).then_some(self.expired)
    }
}

impl Shared {
    /// When the next thing happens by itself.
    pub(super) fn first_due(&self) -> Option<u64> {
        let state = self.state();
        let effect = state.datacenter.queue.first_due();
        effect.into_iter().chain(state.armed.first_due()).min()
    }

    pub(in crate::host) fn arm(&self, rules: Vec<Rule>) {
        let mut state = self.state();
        let now = self.time.now();
        state.armed.arm(now, rules);
        // What is to happen at once has happened when this returns; a world that has ended hears of nothing.
        self.strike(&mut state, now);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(in crate::host) fn listen_to_strikes(&self, listener: Listener) {
        let witness = &mut self.state().witness;
        witness.listener = Some(listener);
        witness.began = self.time.now();
    }

    /// Tells that somebody changed the world from another process.
    pub(in crate::host) fn tell_poke(&self, at: u64, rule: String, what: String) {
        let witness = &self.state().witness;
        if let Some(listener) = &witness.listener {
            let at = at.saturating_sub(witness.began);
            listener(&Strike { sort: Sort::Poke, at, rule, what, number: 1 });
        }
    }

    /// The rules whose changes are still there and could be mended, without their times.
    pub(in crate::host) fn unmended(&self) -> Vec<String> {
        let state = self.state();
        let mends = |troubles: &[Trouble]| {
            let mut mended = state.datacenter.clone();
            for trouble in troubles {
                mended.input(state.datacenter.now, &Input::Trouble(trouble.clone()));
            }
            mended != state.datacenter
        };
        let lasting = state.armed.lasting().into_iter();
        lasting.filter(|(_, troubles)| mends(troubles)).map(|(rule, _)| rule).collect()
    }

    pub(in crate::host) fn end_by(&self, end: Arc<dyn Fn() + Send + Sync>) {
        self.state().witness.end = Some(end);
    }

    pub(in crate::host) fn break_by(&self, breaker: Breaker) {
        self.state().witness.own = Some(breaker);
    }

    pub(in crate::host) fn strikes(&self) -> Vec<Strike> {
        self.state().armed.strikes().to_vec()
    }

    pub(in crate::host) fn unstruck(&self) -> Vec<String> {
        self.state().armed.unstruck()
    }

    pub(in crate::host) fn rules(&self) -> Vec<String> {
        self.state().armed.rules()
    }

    /// Lets happen what is ripe because of the time; nothing once the world has ended.
    pub(super) fn strike(&self, state: &mut State, at: u64) -> Option<()> {
        loop {
            let (phase, first) = (phase(state), state.armed.strikes().len());
            let due = state.armed.ripe(at, phase);
            let Some(due) = due else { return Some(()) };
            let done = self.carry_out(state, at, due);
            if done == Some(false) {
                state.armed.vain(first, 0);
            }
            tell(state, at);
            done?;
        }
    }

    /// The same because of the phase, if a rule asks for one.
    pub(super) fn strike_by_phase(&self, state: &mut State, at: u64) -> Option<()> {
        if state.armed.minds_phase() { self.strike(state, at) } else { Some(()) }
    }

    /// Changes the world, and says whether anything is different; none once it has ended.
    fn carry_out(&self, state: &mut State, at: u64, due: Due) -> Option<bool> {
        match due {
            Due::Change(troubles) => {
                let before = state.datacenter.clone();
                for trouble in troubles {
                    let output = self.apply_at(state, at, &Input::Trouble(trouble))?;
                    self.notify(Some(&output));
                }
                return Some(differ(before, &state.datacenter));
            }
            Due::Watches(how) => {
                let watches = &mut state.witness.watches;
                watches.number += 1;
                watches.expired = how == WatchEnd::Expired;
                self.cluster.notify_waiters();
            }
            Due::Clock(shift) => self.clock_shift.store(shift, Ordering::Relaxed),
            Due::Own(own) => {
                let Some(breaks) = state.witness.own.clone() else { return Some(false) };
                // Told first: who breaks it may never come back.
                tell(state, at);
                let changed = breaks(own);
                if own == Own::Power {
                    state.witness.dead = true;
                    self.killed.notify_waiters();
                }
                return Some(changed);
            }
        }
        Some(true)
    }

    /// A call is made: what is to happen to it. What is to happen to the world has happened then.
    pub(in crate::host) fn meet(&self, seen: &Seen<'_>) -> Option<Blow> {
        let mut state = self.state();
        if state.armed.is_empty() {
            return None;
        }
        let now = self.time.now();
        let (phase, first) = (phase(&state), state.armed.strikes().len());
        let (blow, dues) = state.armed.meet(now, phase, seen);
        for (nth, due) in dues.into_iter().enumerate() {
            if !self.carry_out(&mut state, now, due)? {
                state.armed.vain(first, nth);
            }
        }
        tell(&mut state, now);
        blow
    }

    /// A connection is opened: whether it can be.
    pub(in crate::host) fn meet_dial(&self, seen: &Seen<'_>) -> Option<Blow> {
        let mut state = self.state();
        if state.armed.is_empty() {
            return None;
        }
        let now = self.time.now();
        let phase = phase(&state);
        let blow = state.armed.dial(now, phase, seen);
        tell(&mut state, now);
        blow
    }

    /// Events are told: how many milliseconds too late, and whether twice.
    pub(in crate::host) fn meet_events(&self) -> (u64, bool) {
        let mut state = self.state();
        if state.armed.is_empty() {
            return (0, false);
        }
        let now = self.time.now();
        let phase = phase(&state);
        let met = state.armed.events(now, phase);
        tell(&mut state, now);
        met
    }

    pub(in crate::host) fn watch_mark(&self) -> WatchMark {
        self.state().witness.watches
    }

    /// Whether somebody may want an answer again.
    pub(in crate::host) fn keeps_answers(&self) -> bool {
        self.state().armed.minds_answers()
    }

    /// Remembers the answer to a read.
    pub(in crate::host) fn keep(&self, call: &HttpCall, reply: &HttpReply) {
        let mut state = self.state();
        let wanted = call.method == "GET" && matches!(reply.body, HttpBody::Whole(_));
        if wanted && state.witness.kept.len() < KEPT_MAX {
            state.witness.kept.insert(question(&call.host, &call.path, &call.query), reply.clone());
        }
    }

    /// What the same read was answered before.
    pub(in crate::host) fn kept(&self, call: &HttpCall) -> Option<HttpReply> {
        self.state().witness.kept.get(&question(&call.host, &call.path, &call.query)).cloned()
    }

    /// Whether the same was read before, and its answer kept.
    pub(in crate::host) fn is_kept(&self, seen: &Seen<'_>, query: &str) -> bool {
        let kept = &self.state().witness.kept;
        seen.method == "GET"
            && !kept.is_empty()
            && kept.contains_key(&question(&seen.host, seen.path, query))
    }

    /// Notes a call that was answered without the world.
    pub(in crate::host) fn note_struck(&self, server: &str, call: (&str, &str), status: u16) {
        let at = self.time.now();
        self.state().trace.request(Request {
            at,
            server: server.to_owned(),
            method: call.0.to_owned(),
            path: call.1.to_owned(),
            status,
            counted: false,
            took: 0,
        });
    }

    /// Ends the program: whoever called this hears nothing more.
    pub(in crate::host) async fn kill(&self) {
        let end = {
            let mut state = self.state();
            state.witness.dead = true;
            state.witness.end.clone()
        };
        if let Some(end) = end {
            end();
        }
        self.killed.notify_waiters();
        std::future::pending::<()>().await;
    }

    /// Ends the program, as far as this host can: whoever waits for that hears of it.
    pub(in crate::host) fn end(&self) {
        self.state().witness.dead = true;
        self.killed.notify_waiters();
    }

    pub(in crate::host) fn has_ended(&self) -> bool {
        self.state().witness.dead
    }

    /// A future that ends when a rule has killed the program.
    pub(in crate::host) fn when_killed(
        self: &Arc<Self>,
    ) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.clone();
        async move {
            loop {
                let killed = shared.killed.clone().notified_owned();
                if shared.state().witness.dead {
                    return;
                }
                killed.await;
            }
        }
    }
}

/// The phase, if a rule asks for it.
fn phase(state: &State) -> Option<Phase> {
    state.armed.minds_phase().then(|| Phase::of(&state.datacenter))
}

/// Whether the world is another one. That somebody tried, and when, is no difference.
pub(in crate::host) fn differ(mut before: Datacenter, after: &Datacenter) -> bool {
    before.now = after.now;
    before != *after
}

/// Tells what struck since the last time.
fn tell(state: &mut State, at: u64) {
    let State { armed, witness, trace, .. } = state;
    for strike in &armed.strikes()[witness.told..] {
        trace.effect(at, "fault");
        if let Some(listener) = &witness.listener {
            listener(strike);
        }
    }
    witness.told = armed.strikes().len();
}

fn question(host: &str, path: &str, query: &str) -> String {
    format!("{host}{path}?{query}")
}
