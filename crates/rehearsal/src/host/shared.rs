//! What all connections share: the world behind its lock, its log, its clock and the tasks that serve it.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use castle_model::time::Moment;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::supply::VirtualTime;
use super::tls::Certificates;
use crate::birth::dice_for;
use crate::durations::Process;
use crate::fault::Armed;
use crate::store::{Store, StoreError};
use crate::talos;
use crate::trace::{Request, Trace};
use crate::turn::{Dice, Door, HttpCall, HttpReply, Server};
use crate::world::{Answer, Datacenter, Input, Output};

mod strike;
mod told;

use strike::Witness;
pub(super) use strike::{WatchMark, differ};
use told::CallListener;
pub use told::{Stage, Told};

pub(super) struct Shared {
    pub(super) time: VirtualTime,
    pub(super) certificates: Certificates,
    state: Mutex<State>,
    changed: Arc<Notify>,
    machines: Arc<Notify>,
    cluster: Arc<Notify>,
    failed: Arc<Notify>,
    killed: Arc<Notify>,
    /// By how many milliseconds the program's clock is ahead of the world's.
    pub(super) clock_shift: Arc<AtomicI64>,
    tasks: Mutex<JoinSet<()>>,
}

struct State {
    datacenter: Datacenter,
    store: Option<Store>,
    trace: Trace,
    latency: Dice,
    /// What is to break.
    armed: Armed,
    witness: Witness,
    /// Who is told of calls.
    calls: Option<CallListener>,
    /// How often the world has changed.
    changes: u64,
    /// Why the world is not spoken for any more.
    ended: Option<Ended>,
}

enum Ended {
    Closed,
    Trouble(Arc<StoreError>),
}

impl Shared {
    pub(super) fn new(
        datacenter: Datacenter,
        store: Option<Store>,
        certificates: Certificates,
        time: VirtualTime,
    ) -> Self {
        let latency = dice_for(datacenter.birth.seed, &format!("latency {}", datacenter.opens));
        Self {
            time,
            certificates,
            changed: Arc::default(),
            machines: Arc::default(),
            cluster: Arc::default(),
            failed: Arc::default(),
            killed: Arc::default(),
            clock_shift: Arc::default(),
            tasks: Mutex::default(),
            state: Mutex::new(State {
                datacenter,
                store,
                trace: Trace::default(),
                latency,
                armed: Armed::default(),
                witness: Witness::default(),
                calls: None,
                changes: 0,
                ended: None,
            }),
        }
    }

    /// Puts an input to the world and logs it if it changed something; nothing once the world has ended.
    pub(super) fn input(&self, input: &Input) -> Option<Output> {
        let mut state = self.state();
        let output = self.apply(&mut state, input);
        drop(state);
        self.notify(output.as_ref());
        output
    }

    /// Puts a request to a server, and says how long the answer takes.
    pub(super) fn request(&self, server: Server, call: HttpCall) -> Option<(HttpReply, Duration)> {
        let (method, path) = (call.method.clone(), call.path.clone());
        let mut state = self.state();
        let output = self.apply(&mut state, &Input::Http { server, call })?;
        let counted = output.counted;
        let Answer::Http(reply) = &output.answer else { return None };
        let status = reply.status;
        let delay = match (server, status) {
            (Server::Proxmox, 401) => Process::AnswerDenied.usual(),
            (Server::Proxmox, 596) => Process::AnswerHung.usual(),
            (Server::Infisical | Server::Sources, _) => {
                state.latency.triangular(Process::AnswerFar.span())
            }
            _ => state.latency.triangular(Process::AnswerNear.span()),
        };
        let at = self.time.now();
        state.trace.request(Request {
            at,
            server: server.name().to_owned(),
            method,
            path,
            status,
            counted,
            took: delay,
        });
        drop(state);
        self.notify(Some(&output));
        match output.answer {
            Answer::Http(reply) => Some((reply, Duration::from_millis(delay))),
            _ => None,
        }
    }

    /// Notes a gRPC call to a machine, which [`Door::call`] carried out.
    pub(super) fn note_call(&self, vmid: u32, path: &str, status: u16, counted: bool) {
        let at = self.time.now();
        self.state().trace.request(Request {
            at,
            server: format!("talos/{vmid}"),
            method: "POST".to_owned(),
            path: path.to_owned(),
            status,
            counted,
            took: 0,
        });
    }

    /// How long a machine takes to answer.
    pub(super) fn near(&self) -> Duration {
        Duration::from_millis(self.state().latency.triangular(Process::AnswerNear.span()))
    }

    fn apply(&self, state: &mut State, input: &Input) -> Option<Output> {
        let at = self.time.now();
        // Whatever was due before now has happened, whether or not a driver runs.
        loop {
            let effect = state.datacenter.queue.first_due().filter(|due| *due < at);
            let rule = state.armed.first_due().filter(|due| *due <= at);
            if rule.is_some_and(|rule| effect.is_none_or(|effect| rule <= effect)) {
                self.strike(state, rule.unwrap_or(at))?;
            } else if effect.is_some() {
                let output = self.apply_at(state, at, &Input::Fire)?;
                self.notify(Some(&output));
                self.strike_by_phase(state, at)?;
            } else {
                break;
            }
        }
        let output = self.apply_at(state, at, input)?;
        self.strike_by_phase(state, at)?;
        Some(output)
    }

    fn apply_at(&self, state: &mut State, now: u64, input: &Input) -> Option<Output> {
        if state.ended.is_some() {
            return None;
        }
        let at = match input {
            Input::Fire => state.datacenter.queue.first_due()?,
            _ => now,
        };
        #[cfg(test)]
        let before = state.datacenter.clone();
        let output = state.datacenter.input(at, input);
        #[cfg(test)]
        assert_told(&output, &before, &state.datacenter, input);
        if let Answer::Fired(part) = output.answer {
            state.trace.effect(at, part);
        }
        if !output.changed {
            return Some(output);
        }
        state.changes += 1;
        let State { store, datacenter, .. } = state;
        let kept = store.as_mut().map_or(Ok(()), |store| {
            store.append(at, input)?;
            if store.wants_snapshot() { store.snapshot(datacenter) } else { Ok(()) }
        });
        match kept {
            Ok(()) => Some(output),
            Err(error) => {
                // The world on disk is behind: nobody may hear of a change that could be forgotten.
                state.ended = Some(Ended::Trouble(Arc::new(error)));
                self.failed.notify_waiters();
                None
            }
        }
    }

    fn notify(&self, output: Option<&Output>) {
        let Some(output) = output else { return };
        if output.changed {
            self.changed.notify_waiters();
        }
        if output.concerns.machines {
            self.machines.notify_waiters();
        }
        if output.concerns.cluster {
            self.cluster.notify_waiters();
        }
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&Datacenter) -> T) -> T {
        look(&self.state().datacenter)
    }

    /// A future that ends after the next change, counted from now.
    pub(super) fn changed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.changed.clone().notified_owned()
    }

    /// A future that ends after the next change of a machine's listeners, counted from now.
    pub(super) fn machines_changed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.machines.clone().notified_owned()
    }

    /// A future that ends after the next change of the cluster, counted from now.
    pub(super) fn cluster_changed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.cluster.clone().notified_owned()
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state().trace.requests().to_vec()
    }

    pub(super) fn trace_hash(&self) -> String {
        self.state().trace.hash()
    }

    /// Runs a task until the host ends.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        // Finished ones are forgotten here, or a long rehearsal would keep them all.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }

    /// Why the log could not be written, if so.
    pub(super) fn trouble(&self) -> Option<Arc<StoreError>> {
        match &self.state().ended {
            Some(Ended::Trouble(error)) => Some(error.clone()),
            _ => None,
        }
    }

    /// A future that ends when the log cannot be written any more, counted from now.
    pub(super) fn failed(&self) -> impl Future<Output = ()> + Send + use<> {
        self.failed.clone().notified_owned()
    }

    /// Ends the world with a snapshot.
    pub(super) fn close(&self) -> Result<(), Arc<StoreError>> {
        let mut state = self.state();
        drop(self.apply(&mut state, &Input::Rest));
        match &state.ended {
            Some(Ended::Trouble(error)) => return Err(error.clone()),
            Some(Ended::Closed) => return Ok(()),
            None => {}
        }
        state.ended = Some(Ended::Closed);
        let State { store, datacenter, .. } = &mut *state;
        match store.take() {
            Some(mut store) if store.is_long() => store.snapshot(datacenter).map_err(Arc::new),
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    pub(super) fn break_log(&self) {
        self.state().store.as_mut().unwrap().break_log();
    }

    /// Ends the world as it is and cuts all connections.
    pub(super) fn unplug(&self) {
        let mut state = self.state();
        state.ended.get_or_insert(Ended::Closed);
        state.store = None;
        drop(state);
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.abort_all();
        tasks.detach_all();
    }

    /// A panic while the lock was held is reported where it happened; the world itself is still whole.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whatever changed is logged, and whoever waits for it is woken.
#[cfg(test)]
fn assert_told(output: &Output, before: &Datacenter, after: &Datacenter, input: &Input) {
    assert!(output.changed || after == before, "unlogged change: {input:?}");
    let concerns = output.concerns;
    assert!(concerns.machines || after.talos == before.talos, "untold to machines: {input:?}");
    assert!(
        concerns.cluster || after.kubernetes == before.kubernetes,
        "untold to watches: {input:?}"
    );
}

/// The way from one gRPC call into the world.
pub(super) struct CallDoor {
    shared: Arc<Shared>,
    /// Whether the call counted as a change.
    counted: AtomicBool,
}

impl CallDoor {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, counted: AtomicBool::new(false) }
    }

    pub(super) fn counted(&self) -> bool {
        self.counted.load(Ordering::Relaxed)
    }
}

impl Door for CallDoor {
    fn call(&self, vmid: u32, call: talos::Call) -> Result<talos::Reply, talos::Refusal> {
        let output = self.shared.input(&Input::Talos { vmid, call });
        if output.as_ref().is_some_and(|output| output.counted) {
            self.counted.store(true, Ordering::Relaxed);
        }
        match output.map(|output| output.answer) {
            Some(Answer::Talos(answer)) => answer,
            _ => Err(talos::Refusal::gone()),
        }
    }

    fn time_of_day(&self, at: u64) -> Moment {
        self.shared.time.moment_of(at)
    }

    fn changed(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(self.shared.machines_changed())
    }
}

/// Delivers effects when they are due.
pub(super) async fn drive(shared: Arc<Shared>) {
    loop {
        let changed = shared.changed();
        let Some(due) = shared.first_due() else {
            changed.await;
            continue;
        };
        tokio::select! {
            biased;
            () = tokio::time::sleep_until(shared.time.instant(due)) => {
                if shared.input_due().is_none() {
                    return;
                }
                // Whoever waits for a change sees this one before the next.
                tokio::task::yield_now().await;
            }
            () = changed => {}
        }
    }
}

impl Shared {
    /// Fires the first effect if it is due, and says nothing once the world has ended.
    fn input_due(&self) -> Option<()> {
        let now = self.time.now();
        let mut state = self.state();
        let effect = state.datacenter.queue.first_due().filter(|due| *due <= now);
        let rule = state.armed.first_due().filter(|due| *due <= now);
        if rule.is_some_and(|rule| effect.is_none_or(|effect| rule <= effect)) {
            return self.strike(&mut state, rule.unwrap_or(now));
        }
        if effect.is_none() {
            return Some(());
        }
        let output = self.apply_at(&mut state, now, &Input::Fire)?;
        self.notify(Some(&output));
        self.strike_by_phase(&mut state, now)
    }
}
