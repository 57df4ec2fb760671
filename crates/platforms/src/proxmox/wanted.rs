//! The castle as this platform sees it: a Proxmox host, and a VM for each node.

use std::net::Ipv4Addr;

use castle_model::spec::{NetworkSpec, NodeSpec, ProxmoxSpec, Role, Version};
use castle_model::{CastleName, Lock, NodeName, Spec, VmId};

/// The part of a castle file that concerns VMs on Proxmox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// The castle's name.
    pub name: CastleName,
    /// The version of Talos in the image.
    pub talos: Version,
    /// The address of the image factory.
    pub factory: String,
    /// The host.
    pub platform: ProxmoxSpec,
    /// Addresses.
    pub network: NetworkSpec,
    /// The VMs, in the order of the castle file.
    pub nodes: Vec<VmNode>,
    /// What is pinned by content.
    pub lock: Lock,
}

/// A node that is a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmNode {
    /// Its name, such as `cp-01`.
    pub name: NodeName,
    /// What it is for.
    pub role: Role,
    /// Its static address.
    pub address: Ipv4Addr,
    /// Its number in Proxmox.
    pub vmid: VmId,
    /// Virtual processors.
    pub cores: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The system disk in GiB.
    pub disk_gib: u64,
    /// A second disk for volumes, in GiB.
    pub data_disk_gib: Option<u64>,
}

impl Wanted {
    /// What a castle file wants of Proxmox; nothing, if its machines come from elsewhere.
    #[must_use]
    pub fn of(spec: &Spec) -> Option<Self> {
        Some(Self {
            name: spec.name.clone(),
            talos: spec.talos,
            factory: spec.downloads.factory().to_owned(),
            platform: spec.platform.proxmox()?.clone(),
            network: spec.network.clone(),
            nodes: spec.nodes.iter().filter_map(VmNode::of).collect(),
            lock: spec.lock.clone(),
        })
    }
}

impl VmNode {
    /// The VM of a node.
    #[must_use]
    pub fn of(node: &NodeSpec) -> Option<Self> {
        let vm = node.vm()?;
        Some(Self {
            name: node.name.clone(),
            role: node.role,
            address: node.address,
            vmid: vm.vmid,
            cores: vm.cores,
            memory_mib: vm.memory_mib,
            disk_gib: vm.disk_gib,
            data_disk_gib: vm.data_disk_gib,
        })
    }
}
