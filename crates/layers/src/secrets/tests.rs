//! The foundations of a castle, secrets and VMs, raised and razed against the rehearsal, and killed on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use castle_engine::{Graph, Report, Stop, Whole};
use castle_infisical::{Credentials, Infisical, Place};
use castle_journal::{Journals, MemoryDisk};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Class, Event, Plan, RunId, Secret, Spec, UndoKind, Verb, VmId};
use castle_platforms::escrow::BUNDLE_KEY;
use castle_platforms::proxmox::{preflight_id, vm_id};
use castle_proxmox::{Proxmox, Token};
use castle_rehearsal::host::Host;
use castle_rehearsal::inventory::Inventory;
use castle_rehearsal::trouble::InfisicalTrouble;
use tokio::time::timeout;

use super::source::Access;

mod keeping;
mod sources;

/// A castle, the datacenter that it stands in, and our state.
struct Bench {
    host: Host,
    spec: Arc<Spec>,
    disk: MemoryDisk,
    runs: u32,
    /// The access to other sources than Infisical.
    access: Option<Access>,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let mut spec = castle_config::example();
        let host = Host::open(None, &spec, seed).unwrap();
        spec.platform.proxmox_mut().unwrap().trust =
            Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
        host.spawn_driver();
        Self { host, spec: Arc::new(spec), disk: MemoryDisk::new(), runs: 0, access: None }
    }

    fn graph(&self) -> Graph {
        let mut graph = Graph::new();
        let access = self.access.clone();
        let access = access.unwrap_or_else(|| Access::to_infisical(self.credentials()));
        super::build(&mut graph, &self.spec, &self.host.world(), access);
        crate::gitops::build_repository(&mut graph, &self.spec, &self.host.world());
        crate::sets::build(&mut graph, &self.spec, &self.host.world());
        let wanted = castle_platforms::proxmox::wanted::Wanted::of(&self.spec).unwrap();
        castle_platforms::proxmox::build(&mut graph, wanted, &self.host.world());
        graph
    }

    fn credentials(&self) -> Credentials {
        let (client_id, client_secret) = self.host.credentials();
        Credentials { client_id, client_secret }
    }

    /// One run of castle from survey to report, as the command line does it.
    async fn run(&mut self, direction: Direction) -> (Plan, Report) {
        let graph = self.graph();
        self.run_by(&graph, direction).await
    }

    async fn run_by(&mut self, graph: &Graph, direction: Direction) -> (Plan, Report) {
        self.runs += 1;
        let mut journals = Journals::open(Box::new(self.disk.clone())).unwrap();
        let run = RunId::new(format!("r{}", self.runs));
        let clock = self.host.clock();
        let (plan, report) = Whole {
            castle: &self.spec.name,
            graph,
            journals: &mut journals,
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |_: &Event| (),
            run,
            stop: Stop::default(),
        }
        .go(direction)
        .await
        .unwrap();
        (plan, report)
    }

    async fn up(&mut self) -> Report {
        self.run(Direction::Up).await.1
    }

    fn inventory(&self) -> Inventory {
        self.host.read(Inventory::of)
    }

    fn mutations(&self) -> u64 {
        self.host.mutations().values().sum()
    }

    /// Everything that the datacenter must hold once the foundations stand.
    fn assert_risen(&self) {
        let found = self.inventory();
        let guests = &found.proxmox.guests;
        assert_eq!(guests.len(), 5, "{guests:?}");
        assert!(guests.iter().all(|guest| guest.running && guest.lock.is_none()), "{guests:?}");
        let lives: BTreeSet<&str> = guests
            .iter()
            .flat_map(|guest| guest.tags.iter().filter(|tag| tag.starts_with("inc-")))
            .map(String::as_str)
            .collect();
        assert_eq!(lives.len(), 1, "{lives:?}");
        assert!(found.secrets.iter().any(|key| key.contains(BUNDLE_KEY)), "{:?}", found.secrets);
    }

    fn proxmox(&self) -> Proxmox {
        let (id, secret) = self.host.read(|world| {
            let birth = &world.birth.proxmox;
            (Secret::new(birth.token_id.clone()), Secret::new(birth.token_secret.clone()))
        });
        let platform = self.spec.platform.proxmox().unwrap();
        let token = Token::of(&id, &secret);
        Proxmox::new(&self.host.world(), &platform.endpoint, &platform.trust, &token).unwrap()
    }

    async fn vault(&self) -> (Infisical, Place) {
        let secrets = self.spec.secrets.infisical().unwrap();
        let vault = Infisical::new(&self.host.world(), &secrets.host, self.credentials()).unwrap();
        let project = vault.project(&secrets.project).await.unwrap();
        let (environment, path) = (secrets.environment.clone(), secrets.path.clone());
        (vault, Place { project, environment, path })
    }
}

fn assert_done(report: &Report) {
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
}

#[tokio::test(start_paused = true)]
async fn a_castle_rises_is_left_alone_and_goes_without_a_trace() {
    let mut bench = Bench::new(1);
    let before = bench.inventory();
    assert_done(&bench.up().await);
    bench.assert_risen();
    let risen = bench.mutations();

    let (plan, report) = bench.run(Direction::Up).await;
    assert_done(&report);
    assert!(plan.is_quiet(), "{:?}", plan.counts());
    assert_eq!(bench.mutations(), risen, "a second run must not touch anything");

    // The state folder is lost: everything is found again and adopted.
    bench.disk = MemoryDisk::new();
    let (plan, report) = bench.run(Direction::Up).await;
    assert_done(&report);
    let made = plan.steps.iter().filter(|step| step.decl.undo == UndoKind::Explicit);
    assert!(made.clone().all(|step| step.verb == Verb::Adopt), "{:?}", plan.counts());
    assert_eq!(made.count(), 8, "the image, five VMs, strays and the escrowed secrets");
    assert!(plan.is_quiet());
    assert_eq!(bench.mutations(), risen);

    assert_done(&bench.run(Direction::Down).await.1);
    let after = bench.inventory();
    assert_eq!(after.proxmox.guests, before.proxmox.guests);
    assert_eq!(after.proxmox.volumes, before.proxmox.volumes);
    assert_eq!(after.proxmox.files, before.proxmox.files);
    assert_eq!(after.secrets, before.secrets);
    assert_done(&bench.run(Direction::Down).await.1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_anywhere_is_taken_up_again() {
    let mut kills = 0;
    for (seed, milliseconds) in (0..12).map(|n| (n, 3_100 + n * 1_300)) {
        let mut bench = Bench::new(seed);
        let killed = timeout(Duration::from_millis(milliseconds), bench.up()).await.is_err();
        kills += u32::from(killed);
        // Every other time the state is lost with the process.
        if seed % 2 == 1 {
            bench.disk = MemoryDisk::new();
        }
        let report = bench.up().await;
        assert_eq!(
            report.outcome,
            RunOutcome::Done,
            "killed {killed} at {milliseconds}: {:#?}",
            report.failures
        );
        bench.assert_risen();
        let volumes = bench.inventory().proxmox.volumes.len();
        // Per VM: system disk, EFI disk, cloud-init; two workers with a second disk.
        assert_eq!(volumes, 5 * 3 + 2, "after a kill at {milliseconds}");
        assert_eq!(bench.inventory().proxmox.files.len(), 1);
    }
    assert!(kills >= 10, "only {kills} runs were killed before their end");
}

#[tokio::test(start_paused = true)]
async fn a_foreign_guest_in_the_way_stops_everything_before_it_begins() {
    let mut bench = Bench::new(3);
    let proxmox = bench.proxmox();
    let theirs = [("vmid", "422".to_owned()), ("name", "web".to_owned())];
    proxmox.create_vm("pve", &theirs).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    let before = bench.mutations();
    let report = bench.up().await;
    let failure = &report.failures[&preflight_id()];
    assert_eq!(failure.class, Class::Conflict);
    let [finding] = &*failure.findings else { panic!("{failure:?}") };
    assert_eq!(finding.place, "number 422 of cp-02");
    assert!(finding.why.starts_with("it is taken by VM `web` on pve"), "{}", finding.why);
    assert_eq!(bench.mutations(), before);
    // Nor is it our leftover.
    assert_done(&bench.run(Direction::Down).await.1);
    assert_eq!(bench.inventory().proxmox.guests.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn missing_secrets_are_named_before_anything_else_is_asked() {
    let mut bench = Bench::new(4);
    let (vault, place) = bench.vault().await;
    vault.remove(&place, "GITHUB_TOKEN").await.unwrap();
    vault.remove(&place, "AWS_ACCESS_KEY_ID").await.unwrap();
    let report = bench.up().await;
    let failure = report.failures.values().next().unwrap();
    assert_eq!(failure.why, "missing: AWS_ACCESS_KEY_ID, GITHUB_TOKEN");
    assert!(failure.findings[0].place.contains("AWS_ACCESS_KEY_ID in https://eu.infisical.com"));
    assert!(failure.findings[1].place.contains("environment dev, path /ephemeral-castle/blue"));
    assert!(bench.inventory().proxmox.guests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn secrets_that_may_not_be_seen_are_not_called_absent() {
    let mut bench = Bench::new(4);
    bench.host.cause(InfisicalTrouble::Confined("/ephemeral-castle/green/**".to_owned()));
    let report = bench.up().await;
    let failure = report.failures.values().next().unwrap();
    let hint = failure.hint.as_deref().unwrap();
    let words = "GITHUB_TOKEN is not for this identity to see (You are not allowed to describeSecret on secrets)";
    assert!(hint.contains(words), "{hint}");
    assert!(bench.inventory().proxmox.guests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn machines_whose_secrets_are_lost_are_not_touched() {
    let mut bench = Bench::new(5);
    assert_done(&bench.up().await);
    let (vault, place) = bench.vault().await;
    assert!(vault.remove(&place, BUNDLE_KEY).await.unwrap());
    let before = bench.mutations();
    let report = bench.up().await;
    let failure = &report.failures[&castle_platforms::ids::secrets_escrow()];
    assert_eq!(failure.class, Class::Gone, "{failure:?}");
    assert_eq!(bench.mutations(), before);
    // They can still be removed.
    assert_done(&bench.run(Direction::Down).await.1);
    assert!(bench.inventory().proxmox.guests.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vm_that_was_switched_off_is_switched_on_again() {
    let mut bench = Bench::new(6);
    assert_done(&bench.up().await);
    let node = bench.spec.nodes[0].clone();
    bench.proxmox().stop("pve", node.vm().unwrap().vmid).await.unwrap();
    tokio::time::advance(Duration::from_secs(30)).await;
    let (plan, report) = bench.run(Direction::Up).await;
    assert_done(&report);
    let step = plan.step(&vm_id(&node.name)).unwrap();
    let reason = "it is switched off -> switched on";
    assert_eq!((step.verb, step.reason.as_str()), (Verb::Update, reason));
    bench.assert_risen();
}

#[tokio::test(start_paused = true)]
async fn the_sources_hold_what_the_layers_above_will_ask_for() {
    let bench = Bench::new(7);
    let world = bench.host.world();
    for component in castle_artefact::installed(&bench.spec) {
        let source = component.wanted(&bench.spec);
        let manifest = castle_artefact::read(&world, &bench.spec, &source).await.unwrap();
        let text = String::from_utf8(manifest.bytes.to_vec()).unwrap();
        assert!(text.contains("kind: Deployment"), "{}", source.url);
        assert_eq!(manifest.sha256.len(), 64);
    }
    let nobody = "https://github.com/nobody/nothing.yaml";
    let missing =
        castle_artefact::fetch(&world, &bench.spec.downloads, nobody, &mut |_, _| {}).await;
    assert_eq!(missing.unwrap_err().class(), Class::Gone);

    let gitops = &bench.spec.gitops;
    let (vault, place) = bench.vault().await;
    let found = vault.list(&place).await.unwrap();
    let token = &found.get("GITHUB_TOKEN").unwrap().value;
    let head = castle_git::head(&world, &gitops.url, &gitops.branch, Some(token)).await.unwrap();
    assert_eq!(head.len(), 40);
    let ask = |branch: &'static str, token: Option<Secret>| {
        let world = world.clone();
        async move { castle_git::head(&world, &gitops.url, branch, token.as_ref()).await.unwrap_err() }
    };
    assert_eq!(ask("nosuch", Some(token.clone())).await.class(), Class::Gone);
    assert_eq!(ask("main", Some(Secret::new("wrong"))).await.class(), Class::Denied);
}

#[tokio::test(start_paused = true)]
async fn a_vm_whose_mark_was_edited_is_named_and_left_alone_and_its_secrets_stay() {
    let mut bench = Bench::new(8);
    assert_done(&bench.up().await);
    let edited = [("description", "somebody's notes".to_owned())];
    bench.proxmox().set_config("pve", VmId(422), &edited).await.unwrap();
    let report = bench.run(Direction::Down).await.1;
    let failure = &report.failures[&vm_id(&"cp-02".parse().unwrap())];
    assert_eq!(failure.class, Class::Conflict, "{failure:?}");
    let left: Vec<u32> = bench.inventory().proxmox.guests.iter().map(|guest| guest.vmid).collect();
    assert_eq!(left, [422]);
    assert!(bench.inventory().secrets.iter().any(|key| key.ends_with(BUNDLE_KEY)));
}

#[tokio::test(start_paused = true)]
async fn the_way_down_needs_only_the_keys_of_the_platform() {
    let mut bench = Bench::new(9);
    assert_done(&bench.up().await);
    let (vault, place) = bench.vault().await;
    vault.remove(&place, "GITHUB_TOKEN").await.unwrap();
    assert_done(&bench.run(Direction::Down).await.1);
    assert!(bench.inventory().proxmox.guests.is_empty());
}
