//! `platform/nodes`: every declared node is Ready at its own address, and the cluster's network is rolled out.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Graph, Pace, Step};
use castle_kubernetes::judge::{judge, judge_among};
use castle_kubernetes::{Object, ObjectId, Place};
use castle_model::spec::{Body, NodeSpec};
use castle_model::{Change, Failure, Observed, Spec, StepDecl, Verb, Verdict};
use castle_talos::Presence;
use castle_wire::World;
use serde_json::Value;
use tokio::time::timeout;

use self::boots::{Boots, Told, stale};
use crate::cluster::{Closer, Cluster, Objects, few, observed};
use crate::handed::LIFE;
use crate::ids;
use crate::proxmox::inventory::INVENTORY;
use crate::talos::{LIFE_OUTPUT, Patience, Realm, proven_in_this_life};

mod boots;

const SYSTEM: &str = "kube-system";

/// The service of a machine that is a node, and its state when it does what it should.
const KUBELET: &str = "kubelet";
const RUNNING: &str = "Running";

/// Within this time a kubelet that comes up registers its Node, once an API server answers: a dozen seconds, with room.
const JOINS_WITHIN: Duration = Duration::from_secs(30);

/// What runs on every node: the network between pods, and the way to services.
const ON_EACH: [&str; 2] = ["kube-flannel", "kube-proxy"];

/// Declares the step.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let title = format!("{} nodes Ready, network rolled out", spec.nodes.len());
    vec![
        StepDecl::new(ids::nodes(), title, "nodes", PROVES)
            .needs([ids::access()])
            // A machine that got no config never becomes a node: its own step says so, and once is enough.
            .needs(ids::all_configs(spec))
            .lives_on([ids::bootstrap()])
            .weight(18_000)
            .only("it only proves"),
    ]
}

/// Adds the step to a graph.
pub(crate) fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World, realm: &Realm) {
    let cluster = Cluster::new(spec, world);
    for decl in declare(spec) {
        graph.add(decl, Nodes { cluster: cluster.clone(), realm: realm.clone() });
    }
}

/// The step.
struct Nodes {
    cluster: Arc<Cluster>,
    realm: Realm,
}

impl Nodes {
    /// Restarts the kubelets of nodes that had joined and are gone: each registers its Node when it starts, and only then.
    async fn bring_back(&self, cx: &Context, all: bool) -> Result<Change, Failure> {
        let spec = &self.cluster.spec;
        let there = self.cluster.look(cx, &Self::places()).await?;
        let mut change = Change::Unchanged;
        for node in gone(&spec.nodes, &there).filter(|node| all || stood(cx, node)) {
            // A machine that does not answer, or whose kubelet is about to start, joins by itself when it can.
            let Presence::Ours(talos) = self.realm.look(cx, node.address).await? else { continue };
            let failed = |error: castle_talos::TalosError| {
                error.failure(format!("restart the kubelet of {}", node.name))
            };
            let services = talos.services().await.map_err(failed)?;
            if services.iter().any(|service| service.id == KUBELET && service.state == RUNNING) {
                talos.restart_service(KUBELET).await.map_err(failed)?;
                cx.notice(format!(
                    "restarted the kubelet of {}, so that it joins again",
                    node.name
                ));
                change = Change::Updated;
            }
        }
        Ok(change)
    }

    /// Whether machines that stood when the run began join by themselves. No journal may know that they have joined before,
    /// a cluster that is gone or this one; whoever only comes up joins within this time.
    async fn joins_by_itself(&self, cx: &Context) -> Result<bool, Failure> {
        let nodes = &self.cluster.spec.nodes;
        if !nodes.iter().any(|node| stood(cx, node)) {
            return Ok(true);
        }
        let joined = cx.wait(Pace::GATE, "nodes that stood before to join", || async {
            let there = self.cluster.look(cx, &Self::places()).await?;
            let late = gone(nodes, &there).find(|node| stood(cx, node));
            Ok(late.map_or(Verdict::Ready(()), |node| {
                Verdict::waiting(format!("not joined yet: {}", node.name))
            }))
        });
        timeout(JOINS_WITHIN, joined).await.map_or(Ok(false), |joined| joined.map(|()| true))
    }

    fn places() -> Vec<Place> {
        vec![
            Place::everywhere("v1", "Node"),
            Place::within("apps/v1", "DaemonSet", SYSTEM),
            Place::within("apps/v1", "Deployment", SYSTEM),
        ]
    }
}

/// What its gate proves.
const PROVES: &str = "every node is Ready and its network is rolled out";

#[async_trait]
impl Step for Nodes {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let there = self.cluster.look(cx, &Self::places()).await?;
        for node in cordoned(&self.cluster.spec.nodes, &there) {
            let what = format!("{node} is cordoned");
            let note = format!(
                "{what}: nothing new is put there, which whoever did it wants; kubectl uncordon {node} ends it"
            );
            cx.left_so("others", what, note);
        }
        let before = proven_in_this_life(cx)?;
        let missing: Vec<&str> =
            gone(&self.cluster.spec.nodes, &there).map(|n| n.name.as_str()).collect();
        if before && !missing.is_empty() {
            let what = format!(
                "Node {} is gone: its kubelet is restarted, so that it joins again",
                few(&missing)
            );
            return Ok(Observed::wrong(what));
        }
        let told = boots::told(&self.realm, cx, &self.cluster.spec.nodes).await?;
        let coredns = self.cluster.spec.machine.coredns;
        let seen = observed(settle(&self.cluster.spec.nodes, coredns, &there, &told));
        if !before && matches!(seen, Observed::Right { .. }) {
            cx.learn(LIFE_OUTPUT, cx.outputs().get(&LIFE)?.incarnation.to_string());
        }
        Ok(seen)
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        // Before all of them have joined once, a Node that is missing is one that has not come yet.
        let before = proven_in_this_life(cx)?;
        let change = if before || !self.joins_by_itself(cx).await? {
            self.bring_back(cx, before).await?
        } else {
            Change::Unchanged
        };
        Ok(Acted::of(change).with(LIFE_OUTPUT, life))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let spec = &self.cluster.spec;
        let patience = Patience::of(cx);
        let boots = Boots::ask(&self.realm, cx, &spec.nodes).await?;
        let judge = |objects: &Objects| {
            let told = boots.told();
            boots.note(stale(&spec.nodes, objects, &told).is_none());
            settle(&spec.nodes, spec.machine.coredns, objects, &told)
        };
        // Why a node is not Ready is seen on its machine, not through Kubernetes.
        let closer = Closer {
            due: &|| boots.due().map_or(patience.until(), |due| due.min(patience.until())),
            look: &|| {
                Box::pin(async {
                    boots.ask_again(&self.realm, cx, &spec.nodes).await;
                    if patience.is_over() {
                        self.realm.look_closer(cx, &spec.nodes, true, &patience).await;
                    }
                })
            },
        };
        let what = "every node to be Ready";
        // What keeps the network's own pods is said by them alone: an image that does not come, a rate limit.
        let mut places = Self::places();
        places.push(Place::within("v1", "Pod", SYSTEM));
        let settled = self.cluster.settled_by(cx, what, places, judge, Some(closer)).await;
        let late = match settled {
            Ok(proof) => return Ok(proof),
            Err(failure) => failure,
        };
        let failure = patience.explained(late.clone());
        // What a machine says of itself is worth more than what may have happened to its Node.
        if failure.hint != late.hint {
            return Err(failure);
        }
        let there = self.cluster.look(cx, &Self::places()).await.unwrap_or_default();
        let Some(gone) = gone(&spec.nodes, &there).next() else {
            return Err(failure);
        };
        // Whoever deletes a Node of a machine that runs: its kubelet has joined before, and does so only when it starts.
        Err(failure.hint(format!(
            "if {0} ran before, somebody has deleted its Node, and its kubelet joins again only when it starts: restart it (talosctl -n {1} \
             service kubelet restart), then run the same command again",
            gone.name, gone.address
        )))
    }
}

/// Whether the machine of a node stood already when the run began.
fn stood(cx: &Context, node: &NodeSpec) -> bool {
    let Body::Vm(vm) = &node.body else { return false };
    cx.outputs().get(&INVENTORY).is_ok_and(|inventory| inventory.ours.contains_key(&vm.vmid))
}

/// The declared nodes that the cluster does not know; none where it knows of nothing at all.
fn gone<'a>(nodes: &'a [NodeSpec], there: &'a Objects) -> impl Iterator<Item = &'a NodeSpec> {
    let is_known =
        |node: &NodeSpec| there.contains_key(&ObjectId::cluster("v1", "Node", node.name.as_str()));
    nodes.iter().filter(move |node| !there.is_empty() && !is_known(node))
}

/// The declared nodes that somebody has taken out of scheduling.
fn cordoned<'a>(nodes: &'a [NodeSpec], objects: &Objects) -> Vec<&'a str> {
    let out = |node: &&NodeSpec| {
        let there = objects.get(&ObjectId::cluster("v1", "Node", node.name.as_str()));
        there.is_some_and(|object| object.at("/spec/unschedulable") == Some(&Value::Bool(true)))
    };
    nodes.iter().filter(out).map(|node| node.name.as_str()).collect()
}

/// Judges the declared nodes, what runs on each of them, and the name server where Talos keeps one.
fn settle(nodes: &[NodeSpec], coredns: bool, objects: &Objects, told: &Told) -> Verdict {
    let (mut missing, mut there) = (Vec::new(), Vec::new());
    for node in nodes {
        let Some(object) = objects.get(&ObjectId::cluster("v1", "Node", node.name.as_str())) else {
            missing.push(node.name.as_str());
            continue;
        };
        let address = address(object);
        if address != Some(node.address) {
            let seen = address.map_or_else(|| "none".to_owned(), |a| a.to_string());
            return Verdict::Waiting(format!(
                "Node {} has the address {seen}, not {}",
                node.name, node.address
            ));
        }
        there.push(object);
    }
    if !missing.is_empty() {
        return Verdict::Waiting(format!("not joined yet: {}", few(&missing)));
    }
    if let Some(reason) = not_ready(&there).or_else(|| stale(nodes, objects, told)) {
        return Verdict::Waiting(reason);
    }
    let mut wanted = ON_EACH.map(|name| ("DaemonSet", name)).to_vec();
    wanted.extend(coredns.then_some(("Deployment", "coredns")));
    for (kind, name) in wanted {
        match objects.get(&ObjectId::namespaced("apps/v1", kind, SYSTEM, name)) {
            Some(object) => there.push(object),
            None => return Verdict::Waiting(format!("{kind} {SYSTEM}/{name} is not there yet")),
        }
    }
    if let Some(reason) = late(&there, objects) {
        return Verdict::Waiting(reason);
    }
    for (object, name) in there.iter().skip(nodes.len()).zip(ON_EACH) {
        let available = object.number("/status/numberAvailable");
        if usize::try_from(available).unwrap_or(0) < nodes.len() {
            return Verdict::Waiting(format!(
                "{name} runs on {available} of {} nodes",
                nodes.len()
            ));
        }
    }
    let failed = there.iter().map(|object| judge(object));
    if let Some(failed) = failed.into_iter().find(|verdict| matches!(verdict, Verdict::Failed(_))) {
        return failed;
    }
    let proof = words(there.last().map(|object| judge(object)));
    Verdict::Ready(format!("{} nodes Ready; {proof}", nodes.len()))
}

/// What keeps the first that is late, in the words of its pods where they are looked at, and how many more are.
fn late(there: &[&Object], around: &Objects) -> Option<String> {
    let mut late = there.iter().filter_map(|object| match judge_among(object, around.values()) {
        Verdict::Waiting(reason) => Some(reason),
        Verdict::Ready(_) | Verdict::Failed(_) => None,
    });
    let first = late.next()?;
    Some(match late.count() {
        0 => first,
        more => format!("{first}; and {more} more"),
    })
}

fn words(verdict: Option<Verdict>) -> String {
    match verdict {
        Some(Verdict::Ready(words)) => words,
        _ => String::new(),
    }
}

/// Which of the nodes are not Ready, and why, on one line.
fn not_ready(nodes: &[&Object]) -> Option<String> {
    let late: Vec<(&str, String)> = nodes
        .iter()
        .filter(|node| !matches!(judge(node), Verdict::Ready(_)))
        .map(|node| (node.name(), clause(node)))
        .collect();
    let (_, first) = late.first()?;
    let told = if late.iter().all(|(_, why)| why == first) {
        let names: Vec<&str> = late.iter().map(|(name, _)| *name).collect();
        format!("{} ({first})", few(&names))
    } else {
        let each: Vec<String> = late.iter().map(|(name, why)| format!("{name} ({why})")).collect();
        few(&each)
    };
    Some(format!("{} of {} nodes are not Ready: {told}", late.len(), nodes.len()))
}

/// The first clause of what the kubelet says; what follows is the same said by the layers below it.
fn clause(node: &Object) -> String {
    let said = node.entries("/status/conditions").iter().find(|entry| entry["type"] == "Ready");
    let message = said.and_then(|entry| entry["message"].as_str()).unwrap_or_default();
    let first = message.trim_start_matches('[').split([':', ',', ';']).next().unwrap_or_default();
    let first = first.trim_end_matches(['.', ']']).trim();
    if first.is_empty() { "has not reported yet".to_owned() } else { first.to_owned() }
}

/// The address by which a node is known in the castle's network.
fn address(node: &Object) -> Option<Ipv4Addr> {
    node.entries("/status/addresses")
        .iter()
        .find(|entry| entry["type"] == "InternalIP")
        .and_then(|entry| entry["address"].as_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
