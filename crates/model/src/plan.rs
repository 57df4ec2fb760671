//! What a run will do: immutable, ordered, hashed. The `plan` room makes it; nothing changes it afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::name::{CastleName, StepId};
use crate::step::{StepDecl, Wording};

/// What the run will do with the object of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Make it.
    Create,
    /// Take charge of something that exists and is proven ours.
    Adopt,
    /// Change it in place.
    Update,
    /// Destroy it and make it anew.
    Replace,
    /// Nothing: it is as wanted.
    Leave,
    /// Destroy it.
    Remove,
    /// Drop it from our records; it goes with something else, or is kept on purpose.
    Forget,
}

impl Verb {
    /// Whether it destroys something, so that a person must agree.
    #[must_use]
    pub fn is_destructive(self) -> bool {
        matches!(self, Self::Replace | Self::Remove)
    }

    /// Whether it touches the world at all.
    #[must_use]
    pub fn acts(self) -> bool {
        matches!(self, Self::Create | Self::Update | Self::Replace | Self::Remove)
    }

    /// The word for it with a step that may be called otherwise.
    #[must_use]
    pub fn word_for(self, wording: Option<Wording>) -> &'static str {
        match (self, wording) {
            (Self::Create | Self::Update, Some(Wording::Prove)) => "prove",
            (Self::Create | Self::Update, Some(Wording::Observe)) => "observe",
            (Self::Remove, Some(Wording::Reset)) => "reset",
            (Self::Replace, Some(Wording::Set)) => "prune",
            _ => self.word(),
        }
    }

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Adopt => "adopt",
            Self::Update => "update",
            Self::Replace => "replace",
            Self::Leave => "leave",
            Self::Remove => "remove",
            Self::Forget => "forget",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

/// Which way a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Towards the castle file.
    Up,
    /// Towards nothing.
    Down,
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlannedStep {
    /// The step as declared. In a plan that goes down, `needs` are turned round.
    #[serde(flatten)]
    pub decl: StepDecl,
    /// What will be done.
    pub verb: Verb,
    /// Why.
    pub reason: String,
    /// Whether the world could not be looked at yet, so that the verb is what is expected, not what was seen.
    pub unknown: bool,
    /// The step after which it is looked at, where it can not be looked at yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<StepId>,
    /// The step that disturbs what it did before: it is looked at once more when that one is over, however it ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<StepId>,
    /// Why it can not be done as things are: the look itself was refused, and no later one helps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Box<Failure>>,
}

impl PlannedStep {
    /// A step of a plan of which nothing more is known.
    #[must_use]
    pub fn new(decl: StepDecl, verb: Verb, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { decl, verb, reason, unknown: false, after: None, until: None, refused: None }
    }

    /// The same, where the world could not be looked at yet.
    #[must_use]
    pub fn expected(self) -> Self {
        Self { unknown: true, ..self }
    }

    /// The step as its turn comes: what it is held back by counts among what it needs.
    #[must_use]
    pub fn in_turn(&self) -> StepDecl {
        self.decl.clone().needs(self.until.clone())
    }

    /// What will be done, as a person calls it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self.refused {
            Some(_) => "refused",
            None => self.verb.word_for(self.decl.wording),
        }
    }

    /// What is lost for good by it, in words.
    #[must_use]
    pub fn destroys(&self) -> Option<&'static str> {
        match (self.verb, self.decl.wording) {
            (Verb::Replace, Some(Wording::Set)) => Some("removes what it no longer has"),
            (Verb::Replace, _) => Some("destroys what is on it"),
            (Verb::Remove, Some(Wording::Reset)) => Some("wipes what this castle put on it"),
            (Verb::Remove, _) => Some("destroys it"),
            _ => None,
        }
    }
}

/// One thing that is not as castle left it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// The step that looks after it.
    pub step: StepId,
    /// Who owns it: `castle`, `Flux`, or who else says so.
    pub owner: String,
    /// In what it differs: from what, to what.
    pub what: String,
    /// What `up` does about it.
    pub then: String,
}

/// Something that stood and could not be looked at, so that nobody knows whether it differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unseen {
    /// The step that looks after it.
    pub step: StepId,
    /// Why it could not be looked at.
    pub why: String,
    /// How many steps stand behind it, and were not looked at either.
    pub behind: usize,
}

/// Everything a run will do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Plan {
    /// Whose plan.
    pub castle: CastleName,
    /// Which way it goes.
    pub direction: Direction,
    /// The steps, each after all that it needs.
    pub steps: Vec<PlannedStep>,
    /// SHA-256 over the rest, hexadecimal.
    pub hash: String,
}

impl Plan {
    /// How many steps there are of each word that a person reads: a verb, or what it means for steps that only look.
    #[must_use]
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for step in &self.steps {
            *counts.entry(step.word().to_owned()).or_insert(0) += 1;
        }
        counts
    }

    /// Whether nothing will be touched.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.steps.iter().all(|s| !s.verb.acts())
    }

    /// The steps that destroy something.
    pub fn destructive(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.verb.is_destructive())
    }

    /// The steps that can not be done as things are.
    pub fn refused(&self) -> impl Iterator<Item = &PlannedStep> {
        self.steps.iter().filter(|s| s.refused.is_some())
    }

    /// Whether it may not be carried out at all: it would destroy something, and is known not to come to its end.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.refused().next().is_some() && self.destructive().next().is_some()
    }

    /// How many steps stand behind those that are refused, and are not done either.
    #[must_use]
    pub fn behind_refused(&self) -> usize {
        let mut stuck: BTreeSet<&StepId> = self.refused().map(|step| &step.decl.id).collect();
        let refused = stuck.len();
        for step in &self.steps {
            if step.decl.needs.iter().any(|need| stuck.contains(need)) {
                stuck.insert(&step.decl.id);
            }
        }
        stuck.len() - refused
    }

    /// One step by its name.
    #[must_use]
    pub fn step(&self, id: &StepId) -> Option<&PlannedStep> {
        self.steps.iter().find(|s| s.decl.id == *id)
    }
}
