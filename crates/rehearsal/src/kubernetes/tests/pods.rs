//! Pods and what keeps them from running: PodSecurity, the scheduler, registries.

use super::*;
use crate::kubernetes::KubernetesTrouble;

fn events(rig: &mut Rig, namespace: &str, reason: &str) -> Vec<String> {
    let list =
        rig.get(&format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason={reason}"));
    let items = list["items"].as_array().unwrap();
    items.iter().map(|e| e["message"].as_str().unwrap().to_owned()).collect()
}

fn speaker() -> Value {
    let mut set = deployment("metallb", "speaker", 1);
    set["kind"] = "DaemonSet".into();
    set["spec"].as_object_mut().unwrap().remove("replicas");
    set["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    set
}

#[test]
fn a_namespace_without_a_label_takes_no_pod_of_the_host() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.namespace("metallb");
    let path = "/apis/apps/v1/namespaces/metallb/daemonsets/speaker";
    rig.good(path, &speaker());
    rig.pass(5_000);
    let status = rig.get(path)["status"].clone();
    assert_eq!(
        (&status["desiredNumberScheduled"], &status["currentNumberScheduled"]),
        (&json!(2), &json!(0))
    );
    let told = events(&mut rig, "metallb", "FailedCreate");
    assert!(told[0].starts_with("Error creating: pods \"speaker-"), "{told:?}");
    assert!(
        told[0].ends_with("is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)"),
        "{told:?}"
    );
    let labels =
        json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}});
    rig.raw("PATCH", "/api/v1/namespaces/metallb", "application/merge-patch+json", &labels);
    rig.pass(30_000);
    assert_eq!(rig.get(path)["status"]["numberReady"], 2);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"hostPID": true, "containers": [{"name": "c", "image": "a:1"}]}});
    let (status, no) = rig.call("POST", "/api/v1/namespaces/default/pods", &pod);
    assert_eq!(
        (status, no["message"].as_str().unwrap()),
        (
            403,
            "pods \"p\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostPID=true)"
        )
    );
}

#[test]
fn a_deployment_tells_by_its_replica_set_that_pods_are_refused() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    let mut web = deployment("default", "web", 2);
    web["spec"]["template"]["spec"]["hostNetwork"] = true.into();
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    rig.good(path, &web);
    rig.pass(2_000);
    let failing = |object: &Value| {
        let conditions = object["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|c| c["type"] == "ReplicaFailure" && c["reason"] == "FailedCreate")
    };
    assert!(failing(&rig.get(path)));
    let sets = rig.get("/apis/apps/v1/namespaces/default/replicasets");
    assert!(failing(&sets["items"][0]));
    web["spec"]["template"]["spec"]["hostNetwork"] = false.into();
    rig.good(path, &web);
    rig.pass(30_000);
    let healed = rig.get(path);
    assert!(!failing(&healed), "{healed}");
    assert_eq!(healed["status"]["readyReplicas"], 2);
    let sets = rig.get("/apis/apps/v1/namespaces/default/replicasets");
    let counts: Vec<u64> = sets["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|set| set["spec"]["replicas"].as_u64().unwrap())
        .collect();
    assert_eq!(counts.iter().sum::<u64>(), 2, "the old one is scaled down: {counts:?}");
}

#[test]
fn pods_of_a_deployment_belong_to_its_replica_set_and_go_with_it() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.deployment("default", "web");
    rig.pass(30_000);
    let set = rig.get("/apis/apps/v1/namespaces/default/replicasets")["items"][0].clone();
    let pod = rig.get("/api/v1/namespaces/default/pods")["items"][0].clone();
    assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
    assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true);
    assert_eq!(set["status"]["readyReplicas"], 1);
    let name = pod["metadata"]["name"].as_str().unwrap();
    rig.call("DELETE", &format!("/api/v1/namespaces/default/pods/{name}"), &Value::Null);
    rig.pass(30_000);
    let other = rig.get("/api/v1/namespaces/default/pods")["items"][0].clone();
    assert_ne!(other["metadata"]["name"], name, "a pod that is deleted is replaced");
    rig.call("DELETE", "/apis/apps/v1/namespaces/default/deployments/web", &Value::Null);
    rig.pass(5_000);
    assert_eq!(rig.get("/apis/apps/v1/namespaces/default/replicasets")["items"], json!([]));
    assert_eq!(rig.get("/api/v1/namespaces/default/pods")["items"], json!([]));
}

#[test]
fn a_pod_that_no_node_takes_says_why() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    let mut web = deployment("default", "web", 1);
    web["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
    rig.good("/apis/apps/v1/namespaces/default/deployments/web", &web);
    rig.pass(2_000);
    let why = "0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated \
        taint {node-role.kubernetes.io/control-plane: }. preemption: 0/3 nodes are available: 3 Preemption is not helpful \
        for scheduling.";
    assert_eq!(events(&mut rig, "default", "FailedScheduling"), [why]);
    let pod = rig.get("/api/v1/namespaces/default/pods")["items"][0].clone();
    assert_eq!(pod["status"]["conditions"][0]["message"], why);
}

#[test]
fn a_scant_registry_keeps_pods_waiting_until_it_lets_them() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    let limit = KubernetesTrouble::PullsLimited("docker.io".into(), 0, 60_000);
    rig.turn(|cluster, turn| cluster.suffer(turn, &limit));
    rig.deployment("default", "web");
    rig.pass(5_000);
    let pod = rig.get("/api/v1/namespaces/default/pods")["items"][0].clone();
    let waiting = &pod["status"]["containerStatuses"][0]["state"]["waiting"];
    assert_eq!(waiting["reason"], "ImagePullBackOff");
    assert!(waiting["message"].as_str().unwrap().contains("toomanyrequests"), "{waiting}");
    assert_eq!(events(&mut rig, "default", "BackOff"), ["Back-off pulling image \"a:1\""]);
    rig.pass(120_000);
    let path = "/apis/apps/v1/namespaces/default/deployments/web";
    assert_eq!(rig.get(path)["status"]["readyReplicas"], 1);
}
