//! Guests as the API shows them: lists, status, config, and what a machine brings along when it starts.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::drive::{is_drive, volume_of};
use super::property::Property;
use super::reply::{Answer, Refusal};
use super::schema::schema;
use super::{Proxmox, Request};
use crate::turn::VmFacts;

/// How often the cluster hears of its guests, in milliseconds.
const ROUND: u64 = 10_000;

/// A guest: a VM or a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guest {
    /// Whether it is a container.
    pub(super) container: bool,
    pub(super) config: BTreeMap<String, String>,
    /// Changes that wait until it is switched off: the new value, or none for a removal.
    pub(super) pending: BTreeMap<String, Option<String>>,
    /// Since when it runs, in virtual milliseconds.
    pub(super) running: Option<u64>,
    /// Since when it ran, if it runs no more because its node went down with it, and nobody has switched it on again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fell: Option<u64>,
    /// Whether its node, which came back, switches it on or was the last to do so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) at_boot: bool,
    /// The task that made it: another guest of the same number has another one.
    #[serde(default)]
    pub(super) maker: u64,
    /// The other node of the cluster that it stands on, if so.
    pub(super) node: Option<String>,
    /// When it was last made or switched, and whether it ran before, if it was there.
    pub(super) switched: Option<(u64, Option<bool>)>,
}

impl Guest {
    /// A guest with this config, switched off.
    pub(super) fn new(config: BTreeMap<String, String>) -> Self {
        Self {
            container: false,
            config,
            pending: BTreeMap::new(),
            running: None,
            fell: None,
            at_boot: false,
            maker: 0,
            node: None,
            switched: None,
        }
    }

    /// Whether it runs as far as the cluster knows: a daemon tells it in rounds, so that it is late, and knows nothing
    /// of a guest that was made since the last one.
    fn broadcast(&self, now: u64) -> Option<bool> {
        match self.switched {
            Some((at, before)) if at / ROUND == now / ROUND => before,
            _ => Some(self.running.is_some()),
        }
    }

    /// One of its options.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.config.get(name).map(String::as_str)
    }

    /// Whether an option is set to 1.
    pub(super) fn has(&self, name: &str) -> bool {
        self.option(name) == Some("1")
    }

    /// The check sum that guards against lost updates.
    pub(super) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (name, value) in &self.config {
            hash.update(format!("{name}: {value}\n"));
        }
        hex::encode(hash.finalize())[..40].to_owned()
    }

    /// The config as it will be when pending changes are in.
    pub(super) fn coming(&self) -> BTreeMap<String, String> {
        let mut config = self.config.clone();
        for (name, value) in &self.pending {
            match value {
                Some(value) => config.insert(name.clone(), value.clone()),
                None => config.remove(name),
            };
        }
        config
    }

    fn number(&self, name: &str, otherwise: u64) -> u64 {
        self.option(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }

    /// Memory in MiB.
    fn memory(&self) -> u64 {
        let text = self.option("memory").unwrap_or("512");
        text.strip_prefix("current=").unwrap_or(text).parse().unwrap_or(512)
    }

    /// The drives that hold disks: not cloud-init, not media, not the firmware's variables.
    fn disks(&self) -> Vec<(&str, String)> {
        let media = |text: &str| text.split(',').any(|piece| piece == "media=cdrom");
        self.config
            .iter()
            .filter(|(name, text)| {
                is_drive(name) && !media(text) && *name != "efidisk0" && *name != "tpmstate0"
            })
            .filter_map(|(name, text)| Some((name.as_str(), volume_of(text)?)))
            .collect()
    }

    /// The drive it boots from: the first disk in its boot order, else its first disk.
    fn system_disk(&self) -> Option<(&str, String)> {
        let disks = self.disks();
        let order = self.option("boot").and_then(|boot| boot.strip_prefix("order="));
        let booted = order
            .iter()
            .flat_map(|order| order.split(';'))
            .find_map(|name| disks.iter().find(|(disk, _)| *disk == name));
        booted.or(disks.first()).cloned()
    }
}

impl Proxmox {
    /// A VM by its number, in the words of a config that is not there.
    pub(super) fn guest(&self, vmid: u32) -> Result<&Guest, String> {
        let found = self.guests.get(&vmid).filter(|guest| !guest.container);
        found.ok_or_else(|| self.no_config(&vmid.to_string()))
    }

    /// The words about a config that is not there.
    pub(super) fn no_config(&self, vmid: &str) -> String {
        format!("Configuration file 'nodes/{}/qemu-server/{vmid}.conf' does not exist", self.node)
    }

    /// The same, for a change.
    pub(super) fn guest_mut(&mut self, vmid: u32) -> Result<&mut Guest, String> {
        self.guest(vmid)?;
        self.guests.get_mut(&vmid).ok_or_else(|| "no such guest".to_owned())
    }

    /// A VM that nobody else works on.
    pub(super) fn unlocked(&self, vmid: u32) -> Result<&Guest, String> {
        let guest = self.guest(vmid)?;
        match guest.option("lock") {
            None => Ok(guest),
            Some(lock) => Err(format!("VM is locked ({lock})")),
        }
    }

    /// What a guest is called.
    pub(crate) fn guest_name(&self, vmid: u32) -> Option<&str> {
        Some(self.guests.get(&vmid)?.config.get("name")?.as_str())
    }

    /// `GET /nodes/N/qemu` and `GET /nodes/N/lxc`.
    pub(super) fn list_guests(&self, request: &Request, now: u64, containers: bool) -> Answer {
        let listed: Vec<Value> = self
            .guests
            .iter()
            .filter(|(_, guest)| guest.container == containers)
            .filter(|(_, guest)| {
                Some(guest.node.as_ref().unwrap_or(&self.node)) == request.path.get("node")
            })
            .filter(|(vmid, _)| request.caller.may(&format!("/vms/{vmid}"), "VM.Audit"))
            .map(|(vmid, guest)| {
                let mut shown = self.shown_guest(*vmid, guest, now);
                if containers {
                    // Containers' numbers come as text here, those of VMs do not.
                    shown.insert("vmid".to_owned(), json!(vmid.to_string()));
                    shown.insert("type".to_owned(), json!("lxc"));
                }
                Value::Object(shown)
            })
            .collect();
        Answer::read(json!(listed))
    }

    /// `GET /cluster/resources`.
    pub(super) fn list_resources(&self, request: &Request, now: u64) -> Answer {
        let kind = request.parameters.get("type").map(String::as_str);
        let mut listed = Vec::new();
        if kind.is_none_or(|kind| kind == "node") {
            listed.extend(self.shown_nodes(request, now).into_iter().map(|mut node| {
                node["cgroup-mode"] = json!(2);
                node
            }));
        }
        if kind.is_none_or(|kind| kind == "vm") {
            let seen = |vmid: &u32| request.caller.may(&format!("/vms/{vmid}"), "VM.Audit");
            for (vmid, guest) in self.guests.iter().filter(|(vmid, _)| seen(vmid)) {
                listed.push(Value::Object(self.resource(*vmid, guest, now)));
            }
        }
        if kind.is_none_or(|kind| kind == "storage") {
            let seen = |name: &str| request.caller.sees_storage(name);
            for (name, storage) in self.storages.iter().filter(|(name, _)| seen(name)) {
                listed.push(json!({
                    "id": format!("storage/{}/{name}", self.node),
                    "type": "storage",
                    "storage": name,
                    "node": self.node,
                    "status": if storage.enabled { "available" } else { "unknown" },
                    "maxdisk": storage.total,
                    "disk": storage.total - self.free_on(name),
                }));
            }
        }
        Answer::read(json!(listed))
    }

    /// A guest as the whole cluster knows it.
    fn resource(&self, vmid: u32, guest: &Guest, now: u64) -> Map<String, Value> {
        let mut shown = self.shown_guest(vmid, guest, now);
        let sort = if guest.container { "lxc" } else { "qemu" };
        let cores = shown.remove("cpus").unwrap_or(json!(1));
        for (key, value) in [
            ("maxcpu", cores),
            ("diskread", json!(0)),
            ("diskwrite", json!(0)),
            ("template", json!(u8::from(guest.has("template")))),
        ] {
            shown.insert(key.to_owned(), value);
        }
        let status = match guest.broadcast(now) {
            Some(true) => "running",
            Some(false) => "stopped",
            None => {
                shown.retain(|key, _| matches!(key.as_str(), "lock" | "tags" | "vmid"));
                "unknown"
            }
        };
        for (key, value) in [
            ("status", json!(status)),
            ("id", json!(format!("{sort}/{vmid}"))),
            ("type", json!(sort)),
            ("node", json!(guest.node.as_ref().unwrap_or(&self.node))),
        ] {
            shown.insert(key.to_owned(), value);
        }
        shown
    }

    fn shown_guest(&self, vmid: u32, guest: &Guest, now: u64) -> Map<String, Value> {
        let uptime = guest.running.map_or(0, |since| now.saturating_sub(since) / 1000);
        let memory = guest.memory() << 20;
        let disk = guest.system_disk().and_then(|(_, volid)| self.volumes.get(&volid));
        let busy = guest.running.is_some();
        let cores = guest.number("cores", 1) * guest.number("sockets", 1);
        let name = guest.option("name").map_or_else(|| format!("VM {vmid}"), str::to_owned);
        let mut shown = Map::new();
        let status = if busy { "running" } else { "stopped" };
        for (key, value) in [
            ("vmid", json!(vmid)),
            ("name", json!(name)),
            ("status", json!(status)),
            ("uptime", json!(uptime)),
            ("cpus", json!(cores)),
            ("cpu", json!(0)),
            ("maxmem", json!(memory)),
            ("mem", json!(if busy { memory / 4 } else { 0 })),
            ("memhost", json!(if busy { memory / 4 } else { 0 })),
            ("maxdisk", json!(disk.map_or(0, |volume| volume.capacity))),
            ("disk", json!(0)),
            ("netin", json!(0)),
            ("netout", json!(0)),
        ] {
            shown.insert(key.to_owned(), value);
        }
        for key in ["tags", "lock"] {
            if let Some(value) = guest.option(key) {
                shown.insert(key.to_owned(), json!(value));
            }
        }
        if guest.has("template") {
            shown.insert("template".to_owned(), json!(1));
        }
        shown
    }

    /// `GET /nodes/N/qemu/ID/status/current`.
    pub(super) fn guest_status(&self, vmid: u32, now: u64) -> Result<Answer, Refusal> {
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        Ok(self.shown_status(vmid, guest, now))
    }

    /// A VM's status, on whatever node.
    pub(super) fn shown_status(&self, vmid: u32, guest: &Guest, now: u64) -> Answer {
        let mut shown = self.shown_guest(vmid, guest, now);
        let status = shown.get("status").cloned().unwrap_or_default();
        shown.insert("qmpstatus".to_owned(), status);
        shown.insert("ha".to_owned(), json!({"managed": 0}));
        if guest.option("agent").is_some_and(|agent| !agent.starts_with('0')) {
            shown.insert("agent".to_owned(), json!(1));
        }
        if guest.config.keys().any(|name| name.starts_with("serial")) {
            shown.insert("serial".to_owned(), json!(1));
        }
        if guest.running.is_some() {
            shown.insert("pid".to_owned(), json!(20_000 + vmid));
        }
        Answer::read(Value::Object(shown))
    }

    /// `GET /nodes/N/qemu/ID/config`.
    pub(super) fn guest_config(&self, request: &Request, vmid: u32) -> Result<Answer, Refusal> {
        let guest = self.guest(vmid).map_err(Refusal::failed)?;
        let current = request.parameters.get("current").is_some_and(|text| text == "1");
        Ok(Self::shown_config(guest, current))
    }

    /// A VM's config, on whatever node.
    pub(super) fn shown_config(guest: &Guest, current: bool) -> Answer {
        let config = if current { guest.config.clone() } else { guest.coming() };
        let mut shown = Map::new();
        for (name, value) in &config {
            shown.insert(name.clone(), shown_option(name, value));
        }
        shown.insert("digest".to_owned(), json!(guest.digest()));
        Answer::read(Value::Object(shown))
    }

    /// What a VM brings along when it is switched on.
    pub(super) fn facts(&self, vmid: u32, guest: &Guest) -> VmFacts {
        let system = guest.system_disk();
        let volume =
            |name: &Option<(&str, String)>| name.as_ref().and_then(|(_, id)| self.volumes.get(id));
        let disk = volume(&system);
        let second =
            guest.disks().into_iter().find(|(name, _)| Some(*name) != system.as_ref().map(|s| s.0));
        let smbios = guest.option("smbios1").and_then(|text| Property::parse(text, None).ok());
        VmFacts {
            vmid,
            name: guest.option("name").map_or_else(|| format!("VM{vmid}"), str::to_owned),
            uuid: smbios
                .and_then(|property| property.options.get("uuid").cloned())
                .unwrap_or_default()
                .to_lowercase(),
            address: address(guest),
            disk: disk.map_or_else(String::new, |disk| format!("disk-{}", disk.serial)),
            image: disk.and_then(|disk| disk.image.clone()),
            disk_gib: disk.map_or(0, |disk| disk.capacity >> 30),
            data_disk_gib: volume(&second).map(|disk| disk.capacity >> 30),
            memory_mib: guest.memory(),
            cores: guest.number("cores", 1) * guest.number("sockets", 1),
            extensions: Vec::new(),
        }
    }
}

/// The address that cloud-init hands over: none without a cloud-init drive, whatever the config says.
fn address(guest: &Guest) -> Option<Ipv4Addr> {
    let drive = |(name, text): (&String, &String)| is_drive(name) && text.contains("-cloudinit");
    guest.config.iter().find(|entry| drive(*entry))?;
    let property = Property::parse(guest.option("ipconfig0")?, None).ok()?;
    property.options.get("ip")?.split('/').next()?.parse().ok()
}

/// Options that are numbers in the schema come as numbers, the rest as text.
pub(super) fn shown_option(name: &str, value: &str) -> Value {
    if name == "cipassword" {
        return json!("**********");
    }
    if schema().option(name).is_some_and(super::schema::Property::is_numeric) {
        return value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
    }
    json!(value)
}
