//! `platform/nodes`: every declared node is Ready at its own address, and the cluster's network is rolled out.

use std::net::Ipv4Addr;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Graph, Step};
use castle_kubernetes::judge::{judge, judge_all};
use castle_kubernetes::{Object, ObjectId, Place};
use castle_model::spec::NodeSpec;
use castle_model::{Change, Failure, Observed, Spec, StepDecl, Verb, Verdict};
use castle_talos::Presence;
use castle_wire::World;
use serde_json::Value;

use crate::cluster::{Closer, Cluster, Objects, few, observed};
use crate::handed::LIFE;
use crate::ids;
use crate::talos::{LIFE_OUTPUT, Patience, Realm, proven_in_this_life};

const SYSTEM: &str = "kube-system";

/// The service of a machine that is a node, and its state when it does what it should.
const KUBELET: &str = "kubelet";
const RUNNING: &str = "Running";

/// What runs on every node: the network between pods, and the way to services.
const ON_EACH: [&str; 2] = ["kube-flannel", "kube-proxy"];

/// Declares the step.
#[must_use]
pub fn declare(spec: &Spec) -> Vec<StepDecl> {
    let title = format!("{} nodes Ready, network rolled out", spec.nodes.len());
    vec![
        StepDecl::new(ids::nodes(), title, "nodes")
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
    async fn bring_back(&self, cx: &Context) -> Result<Change, Failure> {
        let spec = &self.cluster.spec;
        let there = self.cluster.look(cx, &Self::places()).await?;
        let mut change = Change::Unchanged;
        for node in gone(&spec.nodes, &there) {
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

    fn places() -> Vec<Place> {
        vec![
            Place::everywhere("v1", "Node"),
            Place::within("apps/v1", "DaemonSet", SYSTEM),
            Place::within("apps/v1", "Deployment", SYSTEM),
        ]
    }
}

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
        let seen =
            observed(settle(&self.cluster.spec.nodes, self.cluster.spec.machine.coredns, &there));
        if !before && matches!(seen, Observed::Right { .. }) {
            cx.learn(LIFE_OUTPUT, cx.outputs().get(&LIFE)?.incarnation.to_string());
        }
        Ok(seen)
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let life = cx.outputs().get(&LIFE)?.incarnation.to_string();
        // Before all of them have joined once, a Node that is missing is one that has not come yet.
        let before = proven_in_this_life(cx)?;
        let change = if before { self.bring_back(cx).await? } else { Change::Unchanged };
        Ok(Acted::of(change).with(LIFE_OUTPUT, life))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let spec = &self.cluster.spec;
        let patience = Patience::of(cx);
        let judge = |objects: &Objects| settle(&spec.nodes, spec.machine.coredns, objects);
        // Why a node is not Ready is seen on its machine, not through Kubernetes.
        let closer = Closer {
            due: &|| patience.until(),
            look: &|| {
                Box::pin(async {
                    if patience.is_over() {
                        self.realm.look_closer(cx, &spec.nodes, true, &patience).await;
                    }
                })
            },
        };
        let what = "every node to be Ready";
        let settled = self.cluster.settled_by(cx, what, Self::places(), judge, Some(closer)).await;
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
fn settle(nodes: &[NodeSpec], coredns: bool, objects: &Objects) -> Verdict {
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
    if let Some(reason) = not_ready(&there) {
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
    if let Verdict::Waiting(reason) = judge_all(there.iter().copied()) {
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
    match judge_all(there.iter().copied()) {
        Verdict::Ready(_) => Verdict::Ready(format!(
            "{} nodes Ready; {}",
            nodes.len(),
            words(there.last().map(|o| judge(o)))
        )),
        other => other,
    }
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
mod tests {
    use castle_model::spec::Role;
    use castle_model::spec::{Body, StandingSpec};
    use serde_json::json;

    use super::*;

    /// What a kubelet says before the network is there.
    const CNI: &str = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady \
        message:Network plugin returns error: cni plugin not initialized";

    fn wanted() -> Vec<NodeSpec> {
        let node = |name: &str, last: u8, role| NodeSpec {
            name: name.parse().unwrap(),
            role,
            address: [10, 0, 0, last].into(),
            body: Body::Standing(StandingSpec { uuid: None, data_disk: false }),
        };
        vec![node("cp-01", 1, Role::ControlPlane), node("worker-01", 2, Role::Worker)]
    }

    fn node(name: &str, address: &str, ready: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {
            "addresses": [{"type": "InternalIP", "address": address}],
            "conditions": [{"type": "Ready", "status": ready, "reason": "KubeletNotReady", "message": CNI}]}})
    }

    fn on_each(name: &str, available: u32) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name, "namespace": "kube-system"},
            "status": {"desiredNumberScheduled": available, "updatedNumberScheduled": available, "numberAvailable": available}})
    }

    fn coredns() -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "spec": {"replicas": 2}, "status": {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}})
    }

    fn say(objects: Vec<Value>) -> String {
        say_with(true, objects)
    }

    fn say_with(coredns: bool, objects: Vec<Value>) -> String {
        let objects =
            objects.into_iter().map(|v| Object::new(v).unwrap()).map(|o| (o.id(), o)).collect();
        match settle(&wanted(), coredns, &objects) {
            Verdict::Ready(words) => format!("ready: {words}"),
            Verdict::Waiting(words) => format!("waiting: {words}"),
            Verdict::Failed(failure) => failure.to_string(),
        }
    }

    #[test]
    fn each_missing_proof_is_named() {
        let (one, two) = (node("cp-01", "10.0.0.1", "True"), node("worker-01", "10.0.0.2", "True"));
        assert_eq!(say(vec![one.clone()]), "waiting: not joined yet: worker-01");
        assert_eq!(
            say(vec![one.clone(), node("worker-01", "10.0.0.9", "True")]),
            "waiting: Node worker-01 has the address 10.0.0.9, not 10.0.0.2"
        );
        assert_eq!(
            say(vec![one.clone(), two.clone()]),
            "waiting: DaemonSet kube-system/kube-flannel is not there yet"
        );
        assert_eq!(
            say(vec![one.clone(), node("worker-01", "10.0.0.2", "False")]),
            "waiting: 1 of 2 nodes are not Ready: worker-01 (container runtime network not ready)"
        );
        let (flannel, proxy) = (on_each("kube-flannel", 2), on_each("kube-proxy", 2));
        let with = |extra: &[&Value]| {
            let all = [&one, &two].into_iter().chain(extra.iter().copied());
            all.cloned().collect::<Vec<Value>>()
        };
        let late = on_each("kube-flannel", 1);
        assert_eq!(
            say(with(&[&late, &proxy, &coredns()])),
            "waiting: kube-flannel runs on 1 of 2 nodes"
        );
        assert_eq!(
            say(with(&[&flannel, &coredns()])),
            "waiting: DaemonSet kube-system/kube-proxy is not there yet"
        );
        assert_eq!(
            say(with(&[&flannel, &on_each("kube-proxy", 0), &coredns()])),
            "waiting: kube-proxy runs on 0 of 2 nodes"
        );
        assert_eq!(
            say(with(&[&flannel, &proxy])),
            "waiting: Deployment kube-system/coredns is not there yet"
        );
        assert_eq!(
            say(with(&[&flannel, &proxy, &coredns()])),
            "ready: 2 nodes Ready; Deployment kube-system/coredns has 2 of 2 replicas available"
        );
        let without = say_with(false, with(&[&flannel, &proxy]));
        assert!(without.starts_with("ready: 2 nodes Ready; DaemonSet"), "{without}");
    }

    #[test]
    fn nodes_that_are_not_ready_are_told_on_one_line() {
        let said = |name: &str, message: &str| {
            Object::new(
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {
                "conditions": [{"type": "Ready", "status": "False", "message": message}]}}),
            )
            .unwrap()
        };
        let one = said("cp-01", CNI);
        let two = said(
            "cp-02",
            "[PLEG is not healthy: pleg was last seen active 3m ago, CSINode is not there]",
        );
        let three = said("cp-03", "Kubelet stopped posting node status.");
        assert_eq!(
            not_ready(&[&one, &one, &one]).unwrap(),
            "3 of 3 nodes are not Ready: cp-01, cp-01 and 1 more (container runtime network not ready)"
        );
        assert_eq!(
            not_ready(&[&two, &three, &one]).unwrap(),
            "3 of 3 nodes are not Ready: cp-02 (PLEG is not healthy), cp-03 (Kubelet stopped posting node status) and 1 more"
        );
        assert_eq!(
            not_ready(&[&said("cp-04", "")]).unwrap(),
            "1 of 1 nodes are not Ready: cp-04 (has not reported yet)"
        );
        assert_eq!(not_ready(&[]), None);
    }
}
