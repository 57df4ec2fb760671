//! Nodes: when all of them are Ready, and what keeps one.

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
    match settle(&wanted(), coredns, &objects, &Told::new()) {
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
fn a_node_that_an_earlier_machine_reported_proves_nothing() {
    let reported = |boot: Option<&str>| {
        let mut objects = Objects::new();
        for (name, boot) in [("cp-01", Some("a")), ("worker-01", boot)] {
            let mut node = node(name, "10.0.0.1", "True");
            if let Some(boot) = boot {
                node["status"]["nodeInfo"] = json!({"bootID": boot});
            }
            let object = Object::new(node).unwrap();
            objects.insert(object.id(), object);
        }
        objects
    };
    let told = |worker: Result<&str, &str>| -> Told {
        let worker = worker.map(str::to_owned).map_err(str::to_owned);
        let each = [("cp-01", Ok("a".to_owned())), ("worker-01", worker)];
        each.map(|(name, boot)| (name.parse().unwrap(), boot)).into()
    };
    let judge = |boot, worker| stale(&wanted(), &reported(boot), &told(worker));
    assert_eq!(judge(Some("b"), Ok("b")), None);
    assert_eq!(
        judge(Some("b"), Ok("c")).unwrap(),
        "Node worker-01 was reported before its machine booted: its kubelet has not spoken since"
    );
    assert_eq!(
        judge(Some("b"), Err("no answer")).unwrap(),
        "worker-01 does not tell which boot it is in: no answer"
    );
    assert_eq!(judge(None, Ok("c")), None, "a Node that names no boot is held against none");
}

#[test]
fn the_pods_of_the_network_say_what_keeps_them() {
    let mut flannel = on_each("kube-flannel", 1);
    flannel["spec"] = json!({"selector": {"matchLabels": {"app": "flannel"}}});
    flannel["status"]["desiredNumberScheduled"] = 2.into();
    flannel["status"]["updatedNumberScheduled"] = 2.into();
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "kube-flannel-x", "namespace": "kube-system",
        "labels": {"app": "flannel"}},
        "status": {"phase": "Pending", "containerStatuses": [{"name": "f", "ready": false, "state": {"waiting": {
            "reason": "ImagePullBackOff", "message": "429 Too Many Requests"}}}]}});
    let nodes = [node("cp-01", "10.0.0.1", "True"), node("worker-01", "10.0.0.2", "True")];
    let mut all = nodes.to_vec();
    all.extend([flannel, on_each("kube-proxy", 2), coredns(), pod]);
    let said = say(all);
    assert!(
        said.starts_with("waiting: DaemonSet kube-system/kube-flannel is available on 1"),
        "{said}"
    );
    assert!(said.contains("kube-flannel-x") && said.contains("429 Too Many Requests"), "{said}");
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
