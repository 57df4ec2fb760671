//! The laws, each a checker of its own: it is given what happened and says what broke it.

mod acts;
mod birth;
mod deep;
mod live;
mod owner;
mod same;
mod secret;

use std::fmt;

pub(crate) use acts::{Counts, asked_again, count};
pub use acts::{again, doubles};
pub use birth::{Begun, bootstrapped, bootstraps, incarnations};
pub use live::explained;
pub use owner::foreign;
pub(crate) use same::differences;
pub use same::{after_down, apart, inventory, ours, same, strangers};
pub use secret::outside;

/// A law that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which law.
    pub law: &'static str,
    /// What was seen.
    pub what: String,
}

impl Violation {
    /// A law that does not hold.
    #[must_use]
    pub fn new(law: &'static str, what: impl Into<String>) -> Self {
        Self { law, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.law, self.what)
    }
}
