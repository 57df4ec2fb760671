//! The published way to raise the same castle: the order of `create.sh` with its own waits, modelled step for step.
//!
//! A model, not a run: it takes the lengths of time that the datacenter drew for castle's bring-up of the same seed, adds
//! those that only this way has (full clones, the installer, Terragrunt), and lays them out as the published script
//! does: six units one after the other, the last two together, each wait with its interval. [`Levers`] take one habit
//! away at a time, so that what each is worth can be told on the same draws.

use std::collections::BTreeMap;

use crate::calibration;
use crate::durations::{Draw, Process};
use crate::turn::Dice;

/// What is done otherwise than published; with none it is the published way.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "switches that are set independently of each other"
)]
pub struct Levers {
    /// One program, not a tool that starts tools for every unit.
    pub no_tax: bool,
    /// What becomes true is watched, not asked for at intervals.
    pub watching: bool,
    /// Flux looks every 5 s whether needs are ready, not every 30 s.
    pub requeue: bool,
    /// Disks are imported from one image, not cloned in full.
    pub linked: bool,
    /// The disk image boots with its config, and nothing is installed.
    pub disk_image: bool,
    /// A step waits for what it needs, not for the unit before.
    pub edges: bool,
    /// The only one that makes it slower: kubelets pull one image after the other. Elsewhere that is the default, but
    /// Talos has them pull side by side, in the published way as in castle's.
    pub serial_pulls: bool,
}

/// A lever: its name, and how it is pulled.
pub type Lever = (&'static str, fn(&mut Levers));

/// The levers in the order in which they are added up.
pub const LEVERS: &[Lever] = &[
    ("no Terragrunt and OpenTofu per unit", |levers| levers.no_tax = true),
    ("watching instead of polling", |levers| levers.watching = true),
    ("requeue of Flux 5 s instead of 30 s", |levers| levers.requeue = true),
    ("linked import instead of full clone", |levers| levers.linked = true),
    ("disk image instead of install", |levers| levers.disk_image = true),
    ("true edges instead of barriers", |levers| levers.edges = true),
];

/// One step of the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stage {
    /// What it is.
    pub name: &'static str,
    /// Where it is published: the document and its line.
    pub from: &'static str,
    /// When it is over, in milliseconds from the begin.
    pub over: u64,
}

/// `terraform-provider-helm` and Flux' own command ask every 2 s, `talosctl health` and the loop of `create.sh` every 5 s.
const HELM: u64 = 2_000;
const HEALTH: u64 = 5_000;
const LOOP: u64 = 5_000;
/// Flux' intervals: as it comes, and as the lever has it.
const REQUEUE: (u64, u64) = (30_000, 5_000);
/// The longest chain of the rehearsed repository, in its order.
const TREE: &[&str] =
    &["operators-namespaces", "operators-core", "bridge", "configs", "apps-static"];

/// A pod of castle's bring-up: where it ran, and how long its images and its start took.
struct Pod<'a> {
    node: &'a str,
    object: &'a str,
    started: Process,
    pull: u64,
    start: u64,
}

/// The way on the draws of one bring-up.
struct Way<'a> {
    draws: &'a [Draw],
    names: &'a BTreeMap<String, String>,
    pods: Vec<Pod<'a>>,
    levers: Levers,
    /// What only this way takes: per unit, and per machine.
    taxes: Vec<u64>,
    extras: BTreeMap<String, [u64; 3]>,
    secrets: u64,
    /// When the queue of a node's kubelet is empty, what it has pulled, and when the node is Ready.
    kubelets: BTreeMap<&'a str, u64>,
    pulled: BTreeMap<(&'a str, &'a str), u64>,
    ready: BTreeMap<&'a str, u64>,
    stages: Vec<Stage>,
}

/// When each step of the published way would be over in the world of these draws; the last is the end.
#[must_use]
pub fn stages(
    draws: &[Draw],
    names: &BTreeMap<String, String>,
    seed: u64,
    levers: Levers,
) -> Vec<Stage> {
    let mut way = Way::new(draws, names, seed, levers);
    let platform = way.platform();
    way.cluster(platform);
    way.stages
}

impl<'a> Way<'a> {
    fn new(
        draws: &'a [Draw],
        names: &'a BTreeMap<String, String>,
        seed: u64,
        levers: Levers,
    ) -> Self {
        // Whatever the levers, the same is drawn in the same order.
        let mut dice = Dice::new(seed ^ 0x6372_6561_7465_2e73);
        let mut draw = |name| dice.triangular(calibration::span(name).unwrap_or_default());
        let secrets = draw("secrets-api");
        let taxes = (0..10).map(|_| draw("terragrunt-unit")).collect();
        let machines = draws.iter().filter(|draw| draw.what == Process::VmCreate);
        let extras = machines
            .map(|machine| {
                let extra = [draw("full-clone"), draw("install"), draw("reboot")];
                (machine.subject.clone(), extra)
            })
            .collect();
        Self {
            draws,
            names,
            pods: pods(draws),
            levers,
            taxes,
            extras,
            secrets,
            kubelets: BTreeMap::new(),
            pulled: BTreeMap::new(),
            ready: BTreeMap::new(),
            stages: Vec::new(),
        }
    }

    fn over(&mut self, name: &'static str, from: &'static str, over: u64) -> u64 {
        self.stages.push(Stage { name, from, over });
        over
    }

    fn tax(&self, unit: usize) -> u64 {
        if self.levers.no_tax { 0 } else { self.taxes[unit] }
    }

    /// When somebody notices who has asked since a moment, every so often.
    fn noticed(&self, truth: u64, since: u64, interval: u64) -> u64 {
        if self.levers.watching || truth <= since {
            return truth.max(since);
        }
        since + (truth - since).div_ceil(interval) * interval
    }

    /// The first draw of a process for a machine; nothing if there was none.
    fn took(&self, what: Process, machine: &str) -> u64 {
        let own = |draw: &&Draw| {
            let subject = draw.subject.split(' ').next().unwrap_or_default();
            let number = self.names.get(subject).map_or(subject, String::as_str);
            draw.what == what && number == machine
        };
        self.draws.iter().find(own).map_or(0, |draw| draw.ms)
    }

    /// Secrets and machines, until every node is Ready: when the unit is over, and when its API server answers.
    fn platform(&mut self) -> (u64, u64) {
        let secrets = self.tax(0) + self.secrets;
        self.over("secrets", "orchestra 60: layer 1 asks Infisical", secrets);
        let begin = secrets + self.tax(1);
        // Clones go one after the other under the storage's lock.
        let mut free = begin;
        let mut up: BTreeMap<String, u64> = BTreeMap::new();
        for (machine, [clone, install, reboot]) in &self.extras {
            free += if self.levers.linked { self.took(Process::VmCreate, machine) } else { *clone };
            let api =
                free + self.took(Process::VmStart, machine) + self.took(Process::Boot, machine);
            let installed = if self.levers.disk_image { 0 } else { install + reboot };
            up.insert(machine.clone(), api + installed + self.took(Process::Runtime, machine));
        }
        self.over("VMs cloned", "orchestra 63: virtual machines are created on Proxmox", free);
        let is_control = |machine: &&String| self.took(Process::EtcdPull, machine) > 0;
        let controls: Vec<String> = up.keys().filter(is_control).cloned().collect();
        let configured = if self.levers.edges {
            controls.iter().map(|machine| up[machine]).max().unwrap_or(free)
        } else {
            up.values().copied().max().unwrap_or(free)
        };
        self.over(
            "Talos configured",
            "orchestra 63: the Talos configuration is injected",
            configured,
        );
        let first = controls.iter().find(|m| self.took(Process::EtcdBootstrap, m) > 0);
        let first = first.cloned().unwrap_or_default();
        let etcd = |what| self.draws.iter().filter(move |d| d.what == what).map(|d| d.ms);
        let begun = configured
            + self.took(Process::EtcdPull, &first)
            + self.took(Process::EtcdBootstrap, &first);
        let joined =
            begun + etcd(Process::EtcdJoin).chain(etcd(Process::EtcdPromotion)).sum::<u64>();
        let answers = begun
            + self.took(Process::ControlPlanePull, &first)
            + self.took(Process::ApiServer, &first);
        let shared = begun + etcd(Process::Election).next().unwrap_or_default();
        self.over(
            "etcd has its quorum",
            "orchestra 64: the control planes form the quorum",
            joined,
        );
        self.over(
            "VIP",
            "orchestra 64: the VIP must be stable before the next layer",
            shared.max(answers),
        );
        for (node, machine) in self.names {
            let kubelet = up[machine].max(configured) + self.took(Process::Kubelet, machine);
            let registered = kubelet.max(answers) + self.took(Process::Register, machine);
            let network = registered + self.took(Process::NodeNetwork, machine);
            self.ready.insert(node, network + self.took(Process::NodeReady, machine));
        }
        let nodes = self.ready.values().copied().max().unwrap_or(answers);
        let healthy = self.noticed(nodes.max(joined).max(shared), configured, HEALTH);
        self.over("platform", "orchestra 64: if it does not respond, it stops here", healthy);
        (healthy, shared.max(answers))
    }

    /// The other four units, until the last pod of the tree.
    fn cluster(&mut self, (platform, api): (u64, u64)) {
        let edges = self.levers.edges;
        let engine = if edges { api } else { platform } + self.tax(2);
        let pods = self.started(&[(engine, "external-secrets/")]);
        let charted = self.noticed(last(&pods), engine, HELM);
        let hook = |prefix: &str, what| {
            let own = |d: &&Draw| d.what == what && d.subject.starts_with(prefix);
            self.draws.iter().find(own).map_or(0, |draw| draw.ms)
        };
        let check = hook("", Process::StoreCheck);
        let secret = charted + hook("external-secrets/", Process::Webhook) + check;
        let engine_over = secret + hook("flux-system/", Process::SecretSync);
        self.over("engine", "orchestra 67: External Secrets is installed", engine_over);

        let networking = if edges { api } else { engine_over } + self.tax(3);
        let pods = self.started(&[(networking, "metallb-system/")]);
        let charted = self.noticed(last(&pods), networking, HELM);
        let served = last(&pods) + hook("metallb-system/", Process::MetallbWebhook);
        let webhook = self.noticed(served, charted, LOOP);
        self.over(
            "MetalLB",
            "factory 95-98: until the EndpointSlice is ready; do sleep 5",
            webhook,
        );

        // `run-all` has no list of units: it goes through the first four again, in their order, to find nothing to do.
        let again = webhook + (6..10).map(|unit| self.tax(unit)).sum::<u64>();
        self.over("units 1 to 4 again", "orchestra 154: run-all apply", again);
        let both = if edges { api } else { again };
        let (storage, gitops) = (both + self.tax(4), both + self.tax(5));
        let pods = self.started(&[
            (storage, "longhorn-system/longhorn-manager"),
            (storage, "longhorn-system/longhorn-driver-deployer"),
            (storage, "longhorn-system/longhorn-ui"),
            (gitops, "flux-system/"),
        ]);
        let of =
            |what: Process| pods.iter().filter(move |(pod, _)| pod.1 == what).map(|(_, at)| *at);
        let flux = of(Process::FluxStart).max().unwrap_or(gitops);
        let deployer = of(Process::LonghornStart).max().unwrap_or(storage);
        let drivers = self.noticed(deployer + hook("", Process::LonghornCsi), storage, HELM);
        let disks = self.disks(&pods);
        let sidecars = self.started(&[
            (drivers, "longhorn-system/csi-"),
            (drivers, "longhorn-system/longhorn-csi-plugin"),
        ]);
        let storage_over = self.noticed(disks.max(last(&sidecars)), storage, HELM);
        self.over("storage", "orchestra 154: run-all apply, two at a time", storage_over);

        let flux = self.noticed(flux, gitops, HELM).max(if edges { engine_over } else { 0 });
        let fetched = flux + hook("flux-system/", Process::GitFetch);
        self.over("Flux", "orchestra 154: run-all apply, two at a time", fetched);
        let applied = self.tree(fetched);
        let blog = self.started(&[(applied, "blog/"), (applied, "apps/"), (applied, "default/")]);
        let gitops_over = applied.max(last(&blog));
        self.over("blog", "orchestra 157: Flux having reconciled the latest blog", gitops_over);
        self.over(
            "castle",
            "orchestra 157: 8 minutes and 20 seconds",
            gitops_over.max(storage_over),
        );
    }

    /// When the last unit of the tree is applied: each looks at its needs on a grid of its own.
    fn tree(&self, fetched: u64) -> u64 {
        let level = |unit: &str| {
            let name = format!("flux-system/{unit}");
            let own = |d: &&Draw| d.what == Process::FluxLevel && d.subject == name;
            self.draws.iter().find(own).map_or(0, |draw| draw.ms)
        };
        let requeue = if self.levers.requeue { REQUEUE.1 } else { REQUEUE.0 };
        let root = fetched + level("flux-system");
        TREE.iter().fold(root, |ready, unit| {
            let first = root + level(unit);
            first + ready.saturating_sub(first).div_ceil(requeue) * requeue
        })
    }

    /// When each pod of some workloads is ready that were applied at a time: its node is Ready, its turn to pull came.
    fn started(&mut self, applied: &[(u64, &str)]) -> Vec<((&'a str, Process), u64)> {
        let mut queue: Vec<(u64, usize)> = Vec::new();
        for (index, pod) in self.pods.iter().enumerate() {
            let found = applied.iter().find(|(_, prefix)| pod.object.starts_with(prefix));
            if let Some((at, _)) = found {
                let ready = self.ready.get(pod.node).copied().unwrap_or_default();
                queue.push(((*at).max(ready), index));
            }
        }
        queue.sort_unstable();
        let mut all = Vec::new();
        for (at, index) in queue {
            let pod = &self.pods[index];
            let image = (pod.node, image_of(pod.object));
            let there = if let Some(there) = self.pulled.get(&image) {
                at.max(*there)
            } else {
                let free = self.kubelets.entry(pod.node).or_default();
                let begin = if self.levers.serial_pulls { at.max(*free) } else { at };
                *free = begin + pod.pull;
                self.pulled.insert(image, begin + pod.pull);
                begin + pod.pull
            };
            all.push(((pod.node, pod.started), there + pod.start));
        }
        all
    }

    /// When Longhorn has found the last disk: after each manager one more image, and the node's disk.
    fn disks(&mut self, pods: &[((&'a str, Process), u64)]) -> u64 {
        let mut found = 0;
        for ((node, what), up) in pods {
            if *what != Process::LonghornManagerStart {
                continue;
            }
            let machine = self.names.get(*node).cloned().unwrap_or_default();
            let pull = self.took(Process::InstanceManagerPull, &machine);
            let disk = self.took(Process::LonghornDisk, &machine);
            let free = self.kubelets.entry(node).or_default();
            let begin = if self.levers.serial_pulls { (*up).max(*free) } else { *up };
            *free = begin + pull;
            found = found.max(begin + pull + disk);
        }
        found
    }
}

fn last(pods: &[((&str, Process), u64)]) -> u64 {
    pods.iter().map(|(_, at)| *at).max().unwrap_or_default()
}

/// What tells the image of a pod: its workload; all parts of External Secrets have the same.
fn image_of(object: &str) -> &str {
    let workload = object.rsplit_once('-').map_or(object, |(workload, _)| workload);
    match (object.split_once('/'), workload.rsplit_once('-')) {
        (Some(("external-secrets", _)), _) => "external-secrets",
        // A pod of a Deployment has the number of its ReplicaSet before its own.
        (_, Some((workload, set))) if set.len() == 10 => workload,
        _ => workload,
    }
}

/// Every pod that was started, in the order of its start.
fn pods(draws: &[Draw]) -> Vec<Pod<'_>> {
    let numbers: BTreeMap<u64, &Draw> = draws.iter().map(|draw| (draw.number, draw)).collect();
    draws
        .iter()
        .filter_map(|start| {
            let (node, object) = start.subject.split_once(' ')?;
            let pull = numbers.get(&start.after?).filter(|pull| pull.subject == start.subject)?;
            Some(Pod { node, object, started: start.what, pull: pull.ms, start: start.ms })
        })
        .collect()
}

#[cfg(test)]
mod tests;
