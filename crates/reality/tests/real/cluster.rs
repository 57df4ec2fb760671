//! The harness itself: a real cluster whose kubelets are played runs what it is given, and programs are probed.

use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use castle_kubernetes::{Kubernetes, Mode, Object, ObjectId, judge};
use castle_model::Verdict;
use castle_reality::cluster::{Cluster, Part};
use castle_reality::kubelet::{Container, Kubelet, Ready, Start};
use castle_reality::{alone, nap};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

/// How long anything may take on a machine that is busy.
const LIMIT: Duration = Duration::from_mins(2);
/// How long a container of this test takes until it runs.
const DELAY: Duration = Duration::from_secs(2);

fn deployment(name: &str, replicas: u32, container: &Value) -> Object {
    let labels = json!({"app": name});
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
        }},
    });
    Object::new(value).unwrap()
}

async fn until_ready(client: &Kubernetes, id: &ObjectId) {
    let ready = async {
        loop {
            let there = client.get(id).await.unwrap().unwrap();
            if matches!(judge::judge(&there), Verdict::Ready(_)) {
                break;
            }
            nap(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, ready).await.unwrap();
}

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn a_cluster_runs_what_it_is_given_and_readiness_is_probed() {
    alone(async {
        let Some(mut cluster) = Cluster::start(&[Part::Controllers, Part::Scheduler]).await else {
            return;
        };
        let containers = |container: &Container<'_>| {
            if container.name() != "web" {
                return Start::nothing();
            }
            let mut program = Command::new("python3");
            program
                .args(["-m", "http.server", "8080", "--bind"])
                .arg(container.address.to_string());
            Start { after: DELAY, program: Some(program), ready: Ready::Probed }
        };
        let nodes = ["cp-01", "worker-01"];
        let kubelet = Kubelet::register(&cluster, &nodes, Rc::new(containers)).await;
        let client = cluster.client();
        let kubectl = cluster.kubectl();
        let work = async {
            assert_eq!(client.version().await.unwrap(), "v1.36.3");
            let idle = deployment("idle", 3, &json!({"name": "idle", "image": "none"}));
            let web = deployment(
                "web",
                1,
                &json!({"name": "web", "image": "none", "ports": [{"name": "http", "containerPort": 8080}],
                    "readinessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 1}}),
            );
            let start = Instant::now();
            for object in [&idle, &web] {
                client.apply(object, Mode::Real).await.unwrap();
            }
            until_ready(&client, &idle.id()).await;
            until_ready(&client, &web.id()).await;
            assert!(start.elapsed() >= DELAY, "ready before its program could answer");
            client.delete(&idle.id()).await.unwrap();
            let gone = async {
                let idle = async || client.list("v1", "Pod", Some("default"), "app=idle").await;
                while !idle().await.unwrap().items.is_empty() {
                    nap(Duration::from_millis(50)).await;
                }
            };
            timeout(LIMIT, gone).await.unwrap();
            if let Some(mut kubectl) = kubectl {
                kubectl.args(["get", "pods", "--no-headers"]);
                let said = castle_reality::run(kubectl, LIMIT).await.expect_success();
                assert!(said.starts_with("web-") && said.contains("1/1"), "{said}");
            }
        };
        tokio::select! {
            biased;
            () = work => {}
            _ = kubelet.run() => {}
        }
    });
}
