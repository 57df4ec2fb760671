//! A thin client of Infisical: log in, list, store, remove; values are secrets from the first byte on.
//!
//! Start at [`Infisical`]. [`catalogue`] knows the real messages. A refused login is never tried a second time,
//! because three wrong tries lock the identity for everyone. What was learnt from the real server is kept as tests,
//! one for each trap, in `tests.rs`.

pub mod catalogue;
mod client;
mod error;
mod missing;
mod session;
pub mod store;
#[cfg(test)]
mod tests;

pub use client::{Infisical, LARGEST_REQUEST, PATIENCE};
pub use error::{InfisicalError, Refusal};
pub use missing::{Missing, Reason};
pub use session::Credentials;
pub use store::{Entry, Found, Place, stored_as};
