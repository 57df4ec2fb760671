//! The emulated Proxmox VE: one node with its storages, guests and tasks, as pure data behind the true API.
//!
//! A call goes `caller` (who) → `form` (parameters) → `route` → one of the verbs in the files beside this
//! one; what takes time becomes a task (`task`), which ends as a due [`Effect`].

mod access;
mod config;
mod create;
mod download;
mod drive;
mod form;
mod format;
mod guest;
mod neighbour;
mod node;
mod pattern;
mod power;
mod privilege;
mod property;
mod reply;
mod role;
mod route;
mod schema;
mod storage;
mod task;
#[cfg(test)]
mod tests;
mod trouble;
mod value;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use self::access::{Access, Caller};
use self::form::Parameters;
use self::guest::Guest;
pub(crate) use self::reply::refusal;
pub use self::role::{Place, ROLE};
pub use self::storage::{Storage, StorageKind, Volume};
use self::task::Task;
use self::trouble::Troubles;
pub use self::trouble::{Breakage, Fault, Moment, ProxmoxTrouble};
use crate::sources::FACTORY_HOST;
use crate::turn::{HttpCall, HttpReply, Turn};

/// The first second of every rehearsal, 2026-02-02T00:00:00Z, since 1970.
const BIRTH_SECONDS: u64 = 1_769_990_400;
/// The memory of the host.
const HOST_MEMORY: u64 = 64 << 30;
/// Its cores.
const HOST_CORES: u64 = 16;
/// The size of each storage.
const STORAGE_SIZE: u64 = 1 << 40;

/// What is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Effect {
    /// A task has done its work.
    TaskEnds {
        /// Which.
        number: u64,
    },
    /// A guest that was rebooted is started again, by a daemon that asks nobody.
    Restarts {
        /// Which.
        vmid: u32,
        /// The task that made it.
        maker: u64,
    },
}

/// What a castle file says about its Proxmox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxmoxBirth {
    /// The node's name.
    pub node: String,
    /// The storage for disks.
    pub storage: String,
    /// The storage for images; may be the same.
    pub image_storage: String,
    /// The bridge of the guests.
    pub bridge: String,
    /// The token's id, such as `root@pam!castle`.
    pub token_id: String,
    /// Its secret.
    pub token_secret: String,
    /// The image factory that the castle uses, host and port.
    pub factory: String,
}

/// The server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proxmox {
    node: String,
    /// The image factories that files can be fetched from, host and port.
    factories: BTreeSet<String>,
    storages: BTreeMap<String, Storage>,
    bridges: BTreeSet<String>,
    /// Vnets, each with its zone.
    vnets: BTreeMap<String, String>,
    access: Access,
    guests: BTreeMap<u32, Guest>,
    volumes: BTreeMap<String, Volume>,
    tasks: BTreeMap<u64, Task>,
    /// How many tasks there ever were.
    forked: u64,
    /// How many volumes there ever were.
    made: u64,
    troubles: Troubles,
}

/// What the host itself knows, past the API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// VMs and containers by number.
    pub guests: Vec<GuestSeen>,
    /// Disks of guests, by their names in the API.
    pub volumes: Vec<String>,
    /// Files that disks are made from.
    pub files: Vec<String>,
    /// Ids of tasks that still run.
    pub running_tasks: Vec<String>,
}

/// A guest in the [`Inventory`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestSeen {
    /// Its number.
    pub vmid: u32,
    /// Its name, empty if it has none.
    pub name: String,
    /// Whether it is a container.
    pub container: bool,
    /// Whether it runs.
    pub running: bool,
    /// Its cores, as its config has them.
    pub cores: u64,
    /// Its memory in MiB, as its config has it.
    pub memory: u64,
    /// What it is locked for.
    pub lock: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
}

/// A request, ready to be served.
struct Request {
    /// The parameters in the path, such as `node` and `vmid`.
    path: Parameters,
    /// Those in the query or the body.
    parameters: Parameters,
    caller: Caller,
}

/// Whether a call that changed the world counts as a mutation: here every one does.
#[must_use]
pub fn counts(call: &HttpCall) -> bool {
    call.method != "GET"
}

impl Proxmox {
    /// A fresh node with nothing on it.
    #[must_use]
    pub fn new(birth: &ProxmoxBirth) -> Self {
        let mut fresh = Self {
            node: birth.node.clone(),
            factories: BTreeSet::from([FACTORY_HOST.to_owned()]),
            storages: BTreeMap::new(),
            bridges: BTreeSet::new(),
            vnets: BTreeMap::new(),
            access: Access::default(),
            guests: BTreeMap::new(),
            volumes: BTreeMap::new(),
            tasks: BTreeMap::new(),
            forked: 0,
            made: 0,
            troubles: Troubles::default(),
        };
        fresh.ensure(birth);
        fresh
    }

    /// Adds what a changed castle file names and the node does not have. Nothing is taken away; the node
    /// takes the new name, since there is one only.
    pub fn ensure(&mut self, birth: &ProxmoxBirth) {
        self.node.clone_from(&birth.node);
        self.factories.insert(birth.factory.clone());
        if !self.vnets.contains_key(&birth.bridge) {
            self.bridges.insert(birth.bridge.clone());
        }
        self.access.ensure(birth);
        let shared = birth.storage == birth.image_storage;
        let images = ["backup", "import", "iso", "snippets", "vztmpl"];
        let files = if shared { [&images[..], &["images"]].concat() } else { images.to_vec() };
        self.add_storage(&birth.image_storage, StorageKind::Dir, &files);
        if !shared {
            self.add_storage(&birth.storage, StorageKind::LvmThin, &["images", "rootdir"]);
        }
    }

    /// Adds a storage, or content to one that is there.
    pub fn add_storage(&mut self, name: &str, kind: StorageKind, content: &[&str]) {
        let storage = self.storages.entry(name.to_owned()).or_insert_with(|| Storage {
            kind,
            content: BTreeSet::new(),
            total: STORAGE_SIZE,
            enabled: true,
        });
        storage.content.extend(content.iter().map(|kind| (*kind).to_owned()));
    }

    /// Serves one call.
    pub fn call(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        self.call_in_trouble(turn, call)
    }

    fn answer(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        match self.serve(turn, call) {
            Ok(answer) => answer.reply(),
            Err(refusal) => refusal.reply(),
        }
    }

    /// Lets a due effect happen.
    pub fn fire(&mut self, turn: &mut Turn<'_>, effect: Effect) {
        match effect {
            Effect::TaskEnds { number } => self.end(turn, number),
            Effect::Restarts { vmid, maker } => self.restart(turn, vmid, maker),
        }
    }

    /// What is really there.
    #[must_use]
    pub fn inventory(&self) -> Inventory {
        let seen = |(vmid, guest): (&u32, &Guest)| GuestSeen {
            vmid: *vmid,
            name: guest.option("name").unwrap_or_default().to_owned(),
            container: guest.container,
            running: guest.running.is_some(),
            cores: guest.option("cores").and_then(|n| n.parse().ok()).unwrap_or(1),
            memory: guest.option("memory").and_then(|n| n.parse().ok()).unwrap_or(512),
            lock: guest.option("lock").map(str::to_owned),
            tags: guest
                .option("tags")
                .iter()
                .flat_map(|tags| tags.split(';'))
                .map(str::to_owned)
                .collect(),
        };
        let volumes = |disks: bool| {
            let wanted = self.volumes.iter().filter(|(_, volume)| volume.vmid.is_some() == disks);
            wanted.map(|(volid, _)| volid.clone()).collect()
        };
        Inventory {
            guests: self.guests.iter().map(seen).collect(),
            volumes: volumes(true),
            files: volumes(false),
            running_tasks: self.running_tasks(),
        }
    }

    /// Puts a VM there that somebody else made, with a disk.
    pub fn add_foreign_guest(&mut self, vmid: u32, name: &str, tags: &str, running: bool) {
        let storage = self.storages.iter().find(|(_, storage)| storage.content.contains("images"));
        let storage = storage.map_or_else(String::new, |(name, _)| name.clone());
        let format = self.format_on(&storage, "raw");
        let volid = self.volid(&storage, Some(vmid), &format!("vm-{vmid}-disk-0"), &format);
        self.made += 1;
        let mut disk = Volume::disk(&storage, vmid, &format, 8 << 30);
        disk.serial = self.made;
        self.volumes.insert(volid.clone(), disk);
        let mut guest = Guest::new(trouble::foreign(vmid, name, tags, &volid));
        guest.running = running.then_some(0);
        self.guests.insert(vmid, guest);
    }

    /// Puts a container there that somebody else made, with its root.
    pub fn add_foreign_container(&mut self, vmid: u32, name: &str, running: bool) {
        let storage = self.storages.iter().find(|(_, storage)| storage.content.contains("rootdir"));
        let mut config = Parameters::from([("name".to_owned(), name.to_owned())]);
        if let Some(storage) = storage.map(|(name, _)| name.clone()) {
            let volid = self.volid(&storage, Some(vmid), &format!("vm-{vmid}-disk-0"), "raw");
            self.made += 1;
            let mut root = Volume::disk(&storage, vmid, "raw", 4 << 30);
            (root.serial, root.content) = (self.made, "rootdir".to_owned());
            self.volumes.insert(volid.clone(), root);
            config.insert("rootfs".to_owned(), format!("{volid},size=4G"));
        }
        let mut guest = Guest::new(config);
        guest.container = true;
        guest.running = running.then_some(0);
        self.guests.insert(vmid, guest);
    }
}

/// The options that a guest can have, as the schema names them; one that there are several of without its number.
pub(crate) fn option_names() -> impl Iterator<Item = &'static str> {
    schema::schema().option_names()
}

/// What the schema says against an option of a guest, and against its value.
///
/// # Errors
/// The server's words.
pub(crate) fn judge_option(name: &str, value: Option<&str>) -> Result<(), String> {
    schema::schema().judge_option(name, value)
}

/// Virtual milliseconds as seconds since 1970.
fn seconds(now: u64) -> u64 {
    BIRTH_SECONDS + now / 1000
}
