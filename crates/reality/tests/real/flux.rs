//! The handover to the real Flux: its own controllers, a real Git repository, a tree in which one unit is broken and mended.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use castle_kubernetes::ObjectId;
use castle_layers::gitops;
use castle_model::event::RunOutcome;
use castle_model::{Event, EventKind, Spec};
use castle_reality::cluster::{Cluster, Part};
use castle_reality::kubelet::{Container, Kubelet, Ready, Start};
use castle_reality::pod::Pods;
use castle_reality::web::{Web, answer_by_git};
use castle_reality::{Raw, Real, alone, nap, run};
use http::Response;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::setting::{SOON, write};
use crate::standing::{HERE, PORT, RELEASES, Standing, tell};

/// How long it may take on a machine that is busy.
const LIMIT: Duration = Duration::from_mins(20);
/// How long the run waits that is not to see the tree converge: long enough for Flux to say what is wrong.
const SHORT: Duration = Duration::from_secs(45);
/// How often it is looked whether something has come.
const GLANCE: Duration = Duration::from_millis(100);
/// The folder of the castle in the repository.
const PATH: &str = "clusters/blue";
/// The unit that is broken at first.
const BROKEN: &str = "bridge";
/// Each unit of the tree, and what it depends on.
const UNITS: [(&str, &[&str]); 9] = [
    ("operators-namespaces", &[]),
    ("operators-core", &[]),
    ("operators-data", &["operators-namespaces"]),
    ("watchdog", &[]),
    (BROKEN, &["operators-core", "operators-namespaces"]),
    ("configs", &[BROKEN]),
    ("instances", &["configs", "operators-data"]),
    ("apps-static", &["configs"]),
    ("apps-data", &["instances"]),
];

/// Flux as its releases install it, as far as it runs here. Both controllers share the addresses of one machine, so each
/// listens at that of its own pod; nobody here plays the cluster's names.
const CONTROLLERS: &str = r"
apiVersion: v1
kind: Namespace
metadata: {name: flux-system, labels: {app.kubernetes.io/part-of: flux}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: source-controller, namespace: flux-system}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: kustomize-controller, namespace: flux-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: cluster-reconciler-flux-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects:
  - {kind: ServiceAccount, name: kustomize-controller, namespace: flux-system}
  - {kind: ServiceAccount, name: source-controller, namespace: flux-system}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: source-controller, namespace: flux-system}
spec:
  replicas: 1
  strategy: {type: Recreate}
  selector: {matchLabels: {app: source-controller}}
  template:
    metadata: {labels: {app: source-controller}}
    spec:
      serviceAccountName: source-controller
      terminationGracePeriodSeconds: 10
      containers:
        - name: manager
          image: ghcr.io/fluxcd/source-controller:v1.9.3
          args:
            - --watch-all-namespaces=true
            - --log-level=info
            - --log-encoding=json
            - --enable-leader-election
            - --storage-path=/data
            - --storage-addr=$(POD_ADDRESS):9090
            - --storage-adv-addr=$(POD_ADDRESS):9090
            - --metrics-addr=$(POD_ADDRESS):8080
            - --health-addr=$(POD_ADDRESS):9440
          env:
            - {name: RUNTIME_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: POD_ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          ports: [{containerPort: 9090, name: http}, {containerPort: 9440, name: healthz}]
          readinessProbe: {httpGet: {path: /, port: http}}
          volumeMounts: [{name: data, mountPath: /data}, {name: temp, mountPath: /tmp}]
      volumes: [{name: data, emptyDir: {}}, {name: temp, emptyDir: {}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: kustomize-controller, namespace: flux-system}
spec:
  replicas: 1
  selector: {matchLabels: {app: kustomize-controller}}
  template:
    metadata: {labels: {app: kustomize-controller}}
    spec:
      serviceAccountName: kustomize-controller
      terminationGracePeriodSeconds: 60
      containers:
        - name: manager
          image: ghcr.io/fluxcd/kustomize-controller:v1.9.4
          args:
            - --watch-all-namespaces=true
            - --log-level=info
            - --log-encoding=json
            - --enable-leader-election
            - --metrics-addr=$(POD_ADDRESS):8080
            - --health-addr=$(POD_ADDRESS):9440
          env:
            - {name: RUNTIME_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
            - {name: POD_ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
          ports: [{containerPort: 9440, name: healthz}]
          readinessProbe: {httpGet: {path: /readyz, port: healthz}}
          volumeMounts: [{name: temp, mountPath: /tmp}]
      volumes: [{name: temp, emptyDir: {}}]
";

/// The whole of it: definitions from Flux' modules, and what runs.
fn install(definitions: &[Real]) -> String {
    let mut text = CONTROLLERS.to_owned();
    for real in definitions {
        let mut files: Vec<PathBuf> =
            fs::read_dir(real.folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            text.push_str("---\n");
            text.push_str(&fs::read_to_string(file).unwrap());
        }
    }
    text
}

/// A repository with a work tree beside it, as on somebody's desk.
struct Repository {
    folder: TempDir,
}

impl Repository {
    /// The tree, with one unit broken.
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let repository = Self { folder };
        repository
            .git(repository.folder.path(), &["init", "--quiet", "--bare", "tazlab.git"])
            .await;
        repository.git(repository.folder.path(), &["init", "--quiet", "-b", "main", "work"]).await;
        let mut tree = Vec::new();
        for (name, needs) in UNITS {
            let needs: Vec<_> = needs.iter().map(|need| json!({"name": need})).collect();
            let unit = json!({
                "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
                "metadata": {"name": name, "namespace": "flux-system"},
                "spec": {
                    "interval": "15m", "retryInterval": "1m", "timeout": "5m", "prune": true, "wait": true,
                    "path": format!("./units/{name}"), "dependsOn": needs,
                    "sourceRef": {"kind": "GitRepository", "name": "flux-system"},
                    "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-vars"}]},
                },
            });
            tree.push(unit.to_string());
            repository.write_unit(name, name != BROKEN);
        }
        let place = repository.work().join(PATH);
        fs::create_dir_all(&place).unwrap();
        write(&place, "units.yaml", &tree.join("\n---\n"));
        repository.push("a tree").await;
        repository
    }

    fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// What a unit brings; a broken one brings a ConfigMap whose value is none.
    fn write_unit(&self, name: &str, is_well: bool) {
        let value = if is_well { json!("${domain}") } else { json!(["no", "text"]) };
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
            "data": {"domain": value},
        });
        let place = self.work().join("units").join(name);
        fs::create_dir_all(&place).unwrap();
        write(&place, "objects.yaml", &object.to_string());
    }

    /// Commits everything, and pushes it; the commit.
    async fn push(&self, words: &str) -> String {
        let (work, bare) = (self.work(), self.folder.path().join("tazlab.git"));
        self.git(&work, &["add", "--all"]).await;
        self.git(&work, &["commit", "--quiet", "-m", words]).await;
        self.git(&work, &["push", "--quiet", &bare.display().to_string(), "main"]).await;
        self.git(&work, &["rev-parse", "HEAD"]).await.trim().to_owned()
    }

    async fn git(&self, place: &Path, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.arg("-C").arg(place).args([
            "-c",
            "user.name=castle",
            "-c",
            "user.email=castle@test",
        ]);
        command.args(words).env("HOME", "/nonexistent").env("GIT_CONFIG_NOSYSTEM", "1");
        run(command, SOON).await.expect_success()
    }
}

fn spec() -> Spec {
    let mut spec = castle_config::example();
    spec.gitops.url = format!("https://{HERE}/tazlab.git");
    "main".clone_into(&mut spec.gitops.branch);
    PATH.clone_into(&mut spec.gitops.path);
    spec.gitops.token = None;
    spec.gitops.milestones = vec!["apps-static".to_owned()];
    spec
}

/// Waits until a reason of the convergence names all of these.
async fn until_told(standing: &Standing, words: &[&str]) -> String {
    loop {
        let reason = standing.events().into_iter().rev().find_map(|event| match event.kind {
            EventKind::StepWaiting { step, reason } if step == gitops::convergence_id() => {
                Some(reason)
            }
            _ => None,
        });
        if let Some(reason) = reason.filter(|reason| words.iter().all(|word| reason.contains(word)))
        {
            return reason;
        }
        nap(GLANCE).await;
    }
}

/// Has Flux look at the repository at once, as `flux reconcile source git` does; else it takes up to a minute.
async fn fetch_now(raw: &Raw) {
    let path =
        "/apis/source.toolkit.fluxcd.io/v1/namespaces/flux-system/gitrepositories/flux-system";
    let note = json!({"metadata": {"annotations": {"reconcile.fluxcd.io/requestedAt": "now"}}});
    drop(raw.merge(path, &note).await.unwrap().expect_success());
}

fn place_of(events: &[Event], wanted: impl Fn(&EventKind) -> bool) -> usize {
    events.iter().position(|event| wanted(&event.kind)).unwrap()
}

/// A run that has no time to wait: it fails with every unit named, and the handover stands.
async fn too_late(standing: &mut Standing) {
    let deadlines = |standing: &mut Standing, limit: Option<Duration>| {
        let table = &mut Arc::make_mut(&mut standing.spec).deadlines.0;
        match limit {
            Some(limit) => table.insert("convergence".to_owned(), limit),
            None => table.remove("convergence"),
        };
    };
    deadlines(standing, Some(SHORT));
    let told = standing.up(gitops::build).await;
    deadlines(standing, None);
    let failed: Vec<_> = told.report.failures.keys().collect();
    assert_eq!(failed, [&gitops::convergence_id()], "{:#?}", told.report.failures);
    let failure = &told.report.failures[&gitops::convergence_id()];
    tell(&format!("{failure:#?}"));
    let found: Vec<String> = failure.findings.iter().map(|found| format!("{found:?}")).collect();
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(found[0].contains("flux-system/bridge") && found[0].contains("expected string"));
    assert!(!found[0].contains("asked to look again"), "it was tried, not forgotten: {found:#?}");
    for (name, waits_for) in [
        ("apps-data", "instances"),
        ("apps-static", "configs"),
        ("configs", BROKEN),
        ("instances", "configs"),
    ] {
        let named = |words: &&String| words.contains(name) && words.contains(waits_for);
        assert!(found[1..].iter().any(|words| named(&words)), "{name}: {found:#?}");
    }
    assert_eq!(told.events.iter().filter(|event| is_handover(&event.kind)).count(), 1);
    let waited = |kind: &EventKind| matches!(kind, EventKind::StepWaiting { step, .. } if *step == gitops::convergence_id());
    assert!(place_of(&told.events, is_handover) < place_of(&told.events, waited));
}

fn is_handover(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Handover { .. })
}

/// The next run: still broken, told, mended, converged.
async fn mended(cluster: &Cluster, standing: &Standing, repository: &Repository) {
    let mend = async {
        // Four wait for the broken one: the cause comes first, with Flux' own reason, and then who is held up.
        let words = ["5 of 10", "flux-system/bridge is not ready", "expected string", "apps-data"];
        let reason = until_told(standing, &words).await;
        repository.write_unit(BROKEN, true);
        let commit = repository.push("mended").await;
        fetch_now(&cluster.raw()).await;
        (reason, commit)
    };
    let (told, (reason, commit)) = tokio::join!(standing.up(gitops::build), mend);
    tell(&reason);
    assert_eq!(told.report.outcome, RunOutcome::Done, "{:#?}", told.report.failures);
    assert!(!told.events.iter().any(|event| is_handover(&event.kind)), "handed over once");
    let milestone = |kind: &EventKind| matches!(kind, EventKind::Milestone { name, revision } if name == "apps-static" && revision.ends_with(&commit));
    let reached = place_of(&told.events, milestone);
    let (done, proof) = told
        .events
        .iter()
        .enumerate()
        .find_map(|(at, event)| match &event.kind {
            EventKind::StepDone { step, proof, .. } if *step == gitops::convergence_id() => {
                Some((at, proof))
            }
            _ => None,
        })
        .unwrap();
    tell(proof);
    assert!(reached < done, "a milestone is told when it is reached");
    assert!(proof.contains("10 Kustomizations") && proof.contains(&commit[..8]), "{proof}");
}

/// What stands in the end, and a run that finds it so.
async fn stands(cluster: &Cluster, standing: &Standing) {
    let client = cluster.client();
    let map = ObjectId::namespaced("v1", "ConfigMap", "default", "apps-data");
    let there = client.get(&map).await.unwrap().unwrap();
    assert_eq!(there.text("/data/domain"), Some("tazlab.net"), "the castle's variables arrive");
    let id = ObjectId::namespaced("apps/v1", "Deployment", "flux-system", "kustomize-controller");
    let controller = client.get(&id).await.unwrap().unwrap();
    assert!(controller.value().to_string().contains("--requeue-dependency=5s"));

    let again = standing.up(gitops::build).await;
    assert_eq!(again.report.outcome, RunOutcome::Done, "{:#?}", again.report.failures);
    assert!(again.acted().is_empty(), "{:#?}", again.acted());
    assert!(!again.events.iter().any(|event| is_handover(&event.kind)), "handed over once");
}

#[test]
#[ignore = "a real cluster with the real Flux in a namespace of its own"]
fn the_real_flux_takes_over_a_tree_and_a_mended_unit_frees_the_rest() {
    alone(async {
        let found = ["flux-source-crds", "flux-kustomize-crds"].map(Real::find);
        let [Some(source), Some(kustomize)] = found else { return };
        let programs = ["flux-source-controller", "flux-kustomize-controller"].map(Real::find);
        let [Some(source_controller), Some(kustomize_controller)] = programs else { return };
        let Some(cluster) = Cluster::start(&[Part::Controllers, Part::Scheduler]).await else {
            return;
        };
        let manifest = install(&[source, kustomize]);
        let pods = Rc::new(Pods::new(&cluster));
        let inside = pods.clone();
        let containers = move |container: &Container<'_>| {
            let is_source = container.pod.name().starts_with("source");
            let real = if is_source { &source_controller } else { &kustomize_controller };
            let mut program = inside.program(real, container);
            // The repository's certificate is of the cluster's authority.
            program.env("SSL_CERT_FILE", "/identity/ca.crt");
            Start { after: Duration::ZERO, program: Some(program), ready: Ready::Probed }
        };
        let kubelet = Kubelet::register(&cluster, &["worker-01"], Rc::new(containers)).await;
        let mut standing = Standing::new(&cluster, spec());
        let web = Web::listen(cluster.authority(), &RELEASES, HERE, PORT).await;
        let repository = Repository::new().await;
        let answer = async |request: http::Request<bytes::Bytes>| {
            if request.uri().path().starts_with("/tazlab.git") {
                return answer_by_git(repository.folder.path(), request).await;
            }
            Response::new(manifest.clone().into())
        };
        let work = async {
            too_late(&mut standing).await;
            mended(&cluster, &standing, &repository).await;
            stands(&cluster, &standing).await;
        };
        tokio::select! {
            biased;
            ended = timeout(LIMIT, work) => ended.unwrap(),
            _ = kubelet.run() => {}
            _ = pods.refresh(|| Duration::ZERO) => {}
            _ = web.serve(answer) => {}
        }
    });
}
