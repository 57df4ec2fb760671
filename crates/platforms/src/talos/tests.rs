//! The whole platform raised against the rehearsal: whole, twice, killed on the way, with a ghost in its place.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use castle_engine::{Context, Graph, Report, Step, Stop, Whole};
use castle_journal::{Journals, MemoryDisk};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Class, Event, EventKind, Failure, Observed, RunId, Secret, VmId};
use castle_proxmox::{Proxmox, Token};
use castle_rehearsal::host::Host;
use tokio::time::timeout;

use super::*;

mod api_servers;
mod clocks;
mod diagnoses;
mod faults;
mod keys;

use crate::escrow::drawer::Drawer;
use crate::escrow::{BUNDLE_KEY, ESCROW};
use crate::handed::{LIFE, Life, SECRETS, SecretValues};
use crate::proxmox::image::volume;
use crate::proxmox::wanted::Wanted;

/// A castle, the datacenter that it stands in, its life and our state.
struct Bench {
    host: Arc<Host>,
    spec: Arc<Spec>,
    life: Life,
    drawer: Arc<Drawer>,
    /// Values of secrets that the castle file refers to, beyond the platform's own.
    values: BTreeMap<String, Secret>,
    disk: MemoryDisk,
    runs: u32,
    /// How far castle's own clock is ahead of everybody's.
    ahead: Duration,
    /// What a person was told on the way of the last run.
    notices: Vec<String>,
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

impl Bench {
    fn new(seed: u64, control_planes: usize, workers: usize) -> Self {
        let mut spec = castle_config::example();
        let (mut planes, mut others) = (0, 0);
        spec.nodes.retain(|node| {
            let (seen, most) = match node.role {
                Role::ControlPlane => (&mut planes, control_planes),
                Role::Worker => (&mut others, workers),
            };
            *seen += 1;
            *seen <= most
        });
        let host = Arc::new(Host::open(None, &spec, seed).unwrap());
        spec.platform.proxmox_mut().unwrap().trust =
            Trust::Fingerprint(host.proxmox_fingerprint().unwrap());
        host.spawn_driver();
        let life = Life::begin(&host.world()).unwrap();
        let (values, disk) = (BTreeMap::new(), MemoryDisk::new());
        let (spec, drawer, notices) = (Arc::new(spec), Arc::<Drawer>::default(), Vec::new());
        drawer.put(BUNDLE_KEY, life.to_escrow(&spec.name));
        let ahead = Duration::ZERO;
        Self { host, spec, life, drawer, values, disk, runs: 0, ahead, notices }
    }

    fn graph(&self) -> Graph {
        let (id, secret) = self.token();
        let mut values = SecretValues(BTreeMap::from([
            ("PROXMOX_TOKEN_ID".to_owned(), id),
            ("PROXMOX_TOKEN_SECRET".to_owned(), secret),
        ]));
        values.0.extend(self.values.clone());
        let mut graph = Graph::new();
        for step in [ids::secrets_read(), ids::secrets_escrow()] {
            let decl = StepDecl::new(step, "given", "read", "it is done");
            graph.add(decl, Given(values.clone(), self.life.clone(), self.drawer.clone()));
        }
        let mut world = self.host.world();
        world.clock = Arc::new(clocks::Ahead(world.clock.clone(), self.ahead));
        crate::build(&mut graph, &self.spec, &world);
        graph.check().unwrap();
        graph
    }

    async fn up(&mut self) -> Report {
        self.runs += 1;
        let graph = self.graph();
        let mut journals = Journals::open(Box::new(self.disk.clone())).unwrap();
        let run = RunId::new(format!("r{}", self.runs));
        let clock = self.host.clock();
        self.notices.clear();
        let notices = &mut self.notices;
        let (_, report) = Whole {
            castle: &self.spec.name,
            graph: &graph,
            journals: &mut journals,
            deadlines: &self.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| {
                if let EventKind::Notice { text, .. } = &event.kind {
                    notices.push(text.clone());
                }
            },
            run,
            stop: Stop::default(),
        }
        .go(Direction::Up)
        .await
        .unwrap();
        report
    }

    /// Somebody's VM with the same image and the address of one of our nodes.
    async fn squat(&self, node: &NodeSpec) {
        let wanted = Wanted::of(&self.spec).unwrap();
        let proxmox = self.proxmox();
        let disk = format!("local-lvm:0,import-from={}", volume(&wanted).unwrap());
        let theirs = [
            ("vmid", "150".to_owned()),
            ("name", "ghost".to_owned()),
            ("memory", "2048".to_owned()),
            ("scsi0", disk),
            ("ide2", "local-lvm:cloudinit".to_owned()),
            ("net0", "virtio,bridge=vmbr0".to_owned()),
            ("ipconfig0", format!("ip={}/24,gw=192.168.1.1", node.address)),
            ("boot", "order=scsi0".to_owned()),
        ];
        proxmox.create_vm("pve", &theirs).await.unwrap();
        tokio::time::advance(Duration::from_secs(30)).await;
        proxmox.start("pve", VmId(150)).await.unwrap();
        tokio::time::advance(Duration::from_mins(1)).await;
    }

    fn proxmox(&self) -> Proxmox {
        let platform = self.spec.platform.proxmox().unwrap();
        let (id, secret) = self.token();
        let token = Token::of(&id, &secret);
        Proxmox::new(&self.host.world(), &platform.endpoint, &platform.trust, &token).unwrap()
    }

    /// Somebody removes a VM of ours.
    async fn destroy(&self, vmid: u32) {
        let proxmox = self.proxmox();
        proxmox.stop("pve", VmId(vmid)).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        proxmox.delete_vm("pve", VmId(vmid), false).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
    }

    fn token(&self) -> (Secret, Secret) {
        self.host.read(|world| {
            let birth = &world.birth.proxmox;
            (Secret::new(birth.token_id.clone()), Secret::new(birth.token_secret.clone()))
        })
    }

    fn etcds(&self) -> usize {
        self.host.read(|world| world.talos.etcds_of(&self.life.bundle.cluster_id))
    }

    fn mutations(&self, server: &str) -> u64 {
        self.host.mutations().get(server).copied().unwrap_or(0)
    }
}

fn assert_done(report: &Report) {
    assert_eq!(report.outcome, RunOutcome::Done, "{:#?}", report.failures);
}

#[tokio::test(start_paused = true)]
async fn castles_of_every_shape_rise_and_are_left_alone() {
    for (control_planes, workers) in [(1, 1), (1, 2), (3, 2)] {
        let mut bench = Bench::new(1, control_planes, workers);
        assert_done(&bench.up().await);
        assert_eq!(bench.etcds(), 1);
        let machines = u64::try_from(control_planes + workers).unwrap();
        assert_eq!(bench.mutations("talos"), machines + 1, "one config each, one bootstrap");
        let before = bench.host.mutations();
        assert_done(&bench.up().await);
        // The state folder is lost: everything is found again.
        bench.disk = MemoryDisk::new();
        assert_done(&bench.up().await);
        assert_eq!(bench.host.mutations(), before, "nothing was touched again");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_killed_anywhere_never_splits_the_brain() {
    let mut kills = 0;
    for number in 0..14 {
        let mut bench = Bench::new(number, 3, 1);
        let moment = Duration::from_millis(28_000 + number * 4_700);
        kills += u32::from(timeout(moment, bench.up()).await.is_err());
        // Every other time the state is lost with the process.
        if number % 2 == 1 {
            bench.disk = MemoryDisk::new();
        }
        let report = bench.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{moment:?}: {:#?}", report.failures);
        assert_eq!(bench.etcds(), 1, "after a kill at {moment:?}");
        // A bootstrap that was accepted and not seen to its end is asked for again, on the same machine.
        assert!(matches!(bench.mutations("talos"), 5 | 6), "after a kill at {moment:?}");
    }
    assert!(kills >= 10, "only {kills} runs were killed before their end");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_is_not_our_vm_gets_no_config() {
    let mut bench = Bench::new(2, 1, 1);
    let first = bench.spec.nodes[0].clone();
    // Killed when the VMs are made; then somebody else's machine takes the address of the first.
    assert!(timeout(Duration::from_secs(22), bench.up()).await.is_err());
    bench.squat(&first).await;
    let report = bench.up().await;
    assert!(report.failures.contains_key(&boot_id(&first)), "{:#?}", report.failures);
    let failure = &report.failures[&boot_id(&first)];
    assert_eq!(failure.class, Class::Conflict, "{failure:?}");
    assert!(failure.evidence.as_ref().unwrap().contains("SMBIOS UUID"), "{failure:?}");
    assert_eq!(report.not_run[&ids::config(&first)], Some(boot_id(&first)));
    assert_eq!(bench.mutations("talos"), 1, "only the worker got its config");
    assert_eq!(bench.etcds(), 0);
}

#[tokio::test(start_paused = true)]
async fn no_config_leaves_whose_secrets_are_not_kept_any_more() {
    let mut bench = Bench::new(3, 1, 1);
    let ours = bench.drawer.get(BUNDLE_KEY).unwrap();
    let mut other = Life::begin(&bench.host.world()).unwrap();
    let theirs = other.to_escrow(&bench.spec.name);
    let told = format!("it holds those of the life {} by now", other.incarnation);
    // Whoever made keys of the same life anew has made another cluster too.
    other.incarnation = bench.life.incarnation.clone();
    let same = other.to_escrow(&bench.spec.name);
    for (kept, told) in [
        (Some(theirs), told.as_str()),
        (Some(same), "it holds other secrets of the same life by now"),
        (Some(Secret::new("# castle red 0011223344556677\n")), "it belongs to the castle `red`"),
        (None, "it is gone"),
    ] {
        // Written by another run between our reading back and our first config.
        match kept {
            Some(kept) => bench.drawer.put(BUNDLE_KEY, kept),
            None => bench.drawer.escrow().0.remove(&[BUNDLE_KEY]).await.unwrap(),
        }
        let report = bench.up().await;
        let failure = &report.failures[&ids::config(&bench.spec.nodes[0])];
        assert_eq!(failure.class, Class::Conflict, "{failure:?}");
        assert!(failure.why.ends_with(told), "{failure:?}");
        assert_eq!(failure.evidence.as_deref(), Some("a drawer"));
        assert_eq!(bench.mutations("talos"), 0, "nothing was sent");
    }
    bench.drawer.put(BUNDLE_KEY, ours);
    assert_done(&bench.up().await);
}
