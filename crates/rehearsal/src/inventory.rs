//! What the datacenter itself knows to be there, whatever castle believes: for tests, audits and leftovers.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::proxmox;
use crate::world::Datacenter;

/// Everything of consequence, counted by the datacenter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inventory {
    /// Guests, volumes, image files and running tasks of Proxmox.
    pub proxmox: proxmox::Inventory,
    /// Machines by VM id, each with its name and what it is doing.
    pub machines: BTreeMap<u32, String>,
    /// The keys of all secrets in Infisical, with their folders.
    pub secrets: Vec<String>,
    /// Nodes of the cluster, and whether each is Ready.
    pub nodes: Vec<(String, bool)>,
    /// Schematics registered at the image factory.
    pub schematics: Vec<String>,
}

impl Inventory {
    /// Counts what is there now.
    #[must_use]
    pub fn of(datacenter: &Datacenter) -> Self {
        let nodes = datacenter.kubernetes.node_names();
        Self {
            proxmox: datacenter.proxmox.inventory(),
            machines: datacenter.talos.inventory(),
            secrets: datacenter.infisical.keys(),
            nodes: nodes.map(|(name, ready)| (name.to_owned(), ready)).collect(),
            schematics: datacenter.sources.schematics().map(str::to_owned).collect(),
        }
    }
}
