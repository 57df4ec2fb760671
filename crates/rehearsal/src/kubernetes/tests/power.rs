//! Machines without power: nothing on them goes on, whatever the cluster still believes.

use super::stories::{POOL_DRY, metallb, pool};
use super::*;

fn joined(name: &str, last: u8) -> Signal {
    Signal::NodeJoined {
        cluster: "one".into(),
        name: name.into(),
        address: [192, 168, 1, last].into(),
        control_plane: false,
        data_disk: true,
        extensions: vec!["siderolabs/iscsi-tools".into()],
        version: "v1.36.3".into(),
        boot_id: "1".into(),
        hardware: Hardware::default(),
    }
}

impl Rig {
    fn workers_lost(&mut self) {
        for name in ["worker-01", "worker-02"] {
            self.hear(&Signal::NodeLost { cluster: "one".into(), name: name.into() });
        }
    }

    fn workers_back(&mut self) {
        for (name, last) in [("worker-01", 2), ("worker-02", 3)] {
            self.hear(&joined(name, last));
        }
    }

    fn is_ready(&mut self, node: &str) -> bool {
        crate::kubernetes::kinds::condition(&self.get(&format!("/api/v1/nodes/{node}")), "Ready")
    }
}

const WEB: &str = "/apis/apps/v1/namespaces/default/deployments/web";

#[test]
fn a_pull_ends_with_the_power_and_begins_again_with_it() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.good(WEB, &deployment("default", "web", 2));
    rig.pass(1_000);
    let begun = rig.get("/api/v1/namespaces/default/pods");
    assert!(begun["items"][0]["status"]["startTime"].is_string(), "a pull is under way: {begun}");
    rig.workers_lost();
    rig.pass(35_000);
    assert!(rig.is_ready("worker-01"), "the cluster has not noticed yet");
    let pods = rig.get("/api/v1/namespaces/default/pods");
    assert_eq!(pods["items"][0]["status"]["phase"], "Pending", "{pods}");
    rig.good(WEB, &deployment("default", "web", 3));
    rig.pass(60_000);
    assert!(!rig.is_ready("worker-01"));
    assert_eq!(rig.get(WEB)["status"]["readyReplicas"], Value::Null);
    rig.workers_back();
    rig.pass(90_000);
    assert_eq!(rig.get(WEB)["status"]["readyReplicas"], 3);
}

#[test]
fn pods_start_again_after_an_outage_that_nobody_noticed() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    rig.good(WEB, &deployment("default", "web", 2));
    rig.pass(60_000);
    assert_eq!(rig.get(WEB)["status"]["readyReplicas"], 2);
    rig.workers_lost();
    rig.pass(10_000);
    rig.workers_back();
    let mut fewest = 2;
    for _ in 0..600 {
        rig.pass(100);
        fewest = fewest.min(rig.get(WEB)["status"]["readyReplicas"].as_u64().unwrap_or(0));
    }
    assert_eq!(fewest, 0, "their processes were gone");
    assert_eq!(rig.get(WEB)["status"]["readyReplicas"], 2);
}

#[test]
fn a_controller_without_power_does_nothing() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    rig.pass(60_000);
    assert_eq!(rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9")).0, 201);
    rig.good(&POOL_DRY[..POOL_DRY.find('?').unwrap()], &pool("10.0.0.1-10.0.0.9"));
    rig.workers_lost();
    let (status, no) = rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9"));
    assert_eq!(status, 500);
    assert!(no["message"].as_str().unwrap().ends_with("context deadline exceeded"), "{no}");
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]}});
    let path = "/api/v1/namespaces/default/services/web";
    rig.good(path, &service);
    rig.pass(30_000);
    let given = |rig: &mut Rig| rig.get(path)["status"]["loadBalancer"]["ingress"].is_array();
    assert!(!given(&mut rig), "nobody is there to give an address");
    rig.workers_back();
    rig.pass(60_000);
    assert!(given(&mut rig), "it takes up what waited for it");
}

#[test]
fn a_webhook_whose_machine_went_down_before_it_served_is_not_written_down_as_serving() {
    let mut rig = Rig::born();
    rig.pass(90_000);
    metallb(&mut rig);
    let available = |rig: &mut Rig| {
        let path = "/apis/apps/v1/namespaces/metallb-system/deployments/controller";
        rig.get(path)["status"]["availableReplicas"] == 1
    };
    while !available(&mut rig) {
        rig.pass(50);
    }
    rig.workers_lost();
    rig.pass(30_000);
    let hook =
        rig.get("/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook");
    assert_eq!(hook["webhooks"][0]["clientConfig"]["caBundle"], Value::Null);
    rig.workers_back();
    rig.pass(90_000);
    assert_eq!(rig.call("PATCH", POOL_DRY, &pool("10.0.0.1-10.0.0.9")).0, 201);
}
