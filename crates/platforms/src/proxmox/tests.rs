//! The steps of this platform against the rehearsal, with everything that can go wrong in a Proxmox.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use castle_engine::{Context, Graph, Report, Step, Stop, Whole};
use castle_journal::{Journals, MemoryDisk};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::{Role, Trust};
use castle_model::{
    Event, EventKind, Failure, Observed, Plan, RunId, Secret, Spec, StepDecl, StepId,
};
use castle_proxmox::{Proxmox, Token};
use castle_rehearsal::host::Host;
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trouble::{Breakage, Fault, Moment, ProxmoxTrouble, TalosTrouble};

use super::wanted::Wanted;
use crate::escrow::drawer::Drawer;
use crate::escrow::{BUNDLE_KEY, ESCROW};
use crate::handed::{LIFE, Life, SECRETS, SecretValues};
use crate::ids;

mod audit;
mod faults;
mod image;
mod machines;
mod privileges;
mod trust;
mod wipe;

/// A castle of one control plane and one worker, its datacenter, its life and our state.
struct Bench {
    host: Host,
    spec: Spec,
    life: Life,
    disk: MemoryDisk,
    runs: u32,
    notices: Arc<Mutex<Vec<String>>>,
    /// Whether the whole platform is raised, and not its VMs alone.
    whole: bool,
}

/// Stands for the secrets layer: it gives what that layer would have read.
struct Given(SecretValues, Life, Arc<Drawer>);

#[async_trait]
impl Step for Given {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        cx.outputs().put(&SECRETS, self.0.clone());
        cx.outputs().put(&LIFE, self.1.clone());
        cx.outputs().put(&ESCROW, self.2.escrow());
        Ok(Observed::right("given"))
    }

    async fn gate(&self, _cx: &Context) -> Result<String, Failure> {
        Ok("given".to_owned())
    }
}

/// One run from survey to report.
struct Run {
    plan: Plan,
    report: Report,
    /// What was told of a length: bytes that are done, and of the whole.
    fetched: Vec<(u64, u64)>,
}

impl Run {
    /// The verb planned for a step.
    fn verb(&self, id: &StepId) -> &'static str {
        self.plan.step(id).unwrap().verb.word()
    }

    fn is_done(&self) -> bool {
        self.report.outcome == RunOutcome::Done
    }

    /// Every failure, as a person reads it.
    fn told(&self) -> String {
        let each = self.report.failures.iter().map(|(id, failure)| told(id, failure));
        each.collect::<Vec<_>>().join("\n")
    }
}

fn told(id: &StepId, failure: &Failure) -> String {
    let mut lines = vec![format!("{id} ({}): {failure}", failure.class)];
    lines.extend(failure.findings.iter().map(|finding| format!("  finding: {finding}")));
    lines.extend(failure.evidence.iter().map(|seen| format!("  seen: {seen}")));
    lines.extend(failure.hint.iter().map(|hint| format!("  hint: {hint}")));
    lines.join("\n")
}

impl Bench {
    fn new(seed: u64) -> Self {
        Self::of(castle_config::example(), seed)
    }

    fn of(mut spec: Spec, seed: u64) -> Self {
        let (mut planes, mut workers) = (0, 0);
        spec.nodes.retain(|node| {
            let seen = if node.role == Role::Worker { &mut workers } else { &mut planes };
            *seen += 1;
            *seen <= 1
        });
        let host = Host::open(None, &spec, seed).unwrap();
        let fingerprint = Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
        spec.platform.proxmox_mut().unwrap().trust = fingerprint;
        host.spawn_driver();
        let life = Life::begin(&host.world()).unwrap();
        let notices = Arc::default();
        Self { host, spec, life, disk: MemoryDisk::new(), runs: 0, notices, whole: false }
    }

    fn token(&self) -> (Secret, Secret) {
        self.host.read(|world| {
            let birth = &world.birth.proxmox;
            (Secret::new(birth.token_id.clone()), Secret::new(birth.token_secret.clone()))
        })
    }

    fn client(&self) -> Proxmox {
        let (id, secret) = self.token();
        let platform = self.spec.platform.proxmox().unwrap();
        let token = Token::of(&id, &secret);
        Proxmox::new(&self.host.world(), &platform.endpoint, &platform.trust, &token).unwrap()
    }

    fn secrets(&self) -> SecretValues {
        let (id, secret) = self.token();
        let keys = self.spec.platform.secrets().map(|reference| reference.0.clone());
        SecretValues(keys.zip([id, secret]).collect())
    }

    fn wanted(&self) -> Wanted {
        Wanted::of(&self.spec).unwrap()
    }

    fn graph(&self) -> Graph {
        let values = self.secrets();
        let mut graph = Graph::new();
        for step in [ids::secrets_read(), ids::secrets_escrow()] {
            let drawer = Arc::<Drawer>::default();
            drawer.put(BUNDLE_KEY, self.life.to_escrow(&self.spec.name));
            let given = Given(values.clone(), self.life.clone(), drawer);
            let mut decl = StepDecl::new(step, "given", "read", "it is done").always();
            if decl.id == ids::secrets_escrow() {
                decl = decl.needs([super::preflight_id()]);
            }
            graph.add(decl, given);
        }
        if self.whole {
            crate::build(&mut graph, &Arc::new(self.spec.clone()), &self.host.world());
        } else {
            super::build(&mut graph, self.wanted(), &self.host.world());
        }
        graph.check().unwrap();
        graph
    }

    async fn run(&mut self, direction: Direction) -> Run {
        let graph = self.graph();
        self.run_graph(direction, graph).await
    }

    async fn run_graph(&mut self, direction: Direction, graph: Graph) -> Run {
        self.runs += 1;
        let mut journals = Journals::open(Box::new(self.disk.clone())).unwrap();
        let run = RunId::new(format!("r{}", self.runs));
        let clock = self.host.clock();
        let heard = self.notices.clone();
        let mut fetched = Vec::new();
        let (plan, report) = Whole {
            castle: &self.spec.name,
            graph: &graph,
            journals: &mut journals,
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| match &event.kind {
                EventKind::Notice { text, .. } => heard.lock().unwrap().push(text.clone()),
                EventKind::StepProgress { done, total, .. } => fetched.push((*done, *total)),
                _ => {}
            },
            run,
            stop: Stop::default(),
        }
        .go(direction)
        .await
        .unwrap();
        Run { plan, report, fetched }
    }

    async fn up(&mut self) -> Run {
        self.run(Direction::Up).await
    }

    async fn down(&mut self) -> Run {
        self.run(Direction::Down).await
    }

    async fn raised(seed: u64) -> Self {
        let mut bench = Self::new(seed);
        let run = bench.up().await;
        assert!(run.is_done(), "{}", run.told());
        bench
    }

    fn inventory(&self) -> Inventory {
        self.host.read(Inventory::of)
    }

    fn mutations(&self) -> u64 {
        self.host.mutations().values().sum()
    }

    fn cause(&self, trouble: ProxmoxTrouble) {
        self.host.cause(trouble);
    }

    /// Lets the nth call of a kind break.
    fn break_call(&self, call: (&str, &str, u64), when: Moment, how: Breakage) {
        let (method, path, nth) = (call.0.to_owned(), call.1.to_owned(), call.2);
        self.cause(ProxmoxTrouble::Call(Fault { method, path, nth, when, how }));
    }

    /// Both VMs stand, run, and are all there is.
    fn assert_stands(&self) {
        let guests = self.inventory().proxmox.guests;
        let found: Vec<(u32, bool, bool)> =
            guests.iter().map(|g| (g.vmid, g.running, g.lock.is_none())).collect();
        assert_eq!(found, [(421, true, true), (431, true, true)]);
    }

    /// The memory that the survey counts as others'.
    async fn memory_of_others(&self) -> u64 {
        super::inventory::look(&self.client(), &self.wanted()).await.unwrap().others_memory
    }

    fn notices(&self) -> String {
        self.notices.lock().unwrap().join("\n")
    }
}
