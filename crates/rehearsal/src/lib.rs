//! The rehearsal datacenter: emulated servers behind every address that castle dials. Servers only.
//!
//! The datacenter is data ([`world`]): every pending thing is an entry in one queue, every call is a pure
//! transition, and a driver delivers one effect at a time on a paused clock. Nothing here may depend on a
//! client of castle, sleep, spawn a task for a pending thing, or iterate over an unordered map.
//!
//! Start at [`host::Host`], which gives a datacenter addresses, TLS and time; then [`world::Datacenter::input`],
//! the one function that changes it; then the parts, which meet only in [`turn`].

pub mod birth;
pub mod bound;
pub mod brake;
pub mod calibration;
pub mod durations;
pub mod fault;
pub mod fidelity;
pub mod host;
pub mod infisical;
pub mod inventory;
pub mod kubernetes;
pub mod proxmox;
pub mod published;
pub mod queue;
pub mod sources;
pub mod store;
pub mod talos;
#[cfg(test)]
pub(crate) mod testing;
pub mod trace;
pub mod trouble;
pub mod turn;
pub mod world;

pub use host::{Host, HostError};
