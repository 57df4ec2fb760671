//! The doors to the outside: one dialer for every client, TLS with our own rules, time and randomness.
//!
//! Start at [`World`]: everything that has a side effect beyond the state root enters through it. Clients
//! are built on [`rest::Rest`] (HTTP with JSON) or on [`connector::Connector`] (kube, tonic); both dial only
//! through [`Dialer`], so that the rehearsal can stand behind every address. Nothing here knows a vendor.

pub mod dialer;
pub mod world;

pub use dialer::{BoxedStream, DialFuture, Dialer, Stream};
pub use world::{Clock, Entropy, World};
