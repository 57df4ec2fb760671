//! A witness of every moment of a run: what is announced, what is said to be true, and what must be kept first.

use std::collections::{BTreeMap, BTreeSet};

use castle_journal::{Journals, Records, StepState};
use castle_model::{StepId, Verb};
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::proxmox::GuestSeen;
use serde_json::Value;

use super::announce::Announcers;
use super::truth::{POWER, number, touched};
use crate::castle::Stand;
use crate::check::Violation;
use crate::point::{Fork, Moment, Point};
use crate::setting::{Setting, put_up_again};

/// The namespaces whose workloads a step has proven when it is done.
const PROVES: &[(&str, &str)] = &[
    ("engine/operator", "external-secrets"),
    ("networking/metallb", "metallb-system"),
    ("storage/longhorn", "longhorn-system"),
    ("gitops/controllers", "flux-system"),
];

/// How far what is written down can be held against what is there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sight {
    /// Nobody else changes the world between a look and what is written down about it.
    pub(crate) still: bool,
    /// What servers say is so.
    pub(crate) truthful: bool,
}

impl Sight {
    /// Nothing is in the way.
    pub(crate) const WHOLE: Self = Self { still: true, truthful: true };
}

/// What a witness knows, and what it has seen broken.
pub(super) struct Witness {
    sight: Sight,
    /// Nodes by the number of their VM.
    nodes: BTreeMap<u32, String>,
    control_planes: usize,
    /// Steps that were done or announced when it last looked.
    done: BTreeSet<StepId>,
    announced: BTreeSet<StepId>,
    /// Guests at our numbers that came without our tag, as they came.
    strangers: BTreeMap<u32, Value>,
    pub(super) found: Vec<Violation>,
}

impl Witness {
    pub(super) fn new(setting: &Setting, stand: &Stand, sight: Sight) -> Self {
        let nodes = setting.spec.nodes.iter();
        let nodes = nodes.filter_map(|node| Some((number(node)?, node.name.to_string())));
        let mut witness = Self {
            sight,
            nodes: nodes.collect(),
            control_planes: setting.spec.control_planes().count(),
            done: BTreeSet::new(),
            announced: BTreeSet::new(),
            strangers: BTreeMap::new(),
            found: Vec::new(),
        };
        if let Ok(records) = stand.records() {
            (witness.done, witness.announced) = (done(&records), announced(&records));
        }
        witness
    }

    /// Whether a moment is worth a look: a call that changes something is about to be heard, or something is durable.
    pub(super) fn wants(&self, point: &Point) -> bool {
        match point.moment {
            Moment::BeforeSend => Announcers::of(&point.what, &self.nodes) != Announcers::Nobody,
            Moment::AfterSend => hands_out(point) || begins(point),
            Moment::AfterJournal => true,
            _ => false,
        }
    }

    pub(super) fn look(&mut self, fork: &Fork) {
        let Fork { point, stand } = fork;
        let mut broken = Vec::new();
        if point.moment == Moment::BeforeSend {
            broken.extend(self.is_announced(point, stand));
        } else if point.moment == Moment::AfterJournal {
            match Journals::open(Box::new(stand.disk.copy())) {
                Ok(journals) => {
                    broken.extend(self.is_true(journals.records(), stand));
                    broken.extend(is_known(journals.records(), stand));
                }
                Err(error) => {
                    broken.push(Violation::new("the journal can be read", error.to_string()));
                }
            }
        }
        if begins(point) && self.sight.truthful {
            broken.extend(is_single(stand));
        }
        broken.extend(self.is_kept(point, stand));
        broken.extend(self.is_left_alone(stand));
        self.found.extend(broken);
    }

    /// What changes the world was announced by an intent that would survive a loss of power.
    fn is_announced(&self, point: &Point, stand: &Stand) -> Option<Violation> {
        let disk = stand.disk.copy();
        disk.lose_power();
        let law = "an intent is durable before the act";
        let journals = match Journals::open(Box::new(disk)) {
            Ok(journals) => journals,
            Err(error) => return Some(Violation::new(law, error.to_string())),
        };
        let announcers = Announcers::of(&point.what, &self.nodes);
        if announcers == Announcers::Unknown {
            return Some(Violation::new(law, format!("no step is known to make {}", point.what)));
        }
        let records = journals.records();
        let intended = |state: &StepState| matches!(state, StepState::Intended { .. });
        let announced = announcers.any(records.steps.keys(), records, intended);
        (!announced).then(|| Violation::new(law, point.what.clone()))
    }

    /// What the journal has come to say since the last look is true of the world.
    fn is_true(&mut self, records: &Records, stand: &Stand) -> Vec<Violation> {
        let (done, announced) = (done(records), announced(records));
        let inventory = Inventory::of(&stand.datacenter);
        let mut found = Vec::new();
        for step in done.difference(&self.done).filter(|_| self.sight.still) {
            if let Some(lie) = self.lie(step, &inventory) {
                found.push(Violation::new("what is proven is true", format!("{step}: {lie}")));
            }
        }
        for step in announced.difference(&self.announced).filter(|_| self.sight.truthful) {
            let name = step.as_str().strip_prefix("platform/vm/").unwrap_or_default();
            let vmid = self.nodes.iter().find(|(_, node)| *node == name).map(|(vmid, _)| *vmid);
            let there = |vmid| {
                let guests = &inventory.proxmox.guests;
                // Somebody else may have been faster than the journal.
                guests
                    .iter()
                    .any(|guest| guest.vmid == vmid && guest.lock.is_none() && is_tagged(guest))
            };
            if vmid.is_some_and(there) {
                let what = format!("{step} is to be made, and is there");
                found.push(Violation::new("what is called absent is absent", what));
            }
        }
        (self.done, self.announced) = (done, announced);
        found
    }

    /// What is not so although a step is said to be done.
    fn lie(&self, step: &StepId, inventory: &Inventory) -> Option<String> {
        let name = step.as_str();
        if let Some(node) = name.strip_prefix("platform/vm/") {
            let (vmid, _) = self.nodes.iter().find(|(_, name)| *name == node)?;
            let runs = inventory.proxmox.guests.iter().any(|g| g.vmid == *vmid && g.running);
            return (!runs).then(|| "it does not run".to_owned());
        }
        if name == "platform/etcd" {
            let members = inventory.etcd.len();
            return (members != self.control_planes).then(|| format!("{members} members"));
        }
        if name == "platform/nodes" {
            let ready = inventory.nodes.iter().filter(|(_, ready)| *ready).count();
            return (ready != self.nodes.len()).then(|| format!("{ready} nodes are ready"));
        }
        let (_, namespace) = PROVES.iter().find(|(step, _)| *step == name)?;
        let within = format!("/{namespace}/");
        let mut workloads = inventory.workloads.iter().filter(|w| w.name.contains(&within));
        let late = workloads.find(|workload| workload.ready < workload.wanted)?;
        Some(format!("{} has {} of {} pods ready", late.name, late.ready, late.wanted))
    }

    /// A stranger at one of our numbers stays as it came.
    pub(super) fn is_left_alone(&mut self, stand: &Stand) -> Vec<Violation> {
        let proxmox = serde_json::to_value(&stand.datacenter.proxmox).unwrap_or_default();
        let mut found = Vec::new();
        for guest in Inventory::of(&stand.datacenter).proxmox.guests {
            let (vmid, ours) = (guest.vmid, is_tagged(&guest));
            if !self.nodes.contains_key(&vmid) || ours || guest.lock.is_some() {
                continue;
            }
            let mut now = proxmox["guests"][vmid.to_string()].clone();
            put_up_again(&mut now);
            let came = self.strangers.entry(vmid).or_insert_with(|| now.clone());
            // Among faults somebody may pull its plug by hand; what castle switched off is found at the end of the run.
            if !self.sight.still {
                for power in POWER {
                    came[power] = now[power].clone();
                }
            }
            found.extend(touched(vmid, came, &now));
        }
        found
    }

    /// As long as a machine has a config, somebody can still open it: its secrets are kept.
    fn is_kept(&self, point: &Point, stand: &Stand) -> Option<Violation> {
        let inventory = Inventory::of(&stand.datacenter);
        let mut machines = inventory.machines.iter();
        let configured = machines.find_map(|(vmid, words)| {
            let ours = self.nodes.contains_key(vmid) && words.ends_with("(configured)");
            ours.then(|| words.clone())
        });
        let has = configured.or_else(|| hands_out(point).then(|| point.what.clone()))?;
        let kept = inventory.secrets.iter().any(|key| key.ends_with("/TALOS_SECRETS_BUNDLE"));
        (!kept).then(|| Violation::new("secrets are kept before they are used", has))
    }
}

/// Whether a guest bears a tag of castle's.
fn is_tagged(guest: &GuestSeen) -> bool {
    guest.tags.iter().any(|tag| tag.starts_with("castle"))
}

/// Whether a machine was just given its config.
fn hands_out(point: &Point) -> bool {
    point.moment == Moment::AfterSend && point.what.ends_with("/ApplyConfiguration")
}

/// Whether something was just asked for that takes a task of Proxmox to make.
fn begins(point: &Point) -> bool {
    point.moment == Moment::AfterSend
        && point.what.starts_with("proxmox POST ")
        && ["/download-url", "/qemu"].iter().any(|path| point.what.ends_with(path))
}

/// Nothing is made that is being made already.
fn is_single(stand: &Stand) -> Vec<Violation> {
    let running = Inventory::of(&stand.datacenter).proxmox.running_tasks;
    let mut made = BTreeSet::new();
    let twice = running.iter().filter_map(|upid| {
        let parts: Vec<&str> = upid.split(':').collect();
        let [_, _, _, _, _, kind @ ("download" | "qmcreate"), object, ..] = parts.as_slice() else {
            return None;
        };
        (!made.insert((*kind, *object))).then(|| format!("a second {kind} of {object}"))
    });
    twice.map(|what| Violation::new("no second object", what)).collect()
}

/// A task that still runs and was once written down is still known.
fn is_known(records: &Records, stand: &Stand) -> Vec<Violation> {
    let inventory = Inventory::of(&stand.datacenter);
    let journal = stand.disk.content("layers/platform.journal").unwrap_or_default();
    let journal = String::from_utf8_lossy(&journal);
    let forgotten = inventory.proxmox.running_tasks.iter().filter(|task| {
        // As a task of a step: a failure may name one that nobody has begun.
        journal.contains(&format!("\"task\":\"{task}\""))
            && !records.steps.values().any(|state| state.task() == Some(task.as_str()))
    });
    forgotten.map(|task| Violation::new("a running task is known", task.clone())).collect()
}

fn done(records: &Records) -> BTreeSet<StepId> {
    let done = records.steps.iter().filter(|(_, s)| matches!(s, StepState::Done { .. }));
    done.map(|(id, _)| id.clone()).collect()
}

fn announced(records: &Records) -> BTreeSet<StepId> {
    let create =
        |state: &StepState| matches!(state, StepState::Intended { verb: Verb::Create, .. });
    records.steps.iter().filter(|(_, s)| create(s)).map(|(id, _)| id.clone()).collect()
}
