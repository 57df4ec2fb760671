//! Calls that castle does not need but other clients make: containers, pending changes, cloud-init, the guest agent.

use serde_json::{Value, json};

use super::drive::volume_of;
use super::guest::Guest;
use super::reply::{Answer, Refusal};
use super::task::Work;
use super::{Proxmox, Request, Turn};

impl Proxmox {
    /// Containers: others made them, and others may stop and remove them.
    pub(super) fn route_container(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        place: (&str, &str),
    ) -> Result<Answer, Refusal> {
        let vmid = request.path.get("vmid").and_then(|text| text.parse().ok()).unwrap_or_default();
        if place == ("GET", "") {
            return Ok(self.list_guests(request, turn.now, true));
        }
        if place == ("POST", "/{vmid}/status/stop") {
            return Ok(self.begin(turn, request, Work::StopContainer { vmid }));
        }
        let guest = self.container(vmid).map_err(Refusal::failed)?;
        match place {
            ("GET", "/{vmid}/config") => {
                let mut shown = json!({
                    "arch": "amd64", "cores": 1, "hostname": guest.option("name").unwrap_or("CT"),
                    "memory": 512, "ostype": "debian", "swap": 512, "digest": guest.digest(),
                });
                for (option, value) in guest.config.iter().filter(|(option, _)| *option != "name") {
                    shown[option] = super::guest::shown_option(option, value);
                }
                Ok(Answer::read(shown))
            }
            ("GET", "/{vmid}/status/current") => Ok(self.shown_status(vmid, guest, turn.now)),
            _ => {
                if guest.has("protection") {
                    let words = format!("can't remove CT {vmid} - protection mode enabled");
                    return Err(Refusal::failed(words));
                }
                if guest.running.is_some() {
                    let words = format!("unable to destroy CT {vmid} - container is running");
                    return Err(Refusal::failed(words));
                }
                let asked = request.parameters.get("destroy-unreferenced-disks");
                let sweep = asked.is_some_and(|text| text == "1");
                Ok(self.begin(turn, request, Work::DestroyContainer { vmid, sweep }))
            }
        }
    }

    /// A container by its number.
    pub(super) fn container(&self, vmid: u32) -> Result<&Guest, String> {
        let found = self.guests.get(&vmid).filter(|guest| guest.container);
        found.ok_or_else(|| {
            format!("Configuration file 'nodes/{}/lxc/{vmid}.conf' does not exist", self.node)
        })
    }

    /// Switches a container off.
    pub(super) fn finish_container_stop(&mut self, vmid: u32) -> Result<(), String> {
        if self.container(vmid)?.running.is_none() {
            return Err(format!("CT {vmid} not running"));
        }
        if let Some(guest) = self.guests.get_mut(&vmid) {
            guest.running = None;
        }
        Ok(())
    }

    /// Removes a container with its own volumes, and if asked to sweep, with every volume of its number.
    pub(super) fn finish_container_destroy(
        &mut self,
        vmid: u32,
        sweep: bool,
    ) -> Result<(), String> {
        let guest = self.container(vmid)?;
        let held: Vec<String> = guest.config.values().filter_map(|text| volume_of(text)).collect();
        self.volumes
            .retain(|volid, volume| volume.vmid != Some(vmid) || !(sweep || held.contains(volid)));
        self.guests.remove(&vmid);
        Ok(())
    }

    /// `GET /nodes/N/qemu/ID/pending`: each option with its value, and with what waits for the next start.
    pub(super) fn guest_pending(&self, vmid: u32) -> Result<Answer, Refusal> {
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        let mut listed: Vec<Value> = Vec::new();
        for (name, value) in &guest.config {
            let mut entry = json!({"key": name, "value": super::guest::shown_option(name, value)});
            match guest.pending.get(name) {
                None => {}
                Some(Some(new)) => entry["pending"] = super::guest::shown_option(name, new),
                Some(None) => entry["delete"] = json!(1),
            }
            listed.push(entry);
        }
        for (name, value) in guest.pending.iter().filter(|(n, _)| !guest.config.contains_key(*n)) {
            if let Some(value) = value {
                let shown = super::guest::shown_option(name, value);
                listed.push(json!({"key": name, "pending": shown}));
            }
        }
        listed.push(json!({"key": "digest", "value": guest.digest()}));
        Ok(Answer::read(json!(listed)))
    }

    /// `GET /nodes/N/qemu/ID/cloudinit`: the options that go into the drive.
    pub(super) fn cloud_init(&self, vmid: u32) -> Result<Answer, Refusal> {
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        let goes_in = |name: &str| {
            name.starts_with("ci") || matches!(name, "nameserver" | "searchdomain" | "sshkeys")
        };
        let listed: Vec<Value> = guest
            .config
            .iter()
            .filter(|(name, _)| goes_in(name))
            .map(|(name, value)| {
                json!({"key": name, "value": super::guest::shown_option(name, value)})
            })
            .collect();
        Ok(Answer::read(json!(listed)))
    }

    /// `PUT /nodes/N/qemu/ID/cloudinit`: the drive is written anew, with what is in it already.
    pub(super) fn write_cloud_init(&self, vmid: u32) -> Result<Answer, Refusal> {
        self.unlocked(vmid).map_err(Refusal::failed)?;
        Ok(Answer::read(Value::Null))
    }

    /// Why no agent answers: none is asked for, the VM is off, or nothing listens in the guest.
    pub(super) fn no_agent(&self, vmid: u32) -> Refusal {
        let guest = match self.guest(vmid) {
            Ok(guest) => guest,
            Err(words) => return Refusal::failed(words),
        };
        let agent = guest.option("agent").unwrap_or("0");
        if !agent.split(',').any(|piece| matches!(piece, "1" | "enabled=1")) {
            return Refusal::failed("No QEMU guest agent configured");
        }
        if guest.running.is_none() {
            return Refusal::failed(format!("VM {vmid} is not running"));
        }
        Refusal::failed("QEMU guest agent is not running")
    }
}
