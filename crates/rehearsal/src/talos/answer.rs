//! What the API of a machine answers, in the codes and words that Talos 1.13 was heard to use.

use serde_json::{Value, json};
use tonic::Code;

use super::config::Config;
use super::machine::{Api, Machine};
use super::{Call, ConfigText, Refusal, Reply, Talos};
use crate::turn::Turn;

impl Talos {
    /// Takes a config: in maintenance mode the machine begins its life as a node.
    pub(super) fn apply(
        &mut self,
        turn: &mut Turn<'_>,
        vmid: u32,
        text: &ConfigText,
        dry_run: bool,
    ) -> Result<Reply, Refusal> {
        let machine = self.machines.get_mut(&vmid).ok_or_else(Refusal::gone)?;
        let config = Config::read(&text.0)?;
        if dry_run {
            let details = "Applied configuration without a reboot (skipped in dry-run).";
            return Ok(Reply::Applied(details.to_owned()));
        }
        if machine.api == Api::Maintenance && machine.config().is_some() {
            // Sent twice before the listener changed: the first one holds.
            return Err(Refusal::new(
                Code::FailedPrecondition,
                "configuration is already being applied",
            ));
        }
        let first = machine.api == Api::Maintenance;
        let role_changes =
            machine.config().is_some_and(|own| own.control_plane != config.control_plane);
        if role_changes {
            return Err(Refusal::new(
                Code::InvalidArgument,
                "1 error occurred:\n\t* the machine type cannot be changed after the first config\n\n",
            ));
        }
        machine.disk.config = Some(config);
        if first {
            self.configured(turn, vmid);
        }
        Ok(Reply::Applied("Applied configuration without a reboot".to_owned()))
    }

    /// Starts a new etcd. Like the real one it looks at its own disk alone: a second one elsewhere is possible.
    pub(super) fn bootstrap(&mut self, turn: &mut Turn<'_>, vmid: u32) -> Result<Reply, Refusal> {
        let machine = self.machines.get_mut(&vmid).ok_or_else(Refusal::gone)?;
        only_on_control_planes(machine, "bootstrap")?;
        if !machine.running.runtime {
            return Err(Refusal::new(Code::FailedPrecondition, "bootstrap is not available yet"));
        }
        if machine.disk.etcd.is_some() {
            return Err(Refusal::new(Code::AlreadyExists, "etcd data directory is not empty"));
        }
        if !machine.running.bootstrap {
            machine.running.bootstrap = true;
            self.start_etcd(turn, vmid);
        }
        Ok(Reply::Bootstrapped)
    }

    /// Answers what changes nothing.
    pub(super) fn read(&self, vmid: u32, call: &Call) -> Result<Reply, Refusal> {
        let machine = self.machines.get(&vmid).ok_or_else(Refusal::gone)?;
        match call {
            Call::Version => Ok(Reply::Version(machine.version())),
            Call::EtcdMembers => self.members(machine),
            Call::EtcdStatus => self.etcd_status(vmid, machine),
            Call::Services => Ok(Reply::Services(services(machine, self.member_well(machine)))),
            Call::Resources { namespace, kind } => {
                self.resources(vmid, machine, namespace, kind).map(Reply::Resources)
            }
            Call::Apply { .. } | Call::Bootstrap => Err(Refusal::gone()),
        }
    }

    fn members(&self, machine: &Machine) -> Result<Reply, Refusal> {
        only_on_control_planes(machine, "member list")?;
        let (number, own) = running_member(machine)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        if etcd.members.values().any(|member| member.id == own && member.learner) {
            let text = "etcdserver: rpc not supported for learner";
            return Err(Refusal::new(Code::Unavailable, text));
        }
        if !self.healthy(number) {
            return Err(Refusal::Waits);
        }
        Ok(Reply::Members(etcd.members.values().cloned().collect()))
    }

    /// Whether the machine's own member of etcd is in a quorum, or only listens.
    fn member_well(&self, machine: &Machine) -> bool {
        machine.disk.etcd.is_some_and(|(number, _)| self.healthy(number))
    }

    fn etcd_status(&self, vmid: u32, machine: &Machine) -> Result<Reply, Refusal> {
        only_on_control_planes(machine, "etcd status")?;
        let (number, member) = running_member(machine)?;
        let etcd = self.etcds.get(&number).ok_or(Refusal::Waits)?;
        // Whoever votes and has the lowest number leads: who it is matters to nobody here.
        let leader = self.voters(etcd).next().filter(|_| self.healthy(number));
        let learner = etcd.members.get(&vmid).is_some_and(|member| member.learner);
        Ok(Reply::Status { member, leader: leader.map_or(0, |(_, member)| member.id), learner })
    }

    fn resources(
        &self,
        vmid: u32,
        machine: &Machine,
        namespace: &str,
        kind: &str,
    ) -> Result<Vec<(String, String)>, Refusal> {
        let one = |id: &str, spec: Value| vec![(id.to_owned(), spec)];
        let (home, found) = match kind {
            "MachineStatuses.runtime.talos.dev" => {
                ("runtime", one("machine", status(machine, self.member_well(machine))))
            }
            "SystemInformations.hardware.talos.dev" => {
                ("hardware", one("systeminformation", system_information(machine)))
            }
            "ExtensionStatuses.runtime.talos.dev" => ("runtime", extensions(machine)),
            "AddressStatuses.net.talos.dev" => ("network", self.addresses(vmid, machine)),
            "HostnameStatuses.net.talos.dev" => {
                let spec = json!({ "hostname": machine.hostname(), "domainname": "" });
                ("network", one("hostname", spec))
            }
            "MachineConfigs.config.talos.dev" if machine.api != Api::Secure => {
                return Err(Refusal::new(Code::PermissionDenied, "not authorized"));
            }
            other => {
                let text = format!("resource type \"{other}\" is not supported");
                return Err(Refusal::new(Code::PermissionDenied, text));
            }
        };
        if home != namespace {
            return Ok(Vec::new());
        }
        let yaml = |spec: &Value| yaml_serde::to_string(spec).unwrap_or_default();
        Ok(found.iter().map(|(id, spec)| (id.clone(), yaml(spec))).collect())
    }

    fn addresses(&self, vmid: u32, machine: &Machine) -> Vec<(String, Value)> {
        let own = machine.address().map(|address| format!("{address}/24"));
        let shared = self.held_vip(vmid).map(|address| format!("{address}/32"));
        shared
            .into_iter()
            .chain(own)
            .map(|address| {
                let spec = json!({ "address": address, "linkName": "eth0", "family": "inet4" });
                (format!("eth0/{address}"), spec)
            })
            .collect()
    }
}

fn only_on_control_planes(machine: &Machine, what: &str) -> Result<(), Refusal> {
    if machine.is_control_plane() && machine.api == Api::Secure {
        return Ok(());
    }
    let text = format!("{what} is only available on control plane nodes");
    Err(Refusal::new(Code::Unimplemented, text))
}

/// Of which etcd a machine's own member runs; before that Talos says nothing at all.
fn running_member(machine: &Machine) -> Result<(u64, u64), Refusal> {
    machine.disk.etcd.filter(|_| machine.runs_etcd()).ok_or(Refusal::Waits)
}

/// The stage and what is missing.
fn status(machine: &Machine, etcd_well: bool) -> Value {
    if machine.config().is_none() {
        return json!({
            "stage": "maintenance",
            "status": { "ready": true, "unmetConditions": [] },
        });
    }
    let running = &machine.running;
    let services = services(machine, etcd_well);
    let booting = services.iter().any(|(_, state, _)| state != "Running");
    let missing: Vec<String> = services
        .into_iter()
        .filter_map(|(name, state, health)| match (state.as_str(), health) {
            ("Running", Some(false)) => Some(format!("{name} not healthy")),
            ("Running", _) => None,
            _ => Some(format!("{name} not running")),
        })
        .collect();
    let mut unmet = Vec::new();
    if !missing.is_empty() {
        unmet.push(json!({ "name": "services", "reason": missing.join(", ") }));
    }
    let name = machine.hostname();
    if !running.joined {
        let reason = format!("node \"{name}\" status is not available yet");
        unmet.push(json!({ "name": "nodeReady", "reason": reason }));
    } else if !running.ready {
        unmet.push(
            json!({ "name": "nodeReady", "reason": format!("node \"{name}\" is not ready") }),
        );
    }
    let stage = if booting { "booting" } else { "running" };
    json!({ "stage": stage, "status": { "ready": unmet.is_empty(), "unmetConditions": unmet } })
}

/// Name, state and health of each service.
fn services(machine: &Machine, etcd_well: bool) -> Vec<(String, String, Option<bool>)> {
    let service = |name: &str, runs: bool, else_state: &str| {
        let state = if runs { "Running" } else { else_state };
        (name.to_owned(), state.to_owned(), runs.then_some(true))
    };
    let mut services = vec![service("apid", true, ""), service("containerd", true, "")];
    if machine.config().is_some() {
        let running = &machine.running;
        let next = if running.runtime { "Preparing" } else { "Waiting" };
        services.push(service("cri", running.runtime, "Starting"));
        if machine.is_control_plane() {
            let (name, state, health) = service("etcd", running.etcd, next);
            services.push((name, state, health.map(|_| etcd_well)));
        }
        services.push(service("kubelet", running.kubelet, next));
        if machine.is_control_plane() {
            services.push(service("trustd", running.runtime, "Waiting"));
        }
    }
    services.push(service("machined", true, ""));
    services.sort();
    services
}

fn system_information(machine: &Machine) -> Value {
    json!({
        "manufacturer": "QEMU",
        "productName": "Standard PC (Q35 + ICH9, 2009)",
        "version": "pc-q35-9.2",
        "uuid": machine.facts.uuid,
        "wakeUpType": "Power Switch",
    })
}

/// The image's extensions and, as the last of them, the schematic it was made from.
fn extensions(machine: &Machine) -> Vec<(String, Value)> {
    let extension = |name: &str, version: &str, author: &str| {
        json!({
            "image": format!("{name}.sqsh"),
            "metadata": {
                "name": name,
                "version": version,
                "author": author,
                "description": "",
                "compatibility": { "talos": { "version": "" } },
            },
        })
    };
    let version = machine.version();
    let mut found: Vec<Value> = machine
        .facts
        .extensions
        .iter()
        .map(|name| name.rsplit('/').next().unwrap_or(name))
        .map(|name| extension(name, &version, "Sidero Labs"))
        .collect();
    found.push(extension("schematic", machine.schematic(), "Image Factory"));
    found.into_iter().enumerate().map(|(index, spec)| (index.to_string(), spec)).collect()
}
