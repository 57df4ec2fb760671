//! What a VM looks like: the parameters it is made with, and in what an existing one differs from them.

use std::collections::BTreeMap;

use castle_proxmox::Config;

use super::mark::Mark;
use super::wanted::{VmNode, Wanted};

/// The extension without which Proxmox would wait for an agent that never answers.
const AGENT: &str = "siderolabs/qemu-guest-agent";

/// The processor that machines see: the host's own.
const CPU: &str = "host";

/// Settings that a running machine takes up only when it is switched off and on.
const HARDWARE: [&str; 5] = ["cpu", "sockets", "cores", "memory", "balloon"];

/// The disk for volumes: what workloads have written is there.
pub(super) const DATA_DISK: &str = "scsi1";

/// What machines boot from.
const BOOT: &str = "order=scsi0";

/// In what a VM of ours differs from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Difference {
    /// Settings that can be changed in place.
    pub(super) settings: Vec<(&'static str, String)>,
    /// What those settings, and disks that are too small, are now.
    pub(super) was: BTreeMap<&'static str, String>,
    /// Whether the system disk is still to be grown.
    pub(super) grow: Option<u64>,
    /// Whether the disk for volumes is still to be grown.
    pub(super) grow_data: Option<u64>,
    /// What can not be mended in place, in words.
    pub(super) fixed: Vec<String>,
}

impl Difference {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What differs, in words.
    pub(super) fn words(&self) -> String {
        let was = |key: &str| self.was.get(key).map_or("unset", String::as_str);
        let unit = |key: &str| if key == "memory" { " MiB" } else { "" };
        let setting =
            |(key, wanted): &(&str, String)| format!("{key} {} -> {wanted}{}", was(key), unit(key));
        let mut words: Vec<String> = self.settings.iter().map(setting).collect();
        for (disk, key, wanted) in
            [("system disk", "scsi0", self.grow), ("second disk", DATA_DISK, self.grow_data)]
        {
            words.extend(wanted.map(|gib| format!("{disk} {} -> {gib} GiB", was(key))));
        }
        words.extend(self.fixed.iter().cloned());
        words.join(", ")
    }

    /// Whether something of it is in force only after the machine was switched off and on, if it runs.
    pub(super) fn needs_power_cycle(&self) -> bool {
        self.settings.iter().any(|(key, _)| HARDWARE.contains(key))
    }
}

/// The parameters that a node's VM is made with, in a fixed order.
pub(super) fn parameters(
    spec: &Wanted,
    node: &VmNode,
    mark: &Mark,
    image: &str,
) -> Vec<(&'static str, String)> {
    let platform = &spec.platform;
    let store = &platform.storage;
    let mut parameters = vec![
        ("vmid", node.vmid.to_string()),
        ("name", full_name(spec, node)),
        ("description", mark.description()),
        ("tags", mark.tags()),
        ("smbios1", format!("uuid={}", mark.uuid())),
        ("ostype", "l26".to_owned()),
        ("machine", "q35".to_owned()),
        ("bios", "ovmf".to_owned()),
        ("efidisk0", format!("{store}:1,efitype=4m,pre-enrolled-keys=0")),
        ("cpu", CPU.to_owned()),
        ("sockets", "1".to_owned()),
        ("cores", node.cores.to_string()),
        ("memory", node.memory_mib.to_string()),
        ("balloon", "0".to_owned()),
        ("scsihw", "virtio-scsi-pci".to_owned()),
        ("scsi0", format!("{store}:0,import-from={image},discard=on")),
    ];
    if let Some(gib) = node.data_disk_gib {
        parameters.push((DATA_DISK, format!("{store}:{gib},discard=on")));
    }
    parameters.extend([
        ("ide2", format!("{store}:cloudinit")),
        ("ipconfig0", address(spec, node)),
        ("nameserver", servers(spec)),
        ("net0", format!("virtio,bridge={}", platform.bridge)),
        ("boot", BOOT.to_owned()),
        ("onboot", "1".to_owned()),
    ]);
    if has_agent(spec) {
        parameters.push(("agent", "1".to_owned()));
    }
    parameters
}

fn full_name(spec: &Wanted, node: &VmNode) -> String {
    format!("{}-{}", spec.name, node.name)
}

fn has_agent(spec: &Wanted) -> bool {
    spec.platform.extensions.iter().any(|name| name == AGENT)
}

/// Whether a setting is as wanted. Proxmox has more than one way to write some of them.
fn is_set(key: &str, is: &str, wanted: &str) -> bool {
    let first = is.split(',').next().unwrap_or_default();
    match key {
        "cpu" => first.trim_start_matches("cputype=") == wanted,
        "agent" => first.trim_start_matches("enabled=") == wanted,
        // One is the default, which may be left out.
        "sockets" => is.is_empty() || is == wanted,
        "nameserver" => {
            is.split([' ', ',', ';']).filter(|server| !server.is_empty()).eq(wanted.split(' '))
        }
        _ => is == wanted,
    }
}

fn address(spec: &Wanted, node: &VmNode) -> String {
    format!("ip={}/{},gw={}", node.address, spec.network.subnet.prefix(), spec.network.gateway)
}

fn servers(spec: &Wanted) -> String {
    let servers: Vec<String> = spec.network.nameservers.iter().map(ToString::to_string).collect();
    servers.join(" ")
}

/// A disk that was grown by hand, or a castle file that wants a smaller one: which of the two is for a person to say.
fn too_large(disk: &str, gib: u64, wanted: u64) -> String {
    format!("{disk} disk {gib} -> {wanted} GiB, and disks never shrink")
}

/// In what the VM differs.
pub(super) fn difference(spec: &Wanted, node: &VmNode, config: &Config) -> Difference {
    let mut found = Difference::default();
    let mut settings = vec![
        ("name", full_name(spec, node)),
        ("cpu", CPU.to_owned()),
        ("sockets", "1".to_owned()),
        ("cores", node.cores.to_string()),
        ("memory", node.memory_mib.to_string()),
        ("balloon", "0".to_owned()),
        ("nameserver", servers(spec)),
        ("boot", BOOT.to_owned()),
        ("onboot", "1".to_owned()),
    ];
    settings.extend(has_agent(spec).then(|| ("agent", "1".to_owned())));
    settings.retain(|(key, wanted)| !is_set(key, config.get(key).unwrap_or_default(), wanted));
    let was = |key: &'static str| {
        Some((key, config.get(key).filter(|text| !text.is_empty())?.to_owned()))
    };
    found.was = settings.iter().filter_map(|(key, _)| was(key)).collect();
    found.settings = settings;
    // What a machine is built like; Proxmox may write a version before or after the type that was asked for.
    for (key, wanted) in [("machine", "q35"), ("bios", "ovmf"), ("scsihw", "virtio-scsi-pci")] {
        let is = config.get(key).unwrap_or("the default");
        let same = if key == "machine" { is.contains(wanted) } else { is == wanted };
        if !same {
            found.fixed.push(format!("its {key} is {is}, not {wanted}"));
        }
    }
    match config.disk_gib("scsi0") {
        None => found.fixed.push("it has no system disk".to_owned()),
        Some(gib) if gib < node.disk_gib => {
            found.grow = Some(node.disk_gib);
            found.was.insert("scsi0", gib.to_string());
        }
        Some(gib) if gib > node.disk_gib => {
            found.fixed.push(too_large("system", gib, node.disk_gib));
        }
        Some(_) => {}
    }
    match (node.data_disk_gib, config.disk_gib(DATA_DISK)) {
        (Some(_), None) => found.fixed.push("it has no disk for volumes".to_owned()),
        (Some(wanted), Some(gib)) if gib < wanted => {
            found.grow_data = Some(wanted);
            found.was.insert(DATA_DISK, gib.to_string());
        }
        (Some(wanted), Some(gib)) if gib > wanted => {
            found.fixed.push(too_large("second", gib, wanted));
        }
        _ => {}
    }
    let wanted = address(spec, node);
    if config.get("ipconfig0") != Some(wanted.as_str()) {
        let is = config.get("ipconfig0").unwrap_or("none");
        found.fixed.push(format!("its address is {is}, not {wanted}"));
    }
    let bridge = format!("bridge={}", spec.platform.bridge);
    if !config.get("net0").is_some_and(|net| net.split(',').any(|part| part == bridge)) {
        found.fixed.push(format!("its network is not {}", spec.platform.bridge));
    }
    found
}

#[cfg(test)]
mod tests;
