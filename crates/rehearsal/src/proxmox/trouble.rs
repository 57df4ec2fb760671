//! What goes wrong with Proxmox when the world says so: the node, its storages, its tasks, its answers, its other users.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::form::Parameters;
use super::guest::Guest;
use super::property::Property;
use super::task::Work;
use super::value::normal_tags;
use super::{Proxmox, Turn, Volume};
use crate::turn::{HttpBody, HttpCall, HttpReply, Signal};

/// Something that goes wrong with Proxmox, or that another user of it does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProxmoxTrouble {
    /// The node goes down with its guests and tasks. The API still answers, from another node of the cluster.
    NodeDown,
    /// The node comes back, and with it the guests that are to be started at boot.
    NodeBack,
    /// A storage has nothing left, or enough again.
    StorageFull {
        /// Which.
        storage: String,
        /// Whether it is full from now on.
        full: bool,
    },
    /// Somebody holds the lock of a storage, so that whoever makes a disk there runs into a time-out.
    StorageBusy {
        /// Which.
        storage: String,
        /// Whether it is so from now on.
        busy: bool,
    },
    /// The next task of a kind (`qmcreate`, `download`, …) never ends.
    TaskHangs {
        /// The kind.
        kind: String,
    },
    /// The next task of a kind says `OK`, and what it should have made is not there.
    TaskLies {
        /// The kind.
        kind: String,
    },
    /// The next task of a kind fails.
    TaskFails {
        /// The kind.
        kind: String,
        /// Its exit status.
        words: String,
    },
    /// The next task of a kind ends well, with warnings.
    TaskWarns {
        /// The kind.
        kind: String,
        /// How many.
        warnings: u32,
    },
    /// Somebody else takes a number at the very moment when the next create asks for it.
    Overtaken {
        /// The number.
        vmid: u32,
    },
    /// One call is answered wrongly.
    Call(Fault),
    /// All tokens are removed, or have run out: a real server says the same of both.
    TokenRevoked,
    /// The tokens that were removed are there again.
    TokenRestored,
    /// A privilege at a path is taken away, from users and tokens.
    PrivilegeTaken {
        /// The path, as it stands in an ACL.
        path: String,
        /// The privilege.
        privilege: String,
    },
    /// A privilege at a path is given for the path alone, and no longer for what is below it.
    PrivilegeNotInherited {
        /// The path, as it stands in an ACL.
        path: String,
        /// The privilege.
        privilege: String,
    },
    /// Everything that was given at a path is given at others instead.
    PrivilegesMoved {
        /// The path, as it stands in an ACL.
        from: String,
        /// The others.
        to: Vec<String>,
    },
    /// Guests are put into a pool.
    Pooled {
        /// Its name.
        pool: String,
        /// Their numbers.
        vmids: Vec<u32>,
    },
    /// A bridge is not one of the node's own, but a vnet of a zone.
    Vnet {
        /// Its name.
        name: String,
        /// The zone.
        zone: String,
    },
    /// Somebody makes a VM.
    ForeignVm {
        /// Its number.
        vmid: u32,
        /// Its name.
        name: String,
        /// Its tags.
        tags: String,
        /// Whether it runs.
        running: bool,
        /// Another node of the cluster that it stands on.
        node: Option<String>,
    },
    /// Somebody makes a container.
    ForeignContainer {
        /// Its number.
        vmid: u32,
        /// Its name.
        name: String,
        /// Whether it runs.
        running: bool,
    },
    /// Somebody moves a guest to another node of the cluster.
    Moved {
        /// Its number.
        vmid: u32,
        /// Where it stands now.
        node: String,
    },
    /// Somebody changes a VM by hand; without a value the option is removed.
    Edited {
        /// The VM's number.
        vmid: u32,
        /// Which option, such as `protection`.
        option: String,
        /// Its new value.
        value: Option<String>,
    },
    /// Somebody pulls the plug of a guest by hand.
    Stopped {
        /// Its number.
        vmid: u32,
    },
    /// Somebody removes a guest with its disks by hand, running or protected as it may be.
    Destroyed {
        /// Its number.
        vmid: u32,
    },
    /// A disk that no config names lies on a storage.
    LostDisk {
        /// Whose number it bears.
        vmid: u32,
        /// Where.
        storage: String,
    },
    /// The files that disks are made from are gone from a storage.
    ImagesLost {
        /// Which.
        storage: String,
    },
    /// A file for imports is there but broken off: what is made from it fails.
    HalfFile {
        /// Where.
        storage: String,
        /// Its name.
        file: String,
    },
}

/// A wrong answer to one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// `GET`, `POST`, …
    pub method: String,
    /// What the path of the call ends with, such as `/qemu` or `/status/start`.
    pub path: String,
    /// Which of these calls, counted from 1.
    pub nth: u64,
    /// When it breaks.
    pub when: Moment,
    /// What the caller sees.
    pub how: Breakage,
}

/// When a call breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Moment {
    /// Before anything was done.
    Before,
    /// After it was done, on the way back.
    After,
}

/// What the caller of a broken call sees.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Breakage {
    /// A status with a reason phrase and no body: 595, 596, 500, …
    Status(u16, String),
    /// The connection is cut.
    Reset,
}

/// Troubles that wait for their moment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Troubles {
    pub(super) down: bool,
    pub(super) full: BTreeSet<String>,
    pub(super) busy: BTreeSet<String>,
    snags: Vec<(String, Snag)>,
    overtaken: BTreeSet<u32>,
    faults: Vec<Fault>,
    /// How often a call met one: such a call changes the world, whatever it does.
    met: u64,
}

/// What happens to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Snag {
    Hangs,
    Lies,
    Fails(String),
    Warns(u32),
}

impl Troubles {
    /// What is to happen to a new task of this kind.
    pub(super) fn snag(&mut self, kind: &str) -> Option<Snag> {
        let at = self.snags.iter().position(|(of, _)| of == kind)?;
        Some(self.snags.remove(at).1)
    }

    /// Counts a call, and gives the fault whose turn it is.
    fn meet(&mut self, call: &HttpCall) -> Option<Fault> {
        let hits = |fault: &Fault| fault.method == call.method && call.path.ends_with(&fault.path);
        let mut ripe = None;
        for (at, fault) in self.faults.iter_mut().enumerate() {
            if hits(fault) {
                self.met += 1;
                fault.nth = fault.nth.saturating_sub(1);
                if fault.nth == 0 && ripe.is_none() {
                    ripe = Some(at);
                }
            }
        }
        ripe.map(|at| self.faults.remove(at))
    }
}

impl Breakage {
    fn reply(self) -> HttpReply {
        match self {
            Self::Status(status, reason) => HttpReply {
                reason: Some(reason),
                headers: vec![("connection".to_owned(), "close".to_owned())],
                ..HttpReply::empty(status)
            },
            Self::Reset => HttpReply { body: HttpBody::Cut, ..HttpReply::empty(500) },
        }
    }
}

impl Proxmox {
    /// How often a call has met a trouble so far.
    #[must_use]
    pub fn troubles_met(&self) -> u64 {
        self.troubles.met
    }

    /// Serves one call, unless a trouble is in the way.
    pub(super) fn call_in_trouble(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        match self.troubles.meet(call) {
            None => self.answer(turn, call),
            Some(Fault { when: Moment::Before, how, .. }) => how.reply(),
            Some(Fault { when: Moment::After, how, .. }) => {
                let mutated = self.answer(turn, call).mutated;
                HttpReply { mutated, ..how.reply() }
            }
        }
    }

    /// Lets somebody else be faster with a number, if that is to happen.
    pub(super) fn overtake(&mut self, vmid: u32) {
        if self.troubles.overtaken.remove(&vmid) {
            self.troubles.met += 1;
            self.add_foreign_guest(vmid, "faster", "", false);
        }
    }

    /// Lets a trouble happen.
    pub fn suffer(&mut self, turn: &mut Turn<'_>, trouble: &ProxmoxTrouble) {
        use ProxmoxTrouble as T;
        let snag = |kind: &String, snag| (kind.clone(), snag);
        let troubles = &mut self.troubles;
        match trouble {
            T::NodeDown => self.node_down(turn),
            T::NodeBack => self.node_back(turn),
            T::StorageFull { storage, full: true } => _ = troubles.full.insert(storage.clone()),
            T::StorageFull { storage, full: false } => _ = troubles.full.remove(storage),
            T::StorageBusy { storage, busy: true } => _ = troubles.busy.insert(storage.clone()),
            T::StorageBusy { storage, busy: false } => _ = troubles.busy.remove(storage),
            T::TaskHangs { kind } => troubles.snags.push(snag(kind, Snag::Hangs)),
            T::TaskLies { kind } => troubles.snags.push(snag(kind, Snag::Lies)),
            T::TaskFails { kind, words } => {
                troubles.snags.push(snag(kind, Snag::Fails(words.clone())));
            }
            T::TaskWarns { kind, warnings } => {
                troubles.snags.push(snag(kind, Snag::Warns(*warnings)));
            }
            T::Overtaken { vmid } => _ = troubles.overtaken.insert(*vmid),
            T::Call(fault) => troubles.faults.push(fault.clone()),
            T::TokenRevoked => self.access.revoke(),
            T::TokenRestored => self.access.restore(),
            T::PrivilegeTaken { path, privilege } => self.access.take(path, None, privilege),
            T::PrivilegeNotInherited { path, privilege } => self.access.flatten(path, privilege),
            T::PrivilegesMoved { from, to } => self.access.shift(from, to),
            T::Pooled { pool, vmids } => self.access.pool(pool, vmids),
            T::Vnet { name, zone } => {
                self.bridges.remove(name);
                self.vnets.insert(name.clone(), zone.clone());
            }
            // A number that is taken is not taken twice.
            T::ForeignVm { vmid, .. } | T::ForeignContainer { vmid, .. }
                if self.guests.contains_key(vmid) => {}
            T::ForeignVm { vmid, name, tags, running, node } => {
                self.add_foreign_guest(*vmid, name, tags, *running);
                if let Some(guest) = self.guests.get_mut(vmid) {
                    guest.node.clone_from(node);
                }
            }
            T::ForeignContainer { vmid, name, running } => {
                self.add_foreign_container(*vmid, name, *running);
            }
            T::Moved { vmid, node } => {
                if let Some(guest) = self.guests.get_mut(vmid) {
                    guest.node = Some(node.clone());
                }
            }
            T::Edited { vmid, option, value } => self.edit(*vmid, option, value.as_deref()),
            // A guest that is not there can neither be stopped nor removed.
            T::Stopped { vmid } => drop(self.finish_stop(turn, *vmid)),
            T::Destroyed { vmid } => {
                drop(self.finish_stop(turn, *vmid));
                drop(self.finish_destroy(turn, *vmid, (true, true), &mut Vec::new()));
            }
            T::LostDisk { vmid, storage } => self.lose_disk(turn, *vmid, storage),
            T::ImagesLost { storage } => {
                let lost =
                    |volume: &Volume| volume.storage == *storage && volume.content == "import";
                self.volumes.retain(|_, volume| !lost(volume));
            }
            T::HalfFile { storage, file } => self.half_file(turn, storage, file),
        }
    }

    /// What is wrong because somebody said so.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.troubles.down {
            wrong.push("the Proxmox node is down".to_owned());
        }
        wrong.extend(self.troubles.full.iter().map(|name| format!("storage {name} is full")));
        wrong.extend(self.troubles.busy.iter().map(|name| format!("storage {name} is locked")));
        if self.access.is_revoked() {
            wrong.push("Proxmox takes no token any more".to_owned());
        }
        wrong.extend(self.troubles.snags.iter().map(|(kind, snag)| match snag {
            Snag::Hangs => format!("the next {kind} task never ends"),
            Snag::Lies => format!("the next {kind} task says OK and does nothing"),
            Snag::Fails(_) => format!("the next {kind} task fails"),
            Snag::Warns(_) => format!("the next {kind} task warns"),
        }));
        let overtaken = self.troubles.overtaken.iter();
        wrong.extend(
            overtaken.map(|vmid| format!("somebody else takes {vmid} when it is asked for")),
        );
        wrong
    }

    fn node_down(&mut self, turn: &mut Turn<'_>) {
        self.troubles.down = true;
        for (vmid, guest) in &mut self.guests {
            if guest.node.is_some() {
                continue;
            }
            let Some(since) = guest.running.take() else { continue };
            guest.fell = Some(since);
            if !guest.container {
                guest.config = guest.coming();
                guest.pending.clear();
                turn.signal(Signal::VmStopped { vmid: *vmid });
            }
        }
        self.kill_tasks(turn);
    }

    fn node_back(&mut self, turn: &mut Turn<'_>) {
        self.troubles.down = false;
        let at_boot = |guest: &Guest| guest.has("onboot") && guest.running.is_none();
        let vmids: Vec<u32> = self
            .guests
            .iter()
            .filter(|(_, guest)| guest.node.is_none() && !guest.container && at_boot(guest))
            .map(|(vmid, _)| *vmid)
            .collect();
        for vmid in vmids {
            if let Some(guest) = self.guests.get_mut(&vmid) {
                guest.at_boot = true;
            }
            self.fork(turn, "root@pam", Work::Start { vmid });
        }
    }

    fn edit(&mut self, vmid: u32, option: &str, value: Option<&str>) {
        let Some(guest) = self.guests.get_mut(&vmid) else { return };
        match value {
            None => drop(guest.config.remove(option)),
            Some(value) => {
                let value = if option == "tags" { normal_tags(value) } else { value.to_owned() };
                guest.config.insert(option.to_owned(), value);
            }
        }
    }

    fn lose_disk(&mut self, turn: &Turn<'_>, vmid: u32, storage: &str) {
        let format = self.format_on(storage, "raw");
        let volid = self.volid(storage, Some(vmid), &format!("vm-{vmid}-disk-9"), &format);
        self.made += 1;
        let mut disk = Volume::disk(storage, vmid, &format, 1 << 30);
        (disk.serial, disk.made) = (self.made, turn.now);
        self.volumes.insert(volid, disk);
    }

    fn half_file(&mut self, turn: &Turn<'_>, storage: &str, file: &str) {
        self.made += 1;
        let format = file.rsplit('.').next().unwrap_or_default();
        let half = Volume {
            vmid: None,
            content: "import".to_owned(),
            used: 40 << 20,
            made: turn.now,
            serial: self.made,
            // Whatever was downloaded, it is not what the name says.
            url: Some("half.broken".to_owned()),
            ..Volume::disk(storage, 0, format, 0)
        };
        self.volumes.insert(format!("{storage}:import/{file}"), half);
    }
}

/// The options of a guest that somebody else made.
pub(super) fn foreign(vmid: u32, name: &str, tags: &str, disk: &str) -> Parameters {
    let mut drive = Property { default: Some(disk.to_owned()), ..Property::default() };
    drive.options.insert("size".to_owned(), "8G".to_owned());
    let options = [
        ("boot", "order=scsi0".to_owned()),
        ("memory", "2048".to_owned()),
        ("name", name.to_owned()),
        ("scsi0", drive.text()),
        ("smbios1", format!("uuid=00000000-0000-4000-8000-{vmid:012}")),
        ("tags", normal_tags(tags)),
    ];
    let named = options.into_iter().filter(|(_, text)| !text.is_empty());
    named.map(|(name, text)| (name.to_owned(), text)).collect()
}
