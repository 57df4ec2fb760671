//! What a look at the world before planning has said about each step.

use std::collections::BTreeMap;

use castle_model::{Failure, Observed, StepId};

/// What is known of one step before the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// It was looked at.
    Seen(Observed),
    /// It could not be looked at, because something that it needs is not there yet.
    After(StepId),
    /// The look failed.
    Failed(Failure),
    /// On the way down: what there is to be removed, or nothing.
    Leftover(Option<String>),
}

/// The looks at all steps.
pub type Survey = BTreeMap<StepId, Look>;
