//! Castle beside kubectl against the same real API server: how long, how much work, how late, how large. One JSON line.
#![expect(clippy::unwrap_used, reason = "a figure that could not be taken must not look like one")]

#[path = "../tests/real/standing.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod standing;

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, ExitCode};
use std::time::Duration;

use castle_kubernetes::{Kubernetes, Place, mark};
use castle_layers::extra::build;
use castle_model::event::RunOutcome;
use castle_model::spec::ExtraLayer;
use castle_reality::cluster::Cluster;
use castle_reality::{Raw, alone_as_a_program, nap, run};
use futures::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::Instant;

use standing::Standing;

/// How many objects are applied, and how many are watched.
const APPLIED: u32 = 500;
const WATCHED: usize = 2000;
/// How often each comparison is made, and how often the truth changes under a watch.
const ROUNDS: usize = 3;
const CHANGES: usize = 300;
/// How long kubectl may take.
const LIMIT: Duration = Duration::from_mins(5);
/// How a person's script waits.
const LOOP: Duration = Duration::from_secs(5);

fn main() -> ExitCode {
    match alone_as_a_program(measure()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

#[expect(clippy::print_stdout, reason = "the line is what this program is for")]
async fn measure() {
    let mut cluster = Cluster::start(&[]).await.unwrap();
    let raw = cluster.raw();
    let memory = watched(&cluster.client(), &raw).await;
    let late = latency(&cluster.client(), &raw).await;
    let waited = kubectl_waits(&mut cluster, &raw).await;
    let looped = a_loop_waits(&mut cluster, &raw).await;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        ours.push(castle(&cluster, &format!("castle-{round}")).await);
        theirs.push(kubectl(&mut cluster, &format!("kubectl-{round}")).await);
    }
    let of = |all: &[Applied], which: fn(&Applied) -> f64| median(all.iter().map(which).collect());
    println!(
        "{}",
        json!({
            "create_s": [of(&ours, |a| a.create.0), of(&theirs, |a| a.create.0)],
            "unchanged_s": [of(&ours, |a| a.unchanged.0), of(&theirs, |a| a.unchanged.0)],
            "create_cpu_ms": [of(&ours, |a| a.create.1) / per_object(), of(&theirs, |a| a.create.1) / per_object()],
            "late_ms": late,
            "kubectl_wait_ms": waited,
            "loop_ms": looped,
            "memory_mb": memory,
        })
    );
}

/// Seconds and CPU seconds.
type Effort = (f64, f64);

struct Applied {
    create: Effort,
    unchanged: Effort,
}

/// CPU seconds of all become milliseconds of one.
fn per_object() -> f64 {
    f64::from(APPLIED) / 1000.0
}

/// The objects; marked as castle marks them if nobody else will, so that the server has the same work for both.
fn objects(space: &str, marked: bool) -> String {
    let maps = (0..APPLIED).map(|number| {
        json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("map-{number}"), "namespace": space, "labels": {"app": "figures"}},
            "data": {"number": number.to_string(), "text": "a few words that every object has"}})
    });
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": space}});
    let texts = [space].into_iter().chain(maps).map(|mut object| {
        if marked {
            let labels = &mut object["metadata"]["labels"];
            labels[mark::CASTLE] = "blue".into();
            labels[mark::LAYER] = "figures".into();
            labels[mark::INCARNATION] = "0011223344556677".into();
            object["metadata"]["annotations"][mark::DIGEST] = "ab".repeat(32).into();
        }
        object.to_string()
    });
    texts.collect::<Vec<String>>().join("\n---\n")
}

async fn castle(cluster: &Cluster, space: &str) -> Applied {
    let mut spec = castle_config::example();
    spec.gitops.enabled = false;
    spec.layers = vec![ExtraLayer {
        name: space.parse().unwrap(),
        after: Vec::new(),
        manifests: BTreeMap::from([("all.yaml".to_owned(), objects(space, false))]),
        url: None,
    }];
    let castle = Standing::new(cluster, spec);
    let run = async || {
        let (start, before) = (Instant::now(), cpu().0);
        let told = castle.up(build).await;
        assert_eq!(told.report.outcome, RunOutcome::Done, "{:#?}", told.report.failures);
        (start.elapsed().as_secs_f64(), cpu().0 - before)
    };
    Applied { create: run().await, unchanged: run().await }
}

async fn kubectl(cluster: &mut Cluster, space: &str) -> Applied {
    let file = cluster.folder().join(format!("{space}.yaml"));
    fs::write(&file, objects(space, true)).unwrap();
    let mut efforts = Vec::new();
    for _ in 0..2 {
        let mut command = cluster.kubectl().unwrap();
        command.args(["apply", "--server-side", "-f"]).arg(&file);
        let (start, before) = (Instant::now(), cpu().1);
        drop(run(command, LIMIT).await.expect_success());
        efforts.push((start.elapsed().as_secs_f64(), cpu().1 - before));
    }
    Applied { create: efforts[0], unchanged: efforts[1] }
}

/// CPU seconds of this process, and of its children that have ended.
fn cpu() -> (f64, f64) {
    let text = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit_once(") ").unwrap().1.split(' ').collect();
    let seconds = |at: usize| fields[at].parse::<f64>().unwrap() / 100.0;
    (seconds(11) + seconds(12), seconds(13) + seconds(14))
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

async fn space(raw: &Raw, name: &str) {
    let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
    raw.post("/api/v1/namespaces", &body).await.unwrap().must_succeed();
}

fn map(name: &str, number: usize) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"number": number.to_string()}})
}

/// How large this process is, in MB, when it follows many objects.
async fn watched(client: &Kubernetes, raw: &Raw) -> f64 {
    space(raw, "many").await;
    let made = futures::stream::iter(0..WATCHED).for_each_concurrent(16, async |number| {
        let path = "/api/v1/namespaces/many/configmaps";
        raw.post(path, &map(&format!("map-{number}"), number)).await.unwrap().must_succeed();
    });
    made.await;
    let follow = client.follow(vec![Place::within("v1", "ConfigMap", "many")]).await.unwrap();
    assert_eq!(follow.objects().len(), WATCHED);
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// How late a watch shows a change after the server has answered for it, in ms: the middle, and 99 of 100.
async fn latency(client: &Kubernetes, raw: &Raw) -> [f64; 2] {
    space(raw, "gate").await;
    let path = "/api/v1/namespaces/gate/configmaps";
    raw.post(path, &map("truth", 0)).await.unwrap().must_succeed();
    let mut follow = client.follow(vec![Place::within("v1", "ConfigMap", "gate")]).await.unwrap();
    let mut late = Vec::new();
    for number in 1..=CHANGES {
        let change = async {
            let wanted = json!({"data": {"number": number.to_string()}});
            raw.merge(&format!("{path}/truth"), &wanted).await.unwrap().must_succeed();
            Instant::now()
        };
        let see = async {
            let wanted = number.to_string();
            let shows = |follow: &castle_kubernetes::Follow| {
                follow.objects().values().any(|o| o.text("/data/number") == Some(&wanted))
            };
            while !shows(&follow) {
                follow.changed().await.unwrap();
            }
            Instant::now()
        };
        let (changed, seen) = tokio::join!(change, see);
        late.push(seen.saturating_duration_since(changed).as_secs_f64() * 1000.0);
    }
    late.sort_by(f64::total_cmp);
    [late[late.len() / 2], late[late.len() * 99 / 100]]
}

/// How late `kubectl wait` ends after the change, in ms.
async fn kubectl_waits(cluster: &mut Cluster, raw: &Raw) -> f64 {
    let mut late = Vec::new();
    for number in 1..=ROUNDS {
        let mut command = cluster.kubectl().unwrap();
        let wanted = format!("--for=jsonpath={{.data.number}}=wait-{number}");
        command.args(["wait", "-n", "gate", &wanted, "configmap/truth", "--timeout=2m"]);
        late.push(
            late_after(command, raw, &format!("wait-{number}"), Duration::from_secs(4)).await,
        );
    }
    median(late)
}

/// How late a loop with pauses of five seconds ends after the change, in ms.
async fn a_loop_waits(cluster: &mut Cluster, raw: &Raw) -> f64 {
    let kubectl = cluster.kubectl().unwrap();
    let words: Vec<String> = std::iter::once(kubectl.get_program())
        .chain(kubectl.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut late = Vec::new();
    for number in 1..=ROUNDS {
        let script = format!(
            "while [ \"$({} get -n gate configmap truth -o 'jsonpath={{.data.number}}')\" != loop-{number} ]; do sleep {}; done",
            words.join(" "),
            LOOP.as_secs()
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script]).env("HOME", "/nonexistent");
        // Elsewhere in the pause each time.
        let before = Duration::from_millis(6_000 + 1_700 * number as u64);
        late.push(late_after(command, raw, &format!("loop-{number}"), before).await);
    }
    median(late)
}

async fn late_after(command: Command, raw: &Raw, value: &str, before: Duration) -> f64 {
    let change = async {
        nap(before).await;
        let wanted = json!({"data": {"number": value}});
        raw.merge("/api/v1/namespaces/gate/configmaps/truth", &wanted)
            .await
            .unwrap()
            .must_succeed();
        Instant::now()
    };
    let wait = async {
        drop(run(command, LIMIT).await.expect_success());
        Instant::now()
    };
    let (changed, ended) = tokio::join!(change, wait);
    ended.saturating_duration_since(changed).as_secs_f64() * 1000.0
}
