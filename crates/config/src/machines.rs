//! The machines of a castle: their names, addresses and VM ids, counted from the first of each role.

use std::net::Ipv4Addr;
use std::ops::Range;

use castle_model::address::offset;
use castle_model::name::check_label;
use castle_model::spec::{Body, NodeSpec, Role, StandingSpec, VmSpec};
use castle_model::{NodeName, VmId};

use crate::convert::Located;
use crate::finding::{Finding, Findings};
use crate::reader::Contents;
use crate::typed::Mebibytes;

/// The least memory that Talos takes, in MiB.
const LEAST_MEMORY_CONTROL_PLANE: u64 = 1848;
const LEAST_MEMORY_WORKER: u64 = 1024;
/// The least system disk that Talos takes, in GiB.
const LEAST_DISK: u64 = 6;

/// The machines of one role, as far as they could be read.
#[derive(Debug)]
pub(crate) struct Group {
    /// What they are for.
    pub(crate) role: Role,
    /// How many, if that is known.
    pub(crate) count: Option<u32>,
    /// Whether they have a disk for volumes.
    pub(crate) data_disk: bool,
    /// The machines with their addresses, if those are known.
    pub(crate) addresses: Vec<(String, Ipv4Addr)>,
    /// Where the first address is given.
    pub(crate) address_range: Range<usize>,
    /// The machines with their VM ids, if those are known.
    pub(crate) vmids: Vec<(String, VmId)>,
    /// Where the first VM id is given.
    pub(crate) vmid_range: Range<usize>,
    /// What the names begin with, and where that is said.
    pub(crate) prefix: (String, Range<usize>),
    /// The finished machines; empty if anything is missing.
    pub(crate) nodes: Vec<NodeSpec>,
}

impl Group {
    /// The role in words.
    pub(crate) fn label(&self) -> &'static str {
        match self.role {
            Role::ControlPlane => "control-plane",
            Role::Worker => "worker",
        }
    }
}

/// Reads the machines of both roles, control planes first.
pub(crate) fn read(castle: &Contents, findings: &mut Findings) -> Vec<Group> {
    let mut groups = Vec::new();
    for role in [Role::ControlPlane, Role::Worker] {
        let label = if role == Role::ControlPlane { "control-plane" } else { "worker" };
        match castle.labelled("nodes", label) {
            Some(block) => groups.push(group(role, block, made_by_castle(castle), findings)),
            None if role == Role::ControlPlane && !misread(castle) => findings.add(
                Finding::error("C0104", "the block `nodes \"control-plane\"` is missing")
                    .at(&castle.header, "in this castle")
                    .note("a cluster has at least one control plane")
                    .help("add nodes \"control-plane\" { … }"),
            ),
            None => {}
        }
    }
    no_worker(castle, &groups, findings);
    one_uuid_each(castle, findings);
    groups
}

/// Whether castle makes the machines itself, as VMs; if not, they stand already.
fn made_by_castle(castle: &Contents) -> bool {
    let platform = castle.block("platform").and_then(|p| p.label.as_ref());
    platform.is_none_or(|label| label.value != "machines")
}

/// Refuses a castle in which nothing could run.
fn no_worker(castle: &Contents, groups: &[Group], findings: &mut Findings) {
    let given = groups.iter().find(|group| group.role == Role::Worker);
    let (title, range) = match given {
        // A count that could not be read has been reported.
        Some(group) if group.count != Some(0) => return,
        None if misread(castle) => return,
        Some(_) => {
            let count = castle.labelled("nodes", "worker").and_then(|b| b.get::<i64>("count"));
            ("a castle without a worker", count.map_or_else(|| castle.header.clone(), |c| c.range))
        }
        None => ("the block `nodes \"worker\"` is missing", castle.header.clone()),
    };
    let label = if given.is_some() { "none" } else { "in this castle" };
    let help = if given.is_some() {
        "set count = 1 or more"
    } else {
        "add nodes \"worker\" { … } with count = 1 or more"
    };
    findings.add(
        Finding::error("C0509", title)
            .at(&range, label)
            .note("control planes take no workloads: without a worker no layer could ever start")
            .help(help),
    );
}

/// Whether some `nodes` block could not be read, or its label, which has been reported.
pub(crate) fn misread(castle: &Contents) -> bool {
    castle.is_meant("nodes")
        || castle.blocks.iter().any(|b| b.grammar.keyword == "nodes" && b.label.is_none())
}

fn group(role: Role, block: &Contents, made: bool, findings: &mut Findings) -> Group {
    let count = block.get::<i64>("count");
    if let Some(count) = &count {
        quorum(role, count.value, &count.range, findings);
    }
    let count = count.and_then(|c| u32::try_from(c.value).ok());
    let default = if role == Role::ControlPlane { "cp" } else { "worker" };
    let prefix = block.get::<String>("name_prefix").map(|p| (p.value, p.range));
    let prefix = prefix.unwrap_or_else(|| (default.to_owned(), block.header.clone()));
    let name = |index: u32| format!("{}-{:02}", prefix.0, index + 1);
    if let Some(Err(reason)) = count.filter(|c| *c > 0).map(|c| check_label(&name(c - 1))) {
        let title = format!("`{}` gives names that are none", prefix.0);
        let finding = Finding::error("C0401", title).at(&prefix.1, "this beginning");
        findings.add(finding.note(format!("{}: {reason}", name(count.unwrap_or(1) - 1))));
    }
    let first_ip = block.get::<Ipv4Addr>("first_ip");
    let first_vmid = block.get::<i64>("first_vmid");
    let (mut addresses, mut vmids) = (Vec::new(), Vec::new());
    for index in 0..count.unwrap_or(0) {
        if let Some(address) = first_ip.as_ref().and_then(|ip| offset(ip.value, index)) {
            addresses.push((name(index), address));
        }
        let vmid =
            first_vmid.as_ref().and_then(|id| u32::try_from(id.value).ok()?.checked_add(index));
        if let Some(vmid) = vmid {
            vmids.push((name(index), VmId(vmid)));
        }
    }
    let mut group = Group {
        role,
        count,
        // One that could not be read, or whose platform is not known, is a disk for volumes all the same.
        data_disk: block
            .plain::<bool>("data_disk")
            .unwrap_or_else(|| block.may_be_written("data_disk")),
        addresses,
        address_range: first_ip.map_or_else(|| block.header.clone(), |ip| ip.range),
        vmids,
        vmid_range: first_vmid.map_or_else(|| block.header.clone(), |id| id.range),
        prefix,
        nodes: Vec::new(),
    };
    let nodes = if made { vms(&group, block, findings) } else { standing(&group, block, findings) };
    group.nodes = nodes.unwrap_or_default();
    group
}

/// The machines of a group that stand already; none if a value is missing, which has been reported.
fn standing(group: &Group, block: &Contents, findings: &mut Findings) -> Option<Vec<NodeSpec>> {
    let uuids = block.get::<Vec<Located<String>>>("uuids");
    let count = usize::try_from(group.count?).ok()?;
    if let Some(uuids) = uuids.as_ref().filter(|uuids| uuids.value.len() != count) {
        let given = uuids.value.len();
        let title = match given {
            1 => format!("1 UUID for {count} machines"),
            _ => format!("{given} UUIDs for {count} machines"),
        };
        findings.add(
            Finding::error("C0510", title)
                .at(&uuids.range, "another number than `count`")
                .note("the first UUID is that of the first machine, and so on")
                .help("name every machine of the role, or none: then the UUIDs seen at first contact are recorded"),
        );
        return None;
    }
    let data_disk = block.plain::<bool>("data_disk")?;
    if group.addresses.len() != count {
        return None;
    }
    let uuid = |index: usize| Some(uuids.as_ref()?.value.get(index)?.value.to_ascii_lowercase());
    let node = |(index, (name, address)): (usize, &(String, Ipv4Addr))| {
        Some(NodeSpec {
            name: name.parse::<NodeName>().ok()?,
            role: group.role,
            address: *address,
            body: Body::Standing(StandingSpec { uuid: uuid(index), data_disk }),
        })
    };
    group.addresses.iter().enumerate().map(node).collect()
}

/// No two machines may have one UUID: a config could then go to the wrong one.
fn one_uuid_each(castle: &Contents, findings: &mut Findings) {
    let mut seen: Vec<Located<String>> = Vec::new();
    let nodes = castle.blocks.iter().filter(|b| b.grammar.keyword == "nodes");
    for uuid in nodes.filter_map(|b| b.plain::<Vec<Located<String>>>("uuids")).flatten() {
        match seen.iter().find(|first| first.value.eq_ignore_ascii_case(&uuid.value)) {
            Some(first) => findings.add(
                Finding::error("C0511", "two machines would have one UUID")
                    .at(&uuid.range, "the second time")
                    .related(&first.range, "the first time")
                    .note("a machine is told from all others by its UUID before it is given a config")
                    .help("correct one of the two; where the hardware shows one UUID twice, leave `uuids` out"),
            ),
            None => seen.push(uuid),
        }
    }
}

/// The machines of a group that castle makes; none if a value is missing, which has been reported.
fn vms(group: &Group, block: &Contents, findings: &mut Findings) -> Option<Vec<NodeSpec>> {
    let memory = memory(group.role, block, findings);
    let disk = gibibytes(block, "disk", findings);
    if let Some(small) = disk.filter(|d| *d < LEAST_DISK) {
        let range =
            block.get::<Mebibytes>("disk").map_or_else(|| block.header.clone(), |d| d.range);
        let title = format!("{small} GiB are too small a system disk for Talos");
        let finding = Finding::error("C0507", title).at(&range, "the system disk");
        findings.add(
            finding
                .note(format!("Talos refuses to run on less than {LEAST_DISK} GiB"))
                .help("give it \"20GiB\" or more: images and logs live there too"),
        );
    }
    let data_disk = if block.is_given("data_disk") {
        Some(gibibytes(block, "data_disk", findings)?)
    } else {
        None
    };
    let cores = u32::try_from(block.plain::<i64>("cores")?).ok()?;
    let (memory_mib, disk_gib) = (memory?, disk?);
    let whole = group.count.and_then(|c| usize::try_from(c).ok());
    if whole != Some(group.addresses.len()) || whole != Some(group.vmids.len()) {
        return None;
    }
    let pairs = group.addresses.iter().zip(&group.vmids);
    pairs
        .map(|((name, address), (_, vmid))| {
            Some(NodeSpec {
                name: name.parse::<NodeName>().ok()?,
                role: group.role,
                address: *address,
                body: Body::Vm(VmSpec {
                    vmid: *vmid,
                    cores,
                    memory_mib,
                    disk_gib,
                    data_disk_gib: data_disk,
                }),
            })
        })
        .collect()
}

fn memory(role: Role, block: &Contents, findings: &mut Findings) -> Option<u64> {
    let memory = block.get::<Mebibytes>("memory")?;
    let (least, who) = match role {
        Role::ControlPlane => (LEAST_MEMORY_CONTROL_PLANE, "a control plane"),
        Role::Worker => (LEAST_MEMORY_WORKER, "a worker"),
    };
    if memory.value.0 < least {
        let title = format!("{} MiB are too little memory for {who}", memory.value.0);
        let finding = Finding::error("C0506", title).at(&memory.range, "the memory");
        findings.add(
            finding
                .note(format!("Talos wants {least} MiB at least"))
                .help("give it \"4GiB\" or more"),
        );
    }
    Some(memory.value.0)
}

/// A disk in whole GiB.
fn gibibytes(block: &Contents, key: &str, findings: &mut Findings) -> Option<u64> {
    let size = block.get::<Mebibytes>(key)?;
    if size.value.0 % 1024 != 0 {
        let title = format!("`{key}` must be whole GiB");
        let finding = Finding::error("C0202", title).at(&size.range, "not whole GiB");
        let help = format!("write it as \"{}GiB\"", size.value.0.div_ceil(1024));
        findings.add(finding.note("Proxmox makes and grows disks by the GiB").help(help));
        return None;
    }
    Some(size.value.0 / 1024)
}

/// Judges the number of control planes by the arithmetic of etcd.
fn quorum(role: Role, count: i64, range: &Range<usize>, findings: &mut Findings) {
    if role == Role::Worker || count % 2 == 1 && count > 1 {
        return;
    }
    let finding = match count {
        0 => Finding::error("C0501", "a castle without a control plane")
            .at(range, "none")
            .help("set count = 3, or 1 to try things out"),
        1 => Finding::warning("C0502", "one control plane: the cluster is away while that machine is")
            .at(range, "one")
            .note("etcd then has no second copy: when the disk is lost, the cluster is lost")
            .help("set count = 3 for a castle that others rely on"),
        even => Finding::error("C0501", format!("{even} control planes survive no more failures than {} do", even - 1))
            .at(range, "an even number")
            .note("etcd goes on while floor(n/2)+1 of n members live, so an even member adds risk and no safety")
            .help(format!("set count = {} or {}", even - 1, even + 1)),
    };
    findings.add(if count == 1 {
        finding
    } else {
        quorum_table().into_iter().fold(finding, Finding::note)
    });
}

/// The quorum of one to seven control planes.
fn quorum_table() -> Vec<String> {
    let mut lines = vec!["control planes  must live  may fail".to_owned()];
    for n in [1, 2, 3, 4, 5, 6, 7] {
        let quorum = n / 2 + 1;
        lines.push(format!("{n:>14}  {quorum:>9}  {:>8}", n - quorum));
    }
    lines
}
