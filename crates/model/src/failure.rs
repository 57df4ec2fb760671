//! What went wrong, as data: a class that decides about retries, and words for a person.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::planted::{Bug, planted};

/// The kinds of failure. Only [`Class::Transient`] is ever tried again within a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The other side is not up yet, is busy, or the connection broke; the same call may succeed later.
    Transient,
    /// Something else owns or has changed what we would touch.
    Conflict,
    /// Credentials or permissions are not enough.
    Denied,
    /// What was asked for can never be accepted as it is.
    Invalid,
    /// Something that must exist does not.
    Gone,
    /// A defect of castle itself.
    Bug,
}

impl Class {
    /// The word for it, as used in events and on screens.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Invalid => "invalid",
            Self::Gone => "gone",
            Self::Bug => "bug",
        }
    }
}

impl Class {
    /// What it means to whoever reads of it.
    #[must_use]
    pub fn told(self) -> &'static str {
        match self {
            Self::Transient => "it may pass by itself",
            Self::Conflict => "something is in the way",
            Self::Denied => "not allowed",
            Self::Invalid => "not accepted",
            Self::Gone => "something is missing",
            Self::Bug => "a defect of castle",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// One failure: what was being done, to what, why it failed, what was seen last, what to do next.
///
/// It goes into journals and events, so nothing in it may ever hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Decides whether the same thing may be tried again.
    pub class: Class,
    /// What was being done, and to what: "create VM 421 on node pve".
    pub what: String,
    /// Why it failed, in the other side's words where there are any.
    pub why: String,
    /// Everything that is wrong, where several things are. A slice, because failures are passed by value everywhere.
    #[serde(default, skip_serializing_if = "<[Finding]>::is_empty")]
    pub findings: Box<[Finding]>,
    /// What was seen last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
    /// What a person can do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How many seconds the other side asks to be left alone for. It matters to a run that goes on, not to a journal.
    #[serde(skip)]
    pub wait: Option<NonZeroU32>,
}

/// One of several things that are wrong at once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Where: "storage local-lvm on pve".
    pub place: String,
    /// What is wrong there.
    pub why: String,
    /// What a person can do about it.
    pub cure: String,
}

impl Finding {
    /// A finding.
    #[must_use]
    pub fn new(place: impl Into<String>, why: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { place: place.into(), why: why.into(), cure: cure.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.why, self.cure)
    }
}

impl Failure {
    /// A failure without evidence or hint.
    #[must_use]
    pub fn new(class: Class, what: impl Into<String>, why: impl Into<String>) -> Self {
        let (what, why) = (what.into(), why.into());
        Self { class, what, why, findings: Box::default(), evidence: None, hint: None, wait: None }
    }

    /// A failure that only a defect of castle can cause.
    #[must_use]
    pub fn bug(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self::new(Class::Bug, what, why)
            .hint("this is a defect of castle: please report it with the journal of this run")
    }

    /// Something is there that is not ours, so nothing may be done to it.
    #[must_use]
    pub fn foreign(what: impl Into<String>, owner: &str) -> Self {
        Self::new(Class::Conflict, what, format!("what is there is not ours: {owner}")).hint(
            "castle never touches what it cannot prove to be its own: move it away, or choose another id or name in the castle file",
        )
    }

    /// Adds everything that is wrong.
    #[must_use]
    pub fn findings(mut self, findings: Vec<Finding>) -> Self {
        self.findings = findings.into_boxed_slice();
        self
    }

    /// Adds what was seen last.
    #[must_use]
    pub fn evidence(mut self, seen: impl Into<String>) -> Self {
        self.evidence = Some(seen.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn hint(mut self, cure: impl Into<String>) -> Self {
        self.hint = Some(cure.into());
        self
    }

    /// Adds for how many seconds the other side asks to be left alone; none for zero.
    #[must_use]
    pub fn wait(mut self, seconds: u32) -> Self {
        self.wait = NonZeroU32::new(seconds);
        self
    }

    /// How long to wait before the same thing is tried again, where the other side said so.
    #[must_use]
    pub fn asked_to_wait(&self) -> Duration {
        if planted(Bug::WaitIgnored) {
            return Duration::ZERO;
        }
        Duration::from_secs(self.wait.map_or(0, |seconds| u64::from(seconds.get())))
    }

    /// Its parts, each with its label: the one wording of every face that tells of a failure.
    #[must_use]
    pub fn parts(&self) -> Vec<(&'static str, String)> {
        let mut parts = vec![("what", self.what.clone()), ("why", self.why.clone())];
        parts.extend(self.seen());
        parts.extend(self.hint.clone().map(|text| ("hint", text)));
        parts
    }

    /// Of its parts, what stands between why and what to do: everything that is wrong, and what was seen last.
    #[must_use]
    pub fn seen(&self) -> Vec<(&'static str, String)> {
        let mut seen = Vec::new();
        for Finding { place, why, cure } in &self.findings {
            seen.push(("where", format!("{place}: {why}")));
            seen.push(("hint", cure.clone()));
        }
        seen.extend(self.evidence.clone().map(|text| ("last seen", text)));
        seen
    }

    /// Whether the same thing may be tried again.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.class == Class::Transient
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.why)
    }
}

impl std::error::Error for Failure {}
