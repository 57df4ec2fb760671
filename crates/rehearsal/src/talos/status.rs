//! The services of a machine and its status, in the words and the order that Talos 1.13 was heard to use.

use serde_json::{Value, json};

use super::machine::Machine;

/// A service as it is now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Service {
    /// Its name.
    pub(super) id: &'static str,
    /// What it does.
    pub(super) state: &'static str,
    /// Whether it is well, if that is known.
    pub(super) healthy: Option<bool>,
    /// What it said when it came to do so.
    pub(super) message: String,
}

impl Service {
    fn running(id: &'static str, healthy: bool) -> Self {
        let message = if healthy { "Health check successful" } else { "Health check failed" };
        Self { id, state: "Running", healthy: Some(healthy), message: message.to_owned() }
    }

    fn other(id: &'static str, state: &'static str, message: impl Into<String>) -> Self {
        Self { id, state, healthy: None, message: message.into() }
    }
}

/// The services of a machine, by name.
pub(super) fn services(machine: &Machine, etcd_well: bool) -> Vec<Service> {
    let mut services = vec![Service::running("apid", true), Service::running("containerd", true)];
    if machine.config().is_some() {
        let running = &machine.running;
        services.push(if running.runtime {
            Service::running("cri", true)
        } else {
            Service::other("cri", "Starting", "Starting service")
        });
        if machine.is_control_plane() {
            services.push(etcd(machine, etcd_well));
        }
        services.push(kubelet(machine));
    }
    services.push(Service::running("machined", true));
    if machine.is_control_plane() {
        services.push(if !machine.running.runtime {
            waiting("trustd")
        } else if machine.troubles.clock_astray {
            Service::other("trustd", "Waiting", "Waiting for time sync")
        } else {
            Service::running("trustd", true)
        });
    }
    services
}

fn waiting(id: &'static str) -> Service {
    Service::other(id, "Waiting", "Waiting for service \"cri\" to be \"up\"")
}

fn etcd(machine: &Machine, well: bool) -> Service {
    let running = &machine.running;
    if running.etcd_left {
        Service::other("etcd", "Finished", "Service finished successfully")
    } else if running.etcd {
        Service::running("etcd", well)
    } else if !running.runtime {
        waiting("etcd")
    } else if machine.troubles.clock_astray {
        Service::other("etcd", "Waiting", "Waiting for time sync")
    } else {
        Service::other("etcd", "Preparing", "Running pre state")
    }
}

fn kubelet(machine: &Machine) -> Service {
    let running = &machine.running;
    if running.kubelet {
        Service::running("kubelet", true)
    } else if running.kubelet_failed {
        let image = &machine.wanted.kubelet;
        let words = format!(
            "Failed to run pre stage: 1 error(s) occurred:\n\tfailed to pull image \"{image}\": unexpected status: 429 Too Many Requests"
        );
        Service::other("kubelet", "Failed", words)
    } else if !running.runtime {
        waiting("kubelet")
    } else if machine.troubles.clock_astray {
        Service::other("kubelet", "Waiting", "Waiting for time sync")
    } else {
        Service::other("kubelet", "Preparing", "Running pre state")
    }
}

/// The stage and what is missing.
pub(super) fn status(machine: &Machine, services: &[Service]) -> Value {
    let content =
        |stage: &str| json!({"stage": stage, "status": {"ready": true, "unmetConditions": []}});
    if let Some(ending) = &machine.ending {
        return content(ending.sequence.stage());
    }
    if machine.config().is_none() {
        return content("maintenance");
    }
    let mut unmet = Vec::new();
    let mut miss = |name: &str, reason: String| unmet.push(json!({"name": name, "reason": reason}));
    if machine.troubles.clock_astray {
        miss("time", "time is not synced".to_owned());
    }
    let missing = missing(machine, services);
    if !missing.is_empty() {
        miss("services", missing.join(", "));
    }
    let name = machine.hostname();
    if machine.running.api_server && !machine.serves_kubernetes() {
        miss("staticPods", format!("kube-system/kube-apiserver-{name} not ready"));
    }
    if !machine.running.joined {
        miss("nodeReady", format!("node \"{name}\" status is not available yet"));
    } else if !machine.running.ready {
        miss("nodeReady", format!("node \"{name}\" is not ready"));
    }
    let stage = if machine.running.booted { "running" } else { "booting" };
    json!({"stage": stage, "status": {"ready": unmet.is_empty(), "unmetConditions": unmet}})
}

/// What Talos says of its services: first the sick ones by name, then those it needs that do not run.
fn missing(machine: &Machine, services: &[Service]) -> Vec<String> {
    let state = |id: &str| services.iter().find(|service| service.id == id);
    let sick = services
        .iter()
        .filter(|service| service.healthy == Some(false))
        .map(|service| format!("{} not healthy", service.id));
    let mut needed = vec!["kubelet"];
    if machine.is_control_plane() {
        needed.extend(["etcd", "trustd"]);
    }
    let down = needed
        .into_iter()
        .filter(|id| state(id).is_none_or(|service| service.state != "Running"))
        .map(|id| format!("{id} not running"));
    sick.chain(down).collect()
}
