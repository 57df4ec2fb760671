//! kubectl, the client that people use, against the emulated cluster.

use castle_reality::{Output, Real, run};
use castle_talos::access::KubeAccess;
use castle_talos::{Bundle, Talos, TalosAccess};
use castle_wire::{SystemClock, SystemEntropy};
use tokio::time::timeout;

use crate::datacenter::{Datacenter, LIMIT, machines};
use crate::setting::{folder, with, write};

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: 'example.org/web:1'}]
";

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_curious_person_looks_and_changes_by_kubectl() {
    let Some(kubectl) = Real::find("kubectl") else { return };
    let datacenter = Datacenter::open(machines(88, 1, 1)).await;
    let bundle = Bundle::generate(&SystemEntropy, &SystemClock).unwrap();
    let access = TalosAccess::issue(&bundle, &SystemEntropy, &SystemClock).unwrap();
    datacenter.configure(&bundle, &access).await;
    let first = datacenter.spec.nodes[0].address;
    let world = datacenter.world();
    let talos = Talos::secure(&world, first, &access).await.unwrap();
    // A machine that has just got its config is not ready for it yet, and says so.
    let begun = async { while talos.bootstrap().await.is_err() {} };
    assert!(timeout(LIMIT, begun).await.is_ok(), "etcd can not be begun");
    let ours = KubeAccess::issue(&datacenter.spec, &bundle, &SystemEntropy, &SystemClock).unwrap();
    let place = folder();
    let file = write(place.path(), "kubeconfig", ours.kubeconfig(&datacenter.spec).expose());
    let (file, cache) = (file.display().to_string(), place.path().display().to_string());
    let type_in = async |words: &[&str]| -> Output {
        let who = ["--kubeconfig", &file, "--cache-dir", &cache];
        run(with(kubectl.program(), &[&who, words].concat()), LIMIT).await
    };
    let raised = async { while type_in(&["get", "nodes"]).await.code != Some(0) {} };
    assert!(timeout(LIMIT, raised).await.is_ok(), "the cluster never answers");
    let waited = ["wait", "--for=condition=Ready", "node", "--all", "--timeout=100s"];
    let told = type_in(&waited).await.expect_success();
    assert!(told.contains("node/worker-01 condition met"), "{told}");

    let told = type_in(&["api-resources", "--no-headers"]).await.expect_success();
    let deployments = told.lines().find(|line| line.starts_with("deployments")).unwrap();
    let columns: Vec<&str> = deployments.split_whitespace().collect();
    assert_eq!(columns, ["deployments", "deploy", "apps/v1", "true", "Deployment"]);
    let told = type_in(&["version"]).await.expect_success();
    assert!(told.contains("Server Version: v1.36.3"), "{told}");

    let web = write(place.path(), "web.yaml", WEB).display().to_string();
    let told = type_in(&["apply", "--server-side", "-f", &web]).await.expect_success();
    assert_eq!(told, "deployment.apps/web serverside-applied\n");
    let told = type_in(&["rollout", "status", "deploy/web", "--timeout=100s"]).await;
    assert!(told.expect_success().contains("successfully rolled out"));
    let told = type_in(&["get", "pods", "-l", "app=web", "--output", "name"]).await;
    assert_eq!(told.expect_success().lines().count(), 2);
    drop(type_in(&["label", "deploy/web", "mine=yes"]).await.expect_success());
    drop(
        type_in(&["patch", "deploy/web", "-p", "{\"spec\":{\"replicas\":1}}"])
            .await
            .expect_success(),
    );
    let refused = type_in(&["apply", "--server-side", "-f", &web]).await.expect_failure();
    assert!(
        refused.contains("conflict with \"kubectl-patch\" using apps/v1: .spec.replicas"),
        "{refused}"
    );
    let told = type_in(&["apply", "--server-side", "--force-conflicts", "-f", &web]).await;
    assert_eq!(told.expect_success(), "deployment.apps/web serverside-applied\n");
    let told = type_in(&["delete", "deploy/web", "--timeout=100s"]).await.expect_success();
    assert!(told.starts_with("deployment.apps \"web\" deleted"), "{told}");
}
