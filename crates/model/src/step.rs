//! One unit of work as declared: its name, needs, lane, deadline and how it is undone.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{LayerName, StepId};

/// A limit on how many steps may use one scarce thing at a time, such as imports into a storage.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lane {
    /// Names the scarce thing.
    pub name: String,
    /// How many may use it at once; at least 1.
    pub width: usize,
}

/// How a step is undone, decided when it is declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "undo", rename_all = "kebab-case")]
pub enum UndoKind {
    /// It made something that must be removed by its own `undo`.
    Explicit,
    /// What it made lives inside something that another step removes.
    Contained {
        /// What contains it, in words: "the VMs".
        within: String,
    },
    /// It made nothing, or what it made is kept on purpose.
    Nothing {
        /// Why nothing is to be done.
        why: String,
    },
}

/// How a person calls what is done with a step, where the plan's own verb would say too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Wording {
    /// It makes nothing: it is not created, but proven.
    Prove,
    /// It makes nothing: somebody else does, and it looks whether that is done.
    Observe,
    /// It is not removed, but reset and given back.
    Reset,
    /// It is a set of objects: it is never made anew, but loses what it no longer has.
    Set,
}

/// A declared step: static, a function of the spec alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepDecl {
    /// Its name.
    pub id: StepId,
    /// The layer in whose journal it is recorded.
    pub layer: LayerName,
    /// What it does, for a person: "VM cp-01 (421) on pve".
    pub title: String,
    /// What its gate proves, and with it every arrow that leaves it, as a clause: "the VM is running". Empty only where
    /// the record of an old run is read.
    #[serde(default)]
    pub proves: String,
    /// What must be proven before it starts.
    pub needs: Vec<StepId>,
    /// The scarce thing it uses, if any.
    pub lane: Option<Lane>,
    /// The key of its deadline in [`crate::deadline::TABLE`].
    pub deadline: String,
    /// The usual length in milliseconds; orders ready steps by the length of the path behind them.
    pub weight: u64,
    /// How it is undone.
    pub undo: UndoKind,
    /// Whether it must run in every run because it gives secrets that are never journaled.
    pub always: bool,
    /// Steps on whose work it lives: where all of them are done anew, what it did is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lives_on: Vec<StepId>,
    /// Steps that disturb what it did for a while, where they change something: a machine that is switched on again has
    /// its pods later. Then it is looked at after them, however they end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbed_by: Vec<StepId>,
    /// How a person calls what is done with it, if not by the plan's verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wording: Option<Wording>,
    /// What a person should know about how it is done, one sentence each: the castle file's changes of a release.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl StepDecl {
    /// A step with no needs, no lane and nothing to undo; change the rest by the builder methods. What it proves is said
    /// beside its gate; the deadline is a key of [`crate::deadline::TABLE`] and only about time.
    ///
    /// # Panics
    /// If the id does not begin with a layer's name: ids are made by our own code only.
    #[must_use]
    pub fn new(
        id: StepId,
        title: impl Into<String>,
        deadline: &str,
        proves: impl Into<String>,
    ) -> Self {
        let layer = id.layer().parse().expect("a step id begins with the name of its layer");
        Self {
            id,
            layer,
            title: title.into(),
            proves: proves.into(),
            needs: Vec::new(),
            lane: None,
            deadline: deadline.to_owned(),
            weight: 1000,
            undo: UndoKind::Nothing { why: "it makes nothing".to_owned() },
            always: false,
            lives_on: Vec::new(),
            disturbed_by: Vec::new(),
            wording: None,
            notes: Vec::new(),
        }
    }

    /// Adds what must be proven before.
    #[must_use]
    pub fn needs(mut self, needs: impl IntoIterator<Item = StepId>) -> Self {
        self.needs.extend(needs);
        self
    }

    /// Says that what it does is gone where all of these are done anew.
    #[must_use]
    pub fn lives_on(mut self, steps: impl IntoIterator<Item = StepId>) -> Self {
        self.lives_on.extend(steps);
        self
    }

    /// Says that what it did is to be looked at again after these, where they change something.
    #[must_use]
    pub fn disturbed_by(mut self, steps: impl IntoIterator<Item = StepId>) -> Self {
        self.disturbed_by.extend(steps);
        self
    }

    /// Puts the step into a lane.
    #[must_use]
    pub fn lane(mut self, name: impl Into<String>, width: usize) -> Self {
        self.lane = Some(Lane { name: name.into(), width: width.max(1) });
        self
    }

    /// Sets the usual length.
    #[must_use]
    pub fn weight(mut self, milliseconds: u64) -> Self {
        self.weight = milliseconds;
        self
    }

    /// Says that its own `undo` removes what it made.
    #[must_use]
    pub fn undo(mut self) -> Self {
        self.undo = UndoKind::Explicit;
        self
    }

    /// Says that what it made goes with something else.
    #[must_use]
    pub fn contained(mut self, within: impl Into<String>) -> Self {
        self.undo = UndoKind::Contained { within: within.into() };
        self
    }

    /// Says why there is nothing to undo.
    #[must_use]
    pub fn nothing_to_undo(mut self, why: impl Into<String>) -> Self {
        self.undo = UndoKind::Nothing { why: why.into() };
        self
    }

    /// Says that it makes nothing, and why it is there: "it only waits".
    #[must_use]
    pub fn only(mut self, why: impl Into<String>) -> Self {
        self.wording = Some(Wording::Prove);
        self.nothing_to_undo(why)
    }

    /// Says that it applies a set of objects, of which some may go while the rest stays.
    #[must_use]
    pub fn set(mut self) -> Self {
        self.wording = Some(Wording::Set);
        self
    }

    /// Says that its own `undo` resets what it took, which stays.
    #[must_use]
    pub fn reset(mut self) -> Self {
        self.wording = Some(Wording::Reset);
        self.undo()
    }

    /// Adds what a person should know about how it is done.
    #[must_use]
    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Says that it only looks at what somebody else makes, and who that is.
    #[must_use]
    pub fn observed(mut self, why: impl Into<String>) -> Self {
        self.wording = Some(Wording::Observe);
        self.nothing_to_undo(why)
    }

    /// Says that it runs in every run.
    #[must_use]
    pub fn always(mut self) -> Self {
        self.always = true;
        self
    }
}

/// What an act did to its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Made.
    Created,
    /// Changed in place, or made anew.
    Updated,
    /// Found as wanted.
    Unchanged,
    /// Removed.
    Removed,
    /// Left out on purpose.
    Skipped,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
            Self::Skipped => "skipped",
        })
    }
}
