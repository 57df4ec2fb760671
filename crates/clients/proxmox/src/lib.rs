//! A thin client of the Proxmox VE API: typed calls, honest errors, nothing about castles.
//!
//! Start at [`Proxmox`]. Calls are grouped by what they are about: [`host`], [`guest`], [`image`], [`task`].
//! [`catalogue`] knows the real messages and says what each means for us. Long work is a [`task::Upid`] that the
//! caller follows; this room never waits and never tries again.

pub mod catalogue;
mod client;
mod form;
pub mod guest;
pub mod host;
pub mod image;
mod lenient;
pub mod task;

pub use client::{Proxmox, ProxmoxError, Token};
pub use guest::{Config, Guest, GuestKind, VmStatus};
pub use host::{Bridge, HostStatus, NodeEntry, Storage};
pub use image::{Download, Volume};
pub use task::{Fetched, TaskStatus, Upid};
