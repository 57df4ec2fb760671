//! The emulated Kubernetes cluster: an API server over plain objects, and the controllers that matter as due effects.
//!
//! One [`Kubernetes`] is the cluster of the castle, whichever control plane or shared address it is asked through.
//! `serve` answers calls, `store` remembers, and each controller has a file: it looks at what is there and writes
//! what it would write, after a time drawn from the calibration of the real one.

mod admission;
mod balancer;
mod birth;
mod body;
mod complete;
mod custom;
mod defaults;
mod delete;
mod discovery;
mod events;
mod fields;
mod flux;
mod forms;
mod gojson;
mod goyaml;
mod hooks;
mod kinds;
mod life;
mod list;
mod longhorn;
mod managed;
mod network;
mod nodes;
mod options;
mod patch;
mod pods;
mod power;
mod pulls;
mod refuse;
mod review;
mod route;
mod scale;
mod secrets;
mod security;
mod seen;
mod selector;
mod serve;
mod shape;
mod shown;
mod store;
mod table;
mod trouble;
mod twice;
mod typed;
mod watch;
mod workload;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use castle_model::time::Moment;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use flux::FluxTrouble;
pub(crate) use kinds::known_kinds;
pub use trouble::{KubernetesTrouble, Named};
pub use watch::WatchCursor;

use self::nodes::NodeFacts;
use self::pulls::Pulls;
use self::refuse::No;
pub(crate) use self::refuse::refusal;
use self::store::{Store, parts};
use self::trouble::Troubles;
use crate::durations::Process;
use crate::turn::{HttpCall, HttpReply, Neighbours, Signal, Turn};

/// The moment at which every world is born: 2026-02-02T00:00:00Z.
const EPOCH: u64 = 1_769_990_400_000;
/// How often silent watches get a bookmark, in milliseconds.
const BOOKMARKS: u64 = 60_000;

/// The namespace and name in a place, as they stand in records.
fn named(key: &str) -> &str {
    key.splitn(3, '/').nth(2).unwrap_or(key)
}

/// What is due in the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// The birth of the cluster that it belongs to; what an earlier cluster left due comes to nothing.
    era: u64,
    /// The draw by whose end it happens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawn: Option<u64>,
    work: Work,
}

/// What a controller does when its time has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Work {
    /// Its controller looks at an object; only the latest plan for an object counts.
    Reconcile { key: String, plan: u64 },
    /// The network of a node is up.
    NodeNetwork { name: String, joined: u64 },
    /// A node's kubelet says Ready.
    NodeReady { name: String, joined: u64 },
    /// A node has been silent for so long that it counts as gone.
    NodeSilent { name: String, joined: u64 },
    /// A kubelet tries again to pull a pod's images.
    PullAgain { key: String, uid: String, attempt: u32, losses: u64 },
    /// A pod's images are there and its containers run.
    PodStarted { key: String, uid: String, losses: u64 },
    /// A pod's probes pass.
    PodReady { key: String, uid: String, losses: u64 },
    /// A webhook's certificate has been written into its configurations.
    Authority { namespace: String, service: String },
    /// A webhook's process listens.
    Serving { namespace: String, service: String },
    /// Longhorn has found the disk of a node.
    LonghornDisk { node: String },
    /// Longhorn's deployer has made the CSI drivers.
    LonghornDrivers,
    /// The garbage collector has noticed that an owner is gone.
    Ownerless { uid: String },
    /// The garbage collector looks after the dependents of an object that goes last.
    Foreground { key: String, uid: String },
    /// The garbage collector frees the dependents of an object that goes without them.
    Orphan { key: String, uid: String },
    /// A pod that is being deleted has stopped.
    PodStopped { key: String, uid: String },
    /// The namespace controller looks whether a namespace is empty.
    NamespaceGone { name: String },
    /// A short watch has lasted as long as it may.
    WatchEnds,
    /// Time for bookmarks.
    Tick,
}

/// The cluster.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Kubernetes {
    /// The id of the cluster; none before the first birth.
    cluster: Option<String>,
    /// Counts births.
    era: u64,
    /// Virtual milliseconds at the last turn.
    now: u64,
    /// By how much the world's birth is later than the usual one.
    dawn: u64,
    store: Store,
    nodes: BTreeMap<String, NodeFacts>,
    /// Services (`namespace/name`) behind which a webhook's process listens.
    serving: BTreeSet<String>,
    /// The latest plan to look at an object, by its place.
    plans: BTreeMap<String, u64>,
    /// Counts plans and addresses.
    counter: u64,
    /// Kustomizations that do not hear when what they depend on becomes ready.
    deaf: BTreeSet<String>,
    pulls: Pulls,
    troubles: Troubles,
    /// The draw by whose end this turn happens; none between turns.
    #[serde(skip)]
    by: Option<u64>,
}

impl Kubernetes {
    /// A cluster that is not born yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Hears what happened to machines.
    pub fn heard(&mut self, turn: &mut Turn<'_>, signal: &Signal) {
        self.now = turn.now;
        match signal {
            Signal::ClusterBorn { cluster } => {
                *self = Self {
                    cluster: Some(cluster.clone()),
                    era: self.era + 1,
                    now: turn.now,
                    dawn: self.dawn,
                    deaf: std::mem::take(&mut self.deaf),
                    pulls: std::mem::take(&mut self.pulls),
                    troubles: std::mem::take(&mut self.troubles),
                    ..Self::default()
                };
                self.populate(turn);
                self.in_time(turn, BOOKMARKS, Work::Tick);
            }
            Signal::ClusterLost { cluster } if self.is(cluster) => {
                *self = Self {
                    era: self.era + 1,
                    now: turn.now,
                    dawn: self.dawn,
                    pulls: std::mem::take(&mut self.pulls),
                    troubles: std::mem::take(&mut self.troubles),
                    ..Self::default()
                };
            }
            Signal::NodeJoined {
                cluster,
                name,
                address,
                control_plane,
                data_disk,
                extensions,
                version,
                boot_id,
                hardware,
            } if self.is(cluster) => {
                let facts = NodeFacts {
                    address: *address,
                    control_plane: *control_plane,
                    data_disk: *data_disk,
                    extensions: extensions.clone(),
                    version: version.clone(),
                    boot_id: boot_id.clone(),
                    hardware: hardware.clone(),
                    joined: 0,
                    network: false,
                    off: false,
                    losses: 0,
                    disk_lost: false,
                };
                self.node_joined(turn, name, facts);
            }
            Signal::DataDisk { cluster, name, there } if self.is(cluster) => {
                self.data_disk(turn, name, *there);
            }
            Signal::NodeLost { cluster, name } if self.is(cluster) => self.node_lost(turn, name),
            _ => {}
        }
    }

    /// Answers a call to the API server.
    pub fn call(&mut self, turn: &mut Turn<'_>, call: &HttpCall, _: &dyn Neighbours) -> HttpReply {
        let before = std::mem::replace(&mut self.now, turn.now);
        let reply = forms::of(call, self.answer(turn, call));
        if !reply.mutated {
            // A read is not logged, so it may leave no mark, not even its time.
            self.now = before;
        }
        reply
    }

    fn answer(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> HttpReply {
        let Some(peer) = &call.peer else {
            return No::new(401, "Unauthorized", "Unauthorized").reply();
        };
        if self.cluster.is_none() {
            let message = "the server is currently unable to handle the request";
            return No::new(503, "ServiceUnavailable", message).reply();
        }
        if let Some(no) = review::forbidden(peer, call) {
            return no.reply();
        }
        self.serve(turn, call).unwrap_or_else(|no| no.reply())
    }

    /// Does what is due.
    pub fn fire(&mut self, turn: &mut Turn<'_>, effect: Effect, neighbours: &dyn Neighbours) {
        if !self.owns(&effect) {
            return;
        }
        self.now = turn.now;
        self.by = effect.drawn;
        match effect.work {
            Work::Reconcile { key, plan } if self.plans.get(&key) == Some(&plan) => {
                self.plans.remove(&key);
                self.reconcile(turn, &key, neighbours);
            }
            Work::Reconcile { .. } | Work::WatchEnds => {}
            Work::NodeNetwork { name, joined } => self.node_network(turn, &name, joined),
            Work::NodeReady { name, joined } => self.node_ready(turn, &name, joined),
            Work::NodeSilent { name, joined } => self.node_silent(turn, &name, joined),
            Work::PullAgain { key, losses, .. }
            | Work::PodStarted { key, losses, .. }
            | Work::PodReady { key, losses, .. }
                if !self.goes_on(&key, losses) => {}
            Work::PullAgain { key, uid, attempt, .. } => self.pull(turn, &key, &uid, attempt),
            Work::PodStarted { key, uid, .. } => self.pod_started(turn, &key, &uid),
            Work::PodReady { key, uid, .. } => self.pod_ready(turn, &key, &uid),
            Work::Authority { namespace, service } => self.authority(&namespace, &service),
            Work::Serving { namespace, service } => self.now_serving(&namespace, &service),
            Work::LonghornDisk { node } => self.longhorn_disk(turn, &node),
            Work::LonghornDrivers => self.longhorn_drivers(turn),
            Work::Ownerless { uid } => self.ownerless(turn, &uid),
            Work::Foreground { key, uid } => self.foreground(turn, &key, &uid),
            Work::Orphan { key, uid } => self.orphan(turn, &key, &uid),
            Work::PodStopped { key, uid } => self.pod_stopped(turn, &key, &uid),
            Work::NamespaceGone { name } => self.namespace_gone(turn, &name),
            Work::Tick => self.in_time(turn, BOOKMARKS, Work::Tick),
        }
        self.by = None;
    }

    /// Whether Flux was given a repository.
    #[must_use]
    pub fn has_source(&self) -> bool {
        self.store.all("source.toolkit.fluxcd.io", "gitrepositories").next().is_some()
    }

    /// The names of the nodes, with whether each is Ready.
    pub fn node_names(&self) -> impl Iterator<Item = (&str, bool)> {
        self.store
            .all("", "nodes")
            .map(|(key, node)| (parts(key).3, kinds::condition(node, "Ready")))
    }

    /// Whether an effect is of this cluster, not of one that was before.
    #[must_use]
    pub fn owns(&self, effect: &Effect) -> bool {
        effect.era == self.era
    }

    /// How far the cluster has come: while it is the same, no watch has anything new to tell.
    pub(crate) fn place(&self) -> (u64, u64, u64) {
        (self.era, self.store.version(), self.now)
    }

    fn is(&self, cluster: &str) -> bool {
        self.cluster.as_deref() == Some(cluster)
    }

    /// The id of the cluster that was born last; none once all of it is gone.
    #[must_use]
    pub fn cluster(&self) -> Option<&str> {
        self.cluster.as_deref()
    }

    /// A controller looks at an object whose time has come.
    fn reconcile(&mut self, turn: &mut Turn<'_>, key: &str, neighbours: &dyn Neighbours) {
        match (parts(key).0, parts(key).1) {
            ("apiextensions.k8s.io", "customresourcedefinitions")
                if self.troubles.holds_definitions(turn.now) =>
            {
                self.touched(turn, key);
            }
            ("apiextensions.k8s.io", "customresourcedefinitions") => self.establish(key),
            ("apps", "deployments" | "daemonsets" | "statefulsets") => self.roll_out(turn, key),
            ("", "services") => self.connect(turn, key),
            ("", "persistentvolumeclaims") => self.bind(turn, key),
            ("external-secrets.io", "clustersecretstores" | "secretstores") => {
                self.check_store(turn, key, neighbours);
            }
            ("external-secrets.io", "externalsecrets") => self.sync_secret(turn, key, neighbours),
            ("source.toolkit.fluxcd.io", "gitrepositories") => self.fetch(turn, key, neighbours),
            ("kustomize.toolkit.fluxcd.io", "kustomizations") => self.build(turn, key, neighbours),
            ("helm.toolkit.fluxcd.io", "helmreleases") => self.install(key),
            _ => {}
        }
    }

    /// Somebody wrote or removed an object: its controller will look at it.
    fn touched(&mut self, turn: &mut Turn<'_>, key: &str) {
        let what = match (parts(key).0, parts(key).1) {
            ("apiextensions.k8s.io", "customresourcedefinitions") => Process::Established,
            ("apps", "deployments" | "daemonsets" | "statefulsets") => Process::Rollout,
            ("", "services") => Process::Endpoints,
            ("", "persistentvolumeclaims") => Process::ClaimBind,
            ("external-secrets.io", "clustersecretstores" | "secretstores") => Process::StoreCheck,
            ("external-secrets.io", "externalsecrets") => Process::SecretSync,
            ("source.toolkit.fluxcd.io", "gitrepositories") => Process::GitFetch,
            ("kustomize.toolkit.fluxcd.io", "kustomizations") => Process::FluxLevel,
            ("helm.toolkit.fluxcd.io", "helmreleases") => Process::HelmInstall,
            ("metallb.io", "ipaddresspools" | "l2advertisements") => {
                for service in self.store.keys("", "services") {
                    self.plan(turn, &service, Process::AddressGiven);
                }
                return;
            }
            ("admissionregistration.k8s.io", _) => return self.hooks_registered(turn, key),
            ("", "namespaces") => return self.namespace_changed(turn, key),
            _ => return,
        };
        self.plan(turn, key, what);
    }

    /// Leaves a look at an object due; an earlier plan for it lapses.
    fn plan(&mut self, turn: &mut Turn<'_>, key: &str, what: Process) {
        let work = self.look(key);
        self.later(turn, what, named(key), work);
    }

    /// The same after a time that the object itself or its controller says.
    fn plan_in(&mut self, turn: &mut Turn<'_>, key: &str, took: (Process, u64)) {
        let work = self.look(key);
        self.exactly(turn, took, named(key), work);
    }

    fn look(&mut self, key: &str) -> Work {
        self.counter += 1;
        self.plans.insert(key.to_owned(), self.counter);
        Work::Reconcile { key: key.to_owned(), plan: self.counter }
    }

    /// Leaves work due after a process that begins now, by what happens in this turn.
    fn later(&self, turn: &mut Turn<'_>, what: Process, subject: &str, work: Work) {
        let (ms, number) = turn.draw_after(what, subject, self.by);
        turn.after(ms, Effect { era: self.era, drawn: Some(number), work });
    }

    /// The same after a length of time that is not drawn, and that somebody may wait for all the same.
    fn exactly(&self, turn: &mut Turn<'_>, took: (Process, u64), subject: &str, work: Work) {
        let (what, ms) = took;
        let number = turn.draws.record(what, subject.to_owned(), (turn.now, ms), self.by);
        turn.after(ms, Effect { era: self.era, drawn: Some(number), work });
    }

    /// Leaves work due after a time that nobody waits for.
    fn in_time(&self, turn: &mut Turn<'_>, ms: u64, work: Work) {
        turn.after(ms, Effect { era: self.era, drawn: None, work });
    }

    /// The world lives in other days from now on.
    pub(crate) fn dawns(&mut self, dawn: u64) {
        self.dawn = dawn;
    }

    /// The time of the last turn as Kubernetes writes it.
    fn stamp(&self) -> String {
        let text = Moment(EPOCH + self.dawn + self.now).to_string();
        format!("{}Z", &text[..19])
    }

    /// A definition is accepted and its kind becomes known.
    fn establish(&mut self, key: &str) {
        let stamp = self.stamp();
        self.store.change(key, |definition| {
            let names = definition["spec"]["names"].clone();
            definition["status"]["acceptedNames"] = names;
            let stored = definition["spec"]["versions"].as_array().into_iter().flatten();
            let stored: Vec<Value> =
                stored.filter(|v| v["storage"] == true).map(|v| v["name"].clone()).collect();
            definition["status"]["storedVersions"] = stored.into();
            set_condition(
                definition,
                "NamesAccepted",
                true,
                "NoConflicts",
                "no conflicts found",
                &stamp,
            );
            set_condition(
                definition,
                "Established",
                true,
                "InitialNamesAccepted",
                "the initial names have been accepted",
                &stamp,
            );
        });
    }
}

/// Writes a condition; its time moves only when its status does.
fn set_condition(
    object: &mut Value,
    kind: &str,
    holds: bool,
    reason: &str,
    message: &str,
    stamp: &str,
) {
    let status = if holds { "True" } else { "False" };
    let generation = object["metadata"]["generation"].clone();
    // Flux says which generation a condition is of; most others do not.
    let flux = object["apiVersion"].as_str().is_some_and(|v| v.contains("toolkit.fluxcd.io"));
    // Longhorn has a kind of this name, too, whose conditions know no heartbeat.
    let node = object["kind"] == "Node" && object["apiVersion"] == "v1";
    if !object["status"]["conditions"].is_array() {
        object["status"]["conditions"] = json!([]);
    }
    let Some(conditions) = object["status"]["conditions"].as_array_mut() else { return };
    let since = conditions
        .iter()
        .find(|c| c["type"] == kind && c["status"] == status)
        .map_or_else(|| stamp.into(), |c| c["lastTransitionTime"].clone());
    let mut condition = json!({
        "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    });
    if flux && !generation.is_null() {
        condition["observedGeneration"] = generation;
    }
    if node {
        // A kubelet that has fallen silent sends none.
        let before = conditions.iter().find(|c| c["type"] == kind);
        let before = before.filter(|_| reason == "NodeStatusUnknown");
        condition["lastHeartbeatTime"] =
            before.map_or_else(|| stamp.into(), |c| c["lastHeartbeatTime"].clone());
    }
    match conditions.iter_mut().find(|c| c["type"] == kind) {
        Some(place) => *place = condition,
        None => conditions.push(condition),
    }
}

/// Takes a condition away.
fn clear_condition(object: &mut Value, kind: &str) {
    if let Some(conditions) = object["status"]["conditions"].as_array_mut() {
        conditions.retain(|condition| condition["type"] != kind);
    }
}

#[cfg(test)]
mod tests;
