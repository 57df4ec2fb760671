//! Drives of a guest: the volume that each one names is made, imported, found or let go here.

use super::access::Caller;
use super::form::Parameters;
use super::property::{Property, bytes, size};
use super::reply::Refusal;
use super::schema::schema;
use super::storage::{StorageKind, Volume};
use super::{Proxmox, Turn};

/// What a cloud-init drive takes.
const CLOUD_INIT_SIZE: u64 = 4 << 20;

/// Where the volume of a drive comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    /// A new volume of this many bytes.
    New { storage: String, bytes: u64 },
    /// A copy of another volume.
    Import { storage: String, from: String },
    /// A cloud-init drive.
    CloudInit { storage: String },
    /// A volume that is there already.
    Existing(String),
    /// No medium.
    Empty,
}

/// Whether an option of a guest is a drive.
pub(super) fn is_drive(option: &str) -> bool {
    schema().is_drive(option)
}

/// The volume that a drive's text in a config names.
pub(super) fn volume_of(text: &str) -> Option<String> {
    let property = Property::parse(text, Some("file")).ok()?;
    property.default.filter(|file| file.contains(':'))
}

/// Reads where the volume of a drive comes from.
fn origin(property: &Property) -> Origin {
    let file = property.default.clone().unwrap_or_default();
    if file.starts_with('/') {
        return Origin::Existing(file);
    }
    let Some((storage, rest)) = file.split_once(':') else { return Origin::Empty };
    let storage = storage.to_owned();
    if let Some(from) = property.options.get("import-from") {
        return Origin::Import { storage, from: from.clone() };
    }
    if rest == "cloudinit" {
        return Origin::CloudInit { storage };
    }
    match bytes(&format!("{rest}G")) {
        Some(bytes) => Origin::New { storage, bytes },
        None => Origin::Existing(file),
    }
}

impl Proxmox {
    /// Checks what can be known about the drives of a request before a task starts: rights first, then names.
    pub(super) fn check_drives(
        &self,
        caller: &Caller,
        vmid: u32,
        options: &Parameters,
    ) -> Result<(), Refusal> {
        for (option, text) in options.iter().filter(|(option, _)| is_drive(option)) {
            let property = Property::parse(text, Some("file"))
                .map_err(|words| Refusal::parameter(option, words))?;
            let storage = match origin(&property) {
                Origin::Existing(volid) => {
                    self.check_volume(caller, vmid, &volid)?;
                    continue;
                }
                Origin::Empty | Origin::CloudInit { .. } => continue,
                Origin::Import { storage, from } => {
                    caller.need(&format!("/storage/{storage}"), "Datastore.AllocateSpace")?;
                    self.check_source(caller, vmid, &from)?;
                    storage
                }
                Origin::New { storage, .. } => {
                    caller.need(&format!("/storage/{storage}"), "Datastore.AllocateSpace")?;
                    storage
                }
            };
            if !self.storage(&storage)?.content.contains("images") {
                let words = format!("storage '{storage}' does not support vm images");
                return Err(Refusal::parameter("storage", words));
            }
        }
        Ok(())
    }

    /// Refuses imports into anything but a new volume without a size, after all rights were checked.
    pub(super) fn check_imports(options: &Parameters) -> Result<(), Refusal> {
        for (option, text) in options.iter().filter(|(option, _)| is_drive(option)) {
            let Ok(property) = Property::parse(text, Some("file")) else { continue };
            let new = property.default.as_ref().and_then(|file| file.split_once(':'));
            if property.options.contains_key("import-from") && new.is_none_or(|(_, n)| n != "0") {
                let words = "'import-from' requires special syntax - use <storage \
                             ID>:0,import-from=<source>";
                return Err(Refusal::parameter(option, words));
            }
        }
        Ok(())
    }

    /// Whether somebody may use a volume that is there already.
    fn check_volume(&self, caller: &Caller, vmid: u32, volid: &str) -> Result<(), Refusal> {
        let Some((storage, name)) = volid.split_once(':') else {
            return Err(Refusal::failed(
                "Only root can pass arbitrary filesystem paths. at \
                 /usr/share/perl5/PVE/Storage.pm line 651.",
            ));
        };
        let kind = self.storage(storage)?.kind;
        if kind == StorageKind::Dir && !name.contains('/') {
            let words = format!("unable to parse directory volume name '{name}'");
            return Err(Refusal::failed(words));
        }
        if kind == StorageKind::LvmThin && !name.starts_with("vm-") && !name.starts_with("base-") {
            return Err(Refusal::failed(format!("unable to parse lvm volume name '{name}'")));
        }
        let path = format!("/storage/{storage}");
        let own = self.volumes.get(volid).is_some_and(|volume| volume.vmid == Some(vmid));
        if own || caller.may(&path, "Datastore.Allocate") {
            return Ok(());
        }
        if ["iso/", "import/", "vztmpl/"].iter().any(|kind| name.starts_with(kind)) {
            return caller.need_any(&path, &["Datastore.AllocateSpace", "Datastore.Audit"]);
        }
        caller.need(&path, "Datastore.Allocate")
    }

    /// Whether somebody may make a disk from this.
    fn check_source(&self, caller: &Caller, vmid: u32, from: &str) -> Result<(), Refusal> {
        match self.volumes.get(from).and_then(|volume| volume.vmid) {
            Some(owner) => caller.need(&format!("/vms/{owner}"), "VM.Clone"),
            None => self.check_volume(caller, vmid, from),
        }
    }

    /// Makes the volume of one drive and gives the drive's text for the config. The log gets what was done.
    pub(super) fn realise(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        (option, text): (&str, &str),
        log: &mut Vec<String>,
    ) -> Result<String, String> {
        let mut property = Property::parse(text, Some("file"))?;
        let (volid, length) = match origin(&property) {
            Origin::Empty | Origin::Existing(_) => return Ok(text.to_owned()),
            Origin::CloudInit { storage } => {
                let name = format!("vm-{vmid}-cloudinit");
                let format = self.format_on(&storage, "qcow2");
                property.options.insert("media".to_owned(), "cdrom".to_owned());
                let blank = Volume::disk(&storage, vmid, &format, CLOUD_INIT_SIZE);
                (self.allocate(turn, &name, blank, log)?, None)
            }
            Origin::New { storage, bytes } => {
                // The variables of a firmware have their own size, whatever is asked for.
                let bytes = if option == "efidisk0" { 4 << 20 } else { bytes };
                let asked = property.options.remove("format").unwrap_or("raw".to_owned());
                let format = self.format_on(&storage, &asked);
                let name = self.free_name(&storage, vmid);
                let blank = Volume::disk(&storage, vmid, &format, bytes);
                (self.allocate(turn, &name, blank, log)?, Some(bytes))
            }
            Origin::Import { storage, from } => {
                let source = self.source(&from)?.clone();
                property.options.remove("import-from");
                property.options.remove("format");
                log.push(format!("create full clone of drive ({from})"));
                let format = self.format_on(&storage, &source.format);
                let name = self.free_name(&storage, vmid);
                let mut copy = Volume::disk(&storage, vmid, &format, source.capacity);
                copy.image = from.rsplit('/').next().map(str::to_owned);
                copy.used = source.capacity;
                (self.allocate(turn, &name, copy, log)?, Some(source.capacity))
            }
        };
        property.default = Some(volid);
        if let Some(length) = length {
            property.options.insert("size".to_owned(), size(length));
        }
        let text = property.text();
        log.push(format!("{option}: successfully created disk '{text}'"));
        Ok(text)
    }

    /// The volume that a drive is imported from, if it is there and what its name says.
    pub(super) fn source(&self, from: &str) -> Result<&Volume, String> {
        let Some(source) = self.volumes.get(from) else {
            return Err(format!("failed to stat '{}'", self.path_of(from)));
        };
        let named = source.url.as_deref().and_then(|url| url.rsplit('.').next());
        if named.is_some_and(|extension| extension != source.format) {
            return Err(format!(
                "qemu-img: Could not open '{}': Image is not in {} format",
                self.path_of(from),
                source.format
            ));
        }
        Ok(source)
    }

    /// The lowest free name for a disk of a guest on a storage.
    fn free_name(&self, storage: &str, vmid: u32) -> String {
        let taken = |name: &str| {
            self.volumes
                .iter()
                .any(|(volid, volume)| volume.storage == storage && stem(volid) == name)
        };
        let mut name = format!("vm-{vmid}-disk-0");
        for number in 1.. {
            if !taken(&name) {
                break;
            }
            name = format!("vm-{vmid}-disk-{number}");
        }
        name
    }

    /// What a storage without space says to a new volume.
    fn no_space(&self, storage: &str, volid: &str, log: &mut Vec<String>) -> String {
        let path = self.path_of(volid);
        if self.storages.get(storage).is_some_and(|storage| storage.kind == StorageKind::LvmThin) {
            let (name, pool) = (volid.rsplit(':').next().unwrap_or_default(), storage);
            return format!(
                "lvcreate '{pool}/{name}' error:   Cannot create new thin volume, free space in \
                 thin pool {pool}/data reached threshold."
            );
        }
        log.push(format!("qemu-img: {path}: No space left on device"));
        format!("unable to create image: qemu-img: {path}: No space left on device")
    }

    /// What somebody who makes a volume has to wait for in vain, if the storage is locked.
    pub(super) fn unlocked_storage(&self, storage: &str) -> Result<(), String> {
        if self.troubles.busy.contains(storage) {
            return Err(format!(
                "can't lock file '/var/lock/pve-manager/pve-storage-{storage}' - got timeout"
            ));
        }
        Ok(())
    }

    fn allocate(
        &mut self,
        turn: &mut Turn<'_>,
        name: &str,
        mut volume: Volume,
        log: &mut Vec<String>,
    ) -> Result<String, String> {
        let volid = self.volid(&volume.storage, volume.vmid, name, &volume.format);
        if self.troubles.full.contains(&volume.storage)
            || volume.used > self.free_on(&volume.storage)
        {
            return Err(self.no_space(&volume.storage, &volid, log));
        }
        self.made += 1;
        volume.serial = self.made;
        volume.made = turn.now;
        log.push(format!(
            "Formatting '{}', fmt={} size={}",
            self.path_of(&volid),
            volume.format,
            volume.capacity
        ));
        self.volumes.insert(volid.clone(), volume);
        Ok(volid)
    }
}

/// The name of a volume without its storage, folder and extension.
fn stem(volid: &str) -> &str {
    let name = volid.rsplit([':', '/']).next().unwrap_or_default();
    name.split('.').next().unwrap_or_default()
}
