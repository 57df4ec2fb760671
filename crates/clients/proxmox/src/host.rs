//! What the host is and has: versions, nodes, storages, networks, permissions.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::{Proxmox, ProxmoxError};
use crate::form::segment;
use crate::lenient;

#[derive(Deserialize)]
struct Version {
    version: String,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NodeEntry {
    /// Its name.
    pub node: String,
    /// `online`, `offline` or `unknown`.
    #[serde(default)]
    pub status: String,
}

/// What a node has and uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStatus {
    /// Memory in bytes.
    pub memory_total: u64,
    /// Memory that is not in use, in bytes.
    pub memory_free: u64,
    /// Processors.
    pub processors: u64,
}

#[derive(Deserialize)]
struct Status {
    memory: Memory,
    #[serde(default)]
    cpuinfo: Processors,
}

#[derive(Deserialize)]
struct Memory {
    #[serde(default, deserialize_with = "lenient::number")]
    total: u64,
    #[serde(default, deserialize_with = "lenient::number")]
    free: u64,
    #[serde(default, deserialize_with = "lenient::number")]
    available: u64,
}

#[derive(Default, Deserialize)]
struct Processors {
    #[serde(default, deserialize_with = "lenient::number")]
    cpus: u64,
}

/// A storage as one node sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Storage {
    /// Its name.
    #[serde(default)]
    pub storage: String,
    /// How it keeps what is on it: `dir`, `lvmthin`, `lvm`, `zfspool`, …
    #[serde(default, rename = "type")]
    pub kind: String,
    /// The kinds of content that it takes, separated by commas.
    #[serde(default)]
    pub content: String,
    /// Whether it is switched on.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub enabled: bool,
    /// Whether it can be used now.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub active: bool,
    /// Whether every node of the cluster sees the same content on it.
    #[serde(default, deserialize_with = "lenient::flag")]
    pub shared: bool,
    /// Its size in bytes.
    #[serde(default, deserialize_with = "lenient::number")]
    pub total: u64,
    /// What is left of it, in bytes.
    #[serde(default, deserialize_with = "lenient::number")]
    pub avail: u64,
}

impl Storage {
    /// Whether it takes this kind of content.
    #[must_use]
    pub fn takes(&self, content: &str) -> bool {
        self.content.split(',').any(|kind| kind.trim() == content)
    }
}

/// Whether a privilege holds below its path, too.
#[derive(Deserialize)]
struct Inherited(#[serde(deserialize_with = "lenient::flag")] bool);

/// A network that a guest's card can be put into.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bridge {
    /// Its name.
    pub name: String,
    /// Whether it is a vnet of a zone of the cluster, and not a bridge of the node's own.
    pub is_vnet: bool,
}

#[derive(Deserialize)]
struct Interface {
    iface: String,
    #[serde(default)]
    r#type: String,
}

impl Proxmox {
    /// The version of Proxmox VE.
    ///
    /// # Errors
    /// If Proxmox does not answer or refuses the token.
    pub async fn version(&self) -> Result<String, ProxmoxError> {
        Ok(self.get::<Version>("/version", &[]).await?.version)
    }

    /// The nodes of the cluster, by name.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn nodes(&self) -> Result<Vec<NodeEntry>, ProxmoxError> {
        let mut nodes: Vec<NodeEntry> = self.get("/nodes", &[]).await?;
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
        Ok(nodes)
    }

    /// What a node has and uses.
    ///
    /// # Errors
    /// If Proxmox does not answer, or the token may not look.
    pub async fn node_status(&self, node: &str) -> Result<HostStatus, ProxmoxError> {
        let status: Status = self.get(&format!("/nodes/{}/status", segment(node)), &[]).await?;
        Ok(HostStatus {
            memory_total: status.memory.total,
            memory_free: status.memory.free.max(status.memory.available),
            processors: status.cpuinfo.cpus,
        })
    }

    /// The storages that a node sees and the token may use, by name.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn storages(&self, node: &str) -> Result<Vec<Storage>, ProxmoxError> {
        let path = format!("/nodes/{}/storage", segment(node));
        let mut storages: Vec<Storage> = self.get(&path, &[]).await?;
        storages.sort_by(|a, b| a.storage.cmp(&b.storage));
        Ok(storages)
    }

    /// How one storage stands on a node.
    ///
    /// # Errors
    /// If Proxmox does not answer or does not know the storage.
    pub async fn storage_status(&self, node: &str, storage: &str) -> Result<Storage, ProxmoxError> {
        let path = format!("/nodes/{}/storage/{}/status", segment(node), segment(storage));
        let mut found: Storage = self.get(&path, &[]).await?;
        storage.clone_into(&mut found.storage);
        Ok(found)
    }

    /// The bridges of a node that the token may use or see, by name.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn bridges(&self, node: &str) -> Result<Vec<Bridge>, ProxmoxError> {
        let path = format!("/nodes/{}/network", segment(node));
        let found: Vec<Interface> = self.get(&path, &[("type", "any_bridge".to_owned())]).await?;
        let is_bridge = |i: &Interface| {
            i.r#type.is_empty() || i.r#type.to_lowercase().contains("bridge") || i.r#type == "vnet"
        };
        let named = |i: Interface| Bridge { is_vnet: i.r#type == "vnet", name: i.iface };
        let mut bridges: Vec<Bridge> = found.into_iter().filter(is_bridge).map(named).collect();
        bridges.sort();
        Ok(bridges)
    }

    /// What the token may wherever an ACL names a path, and whether it may so below the path, too.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn all_privileges(
        &self,
    ) -> Result<BTreeMap<String, BTreeMap<String, bool>>, ProxmoxError> {
        let found: BTreeMap<String, BTreeMap<String, Inherited>> =
            self.get("/access/permissions", &[]).await?;
        let plain = |held: BTreeMap<String, Inherited>| {
            held.into_iter().map(|(name, below)| (name, below.0)).collect()
        };
        Ok(found.into_iter().map(|(path, held)| (path, plain(held))).collect())
    }

    /// What the token may at a path, everything that it inherits included, and whether it may so below the path, too.
    ///
    /// # Errors
    /// If Proxmox does not answer.
    pub async fn privileges(&self, path: &str) -> Result<BTreeMap<String, bool>, ProxmoxError> {
        let query = [("path", path.to_owned())];
        let mut found: BTreeMap<String, BTreeMap<String, Inherited>> =
            self.get("/access/permissions", &query).await?;
        let held = found.remove(path).unwrap_or_default();
        Ok(held.into_iter().map(|(name, below)| (name, below.0)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_takes_what_it_lists() {
        let storage: Storage = serde_json::from_str(
            r#"{"storage":"local","content":"iso,import, vztmpl","enabled":1,"active":"1","total":"1000","avail":10}"#,
        )
        .unwrap();
        assert!(storage.takes("import") && storage.takes("vztmpl") && !storage.takes("images"));
        assert!(storage.enabled && storage.active);
        assert_eq!((storage.total, storage.avail), (1000, 10));
    }
}
