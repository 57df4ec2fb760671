//! What a story expects, held against what was seen: pure, so that every kind of expectation can be seen to fail.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use castle_config::story::{Run, World};
use castle_model::failure::Class;
use castle_rehearsal::inventory::Inventory;
use serde_json::Value;

/// One expectation, and how it was missed if it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    /// What is expected, as a sentence.
    pub(crate) what: String,
    /// What was seen instead.
    pub(crate) missed: Option<String>,
}

/// What was seen of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Performed {
    /// Its exit code.
    pub(crate) exit: u8,
    /// All that it said.
    pub(crate) said: String,
    /// The steps that failed.
    pub(crate) failed: BTreeMap<String, Class>,
    /// How many calls changed something.
    pub(crate) changes: u64,
    /// How long it took, by its own clock.
    pub(crate) took: Duration,
    /// The rules that were armed and never struck.
    pub(crate) unstruck: Vec<String>,
    /// The rules that struck, each with whether the world was another one after it.
    pub(crate) struck: Vec<(String, bool)>,
}

/// What was seen of the datacenter.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Facts {
    /// Its own books.
    pub(crate) inventory: Inventory,
    /// How often an etcd was bootstrapped.
    pub(crate) bootstraps: u64,
    /// Guests that somebody else made, by number: how they were then.
    pub(crate) then: BTreeMap<String, Value>,
    /// How all guests are now.
    pub(crate) now: BTreeMap<String, Value>,
    /// What is there and was not before castle came.
    pub(crate) left: Vec<String>,
}

impl Check {
    fn new(what: String, held: bool, seen: impl FnOnce() -> String) -> Self {
        Self { what, missed: (!held).then(seen) }
    }

    fn equal<T: PartialEq + Debug>(what: String, wanted: &T, seen: &T) -> Self {
        Self::new(what, wanted == seen, || format!("it is {seen:?}"))
    }
}

/// Holds a command against what was expected of it.
pub(crate) fn of_run(run: &Run, seen: &Performed) -> Vec<Check> {
    let name = &run.command;
    let exit = format!("`{name}` ends with exit code {}", run.exit);
    let mut checks =
        vec![Check::new(exit, run.exit == seen.exit, || format!("it ended with {}", seen.exit))];
    for (rule, effect) in &seen.struck {
        let nothing = || "it changed nothing".to_owned();
        checks.push(Check::new(format!("`{rule}` strikes"), *effect, nothing));
    }
    for rule in &seen.unstruck {
        checks.push(Check::new(format!("`{rule}` strikes"), false, || "it never did".to_owned()));
    }
    for words in &run.says {
        let held = seen.said.contains(words);
        checks.push(Check::new(format!("it says “{words}”"), held, || "it did not".to_owned()));
    }
    for words in &run.hides {
        let held = !seen.said.contains(words);
        let line = || seen.said.lines().find(|line| line.contains(words)).unwrap_or_default();
        checks.push(Check::new(format!("it does not say “{words}”"), held, || {
            format!("it said: {}", line().trim())
        }));
    }
    if let Some(fails) = &run.fails {
        let list = |failed: &BTreeMap<String, Class>| {
            let one = |(step, class): (&String, &Class)| format!("{step} ({class})");
            let all = failed.iter().map(one).collect::<Vec<_>>().join(", ");
            if all.is_empty() { "nothing".to_owned() } else { all }
        };
        let wanted: BTreeMap<String, Class> = fails.iter().cloned().collect();
        let held = wanted == seen.failed;
        let what = format!("what fails is {}", list(&wanted));
        checks.push(Check::new(what, held, || format!("{} failed", list(&seen.failed))));
    }
    if let Some(changes) = run.changes {
        let what = format!("calls that change something: {changes}");
        checks.push(Check::new(what, changes == seen.changes, || {
            format!("there were {}", seen.changes)
        }));
    }
    if let Some(within) = run.within {
        let what = format!("it takes at most {}", clock(within));
        checks.push(Check::new(what, seen.took <= within, || {
            format!("it took {}", clock(seen.took))
        }));
    }
    checks
}

/// Holds what was done to the datacenter against what that is done for.
pub(crate) fn of_poke(sentence: &str, changed: bool) -> Check {
    let nothing = || "it was so already, or there was nothing to change".to_owned();
    Check::new(format!("meanwhile: {sentence}"), changed, nothing)
}

/// Holds the datacenter against what was expected of it.
pub(crate) fn of_world(world: &World, seen: &Facts) -> Vec<Check> {
    let inventory = &seen.inventory;
    let mut checks = Vec::new();
    let guests = |wanted: fn(bool) -> bool| {
        let guests = inventory.proxmox.guests.iter().filter(|guest| wanted(guest.running));
        sorted(guests.map(|guest| guest.vmid.to_string()))
    };
    let mut list = |name: &str, wanted: &Option<Vec<String>>, seen: Vec<String>| {
        if let Some(wanted) = wanted {
            let wanted = sorted(wanted.iter().cloned());
            checks.push(Check::equal(format!("{name}: {}", wanted.join(", ")), &wanted, &seen));
        }
    };
    list("guests", &world.guests, guests(|_| true));
    list("running guests", &world.running, guests(|running| running));
    let ready = inventory.nodes.iter().filter(|(_, ready)| *ready).map(|(name, _)| name.clone());
    list("nodes that are Ready", &world.ready, sorted(ready));
    let units =
        inventory.flux.iter().filter(|unit| unit.ready && !unit.name.starts_with("source "));
    list("units of Flux that are Ready", &world.units, sorted(units.map(|unit| unit.name.clone())));
    let mut count = |name: &str, wanted: Option<u64>, seen: usize| {
        if let Some(wanted) = wanted {
            let seen = u64::try_from(seen).unwrap_or(u64::MAX);
            checks.push(Check::equal(format!("{name}: {wanted}"), &wanted, &seen));
        }
    };
    count("disks", world.disks, inventory.proxmox.volumes.len());
    count("image files", world.images, inventory.proxmox.files.len());
    count("running tasks", world.tasks, inventory.proxmox.running_tasks.len());
    count("members of etcd", world.members, inventory.etcd.len());
    let bootstraps = usize::try_from(seen.bootstraps).unwrap_or(usize::MAX);
    count("bootstraps of etcd", world.bootstraps, bootstraps);
    let holds = |key: &String| inventory.secrets.iter().any(|path| is_key(path, key));
    for key in &world.vault {
        let what = format!("the vault holds {key}");
        checks.push(Check::new(what, holds(key), || "it does not".to_owned()));
    }
    for key in &world.vault_lacks {
        let what = format!("the vault does not hold {key}");
        checks.push(Check::new(what, !holds(key), || "it does".to_owned()));
    }
    if let Some(wanted) = world.handover {
        let handed = inventory.flux.iter().any(|unit| !unit.name.starts_with("source "));
        let what = if wanted { "Flux has taken over" } else { "Flux has not taken over" };
        checks.push(Check::new(what.to_owned(), wanted == handed, || {
            format!("Flux looks after {} units", inventory.flux.len())
        }));
    }
    for vmid in &world.untouched {
        let what = format!("VM {vmid} is as somebody else made it");
        let (then, now) = (seen.then.get(vmid), seen.now.get(vmid));
        checks.push(Check::new(what, then.is_some() && then == now, || match (then, now) {
            (None, _) => "nobody made it before castle came".to_owned(),
            (_, None) => "it is gone".to_owned(),
            _ => "it was changed".to_owned(),
        }));
    }
    if let Some(wanted) = world.nothing_left {
        let what = if wanted { "nothing is left over" } else { "something is left over" };
        checks.push(Check::new(what.to_owned(), wanted == seen.left.is_empty(), || {
            if wanted { seen.left.join(", ") } else { "nothing is".to_owned() }
        }));
    }
    checks
}

/// Whether a secret with its folders is the one of this key.
fn is_key(path: &str, key: &str) -> bool {
    path == key || path.rsplit(['/', ' ']).next() == Some(key)
}

fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

/// A length of time as the screen shows it.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests;
