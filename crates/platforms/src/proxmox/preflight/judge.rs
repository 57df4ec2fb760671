//! What a host must be and have: pure, what it says of itself in, findings out.

use castle_model::Finding;
use castle_proxmox::{HostStatus, Storage};

use super::super::half_made;
use super::super::inventory::{Inventory, moved_back};
use super::super::privileges::Place;
use super::super::wanted::{VmNode, Wanted};
use super::Host;

/// Bytes in a MiB and a GiB.
pub(super) const MIB: u64 = 1024 * 1024;
pub(super) const GIB: u64 = 1024 * MIB;

/// What Proxmox itself needs of the memory: its daemons, and some to breathe. Hosts that were filled to the last GiB
/// lost machines to the kernel's killer, and etcd its quorum.
const RESERVE: u64 = 2 * GIB;

/// What the Talos image takes on a disk once it is imported, in round figures.
const IMPORTED: u64 = 1300 * MIB;

/// What the file of a Talos image takes at most, where `castle.lock` does not know.
const IMAGE_FILE: u64 = 512 * MIB;

/// Storages that set a disk's whole size aside at once. All others are thin, or may be: they can be promised more than
/// they have, which is told and not refused.
const THICK: [&str; 3] = ["lvm", "iscsi", "iscsidirect"];

/// Everything about the host that would stop the birth.
pub(super) fn judge(spec: &Wanted, inventory: &Inventory, host: &Host) -> Vec<Finding> {
    let platform = &spec.platform;
    let mut findings = host.held.missing(spec);
    for node in &spec.nodes {
        if let Some(why) = inventory.half_made.get(&node.vmid) {
            let place = format!("number {} of {}", node.vmid, node.name);
            let words = format!("VM {} is {why}", node.vmid);
            findings.push(Finding::new(place, words, half_made::cure(node.vmid)));
        }
        if let Some(whose) = inventory.foreign.get(&node.vmid) {
            let cure = if inventory.elsewhere.contains_key(&node.vmid) {
                moved_back(node.vmid, &platform.node)
            } else {
                "choose another vmid in the castle file, or move that guest away".to_owned()
            };
            findings.push(Finding::new(
                format!("number {} of {}", node.vmid, node.name),
                format!("it is taken by {whose}"),
                cure,
            ));
        }
    }
    findings.extend(orphans(spec, inventory, host));
    let entry = host.nodes.iter().find(|entry| entry.node == platform.node);
    if entry.is_none_or(|entry| entry.status != "online") {
        let known: Vec<&str> = host.nodes.iter().map(|entry| entry.node.as_str()).collect();
        let place = format!("node {}", platform.node);
        findings.push(match entry {
            Some(entry) => Finding::new(
                place,
                format!("it is {}", entry.status),
                "bring it back, then try again",
            ),
            None => Finding::new(
                place,
                format!("there is no such node (there are: {})", known.join(", ")),
                "compare `node` with the names that Proxmox shows",
            ),
        });
        return findings;
    }
    let image = spec.lock.images.values().map(|pin| pin.size).max().unwrap_or(IMAGE_FILE);
    let missing = made_anew(spec, inventory).count() as u64;
    // What the token may not see was told as a privilege that it lacks.
    if host.held.is_whole(Place::Disks) {
        let imported = missing * IMPORTED;
        findings.extend(storage_finding(host, spec, &platform.storage, ("images", imported)));
        findings.extend(thick(spec, inventory, host));
    }
    if host.held.is_whole(Place::Images) {
        let fetched = if missing == 0 || host.image { 0 } else { image };
        findings.extend(storage_finding(host, spec, &platform.image_storage, ("import", fetched)));
    }
    let is_there = host.bridges.iter().any(|found| found.name == platform.bridge);
    if host.held.is_whole(Place::Network) && !is_there {
        let names: Vec<&str> = host.bridges.iter().map(|found| found.name.as_str()).collect();
        findings.push(Finding::new(
            format!("bridge {} on {}", platform.bridge, platform.node),
            format!("there is no such bridge (there are: {})", names.join(", ")),
            "compare `bridge` with the networks of the node; a vnet is shown to those alone who have SDN.Use in its zone (/sdn/zones/ZONE)",
        ));
    }
    if let Some(status) = &host.status {
        findings.extend(memory(spec, inventory, status));
        findings.extend(processors(spec, status));
    }
    findings
}

/// What a person should know, and need not mend.
pub(super) fn notices(spec: &Wanted, inventory: &Inventory, host: &Host) -> Vec<String> {
    let mut told = Vec::new();
    if inventory.short_sighted {
        told.push(
            "the token sees the declared VMs alone: the memory of other guests is not counted, and VMs of this castle with other numbers are not found".to_owned(),
        );
    }
    let name = &spec.platform.storage;
    let wanted = promised(spec, inventory);
    if let Some(storage) = host.storages.iter().find(|storage| storage.storage == *name)
        && wanted > storage.avail
        && !THICK.contains(&storage.kind.as_str())
    {
        told.push(format!(
            "disks of {} GiB are promised on {name}, which has {} GiB left: it must not run full",
            wanted / GIB,
            storage.avail / GIB
        ));
    }
    let stopped = |node: &&VmNode| !inventory.ours.get(&node.vmid).is_some_and(|ours| ours.running);
    let wanted: u64 = spec.nodes.iter().filter(stopped).map(|node| node.memory_mib * MIB).sum();
    if let Some(status) = &host.status
        && wanted > status.memory_free
    {
        told.push(format!(
            "{} MiB of memory are needed now, and {} MiB are free on {}: its caches must give way",
            wanted / MIB,
            status.memory_free / MIB,
            spec.platform.node
        ));
    }
    told
}

/// The VMs that are still to be made.
fn made_anew<'a>(spec: &'a Wanted, inventory: &'a Inventory) -> impl Iterator<Item = &'a VmNode> {
    spec.nodes.iter().filter(|node| !inventory.ours.contains_key(&node.vmid))
}

/// What the disks of the VMs that are still to be made may grow to, in bytes.
fn promised(spec: &Wanted, inventory: &Inventory) -> u64 {
    let each = made_anew(spec, inventory).map(|n| n.disk_gib + n.data_disk_gib.unwrap_or(0));
    each.sum::<u64>() * GIB
}

/// Disks that bear the number of a VM that is not there. They may be what somebody has kept of an earlier one, and they
/// would go when ours goes.
fn orphans(spec: &Wanted, inventory: &Inventory, host: &Host) -> Vec<Finding> {
    let mut findings = Vec::new();
    for node in made_anew(spec, inventory) {
        let taken = inventory.foreign.contains_key(&node.vmid)
            || inventory.half_made.contains_key(&node.vmid)
            || inventory.unfinished.contains(&node.vmid);
        if taken {
            continue;
        }
        for disk in host.disks.iter().filter(|disk| disk.vmid == u64::from(node.vmid.0)) {
            findings.push(Finding::new(
                format!("number {} of {}", node.vmid, node.name),
                format!("the disk {} of an earlier VM lies there, and no VM has it", disk.volid),
                format!("if nobody needs it, remove it on the host (pvesm free {}), or choose another vmid", disk.volid),
            ));
        }
    }
    findings
}

fn storage_finding(
    host: &Host,
    spec: &Wanted,
    name: &str,
    (content, room): (&str, u64),
) -> Option<Finding> {
    let place = format!("storage {name} on {}", spec.platform.node);
    let Some(storage) = host.storages.iter().find(|storage| storage.storage == name) else {
        let known: Vec<&str> = host.storages.iter().map(|s| s.storage.as_str()).collect();
        let why = format!("there is no such storage (there are: {})", known.join(", "));
        return Some(Finding::new(place, why, "compare the name with those that Proxmox shows"));
    };
    if !storage.enabled {
        let cure = format!("switch it on: pvesm set {name} --disable 0");
        return Some(Finding::new(place, "it is switched off", cure));
    }
    if !storage.active {
        let cure = "look at its state in Proxmox: a disk or a server behind it is missing";
        return Some(Finding::new(place, "it cannot be reached now", cure));
    }
    if !storage.takes(content) {
        let why = format!("it does not take `{content}` (it takes {})", storage.content);
        let cure = format!(
            "allow it: pvesm set {name} --content {},{content}; or name another",
            storage.content
        );
        return Some(Finding::new(place, why, cure));
    }
    short(storage, room)
        .map(|why| Finding::new(place, why, "make room there, or name another storage"))
}

fn short(storage: &Storage, room: u64) -> Option<String> {
    (room > storage.avail).then(|| {
        format!("{} MiB are needed at once, {} MiB are left", room / MIB, storage.avail / MIB)
    })
}

/// A storage that sets everything aside at once must have it.
fn thick(spec: &Wanted, inventory: &Inventory, host: &Host) -> Option<Finding> {
    let name = &spec.platform.storage;
    let storage = host.storages.iter().find(|storage| storage.storage == *name)?;
    if !THICK.contains(&storage.kind.as_str()) {
        return None;
    }
    let wanted = promised(spec, inventory);
    (wanted > storage.avail).then(|| {
        Finding::new(
            format!("storage {name} on {}", spec.platform.node),
            format!(
                "it sets disks aside whole: {} GiB are needed, {} GiB are left",
                wanted / GIB,
                storage.avail / GIB
            ),
            "make room there, give smaller disks in the castle file, or name a thin storage",
        )
    })
}

/// Guests that run are counted with all that they may take, ours with what the castle file gives them.
fn memory(spec: &Wanted, inventory: &Inventory, status: &HostStatus) -> Option<Finding> {
    let wanted: u64 = spec.nodes.iter().map(|node| node.memory_mib * MIB).sum();
    let taken = inventory.others_memory + RESERVE;
    (wanted + taken > status.memory_total).then(|| {
        Finding::new(
            format!("memory of {}", spec.platform.node),
            format!(
                "the castle wants {} MiB; of {} MiB other guests that run may take {} MiB, and the host itself needs {} MiB",
                wanted / MIB,
                status.memory_total / MIB,
                inventory.others_memory / MIB,
                RESERVE / MIB
            ),
            "give the machines less memory, fewer machines, or switch other guests off",
        )
    })
}

fn processors(spec: &Wanted, status: &HostStatus) -> Option<Finding> {
    let widest = spec.nodes.iter().max_by_key(|node| node.cores)?;
    let too_wide = status.processors > 0 && u64::from(widest.cores) > status.processors;
    too_wide.then(|| {
        Finding::new(
            format!("processors of {}", spec.platform.node),
            format!("{} wants {}, the host has {}", widest.name, widest.cores, status.processors),
            "give it fewer `cores` in the castle file",
        )
    })
}
