//! From declarations, a survey and the journals to an immutable plan. No I/O, no async, no vendor.
//!
//! Start at [`up`] and [`down`]; [`order`] is where cycles and unknown needs are found. Must never touch the
//! world: what it knows of it comes as a [`Survey`].

mod drift;
mod make;
pub mod order;
pub mod survey;

pub use drift::{Seen, drift, unseen};
pub use make::{down, up};
pub use order::{OrderError, order};
pub use survey::{Look, Survey};
