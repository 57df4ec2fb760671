//! What a proof is held in: a castle of some shape, a seed, and neighbours whose things are none of ours.

use std::collections::{BTreeMap, BTreeSet};

use castle_journal::MemoryDisk;
use castle_model::Spec;
use castle_rehearsal::birth::Birth;
use castle_rehearsal::infisical::InfisicalBirth;
use castle_rehearsal::trouble::{ProxmoxTrouble, Trouble};
use castle_rehearsal::world::{Datacenter, Input};
use serde_json::{Map, Value, json};

use crate::castle::Stand;

/// How many machines of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Machines that run etcd.
    pub control_planes: usize,
    /// Machines that carry work.
    pub workers: usize,
}

impl Shape {
    /// The shape of the example.
    pub const WHOLE: Self = Self { control_planes: 3, workers: 2 };
    /// The smallest.
    pub const SMALL: Self = Self { control_planes: 1, workers: 1 };
}

/// A castle, the seed of its world, and who else is there.
#[derive(Debug, Clone)]
pub struct Setting {
    /// What is wanted.
    pub spec: Spec,
    /// The seed of the datacenter.
    pub seed: u64,
    /// What others have put there.
    pub neighbours: Vec<Neighbour>,
}

/// Something that somebody else has put into the datacenter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Neighbour {
    /// A VM with a disk.
    Vm {
        /// Its number.
        vmid: u32,
        /// Its name, which may be one of ours.
        name: String,
        /// Its tags, which may look like ours.
        tags: String,
        /// Whether it runs.
        running: bool,
    },
    /// A container.
    Container {
        /// Its number.
        vmid: u32,
        /// Its name.
        name: String,
    },
    /// A disk whose guest is gone.
    Disk {
        /// The number it bears.
        vmid: u32,
    },
    /// A folder of secrets beside ours.
    Secrets {
        /// Its path.
        path: String,
        /// Keys and values.
        values: BTreeMap<String, String>,
    },
}

impl Setting {
    /// The example castle in a shape, in a world of this seed, with the usual neighbours.
    #[must_use]
    pub fn of(shape: Shape, seed: u64) -> Self {
        Self { spec: shaped(shape), seed, neighbours: usual() }
    }

    /// The world before the first castle, and an empty disk.
    #[must_use]
    pub fn empty(&self) -> Stand {
        let mut datacenter = Datacenter::new(Birth::of(&self.spec, self.seed));
        let storage = self.spec.platform.proxmox().map(|proxmox| proxmox.storage.clone());
        for neighbour in &self.neighbours {
            neighbour.settle(&mut datacenter, storage.as_deref().unwrap_or_default());
        }
        Stand { datacenter, disk: MemoryDisk::new() }
    }

    /// The names of our machines, by the numbers of their VMs.
    #[must_use]
    pub fn machines(&self) -> BTreeMap<u32, String> {
        let nodes = self.spec.nodes.iter();
        nodes.filter_map(|node| Some((node.vm()?.vmid.0, node.name.to_string()))).collect()
    }

    /// The numbers of guests and disks that are not ours.
    #[must_use]
    pub fn foreign_vmids(&self) -> BTreeSet<String> {
        self.neighbours.iter().filter_map(Neighbour::vmid).collect()
    }

    /// The folders of secrets that are not ours.
    #[must_use]
    pub fn foreign_folders(&self) -> Vec<&str> {
        let mut folders = Vec::new();
        for neighbour in &self.neighbours {
            if let Neighbour::Secrets { path, .. } = neighbour {
                folders.push(path.as_str());
            }
        }
        folders
    }

    /// Everything in a datacenter that is somebody else's, whole.
    #[must_use]
    pub fn foreign(&self, datacenter: &Datacenter) -> Value {
        let vmids = self.foreign_vmids();
        let proxmox = serde_json::to_value(&datacenter.proxmox).unwrap_or_default();
        let mut guests = some(&proxmox["guests"], |number, _| vmids.contains(number));
        guests.as_object_mut().into_iter().flatten().for_each(|(_, guest)| put_up_again(guest));
        let volumes = some(&proxmox["volumes"], |_, volume| {
            volume["vmid"].as_u64().is_some_and(|vmid| vmids.contains(&vmid.to_string()))
        });
        let own = self.foreign_folders();
        let mut folders = Map::new();
        let infisical = serde_json::to_value(&datacenter.infisical).unwrap_or_default();
        for (project, kept) in infisical["projects"].as_object().into_iter().flatten() {
            for (environment, there) in kept["environments"].as_object().into_iter().flatten() {
                let foreign = |path: &str| own.contains(&path.trim_end_matches('/'));
                let found = some(&there["folders"], |path, _| foreign(path));
                folders.insert(format!("{project}/{environment}"), found);
            }
        }
        json!({"guests": guests, "volumes": volumes, "folders": folders})
    }
}

impl Neighbour {
    fn vmid(&self) -> Option<String> {
        match self {
            Self::Vm { vmid, .. } | Self::Container { vmid, .. } | Self::Disk { vmid } => {
                Some(vmid.to_string())
            }
            Self::Secrets { .. } => None,
        }
    }

    fn settle(&self, datacenter: &mut Datacenter, storage: &str) {
        let trouble = match self.clone() {
            Self::Vm { vmid, name, tags, running } => {
                ProxmoxTrouble::ForeignVm { vmid, name, tags, running, node: None }
            }
            Self::Container { vmid, name } => {
                ProxmoxTrouble::ForeignContainer { vmid, name, running: true }
            }
            Self::Disk { vmid } => ProxmoxTrouble::LostDisk { vmid, storage: storage.to_owned() },
            Self::Secrets { path, values } => {
                let own = datacenter.birth.infisical.clone();
                datacenter.infisical.ensure(&InfisicalBirth { path, secrets: values, ..own });
                return;
            }
        };
        let now = datacenter.now;
        drop(datacenter.input(now, &Input::Trouble(Trouble::Proxmox(trouble))));
    }
}

/// Neighbours that look as much like ours as neighbours can.
fn usual() -> Vec<Neighbour> {
    let vm = |vmid, name: &str, tags: &str, running| Neighbour::Vm {
        vmid,
        name: name.to_owned(),
        tags: tags.to_owned(),
        running,
    };
    vec![
        vm(101, "router", "", true),
        vm(902, "blue-cp-01", "castle;blue", false),
        vm(430, "left-behind", "castle", true),
        Neighbour::Container { vmid: 105, name: "pihole".to_owned() },
        Neighbour::Disk { vmid: 777 },
        Neighbour::Secrets {
            path: "/ephemeral-castle/green".to_owned(),
            values: BTreeMap::from([("KUBECONFIG".to_owned(), "somebody else's".to_owned())]),
        },
    ]
}

/// The example with so many machines of each kind.
fn shaped(shape: Shape) -> Spec {
    let mut spec = castle_config::example();
    let kept: Vec<_> = spec
        .control_planes()
        .take(shape.control_planes)
        .chain(spec.workers().take(shape.workers))
        .cloned()
        .collect();
    spec.nodes = kept;
    let most = u32::try_from(shape.workers).unwrap_or(u32::MAX);
    spec.storage.replicas = spec.storage.replicas.min(most);
    spec
}

/// A guest as it was before its node went down with it: that was nobody's doing, and the datacenter's books tell it from a
/// guest that somebody has stopped. Who started it before, or again afterwards, is seen all the same.
pub(crate) fn put_up_again(guest: &mut Value) {
    if let Some(since) = guest.as_object_mut().and_then(|guest| guest.remove("fell")) {
        guest["running"] = since;
    }
}

/// The members of an object that are meant.
fn some(of: &Value, wanted: impl Fn(&str, &Value) -> bool) -> Value {
    let members = of.as_object().into_iter().flatten();
    let found = members.filter(|(key, value)| wanted(key, value));
    Value::Object(found.map(|(key, value)| (key.clone(), value.clone())).collect())
}
