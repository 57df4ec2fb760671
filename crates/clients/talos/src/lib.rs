//! Talos Linux: the secrets of a cluster, the config of each machine, and a client of the machines' API.
//!
//! Start at [`Bundle`] (the secrets), [`machine_config`] (what a machine is sent), [`patch`] (how a castle file changes
//! that), [`TalosAccess`] and [`KubeAccess`] (who castle is), and [`Talos`] (the client, in maintenance mode or over
//! mutual TLS). Nothing here knows a step or another vendor; nothing here is ever written to disk.

pub mod access;
pub mod authority;
pub mod bundle;
pub mod catalogue;
pub mod client;
pub mod config;
pub mod error;
pub mod etcd;
pub mod handout;
pub mod machine;
pub mod patch;
pub mod presence;
pub mod resource;

#[cfg(test)]
mod testing;

pub use access::{KubeAccess, TalosAccess, TalosEntry};
pub use authority::{Authority, KeyError};
pub use bundle::{Bundle, BundleError};
pub use client::Talos;
pub use config::birth::BirthMark;
pub use config::redact::redacted;
pub use config::{
    Contract, MachineConfig, Secrets, kubernetes_endpoint, machine_config, without_secrets,
};
pub use error::TalosError;
pub use etcd::{Member, MemberStatus};
pub use machine::{Applied, Service};
pub use presence::Presence;
pub use resource::{Affiliate, MachineStatus, Resource};
