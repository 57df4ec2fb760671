//! Who answers at an address: nobody, a machine without a config, a machine of ours, or somebody else.

use std::net::Ipv4Addr;

use castle_model::Class;
use castle_wire::{ConnectError, World};

use crate::access::{TalosAccess, TalosEntry};
use crate::client::Talos;
use crate::error::TalosError;

/// What was found at an address.
pub enum Presence {
    /// Nobody answers, or not now.
    Silent {
        /// What was seen.
        why: String,
    },
    /// A machine in maintenance mode: it has no config and takes one from anybody.
    Maintenance(Talos),
    /// A machine of our cluster: both sides have proven who they are.
    Ours(Talos),
    /// A machine of our cluster that does not agree with us what time it is: one side takes the other's certificate
    /// for over, or for not begun.
    Untimely {
        /// What was seen.
        why: String,
    },
    /// A machine with a config of another cluster.
    Foreign {
        /// What was seen.
        why: String,
    },
}

impl Presence {
    /// Looks who answers. It asks for nothing but a version.
    pub async fn look(world: &World, address: Ipv4Addr, access: Option<&TalosAccess>) -> Self {
        match access.map(|access| access.entry(world)).transpose() {
            Ok(entry) => Self::look_by(world, address, entry.as_ref()).await,
            Err(source) => Self::Silent { why: words(&TalosError::Tls { address, source }) },
        }
    }

    /// Looks who answers, with certificates that are read already.
    pub async fn look_by(world: &World, address: Ipv4Addr, entry: Option<&TalosEntry>) -> Self {
        if let Some(entry) = entry {
            match secure(world, address, entry).await {
                Ok(talos) => return Self::Ours(talos),
                Err(error) if error.is_untimely() => return Self::Untimely { why: dates(&error) },
                // Whoever answered showed a certificate of another authority: a machine in maintenance mode does, too.
                Err(error) if is_stranger(&error) => {}
                Err(error) => return Self::Silent { why: words(&error) },
            }
        }
        match maintenance(world, address).await {
            Ok(talos) => Self::Maintenance(talos),
            Err(error) if error.class().0 == Class::Denied => Self::Foreign { why: words(&error) },
            Err(error) => Self::Silent { why: words(&error) },
        }
    }
}

async fn secure(world: &World, address: Ipv4Addr, entry: &TalosEntry) -> Result<Talos, TalosError> {
    let talos = Talos::enter(world, address, entry).await?;
    talos.version().await?;
    Ok(talos)
}

async fn maintenance(world: &World, address: Ipv4Addr) -> Result<Talos, TalosError> {
    let talos = Talos::maintenance(world, address).await?;
    // The stage, not the version: Talos 1.12 keeps its version to itself in maintenance mode.
    talos.machine_status().await?;
    Ok(talos)
}

fn is_stranger(error: &TalosError) -> bool {
    match error {
        TalosError::Connect { source: ConnectError::Tls { .. }, .. } => true,
        other => other.class().0 == Class::Denied,
    }
}

fn dates(error: &TalosError) -> String {
    match error {
        // Ours begin some minutes before they are made, and it has proven to be of our cluster.
        TalosError::Refused { address, .. } => format!(
            "machine {address} takes our certificate, which is new, for not valid: its clock is behind ours, or ours ahead of it"
        ),
        other => words(other),
    }
}

fn words(error: &TalosError) -> String {
    castle_wire::failure::chain(error)
}
