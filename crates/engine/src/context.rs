//! What a step is given when it runs: its record, its deadline, outputs of others, and a way to speak.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use castle_journal::StepState;
use castle_model::{Class, Failure, Incarnation, StepId, Verdict};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;

use crate::outputs::{Left, Outputs};
use crate::wait::{Pace, until_told};

/// Whether a step may be dropped at its next await point, and a way to hear when that changes.
#[derive(Debug, Default)]
pub(crate) struct Phase {
    mode: AtomicU8,
    changed: Notify,
}

/// Looking or proving: nothing is lost if the step is dropped.
const FREE: u8 = 0;
/// Between the start of an act and its outcome.
const ACTING: u8 = 1;
/// In an act, but what goes on elsewhere has a durable name: a later run finds it again.
const PARKED: u8 = 2;

impl Phase {
    pub(crate) fn begin_act(&self) {
        self.set(ACTING);
    }

    pub(crate) fn end_act(&self) {
        self.set(FREE);
    }

    fn set(&self, mode: u8) {
        self.mode.store(mode, Ordering::Relaxed);
        self.changed.notify_waiters();
    }

    fn turn(&self, from: u8, to: u8) {
        if self.mode.load(Ordering::Relaxed) == from {
            self.set(to);
        }
    }

    /// Lets the step be dropped while something passes in which nothing is in flight.
    pub(crate) async fn resting(&self, pause: impl Future<Output = ()>) {
        self.turn(ACTING, PARKED);
        pause.await;
        self.turn(PARKED, ACTING);
    }

    /// Resolves once the step may be dropped.
    pub(crate) async fn droppable(&self) {
        loop {
            let changed = self.changed.notified();
            if self.mode.load(Ordering::Relaxed) != ACTING {
                return;
            }
            changed.await;
        }
    }
}

/// What a running step tells the runner.
pub(crate) enum Message {
    /// The name of something that goes on elsewhere; answered once it is durable.
    Task { step: StepId, task: String, durable: oneshot::Sender<()> },
    /// A life of the castle begins; answered once it is durable.
    Born { incarnation: Incarnation, durable: oneshot::Sender<()> },
    /// The life that the castle is found to be in.
    Lives { incarnation: Incarnation },
    /// A life of the castle is over.
    Gone { incarnation: Incarnation },
    /// What is missing now.
    Waiting { step: StepId, reason: String },
    /// So many bytes of a whole are done.
    Fetched { step: StepId, done: u64, total: u64 },
    /// Something a person should know.
    Notice { step: StepId, text: String },
    /// Flux owns from here on what the cluster hosts.
    Handover { source: String },
    /// Something that the castle file names as a milestone is ready.
    Milestone { name: String, revision: String },
    /// The rest is between the runner and the wrapper that it puts around a step.
    Progress { step: StepId, progress: crate::attempt::Progress },
}

/// The surroundings of one step in one run.
#[derive(Clone)]
pub struct Context {
    pub(crate) step: StepId,
    pub(crate) state: StepState,
    pub(crate) incarnation: Option<Incarnation>,
    pub(crate) outputs: Arc<Outputs>,
    pub(crate) deadline: Instant,
    pub(crate) mailbox: mpsc::UnboundedSender<Message>,
    pub(crate) phase: Arc<Phase>,
}

impl Context {
    /// The step's name.
    #[must_use]
    pub fn step(&self) -> &StepId {
        &self.step
    }

    /// What the journal says of the step from earlier runs.
    #[must_use]
    pub fn state(&self) -> &StepState {
        &self.state
    }

    /// The task that an earlier, killed run had begun and not seen the end of, if any.
    #[must_use]
    pub fn unfinished_task(&self) -> Option<&str> {
        self.state.task()
    }

    /// What other steps gave, and where this one gives.
    #[must_use]
    pub fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    /// When the step must be done.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Makes the name of something that goes on elsewhere durable, so that a later run can find it again.
    /// From here until the next [`Context::wait`] is over, the step may be dropped.
    ///
    /// # Errors
    /// The journal could not be written.
    pub async fn task(&self, task: &str) -> Result<(), Failure> {
        let (durable, written) = oneshot::channel();
        self.send(Message::Task { step: self.step.clone(), task: task.to_owned(), durable });
        self.written(written, &format!("record task {task} of {}", self.step)).await?;
        self.phase.turn(ACTING, PARKED);
        Ok(())
    }

    /// The life that the castle is in, as far as our journal knows.
    #[must_use]
    pub fn incarnation(&self) -> Option<&Incarnation> {
        self.incarnation.as_ref()
    }

    /// Makes the beginning of a new life durable, before anything of it is made.
    ///
    /// # Errors
    /// The journal could not be written.
    pub async fn born(&self, incarnation: &Incarnation) -> Result<(), Failure> {
        let (durable, written) = oneshot::channel();
        self.send(Message::Born { incarnation: incarnation.clone(), durable });
        self.written(written, &format!("record the incarnation {incarnation}")).await
    }

    /// Records which life the castle is in, found in the world and proven, if the journal does not know it.
    pub fn lives(&self, incarnation: &Incarnation) {
        self.send(Message::Lives { incarnation: incarnation.clone() });
    }

    /// Keeps what a look taught for later runs, as an act's outputs are kept: what is found as wanted is not made, and the
    /// journal that knew of its making may be lost. Never a secret.
    pub fn learn(&self, key: &str, value: impl Into<String>) {
        self.outputs.learn(&self.step, key, value.into());
    }

    /// What an earlier run gave to know, and what this one has learned by looking.
    pub(crate) fn known_outputs(&self) -> BTreeMap<String, String> {
        let mut outputs = self.state.outputs().clone();
        outputs.extend(self.outputs.learned(&self.step));
        outputs
    }

    /// Records that the last thing of a life is gone.
    pub fn gone(&self, incarnation: &Incarnation) {
        self.send(Message::Gone { incarnation: incarnation.clone() });
    }

    async fn written(&self, written: oneshot::Receiver<()>, what: &str) -> Result<(), Failure> {
        written.await.map_err(|_| Failure::new(Class::Transient, what, "the run is ending"))
    }

    /// Asks until the answer is ready, the step's deadline passes, or it can never be. See [`crate::wait::until`].
    ///
    /// # Errors
    /// As [`crate::wait::until`].
    pub async fn wait<T, F, Fut>(&self, pace: Pace, what: &str, probe: F) -> Result<T, Failure>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<Verdict<T>, Failure>> + Send,
        T: Send,
    {
        self.wait_on(|| stream::pending().boxed(), pace, what, probe).await
    }

    /// Asks as [`Context::wait`] does, and at once whenever the news that `watch` opens tell of a change.
    /// See [`until_told`].
    ///
    /// # Errors
    /// As [`until_told`].
    pub async fn wait_on<'a, T, F, Fut>(
        &self,
        watch: impl FnMut() -> BoxStream<'a, ()> + Send,
        pace: Pace,
        what: &str,
        probe: F,
    ) -> Result<T, Failure>
    where
        F: FnMut() -> Fut + Send,
        Fut: Future<Output = Result<Verdict<T>, Failure>> + Send,
        T: Send,
    {
        let tell = |reason: &str| self.waiting(reason);
        let answer = until_told(what, pace, self.deadline, tell, watch, probe).await;
        self.phase.turn(PARKED, ACTING);
        answer
    }

    /// Tells what is missing now; only for steps that wait in a way of their own.
    pub fn waiting(&self, reason: &str) {
        self.send(Message::Waiting { step: self.step.clone(), reason: reason.to_owned() });
    }

    /// Tells how much of something whose length is known is done, in bytes. A whole of no length tells nothing.
    pub fn fetched(&self, done: u64, total: u64) {
        if total > 0 {
            self.send(Message::Fetched { step: self.step.clone(), done: done.min(total), total });
        }
    }

    /// Tells a person something.
    pub fn notice(&self, text: impl Into<String>) {
        self.send(Message::Notice { step: self.step.clone(), text: text.into() });
    }

    /// Tells that something is not as castle would have it and is left so, because `owner` has it by now: the difference in
    /// short for a plan, and a sentence for a run.
    pub fn left_so(&self, owner: &str, what: impl Into<String>, note: impl Into<String>) {
        let (step, owner, what, note) =
            (self.step.clone(), owner.to_owned(), what.into(), note.into());
        self.notice(note.clone());
        self.outputs.leave(Left { step, owner, what, note });
    }

    /// Tells that Flux owns from here on what the cluster hosts.
    pub fn handover(&self, source: impl Into<String>) {
        self.send(Message::Handover { source: source.into() });
    }

    /// Tells that something that the castle file names as a milestone is ready.
    pub fn milestone(&self, name: impl Into<String>, revision: impl Into<String>) {
        self.send(Message::Milestone { name: name.into(), revision: revision.into() });
    }

    pub(crate) fn send(&self, message: Message) {
        // The runner outlives its steps; if it is gone, nobody is left to be told.
        self.mailbox.send(message).ok();
    }
}
