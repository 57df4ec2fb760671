//! `castle rehearse inventory`: the datacenter as it knows itself, independent of castle's state.

use std::fmt::Write;

use castle_rehearsal::host::desk::{self, Ask, Told};
use castle_rehearsal::inventory::{Inventory, Workload};
use castle_rehearsal::proxmox::GuestSeen;

use crate::answer;
use crate::args::Everywhere;
use crate::exit::{Exit, Problem};
use crate::output;
use crate::project::Which;
use crate::rehearsal::{Rehearsal, runtime, unanswered};
use crate::settings::{Settings, Stream, WIDEST};
use crate::state;

/// What stands beside each other goes no further than this on a terminal, however wide it is.
const WIDTH: usize = 80;

/// So much is shown of what Flux says of one thing.
const SAYS: usize = 51;

/// Prints the datacenter: as the process that hosts it knows it, else as it lies on the disk.
pub(crate) fn run(
    which: &Which,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let mut rehearsal = Rehearsal::find(which, everywhere, None, settings)?;
    state::its_own(&rehearsal.castle)?;
    let told = desk::ask(&rehearsal.datacenter, &Ask::Inventory);
    let told = told.map_err(|error| unanswered(&error))?;
    let (inventory, live) = if let Some(Told::Inventory(inventory)) = told {
        (*inventory, true)
    } else {
        let look = async { rehearsal.look().map(|host| host.inventory()) };
        (runtime()?.block_on(look)?, false)
    };
    output::page(&if everywhere.json {
        answer::line("inventory", &inventory)
    } else {
        let state = if live { "a run or `serve` holds it" } else { "its time stands still" };
        let at = time(inventory.at);
        let head = format!("datacenter of `{}`, {at} old; {state}", rehearsal.castle.spec.name);
        format!("{head}\n\n{}", text(&inventory, settings.width(Stream::Data)))
    });
    Ok(Exit::Done)
}

/// Minutes and seconds, as runs show them.
pub(crate) fn time(ms: u64) -> String {
    format!("{}:{:02}", ms / 60_000, ms / 1000 % 60)
}

fn text(inventory: &Inventory, width: usize) -> String {
    // No terminal is as wide as this: then nothing is broken or cut.
    let says = if width > WIDEST { width } else { SAYS };
    let narrow = if width > WIDEST { width } else { width.min(WIDTH) }.saturating_sub(2);
    let width = width.saturating_sub(2);
    let mut page = String::new();
    let mut part = |title: &str, lines: Vec<String>| {
        let none = if lines.is_empty() { " none" } else { "" };
        writeln!(page, "{title}:{none}").ok();
        for line in lines {
            writeln!(page, "  {line}").ok();
        }
    };
    if !inventory.wrong.is_empty() {
        part("broken by hand or rule", inventory.wrong.clone());
    }
    if !inventory.rules.is_empty() {
        part("faults that are armed", inventory.rules.clone());
    }
    part("guests", noted(&guests(inventory), width));
    let standing = standing(inventory);
    if !standing.is_empty() {
        part("machines that stand already", aligned(&standing, width));
    }
    let vip = inventory.vip.iter().map(|(vip, name)| format!("{vip} is held by {name}"));
    part("shared address", vip.collect());
    part(
        "etcd",
        packed(inventory.etcd.iter().map(|(name, role)| format!("{name} {role}")), narrow),
    );
    let nodes = inventory.nodes.iter();
    part(
        "nodes of the cluster",
        packed(
            nodes.map(|(name, ready)| {
                format!("{name} {}", if *ready { "Ready" } else { "NotReady" })
            }),
            narrow,
        ),
    );
    part("workloads", workloads(&inventory.workloads));
    part("Flux", aligned(&units(inventory, says), width));
    let git = inventory.git.iter();
    let heads = git.map(|head| {
        [head.repository.clone(), head.branch.clone(), short(&head.commit), head.message.clone()]
            .to_vec()
    });
    part("Git", aligned(&heads.collect::<Vec<_>>(), width));
    part("disks", packed(inventory.proxmox.volumes.iter().cloned(), narrow));
    part("image files", inventory.proxmox.files.clone());
    part("tasks still running", inventory.proxmox.running_tasks.clone());
    part("secrets in the vault, by key", packed(inventory.secrets.iter().cloned(), narrow));
    part("schematics at the image factory", inventory.schematics.clone());
    page
}

/// Number, name, power, what its machine does, where it answers, its size, and its tags or what it is locked for.
fn guests(inventory: &Inventory) -> Vec<Vec<String>> {
    let guests = inventory.proxmox.guests.iter();
    guests
        .map(|guest| {
            let power = match (guest.running, guest.container) {
                (true, false) => "running",
                (false, false) => "stopped",
                (true, true) => "container, running",
                (false, true) => "container, stopped",
            };
            let machine = inventory.machines.get(&guest.vmid).map(|shown| state(shown).to_owned());
            let address = inventory.addresses.get(&guest.vmid).map(ToString::to_string);
            let lock = guest.lock.iter().map(|lock| format!("locked: {lock}"));
            let notes: Vec<String> = lock.chain(guest.tags.iter().cloned()).collect();
            vec![
                guest.vmid.to_string(),
                guest.name.clone(),
                power.to_owned(),
                machine.unwrap_or_default(),
                address.unwrap_or_default(),
                size(guest),
                notes.join(" "),
            ]
        })
        .collect()
}

/// Cores and memory: `4c/8G`.
fn size(guest: &GuestSeen) -> String {
    match guest.memory {
        _ if guest.container => String::new(),
        whole if whole % 1024 == 0 => format!("{}c/{}G", guest.cores, whole / 1024),
        odd => format!("{}c/{odd}M", guest.cores),
    }
}

/// Machines that are nobody's VM: they stand already, or belong to somebody else.
fn standing(inventory: &Inventory) -> Vec<Vec<String>> {
    let guest = |vmid: &u32| inventory.proxmox.guests.iter().any(|guest| guest.vmid == *vmid);
    let machines = inventory.machines.iter().filter(|(vmid, _)| !guest(vmid));
    machines
        .map(|(vmid, shown)| {
            let name = shown.split(" (").next().unwrap_or_default().to_owned();
            let address = inventory.addresses.get(vmid).map(ToString::to_string);
            vec![name, state(shown).to_owned(), address.unwrap_or_default()]
        })
        .collect()
}

/// What a machine does, out of `cp-01 (configured)`.
fn state(shown: &str) -> &str {
    shown.split_once(" (").map_or(shown, |(_, rest)| rest.trim_end_matches(')'))
}

/// How many are ready, and those that are not.
fn workloads(all: &[Workload]) -> Vec<String> {
    if all.is_empty() {
        return Vec::new();
    }
    let waiting: Vec<&Workload> =
        all.iter().filter(|w| w.ready < w.wanted || w.wanted == 0).collect();
    let mut lines = vec![format!("{} of {} are ready", all.len() - waiting.len(), all.len())];
    lines.extend(waiting.iter().map(|w| match w.wanted {
        0 => format!("{}: scaled to 0", w.name),
        wanted => format!("{}: {} of {wanted}", w.name, w.ready),
    }));
    lines
}

/// What Flux makes, with so much of what it says.
fn units(inventory: &Inventory, says: usize) -> Vec<Vec<String>> {
    let units = inventory.flux.iter();
    units
        .map(|unit| {
            let state = match (unit.suspended, unit.ready) {
                (true, _) => "suspended",
                (false, true) => "Ready",
                (false, false) => "not Ready",
            };
            vec![unit.name.clone(), state.to_owned(), cut(&shortened(&unit.says), says)]
        })
        .collect()
}

/// The beginning of a commit's name, as git shows it.
fn short(commit: &str) -> String {
    commit.chars().take(7).collect()
}

/// A sentence with the names of commits shortened.
fn shortened(text: &str) -> String {
    let mut words: Vec<String> = text.split("sha1:").map(str::to_owned).collect();
    for word in words.iter_mut().skip(1) {
        let digits = word.bytes().take_while(u8::is_ascii_hexdigit).count();
        word.replace_range(digits.min(7)..digits, "");
    }
    words.join("sha1:")
}

/// Rows with their columns under each other; where they have no room, what is noted last of each stands in a line of its own.
fn noted(rows: &[Vec<String>], width: usize) -> Vec<String> {
    let whole = aligned(rows, width);
    if whole.len() == rows.len() {
        return whole;
    }
    let (heads, notes): (Vec<Vec<String>>, Vec<&str>) = rows
        .iter()
        .filter_map(|row| row.split_last())
        .map(|(note, head)| (head.to_vec(), note.as_str()))
        .unzip();
    let first = heads.iter().filter_map(|head| head.first()).map(|cell| cell.chars().count());
    let aside = first.max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for (head, note) in columns(&heads, width).iter().zip(notes) {
        lines.extend(head.lines().map(str::to_owned));
        let note =
            castle_view::laid(&[vec![note.to_owned()]], &[true], width.saturating_sub(aside));
        let note = note.iter().flat_map(|note| note.lines());
        lines.extend(note.map(|line| format!("{:aside$}{line}", "")));
    }
    lines
}

/// Rows with their columns under each other.
fn aligned(rows: &[Vec<String>], width: usize) -> Vec<String> {
    columns(rows, width).iter().flat_map(|row| row.lines()).map(str::to_owned).collect()
}

/// Each row in its lines, without the columns that nobody has anything in.
fn columns(rows: &[Vec<String>], width: usize) -> Vec<String> {
    let used =
        |column: usize| rows.iter().any(|row| row.get(column).is_some_and(|c| !c.is_empty()));
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            let cells = row.iter().enumerate().filter(|(column, _)| used(*column));
            cells.map(|(_, cell)| cell.clone()).collect()
        })
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    castle_view::laid(&rows, &vec![true; count], width)
}

/// Items beside each other, as many as a line holds.
fn packed(items: impl Iterator<Item = String>, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 3 + item.chars().count() <= width => {
                line.push_str(" · ");
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    lines
}

fn cut(line: &str, width: usize) -> String {
    if line.chars().count() <= width {
        return line.to_owned();
    }
    let mut kept: String = line.chars().take(width - 1).collect();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use castle_rehearsal::inventory::Unit;
    use castle_rehearsal::sources::git::Head;

    use super::*;

    fn guest(vmid: u32, name: &str, running: bool) -> GuestSeen {
        let (name, tags) = (name.to_owned(), vec!["castle".to_owned(), "castle-blue".to_owned()]);
        let (cores, memory) = (4, 8192);
        GuestSeen { vmid, name, container: false, running, cores, memory, lock: None, tags }
    }

    #[test]
    fn a_page_of_eighty_columns() {
        let mut inventory = Inventory { at: 192_000, ..Inventory::default() };
        inventory.proxmox.guests = vec![guest(421, "cp-01", true), guest(431, "worker-01", false)];
        inventory.proxmox.volumes = (0..4).map(|n| format!("local-lvm:vm-421-disk-{n}")).collect();
        inventory.machines.insert(421, "cp-01 (configured)".to_owned());
        inventory.addresses.insert(421, Ipv4Addr::new(192, 168, 1, 211));
        inventory.machines.insert(2_000_000_001, "stranger (somebody else's)".to_owned());
        inventory.vip = Some((Ipv4Addr::new(192, 168, 1, 210), "cp-01".to_owned()));
        inventory.etcd = vec![("cp-01".to_owned(), "leader".to_owned())];
        inventory.nodes = vec![("cp-01".to_owned(), true), ("worker-01".to_owned(), false)];
        let workload = |name: &str, ready| Workload { name: name.to_owned(), ready, wanted: 1 };
        inventory.workloads =
            vec![workload("deployments/a/b", 1), workload("deployments/flux-system/c", 0)];
        let unit = |name: &str, ready, says: &str| Unit {
            name: name.to_owned(),
            ready,
            suspended: false,
            says: says.to_owned(),
        };
        inventory.flux = vec![
            unit("source flux-system", true, &format!("stored artifact {}", "a".repeat(80))),
            unit("apps", true, "Applied revision: main@sha1:0123456789abcdef; all is well"),
        ];
        inventory.git = vec![Head {
            repository: "github.com/example/k8s".to_owned(),
            branch: "main".to_owned(),
            commit: "0123456789abcdef".to_owned(),
            message: "raise clusters/blue".to_owned(),
        }];
        inventory.wrong = vec!["worker-01 is dead".to_owned()];
        let page = text(&inventory, 80);
        assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
        insta::assert_snapshot!(page, @r"
        broken by hand or rule:
          worker-01 is dead
        guests:
          421  cp-01      running  configured  192.168.1.211  4c/8G  castle castle-blue
          431  worker-01  stopped                             4c/8G  castle castle-blue
        machines that stand already:
          stranger  somebody else's
        shared address:
          192.168.1.210 is held by cp-01
        etcd:
          cp-01 leader
        nodes of the cluster:
          cp-01 Ready · worker-01 NotReady
        workloads:
          1 of 2 are ready
          deployments/flux-system/c: 0 of 1
        Flux:
          source flux-system  Ready  stored artifact aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…
          apps                Ready  Applied revision: main@sha1:0123456; all is well
        Git:
          github.com/example/k8s  main  0123456  raise clusters/blue
        disks:
          local-lvm:vm-421-disk-0 · local-lvm:vm-421-disk-1 · local-lvm:vm-421-disk-2
          local-lvm:vm-421-disk-3
        image files: none
        tasks still running: none
        secrets in the vault, by key: none
        schematics at the image factory: none
        ");
        inventory.proxmox.guests[0].tags.push("castle-layer-platform".to_owned());
        for width in [60, 80] {
            let page = text(&inventory, width);
            assert!(page.lines().all(|line| line.chars().count() <= width), "{page}");
        }
        let page = text(&inventory, 80);
        let guests = page.lines().skip(2).take(5).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!(guests, @"
        guests:
          421  cp-01      running  configured  192.168.1.211  4c/8G
               castle castle-blue castle-layer-platform
          431  worker-01  stopped                             4c/8G
               castle castle-blue
        ");
        let page = text(&inventory, WIDEST + 1);
        for line in [
            "  421  cp-01      running  configured  192.168.1.211  4c/8G  castle castle-blue castle-layer-platform",
            &format!("  source flux-system  Ready  stored artifact {}", "a".repeat(80)),
            "  local-lvm:vm-421-disk-0 · local-lvm:vm-421-disk-1 · local-lvm:vm-421-disk-2 · local-lvm:vm-421-disk-3",
        ] {
            assert!(page.lines().any(|told| told == line), "{line}\n{page}");
        }
    }
}
