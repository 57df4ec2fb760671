//! The calm of a life: no more faults. It converges, or says why not; and its end is held against a world.

use std::sync::Arc;

use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::proxmox::GuestSeen;
use castle_rehearsal::trouble::{ProxmoxTrouble as P, Trouble};
use serde_json::{Value, json};
use sha2::Digest as _;

use super::{Almanac, End, Living};
use crate::castle::{Command, Run, Stand};
use crate::check::{self, Violation};
use crate::trial::{Sight, happen};

/// How often the last command may be started before it must have converged: what a first one leaves half done, such as a
/// task that hangs, a second one takes up.
const CALM_RUNS: usize = 3;
/// How often others take their guests away: who was to be faster may be so only when the place is free again.
const WAYS: usize = 2;
/// Words of rules after which a server may say in the calm what is not so.
const LIES: [&str; 1] = ["task lies"];
/// What a guest is called whose owner was faster with its number.
const FASTER: &str = "faster";

impl Living {
    /// No more faults: it converges, or says why not.
    pub(super) fn calm(&mut self, mut stand: Stand, command: Command, almanac: &Almanac) {
        for mending in std::mem::take(&mut self.mending) {
            let now = stand.datacenter.now;
            drop(stand.datacenter.input(now, &mending));
        }
        self.life.story.push("calm".to_owned());
        let (after, mut last) = self.converge(stand, command);
        stand = after;
        if !self.life.converged && self.unlock(&mut stand, &last) {
            (stand, last) = self.converge(stand, command);
        }
        for _ in 0..WAYS {
            if !self.life.converged {
                self.overtaken(&stand);
            }
            if self.life.converged || self.apart.is_empty() {
                break;
            }
            if !(command == Command::Wipe && self.is_doubted(&last)) {
                self.is_named(&last);
            }
            self.give_way(&mut stand);
            (stand, last) = self.converge(stand, command);
        }
        let found = check::ours(&self.setting, &stand.datacenter);
        self.hash.update(json!(found).to_string());
        self.life.end = if self.life.converged {
            self.compare(&found, command, almanac)
        } else {
            let there = Inventory::of(&stand.datacenter);
            let (machines, nodes) = (json!(there.machines), json!(there.nodes));
            self.life.story.push(format!("there are {machines}, nodes {nodes}"));
            self.excused(&stand, last, command)
        };
        self.tell_end();
    }

    /// Starts the last command as often as it may be; the last run's words are given back.
    fn converge(&mut self, mut stand: Stand, command: Command) -> (Stand, String) {
        let mut last = String::new();
        for start in 1..=CALM_RUNS {
            self.life.starts = start;
            let mut ran = self.undisturbed(stand, command, true);
            // What was half razed can not be raised: then a person does what he is told to.
            if command == Command::Up && asks_to_raze(&ran) {
                let razed = self.undisturbed(ran.stand, Command::Down, true);
                ran = self.undisturbed(razed.stand, command, true);
            }
            self.life.converged = ran.is_done_but(|left| self.is_of_others(left));
            last = told(&ran);
            stand = ran.stand;
            if self.life.converged {
                break;
            }
        }
        (stand, last)
    }

    /// Who was to be faster with a number of ours may be so only now, long after the run that his rule was armed in.
    fn overtaken(&mut self, stand: &Stand) {
        let ours: Vec<u32> = self.numbers().collect();
        let guests = Inventory::of(&stand.datacenter).proxmox.guests;
        let faster = guests.iter().filter(|guest| guest.name == FASTER);
        self.apart.extend(faster.map(|guest| guest.vmid).filter(|vmid| ours.contains(vmid)));
    }

    /// What died half made, locked as only root may pass over, root removes from the host where castle says so.
    fn unlock(&mut self, stand: &mut Stand, told: &str) -> bool {
        let ours: Vec<u32> = self.numbers().collect();
        let guests = Inventory::of(&stand.datacenter).proxmox.guests;
        let half = guests.iter().filter(|guest| is_half_made(guest)).map(|guest| guest.vmid);
        let named = half.filter(|vmid| {
            ours.contains(vmid)
                && told.contains(&format!("qm unlock {vmid}, then qm destroy {vmid}"))
        });
        let named: Vec<u32> = named.collect();
        for vmid in &named {
            let removed = Trouble::Proxmox(P::Destroyed { vmid: *vmid });
            happen(stand, &removed);
            self.befell(&removed, stand);
            self.life.story.push(format!("root removes {vmid} from the host, as castle says"));
        }
        !named.is_empty()
    }

    /// The numbers of the castle's own machines.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        self.setting.spec.nodes.iter().filter_map(|node| Some(node.vm()?.vmid.0))
    }

    /// What is in the way is named by its number, what is broken for good by what it is.
    fn is_named(&mut self, told: &str) {
        let heard = told.to_lowercase();
        let mut numbers = self.apart.iter().map(ToString::to_string);
        let mut names = self.scars.values().flatten();
        if !numbers.any(|number| heard.contains(&number))
            && !names.any(|name| heard.contains(&name.to_lowercase()))
        {
            let (apart, scars) = (&self.apart, &self.scars);
            let what = format!("{apart:?} are in the way, {scars:?} broken, and it says: {told}");
            self.life.violations.push(Violation::new("failures are explained", what));
        }
    }

    /// The others take their guests away again, as whoever was told to would ask them to. A disk without one stays.
    fn give_way(&mut self, stand: &mut Stand) {
        for vmid in std::mem::take(&mut self.apart) {
            happen(stand, &Trouble::Proxmox(P::Destroyed { vmid }));
            let disk = format!("vm-{vmid}-");
            let volumes = Inventory::of(&stand.datacenter).proxmox.volumes;
            if volumes.iter().any(|volid| volid.contains(&disk)) {
                self.apart.insert(vmid);
            }
        }
        self.squatter = None;
        self.life.story.push("the others take their guests away".to_owned());
    }

    fn tell_end(&mut self) {
        let (end, scars) = (self.life.end.words(), self.scars.keys());
        let scars: Vec<&str> = scars.map(String::as_str).collect();
        let mut judged = format!("judged: {end}");
        if !scars.is_empty() {
            judged = format!("{judged}; for good: {}", scars.join(", "));
        }
        if !self.apart.is_empty() {
            judged = format!("{judged}; others at {:?}", self.apart);
        }
        self.life.story.push(judged);
    }

    /// What is there, held against what is to be there.
    fn compare(&mut self, found: &Value, command: Command, almanac: &Almanac) -> End {
        let (end, wanted) = match command {
            Command::Down | Command::Wipe => {
                (End::NothingLeft, Ok(Arc::new(check::after_down(&self.empty, found))))
            }
            Command::Up | Command::Rebirth => {
                (End::SameWorld, almanac.standing(&self.setting, self.shape))
            }
        };
        match wanted {
            Ok(wanted) => {
                let mut wanted = check::apart(&wanted, &self.apart);
                let found = check::apart(found, &self.apart);
                // What a rule will still do to a next call is neither there nor of castle's making.
                wanted["wrong"] = found["wrong"].clone();
                // What somebody has done to the repository for good is no castle's to put back.
                if self.scars.keys().any(|rule| rule.starts_with("git:")) {
                    wanted["git"] = found["git"].clone();
                }
                self.life.violations.extend(check::same(&wanted, &found));
            }
            Err(error) => self.life.violations.push(Violation::new("the same world", error)),
        }
        if self.apart.is_empty() { end } else { End::Apart }
    }

    /// Why a life need not converge, if there is a reason outside of castle.
    fn excused(&mut self, stand: &Stand, told: String, command: Command) -> End {
        if self.is_ruined(stand) {
            return End::Ruined;
        }
        if command == Command::Wipe && self.is_doubted(&told) {
            self.only_theirs(stand);
            return End::Explained;
        }
        if self.scars.is_empty() && self.apart.is_empty() {
            self.life.violations.push(Violation::new("it converges", told));
        } else {
            self.is_named(&told);
        }
        End::Explained
    }

    /// Whether a neighbour bears our tag at a number of our range, and is told as perhaps ours. A wipe keeps the image and the
    /// escrow beside him: if he is, nothing else opens him.
    fn is_doubted(&self, told: &str) -> bool {
        let perhaps = |line: &str| {
            let mut neighbours = self.setting.foreign_vmids().into_iter();
            line.contains("perhaps this castle's")
                && neighbours.any(|vmid| line.starts_with(&format!("VM {vmid} ")))
        };
        told.split("left over: ").any(perhaps)
    }

    /// Whatever stays beside such a neighbour, no machine of ours does.
    fn only_theirs(&mut self, stand: &Stand) {
        let ours: Vec<u32> = self.numbers().filter(|number| !self.apart.contains(number)).collect();
        let foreign = self.setting.foreign_vmids();
        let guests = Inventory::of(&stand.datacenter).proxmox.guests;
        let left = guests.iter().filter(|guest| ours.contains(&guest.vmid));
        let left: Vec<u32> = left
            .map(|guest| guest.vmid)
            .filter(|vmid| !foreign.contains(&vmid.to_string()))
            .collect();
        if !left.is_empty() {
            let what = format!("a wipe that keeps image and escrow has left {left:?}");
            self.life.violations.push(Violation::new("nothing is left", what));
        }
    }

    /// What can be seen for sure in a run without faults of its own.
    pub(super) fn sight(&self) -> Sight {
        let lies = |rule: &String| LIES.iter().any(|lie| rule.contains(lie));
        Sight { still: self.scars.is_empty(), truthful: !self.scars.keys().any(lies) }
    }

    /// Whether what an audit names is somebody else's: a neighbour's in our range, or at a number of ours.
    fn is_of_others(&self, left: &str) -> bool {
        let apart = self.apart.iter().map(ToString::to_string);
        let mut others = self.setting.foreign_vmids().into_iter().chain(apart);
        others.any(|vmid| {
            [format!("VM {vmid} "), format!("vm-{vmid}-")].iter().any(|name| left.contains(name))
        })
    }

    /// Remembers what is being made while the state folder is deleted.
    pub(super) fn orphaned(&mut self, stand: &Stand) {
        let proxmox = Inventory::of(&stand.datacenter).proxmox;
        let half = proxmox.guests.iter().filter(|guest| is_half_made(guest));
        self.orphans.extend(half.map(|guest| guest.vmid));
        let tasks = proxmox.running_tasks.iter();
        let making = tasks.filter_map(|upid| upid.split_once(":qmcreate:")?.1.split(':').next());
        self.orphans.extend(making.filter_map(|vmid| vmid.parse::<u32>().ok()));
    }

    /// Whether a VM at one of our numbers died while it was made, and the state folder was deleted meanwhile: without a mark
    /// only the journal can tell whose it is. Castle names it, and leaves it.
    fn is_ruined(&self, stand: &Stand) -> bool {
        let ours: Vec<u32> = self.numbers().collect();
        let proxmox = Inventory::of(&stand.datacenter).proxmox;
        let ruin = |guest: &GuestSeen| {
            is_half_made(guest) && ours.contains(&guest.vmid) && self.orphans.contains(&guest.vmid)
        };
        proxmox.running_tasks.is_empty() && proxmox.guests.iter().any(ruin)
    }
}

fn is_half_made(guest: &GuestSeen) -> bool {
    guest.lock.as_deref() == Some("create")
}

/// Everything that a run said at its end.
fn told(ran: &Run) -> String {
    let failures = ran.ended.iter().flatten().flat_map(|(_, report)| report.failures.values());
    let cures = failures.flat_map(|failure| {
        let found = failure.findings.iter().map(|finding| finding.cure.as_str());
        failure.hint.as_deref().into_iter().chain(found)
    });
    let cures: Vec<&str> = cures.collect();
    format!("{}; {}", ran.verdict(), cures.join("; "))
}

/// Whether a run ended with the advice to raze the castle first.
fn asks_to_raze(ran: &Run) -> bool {
    let failures = ran.ended.iter().flatten().flat_map(|(_, report)| report.failures.values());
    let mut hints = failures.filter_map(|failure| failure.hint.as_deref());
    hints.any(|hint| hint.contains("`castle down`, then `castle up`"))
}
