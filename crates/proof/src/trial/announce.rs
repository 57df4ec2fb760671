//! Which step has to have said that a call was coming. A call that nobody here knows is told as one, so that none is missed.

use std::collections::BTreeMap;

use castle_journal::{Records, StepState};
use castle_model::StepId;

use crate::point::DRY;

/// What castle's cluster layers are called by, in the names and groups of what they make.
const MARKS: &[(&str, &str)] = &[
    ("external-secrets", "engine"),
    ("metallb", "networking"),
    ("longhorn", "storage"),
    ("flux", "gitops"),
    ("toolkit.fluxcd.io", "gitops"),
];
/// The layers that write into the cluster.
const IN_CLUSTER: [&str; 4] = ["engine", "networking", "storage", "gitops"];
/// What is only asked of a Talos machine; all its calls are `POST`.
const READS: &[&str] = &[
    "/cosi.resource.State/Get",
    "/cosi.resource.State/List",
    "/cosi.resource.State/Watch",
    "/machine.MachineService/EtcdMemberList",
    "/machine.MachineService/EtcdStatus",
    "/machine.MachineService/List",
    "/machine.MachineService/Read",
    "/machine.MachineService/ServiceList",
    "/machine.MachineService/Version",
    "/storage.StorageService/Disks",
];

/// Who may have announced a call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Announcers {
    /// It changes nothing.
    Nobody,
    /// One of these steps.
    Steps(Vec<StepId>),
    /// Any step of one of these layers.
    Layers(Vec<&'static str>),
    /// It may change something, and no step is known to make it.
    Unknown,
}

impl Announcers {
    /// Of a call in the words of a point; `nodes` are the castle's, by the number of their VM.
    pub(crate) fn of(call: &str, nodes: &BTreeMap<u32, String>) -> Self {
        if call.ends_with(DRY) {
            return Self::Nobody;
        }
        let words: Vec<&str> = call.split(' ').collect();
        let node = |vmid: &str| vmid.parse().ok().and_then(|vmid: u32| nodes.get(&vmid));
        let of_node = |kind: &str, vmid: &str| match node(vmid) {
            Some(name) => Self::Steps(vec![StepId::of("platform", kind, name)]),
            None => Self::Unknown,
        };
        match words.as_slice() {
            ["downloads" | "git", ..] | [.., "GET" | "HEAD", _] => Self::Nobody,
            ["proxmox", "POST" | "PUT" | "DELETE", path] => {
                let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
                match parts.iter().position(|part| *part == "qemu").map(|at| parts.get(at + 1)) {
                    Some(None) => {
                        let names = nodes.values();
                        Self::Steps(names.map(|name| StepId::of("platform", "vm", name)).collect())
                    }
                    Some(Some(vmid)) => of_node("vm", vmid),
                    None if parts.contains(&"storage") => {
                        Self::Steps(vec![StepId::new("platform", "image")])
                    }
                    None => Self::Unknown,
                }
            }
            ["talos", .., path] if READS.contains(path) => Self::Nobody,
            ["talos", vmid, _, path] if path.ends_with("/ApplyConfiguration") => {
                of_node("config", vmid)
            }
            ["talos", _, _, path] if path.ends_with("/Bootstrap") => {
                Self::Steps(vec![StepId::new("platform", "bootstrap")])
            }
            // A kubelet that joins again, because somebody has deleted its Node or the cluster is another one.
            ["talos", _, _, path] if path.ends_with("/ServiceRestart") => {
                Self::Steps(vec![StepId::new("platform", "nodes")])
            }
            // A login makes a token, which nothing that a castle is made of depends on.
            ["infisical", "POST", path] if path.starts_with("/api/v1/auth/") => Self::Nobody,
            ["infisical", ..] => {
                Self::Steps(vec![StepId::new("secrets", "escrow"), StepId::new("platform", "keys")])
            }
            ["kubernetes", .., path] => {
                let marked = MARKS.iter().filter(|(mark, _)| path.contains(mark));
                let layers: Vec<&'static str> = marked.map(|(_, layer)| *layer).collect();
                Self::Layers(if layers.is_empty() { IN_CLUSTER.to_vec() } else { layers })
            }
            _ => Self::Unknown,
        }
    }

    /// Whether one of them stands as is asked, of these steps if any step of a layer may have announced it.
    pub(crate) fn any<'a>(
        &self,
        mut all: impl Iterator<Item = &'a StepId>,
        records: &Records,
        is: impl Fn(&StepState) -> bool,
    ) -> bool {
        match self {
            Self::Nobody | Self::Unknown => false,
            Self::Steps(steps) => steps.iter().any(|step| is(records.step(step))),
            Self::Layers(layers) => {
                let of = |id: &StepId| {
                    layers.iter().any(|layer| {
                        id.as_str().strip_prefix(layer).is_some_and(|rest| rest.starts_with('/'))
                    })
                };
                all.any(|id| of(id) && is(records.step(id)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changing_call_has_somebody_who_announces_it() {
        let nodes = BTreeMap::from([(421, "cp-01".to_owned())]);
        let of = |call: &str| Announcers::of(call, &nodes);
        let steps = |steps: &[(&str, &str)]| {
            let ids = steps.iter().map(|(layer, name)| StepId::new(layer, name));
            Announcers::Steps(ids.collect())
        };
        let vm = Announcers::Steps(vec![StepId::of("platform", "vm", "cp-01")]);
        assert_eq!(of("proxmox POST /api2/json/nodes/pve/qemu/421/status/start"), vm);
        assert_eq!(of("proxmox POST /api2/json/nodes/pve/qemu"), vm);
        assert_eq!(of("proxmox DELETE /api2/json/nodes/pve/qemu/777"), Announcers::Unknown);
        assert_eq!(of("proxmox POST /api2/json/pools"), Announcers::Unknown);
        let kept = steps(&[("secrets", "escrow"), ("platform", "keys")]);
        assert_eq!(of("infisical PATCH /api/v4/secrets/batch"), kept);
        assert_eq!(of("infisical DELETE /api/v4/secrets/A"), kept);
        assert_eq!(of("infisical POST /api/v1/auth/universal-auth/login"), Announcers::Nobody);
        assert_eq!(of("talos 421 POST /machine.MachineService/Reset"), Announcers::Unknown);
        assert_eq!(of("talos 421 POST /machine.MachineService/Version"), Announcers::Nobody);
        let pool = "kubernetes 421 PATCH /apis/metallb.io/v1beta1/namespaces/metallb-system/a/b";
        assert_eq!(of(pool), Announcers::Layers(vec!["networking"]));
        assert_eq!(of(&format!("{pool}{DRY}")), Announcers::Nobody);
        let any = Announcers::Layers(IN_CLUSTER.to_vec());
        assert_eq!(of("kubernetes 421 DELETE /api/v1/namespaces/castle-probe"), any);
        assert_eq!(of("kubernetes 421 GET /api/v1/nodes"), Announcers::Nobody);
        assert_eq!(of("somebody POST /anything"), Announcers::Unknown);
    }
}
