//! The doors to the outside: one dialer for every client, TLS with our own rules, time and randomness.
//!
//! Start at [`World`]: everything that has a side effect beyond the state root enters through it. Clients
//! are built on [`rest::Rest`] (HTTP with JSON) or on [`connector::Connector`] (kube, tonic); both dial only
//! through [`Dialer`], so that the rehearsal can stand behind every address. Nothing here knows a vendor.

pub mod connector;
pub mod dialer;
pub mod failure;
pub mod rest;
mod roots;
#[cfg(test)]
mod tests;
pub mod tls;
pub mod verifier;
mod wiped;
pub mod world;

pub use connector::{ConnectError, Connector, HandshakeError};
pub use dialer::{BoxedStream, DialFuture, Dialer, Stream, TcpDialer};
pub use rest::{CallError, Reply, Rest};
pub use roots::system_roots;
pub use tls::{ClientIdentity, TlsError, Verify};
pub use world::{Clock, Entropy, SystemClock, SystemEntropy, World};
