//! What is due in the world, in the order in which it will happen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::turn::Effect;

/// Pending effects by due time; those due at the same moment keep the order in which they were left.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Saved", into = "Saved")]
pub struct Queue {
    entries: BTreeMap<(u64, u64), Effect>,
    next: u64,
}

/// JSON has no keys of two numbers.
#[derive(Serialize, Deserialize)]
struct Saved {
    entries: Vec<(u64, u64, Effect)>,
    next: u64,
}

impl Queue {
    /// Adds an effect that is due at a moment, in virtual milliseconds since the world's birth.
    pub fn push(&mut self, due: u64, effect: Effect) {
        self.entries.insert((due, self.next), effect);
        self.next += 1;
    }

    /// When the first effect is due.
    #[must_use]
    pub fn first_due(&self) -> Option<u64> {
        self.entries.keys().next().map(|(due, _)| *due)
    }

    /// Takes the first effect out.
    pub fn pop(&mut self) -> Option<(u64, Effect)> {
        self.entries.pop_first().map(|((due, _), effect)| (due, effect))
    }

    /// How many effects are pending.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl From<Saved> for Queue {
    fn from(saved: Saved) -> Self {
        let entries =
            saved.entries.into_iter().map(|(due, n, effect)| ((due, n), effect)).collect();
        Self { entries, next: saved.next }
    }
}

impl From<Queue> for Saved {
    fn from(queue: Queue) -> Self {
        let entries =
            queue.entries.into_iter().map(|((due, n), effect)| (due, n, effect)).collect();
        Self { entries, next: queue.next }
    }
}
