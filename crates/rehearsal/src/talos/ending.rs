//! How a machine goes down when it is asked to: it says goodbye, forgets what it should, and comes back or not.

use tonic::Code;

use super::call::{Refusal, Reply, ResetCall, What};
use super::machine::{Api, Ending, Machine, Running, Sequence};
use super::{Milestone, Talos};
use crate::durations::Process;
use crate::turn::{Signal, Turn};

impl Talos {
    /// Reboots or switches off, when asked.
    pub(super) fn end(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        sequence: Sequence,
    ) -> Result<Reply, Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        if let Some(ending) = &machine.ending {
            let text = format!("sequence {} is already running", ending.sequence.name());
            return Err(Refusal::new(Code::FailedPrecondition, text));
        }
        if let Sequence::Reset(wish) = &sequence {
            possible(machine, wish)?;
        }
        Ok(Reply::Begun(self.go_down(turn, vmid, sequence)))
    }

    /// Begins to go down, and says who caused it.
    pub(super) fn go_down(&mut self, turn: &mut Turn<'_>, vmid: u32, sequence: Sequence) -> String {
        let actor = actor(turn);
        let what = match sequence {
            Sequence::Reset(_) => Process::Reset,
            Sequence::Reboot | Sequence::Shutdown => Process::Goodbye,
        };
        if let Some(machine) = self.machines.get_mut(&vmid) {
            let begun =
                What::Sequence { name: sequence.name().to_owned(), begins: true, error: None };
            machine.noted.happen(&actor, begun);
            machine.ending = Some(Ending { sequence, actor: actor.clone(), deaf: false });
        }
        self.later(turn, vmid, what, Milestone::Goodbye);
        actor
    }

    /// A machine has said goodbye: etcd and discovery are left where that was asked for, then all services stop.
    pub(super) fn goodbye(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(ending) = self.machines.get(&vmid).and_then(|machine| machine.ending.clone())
        else {
            return;
        };
        if let Sequence::Reset(wish) = &ending.sequence {
            let leaves = wish.graceful && self.machines[&vmid].running.etcd;
            if leaves && let Err(why) = self.leave(turn, vmid) {
                self.stay(vmid, &ending, &why);
                return;
            }
            self.retract(vmid);
        }
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        machine.noted.happen(&ending.actor, What::Task("stopAllServices".to_owned()));
        let lost = lost(machine);
        machine.running = Running::default();
        turn.signals.extend(lost);
        self.left(turn, vmid, true);
        self.later(turn, vmid, Process::Stopping, Milestone::Deaf);
    }

    /// Everything behind the API has stopped; the API itself comes last.
    pub(super) fn deafen(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let machine = self.machines.get_mut(&vmid);
        if let Some(ending) = machine.and_then(|machine| machine.ending.as_mut()) {
            ending.deaf = true;
            self.later(turn, vmid, Process::Deaf, Milestone::Down);
        }
    }

    /// A machine could not say goodbye, and stays.
    fn stay(&mut self, vmid: u32, ending: &Ending, why: &Refusal) {
        let Some(machine) = self.machines.get_mut(&vmid) else { return };
        let error = match why {
            Refusal::Status(_, text) => text.clone(),
            Refusal::Waits => "etcd does not answer".to_owned(),
        };
        let name = ending.sequence.name().to_owned();
        machine
            .noted
            .happen(&ending.actor, What::Sequence { name, begins: false, error: Some(error) });
        machine.ending = None;
    }

    /// A machine is down: it forgets what it was told to forget, and boots again or stays off.
    pub(super) fn down(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(ending) = self.machines.get_mut(&vmid).and_then(|machine| machine.ending.take())
        else {
            return;
        };
        let reboot = match &ending.sequence {
            Sequence::Reboot => true,
            Sequence::Shutdown => false,
            Sequence::Reset(wish) => {
                if let Some(machine) = self.machines.get_mut(&vmid) {
                    wipe(machine, wish);
                }
                self.disk_lost(turn, vmid);
                wish.reboot
            }
        };
        self.switch_off(turn, vmid);
        if reboot {
            self.boot(turn, vmid);
        } else {
            turn.signal(Signal::MachineHalted { vmid });
        }
    }

    /// A machine that lost its way starts again at once, without a goodbye.
    pub(super) fn crash(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        if self.machines.get(&vmid).is_some_and(|machine| machine.on) {
            self.switch_off(turn, vmid);
            self.boot(turn, vmid);
        }
    }

    /// A VM lost power: what ran is gone, what is on its disk stays.
    pub(super) fn switch_off(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        let Some(machine) = self.machines.get_mut(&vmid).filter(|machine| machine.on) else {
            return;
        };
        let lost = lost(machine);
        machine.on = false;
        machine.up = false;
        machine.api = Api::Down;
        machine.signed_by = None;
        machine.ending = None;
        machine.generation += 1;
        machine.running = Running::default();
        turn.signals.extend(lost);
        self.silence(turn, vmid);
        self.left(turn, vmid, false);
    }
}

/// What the cluster hears when a machine that is a node goes.
fn lost(machine: &Machine) -> Option<Signal> {
    let cluster = machine.cluster().filter(|_| machine.running.joined)?.to_owned();
    Some(Signal::NodeLost { cluster, name: machine.hostname().to_owned() })
}

/// Whether a reset could be done.
fn possible(machine: &Machine, wish: &ResetCall) -> Result<(), Refusal> {
    let refuse = |text: String| Err(Refusal::new(Code::Unknown, text));
    for label in &wish.partitions {
        if !["STATE", "EPHEMERAL", "META"].contains(&label.as_str()) {
            return refuse(format!(
                "failed to get volume status with label \"{label}\": resource VolumeStatuses.block.talos.dev(runtime/{label}@undefined) doesn't exist"
            ));
        }
    }
    for device in &wish.user_disks {
        match device.as_str() {
            "/dev/sda" => {
                return refuse(format!(
                    "reset user disk failed: device {device} is the system disk"
                ));
            }
            "/dev/sdb" if machine.data_disk().is_some() => {}
            _ => return refuse(format!("reset user disk failed: device {device} wasn't found")),
        }
    }
    Ok(())
}

fn wipe(machine: &mut Machine, wish: &ResetCall) {
    if !wish.system_disk {
        return;
    }
    let whole = wish.partitions.is_empty();
    let named = |label: &str| whole || wish.partitions.iter().any(|partition| partition == label);
    if named("STATE") {
        machine.disk.saved = None;
        machine.disk.identity = None;
    }
    if named("EPHEMERAL") {
        machine.disk.etcd = None;
    }
    machine.disk.wiped |= whole;
}

/// A random id in the form of a UUID.
fn actor(turn: &mut Turn<'_>) -> String {
    let mut bytes = [0; 16];
    turn.dice.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}
