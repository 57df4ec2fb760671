//! What a rule may name: the machines, storages and addresses of one castle file.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use castle_model::spec::{Body, Spec};

/// What the castle file calls its things.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    pub(super) machines: BTreeMap<String, (u32, Ipv4Addr)>,
    pub(super) storages: Vec<String>,
    pub(super) vip: Option<Ipv4Addr>,
    pub(super) repository: String,
    pub(super) branch: String,
}

impl Names {
    /// The names of a castle file.
    #[must_use]
    pub fn of(spec: &Spec) -> Self {
        let machine = |(place, node): (u32, &castle_model::spec::NodeSpec)| {
            let number = match &node.body {
                Body::Vm(vm) => vm.vmid.0,
                Body::Standing(_) => place,
            };
            (node.name.as_str().to_owned(), (number, node.address))
        };
        let mut storages: Vec<String> = spec
            .platform
            .proxmox()
            .map(|proxmox| vec![proxmox.storage.clone(), proxmox.image_storage.clone()])
            .unwrap_or_default();
        storages.dedup();
        Self {
            machines: (1..).zip(&spec.nodes).map(machine).collect(),
            storages,
            vip: Some(spec.network.vip),
            repository: spec.gitops.url.clone(),
            branch: spec.gitops.branch.clone(),
        }
    }

    /// The address that a word means: one in numbers, a machine's, or the shared one.
    pub(super) fn address(&self, word: &str) -> Option<Ipv4Addr> {
        if word == "vip" {
            return self.vip;
        }
        let own = self.machines.get(word).map(|(_, address)| *address);
        own.or_else(|| word.parse().ok())
    }
}
