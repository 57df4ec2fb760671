//! Changes of a guest's config: at once or as a task, at once in force or pending.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::create::random_uuid;
use super::drive::{is_drive, volume_of};
use super::form::Parameters;
use super::privilege::{may_change_drives, may_configure};
use super::property::{Property, bytes, size};
use super::reply::{Answer, Refusal};
use super::schema::schema;
use super::task::Work;
use super::value::{CARDS, normal_tags};
use super::{Proxmox, Request, Turn};

/// Options that take effect on a running guest.
const AT_ONCE: &[&str] =
    &["description", "name", "onboot", "protection", "startup", "tags", "unused"];

/// A change of a config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Change {
    set: Parameters,
    delete: Vec<String>,
}

/// Refuses what only the root user in person may set, never a token.
pub(super) fn only_root(options: &Parameters) -> Result<(), Refusal> {
    if options.get("skiplock").is_some_and(|text| text == "1") {
        return Err(Refusal::parameter("skiplock", "Only root may use this option."));
    }
    Ok(())
}

/// An option as Proxmox keeps it.
pub(super) fn normalise(turn: &mut Turn<'_>, name: &str, value: &str) -> String {
    if name == "tags" {
        return normal_tags(value);
    }
    if name == "vmgenid" && value == "1" {
        return random_uuid(turn);
    }
    if name.starts_with("net") && schema().option(name).is_some() {
        return card(turn, value).unwrap_or_else(|| value.to_owned());
    }
    value.to_owned()
}

/// A network card with its model first and an address, drawn if it has none.
fn card(turn: &mut Turn<'_>, value: &str) -> Option<String> {
    let mut property = Property::parse(value, Some("model")).ok()?;
    let (model, mac) = if let Some(model) = property.default.take() {
        (model, property.options.remove("macaddr"))
    } else {
        let model = CARDS.iter().find(|card| property.options.contains_key(**card))?;
        ((*model).to_owned(), property.options.remove(*model))
    };
    let mac = mac.unwrap_or_else(|| {
        let bits = turn.dice.next_u64();
        format!("BC:24:11:{:02X}:{:02X}:{:02X}", bits & 0xff, bits >> 8 & 0xff, bits >> 16 & 0xff)
    });
    property.default = Some(format!("{model}={mac}"));
    Some(property.text())
}

impl Proxmox {
    /// `PUT` and `POST /nodes/N/qemu/ID/config`: the first at once, the second as a task.
    pub(super) fn update(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        vmid: u32,
        later: bool,
    ) -> Result<Answer, Refusal> {
        let mut set = request.parameters.clone();
        only_root(&set)?;
        let deleted = set.remove("delete").unwrap_or_default();
        let digest = set.remove("digest");
        for name in ["background_delay", "force", "node", "revert", "skiplock", "vmid"] {
            set.remove(name);
        }
        let delete: Vec<String> =
            deleted.split([',', ' ', ';']).filter(|n| !n.is_empty()).map(str::to_owned).collect();
        if set.is_empty() && delete.is_empty() {
            return Err(Refusal::failed("no options specified"));
        }
        if let Some(name) = delete.iter().find(|name| schema().option(name).is_none()) {
            return Err(Refusal::parameter("delete", format!("unknown option '{name}'")));
        }
        let caller = &request.caller;
        self.check_drives(caller, vmid, &set)?;
        may_configure(caller, vmid, delete.iter().chain(set.keys()))?;
        self.may_use_devices(caller, vmid, &set, "modify")?;
        Self::check_imports(&set)?;
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        may_change_drives(caller, vmid, &set)?;
        let gone = delete.iter().map(|n| (n.clone(), guest.option(n).unwrap_or("").to_owned()));
        may_change_drives(caller, vmid, &gone.collect())?;
        if digest.is_some_and(|digest| digest != guest.digest()) {
            return Err(Refusal::failed("checksum mismatch (file change by other user?)"));
        }
        self.unlocked(vmid).map_err(Refusal::failed)?;
        let change = Change { set, delete };
        if later {
            return Ok(self.begin(turn, request, Work::Configure { vmid, change }));
        }
        // A refused call must leave no trace, not even in the dice: it is not logged.
        let before = (self.clone(), turn.dice.clone());
        if let Err(text) = self.change(turn, vmid, &change) {
            (*self, *turn.dice) = before;
            return Err(Refusal::failed(text));
        }
        Ok(Answer::changed(Value::Null))
    }

    /// Ends a change that was made as a task.
    pub(super) fn finish_configure(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        change: &Change,
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        let set = change.set.iter().map(|(name, value)| format!(" -{name} {value}"));
        let delete = change.delete.iter().map(|name| format!(" -delete {name}"));
        log.push(format!("update VM {vmid}:{}", set.chain(delete).collect::<String>()));
        self.change(turn, vmid, change)
    }

    fn change(&mut self, turn: &mut Turn<'_>, vmid: u32, change: &Change) -> Result<(), String> {
        for name in &change.delete {
            self.delete_option(vmid, name)?;
        }
        for (name, value) in &change.set {
            let drive = is_drive(name);
            let value = if drive {
                self.realise(turn, vmid, (name, value), &mut Vec::new())?
            } else {
                normalise(turn, name, value)
            };
            if drive {
                self.detach(vmid, name, &value)?;
            }
            let guest = self.guest_mut(vmid)?;
            if waits(guest.running.is_some(), name) {
                guest.pending.insert(name.clone(), Some(value));
            } else {
                guest.config.insert(name.clone(), value);
            }
        }
        Ok(())
    }

    fn delete_option(&mut self, vmid: u32, name: &str) -> Result<(), String> {
        if is_drive(name) {
            self.detach(vmid, name, "")?;
        }
        let guest = self.guest_mut(vmid)?;
        if waits(guest.running.is_some(), name) {
            guest.pending.insert(name.to_owned(), None);
            return Ok(());
        }
        let value = guest.config.remove(name);
        if name.starts_with("unused")
            && let Some(volid) = value
        {
            self.volumes.remove(&volid);
        }
        Ok(())
    }

    /// Lets go of the volume that a drive holds now: a disk becomes unused, a cloud-init drive goes.
    fn detach(&mut self, vmid: u32, name: &str, replacement: &str) -> Result<(), String> {
        let guest = self.guest_mut(vmid)?;
        let Some(volid) = guest.option(name).and_then(volume_of) else { return Ok(()) };
        if volume_of(replacement).as_ref() == Some(&volid) {
            return Ok(());
        }
        guest.config.remove(name);
        if volid.contains("-cloudinit") {
            self.volumes.remove(&volid);
            return Ok(());
        }
        let free = (0..256)
            .map(|number| format!("unused{number}"))
            .find(|unused| !guest.config.contains_key(unused))
            .ok_or("too many unused disks")?;
        guest.config.insert(free, volid);
        Ok(())
    }

    /// `PUT /nodes/N/qemu/ID/resize`.
    pub(super) fn resize(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        vmid: u32,
    ) -> Result<Answer, Refusal> {
        only_root(&request.parameters)?;
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        let value = |name: &str| request.parameters.get(name).cloned();
        if value("digest").is_some_and(|digest| digest != guest.digest()) {
            return Err(Refusal::failed("checksum mismatch (file change by other user?)"));
        }
        let disk = value("disk").unwrap_or_default();
        let size = value("size").unwrap_or_default();
        Ok(self.begin(turn, request, Work::Resize { vmid, disk, size }))
    }

    /// What stands against a new size.
    pub(super) fn judge_resize(&self, vmid: u32, disk: &str, size: &str) -> Result<(), String> {
        self.new_length(vmid, disk, size).map(|_| ())
    }

    /// The volume of a disk and the length it shall have.
    fn new_length(&self, vmid: u32, disk: &str, size: &str) -> Result<(String, u64), String> {
        let guest = self.unlocked(vmid)?;
        let missing = || format!("disk '{disk}' does not exist");
        let volid = guest.option(disk).and_then(volume_of).ok_or_else(missing)?;
        let capacity = self.volumes.get(&volid).ok_or_else(missing)?.capacity;
        let amount = bytes(size.trim_start_matches('+')).unwrap_or_default();
        let length = if size.starts_with('+') { capacity + amount } else { amount };
        if length < capacity {
            return Err("shrinking disks is not supported".to_owned());
        }
        Ok((volid, length))
    }

    /// Grows a disk.
    pub(super) fn finish_resize(
        &mut self,
        vmid: u32,
        disk: &str,
        wanted: &str,
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        let (volid, length) = self.new_length(vmid, disk, wanted)?;
        if let Some(volume) = self.volumes.get_mut(&volid) {
            volume.capacity = length;
        }
        let guest = self.guest_mut(vmid)?;
        let text = guest.option(disk).unwrap_or_default();
        let mut property = Property::parse(text, Some("file"))?;
        property.options.insert("size".to_owned(), size(length));
        let text = property.text();
        guest.config.insert(disk.to_owned(), text);
        log.push("Image resized.".to_owned());
        Ok(())
    }
}

/// Whether a change of an option waits until the guest is switched off.
fn waits(running: bool, name: &str) -> bool {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    running && !is_drive(name) && stem != "net" && !AT_ONCE.contains(&stem)
}
