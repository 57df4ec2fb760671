//! Makes guests: the config is taken at once, under a lock and empty; the disks come with the task.

use super::config::normalise;
use super::drive::is_drive;
use super::form::Parameters;
use super::guest::Guest;
use super::privilege::may_configure;
use super::property::Property;
use super::reply::{Answer, Refusal};
use super::task::Work;
use super::{Proxmox, Request, Turn, seconds};

/// The emulator that is said to have made the guests.
const QEMU: &str = "10.0.13";

impl Proxmox {
    /// `POST /nodes/N/qemu`.
    pub(super) fn create(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
    ) -> Result<Answer, Refusal> {
        let mut options = request.parameters.clone();
        options.remove("node");
        let vmid = options.remove("vmid").and_then(|text| text.parse().ok()).unwrap_or_default();
        let start = options.remove("start").is_some_and(|text| text == "1");
        if let Some(pool) = options.remove("pool") {
            return Err(Refusal::denied(&format!("pool '{pool}' does not exist")));
        }
        let caller = &request.caller;
        if let Some(storage) = options.remove("storage") {
            caller.need(&format!("/storage/{storage}"), "Datastore.AllocateSpace")?;
        }
        if !caller.may(&format!("/vms/{vmid}"), "VM.Allocate") {
            return Err(Refusal::denied(""));
        }
        if options.contains_key("archive") {
            return Err(Refusal::failed("there are no backups here"));
        }
        self.check_drives(caller, vmid, &options)?;
        may_configure(caller, vmid, options.keys())?;
        self.may_use_devices(caller, vmid, &options, "set")?;
        Self::check_imports(&options)?;
        self.overtake(vmid);
        if let Some(there) = self.guests.get(&vmid) {
            let sort = if there.container { "CT" } else { "VM" };
            return Err(Refusal::failed(format!(
                "unable to create VM {vmid} - {sort} {vmid} already exists on node '{}'",
                there.node.as_ref().unwrap_or(&self.node)
            )));
        }
        // The real one too writes nothing but the lock: who owns the guest shows only when the task has ended.
        let lock = Parameters::from([("lock".to_owned(), "create".to_owned())]);
        let maker = self.forked + 1;
        let switched = Some((turn.now, None));
        self.guests.insert(vmid, Guest { maker, switched, ..Guest::new(lock) });
        Ok(self.begin(turn, request, Work::Create { vmid, options, start }))
    }

    /// What stands against making a guest's disks.
    pub(super) fn judge_create(&self, options: &Parameters) -> Result<(), String> {
        for (_, text) in options.iter().filter(|(name, _)| is_drive(name)) {
            let property = Property::parse(text, Some("file"))?;
            if let Some((storage, _)) = property.default.iter().find_map(|f| f.split_once(':')) {
                self.unlocked_storage(storage)?;
            }
            if let Some(from) = property.options.get("import-from") {
                self.source(from)?;
            }
        }
        Ok(())
    }

    /// Makes the disks and writes the config.
    pub(super) fn finish_create(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        options: &Parameters,
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        let mut config = Parameters::new();
        for (name, text) in options {
            let text = if is_drive(name) {
                self.realise(turn, vmid, (name, text), log)?
            } else {
                normalise(turn, name, text)
            };
            config.insert(name.clone(), text);
        }
        config.entry("boot".to_owned()).or_insert_with(|| boot_order(options));
        let uuid = random_uuid(turn);
        config.entry("smbios1".to_owned()).or_insert_with(|| format!("uuid={uuid}"));
        let generation = random_uuid(turn);
        config.entry("vmgenid".to_owned()).or_insert(generation);
        let made = seconds(turn.now);
        config.insert("meta".to_owned(), format!("creation-qemu={QEMU},ctime={made}"));
        let made = self.guests.get(&vmid).map(|guest| (guest.maker, guest.switched));
        let (maker, switched) = made.unwrap_or_default();
        self.guests.insert(vmid, Guest { maker, switched, ..Guest::new(config) });
        Ok(())
    }

    /// Takes back a create that failed.
    pub(super) fn abandon_create(&mut self, vmid: u32) {
        if self.guests.remove(&vmid).is_some() {
            self.volumes.retain(|_, volume| volume.vmid != Some(vmid));
        }
    }
}

/// The order that Proxmox picks itself: the first disk, the first medium, the first card; a blank if there is none.
fn boot_order(options: &Parameters) -> String {
    let drive = |medium: bool| {
        options.iter().find(|(name, text)| {
            let cloud = text.contains(":cloudinit") || text.contains("media=cdrom");
            is_drive(name) && !name.ends_with("disk0") && *name != "tpmstate0" && cloud == medium
        })
    };
    let card = options.iter().find(|(name, _)| name.starts_with("net"));
    let devices: Vec<&str> = [drive(false), drive(true), card]
        .into_iter()
        .flatten()
        .map(|(name, _)| name.as_str())
        .collect();
    if devices.is_empty() { " ".to_owned() } else { format!("order={}", devices.join(";")) }
}

/// A random UUID of version 4.
pub(super) fn random_uuid(turn: &mut Turn<'_>) -> String {
    let mut bytes = [0; 16];
    turn.dice.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}
