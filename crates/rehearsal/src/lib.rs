//! The rehearsal datacenter: emulated servers behind every address that castle dials. Servers only.
//!
//! The datacenter is data ([`world`]): every pending thing is an entry in one queue, every call is a pure
//! transition, and a driver delivers one effect at a time on a paused clock. Nothing here may depend on a
//! client of castle, sleep, spawn a task for a pending thing, or iterate over an unordered map.

pub mod infisical;
pub mod kubernetes;
pub mod proxmox;
pub mod sources;
pub mod talos;
pub mod turn;
