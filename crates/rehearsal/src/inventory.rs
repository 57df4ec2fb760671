//! What the datacenter itself knows to be there, whatever castle believes: for people, tests, audits and leftovers.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::world::Datacenter;
use crate::{proxmox, sources};

/// Everything of consequence, counted by the datacenter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// When, in virtual milliseconds since the world's birth.
    pub at: u64,
    /// Guests, volumes, image files and running tasks of Proxmox.
    pub proxmox: proxmox::Inventory,
    /// Machines by VM id, each with its name and what it is doing.
    pub machines: BTreeMap<u32, String>,
    /// Where machines answer, by VM id.
    pub addresses: BTreeMap<u32, Ipv4Addr>,
    /// Who holds the shared address, and which one that is.
    pub vip: Option<(Ipv4Addr, String)>,
    /// The members of etcd, each with what it is.
    pub etcd: Vec<(String, String)>,
    /// The keys of all secrets in Infisical, with their folders.
    pub secrets: Vec<String>,
    /// Nodes of the cluster, and whether each is Ready.
    pub nodes: Vec<(String, bool)>,
    /// Workloads of the cluster, and how many of their pods are ready.
    pub workloads: Vec<Workload>,
    /// What Flux looks after.
    pub flux: Vec<Unit>,
    /// Branches of the Git host and where they are.
    pub git: Vec<sources::git::Head>,
    /// Schematics registered at the image factory.
    pub schematics: Vec<String>,
    /// What is wrong because somebody said so.
    pub wrong: Vec<String>,
    /// The faults that the process which hosts the world has armed, as rules.
    pub rules: Vec<String>,
}

/// A Deployment, DaemonSet or StatefulSet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Its kind in the plural, namespace and name: `deployments/flux-system/source-controller`.
    pub name: String,
    /// How many of its pods are ready.
    pub ready: u64,
    /// How many there should be.
    pub wanted: u64,
}

/// A GitRepository or Kustomization.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// `source NAME`, or the name of a Kustomization.
    pub name: String,
    /// Whether it is Ready.
    pub ready: bool,
    /// Whether somebody has suspended it.
    pub suspended: bool,
    /// What its condition says.
    pub says: String,
}

impl Inventory {
    /// Counts what is there now.
    #[must_use]
    pub fn of(datacenter: &Datacenter) -> Self {
        let (talos, kubernetes) = (&datacenter.talos, &datacenter.kubernetes);
        let nodes = kubernetes.node_names();
        Self {
            at: datacenter.now,
            proxmox: datacenter.proxmox.inventory(),
            machines: talos.inventory(),
            addresses: talos.answering(),
            vip: talos.vip(),
            etcd: talos.etcd_members(),
            secrets: datacenter.infisical.keys(),
            nodes: nodes.map(|(name, ready)| (name.to_owned(), ready)).collect(),
            workloads: kubernetes.workloads(),
            flux: kubernetes.units(),
            git: datacenter.sources.heads(),
            schematics: datacenter.sources.schematics().map(str::to_owned).collect(),
            wrong: [
                datacenter.proxmox.wrong(),
                talos.wrong(|vmid| datacenter.proxmox.guest_name(vmid)),
                datacenter.infisical.wrong(),
                datacenter.sources.wrong(),
                kubernetes.wrong(datacenter.now),
            ]
            .concat(),
            rules: Vec::new(),
        }
    }
}
