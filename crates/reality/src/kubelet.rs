//! Kubelets that are played: nodes that are there, pods that run on them, readiness by a rule or by really probing.
//!
//! What a container is, the test says by [`Containers`]: nothing at all, or a real program that the kubelet starts
//! when the pod's time has come, starts again when it ends, and ends with its pod.

mod probe;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::{Future, pending, poll_fn};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::process::Command;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use castle_kubernetes::{Kubernetes, Object, Place};
use castle_wire::{Clock as _, SystemClock};
use futures::future::join_all;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::program::{Running, nap};
use crate::raw::Raw;
use probe::Probe;

/// How long until a call is tried again that found no server, and a program that ended is started again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a program is asked whether it goes on.
const GLANCE: Duration = Duration::from_millis(50);

/// A container that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    /// The pod, as the API server shows it.
    pub pod: &'a Object,
    /// The container, as the pod has it.
    pub spec: &'a Value,
    /// The address of the pod.
    pub address: Ipv4Addr,
    /// How often it was started before.
    pub restarts: u32,
}

impl Container<'_> {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.spec["name"].as_str().unwrap_or_default()
    }

    /// Its image.
    #[must_use]
    pub fn image(&self) -> &str {
        self.spec["image"].as_str().unwrap_or_default()
    }

    /// Its arguments.
    #[must_use]
    pub fn arguments(&self) -> Vec<&str> {
        let list = self.spec["args"].as_array();
        list.map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
    }
}

/// When a container that runs is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// As soon as it runs.
    AtOnce,
    /// So long after it runs.
    After(Duration),
    /// When its readiness probe says so, and only as long; as soon as it runs if it has none.
    Probed,
}

/// How a container starts.
#[derive(Debug)]
pub struct Start {
    /// How long it takes until it runs: pulling, creating.
    pub after: Duration,
    /// The real program that it is; without one nothing listens.
    pub program: Option<Command>,
    /// When it is ready.
    pub ready: Ready,
}

impl Start {
    /// A container that is nothing, and ready at once.
    #[must_use]
    pub fn nothing() -> Self {
        Self { after: Duration::ZERO, program: None, ready: Ready::AtOnce }
    }
}

/// Says what containers are.
pub trait Containers {
    /// How this one starts. It is asked at each start.
    fn start(&self, container: &Container<'_>) -> Start;
}

impl<F: Fn(&Container<'_>) -> Start> Containers for F {
    fn start(&self, container: &Container<'_>) -> Start {
        self(container)
    }
}

/// All kubelets of a cluster.
pub struct Kubelet {
    client: Kubernetes,
    raw: Raw,
    logs: PathBuf,
    nodes: BTreeMap<String, Ipv4Addr>,
    containers: Rc<dyn Containers>,
}

/// The life of a pod, or its end.
struct Life {
    ends: bool,
    future: Pin<Box<dyn Future<Output = ()>>>,
}

/// What a pod's life needs.
struct Surroundings {
    raw: Raw,
    logs: PathBuf,
    containers: Rc<dyn Containers>,
    host: Ipv4Addr,
    address: Ipv4Addr,
}

/// How a container stands.
#[derive(Debug, Clone, Default)]
struct State {
    runs: bool,
    ready: bool,
    restarts: u32,
}

impl Kubelet {
    /// Registers nodes, ready to take pods: at 192.168.1.21 and so on.
    ///
    /// # Panics
    /// If the API server refuses them.
    pub async fn register(
        cluster: &Cluster,
        nodes: &[&str],
        containers: Rc<dyn Containers>,
    ) -> Self {
        let raw = cluster.raw();
        let mut registered = BTreeMap::new();
        for (name, last) in nodes.iter().zip(21..) {
            let address = Ipv4Addr::new(192, 168, 1, last);
            let (node, status) = node(name, address);
            let made = raw.post("/api/v1/nodes", &node).await.expect("the API server answers");
            made.must_succeed();
            let path = format!("/api/v1/nodes/{name}/status");
            let said = raw.merge(&path, &status).await.expect("the API server answers");
            said.must_succeed();
            registered.insert((*name).to_owned(), address);
        }
        Self {
            client: cluster.client(),
            raw,
            logs: cluster.folder().to_owned(),
            nodes: registered,
            containers,
        }
    }

    /// Lets the pods of its nodes live, for as long as this is polled; all of their programs end with it.
    ///
    /// # Panics
    /// If a container has a probe that can not be played, or its program can not be started.
    pub async fn run(self) -> Infallible {
        let (pods, changed) = (RefCell::new(BTreeMap::new()), Cell::new(false));
        let mut watching = pin!(watch(&self.client, &pods, &changed));
        let mut lives: BTreeMap<String, Life> = BTreeMap::new();
        let mut next = 2;
        poll_fn(|context| {
            assert!(watching.as_mut().poll(context).is_pending(), "the watch never ends");
            if changed.take() {
                self.follow(&pods.borrow(), &mut lives, &mut next);
            }
            for life in lives.values_mut() {
                assert!(
                    life.future.as_mut().poll(context).is_pending(),
                    "a life is ended, or goes on"
                );
            }
            Poll::<Infallible>::Pending
        })
        .await
    }

    /// Begins, ends and forgets lives, as the API server shows the pods.
    fn follow(
        &self,
        pods: &BTreeMap<String, Object>,
        lives: &mut BTreeMap<String, Life>,
        next: &mut u16,
    ) {
        lives.retain(|uid, _| pods.contains_key(uid));
        for (uid, pod) in pods {
            let Some(host) = pod.text("/spec/nodeName").and_then(|node| self.nodes.get(node))
            else {
                continue;
            };
            let ends = pod.at("/metadata/deletionTimestamp").is_some();
            if lives.get(uid).is_some_and(|life| life.ends == ends) {
                continue;
            }
            let future: Pin<Box<dyn Future<Output = ()>>> = if ends {
                Box::pin(end(self.raw.clone(), pod.clone()))
            } else {
                let own =
                    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 244, 0, 0)) + u32::from(*next));
                *next += 1;
                let on_host = pod.at("/spec/hostNetwork").and_then(Value::as_bool) == Some(true);
                let surroundings = Surroundings {
                    raw: self.raw.clone(),
                    logs: self.logs.clone(),
                    containers: self.containers.clone(),
                    host: *host,
                    address: if on_host { *host } else { own },
                };
                Box::pin(live(surroundings, pod.clone()))
            };
            lives.insert(uid.clone(), Life { ends, future });
        }
    }
}

/// Keeps the picture of all pods.
async fn watch(
    client: &Kubernetes,
    pods: &RefCell<BTreeMap<String, Object>>,
    changed: &Cell<bool>,
) -> Infallible {
    loop {
        if let Ok(mut follow) = client.follow(vec![Place::everywhere("v1", "Pod")]).await {
            loop {
                let uid = |pod: &Object| pod.text("/metadata/uid").unwrap_or_default().to_owned();
                *pods.borrow_mut() =
                    follow.objects().values().map(|pod| (uid(pod), pod.clone())).collect();
                changed.set(true);
                if follow.changed().await.is_err() {
                    break;
                }
            }
        }
        nap(AGAIN).await;
    }
}

/// A pod's whole life; it never ends by itself. Pictures are without what no judge asks for: all of it is fetched first.
async fn live(surroundings: Surroundings, pod: Object) {
    let pod = whole(&surroundings.raw, &pod).await;
    let containers = pod.entries("/spec/containers");
    let states = RefCell::new(vec![State::default(); containers.len()]);
    let publish = async |number: usize, change: &dyn Fn(&mut State)| {
        change(&mut states.borrow_mut()[number]);
        let status = status(&surroundings, containers, &states.borrow());
        tell(&surroundings.raw, &pod, &status).await;
    };
    let each = containers.iter().enumerate().map(async |(number, spec)| {
        let mut restarts = 0;
        loop {
            let address = surroundings.address;
            let container = Container { pod: &pod, spec, address, restarts };
            let start = surroundings.containers.start(&container);
            nap(start.after).await;
            let log = format!("{}-{}.log", pod.name(), container.name());
            let program = start
                .program
                .map(|command| Running::start_into(command, &surroundings.logs.join(log)));
            publish(number, &|state| state.runs = true).await;
            let readiness = async {
                let say = async |ready: bool| publish(number, &|state| state.ready = ready).await;
                watch_readiness(start.ready, spec, address, say).await;
            };
            tokio::select! {
                biased;
                () = ended(program) => {}
                () = readiness => {}
            }
            restarts += 1;
            publish(number, &|state| *state = State { restarts, ..State::default() }).await;
            nap(AGAIN).await;
        }
    });
    drop(join_all(each).await);
}

/// A pod with all of its parts: pictures leave out what gates do not look at. One that is gone has none.
async fn whole(raw: &Raw, pod: &Object) -> Object {
    loop {
        match raw.get(&place(pod)).await {
            Ok(answer) if answer.code == 200 => {
                return Object::new(answer.body).expect("the API server gives objects");
            }
            Ok(answer) if answer.code == 404 => return pending().await,
            _ => nap(AGAIN).await,
        }
    }
}

/// Waits until a program ends by itself; nothing never does.
async fn ended(program: Option<Running>) {
    let Some(mut program) = program else { return pending().await };
    while program.goes_on() {
        nap(GLANCE).await;
    }
}

/// Says whenever readiness changes; it never ends.
async fn watch_readiness(ready: Ready, spec: &Value, address: Ipv4Addr, say: impl AsyncFn(bool)) {
    match (ready, Probe::of(spec)) {
        (Ready::AtOnce, _) | (Ready::Probed, None) => say(true).await,
        (Ready::After(delay), _) => {
            nap(delay).await;
            say(true).await;
        }
        (Ready::Probed, Some(probe)) => {
            nap(probe.delay).await;
            let (mut is_ready, mut in_a_row) = (false, 0);
            loop {
                let succeeds = probe.succeeds(address).await;
                in_a_row = if succeeds == is_ready { 0 } else { in_a_row + 1 };
                let needed = if is_ready { probe.failures } else { probe.successes };
                if in_a_row >= needed {
                    (is_ready, in_a_row) = (succeeds, 0);
                    say(is_ready).await;
                }
                nap(probe.period).await;
            }
        }
    }
    pending::<()>().await;
}

/// Removes a pod that is to go: its programs have ended already.
async fn end(raw: Raw, pod: Object) {
    let path = format!("{}?gracePeriodSeconds=0", place(&pod));
    while raw.delete(&path).await.is_err() {
        nap(AGAIN).await;
    }
    pending::<()>().await;
}

/// Writes a pod's status; it may be gone, and the server may be away for a while.
async fn tell(raw: &Raw, pod: &Object, status: &Value) {
    let path = format!("{}/status", place(pod));
    let uid = pod.text("/metadata/uid").unwrap_or_default();
    let body = json!({"metadata": {"uid": uid}, "status": status});
    while raw.merge(&path, &body).await.is_err() {
        nap(AGAIN).await;
    }
}

fn place(pod: &Object) -> String {
    format!("/api/v1/namespaces/{}/pods/{}", pod.namespace().unwrap_or("default"), pod.name())
}

fn status(surroundings: &Surroundings, containers: &[Value], states: &[State]) -> Value {
    let now = SystemClock.now().to_string();
    let word = |holds: bool| if holds { "True" } else { "False" };
    let ready = states.iter().all(|state| state.ready);
    let condition = |kind: &str, holds: bool| json!({"type": kind, "status": word(holds), "lastTransitionTime": now});
    let of_each: Vec<Value> = containers
        .iter()
        .zip(states)
        .map(|(container, state)| {
            let form = match (state.runs, state.restarts) {
                (true, _) => json!({"running": {"startedAt": now}}),
                (false, 0) => json!({"waiting": {"reason": "ContainerCreating"}}),
                (false, _) => json!({"waiting": {"reason": "CrashLoopBackOff", "message": "its program ended"}}),
            };
            json!({
                "name": container["name"], "image": container["image"], "imageID": container["image"],
                "ready": state.ready, "started": state.runs, "restartCount": state.restarts, "state": form,
            })
        })
        .collect();
    let runs = states.iter().any(|state| state.runs || state.restarts > 0);
    let address = surroundings.address.to_string();
    json!({
        "phase": if runs { "Running" } else { "Pending" },
        "hostIP": surroundings.host.to_string(),
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "containerStatuses": of_each,
        "conditions": [
            condition("PodScheduled", true),
            condition("Initialized", true),
            condition("ContainersReady", ready),
            condition("Ready", ready),
        ],
    })
}

/// A node, and its status.
fn node(name: &str, address: Ipv4Addr) -> (Value, Value) {
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
    });
    let node =
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    let now = SystemClock.now().to_string();
    let room = json!({"cpu": "16", "memory": "64Gi", "pods": "200", "ephemeral-storage": "500Gi"});
    let status = json!({"status": {
        "capacity": room, "allocatable": room,
        "addresses": [
            {"type": "InternalIP", "address": address.to_string()},
            {"type": "Hostname", "address": name},
        ],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady", "message": "played",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
    }});
    (node, status)
}
