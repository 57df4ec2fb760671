//! Storages and what they hold: disks of guests, images to import, downloads on their way.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reply::{Answer, Refusal};
use super::task::Work;
use super::{Proxmox, Request, Turn, seconds};

/// How a storage keeps volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageKind {
    /// Files in a folder.
    Dir,
    /// Volumes of a thin pool.
    LvmThin,
}

/// A storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// How it keeps volumes.
    pub kind: StorageKind,
    /// What it takes: `images`, `import`, `iso`, …
    pub content: BTreeSet<String>,
    /// Its size in bytes.
    pub total: u64,
    /// Whether it is switched on.
    pub enabled: bool,
}

/// A disk of a guest, or a file that disks are made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Where it is.
    pub storage: String,
    /// Whose it is; none for files.
    pub vmid: Option<u32>,
    /// `images`, `import`, `iso` or `vztmpl`.
    pub content: String,
    /// `raw`, `qcow2`, …
    pub format: String,
    /// What a guest sees, in bytes.
    pub capacity: u64,
    /// What it takes of the storage, in bytes.
    pub used: u64,
    /// When it was made, in virtual milliseconds.
    pub made: u64,
    /// Never the same for two volumes, even if one takes the name of another.
    pub serial: u64,
    /// The file it was imported from, for a disk.
    pub image: Option<String>,
    /// Where it was downloaded from, for a file.
    pub url: Option<String>,
}

impl Volume {
    /// An empty disk of a guest.
    pub(super) fn disk(storage: &str, vmid: u32, format: &str, capacity: u64) -> Self {
        Self {
            storage: storage.to_owned(),
            vmid: Some(vmid),
            content: "images".to_owned(),
            format: format.to_owned(),
            capacity,
            used: 0,
            made: 0,
            serial: 0,
            image: None,
            url: None,
        }
    }
}

impl Proxmox {
    /// A storage by its name.
    pub(super) fn storage(&self, name: &str) -> Result<&Storage, Refusal> {
        self.storages
            .get(name)
            .ok_or_else(|| Refusal::failed(format!("storage '{name}' does not exist")))
    }

    /// What a storage has left, in bytes.
    pub(super) fn free_on(&self, name: &str) -> u64 {
        if self.troubles.full.contains(name) {
            return 0;
        }
        self.storages.get(name).map_or(0, |storage| storage.total.saturating_sub(self.used(name)))
    }

    fn used(&self, name: &str) -> u64 {
        let own = self.volumes.values().filter(|volume| volume.storage == name);
        own.map(|volume| volume.used).sum()
    }

    /// The format that a volume gets on a storage: thin pools know only raw.
    pub(super) fn format_on(&self, storage: &str, asked: &str) -> String {
        match self.storages.get(storage).map(|storage| storage.kind) {
            Some(StorageKind::Dir) => asked.to_owned(),
            _ => "raw".to_owned(),
        }
    }

    /// The name of a volume for the API.
    pub(super) fn volid(
        &self,
        storage: &str,
        vmid: Option<u32>,
        name: &str,
        format: &str,
    ) -> String {
        match (self.storages.get(storage).map(|storage| storage.kind), vmid) {
            (Some(StorageKind::Dir), Some(vmid)) => format!("{storage}:{vmid}/{name}.{format}"),
            _ => format!("{storage}:{name}"),
        }
    }

    /// Where a volume is on the host, as tasks name it.
    pub(super) fn path_of(&self, volid: &str) -> String {
        let (storage, name) = volid.split_once(':').unwrap_or(("", volid));
        let root = if storage == "local" {
            "/var/lib/vz".to_owned()
        } else {
            format!("/mnt/pve/{storage}")
        };
        match (self.storages.get(storage).map(|storage| storage.kind), name.split_once('/')) {
            (Some(StorageKind::LvmThin), _) => format!("/dev/{storage}/{name}"),
            (_, Some(("import", _))) => format!("{root}/{name}"),
            (_, Some(("iso" | "vztmpl", _))) => format!("{root}/template/{name}"),
            _ => format!("{root}/images/{name}"),
        }
    }

    /// `GET /nodes/N/storage`.
    pub(super) fn list_storages(&self, request: &Request) -> Answer {
        let wanted = |name: &str, storage: &Storage| {
            request
                .parameters
                .get("content")
                .is_none_or(|kinds| kinds.split(',').any(|kind| storage.content.contains(kind)))
                && request.parameters.get("storage").is_none_or(|only| only == name)
                && (request.parameters.get("enabled").is_none_or(|only| only != "1")
                    || storage.enabled)
        };
        let listed: Vec<Value> = self
            .storages
            .iter()
            .filter(|(name, storage)| request.caller.sees_storage(name) && wanted(name, storage))
            .map(|(name, storage)| {
                let mut shown = self.shown_storage(name, storage);
                shown["storage"] = json!(name);
                shown
            })
            .collect();
        Answer::read(json!(listed))
    }

    /// `GET /nodes/N/storage/S/status`.
    pub(super) fn storage_status(&self, name: &str) -> Result<Answer, Refusal> {
        let storage = self
            .storages
            .get(name)
            .ok_or_else(|| Refusal::parameter("storage", "No such storage."))?;
        Ok(Answer::read(self.shown_storage(name, storage)))
    }

    fn shown_storage(&self, name: &str, storage: &Storage) -> Value {
        let free = self.free_on(name);
        let kind = match storage.kind {
            StorageKind::Dir => "dir",
            StorageKind::LvmThin => "lvmthin",
        };
        let content: Vec<&str> = storage.content.iter().map(String::as_str).collect();
        json!({
            "type": kind,
            "content": content.join(","),
            "enabled": u8::from(storage.enabled),
            "active": u8::from(storage.enabled),
            "shared": 0,
            "total": storage.total,
            "used": storage.total - free,
            "avail": free,
        })
    }

    /// `GET /nodes/N/storage/S/content`.
    pub(super) fn list_content(&self, name: &str, request: &Request) -> Result<Answer, Refusal> {
        self.storage(name)?;
        let parameters = &request.parameters;
        let vmid = parameters.get("vmid").and_then(|text| text.parse::<u32>().ok());
        let wanted = |volume: &Volume| {
            volume.storage == name
                && parameters.get("content").is_none_or(|kind| *kind == volume.content)
                // Files to import belong to nobody and are listed whoever is asked about.
                && (vmid.is_none() || volume.vmid == vmid || volume.content == "import")
        };
        let listed: Vec<Value> = self
            .volumes
            .iter()
            .filter(|(_, volume)| wanted(volume))
            .map(|(volid, volume)| {
                let length = if volume.vmid.is_some() { volume.capacity } else { volume.used };
                let mut shown = json!({
                    "volid": volid,
                    "format": volume.format,
                    "content": volume.content,
                    "size": length,
                    "ctime": seconds(volume.made),
                });
                if let Some(vmid) = volume.vmid {
                    shown["vmid"] = json!(vmid);
                    shown["used"] = json!(volume.used);
                    shown["parent"] = Value::Null;
                }
                shown
            })
            .collect();
        Ok(Answer::read(json!(listed)))
    }

    /// `GET /nodes/N/storage/S/content/V`.
    pub(super) fn show_volume(
        &self,
        request: &Request,
        (storage, volume): (&str, &str),
    ) -> Result<Answer, Refusal> {
        self.storage(storage)?;
        let path = format!("/storage/{storage}");
        request.caller.need_any(&path, &["Datastore.AllocateSpace", "Datastore.Audit"])?;
        let volid = full_name(storage, volume);
        let Some(found) = self.volumes.get(&volid) else {
            let words = format!("volume_size_info on '{volid}' failed - no format");
            return Err(Refusal::failed(words));
        };
        Ok(Answer::read(json!({
            "path": self.path_of(&volid),
            "format": found.format,
            "size": found.capacity,
            "used": found.used,
        })))
    }

    /// `DELETE /nodes/N/storage/S/content/V`.
    pub(super) fn delete_volume(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        (storage, volume): (&str, &str),
    ) -> Result<Answer, Refusal> {
        self.storage(storage)?;
        request.caller.need(&format!("/storage/{storage}"), "Datastore.Allocate")?;
        let volid = full_name(storage, volume);
        if !volid.starts_with(&format!("{storage}:")) {
            let words = format!("storage ID missmatch ({storage} != {volid})");
            return Err(Refusal::failed(words));
        }
        let owner = self.volumes.get(&volid).and_then(|volume| volume.vmid);
        if let Some(owner) = owner.filter(|owner| self.guests.contains_key(owner)) {
            let words = format!("cannot remove image, a guest with VMID '{owner}' exists!");
            return Err(Refusal::failed(words));
        }
        Ok(self.begin(turn, request, Work::DeleteVolume { storage: storage.to_owned(), volid }))
    }
}

/// The name of a volume with its storage, which may be left out.
fn full_name(storage: &str, volume: &str) -> String {
    if volume.contains(':') { volume.to_owned() } else { format!("{storage}:{volume}") }
}
