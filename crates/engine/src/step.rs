//! The contract of a step: look, act, prove, undo. The runner calls; the step never decides when.
//!
//! ```text
//!   up:    observe ──absent/wrong──▶ intent is durable ──▶ act ──▶ gate ──▶ outcome is durable: done
//!             └──────right─────────────────────────────────────────────────────────────────▶ done
//!   down:  leftover ──something──▶ intent is durable ──▶ undo ──▶ leftover again: nothing ──▶ undone
//! ```

use std::collections::BTreeMap;

use async_trait::async_trait;
use castle_model::{Change, Failure, Observed, Verb};

use crate::context::Context;

/// One step, built from its declaration ([`castle_model::StepDecl`]) and the clients it speaks through.
///
/// A step keeps no state between calls: what it learns goes into [`Context::outputs`], what must survive
/// the process is journaled by the runner. Every method may be called again after a crash or a transient
/// failure, and may be dropped at any await point except between [`Step::act`]'s start and the moment it
/// calls [`Context::task`] or returns.
#[async_trait]
pub trait Step: Send + Sync {
    /// Looks at the object without touching it. Only called when everything that the step needs is proven; a plan that looks
    /// behind what is to be mended ([`crate::survey::Surveyor::look_further`]) calls it earlier, and relies on nothing it says.
    ///
    /// Where the object is [`Observed::Right`], this must also put the step's outputs into
    /// [`Context::outputs`], because the step is then not going to act.
    ///
    /// # Errors
    /// A transient failure is tried again until the step's deadline.
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure>;

    /// Makes or mends the object. Idempotent: it may find half of its work done by an earlier, killed run.
    ///
    /// A step that only proves something (a quorum, a VIP) keeps this default, which does nothing.
    ///
    /// # Errors
    /// A transient failure is tried again until the step's deadline; any other ends the step.
    async fn act(&self, _cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        Ok(Acted::of(Change::Unchanged))
    }

    /// Waits until dependents may rely on the object (by [`Context::wait`]) and returns the proof in words.
    ///
    /// Called after `act`. It must put the step's outputs in place too, unless `act` did.
    ///
    /// # Errors
    /// The deadline passed, with the last reason, or it can never become ready.
    async fn gate(&self, cx: &Context) -> Result<String, Failure>;

    /// What of ours is there to be removed, in words; nothing if it is gone. Takes no outputs for granted
    /// except those of steps declared `always`: the cluster may be dead, half made or unknown to our state.
    ///
    /// # Errors
    /// It could not be looked at.
    async fn leftover(&self, _cx: &Context) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    /// Removes what the step made. Only called where the declaration says `Explicit`.
    ///
    /// # Errors
    /// As for `act`.
    async fn undo(&self, cx: &Context) -> Result<(), Failure> {
        Err(Failure::bug(format!("undo {}", cx.step()), "the step does not say how it is undone"))
    }
}

/// What an act did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acted {
    /// To the object.
    pub change: Change,
    /// What a later run may want to know, journaled in clear: never a secret.
    pub outputs: BTreeMap<String, String>,
}

impl Acted {
    /// An act without journaled outputs.
    #[must_use]
    pub fn of(change: Change) -> Self {
        Self { change, outputs: BTreeMap::new() }
    }

    /// Adds a journaled output.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.outputs.insert(key.to_owned(), value.into());
        self
    }
}
