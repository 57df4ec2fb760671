//! A thin client of Infisical: log in, list, store, remove; values are secrets from the first byte on.
//!
//! Start at [`Infisical`]. [`catalogue`] knows the real messages. A refused login is never tried a second time,
//! because three wrong tries lock the identity for everyone.

pub mod catalogue;
mod client;
mod session;
pub mod store;

pub use client::{Infisical, InfisicalError, Refusal};
pub use session::Credentials;
pub use store::{Entry, Found, Place, stored_as};
