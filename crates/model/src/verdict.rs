//! What a look at the world can say: about one object ([`Observed`]) and about a condition ([`Verdict`]).

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// What a step sees when it looks at its object without touching it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "observed", rename_all = "kebab-case")]
pub enum Observed {
    /// It is not there.
    Absent,
    /// It is there and ours, nothing was made of it, and it is made anew in its place: nothing is lost by that.
    Unused {
        /// Why nothing needs it.
        why: String,
    },
    /// It is there, proven ours, and as wanted.
    Right {
        /// What was seen.
        evidence: String,
    },
    /// It is there and proven ours, but not as wanted.
    Wrong {
        /// In what it differs.
        why: String,
        /// Whether only destroying and making it anew can mend it.
        replace: bool,
    },
    /// It is there and is not ours, or cannot be proven ours.
    Foreign {
        /// Whose it seems to be.
        owner: String,
    },
    /// It could not be looked at; nothing may be concluded and nothing done.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl Observed {
    /// Seen and right.
    #[must_use]
    pub fn right(evidence: impl Into<String>) -> Self {
        Self::Right { evidence: evidence.into() }
    }

    /// Ours, but different in a way that can be mended in place.
    #[must_use]
    pub fn wrong(why: impl Into<String>) -> Self {
        Self::Wrong { why: why.into(), replace: false }
    }

    /// Ours, but only destroying and making it anew can mend it.
    #[must_use]
    pub fn stale(why: impl Into<String>) -> Self {
        Self::Wrong { why: why.into(), replace: true }
    }

    /// Not to be seen now.
    #[must_use]
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown { why: why.into() }
    }
}

/// The answer of a gate to one observation. It always carries a reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict<T = String> {
    /// Proven; carries the proof, or what was fetched while proving.
    Ready(T),
    /// Not yet; carries what is missing.
    Waiting(String),
    /// It can never become ready by waiting.
    Failed(Failure),
}

impl<T> Verdict<T> {
    /// Not yet, because of this.
    #[must_use]
    pub fn waiting(reason: impl Into<String>) -> Self {
        Self::Waiting(reason.into())
    }
}
