//! Switches guests on and off and removes them; the machines inside hear of it by signals.

use super::drive::volume_of;
use super::property::Property;
use super::reply::{Answer, Refusal};
use super::task::Work;
use super::{Effect, Proxmox, Request, Turn};
use crate::durations::Process;
use crate::turn::Signal;

/// How long a shutdown waits for a guest that does not listen, in seconds.
const SHUTDOWN_TIMEOUT: u64 = 180;

impl Proxmox {
    /// `POST /nodes/N/qemu/ID/status/…`. A guest that is not there fails in the task, not here.
    pub(super) fn power(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        (vmid, verb): (u32, &str),
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        super::config::only_root(given)?;
        let work = match verb {
            "start" => Work::Start { vmid },
            "stop" => Work::Stop { vmid },
            _ => Work::Shutdown {
                vmid,
                force: given.get("forceStop").is_some_and(|text| text == "1"),
                timeout: given
                    .get("timeout")
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(SHUTDOWN_TIMEOUT),
            },
        };
        Ok(self.begin(turn, request, work))
    }

    /// `POST /nodes/N/qemu/ID/status/reboot`.
    pub(super) fn reboot(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        vmid: u32,
    ) -> Result<Answer, Refusal> {
        let Some(guest) = self.guests.get(&vmid).filter(|guest| !guest.container) else {
            let node = &self.node;
            let words = format!("unable to find configuration file for VM {vmid} on node '{node}'");
            return Err(Refusal::failed(words));
        };
        if guest.running.is_none() {
            return Err(Refusal::failed(format!("VM {vmid} not running")));
        }
        Ok(self.begin(turn, request, Work::Reboot { vmid }))
    }

    /// Switches a guest off and leaves it to a daemon to start it again: between the two it is off, and a stop
    /// then changes nothing.
    pub(super) fn finish_reboot(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<(), String> {
        let maker = self.guest(vmid)?.maker;
        self.finish_stop(turn, vmid)?;
        let delay = turn.draw(Process::VmStart, &vmid);
        turn.after(delay, Effect::Restarts { vmid, maker });
        Ok(())
    }

    /// Starts a guest that was rebooted, if it is still that guest.
    pub(super) fn restart(&mut self, turn: &mut Turn<'_>, vmid: u32, maker: u64) {
        let same = self.guests.get(&vmid).is_some_and(|guest| guest.maker == maker);
        if same && self.judge_start(vmid).is_ok() {
            // What stands in its way was just judged.
            drop(self.finish_start(turn, vmid));
        }
    }

    /// How long a guest that has nothing to listen with keeps a shutdown waiting, in milliseconds.
    pub(super) fn unwilling(&self, work: &Work) -> Option<u64> {
        let Work::Shutdown { vmid, timeout, .. } = work else { return None };
        let guest = self.guest(*vmid).ok().filter(|guest| guest.running.is_some())?;
        let deaf = self.facts(*vmid, guest).image.is_none();
        deaf.then_some(timeout * 1000)
    }

    /// What stands against switching a guest on.
    pub(super) fn judge_start(&self, vmid: u32) -> Result<(), String> {
        let guest = self.unlocked(vmid)?;
        if guest.has("template") {
            return Err("you can't start a vm if it's a template".to_owned());
        }
        if guest.running.is_some() {
            return Err(format!("VM {vmid} already running"));
        }
        for (name, text) in &guest.config {
            if super::drive::is_drive(name)
                && let Some(volid) = volume_of(text).filter(|id| !self.volumes.contains_key(id))
            {
                return Err(format!("volume '{volid}' does not exist"));
            }
            if name == "cicustom" {
                let parts = Property::parse(text, None).map(|found| found.options);
                let missing = |volid: &String| !self.volumes.contains_key(volid);
                if let Some(volid) = parts.unwrap_or_default().into_values().find(missing) {
                    return Err(format!("volume '{volid}' does not exist"));
                }
            }
            let bridge = Property::parse(text, Some("model"))
                .ok()
                .filter(|_| name.starts_with("net"))
                .and_then(|card| card.options.get("bridge").cloned());
            if let Some(bridge) = bridge.filter(|bridge| !self.has_network(bridge)) {
                return Err(format!("bridge '{bridge}' does not exist"));
            }
        }
        Ok(())
    }

    /// Switches a guest on.
    pub(super) fn finish_start(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<(), String> {
        let now = turn.now;
        let guest = self.guest_mut(vmid)?;
        (guest.running, guest.fell) = (Some(now), None);
        guest.switched = Some((now, Some(false)));
        let facts = self.facts(vmid, self.guest(vmid)?);
        turn.signal(Signal::VmStarted(facts));
        Ok(())
    }

    /// A guest switched itself off.
    pub(crate) fn halted(&mut self, turn: &mut Turn<'_>, vmid: u32) {
        // A machine that is not a guest here is nobody's concern.
        drop(self.finish_stop(turn, vmid));
    }

    /// Switches a guest off; one that is off stays so.
    pub(super) fn finish_stop(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<(), String> {
        let now = turn.now;
        let guest = self.guest_mut(vmid)?;
        if guest.running.take().is_some() {
            guest.at_boot = false;
            guest.switched = Some((now, Some(true)));
            guest.config = guest.coming();
            guest.pending.clear();
            turn.signal(Signal::VmStopped { vmid });
        }
        Ok(())
    }

    /// Asks a guest to switch itself off; with force, one that does not is switched off.
    pub(super) fn finish_shutdown(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        force: bool,
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        let guest = self.guest(vmid)?;
        if guest.running.is_some() && self.facts(vmid, guest).image.is_none() {
            if !force {
                return Err("VM quit/powerdown failed - got timeout".to_owned());
            }
            log.push("VM still running - terminating now with SIGTERM".to_owned());
        }
        self.finish_stop(turn, vmid)
    }

    /// `DELETE /nodes/N/qemu/ID`.
    pub(super) fn destroy(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        vmid: u32,
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        super::config::only_root(given)?;
        self.removable(vmid).map_err(Refusal::failed)?;
        let yes = |name: &str| given.get(name).is_some_and(|text| text == "1");
        let work =
            Work::Destroy { vmid, purge: yes("purge"), sweep: yes("destroy-unreferenced-disks") };
        Ok(self.begin(turn, request, work))
    }

    fn removable(&self, vmid: u32) -> Result<(), String> {
        let guest = self.guest(vmid)?;
        if guest.has("protection") {
            return Err(format!("can't remove VM {vmid} - protection mode enabled"));
        }
        if guest.running.is_some() {
            return Err(format!("VM {vmid} is running - destroy failed"));
        }
        Ok(())
    }

    /// What stands against removing a guest once its task runs.
    pub(super) fn judge_destroy(&self, vmid: u32) -> Result<(), String> {
        self.removable(vmid)?;
        self.unlocked(vmid).map(|_| ())
    }

    /// Removes a guest with the disks in its config, and if asked to sweep, with every disk of its number.
    pub(super) fn finish_destroy(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        (purge, sweep): (bool, bool),
        log: &mut Vec<String>,
    ) -> Result<(), String> {
        let guest = self.guest(vmid)?;
        let held: Vec<String> = guest.config.values().filter_map(|text| volume_of(text)).collect();
        self.volumes
            .retain(|volid, volume| volume.vmid != Some(vmid) || !(sweep || held.contains(volid)));
        if purge {
            log.push(format!("purging VM {vmid} from related configurations.."));
        }
        self.guests.remove(&vmid);
        turn.signal(Signal::VmDestroyed { vmid });
        Ok(())
    }
}
