//! The race of the seeds, for real: MetalLB's own manifest and controller, and whoever configures it too early.
//!
//! The controller's pod runs long before its webhook serves: it makes a certificate, waits until its volume shows it, and
//! only then listens; in between the pod turns ready by the manifest's own probe, which asks for something else. How long
//! each of it takes is drawn anew in each round.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::rc::Rc;
use std::time::Duration;

use castle_kubernetes::manifest::parse;
use castle_kubernetes::{Kubernetes, Mode, Object, ObjectId};
use castle_layers::networking;
use castle_model::event::RunOutcome;
use castle_model::{Class, Failure};
use castle_reality::cluster::{Cluster, Part};
use castle_reality::kubelet::{Container, Kubelet, Ready, Start};
use castle_reality::pod::Pods;
use castle_reality::web::Web;
use castle_reality::{Raw, Real, alone, nap, rounds};
use http::Response;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::standing::{HERE, PORT, RELEASES, Standing, Told, tell};

/// How long a round may take on a machine that is busy.
const LIMIT: Duration = Duration::from_mins(15);
/// How often it is looked whether something has come.
const GLANCE: Duration = Duration::from_millis(20);
const NAMESPACE: &str = "metallb-system";
const KIND: &str = "metallb.io/v1beta1";
/// The ways that do not ask whether the webhook serves: when the pod runs, so much later, when the Deployment says so.
const RUNNING: &str = "pod phase Running";
const SLEEPS: [(&str, u64); 4] = [
    ("Running, then sleep 1", 1),
    ("Running, then sleep 2", 2),
    ("Running, then sleep 5", 5),
    ("Running, then sleep 15", 15),
];
const AVAILABLE: &str = "Deployment Available";
const OURS: &str = "castle";
/// How long things take in a round.
#[derive(Debug, Clone, Copy, Default)]
struct Delays {
    /// Until the container runs.
    start: Duration,
    /// Until a volume shows what its Secret holds.
    volume: Duration,
}

impl Delays {
    /// Of one round; the same each time.
    fn of(round: u32) -> Self {
        let drawn = |salt: u64, up_to: u64| {
            let mut state = (u64::from(round) << 8 | salt).wrapping_add(0x9e37_79b9_7f4a_7c15);
            state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            Duration::from_millis((state ^ (state >> 31)) % up_to)
        };
        Self { start: drawn(1, 3_000), volume: drawn(2, 24_000) }
    }
}

/// How a way of configuring MetalLB ended, round by round: none if it went through.
type Ends = BTreeMap<&'static str, Vec<Option<String>>>;

/// A real cluster with what a round needs.
struct Bench {
    cluster: Cluster,
    standing: Standing,
    manifest: Vec<Object>,
    delays: Rc<Cell<Delays>>,
    pods: Rc<Pods>,
}

impl Bench {
    async fn round(&self, round: u32, ends: &mut Ends) {
        let (delays, since) = (Delays::of(round), Instant::now());
        self.delays.set(delays);
        let before = self.cluster.audited().len();
        let (told, others) = tokio::join!(self.standing.up(networking::build), self.others());
        for (way, end) in others {
            ends.entry(way).or_default().push(end);
        }
        let end = match told.report.outcome {
            RunOutcome::Done => self.tries(before),
            _ => Some(format!("{:?}", told.report.failures)),
        };
        tell(&format!("round {}: {delays:?}, proven after {:?}", round + 1, since.elapsed()));
        ends.entry(OURS).or_default().push(end);
    }

    /// What castle asked for besides the one try that each object needs, by the API server's own record.
    fn tries(&self, before: usize) -> Option<String> {
        let audited = self.cluster.audited();
        let tries: Vec<String> = audited[before..]
            .iter()
            .filter(|request| {
                let asked = request["requestURI"].as_str().unwrap_or_default();
                asked.contains("fieldManager=castle") && !asked.contains("dryRun=All")
            })
            .map(|request| {
                format!(
                    "{} {}",
                    request["objectRef"]["resource"], request["responseStatus"]["code"]
                )
            })
            .collect();
        let once = ["\"ipaddresspools\" 201", "\"l2advertisements\" 201"];
        (tries != once).then(|| format!("{tries:?}"))
    }

    /// The others, each at its moment.
    async fn others(&self) -> Vec<(&'static str, Option<String>)> {
        let raw = self.cluster.raw();
        let pods =
            format!("/api/v1/namespaces/{NAMESPACE}/pods?labelSelector=component%3Dcontroller");
        until(&raw, &pods, |there| {
            there.pointer("/items/0/status/phase") == Some(&json!("Running"))
        })
        .await;
        let since = Instant::now();
        let sleeping = async {
            let mut ends = vec![(RUNNING, configure(&raw, 0).await)];
            for (number, (way, seconds)) in (1..).zip(SLEEPS) {
                nap(Duration::from_secs(seconds).saturating_sub(since.elapsed())).await;
                ends.push((way, configure(&raw, number).await));
            }
            ends
        };
        let looking = async {
            let deployment = format!("/apis/apps/v1/namespaces/{NAMESPACE}/deployments/controller");
            until(&raw, &deployment, |there| {
                let conditions = there.pointer("/status/conditions").and_then(Value::as_array);
                let available = |it: &Value| it["type"] == "Available" && it["status"] == "True";
                conditions.is_some_and(|list| list.iter().any(available))
            })
            .await;
            configure(&raw, 9).await
        };
        let (mut ends, looked) = tokio::join!(sleeping, looking);
        ends.push((AVAILABLE, looked));
        ends
    }

    /// Removes all of MetalLB, for the next round.
    async fn clean(&self) {
        let client = self.cluster.client();
        let rank = |object: &Object| match object.kind() {
            "ValidatingWebhookConfiguration" => 0,
            "CustomResourceDefinition" => 1,
            _ => 2,
        };
        let mut wide: Vec<&Object> =
            self.manifest.iter().filter(|object| object.namespace().is_none()).collect();
        wide.sort_by_key(|object| rank(object));
        for object in &wide {
            client.delete(&object.id()).await.unwrap();
        }
        for object in wide {
            while client.get(&object.id()).await.unwrap().is_some() {
                nap(GLANCE).await;
            }
        }
        self.pods.forget();
    }
}

/// Waits until the server shows something; it may not be there at all yet.
async fn until(raw: &Raw, path: &str, holds: impl Fn(&Value) -> bool) {
    loop {
        if raw.get(path).await.is_ok_and(|answer| holds(&answer.body)) {
            return;
        }
        nap(GLANCE).await;
    }
}

/// Applies a pool and its advertisement once, as a script does; says what went wrong.
async fn configure(raw: &Raw, number: u8) -> Option<String> {
    let name = format!("way-{number}");
    let range = format!("10.9.{number}.0/28");
    for (plural, kind, spec) in [
        ("ipaddresspools", "IPAddressPool", json!({"addresses": [range], "autoAssign": false})),
        ("l2advertisements", "L2Advertisement", json!({"ipAddressPools": [name]})),
    ] {
        let object = json!({
            "apiVersion": KIND, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec,
        });
        let path =
            format!("/apis/{KIND}/namespaces/{NAMESPACE}/{plural}/{name}?fieldManager=script");
        match raw.apply(&path, &object).await {
            Ok(answer) if answer.code < 300 => {}
            Ok(answer) => {
                return Some(answer.body["message"].as_str().unwrap_or_default().to_owned());
            }
            Err(error) => return Some(error.to_string()),
        }
    }
    None
}

/// A table for people.
fn show(ends: &Ends) {
    tell(&format!("{:<24} {:>6} {:>6}  the last failure", "configured at", "rounds", "failed"));
    for way in [RUNNING].into_iter().chain(SLEEPS.map(|(way, _)| way)).chain([AVAILABLE, OURS]) {
        let of_way = ends.get(way).map(Vec::as_slice).unwrap_or_default();
        let words = of_way.iter().rev().flatten().next().map_or("-", String::as_str);
        let words = words.rsplit(": ").next().unwrap_or(words);
        tell(&format!("{way:<24} {:>6} {:>6}  {words}", of_way.len(), failed(ends, way)));
    }
}

fn failed(ends: &Ends, way: &str) -> usize {
    ends.get(way).map_or(0, |of_way| of_way.iter().flatten().count())
}

fn pool(name: &str, addresses: &str) -> Object {
    let metadata = json!({"name": name, "namespace": NAMESPACE});
    let value = json!({
        "apiVersion": KIND, "kind": "IPAddressPool", "metadata": metadata, "spec": {"addresses": [addresses]},
    });
    Object::new(value).unwrap()
}

/// What the webhook will never accept is said once, and not tried again.
async fn denied_for_good(bench: &Bench, client: &Kubernetes) {
    let bad = client.apply(&pool("bad", "10.9.9.0/33"), Mode::DryRun).await.unwrap_err();
    let bad = Failure::from(bad);
    assert!(matches!(bad.class, Class::Denied | Class::Invalid), "{bad:?}");
    assert!(bad.to_string().contains("10.9.9.0/33"), "{bad}");

    let id = |kind: &str| ObjectId::namespaced(KIND, kind, NAMESPACE, "castle");
    client.delete(&id("IPAddressPool")).await.unwrap();
    let taken = bench.standing.spec.network.pool.to_string();
    client.apply(&pool("somebodys", &taken), Mode::Real).await.unwrap();
    let told = bench.standing.up(networking::build).await;
    let failure = &told.report.failures[&networking::pool_id()];
    assert!(matches!(failure.class, Class::Denied | Class::Invalid), "{failure:?}");
    assert!(failure.to_string().contains("overlap"), "{failure}");
    assert_eq!(told.retries(&networking::pool_id()), 0);
}

/// A second look at what stands finds nothing to do.
fn left_alone(told: &Told) {
    assert_eq!(told.report.outcome, RunOutcome::Done, "{:#?}", told.report.failures);
    assert!(told.acted().is_empty(), "{:#?}", told.acted());
}

/// Starts the cluster, with kubelets that start the real controller for its container and nothing for others.
async fn bench(manifest: &str) -> Option<(Bench, Kubelet)> {
    let controller = Real::find("metallb-controller")?;
    let cluster = Cluster::start(&[Part::Controllers, Part::Scheduler]).await?;
    let pods = Rc::new(Pods::new(&cluster));
    let delays = Rc::new(Cell::new(Delays::default()));
    let (inside, drawn) = (pods.clone(), delays.clone());
    let containers = move |container: &Container<'_>| {
        if container.name() != "controller" {
            return Start::nothing();
        }
        let program = Some(inside.program(&controller, container));
        Start { after: drawn.get().start, program, ready: Ready::Probed }
    };
    let kubelet = Kubelet::register(&cluster, &["cp-01", "worker-01"], Rc::new(containers)).await;
    let standing = Standing::new(&cluster, castle_config::example());
    let manifest = parse("metallb-native.yaml", manifest).unwrap();
    Some((Bench { cluster, standing, manifest, delays, pods }, kubelet))
}

#[test]
#[ignore = "a real cluster with the real MetalLB in a namespace of its own, in rounds"]
fn configured_at_the_first_try_in_all_rounds() {
    alone(async {
        let Some(files) = Real::find("metallb-manifest") else { return };
        let manifest = fs::read_to_string(files.file("metallb-native.yaml")).unwrap();
        let Some((bench, kubelet)) = bench(&manifest).await else { return };
        let web = Web::listen(bench.cluster.authority(), &RELEASES, HERE, PORT).await;
        let delays = bench.delays.clone();
        let work = async {
            let mut ends = Ends::new();
            for round in 0..rounds() {
                if round > 0 {
                    bench.clean().await;
                }
                timeout(LIMIT, bench.round(round, &mut ends)).await.unwrap();
            }
            show(&ends);
            let all = ends[OURS].len();
            assert_eq!(failed(&ends, RUNNING), all, "a pod that runs does not serve yet");
            let called = |end: &String| end.contains("failed calling webhook");
            assert!(ends[RUNNING].iter().flatten().all(called), "{:#?}", ends[RUNNING]);
            assert!(SLEEPS.iter().any(|(way, _)| failed(&ends, way) > 0), "{ends:#?}");
            assert_eq!(failed(&ends, OURS), 0, "{:#?}", ends[OURS]);
            left_alone(&bench.standing.up(networking::build).await);
            denied_for_good(&bench, &bench.cluster.client()).await;
        };
        tokio::select! {
            biased;
            () = work => {}
            _ = kubelet.run() => {}
            _ = bench.pods.refresh(|| delays.get().volume) => {}
            _ = web.serve(async |_| Response::new(manifest.clone().into())) => {}
        }
    });
}
