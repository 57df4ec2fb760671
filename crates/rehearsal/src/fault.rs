//! Faults as rules: one small language for everything that can be broken in the datacenter.
//!
//! ```text
//!  RULE = WHO [object] ":" KIND [argument…] [when]         talos cp-02: dead from 0:40
//!  when = [on METHOD PATH] [the 3rd] [once | twice | 5 times] [from M:SS] [until M:SS | for M:SS] [during PHASE]
//! ```
//! Two sorts of kinds: *answers* strike the calls that match them, on the wire; *changes* happen to the world, as
//! [`crate::trouble::Trouble`]s, which are logged and replayed like any input. What breaks of castle's own computer ([`Own`])
//! is carried out by whoever hosts castle. Rules end with the process that armed
//! them, what they changed stays. Times are counted from the moment of arming. The table is [`kinds`], each row with
//! everything that is known of a kind; [`Rule::parse`] reads a rule, its `Display` prints it so that it reads the same.

mod armed;
mod draw;
mod error;
mod file;
mod kind;
mod names;
mod parse;
mod phase;
mod reference;
mod rule;
mod value;
mod word;

#[cfg(test)]
mod tests;

pub(crate) use armed::{Armed, Due, Seen};
pub use armed::{Sort, Strike};
pub use draw::draw;
pub use error::RuleError;
pub use file::{FileError, read};
pub(crate) use kind::{Blow, WatchEnd};
pub use kind::{Kind, Own, OwnDisk, Shape, Slot, find, kinds};
pub use names::Names;
pub use phase::Phase;
pub use reference::reference;
pub use rule::{On, Rule, Until, When, Who};
