//! A whole castle in the rehearsal datacenter: it rises, and a second run finds it standing and touches nothing.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Graph, Report, Step, Stop, Whole};
use castle_infisical::Credentials;
use castle_journal::Journals;
use castle_kubernetes::Mode;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::{ExtraLayer, Trust};
use castle_model::{Event, EventKind, Failure, Observed, Plan, RunId, Spec, StepId, Verb};
use castle_platforms::cluster::Cluster;
use castle_rehearsal::host::{Host, runtime};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::engine::proof::Proof;
use crate::engine::store::SecretStore;
use crate::networking::pool::Pool;
use crate::objects::marked;
use crate::release::step;
use crate::secrets::source::Access;
use crate::storage::volume::Volume;
use crate::{engine, gitops, networking, secrets, storage};

mod adoption;
mod down;
mod drift;
mod handover;
mod machines;
mod owners;
mod proofs;
mod sets;
mod silent;
mod ways;

/// A rehearsal with journals in memory.
struct Rehearsal {
    host: Host,
    spec: Arc<Spec>,
    journals: Journals,
    runs: usize,
    events: Vec<Event>,
    /// What the last run was to do.
    plan: Option<Plan>,
}

impl Rehearsal {
    fn open(mut spec: Spec, seed: u64) -> Self {
        let host = Host::open(None, &spec, seed).unwrap();
        host.spawn_driver();
        if let Some(proxmox) = spec.platform.proxmox_mut() {
            proxmox.trust = Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
        }
        let journals = Journals::in_memory().unwrap();
        Self { host, spec: Arc::new(spec), journals, runs: 0, events: Vec::new(), plan: None }
    }

    fn identity(&self) -> Credentials {
        let (client_id, client_secret) = self.host.credentials();
        Credentials { client_id, client_secret }
    }

    async fn up(&mut self) -> Report {
        let graph =
            crate::build(&self.spec, &self.host.world(), Access::to_infisical(self.identity()));
        self.run_by(graph, Direction::Up).await
    }

    async fn down(&mut self) -> Report {
        let graph =
            crate::build(&self.spec, &self.host.world(), Access::to_infisical(self.identity()));
        self.run_by(graph, Direction::Down).await
    }

    async fn run_by(&mut self, graph: Graph, direction: Direction) -> Report {
        self.runs += 1;
        let world = self.host.world();
        let run = RunId::new(format!("run-{}", self.runs));
        let (clock, events) = (world.clock.clone(), &mut self.events);
        let (plan, report) = Whole {
            castle: &self.spec.name,
            graph: &graph,
            journals: &mut self.journals,
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event| events.push(event.clone()),
            run,
            stop: Stop::default(),
        }
        .go(direction)
        .await
        .unwrap();
        let end = self.host.world().clock.now();
        self.journals.end_run(end, report.outcome).ok();
        self.plan = Some(plan);
        report
    }

    /// The changes to probes since so many requests.
    fn probes_since(&self, since: usize) -> Vec<String> {
        self.host.requests()[since..]
            .iter()
            .filter(|request| request.counted && request.path.ends_with("/castle-probe"))
            .map(|request| format!("{} {}", request.method, request.path))
            .collect()
    }

    fn changes(&self) -> u64 {
        self.host.mutations().values().sum()
    }
}

fn rises_and_stands(spec: Spec) {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(spec, 7);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let handover = |e: &&Event| matches!(e.kind, EventKind::Handover { .. });
        assert_eq!(rehearsal.events.iter().filter(handover).count(), 1);
        assert!(rehearsal.changes() > 0);
        let before = (rehearsal.changes(), rehearsal.host.requests().len());
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let after: Vec<String> = rehearsal.host.requests()[before.1..]
            .iter()
            .filter(|request| request.counted)
            .map(|request| format!("{request:?}"))
            .collect();
        assert_eq!(
            rehearsal.changes(),
            before.0,
            "a castle that stands is only looked at: {after:#?}"
        );
        let asked = &rehearsal.host.requests()[before.1..];
        let lists = asked.iter().filter(|r| r.path == "/api2/json/cluster/resources").count();
        assert!(lists <= 1, "the guests are listed once a run, not {lists} times");
    });
}

#[test]
fn the_example_castle() {
    rises_and_stands(castle_config::example());
}

/// The example with this many machines of each kind.
fn sized(control_planes: usize, workers: usize) -> Spec {
    let mut spec = castle_config::example();
    let kept: Vec<_> = spec
        .control_planes()
        .take(control_planes)
        .chain(spec.workers().take(workers))
        .cloned()
        .collect();
    spec.nodes = kept;
    spec.storage.replicas = u32::try_from(workers).unwrap();
    spec
}

#[test]
fn one_control_plane_and_one_worker_with_a_layer_of_its_own() {
    let mut spec = sized(1, 1);
    let manifest = "\
apiVersion: example.org/v1
kind: Gauge
metadata: {name: needle, namespace: metrics}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: gauges, kind: Gauge}
  versions: [{name: v1, served: true, storage: true}]
---
apiVersion: v1
kind: Namespace
metadata: {name: metrics}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: scraper, namespace: metrics}
spec:
  selector: {matchLabels: {app: scraper}}
  template:
    metadata: {labels: {app: scraper}}
    spec: {containers: [{name: main, image: example.org/scraper:1}]}
";
    spec.layers.push(ExtraLayer {
        name: "metrics".parse().unwrap(),
        after: vec!["networking".parse().unwrap()],
        manifests: [("metrics/all.yaml".to_owned(), manifest.to_owned())].into(),
        url: None,
    });
    rises_and_stands(spec);
}

#[test]
fn one_control_plane_and_two_workers() {
    rises_and_stands(sized(1, 2));
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = |seed: u64| {
        let runtime = runtime().unwrap();
        runtime.block_on(async {
            let mut rehearsal = Rehearsal::open(sized(1, 1), seed);
            rehearsal.up().await;
            rehearsal.host.trace_hash()
        })
    };
    let first = trace(3);
    assert_eq!(trace(3), first);
    assert_ne!(trace(4), first);
}

#[test]
fn a_run_that_is_killed_among_the_cluster_layers_is_taken_up_again() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 5);
        let mut kills = 0;
        let report = loop {
            let life = Duration::from_secs(if kills == 0 { 80 } else { 7 });
            match timeout(life, rehearsal.up()).await {
                Ok(report) => break report,
                Err(_) => kills += 1,
            }
            rehearsal.journals = Journals::in_memory().unwrap();
        };
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        assert!(kills > 3, "killed only {kills} times");
        let before = rehearsal.changes();
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        assert_eq!(rehearsal.changes(), before);
    });
}

/// Raises a castle that cannot rise whole, and gives the steps that failed, with why and the last evidence.
fn failures_of(spec: Spec) -> Vec<String> {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(spec, 2);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Failed);
        let told = |(step, failure): (&StepId, &Failure)| {
            let evidence = failure.evidence.as_deref().unwrap_or("-");
            format!("{step}: {} ({evidence})", failure.why)
        };
        report.failures.iter().map(told).collect()
    })
}

#[test]
fn nodes_without_iscsi_are_named_by_the_storage_layer_alone() {
    let mut spec = sized(1, 1);
    spec.platform
        .proxmox_mut()
        .unwrap()
        .extensions
        .retain(|extension| !extension.contains("iscsi"));
    let failures = failures_of(spec);
    assert_eq!(failures.len(), 1, "{failures:#?}");
    assert_eq!(
        failures[0],
        "storage/longhorn: worker-01 runs without the extensions iscsi-tools (it has qemu-guest-agent, schematic, util-linux-tools)"
    );
}

/// A step whose gate is run twice, as after a transient failure, and which is killed before its probe is gone.
struct Rough<S> {
    step: S,
    cluster: Arc<Cluster>,
    probe: Value,
}

#[async_trait]
impl<S: Step> Step for Rough<S> {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        self.step.observe(cx).await
    }

    async fn act(&self, cx: &Context, verb: Verb) -> Result<Acted, Failure> {
        self.step.act(cx, verb).await
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let proof = self.step.gate(cx).await?;
        assert_eq!(self.step.gate(cx).await?, proof);
        for probe in marked(&self.cluster.mark(cx)?, vec![self.probe.clone()])? {
            self.cluster.client(cx)?.apply(&probe, Mode::Real).await?;
        }
        Ok(proof)
    }
}

/// The castle's steps, those with a probe being rough.
fn rough(rehearsal: &Rehearsal) -> Graph {
    let (spec, world) = (&rehearsal.spec, &rehearsal.host.world());
    let mut graph = Graph::new();
    secrets::build(&mut graph, spec, world, Access::to_infisical(rehearsal.identity()));
    castle_platforms::build(&mut graph, spec, world);
    gitops::build(&mut graph, spec, world);
    crate::sets::build(&mut graph, spec, world);
    let cluster = Cluster::new(spec, world);
    let declared = [engine::declare(spec), networking::declare(spec), storage::declare(spec)];
    for decl in declared.concat() {
        let cluster = cluster.clone();
        if decl.id == engine::proof_id() {
            let probe = json!({
                "apiVersion": "external-secrets.io/v1", "kind": "ExternalSecret",
                "metadata": {"name": "castle-probe", "namespace": engine::NAMESPACE},
                "spec": {"secretStoreRef": {"name": engine::STORE, "kind": "ClusterSecretStore"}},
            });
            graph.add(decl, Rough { step: Proof(cluster.clone()), cluster, probe });
        } else if decl.id == storage::volume_id() {
            let probe = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim",
                "metadata": {"name": "castle-probe", "namespace": storage::NAMESPACE},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "64Mi"}}},
            });
            graph.add(decl, Rough { step: Volume(cluster.clone()), cluster, probe });
        } else if decl.id == networking::pool_id() {
            let probe = json!({
                "apiVersion": "v1", "kind": "Service",
                "metadata": {"name": "castle-probe", "namespace": networking::NAMESPACE},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 9}]},
            });
            graph.add(decl, Rough { step: Pool(cluster.clone()), cluster, probe });
        } else if decl.id == networking::metallb_id() {
            graph.add(decl, step(&networking::RELEASE, &cluster));
        } else if decl.id == engine::store_id() {
            graph.add(decl, SecretStore(cluster));
        } else if decl.id == engine::operator_id() {
            graph.add(decl, step(&engine::RELEASE, &cluster));
        } else {
            graph.add(decl, step(&storage::RELEASE, &cluster));
        }
    }
    graph
}

#[test]
fn gates_with_a_probe_may_run_twice_and_what_is_left_of_a_probe_is_removed() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut rehearsal = Rehearsal::open(sized(1, 1), 7);
        let graph = rough(&rehearsal);
        let report = rehearsal.run_by(graph, Direction::Up).await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let before = (rehearsal.host.requests().len(), rehearsal.changes());
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let mut removed = rehearsal.probes_since(before.0);
        removed.sort();
        assert_eq!(removed, [
            "DELETE /api/v1/namespaces/longhorn-system/persistentvolumeclaims/castle-probe",
            "DELETE /api/v1/namespaces/metallb-system/services/castle-probe",
            "DELETE /apis/external-secrets.io/v1/namespaces/external-secrets/externalsecrets/castle-probe",
        ]);
        assert_eq!(rehearsal.changes(), before.1 + 3, "nothing else is touched");
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        assert_eq!(rehearsal.changes(), before.1 + 3);
    });
}

#[test]
fn without_a_key_that_the_cluster_is_to_have_no_secret_is_probed() {
    let runtime = runtime().unwrap();
    runtime.block_on(async {
        let mut spec = sized(1, 1);
        spec.gitops.token = None;
        spec.secrets.require = vec!["PROXMOX_TOKEN_SECRET".to_owned()];
        let mut rehearsal = Rehearsal::open(spec, 7);
        let report = rehearsal.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
        let probes = rehearsal.probes_since(0);
        assert!(probes.iter().all(|probe| !probe.contains("externalsecrets")), "{probes:#?}");
        let notice = |e: &Event| match &e.kind {
            EventKind::Notice { text, .. } => text.starts_with("no secret is fetched"),
            _ => false,
        };
        assert!(rehearsal.events.iter().any(notice));
        let before = rehearsal.changes();
        assert_eq!(rehearsal.up().await.outcome, RunOutcome::Done);
        assert_eq!(rehearsal.changes(), before);
    });
}
