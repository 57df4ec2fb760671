//! The life of emulated machines, by direct calls.

use std::collections::BTreeMap;

use castle_model::Spec;
use castle_talos::{machine_config, without_secrets};
use tonic::Code;

use super::machine::Api;
use super::*;

use crate::durations::Draws;
use crate::testing::{bundle, spec};
use crate::turn::{self, Dice, VmFacts};

mod ending;
mod trouble;

/// A datacenter of machines alone.
pub(super) struct Bench {
    talos: Talos,
    dice: Dice,
    now: u64,
    queue: BTreeMap<(u64, u64), Effect>,
    sequence: u64,
    signals: Vec<Signal>,
}

impl Bench {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            talos: Talos::default(),
            dice: Dice::new(seed),
            now: 0,
            queue: BTreeMap::new(),
            sequence: 0,
            signals: Vec::new(),
        }
    }

    fn turn<T>(&mut self, act: impl FnOnce(&mut Talos, &mut Turn<'_>) -> T) -> T {
        let (mut due, heard) = (Vec::new(), self.signals.len());
        let mut turn = Turn {
            now: self.now,
            dice: &mut self.dice,
            due: &mut due,
            signals: &mut self.signals,
            draws: &mut Draws::default(),
        };
        let result = act(&mut self.talos, &mut turn);
        // Nothing here makes a node Ready but its joining.
        let joined: Vec<Signal> = turn.signals[heard..]
            .iter()
            .filter_map(|signal| match signal {
                Signal::NodeJoined { cluster, name, .. } => Some(Signal::NodeReady {
                    cluster: cluster.clone(),
                    name: name.clone(),
                    ready: true,
                }),
                _ => None,
            })
            .collect();
        for ready in joined {
            self.talos.heard(&mut turn, &ready);
        }
        for (delay, effect) in due {
            let turn::Effect::Talos(effect) = effect else { panic!("not ours") };
            self.sequence += 1;
            self.queue.insert((self.now + delay, self.sequence), effect);
        }
        result
    }

    pub(super) fn call(&mut self, vmid: u32, call: Call) -> Result<Reply, Refusal> {
        self.turn(|talos, turn| talos.call(turn, vmid, call))
    }

    fn heard(&mut self, signal: &Signal) {
        self.turn(|talos, turn| talos.heard(turn, signal));
    }

    /// Lets the next thing happen; false if nothing is due.
    fn step(&mut self) -> bool {
        let Some(((due, _), effect)) = self.queue.pop_first() else { return false };
        self.now = due;
        self.turn(|talos, turn| talos.fire(turn, effect));
        true
    }

    fn until(&mut self, what: &str, reached: impl Fn(&Talos) -> bool) {
        while !reached(&self.talos) {
            assert!(self.step(), "{what} never came");
        }
    }

    pub(super) fn settle(&mut self) {
        while self.step() {}
    }

    /// Switches every machine of the spec on.
    pub(super) fn start(&mut self, spec: &Spec) {
        for node in &spec.nodes {
            self.heard(&Signal::VmStarted(facts(spec, node.vm().unwrap().vmid.0, "disk-1")));
        }
    }

    pub(super) fn until_maintenance(&mut self, spec: &Spec, vmid: u32) {
        let address = node(spec, vmid).address;
        self.until("maintenance", |talos| {
            talos.listen(address, 50_000) == Some(Listen::Maintenance { vmid })
        });
    }

    pub(super) fn configure(&mut self, spec: &Spec, vmid: u32) {
        self.until_maintenance(spec, vmid);
        let config = ConfigText(config(spec, vmid));
        let reply = self.call(vmid, apply(config, ApplyMode::Auto, false));
        let details = "Applied configuration without a reboot".to_owned();
        assert_eq!(reply, Ok(Reply::Applied { mode: ApplyMode::NoReboot, details }));
    }

    /// A whole cluster up to quiet.
    fn risen(seed: u64, control_planes: u8, workers: u8) -> (Self, Spec) {
        let spec = spec(control_planes, workers);
        let mut bench = Self::new(seed);
        bench.start(&spec);
        for node in &spec.nodes {
            bench.configure(&spec, node.vm().unwrap().vmid.0);
        }
        bench.until("the runtime", |talos| talos.machines[&421].running.runtime);
        assert_eq!(bench.call(421, Call::Bootstrap), Ok(Reply::Done));
        bench.settle();
        (bench, spec)
    }

    fn members(&mut self, vmid: u32) -> Vec<(String, bool)> {
        match self.call(vmid, Call::EtcdMembers) {
            Ok(Reply::Members(members)) => {
                members.into_iter().map(|member| (member.hostname, member.learner)).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

fn apply(config: ConfigText, mode: ApplyMode, dry_run: bool) -> Call {
    Call::Apply { config, mode, dry_run, try_seconds: None, admin: true }
}

fn config(spec: &Spec, vmid: u32) -> String {
    machine_config(spec, node(spec, vmid), bundle(), "88d1", &without_secrets)
        .unwrap()
        .text
        .expose()
        .to_owned()
}

fn node(spec: &Spec, vmid: u32) -> &castle_model::spec::NodeSpec {
    spec.nodes.iter().find(|node| node.vm().unwrap().vmid.0 == vmid).unwrap()
}

fn facts(spec: &Spec, vmid: u32, disk: &str) -> VmFacts {
    let node = node(spec, vmid);
    VmFacts {
        vmid,
        name: node.name.to_string(),
        uuid: format!("00000000-0000-4000-8000-{vmid:012}"),
        address: Some(node.address),
        disk: disk.to_owned(),
        image: Some("talos-1.13.9-88d1f7a5.qcow2".to_owned()),
        disk_gib: 40,
        data_disk_gib: node.vm().unwrap().data_disk_gib,
        memory_mib: 8192,
        cores: 4,
        extensions: vec!["siderolabs/iscsi-tools".to_owned()],
    }
}

fn vip(bench: &Bench) -> Option<Listen> {
    bench.talos.listen(Ipv4Addr::new(192, 168, 1, 210), 6443)
}

#[test]
fn a_small_castle_rises() {
    let (bench, spec) = Bench::risen(7, 1, 1);
    let births = bench.signals.iter().filter(|s| matches!(s, Signal::ClusterBorn { .. })).count();
    assert_eq!(births, 1);
    let mut joined: Vec<_> = bench
        .signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::NodeJoined { name, control_plane, data_disk, .. } => {
                Some((name.as_str(), *control_plane, *data_disk))
            }
            _ => None,
        })
        .collect();
    joined.sort_unstable();
    assert_eq!(joined, [("cp-01", true, false), ("worker-01", false, true)]);
    assert_eq!(vip(&bench), Some(Listen::KubeApi { vmid: 421 }));
    let worker = node(&spec, 431).address;
    assert_eq!(bench.talos.listen(worker, 50_000), Some(Listen::Secure { vmid: 431 }));
    assert_eq!(bench.talos.listen(worker, 6443), Some(Listen::Refused));
    // The worker's certificate comes from the control plane's authority.
    let identity = bench.talos.identity(431, Listen::Secure { vmid: 431 }).unwrap();
    assert_eq!(identity.authority.unwrap().key, bundle().os.key.expose());
    let status = &bench.talos.machines[&431].noted.status;
    assert_eq!(status["stage"], "running");
    assert_eq!(status["status"]["ready"], true);
}

#[test]
fn members_join_one_at_a_time_whatever_the_seed() {
    for seed in 0..20 {
        let spec = spec(3, 0);
        let mut bench = Bench::new(seed);
        bench.start(&spec);
        for node in &spec.nodes {
            bench.configure(&spec, node.vm().unwrap().vmid.0);
        }
        bench.until("the runtime", |talos| talos.machines[&421].running.runtime);
        assert_eq!(bench.call(421, Call::EtcdMembers), Err(Refusal::Waits), "before bootstrap");
        bench.call(421, Call::Bootstrap).unwrap();
        let mut most = 0;
        while bench.step() {
            for etcd in bench.talos.etcds.values() {
                let learners = etcd.members.values().filter(|member| member.learner).count();
                assert!(learners <= 1);
                most = most.max(etcd.members.len());
            }
        }
        assert_eq!(most, 3);
        let all = bench.members(421);
        assert!(all.iter().all(|(name, learner)| name.starts_with("cp-") && !learner));
        assert_eq!(bench.members(422), all);
        for vmid in [421, 422, 423] {
            let refusal = Refusal::new(Code::AlreadyExists, "etcd data directory is not empty");
            assert_eq!(bench.call(vmid, Call::Bootstrap), Err(refusal));
        }
    }
}

#[test]
fn a_second_bootstrap_elsewhere_splits_the_brain() {
    let spec = spec(3, 0);
    let mut bench = Bench::new(3);
    bench.start(&spec);
    for node in &spec.nodes {
        bench.configure(&spec, node.vm().unwrap().vmid.0);
    }
    bench.until("both runtimes", |talos| {
        [421, 422].iter().all(|vmid| talos.machines[vmid].running.runtime)
    });
    bench.call(421, Call::Bootstrap).unwrap();
    bench.call(422, Call::Bootstrap).unwrap();
    bench.settle();
    assert_eq!(bench.talos.etcds.len(), 2);
    assert_ne!(bench.members(421), bench.members(422));
}

#[test]
fn a_worker_is_silent_until_a_control_plane_can_vouch_for_it() {
    let spec = spec(1, 1);
    let mut bench = Bench::new(5);
    bench.start(&spec);
    bench.configure(&spec, 431);
    bench.settle();
    let worker = node(&spec, 431).address;
    assert_eq!(bench.talos.listen(worker, 50_000), Some(Listen::Refused));
    bench.configure(&spec, 421);
    bench.settle();
    assert_eq!(bench.talos.listen(worker, 50_000), Some(Listen::Secure { vmid: 431 }));
}

#[test]
fn a_worker_keeps_its_certificate_when_every_control_plane_is_gone() {
    let (mut bench, spec) = Bench::risen(6, 1, 1);
    let listen = Listen::Secure { vmid: 431 };
    let before = bench.talos.identity(431, listen).unwrap();
    bench.heard(&Signal::VmDestroyed { vmid: 421 });
    bench.settle();
    assert_eq!(bench.talos.listen(node(&spec, 431).address, 50_000), Some(listen));
    assert_eq!(bench.talos.identity(431, listen), Some(before));
    // In its next boot there is nobody to ask for one.
    bench.heard(&Signal::VmStopped { vmid: 431 });
    bench.heard(&Signal::VmStarted(facts(&spec, 431, "disk-1")));
    bench.settle();
    assert_eq!(bench.talos.identity(431, listen), None);
}

#[test]
fn the_listener_changes_after_the_answer_has_left() {
    let spec = spec(1, 0);
    let mut bench = Bench::new(1);
    bench.start(&spec);
    let address = node(&spec, 421).address;
    assert_eq!(bench.talos.listen(address, 50_000), None, "no host answers while it boots");
    bench.configure(&spec, 421);
    let (listen, at) = (bench.talos.listen(address, 50_000), bench.now);
    assert_eq!(listen, Some(Listen::Maintenance { vmid: 421 }));
    let old = bench.talos.identity(421, listen.unwrap()).unwrap();
    assert_eq!(old.authority, None);
    bench.until("refusal", |talos| talos.listen(address, 50_000) == Some(Listen::Refused));
    assert!(bench.now > at);
    bench.until("the secure API", |talos| {
        talos.listen(address, 50_000) == Some(Listen::Secure { vmid: 421 })
    });
    let new = bench.talos.identity(421, Listen::Secure { vmid: 421 }).unwrap();
    assert!(new.generation > old.generation && new.client_authority.is_some());
    let refusal = Refusal::new(Code::FailedPrecondition, "bootstrap is not available yet");
    assert_eq!(bench.call(421, Call::Bootstrap), Err(refusal));
}

#[test]
fn a_disk_remembers_and_a_new_one_does_not() {
    let (mut bench, spec) = Bench::risen(11, 1, 0);
    let address = node(&spec, 421).address;
    bench.heard(&Signal::VmStopped { vmid: 421 });
    assert_eq!(
        bench.signals.last(),
        Some(&Signal::NodeLost { cluster: bundle().cluster_id.clone(), name: "cp-01".to_owned() })
    );
    assert_eq!(bench.talos.listen(address, 50_000), None);
    assert_eq!(vip(&bench), None);
    bench.heard(&Signal::VmStarted(facts(&spec, 421, "disk-1")));
    while bench.step() {
        let maintenance = Some(Listen::Maintenance { vmid: 421 });
        assert_ne!(bench.talos.listen(address, 50_000), maintenance, "it has a config");
    }
    assert_eq!(bench.members(421), [("cp-01".to_owned(), false)]);
    assert_eq!(vip(&bench), Some(Listen::KubeApi { vmid: 421 }));
    let births = |bench: &Bench| {
        bench.signals.iter().filter(|s| matches!(s, Signal::ClusterBorn { .. })).count()
    };
    assert_eq!(births(&bench), 1, "the same cluster came back");
    bench.heard(&Signal::VmStopped { vmid: 421 });
    bench.heard(&Signal::VmStarted(facts(&spec, 421, "disk-2")));
    bench.settle();
    assert_eq!(bench.talos.listen(address, 50_000), Some(Listen::Maintenance { vmid: 421 }));
    assert!(bench.talos.etcds.is_empty());
}

#[test]
fn power_lost_in_the_middle_loses_the_bootstrap() {
    let spec = spec(1, 0);
    let mut bench = Bench::new(2);
    bench.start(&spec);
    bench.configure(&spec, 421);
    bench.until("the runtime", |talos| talos.machines[&421].running.runtime);
    bench.call(421, Call::Bootstrap).unwrap();
    bench.heard(&Signal::VmStopped { vmid: 421 });
    bench.heard(&Signal::VmStarted(facts(&spec, 421, "disk-1")));
    bench.settle();
    assert_eq!(bench.call(421, Call::EtcdMembers), Err(Refusal::Waits));
    assert_eq!(bench.call(421, Call::Bootstrap), Ok(Reply::Done));
}

#[test]
fn the_shared_address_moves_when_its_lease_runs_out() {
    let (mut bench, _) = Bench::risen(9, 3, 0);
    let Some(Listen::KubeApi { vmid: holder }) = vip(&bench) else { panic!("no holder") };
    let at = bench.now;
    bench.heard(&Signal::VmStopped { vmid: holder });
    assert_eq!(vip(&bench), None);
    bench.until("a new holder", |talos| talos.etcds.values().any(|etcd| etcd.holder.is_some()));
    let Some(Listen::KubeApi { vmid: next }) = vip(&bench) else { panic!("no new holder") };
    assert_ne!(next, holder);
    assert!((60_000..=64_000).contains(&(bench.now - at)), "{}", bench.now - at);
    bench.heard(&Signal::VmDestroyed { vmid: holder });
    assert_eq!(bench.members(next).len(), 3, "a destroyed machine stays a member");
}

#[test]
fn bad_configs_are_refused_in_talos_words() {
    let spec = spec(1, 0);
    let mut bench = Bench::new(1);
    bench.start(&spec);
    let good = config(&spec, 421);
    let cases = [
        (String::new(), "config not found"),
        ("machine: [".to_owned(), "not YAML"),
        (
            "machine: {nonsense: 1}\ncluster: {}".to_owned(),
            "unknown keys found during decoding:\nmachine:",
        ),
        (
            "version: v1alpha1\nmachine: {type: worker}".to_owned(),
            "cluster instructions are required",
        ),
        (good.replace("auto: off", "auto: stable"), "'auto' and 'hostname'"),
        (good.replace("kind: LinkConfig", "kind: LinkConfigs"), "not registered"),
        (good.replacen("  ca:\n", "  acceptedCAs: []\n  caa:\n", 1), "unknown keys"),
    ];
    bench.until("maintenance", |talos| talos.machines[&421].api == Api::Maintenance);
    for (text, words) in cases {
        let call = apply(ConfigText(text), ApplyMode::Auto, false);
        match bench.call(421, call) {
            Err(Refusal::Status(Code::InvalidArgument, said)) => {
                assert!(said.contains(words), "{said}");
            }
            other => panic!("{words}: {other:?}"),
        }
    }
    assert!(bench.talos.machines[&421].config().is_none());
    let refusal = bench.call(421, Call::EtcdMembers);
    let text = "member list is only available on control plane nodes";
    assert_eq!(refusal, Err(Refusal::new(Code::Unimplemented, text)));
    let Ok(Reply::Applied { details, .. }) =
        bench.call(421, apply(ConfigText(good), ApplyMode::Auto, true))
    else {
        panic!("a good config is refused");
    };
    let first = details.lines().take(6).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(first, @r"
    Dry run summary:
    Applied configuration without a reboot (skipped in dry-run).
    Config diff:

    --- a
    +++ b
    ");
    assert!(details.contains("\n@@ -0,0 +1,"), "{details}");
    assert!(!details.contains("BEGIN") && details.contains("key: <redacted>"), "{details}");
    assert!(bench.talos.machines[&421].config().is_none(), "a dry run changes nothing");
}

#[test]
fn the_world_survives_its_text_and_hides_its_keys() {
    let (bench, _) = Bench::risen(4, 3, 1);
    let text = serde_json::to_string(&bench.talos).unwrap();
    assert_eq!(serde_json::from_str::<Talos>(&text).unwrap(), bench.talos);
    assert!(!format!("{:?}", bench.talos).contains("PRIVATE KEY"));
}
