//! What a look at the world finds of a castle, whatever our own records say: each thing, whose it is, what to do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::CastleName;

/// What a thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A VM or a container, or a machine that stands already.
    Guest,
    /// A disk of a guest.
    Disk,
    /// A file that disks are made from.
    Image,
    /// Work that goes on.
    Task,
    /// A secret that is kept.
    Escrow,
    /// An address that somebody answers at.
    Address,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Guest => "guest",
            Self::Disk => "disk",
            Self::Image => "image",
            Self::Task => "task",
            Self::Escrow => "escrow",
            Self::Address => "address",
        })
    }
}

/// How a thing stands to the castle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// The castle's, and it should not be there.
    Left,
    /// It could not be looked at, so that nobody can say that nothing is left.
    Unseen,
    /// The castle's, and the castle stands.
    Expected,
    /// The castle's, and it stays on purpose.
    Kept,
    /// Somebody else's: shown, and never touched.
    Others,
}

impl Standing {
    /// Whether something is amiss with it.
    #[must_use]
    pub fn is_amiss(self) -> bool {
        matches!(self, Self::Left | Self::Unseen)
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Left => "left over",
            Self::Unseen => "not seen",
            Self::Expected => "expected",
            Self::Kept => "kept",
            Self::Others => "not ours",
        })
    }
}

/// One thing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Item {
    /// How it stands to the castle.
    pub standing: Standing,
    /// What it is.
    pub kind: Kind,
    /// Its name: "VM 421 `blue-cp-01`".
    pub what: String,
    /// Where it is: a node, a storage, an address.
    pub place: String,
    /// Whose it is, and how that is known.
    pub whose: String,
    /// What to do about it; empty where there is nothing to do.
    pub advice: String,
}

impl Item {
    /// A thing without advice.
    #[must_use]
    pub fn new(
        standing: Standing,
        kind: Kind,
        what: impl Into<String>,
        place: impl Into<String>,
        whose: impl Into<String>,
    ) -> Self {
        let (what, place, whose) = (what.into(), place.into(), whose.into());
        Self { standing, kind, what, place, whose, advice: String::new() }
    }

    /// Says what to do about it.
    #[must_use]
    pub fn advice(mut self, advice: impl Into<String>) -> Self {
        self.advice = advice.into();
        self
    }

    /// The thing in one line.
    #[must_use]
    pub fn words(&self) -> String {
        let advice = match (self.standing.is_amiss(), self.advice.as_str()) {
            (true, advice) if !advice.is_empty() => format!("; {advice}"),
            _ => String::new(),
        };
        format!("{} on {}: {}{advice}", self.what, self.place, self.whose)
    }
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// Whose.
    pub castle: CastleName,
    /// Whether the castle should be gone: what is expected of one that stands is then left over.
    pub gone: bool,
    /// The things, what is amiss first.
    pub items: Vec<Item>,
}

impl Audit {
    /// What was found, in its order.
    #[must_use]
    pub fn new(castle: CastleName, gone: bool, mut items: Vec<Item>) -> Self {
        items.sort();
        items.dedup();
        Self { castle, gone, items }
    }

    /// What is left over, and what could not be looked at.
    pub fn amiss(&self) -> impl Iterator<Item = &Item> {
        self.items.iter().filter(|item| item.standing.is_amiss())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_amiss_comes_first_and_each_thing_once() {
        let item = |standing, what: &str| Item::new(standing, Kind::Guest, what, "pve", "ours");
        let audit = Audit::new(
            "blue".parse().unwrap(),
            true,
            vec![
                item(Standing::Others, "VM 1"),
                item(Standing::Left, "VM 3"),
                item(Standing::Expected, "VM 2"),
                item(Standing::Left, "VM 3"),
                item(Standing::Unseen, "the tasks"),
            ],
        );
        let amiss: Vec<&str> = audit.amiss().map(|item| item.what.as_str()).collect();
        assert_eq!(amiss, ["VM 3", "the tasks"]);
        assert_eq!(audit.items.len(), 4);
    }
}
