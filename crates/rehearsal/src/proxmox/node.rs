//! The node and its cluster as the API shows them: versions, memory, networks, free numbers.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::guest::Guest;
use super::reply::{Answer, Refusal};
use super::{HOST_CORES, HOST_MEMORY, Proxmox, Request, STORAGE_SIZE};

/// The version that the emulation was held against.
const VERSION: (&str, &str, &str) = ("9.2.11", "9.2", "14a22df35955d97d");

impl Proxmox {
    /// `GET /version`.
    pub(super) fn version() -> Answer {
        let (version, release, id) = VERSION;
        Answer::read(json!({"version": version, "release": release, "repoid": id}))
    }

    /// `GET /nodes`.
    pub(super) fn list_nodes(&self, request: &Request, now: u64) -> Answer {
        Answer::read(json!(self.shown_nodes(request, now)))
    }

    /// `GET /cluster/status`: a cluster has a name and a quorum, a single node only itself.
    pub(super) fn cluster_status(&self) -> Answer {
        let others = self.other_nodes();
        let mut listed = Vec::new();
        if !others.is_empty() {
            listed.push(json!({
                "id": "cluster", "type": "cluster", "name": "lan", "nodes": 1 + others.len(),
                "quorate": 1, "version": 2,
            }));
        }
        for (at, name) in [self.node.as_str()].into_iter().chain(others).enumerate() {
            listed.push(json!({
                "id": format!("node/{name}"), "type": "node", "name": name, "nodeid": at + 1,
                "ip": format!("192.168.1.{}", at + 2), "level": "", "local": u8::from(at == 0),
                "online": u8::from(at > 0 || !self.troubles.down),
            }));
        }
        Answer::read(json!(listed))
    }

    /// `GET /cluster/nextid`.
    pub(super) fn next_id(&self, request: &Request) -> Result<Answer, Refusal> {
        if let Some(vmid) = request.parameters.get("vmid").and_then(|text| text.parse().ok()) {
            let vmid: u32 = vmid;
            if self.guests.contains_key(&vmid) {
                return Err(Refusal::parameter("vmid", format!("VM {vmid} already exists")));
            }
            return Ok(Answer::read(json!(vmid.to_string())));
        }
        let free = (100_u32..1_000_000).find(|vmid| !self.guests.contains_key(vmid));
        let free = free.ok_or_else(|| Refusal::failed("unable to get any free VMID"))?;
        Ok(Answer::read(json!(free.to_string())))
    }

    /// `GET /pools`: those that the caller may see; what is in them is told by nobody here.
    pub(super) fn list_pools(request: &Request) -> Result<Answer, Refusal> {
        match request.parameters.get("poolid") {
            Some(_) => Err(Self::no_pool(request)),
            None => Ok(Answer::read(json!(request.caller.pools()))),
        }
    }

    /// What is said about a pool that is not there.
    pub(super) fn no_pool(request: &Request) -> Refusal {
        let pool = request.path.get("poolid").or_else(|| request.parameters.get("poolid"));
        Refusal::failed(format!("pool '{}' does not exist", pool.cloned().unwrap_or_default()))
    }

    /// The nodes of the cluster beside this one: those with guests, or with tasks that were about guests.
    pub(super) fn other_nodes(&self) -> BTreeSet<&str> {
        let carrying = self.guests.values().filter_map(|guest| guest.node.as_deref());
        carrying.chain(self.tasks.values().filter_map(|task| task.elsewhere.as_deref())).collect()
    }

    /// The nodes in lists, with figures for those who may audit them.
    pub(super) fn shown_nodes(&self, request: &Request, now: u64) -> Vec<Value> {
        let shown = |name: &str, online: bool| {
            let status = if online { "online" } else { "offline" };
            json!({
                "id": format!("node/{name}"), "node": name, "type": "node", "status": status,
                "level": "",
            })
        };
        let mut own = shown(&self.node, !self.troubles.down);
        let audited = request.caller.may(&format!("/nodes/{}", self.node), "Sys.Audit");
        if let Some(own) = own.as_object_mut().filter(|_| audited && !self.troubles.down) {
            for (key, value) in [
                ("uptime", json!(now / 1000 + 3600)),
                ("cpu", json!(0.02)),
                ("maxcpu", json!(HOST_CORES)),
                ("mem", json!(self.memory_used())),
                ("maxmem", json!(HOST_MEMORY)),
                ("disk", json!(8_u64 << 30)),
                ("maxdisk", json!(STORAGE_SIZE)),
            ] {
                own.insert(key.to_owned(), value);
            }
        }
        let others = self.other_nodes().into_iter().map(|name| shown(name, true));
        [own].into_iter().chain(others).collect()
    }

    /// What the host itself and the guests that run take of the memory.
    fn memory_used(&self) -> u64 {
        let here = |guest: &Guest| guest.running.is_some() && guest.node.is_none();
        let running = self.guests.iter().filter(|(_, guest)| here(guest));
        let guests: u64 = running.map(|(id, guest)| self.facts(*id, guest).memory_mib << 20).sum();
        (2 << 30) + guests
    }

    /// `GET /nodes/N/status`.
    pub(super) fn node_status(&self, now: u64) -> Value {
        let used = self.memory_used();
        let (version, _, id) = VERSION;
        json!({
            "pveversion": format!("pve-manager/{version}/{id}"),
            "kversion": "Linux 6.17.2-1-pve #1 SMP PREEMPT_DYNAMIC PMX",
            "uptime": now / 1000 + 3600,
            "cpu": 0.02,
            "wait": 0,
            "idle": 0,
            "loadavg": ["0.10", "0.12", "0.09"],
            "cpuinfo": {
                "model": "AMD EPYC 7302P 16-Core Processor",
                "cpus": HOST_CORES,
                "cores": HOST_CORES,
                "sockets": 1,
                "hvm": "1",
                "mhz": "3000.000",
                "user_hz": 100,
            },
            "memory": {
                "total": HOST_MEMORY,
                "used": used,
                "free": HOST_MEMORY.saturating_sub(used),
                "available": HOST_MEMORY.saturating_sub(used),
            },
            "swap": {"total": 0, "used": 0, "free": 0},
            "ksm": {"shared": 0},
            "rootfs": {
                "total": STORAGE_SIZE,
                "used": 8_u64 << 30,
                "free": STORAGE_SIZE - (8 << 30),
                "avail": STORAGE_SIZE - (8 << 30),
            },
        })
    }

    /// `GET /nodes/N/network`: bridges are shown to those who may use them.
    pub(super) fn list_network(&self, request: &Request) -> Answer {
        let kind = request.parameters.get("type").map(String::as_str);
        let bridges = kind.is_none_or(|kind| {
            matches!(kind, "bridge" | "any_bridge" | "any_local_bridge" | "include_sdn")
        });
        let mut listed = Vec::new();
        if kind.is_none_or(|kind| kind == "eth") {
            listed.push(json!({
                "iface": "eno1", "type": "eth", "active": 1, "exists": 1, "method": "manual",
                "method6": "manual", "priority": 3, "families": ["inet"],
            }));
        }
        for (at, name) in self.bridges.iter().enumerate().filter(|_| bridges) {
            if !self.shows_network(&request.caller, name) {
                continue;
            }
            listed.push(json!({
                "iface": name, "type": "bridge", "active": 1, "autostart": 1, "method": "manual",
                "method6": "manual", "priority": 4 + at, "families": ["inet"],
                "bridge_ports": "eno1", "bridge_stp": "off", "bridge_fd": "0",
            }));
        }
        let vnets = kind.is_some_and(|kind| matches!(kind, "any_bridge" | "vnet" | "include_sdn"));
        for name in self.vnets.keys().filter(|_| vnets) {
            if self.shows_network(&request.caller, name) {
                listed.push(json!({ "iface": name, "type": "vnet", "active": "1" }));
            }
        }
        Answer::read(json!(listed))
    }
}
