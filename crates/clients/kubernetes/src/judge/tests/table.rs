//! The table of objects with their verdicts, pods told beside their workloads, and that no shape of object stops the judge.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::super::*;
use crate::manifest;

fn line(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Ready(words) => format!("ready    {words}"),
        Verdict::Waiting(words) => format!("waiting  {words}"),
        Verdict::Failed(failure) => {
            format!("failed   {failure} (hint: {})", failure.hint.as_deref().unwrap_or("none"))
        }
    }
}

#[test]
fn every_kind_has_its_verdict_in_words() {
    let objects = manifest::parse("objects.yaml", include_str!("objects.yaml")).unwrap();
    let lines: Vec<String> = objects.iter().map(|object| line(&judge(object))).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    waiting  Deployment a/over-quota cannot make its pods: FailedCreate: pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4, limited: pods=4
    waiting  Deployment a/past-its-deadline has 0 of 1 replicas of the new revision (ProgressDeadlineExceeded); its rollout is paused
    waiting  Deployment a/not-available is not available: MinimumReplicasUnavailable
    waiting  Deployment a/numbers-as-text has 0 of 1 replicas of the new revision
    waiting  ReplicaSet a/short has 1 of 3 replicas available
    waiting  ReplicaSet a/too-many still has 2 too many
    ready    DaemonSet a/by-hand is available on 3 of 3 nodes; 2 keep the old revision until deleted
    ready    StatefulSet a/partition has 3 of 3 replicas ready; the first 2 keep the old revision on purpose
    ready    StatefulSet a/by-hand has 1 of 1 replicas ready; a new revision comes when pods are deleted
    waiting  StatefulSet a/shrinking still has 1 too many
    waiting  Pod a/second-can-not-pull waits in container second: ErrImagePull: rpc error: code = NotFound desc = not found
    waiting  Pod a/crashing waits in container main: CrashLoopBackOff: back-off 5m0s restarting failed container; it ended with code 137 (OOMKilled), restarted 5 times
    waiting  Pod a/initializing is Pending: its init container prepare is running
    waiting  Pod a/mute is Running: container main runs and is not ready
    waiting  Pod a/ended-early is Running: container main ended with code 0 (Completed)
    failed   wait for Pod a/failed: container main ended with code 3 (Error) (hint: look at the pod's log)
    failed   wait for Pod a/evicted: Evicted: The node was low on resource (hint: look at the pod's log)
    waiting  Pod a/gated waits for its readiness gate example.org/fed: nobody has said a word
    waiting  Pod a/of-a-bad-shape is Pending, not ready
    waiting  Job a/suspended is suspended
    waiting  Job a/with-failures is running 1 pods; 2 have failed
    ready    CronJob a/nightly is there, last started at 2026-02-02T00:00:00Z
    ready    CronJob a/resting is there, suspended: it starts nothing
    waiting  PersistentVolumeClaim a/pending is Pending, of class longhorn
    ready    PersistentVolumeClaim a/growing is bound to pvc-1; being resized: Waiting for user to (re-)start a pod
    ready    PersistentVolume pvc-1 is bound to a/growing
    ready    PersistentVolume kept is released: its claim is gone, its data is kept
    failed   wait for PersistentVolume broken: no volume plugin matched (hint: look at its provisioner, then delete the volume)
    ready    PodDisruptionBudget a/counted has 3 healthy pods and needs 2; 1 may be disrupted now
    waiting  PodDisruptionBudget a/uncounted could not be counted: SyncFailed: found no controller
    waiting  HorizontalPodAutoscaler a/blind does not scale: FailedGetResourceMetric: no metrics returned
    ready    HorizontalPodAutoscaler a/at-its-limit has 5 replicas and wants 5; limited: TooManyReplicas
    waiting  HorizontalPodAutoscaler a/new has not been seen by its controller yet
    waiting  Namespace leaving is being deleted, held by kubernetes; SomeResourcesRemain: pods. has 1 resource instances
    ready    Namespace active is active
    waiting  ConfigMap a/held is being deleted, held by example.org/keep
    ready    ConfigMap a/plain is there
    ready    Node cordoned is Ready, cordoned
    waiting  Service a/no-address has no address of class metallb.io/metallb yet
    ready    Service a/two-addresses has 192.168.1.230, lb.example.org
    ready    Ingress a/no-address is there; no controller has given it an address
    ready    Ingress a/address has 192.168.1.231
    waiting  APIService v1beta1.metrics.k8s.io is not available: MissingEndpoints: no endpoints for metrics-server
    ready    CustomResourceDefinition converted is established; its conversion webhook has no caBundle yet
    waiting  CustomResourceDefinition installing is not established: Installing: the initial names have been accepted
    waiting  MutatingWebhookConfiguration placeholder has no caBundle for a.example.org
    waiting  ValidatingWebhookConfiguration nowhere says no service and no address for a.example.org
    waiting  Widget a/reconciling is being worked on: Progressing: rolling out
    ready    Widget a/stalled-before Ready is True
    ready    Widget a/available Available is True
    waiting  ExternalSecret a/synced-before has not been seen in its newest form yet
    ready    ExternalSecret a/synced SecretSynced: secret synced
    waiting  ExternalSecret a/refused is not ready: SecretSyncedError: could not get secret data from provider
    waiting  Node longhorn-system/full has no disk that takes volumes yet; disk-1: DiskPressure: the disk is 95% full
    ready    Volume longhorn-system/degraded is attached to wk-01, degraded; a replica finds no disk: ReplicaSchedulingFailure: insufficient storage
    waiting  Volume longhorn-system/faulted is faulted: no replica can be used; bring their nodes back, or salvage or restore it
    ready    Volume longhorn-system/unused is detached: nobody uses it now
    waiting  Volume longhorn-system/unplaced finds no disk for its replicas: ReplicaSchedulingFailure
    waiting  Volume longhorn-system/attaching is attaching
    ready    HelmRepository flux-system/of-oci is there; a repository of type oci is read by its charts
    ready    OCIRepository flux-system/suspended Succeeded: stored artifact (suspended: nothing changes until it is resumed)
    waiting  Kustomization flux-system/suspended-at-once is suspended and was never looked at; resume it
    waiting  Kustomization flux-system/dependent is not ready: DependencyNotReady: dependency 'flux-system/infra' is not ready
    failed   wait for HelmRelease a/out-of-retries: RetriesExceeded: Failed to install after 1 attempt(s) (hint: its controller will not try again: correct the object)
    ready    Alert flux-system/quiet is there
    "#);
}

#[test]
fn a_workload_tells_which_pod_keeps_it() {
    let parse = |text: &str| manifest::parse("m.yaml", text).unwrap();
    let all = parse(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: a}, spec: {selector: {matchLabels: {app: d}}}}\n---\n\
         {apiVersion: v1, kind: Pod, metadata: {name: fine, namespace: a, labels: {app: d}}, status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}}\n---\n\
         {apiVersion: v1, kind: Pod, metadata: {name: foreign, namespace: b, labels: {app: d}}}\n---\n\
         {apiVersion: v1, kind: Pod, metadata: {name: other, namespace: a, labels: {app: e}}}\n---\n\
         {apiVersion: v1, kind: Pod, metadata: {name: late, namespace: a, labels: {app: d}}, status: {containerStatuses: [{name: main, \
            state: {waiting: {reason: ImagePullBackOff, message: 'Back-off pulling image \"x:1\"'}}}]}}\n---\n\
         {apiVersion: v1, kind: Pod, metadata: {name: gone, namespace: a, labels: {app: d}}, status: {phase: Failed}}\n",
    );
    insta::assert_snapshot!(line(&judge_among(&all[0], &all)), @r#"waiting  Deployment a/d has 0 of 1 replicas of the new revision; Pod a/late waits in container main: ImagePullBackOff: Back-off pulling image "x:1"; and 1 more pods"#);
    assert_eq!(judge_among(&all[0], &all[..4]), judge(&all[0]), "no pod of its own is late");
    let by_rules = |rules: Value| {
        let mut value = all[0].value().clone();
        value["spec"]["selector"] = json!({"matchExpressions": rules});
        let object = Object::new(value).unwrap();
        judge_among(&object, &all) != judge(&object)
    };
    assert!(by_rules(json!([{"key": "app", "operator": "In", "values": ["c", "d"]}])));
    assert!(by_rules(json!([{"key": "app", "operator": "NotIn", "values": ["e"]}])));
    assert!(by_rules(json!([{"key": "app", "operator": "Exists"}])));
    assert!(!by_rules(json!([{"key": "app", "operator": "DoesNotExist"}])));
    assert!(!by_rules(json!([])), "an empty selector could be anybody's");
}

/// Every kind that has a rule, and some that have none.
const KINDS: [(&str, &str); 30] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("batch/v1", "CronJob"),
    ("v1", "Pod"),
    ("v1", "Node"),
    ("v1", "Namespace"),
    ("v1", "PersistentVolumeClaim"),
    ("v1", "PersistentVolume"),
    ("v1", "Service"),
    ("v1", "ReplicationController"),
    ("policy/v1", "PodDisruptionBudget"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("networking.k8s.io/v1", "Ingress"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apiregistration.k8s.io/v1", "APIService"),
    ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration"),
    ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration"),
    ("external-secrets.io/v1", "ExternalSecret"),
    ("external-secrets.io/v1", "ClusterSecretStore"),
    ("longhorn.io/v1beta2", "Node"),
    ("longhorn.io/v1beta2", "Volume"),
    ("source.toolkit.fluxcd.io/v1", "HelmRepository"),
    ("kustomize.toolkit.fluxcd.io/v1", "Kustomization"),
    ("helm.toolkit.fluxcd.io/v2", "HelmRelease"),
    ("example.org/v1", "Widget"),
    ("v1", "Secret"),
];

/// Words that the rules look for, so that what is made at random is not passed over.
const WORDS: [&str; 60] = [
    "generation",
    "deletionTimestamp",
    "finalizers",
    "labels",
    "replicas",
    "selector",
    "matchLabels",
    "matchExpressions",
    "suspend",
    "type",
    "LoadBalancer",
    "OnDelete",
    "updateStrategy",
    "rollingUpdate",
    "partition",
    "conditions",
    "observedGeneration",
    "updatedReplicas",
    "availableReplicas",
    "readyReplicas",
    "desiredNumberScheduled",
    "updatedNumberScheduled",
    "numberAvailable",
    "phase",
    "Pending",
    "Running",
    "Failed",
    "Bound",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "waiting",
    "terminated",
    "exitCode",
    "restartCount",
    "reason",
    "message",
    "loadBalancer",
    "ingress",
    "ip",
    "Ready",
    "Available",
    "Stalled",
    "Reconciling",
    "True",
    "False",
    "status",
    "Schedulable",
    "diskStatus",
    "robustness",
    "webhooks",
    "clientConfig",
    "service",
    "caBundle",
    "endpoints",
    "addresses",
    "active",
    "failed",
    "syncedResourceVersion",
    "name",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(WORDS.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop::sample::select(vec![i64::MIN, -1, 0, 1, 2, i64::MAX]).prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        word().prop_map(Value::from),
    ]
}

fn tree() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 64, 6, |inner| {
        let condition = (word(), word(), leaf()).prop_map(|(kind, status, words)| {
            json!({"type": kind, "status": status, "reason": words, "message": words})
        });
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec(condition, 0..4).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A part as the rules know it, with anything in its fields: so the arithmetic is reached, with every number there is.
fn part() -> impl Strategy<Value = Value> {
    prop_oneof![
        tree(),
        prop::collection::vec((prop::sample::select(WORDS.to_vec()), leaf()), 0..24)
            .prop_map(|pairs| pairs
                .into_iter()
                .map(|(k, v)| (k.to_owned(), v))
                .collect::<Map<_, _>>())
            .prop_map(Value::Object),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_shape_of_object_stops_the_judge(
        kind in 0..KINDS.len(),
        metadata in tree(), spec in part(), status in part(), webhooks in tree(), endpoints in tree(),
    ) {
        let (version, kind) = KINDS[kind];
        let mut metadata = metadata.as_object().cloned().unwrap_or_default();
        metadata.insert("name".into(), "x".into());
        let object = Object::new(json!({
            "apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status,
            "webhooks": webhooks, "endpoints": endpoints,
        })).unwrap();
        let verdict = judge(&object);
        let words = line(&verdict);
        prop_assert!(words.contains(&object.id().to_string()), "{}", words);
        let pod = Object::new(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "status": status})).unwrap();
        prop_assert!(matches!(
            (verdict, judge_among(&object, [&object, &pod])),
            (Verdict::Ready(_), Verdict::Ready(_))
                | (Verdict::Waiting(_), Verdict::Waiting(_))
                | (Verdict::Failed(_), Verdict::Failed(_))
        ));
    }

    #[test]
    fn no_text_stops_the_reader(text in ".{0,200}", json in tree()) {
        let _objects = manifest::shown("-", &text);
        let _objects = manifest::shown("-", &json.to_string());
        let list = json!({"kind": "PodList", "items": json}).to_string();
        for object in manifest::shown("-", &list).unwrap_or_default() {
            let _verdict = judge(&object);
        }
    }
}
