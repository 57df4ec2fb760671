//! Which privilege a change of a guest's config needs, option by option.

use super::Proxmox;
use super::access::Caller;
use super::form::Parameters;
use super::property::Property;
use super::reply::Refusal;
use super::schema::schema;

const PROCESSORS: &[&str] =
    &["affinity", "cores", "cpu", "cpulimit", "cpuunits", "numa", "smp", "sockets", "vcpus"];
const MEMORY: &[&str] = &["allow-ksm", "balloon", "hugepages", "memory", "shares"];
const HARDWARE: &[&str] = &[
    "acpi", "audio0", "hotplug", "kvm", "machine", "rng0", "scsihw", "smbios1", "tablet", "vga",
    "vmgenid", "watchdog",
];
const GENERAL: &[&str] = &[
    "agent",
    "autostart",
    "bios",
    "description",
    "keyboard",
    "localtime",
    "name",
    "onboot",
    "ostype",
    "protection",
    "reboot",
    "startdate",
    "startup",
    "tags",
    "tdf",
    "template",
];
const DISKS: &[&str] = &["boot", "bootdisk", "vmstatestorage"];
const CLOUD_INIT: &[&str] = &[
    "cicustom",
    "cipassword",
    "citype",
    "ciupgrade",
    "ciuser",
    "nameserver",
    "searchdomain",
    "sshkeys",
];

/// Demands the privileges for options of a guest. What no list knows is for the root user in person.
pub(super) fn may_configure<'a>(
    caller: &Caller,
    vmid: u32,
    names: impl Iterator<Item = &'a String>,
) -> Result<(), Refusal> {
    let path = format!("/vms/{vmid}");
    for name in names {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        // What drives and devices need depends on their values.
        if schema().is_drive(name) || matches!(stem, "unused" | "serial") {
            continue;
        }
        let is_in = |list: &[&str]| list.contains(&name.as_str());
        if is_in(PROCESSORS) || stem == "numa" {
            caller.need(&path, "VM.Config.CPU")?;
        } else if is_in(MEMORY) {
            caller.need(&path, "VM.Config.Memory")?;
        } else if is_in(HARDWARE) {
            caller.need(&path, "VM.Config.HWType")?;
        } else if is_in(GENERAL) {
            caller.need(&path, "VM.Config.Options")?;
            if name == "startup" {
                caller.need("/", "Sys.Modify")?;
            }
        } else if is_in(DISKS) {
            caller.need(&path, "VM.Config.Disk")?;
        } else if stem == "net" {
            caller.need(&path, "VM.Config.Network")?;
        } else if is_in(CLOUD_INIT) || stem == "ipconfig" {
            caller.need_any(&path, &["VM.Config.Cloudinit", "VM.Config.Network"])?;
        } else {
            return Err(Refusal::failed(format!("only root can set '{name}' config")));
        }
    }
    Ok(())
}

/// Demands the privileges for the drives that a change sets or removes.
pub(super) fn may_change_drives(
    caller: &Caller,
    vmid: u32,
    drives: &Parameters,
) -> Result<(), Refusal> {
    let path = format!("/vms/{vmid}");
    for (_, text) in drives.iter().filter(|(name, _)| schema().is_drive(name)) {
        if text.contains("cloudinit") {
            caller.need_any(&path, &["VM.Config.Cloudinit", "VM.Config.CDROM"])?;
        } else if text.contains("media=cdrom") {
            caller.need(&path, "VM.Config.CDROM")?;
        } else {
            caller.need(&path, "VM.Config.Disk")?;
        }
    }
    Ok(())
}

impl Proxmox {
    /// The path at which a network card's bridge is used: a vnet stands in its own zone.
    fn network_path(&self, bridge: &str) -> String {
        let zone = self.vnets.get(bridge).map_or("localnetwork", String::as_str);
        format!("/sdn/zones/{zone}/{bridge}")
    }

    /// Whether guests can be put into a network of this name.
    pub(super) fn has_network(&self, name: &str) -> bool {
        self.bridges.contains(name) || self.vnets.contains_key(name)
    }

    /// Whether a network is shown to somebody.
    pub(super) fn shows_network(&self, caller: &Caller, name: &str) -> bool {
        let path = self.network_path(name);
        ["SDN.Audit", "SDN.Use"].iter().any(|right| caller.may(&path, right))
    }

    /// Demands the right to the devices of the host that a change names: serial ports and bridges.
    pub(super) fn may_use_devices(
        &self,
        caller: &Caller,
        vmid: u32,
        options: &Parameters,
        verb: &str,
    ) -> Result<(), Refusal> {
        for (name, text) in options {
            let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
            if stem == "serial" && schema().option(name).is_some() {
                if text != "socket" {
                    let words = format!("only root can {verb} '{name}' config for real devices");
                    return Err(Refusal::failed(words));
                }
                caller.need(&format!("/vms/{vmid}"), "VM.Config.HWType")?;
            }
            if stem == "net"
                && let Ok(card) = Property::parse(text, Some("model"))
                && let Some(bridge) = card.options.get("bridge")
            {
                let tag = card.options.get("tag").map_or_else(String::new, |tag| format!("/{tag}"));
                caller.need(&format!("{}{tag}", self.network_path(bridge)), "SDN.Use")?;
            }
        }
        Ok(())
    }
}
