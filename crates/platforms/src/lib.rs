//! Where machines come from: the steps that turn a host and a castle file into machines that run Talos.
//!
//! [`proxmox`] makes the VMs. [`handed`] names what these steps, and those of the secrets layer below them, hand
//! to the steps above. Steps here speak through the clients; nothing here speaks to the wire itself.

pub mod handed;
pub mod proxmox;
