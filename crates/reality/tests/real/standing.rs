//! A castle whose foundations stand already: the real cluster. The layers above run as they are, by the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Graph, Report, Step, Stop, Whole};
use castle_journal::Journals;
use castle_kubernetes::{KubeAccess, Kubernetes};
use castle_model::plan::Direction;
use castle_model::{Event, EventKind, Failure, NodeName, Observed, RunId, Spec, StepDecl, StepId};
use castle_platforms::handed::{API_SERVERS, CLUSTER, LIFE, Life, SECRETS, SecretValues};
use castle_reality::cluster::{Authority, Cluster, SERVER};
use castle_reality::outside;
use castle_reality::web::certificate;
use castle_wire::{DialFuture, Dialer, TcpDialer, World};

/// Where the test's own servers are.
pub(crate) const HERE: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 9);
/// The servers that releases are fetched from; the test's own plays them.
pub(crate) const RELEASES: [&str; 2] = ["github.com", "raw.githubusercontent.com"];
/// Their port.
pub(crate) const PORT: u16 = 443;
/// How long any step may take on a machine that is busy.
const PATIENCE: Duration = Duration::from_mins(10);

/// The castle.
pub(crate) struct Standing {
    pub(crate) spec: Arc<Spec>,
    world: World,
    access: KubeAccess,
    life: Life,
    events: Arc<Mutex<Vec<Event>>>,
}

/// What a run said.
pub(crate) struct Told {
    pub(crate) report: Report,
    pub(crate) events: Vec<Event>,
}

impl Told {
    /// How often a step was tried again.
    pub(crate) fn retries(&self, wanted: &StepId) -> usize {
        let is_one = |event: &&Event| matches!(&event.kind, EventKind::StepRetrying { step, .. } if step == wanted);
        self.events.iter().filter(is_one).count()
    }

    /// The steps that acted: those that were found as wanted do not.
    pub(crate) fn acted(&self) -> Vec<&StepId> {
        let acted = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::StepActed { step, .. } => Some(step),
            _ => None,
        });
        acted.collect()
    }
}

impl Standing {
    pub(crate) fn new(cluster: &Cluster, mut spec: Spec) -> Self {
        let world = world(cluster.authority());
        let life = Life::begin(&world).unwrap();
        for layer in ["networking", "gitops"] {
            spec.deadlines.0.insert(layer.to_owned(), PATIENCE);
        }
        Self {
            spec: Arc::new(spec),
            world,
            access: cluster.access().clone(),
            life,
            events: Arc::default(),
        }
    }

    /// What the last run has said until now.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    /// The same castle, whose API server is reached through another port.
    pub(crate) fn through(mut self, port: u16) -> Self {
        self.access.server = format!("https://{SERVER}:{port}");
        self
    }

    /// Raises some layers with a state folder of its own: what stands is found by looking.
    pub(crate) async fn up(&self, layers: impl Fn(&mut Graph, &Arc<Spec>, &World)) -> Told {
        // Every control plane is the same server here, by a connection of its own.
        let client = || Kubernetes::new(&self.world, &self.access).unwrap();
        let servers = self.spec.control_planes().map(|node| (node.name.clone(), client()));
        let given =
            Given { cluster: client(), servers: servers.collect(), life: self.life.clone() };
        let foundations =
            [castle_layers::secrets::declare(&self.spec), castle_platforms::declare(&self.spec)];
        let mut graph = Graph::new();
        for decl in foundations.concat() {
            graph.add(decl, given.clone());
        }
        layers(&mut graph, &self.spec, &self.world);
        // What the foundations need of layers that are not raised here stands too.
        let known: BTreeSet<StepId> = graph.decls().iter().map(|decl| decl.id.clone()).collect();
        let needs: BTreeSet<StepId> =
            graph.decls().iter().flat_map(|decl| decl.needs.iter().cloned()).collect();
        for id in needs.difference(&known) {
            graph.add(StepDecl::new(id.clone(), id.as_str(), "given", "it is done"), given.clone());
        }
        self.events.lock().unwrap().clear();
        let clock = self.world.clock.clone();
        let (_, report) = Whole {
            castle: &self.spec.name,
            graph: &graph,
            journals: &mut Journals::in_memory().unwrap(),
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event| self.events.lock().unwrap().push(event.clone()),
            run: RunId::new("run-1"),
            stop: Stop::default(),
        }
        .go(Direction::Up)
        .await
        .unwrap();
        Told { report, events: self.events() }
    }
}

/// A step of the foundations: all that they give is there.
#[derive(Clone)]
struct Given {
    cluster: Kubernetes,
    servers: Vec<(NodeName, Kubernetes)>,
    life: Life,
}

#[async_trait]
impl Step for Given {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        cx.outputs().put(&CLUSTER, self.cluster.clone());
        cx.outputs().put(&API_SERVERS, self.servers.clone());
        cx.outputs().put(&LIFE, self.life.clone());
        cx.outputs().put(&SECRETS, SecretValues(BTreeMap::new()));
        Ok(Observed::right("given"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("given".to_owned())
    }
}

/// The outside, where releases and repositories come from the test's own server.
fn world(authority: &Authority) -> World {
    let roots = Arc::new(vec![certificate(&authority.certificate)]);
    World { dialer: Arc::new(Detour), roots, ..outside() }
}

struct Detour;

impl Dialer for Detour {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        if RELEASES.contains(&host) {
            return Box::pin(async move { TcpDialer.dial(&HERE.to_string(), PORT).await });
        }
        if host.parse::<Ipv4Addr>().is_err() {
            let words = format!("{host} is not played here");
            return Box::pin(async move { Err(io::Error::new(io::ErrorKind::NotFound, words)) });
        }
        TcpDialer.dial(host, port)
    }
}

/// Tells a person what a test has seen.
#[expect(clippy::print_stderr, reason = "this is where such tests are read")]
pub(crate) fn tell(words: &str) {
    eprintln!("{words}");
}
