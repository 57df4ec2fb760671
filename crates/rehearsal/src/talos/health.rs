//! How a cluster is, in the checks of `talosctl health` and in their order.

use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use super::Talos;
use super::call::Check;
use super::machine::{Api, Machine};

impl Talos {
    /// Makes all checks; what comes after the first that fails may be wrong too.
    pub(super) fn health(&self, control_planes: &[Ipv4Addr], workers: &[Ipv4Addr]) -> Vec<Check> {
        let all: Vec<Ipv4Addr> = control_planes.iter().chain(workers).copied().collect();
        let checks: [(&'static str, Option<String>); 16] = [
            ("etcd to be healthy", self.each(control_planes, |m| service(m, "etcd"))),
            ("etcd members to be consistent across nodes", self.consistent(control_planes)),
            ("etcd members to be control plane nodes", self.strangers(control_planes)),
            ("apid to be ready", self.each(&all, |m| service(m, "apid"))),
            ("all nodes memory sizes", None),
            ("all nodes disk sizes", None),
            ("no diagnostics", None),
            ("kubelet to be healthy", self.each(control_planes, |m| service(m, "kubelet"))),
            (
                "all nodes to finish boot sequence",
                self.each(&all, |m| lack(m.running.booted, "still in the stage \"booting\"")),
            ),
            (
                "all k8s nodes to report",
                self.each(&all, |m| lack(m.running.joined, "not reported in Kubernetes")),
            ),
            (
                "all control plane static pods to be running",
                self.each(control_planes, |m| lack(m.serves_kubernetes(), "no static pods yet")),
            ),
            (
                "all control plane components to be ready",
                self.each(control_planes, |m| {
                    lack(m.serves_kubernetes(), "kube-apiserver not ready")
                }),
            ),
            (
                "all k8s nodes to report ready",
                self.each(&all, |m| lack(m.running.ready, "node not ready")),
            ),
            ("kube-proxy to report ready", None),
            ("coredns to report ready", None),
            ("all k8s nodes to report schedulable", None),
        ];
        checks.into_iter().map(|(name, missing)| Check { name, missing }).collect()
    }

    fn at(&self, address: Ipv4Addr) -> Option<&Machine> {
        let here = |machine: &&Machine| machine.up && machine.address() == Some(address);
        self.machines.values().find(here)
    }

    fn each(
        &self,
        addresses: &[Ipv4Addr],
        judge: impl Fn(&Machine) -> Option<String>,
    ) -> Option<String> {
        let wrong: Vec<String> = addresses
            .iter()
            .filter_map(|address| {
                let reachable = self.at(*address).filter(|machine| machine.api == Api::Secure);
                let missing = match reachable {
                    None => Some("connection refused".to_owned()),
                    Some(machine) => judge(machine),
                };
                missing.map(|missing| format!("{address}: {missing}"))
            })
            .collect();
        (!wrong.is_empty()).then(|| wrong.join(", "))
    }

    /// Whether all control planes see the same members.
    fn consistent(&self, control_planes: &[Ipv4Addr]) -> Option<String> {
        let lists: BTreeSet<Option<u64>> = control_planes
            .iter()
            .map(|address| {
                let member = self.at(*address).and_then(|machine| machine.disk.etcd);
                member.map(|(number, _)| number)
            })
            .collect();
        (lists.len() > 1 || lists.contains(&None))
            .then(|| "etcd member lists differ between the control planes".to_owned())
    }

    /// Members of etcd whose address is not among the control planes.
    fn strangers(&self, control_planes: &[Ipv4Addr]) -> Option<String> {
        let seen = control_planes.iter().filter_map(|address| self.at(*address)?.disk.etcd);
        let mut strangers: Vec<String> = seen
            .filter_map(|(number, _)| self.etcds.get(&number))
            .flat_map(|etcd| etcd.members.values())
            .filter(|member| !control_planes.contains(&member.address))
            .map(|member| member.address.to_string())
            .collect();
        strangers.sort();
        strangers.dedup();
        (!strangers.is_empty()).then(|| {
            format!("etcd member ips {} are not subset of control plane nodes", strangers.join(" "))
        })
    }
}

fn lack(right: bool, missing: &str) -> Option<String> {
    (!right).then(|| missing.to_owned())
}

fn service(machine: &Machine, id: &str) -> Option<String> {
    let Some(service) = machine.noted.services.get(id) else {
        return Some(format!("service \"{id}\" not found"));
    };
    if service.state != "Running" {
        return Some(format!(
            "service \"{id}\" not in expected state \"Running\": current state [{}]",
            service.state
        ));
    }
    lack(service.healthy != Some(false), &format!("service \"{id}\" is not healthy"))
}
