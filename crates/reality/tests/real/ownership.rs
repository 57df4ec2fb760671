//! Who holds what, as a real API server writes it down: sets are not sent twice, edits are noticed, others are named.

use std::time::Duration;

use castle_kubernetes::manifest::parse;
use castle_kubernetes::{Kubernetes, Mark, Mode, Object, ObjectId, Survey, rank};
use castle_model::{Class, DigestKey, Incarnation, Secret};
use castle_reality::cluster::Cluster;
use castle_reality::{Raw, Real, alone, nap};
use serde_json::{Value, json};

/// Objects with every kind of list and map that manifests have: with keys, with keys that the server fills in, sets,
/// atomic ones, empty ones.
const RICH: &str = include_str!("ownership.yaml");

fn mark() -> Mark {
    Mark {
        castle: "blue".parse().unwrap(),
        layer: "garden".parse().unwrap(),
        incarnation: Incarnation::from_bytes([7; 8]),
        key: DigestKey::derived(&Secret::new("a test's"), "objects"),
    }
}

fn marked(name: &str, text: &str) -> Vec<Object> {
    let mut objects = parse(name, text).unwrap();
    for object in &mut objects {
        mark().put_on(object);
    }
    rank::sort(&mut objects);
    objects
}

/// Applies a set as a layer does, with a pause before objects whose kinds it has just defined.
async fn apply_all(client: &Kubernetes, objects: &[Object]) {
    for object in objects {
        let mut tries = 0;
        while let Err(error) = client.apply(object, Mode::Real).await {
            let known = error.is_not_found() || error.class() == Class::Transient;
            assert!(known && tries < 200, "{}: {}", object.id(), error.failure());
            tries += 1;
            nap(Duration::from_millis(50)).await;
        }
    }
}

fn told(survey: &Survey) -> Vec<String> {
    let differing = survey.differing.iter().map(|(id, why)| format!("{id}: {why}"));
    let foreign = survey.foreign.iter().map(|(id, claim)| format!("{id}: {claim}"));
    let absent = survey.absent.iter().map(|id| format!("{id} is absent"));
    // The hour is the server's own.
    absent.chain(differing).chain(foreign).map(|text| before_the_hour(&text)).collect()
}

fn before_the_hour(text: &str) -> String {
    let end = [" at 20", ", last at 20"].iter().filter_map(|part| text.find(part)).min();
    text[..end.unwrap_or(text.len())].to_owned()
}

/// A set that stands, and somebody else who writes.
struct Bench {
    client: Kubernetes,
    raw: Raw,
    objects: Vec<Object>,
}

const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/garden/deployments/web";

impl Bench {
    async fn told(&self) -> Vec<String> {
        told(&self.client.survey(&mark(), &self.objects).await.unwrap())
    }

    async fn merge(&self, path: &str, manager: &str, body: &Value) {
        let path = format!("{path}?fieldManager={manager}");
        self.raw.merge(&path, body).await.unwrap().must_succeed();
    }

    /// The wanted object of a kind, with one more label.
    fn changed(&self, kind: &str) -> Object {
        let object = self.objects.iter().find(|object| object.kind() == kind).unwrap();
        let mut value = object.clone().into_value();
        value["metadata"]["labels"]["changed"] = "yes".into();
        let mut object = Object::new(value).unwrap();
        mark().put_on(&mut object);
        object
    }
}

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn a_set_that_stands_is_not_sent_again_and_every_hand_in_it_is_told() {
    alone(async {
        let Some(cluster) = Cluster::start(&[]).await else { return };
        let objects = marked("ownership.yaml", RICH);
        let bench = Bench { client: cluster.client(), raw: cluster.raw(), objects };
        let survey = bench.client.survey(&mark(), &bench.objects).await.unwrap();
        assert!(survey.is_absent(), "{:#?}", told(&survey));
        assert_eq!(bench.client.misplaced(&bench.objects).await.unwrap(), []);
        apply_all(&bench.client, &bench.objects).await;
        assert_eq!(bench.told().await, Vec::<String>::new());
        edits(&bench).await;
        delegates(&bench).await;
        reconcilers(&bench).await;
        strangers(&bench).await;
    });
}

/// A person's edits of our fields are noticed and put back; what is added beside them is left alone.
async fn edits(bench: &Bench) {
    let beside = json!({"metadata": {"labels": {"theirs": "1"}}, "spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}});
    bench.merge(DEPLOYMENT, "kubectl-edit", &beside).await;
    assert_eq!(bench.told().await, Vec::<String>::new());
    bench.merge(DEPLOYMENT, "kubectl-edit", &json!({"spec": {"replicas": 5}})).await;
    assert_eq!(
        bench.told().await,
        ["Deployment garden/web: kubectl-edit has changed .spec.replicas 5 -> 2"]
    );
    apply_all(&bench.client, &bench.objects).await;
    assert_eq!(bench.told().await, Vec::<String>::new());
    let web = bench.raw.get(DEPLOYMENT).await.unwrap().expect_success();
    assert_eq!(
        (&web["spec"]["replicas"], &web["metadata"]["labels"]["theirs"]),
        (&json!(2), &json!("1"))
    );

    let map = "/api/v1/namespaces/garden/configmaps/settings";
    bench.merge(map, "kubectl-edit", &json!({"data": {"first": null}})).await;
    assert_eq!(bench.told().await, ["ConfigMap garden/settings: somebody has removed .data.first"]);
    let stripped = json!({"metadata": {"labels": {"castle.dev/castle": null}}});
    bench.merge(map, "kubectl-label", &stripped).await;
    assert_eq!(
        bench.told().await,
        [
            "ConfigMap garden/settings: somebody has removed .metadata.labels.castle.dev/castle, .data.first"
        ]
    );
    apply_all(&bench.client, &bench.objects).await;
    assert_eq!(bench.told().await, Vec::<String>::new());
}

/// What a controller fills in, or an autoscaler sets, stays also when we apply for another reason.
async fn delegates(bench: &Bench) {
    let hook = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/garden";
    let there = bench.raw.get(hook).await.unwrap().expect_success();
    let mut webhooks = there["webhooks"].clone();
    webhooks[0]["clientConfig"]["caBundle"] = "bmV3".into();
    bench.merge(hook, "controller", &json!({"webhooks": webhooks})).await;
    let scale = format!("{DEPLOYMENT}/scale");
    bench.merge(&scale, "kube-controller-manager", &json!({"spec": {"replicas": 7}})).await;
    assert_eq!(bench.told().await, Vec::<String>::new());
    for kind in ["ValidatingWebhookConfiguration", "Deployment"] {
        let changed = bench.client.apply(&bench.changed(kind), Mode::Real).await.unwrap();
        assert_eq!(changed.label("changed"), Some("yes"));
    }
    let there = bench.raw.get(hook).await.unwrap().expect_success();
    assert_eq!(there["webhooks"][0]["clientConfig"]["caBundle"], "bmV3");
    let web = bench.raw.get(DEPLOYMENT).await.unwrap().expect_success();
    assert_eq!(web["spec"]["replicas"], 7);
    apply_all(&bench.client, &bench.objects).await;
    assert_eq!(bench.told().await, Vec::<String>::new());
}

/// Another reconciler over our fields is a conflict that names it, and nothing of ours is forced over it.
async fn reconcilers(bench: &Bench) {
    let theirs = json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"name": "web", "namespace": "garden", "labels": {
            "kustomize.toolkit.fluxcd.io/name": "apps", "kustomize.toolkit.fluxcd.io/namespace": "flux-system"}},
        "spec": {"selector": {"app": "other"}},
    });
    let path =
        "/api/v1/namespaces/garden/services/web?fieldManager=kustomize-controller&force=true";
    bench.raw.apply(path, &theirs).await.unwrap().must_succeed();
    assert_eq!(
        bench.told().await,
        [
            "Service garden/web: Flux (Kustomization flux-system/apps): kustomize-controller applies .spec.selector"
        ]
    );
    let error = bench.client.apply(&bench.changed("Service"), Mode::Real).await.unwrap_err();
    assert_eq!(error.class(), Class::Conflict, "{error}");
    let there = bench.raw.get("/api/v1/namespaces/garden/services/web").await.unwrap();
    assert_eq!(there.expect_success()["spec"]["selector"]["app"], "other");

    let foreign = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "theirs", "namespace": "garden"}, "data": {"a": "1"}});
    let path = "/api/v1/namespaces/garden/configmaps?fieldManager=kubectl-create";
    bench.raw.post(path, &foreign).await.unwrap().must_succeed();
    let ours = marked(
        "ours",
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: theirs, namespace: garden}\ndata: {a: \"2\"}\n",
    );
    let survey = bench.client.survey(&mark(), &ours).await.unwrap();
    assert_eq!(
        told(&survey),
        [
            "ConfigMap garden/theirs: whoever uses kubectl-create: kubectl-create has written .data.a"
        ]
    );
}

async fn strangers(bench: &Bench) {
    let strangers = bench.client.strangers("garden", &mark()).await.unwrap();
    // What Flux has taken a part of by force counts too: the namespace does not go away under it.
    let named = |kind: &str, name: &str| ObjectId::namespaced("v1", kind, "garden", name);
    assert_eq!(strangers, [named("ConfigMap", "theirs"), named("Service", "web")]);
}

#[test]
#[ignore = "a real cluster in a namespace of its own"]
fn metallbs_own_manifest_is_not_sent_twice() {
    alone(async {
        let Some(manifest) = Real::find("metallb-manifest") else { return };
        let Some(cluster) = Cluster::start(&[]).await else { return };
        let text = std::fs::read_to_string(manifest.file("metallb-native.yaml")).unwrap();
        let objects = marked("metallb-native.yaml", &text);
        let client = cluster.client();
        apply_all(&client, &objects).await;
        let survey = client.survey(&mark(), &objects).await.unwrap();
        assert_eq!(told(&survey), Vec::<String>::new());
        assert_eq!(survey.same.len(), objects.len());
    });
}
