//! Finds what serves a call: who may, with which parameters, by which verb.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::form::{parameters, segment};
use super::guest::Guest;
use super::reply::{Answer, Refusal};
use super::schema::{
    CONFIG, CONTENT, DELETE_VOLUME, DOWNLOAD, GUESTS, NETWORK, NEXT_ID, NOTHING, PERMISSIONS,
    RESOURCES, STORAGES, TASK_LOG, TASKS, verify,
};
use super::{HOST_CORES, HOST_MEMORY, Proxmox, Request, STORAGE_SIZE, Turn};
use crate::turn::HttpCall;

/// The version that the emulation was held against.
const VERSION: (&str, &str, &str) = ("9.2.11", "9.2", "14a22df35955d97d");

impl Proxmox {
    /// Serves a call.
    pub(super) fn serve(
        &mut self,
        turn: &mut Turn<'_>,
        call: &HttpCall,
    ) -> Result<Answer, Refusal> {
        if !matches!(call.method.as_str(), "GET" | "POST" | "PUT" | "DELETE") {
            let reason = format!("method '{}' not available", call.method);
            return Err(Refusal::Bare { status: 501, reason });
        }
        let Some(path) = call.path.strip_prefix("/api2/json") else {
            let reason = format!("no such file '{}'", call.path);
            return Err(Refusal::Bare { status: 404, reason });
        };
        let caller = self.caller(call)?;
        let parameters = parameters(call)?;
        let segments = path.split('/').filter(|piece| !piece.is_empty()).map(segment).collect();
        let request = Request { method: call.method.clone(), segments, parameters, caller };
        let pieces: Vec<&str> = request.segments.iter().map(String::as_str).collect();
        self.route(turn, &request, &pieces)
    }

    fn route(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        pieces: &[&str],
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        match (request.method.as_str(), pieces) {
            ("GET", ["version"]) => {
                verify(given, &[NOTHING])?;
                let (version, release, id) = VERSION;
                Ok(Answer::read(json!({"version": version, "release": release, "repoid": id})))
            }
            ("GET", ["access", "permissions"]) => {
                verify(given, &[PERMISSIONS])?;
                Ok(Self::permissions(request))
            }
            ("POST", ["access", "ticket"]) => Err(Refusal::denied(
                "URI '/access/ticket' not available with API token, need proper ticket.\n",
            )),
            ("GET", ["cluster", "resources"]) => {
                verify(given, &[RESOURCES])?;
                Ok(self.list_resources(request, turn.now))
            }
            ("GET", ["cluster", "nextid"]) => {
                verify(given, &[NEXT_ID])?;
                self.next_id(given.get("vmid").and_then(|text| text.parse().ok()))
            }
            ("GET", ["nodes"]) => {
                verify(given, &[NOTHING])?;
                Ok(Answer::read(json!(self.shown_nodes(turn.now))))
            }
            (_, ["nodes", node, rest @ ..]) if *node != self.node => {
                self.elsewhere(turn, request, node, rest)
            }
            (_, ["nodes", ..]) if self.troubles.down => Err(no_route()),
            (_, ["nodes", _, "storage", rest @ ..]) => self.route_storage(turn, request, rest),
            (_, ["nodes", _, "qemu", rest @ ..]) => self.route_guest(turn, request, rest),
            ("GET", ["nodes", _, rest @ ..]) => self.route_node(turn, request, rest),
            _ => Err(not_implemented(request)),
        }
    }

    /// Another node of the cluster. Only looks at its guests are served.
    fn elsewhere(
        &self,
        turn: &Turn<'_>,
        request: &Request,
        node: &str,
        pieces: &[&str],
    ) -> Result<Answer, Refusal> {
        if !self.other_nodes().contains(node) {
            return Err(Refusal::failed(format!(
                "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or \
                 service not known"
            )));
        }
        let guest = |id: &str| {
            let found = id.parse().ok().and_then(|vmid: u32| self.guests.get_key_value(&vmid));
            found.filter(|(_, guest)| guest.node.as_deref() == Some(node)).ok_or_else(|| {
                Refusal::failed(format!(
                    "Configuration file 'nodes/{node}/qemu-server/{id}.conf' does not exist"
                ))
            })
        };
        match (request.method.as_str(), pieces) {
            ("GET", ["qemu", id, "config"]) => {
                request.caller.need(&format!("/vms/{id}"), "VM.Audit")?;
                Ok(Self::shown_config(guest(id)?.1, true))
            }
            ("GET", ["qemu", id, "status", "current"]) => {
                request.caller.need(&format!("/vms/{id}"), "VM.Audit")?;
                let (vmid, guest) = guest(id)?;
                Ok(self.shown_status(*vmid, guest, turn.now))
            }
            _ => Err(no_route()),
        }
    }

    /// The nodes of the cluster that only others use.
    pub(super) fn other_nodes(&self) -> BTreeSet<&str> {
        self.guests.values().filter_map(|guest| guest.node.as_deref()).collect()
    }

    fn route_node(
        &self,
        turn: &Turn<'_>,
        request: &Request,
        pieces: &[&str],
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        match pieces {
            ["status"] => {
                request.caller.need(&format!("/nodes/{}", self.node), "Sys.Audit")?;
                verify(given, &[NOTHING])?;
                Ok(Answer::read(self.node_status(turn.now)))
            }
            ["network"] => {
                verify(given, &[NETWORK])?;
                Ok(self.list_network(given.get("type").map(String::as_str)))
            }
            ["lxc"] => {
                verify(given, &[NOTHING])?;
                Ok(self.list_guests(request, turn.now, true))
            }
            ["tasks"] => {
                verify(given, &[TASKS])?;
                Ok(self.list_tasks(request))
            }
            ["tasks", upid, "status"] => {
                verify(given, &[NOTHING])?;
                self.task_status(request, upid)
            }
            ["tasks", upid, "log"] => {
                verify(given, &[TASK_LOG])?;
                self.task_log(request, upid)
            }
            _ => Err(not_implemented(request)),
        }
    }

    fn route_storage(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        pieces: &[&str],
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        let audit = |name: &str| {
            if request.caller.may("Datastore.Audit")
                || request.caller.may("Datastore.AllocateSpace")
            {
                return Ok(());
            }
            let on = format!("/storage/{name}, Datastore.Audit|Datastore.AllocateSpace");
            Err(Refusal::denied(&on))
        };
        match (request.method.as_str(), pieces) {
            ("GET", []) => {
                verify(given, &[STORAGES])?;
                Ok(self.list_storages(request))
            }
            ("GET", [name, "status"]) => {
                audit(name)?;
                verify(given, &[NOTHING])?;
                self.storage_status(name)
            }
            ("GET", [name, "content"]) => {
                audit(name)?;
                verify(given, &[CONTENT])?;
                self.list_content(name, given)
            }
            ("DELETE", [name, "content", volume @ ..]) if !volume.is_empty() => {
                verify(given, &[DELETE_VOLUME])?;
                request.caller.need(&format!("/storage/{name}"), "Datastore.AllocateSpace")?;
                self.delete_volume(turn, request, (name, &volume.join("/")))
            }
            ("POST", [name, "download-url"]) => {
                let path = format!("/storage/{name}");
                request.caller.need(&path, "Datastore.AllocateTemplate")?;
                let far = request.caller.may("Sys.Audit") && request.caller.may("Sys.Modify");
                if !far {
                    let node = format!("/nodes/{}", self.node);
                    request.caller.need(&node, "Sys.AccessNetwork")?;
                }
                verify(given, &[DOWNLOAD])?;
                self.download_url(turn, request, name)
            }
            _ => Err(not_implemented(request)),
        }
    }

    fn route_guest(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        pieces: &[&str],
    ) -> Result<Answer, Refusal> {
        let given = &request.parameters;
        let method = request.method.as_str();
        let Some((id, rest)) = pieces.split_first() else {
            return match method {
                "GET" => {
                    verify(given, &[GUESTS])?;
                    Ok(self.list_guests(request, turn.now, false))
                }
                "POST" => self.create(turn, request),
                _ => Err(not_implemented(request)),
            };
        };
        let vmid = number(id)?;
        let need = |privilege: &str| request.caller.need(&format!("/vms/{vmid}"), privilege);
        match (method, rest) {
            ("GET", ["config"]) => {
                need("VM.Audit")?;
                verify(given, &[CONFIG])?;
                self.guest_config(request, vmid)
            }
            ("PUT" | "POST", ["config"]) => {
                need("VM.Config.Options")?;
                self.update(turn, request, vmid)
            }
            ("GET", ["status", "current"]) => {
                need("VM.Audit")?;
                verify(given, &[NOTHING])?;
                self.guest_status(vmid, turn.now)
            }
            ("POST", ["status", verb @ ("start" | "stop" | "shutdown")]) => {
                need("VM.PowerMgmt")?;
                self.power(turn, request, (vmid, verb))
            }
            ("PUT", ["resize"]) => {
                need("VM.Config.Disk")?;
                self.resize(turn, request, vmid)
            }
            ("DELETE", []) => {
                need("VM.Allocate")?;
                self.destroy(turn, request, vmid)
            }
            _ => Err(not_implemented(request)),
        }
    }

    fn next_id(&self, wanted: Option<u32>) -> Result<Answer, Refusal> {
        if let Some(vmid) = wanted {
            if self.guests.contains_key(&vmid) {
                return Err(Refusal::parameter("vmid", format!("VM {vmid} already exists")));
            }
            return Ok(Answer::read(json!(vmid.to_string())));
        }
        let free = (100_u32..1_000_000).find(|vmid| !self.guests.contains_key(vmid));
        let free = free.ok_or_else(|| Refusal::failed("unable to get any free VMID"))?;
        Ok(Answer::read(json!(free.to_string())))
    }

    /// The nodes in lists.
    pub(super) fn shown_nodes(&self, now: u64) -> Vec<Value> {
        let mut nodes = vec![self.shown_node(now)];
        nodes.extend(self.other_nodes().into_iter().map(|node| {
            json!({
                "id": format!("node/{node}"), "node": node, "type": "node", "status": "online",
                "level": "",
            })
        }));
        nodes
    }

    fn shown_node(&self, now: u64) -> Value {
        if self.troubles.down {
            return json!({
                "id": format!("node/{}", self.node), "node": self.node, "type": "node",
                "status": "offline", "level": "",
            });
        }
        json!({
            "id": format!("node/{}", self.node),
            "node": self.node,
            "type": "node",
            "status": "online",
            "level": "",
            "uptime": now / 1000 + 3600,
            "cpu": 0.02,
            "maxcpu": HOST_CORES,
            "mem": self.memory_used(),
            "maxmem": HOST_MEMORY,
            "disk": 8_u64 << 30,
            "maxdisk": STORAGE_SIZE,
        })
    }

    /// What the host itself and the guests that run take of the memory.
    fn memory_used(&self) -> u64 {
        let here = |guest: &Guest| guest.running.is_some() && guest.node.is_none();
        let running = self.guests.iter().filter(|(_, guest)| here(guest));
        let guests: u64 = running.map(|(id, guest)| self.facts(*id, guest).memory_mib << 20).sum();
        (2 << 30) + guests
    }

    fn node_status(&self, now: u64) -> Value {
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

    fn list_network(&self, kind: Option<&str>) -> Answer {
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
            listed.push(json!({
                "iface": name, "type": "bridge", "active": 1, "autostart": 1, "method": "manual",
                "method6": "manual", "priority": 4 + at, "families": ["inet"],
                "bridge_ports": "eno1", "bridge_stp": "off", "bridge_fd": "0",
            }));
        }
        Answer::read(json!(listed))
    }
}

fn number(id: &str) -> Result<u32, Refusal> {
    let wrong = || {
        let got = format!("type check ('integer') failed - got '{id}'");
        Refusal::parameter("vmid", got)
    };
    let vmid: u32 = id.parse().map_err(|_| wrong())?;
    if (100..=999_999_999).contains(&vmid) {
        return Ok(vmid);
    }
    Err(Refusal::parameter("vmid", "invalid format - value does not look like a valid VM ID\n"))
}

/// What the proxy of one node says about another that does not answer.
fn no_route() -> Refusal {
    Refusal::Bare { status: 595, reason: "No route to host".to_owned() }
}

fn not_implemented(request: &Request) -> Refusal {
    let path = request.segments.join("/");
    let text = format!("Method '{} /{path}' not implemented", request.method);
    Refusal::Failed { status: 501, text }
}
