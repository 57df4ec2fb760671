//! Finds what serves a call: who may, with which parameters, by which verb.

use super::form::{parameters, segment};
use super::reply::{Answer, Refusal};
use super::schema::schema;
use super::{Proxmox, Request, Turn};
use crate::turn::HttpCall;

impl Proxmox {
    /// Serves a call: who calls, what is called, whether he may, whether the node is there, whether the
    /// parameters are right; in the order of the real one.
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
        let segments: Vec<String> =
            path.split('/').filter(|piece| !piece.is_empty()).map(segment).collect();
        let Some((operation, path)) = schema().find(&call.method, &segments) else {
            let path = segments.join("/");
            let text = format!("Method '{} /{path}' not implemented", call.method);
            return Err(Refusal::Failed { status: 501, text });
        };
        if operation.closed {
            return Err(Refusal::denied(&format!(
                "URI '{}' not available with API token, need proper ticket.\n",
                operation.path
            )));
        }
        caller.check(&operation.check, &path)?;
        let request = Request { path, parameters, caller };
        let place = (operation.method.as_str(), operation.path.as_str());
        let node = request.path.get("node").cloned();
        if let Some(node) = node.as_ref().filter(|node| **node != self.node) {
            self.elsewhere(place, node)?;
        } else if self.troubles.down && node.is_some() {
            return Err(no_route());
        }
        operation.verify(&request.path, &request.parameters)?;
        match (place.1.strip_prefix("/nodes/{node}"), node) {
            (Some(rest), Some(node)) => {
                self.stands_on(&request, rest, &node)?;
                self.route_node(turn, &request, (place.0, rest))
            }
            _ => self.route_cluster(turn, &request, place),
        }
    }

    fn route_cluster(
        &self,
        turn: &Turn<'_>,
        request: &Request,
        place: (&str, &str),
    ) -> Result<Answer, Refusal> {
        match place {
            ("GET", "/version") => Ok(Self::version()),
            ("GET", "/access/permissions") => Self::permissions(request),
            ("GET", "/cluster/resources") => Ok(self.list_resources(request, turn.now)),
            ("GET", "/cluster/nextid") => self.next_id(request),
            ("GET", "/cluster/status") => Ok(self.cluster_status()),
            ("GET", "/cluster/tasks") => Ok(self.cluster_tasks(request)),
            ("GET", "/nodes") => Ok(self.list_nodes(request, turn.now)),
            ("GET", "/pools") => Self::list_pools(request),
            ("GET", "/pools/{poolid}") => Err(Self::no_pool(request)),
            other => Err(not_served(other)),
        }
    }

    fn route_node(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        place: (&str, &str),
    ) -> Result<Answer, Refusal> {
        if let Some(rest) = place.1.strip_prefix("/storage") {
            return self.route_storage(turn, request, (place.0, rest));
        }
        if let Some(rest) = place.1.strip_prefix("/qemu") {
            return self.route_guest(turn, request, (place.0, rest));
        }
        if let Some(rest) = place.1.strip_prefix("/lxc") {
            return self.route_container(turn, request, (place.0, rest));
        }
        let upid = request.path.get("upid").map(String::as_str).unwrap_or_default();
        match place {
            ("GET", "/status") => Ok(Answer::read(self.node_status(turn.now))),
            ("GET", "/network") => Ok(self.list_network(request)),
            ("GET", "/query-url-metadata") => self.url_metadata(request),
            ("GET", "/tasks") => Ok(self.list_tasks(request)),
            ("GET", "/tasks/{upid}/status") => self.task_status(request, upid),
            ("GET", "/tasks/{upid}/log") => self.task_log(turn.now, request, upid),
            ("DELETE", "/tasks/{upid}") => self.stop_task(turn, request, upid),
            other => Err(not_served(other)),
        }
    }

    fn route_storage(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        place: (&str, &str),
    ) -> Result<Answer, Refusal> {
        let of = |name: &str| request.path.get(name).map(String::as_str).unwrap_or_default();
        let (name, volume) = (of("storage"), of("volume"));
        match place {
            ("GET", "") => Ok(self.list_storages(request)),
            ("GET", "/{storage}/status") => self.storage_status(name),
            ("GET", "/{storage}/content") => self.list_content(name, request),
            ("GET", "/{storage}/content/{volume}") => self.show_volume(request, (name, volume)),
            ("DELETE", "/{storage}/content/{volume}") => {
                self.delete_volume(turn, request, (name, volume))
            }
            ("POST", "/{storage}/download-url") => self.download_url(turn, request, name),
            other => Err(not_served(other)),
        }
    }

    fn route_guest(
        &mut self,
        turn: &mut Turn<'_>,
        request: &Request,
        place: (&str, &str),
    ) -> Result<Answer, Refusal> {
        let vmid = request.vmid();
        match place {
            ("GET", "") => Ok(self.list_guests(request, turn.now, false)),
            ("POST", "") => self.create(turn, request),
            ("DELETE", "/{vmid}") => self.destroy(turn, request, vmid),
            ("GET", "/{vmid}/config") => self.guest_config(request, vmid),
            ("PUT", "/{vmid}/config") => self.update(turn, request, vmid, false),
            ("POST", "/{vmid}/config") => self.update(turn, request, vmid, true),
            ("GET", "/{vmid}/pending") => self.guest_pending(vmid),
            ("PUT", "/{vmid}/resize") => self.resize(turn, request, vmid),
            ("GET", "/{vmid}/status/current") => self.guest_status(vmid, turn.now),
            ("POST", "/{vmid}/status/start") => self.power(turn, request, (vmid, "start")),
            ("POST", "/{vmid}/status/stop") => self.power(turn, request, (vmid, "stop")),
            ("POST", "/{vmid}/status/shutdown") => self.power(turn, request, (vmid, "shutdown")),
            ("POST", "/{vmid}/status/reboot") => self.reboot(turn, request, vmid),
            ("GET", "/{vmid}/cloudinit") => self.cloud_init(vmid),
            ("PUT", "/{vmid}/cloudinit") => self.write_cloud_init(vmid),
            ("POST" | "GET", "/{vmid}/agent/ping" | "/{vmid}/agent/network-get-interfaces") => {
                Err(self.no_agent(vmid))
            }
            other => Err(not_served(other)),
        }
    }

    /// Another node of the cluster: it must be there, and only looks, tasks and the end of its guests are served.
    fn elsewhere(&self, place: (&str, &str), node: &str) -> Result<(), Refusal> {
        if !self.other_nodes().contains(node) {
            return Err(Refusal::failed(format!(
                "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or \
                 service not known"
            )));
        }
        let (method, path) = (place.0, place.1.trim_start_matches("/nodes/{node}"));
        let looked = method == "GET"
            && ["/qemu", "/lxc", "/tasks", "/storage"].iter().any(|part| path.starts_with(part));
        let ended = matches!(
            (method, path),
            ("POST", "/qemu/{vmid}/status/stop" | "/lxc/{vmid}/status/stop")
                | ("DELETE", "/qemu/{vmid}" | "/lxc/{vmid}")
        );
        if looked || ended { Ok(()) } else { Err(no_route()) }
    }

    /// Whether the guest of a call stands on the node of the call.
    fn stands_on(&self, request: &Request, path: &str, node: &str) -> Result<(), Refusal> {
        let Some(guest) = self.guests.get(&request.vmid()) else { return Ok(()) };
        if guest.node.as_ref().unwrap_or(&self.node) == node {
            return Ok(());
        }
        let folder = if path.starts_with("/lxc") { "lxc" } else { "qemu-server" };
        let vmid = request.vmid();
        let words =
            format!("Configuration file 'nodes/{node}/{folder}/{vmid}.conf' does not exist");
        Err(Refusal::failed(words))
    }
}

impl Request {
    /// The guest's number in the path.
    fn vmid(&self) -> u32 {
        self.path.get("vmid").and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}

/// What the proxy of one node says about another that does not answer.
fn no_route() -> Refusal {
    Refusal::Bare { status: 595, reason: "No route to host".to_owned() }
}

/// A call that is in the schema's file and has no verb here.
fn not_served((method, path): (&str, &str)) -> Refusal {
    Refusal::Failed { status: 501, text: format!("Method '{method} {path}' not implemented") }
}
