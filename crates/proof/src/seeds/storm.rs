//! The storm of a life: commands among faults and crashes, and somebody who puts his own things where ours stood.

use std::collections::BTreeSet;

use castle_model::spec::NodeSpec;
use castle_rehearsal::fault::{Names, Rule, Who, draw};
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trouble::{ProxmoxTrouble as P, Trouble};
use castle_rehearsal::turn::Dice;
use castle_rehearsal::world::Input;

use super::Living;
use crate::castle::{Around, Command, Run, Stand, run};
use crate::check::{self, Violation};
use crate::point::Fork;
use crate::trial::{Place, Sight, Watch, happen, read, told, truth};

/// A bring-up of the largest shape has about so many points.
const POINTS: u64 = 1800;
/// One life of so many meets somebody who takes the place of one of ours.
const MEDDLERS: u64 = 6;
/// One storm of so many has a rule that is aimed.
const AIMED: u64 = 4;
/// Changes that nobody takes back, and that castle promises to mend by itself or that pass: they excuse nothing.
const MENDED: [&str; 9] = [
    "task fails",
    "task warns",
    "stopped",
    "destroyed",
    "reboots",
    "revived",
    "vip moves",
    "bootstrap lost",
    "images lost",
];
/// What no castle has made or can take away: what is wrong, and what a factory remembers.
const NOT_MADE: [&str; 4] = ["wrong", "rules", "schematics", "git"];

impl Living {
    /// One command with faults and perhaps a crash.
    pub(super) fn storm(&mut self, stand: Stand, command: Command, index: u64) -> Stand {
        let names = Names::of(&self.setting.spec);
        let mut rules = match self.dice.below(4) {
            0 => Vec::new(),
            _ => draw(self.life.seed.wrapping_mul(31).wrapping_add(index), &names),
        };
        rules.extend(self.aimed(index, &names));
        self.note_rules(&rules);
        let number = (self.dice.below(2) == 0).then(|| self.dice.below(POINTS));
        if rules.is_empty() && number.is_none() {
            return self.undisturbed(stand, command, false).stand;
        }
        let place =
            number.map(|number| Place::Number(usize::try_from(number).unwrap_or(usize::MAX)));
        let (watch, recorder) = if self.watched {
            Watch::until(&self.setting, &stand, sight(&rules), place)
        } else {
            Watch::blind(place)
        };
        let before = stand.copy();
        let tasks = Tasks::of(&rules);
        let around = Around { recorder: Some(recorder), rules: rules.clone(), settles: false };
        let ran = run(stand, &self.setting, command, around);
        self.scar(&rules, &ran);
        let fork = watch.taken();
        self.heard(&ran, before.datacenter.now, fork.as_ref());
        self.life.violations.extend(watch.found());
        if let Some(Fork { stand, point }) = fork {
            self.life.story.push(format!("killed at {point}"));
            self.life.crashes += 1;
            return stand;
        }
        self.judge_storm(&before, &tasks, &ran);
        ran.stand
    }

    /// At times one more rule, aimed at what every run does early: most of those that are drawn strike when it is over.
    fn aimed(&self, index: u64, names: &Names) -> Vec<Rule> {
        let mut dice = Dice::new(self.life.seed.wrapping_mul(0x1f3d_5b79).wrapping_add(index));
        if dice.below(AIMED) != 0 {
            return Vec::new();
        }
        let tasks = ["download", "qmcreate", "qmstart", "qmstop", "qmdestroy"];
        let task = tasks[usize::try_from(dice.below(5)).unwrap_or(0)];
        let vms: Vec<u32> =
            self.setting.spec.nodes.iter().filter_map(|node| Some(node.vm()?.vmid.0)).collect();
        let vmid = vms[usize::try_from(dice.below(vms.len() as u64)).unwrap_or(0)];
        let rule = match dice.below(5) {
            0 => format!("proxmox: task fails {task}"),
            1 => format!("proxmox: task lies {task}"),
            2 => format!("proxmox: answers 500 on GET /qemu/{vmid}/config"),
            3 => format!("infisical: limits 0:20 the {}th", 4 + dice.below(6)),
            _ => format!("kubernetes: limits 0:20 on PATCH * the {}th", 4 + dice.below(16)),
        };
        read(&[&rule], names)
    }

    /// What holds of a run that came to its end, whatever it met.
    fn judge_storm(&mut self, before: &Stand, tasks: &Tasks, ran: &Run) {
        let found = &mut self.life.violations;
        if *tasks == Tasks::Heard && !ran.killed {
            let after = &ran.stand.datacenter;
            found.extend(told::failed_tasks(&before.datacenter, after, &ran.events));
        }
        if matches!(ran.command, Command::Down | Command::Wipe) && ran.is_done() {
            let there = check::ours(&self.setting, &ran.stand.datacenter);
            // Who has taken an address of ours is still there, too.
            let others = &self.apart | &check::strangers(&there);
            let mut wanted = check::apart(&self.empty, &others);
            let there = check::apart(&there, &others);
            for part in NOT_MADE {
                wanted[part] = there[part].clone();
            }
            let differ = check::differences(&wanted, &there).into_iter();
            found.extend(differ.map(|what| Violation::new("nothing left", what)));
        }
    }

    /// What rules will do, and how it is made good again.
    fn note_rules(&mut self, rules: &[Rule]) {
        for rule in rules {
            self.life.story.push(format!("armed: {rule}"));
            if let Some(mending) = rule.mending() {
                self.mending.extend(mending.iter().cloned().map(Input::Trouble));
            }
        }
    }

    /// Remembers which rules have changed the world for good: those that struck, and no others.
    fn scar(&mut self, rules: &[Rule], ran: &Run) {
        let struck = |rule: &&Rule| ran.changed.contains(&rule.to_string());
        for rule in rules.iter().filter(struck).filter(|rule| rule.mending().is_none()) {
            let troubles = rule.troubles().into_iter().flatten();
            for trouble in troubles.clone() {
                self.befell(trouble, &ran.stand);
            }
            let numbers: Vec<u32> = troubles.filter_map(of_others).collect();
            if numbers.is_empty() && !MENDED.contains(&rule.kind().name) {
                self.scars.insert(rule.to_string(), self.callings(rule));
            }
            self.apart.extend(numbers);
        }
    }

    /// What a rule has done to what somebody else put in the place of one of ours is not castle's doing.
    pub(super) fn befell(&mut self, trouble: &Trouble, stand: &Stand) {
        let Some((vmid, mut came)) = self.squatter.take() else { return };
        match trouble {
            Trouble::Proxmox(P::Destroyed { vmid: number }) if *number == vmid => {
                self.apart.remove(&vmid);
                return;
            }
            Trouble::Proxmox(P::Stopped { vmid: number }) if *number == vmid => {
                let now = truth::guest(stand, vmid);
                for power in truth::POWER {
                    came[power] = now[power].clone();
                }
            }
            _ => {}
        }
        self.squatter = Some((vmid, came));
    }

    /// What castle may call what a rule is about: its own words, and of a machine its name, number and address, too.
    fn callings(&self, rule: &Rule) -> BTreeSet<String> {
        let timeless = rule.timeless();
        let (who, deed) = timeless.split_once(": ").unwrap_or((&timeless, ""));
        let (server, object) = who.split_once(' ').unwrap_or((who, ""));
        let said = deed.strip_prefix(rule.kind().name).unwrap_or_default();
        let words = object.split_whitespace().chain(said.split_whitespace());
        let mut names: BTreeSet<String> =
            words.map(|word| word.trim_matches('"').to_owned()).collect();
        for node in &self.setting.spec.nodes {
            let number = node.vm().map(|vm| vm.vmid.0.to_string());
            let all = [Some(node.name.to_string()), number, Some(node.address.to_string())];
            let all: BTreeSet<String> = all.into_iter().flatten().collect();
            if !all.is_disjoint(&names) {
                names.extend(all);
            }
        }
        if names.is_empty() {
            names.insert(server.to_owned());
        }
        names
    }

    /// At times somebody puts a VM of his own where a worker of ours stood, or makes ours into something else.
    ///
    /// Whatever comes then, it stays as it came. Drawn by dice of its own, so that every other life is the one it was.
    pub(super) fn meddle(&mut self, stand: &mut Stand, index: u64) {
        let mut dice = Dice::new(self.life.seed.wrapping_mul(0x2545_f491).wrapping_add(index));
        let workers = self.setting.spec.workers().filter_map(NodeSpec::vm);
        let workers: Vec<u32> = workers.map(|vm| vm.vmid.0).collect();
        if self.squatter.is_some() || dice.below(MEDDLERS) != 0 || workers.is_empty() {
            return;
        }
        let vmid = workers[usize::try_from(dice.below(workers.len() as u64)).unwrap_or(0)];
        let stands = truth::guest(stand, vmid).is_object();
        // What a task still changes is nobody's to take over.
        let tasks = Inventory::of(&stand.datacenter).proxmox.running_tasks;
        if tasks.iter().any(|task| task.contains(&format!(":{vmid}:"))) {
            return;
        }
        let rules = match (stands, dice.below(2)) {
            (false, _) => vec![format!("proxmox {vmid}: foreign vm")],
            (true, 0) => {
                vec![format!("proxmox {vmid}: destroyed"), format!("proxmox {vmid}: foreign vm")]
            }
            (true, _) => {
                let uuid = "d59201e4-d411-4eb5-aa3a-aafb17c6181f";
                vec![format!("proxmox {vmid}: edited smbios1 uuid={uuid}")]
            }
        };
        let names = Names::of(&self.setting.spec);
        let words: Vec<&str> = rules.iter().map(String::as_str).collect();
        for rule in read(&words, &names) {
            rule.troubles().into_iter().flatten().for_each(|trouble| happen(stand, trouble));
        }
        self.life.story.extend(rules.iter().map(|rule| format!("meanwhile: {rule}")));
        self.squatter = Some((vmid, truth::guest(stand, vmid)));
        self.apart.insert(vmid);
    }
}

/// The number at which a change puts something of others.
fn of_others(trouble: &Trouble) -> Option<u32> {
    match trouble {
        Trouble::Proxmox(
            P::ForeignVm { vmid, .. }
            | P::ForeignContainer { vmid, .. }
            | P::Overtaken { vmid }
            | P::Edited { vmid, .. }
            | P::LostDisk { vmid, .. },
        ) => Some(*vmid),
        _ => None,
    }
}

/// What can be seen for sure among such faults: what is written down may have been undone already, and what a server said
/// may be old.
fn sight(rules: &[Rule]) -> Sight {
    let lies =
        |rule: &Rule| ["answers stale", "hears twice", "task lies"].contains(&rule.kind().name);
    Sight { still: false, truthful: !rules.iter().any(lies) }
}

/// Whether the ends of Proxmox' tasks reach whoever waits for them.
#[derive(PartialEq, Eq)]
enum Tasks {
    /// Nothing but tasks themselves breaks at Proxmox, or between it and us.
    Heard,
    /// An answer may be lost, or the node that had them.
    Lost,
}

impl Tasks {
    fn of(rules: &[Rule]) -> Self {
        let far = |rule: &Rule| match rule.who() {
            Who::Proxmox => rule.kind().name.starts_with("task "),
            Who::Network | Who::Castle => false,
            _ => true,
        };
        if rules.iter().all(far) { Self::Heard } else { Self::Lost }
    }
}
