//! What goes wrong with machines: each ends in one castle, or in a failure that names it and the cure, in time.

use castle_model::spec::{RegistrySpec, SecretRef};
use castle_rehearsal::trouble::TalosTrouble;
use tokio::time::Instant;

use super::*;

/// Lets virtual time pass.
pub(super) async fn pass(time: Duration) {
    timeout(time, std::future::pending::<()>()).await.ok();
}

/// The one failure of a run, as a person reads it: step, why, what was seen, what to do.
pub(super) fn told(report: &Report) -> (String, String) {
    assert_eq!(report.outcome, RunOutcome::Failed);
    assert_eq!(report.failures.len(), 1, "{:#?}", report.failures);
    let (step, failure) = report.failures.first_key_value().unwrap();
    let hint = failure.hint.clone().unwrap_or_default();
    let evidence = failure.evidence.clone().unwrap_or_default();
    (step.to_string(), format!("{}: {}; {evidence}\nhint: {hint}", failure.what, failure.why))
}

impl Bench {
    /// Raises the castle and lets something happen on the way.
    pub(super) async fn up_while(&mut self, after: Duration, trouble: TalosTrouble) -> Report {
        let host = self.host.clone();
        let mischief = async {
            pass(after).await;
            host.cause(trouble);
        };
        tokio::join!(self.up(), mischief).0
    }
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_whose_answer_is_lost_is_not_doubled() {
    let mut bench = Bench::new(3, 3, 1);
    bench.host.cause(TalosTrouble::BootstrapReplyLost(421));
    assert_done(&bench.up().await);
    assert_eq!(bench.etcds(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_restarts_on_the_way_does_not_stop_the_birth() {
    for number in 0..8 {
        let mut bench = Bench::new(number, 3, 1);
        let moment = Duration::from_millis(24_000 + number * 5_300);
        // The first control plane, then another: before its config, around the bootstrap, while others join.
        let vmid = 421 + u32::try_from(number % 2).unwrap();
        let report = bench.up_while(moment, TalosTrouble::Reboots(vmid)).await;
        assert_eq!(
            report.outcome,
            RunOutcome::Done,
            "{vmid} at {moment:?}: {:#?}",
            report.failures
        );
        assert_eq!(bench.etcds(), 1, "{vmid} at {moment:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_control_plane_that_is_dead_from_the_start_is_named_and_nothing_is_bootstrapped() {
    let mut bench = Bench::new(4, 3, 1);
    bench.host.cause(TalosTrouble::Dead(423));
    let began = Instant::now();
    let (step, words) = told(&bench.up().await);
    assert!(began.elapsed() < Duration::from_mins(8), "{:?}", began.elapsed());
    assert_eq!(step, "platform/boot/cp-03");
    assert!(words.contains("nothing answers at the address of cp-03"), "{words}");
    assert!(words.contains("hint: look at the console of the machine"), "{words}");
    assert_eq!(bench.etcds(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_machine_at_a_wrong_address_gets_nothing_and_is_named() {
    let mut bench = Bench::new(5, 1, 1);
    bench.host.cause(TalosTrouble::WrongAddress(431, [192, 168, 1, 99].into()));
    let (step, words) = told(&bench.up().await);
    assert_eq!(step, "platform/boot/worker-01");
    assert!(words.contains("it has another address (a DHCP server"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_an_earlier_life_is_never_begun_over() {
    for vmid in [421, 422] {
        let mut bench = Bench::new(7, 3, 1);
        bench.host.cause(TalosTrouble::StaleEtcd(vmid));
        let (step, words) = told(&bench.up().await);
        assert_eq!(step, "platform/bootstrap", "{words}");
        let named = format!("etcd does not start on cp-0{}", vmid - 420);
        assert!(words.contains(&named), "{words}");
        assert!(words.contains("hint: a machine must begin with an empty disk"), "{words}");
        assert_eq!(bench.etcds(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn limited_pulls_are_told_by_the_machine_that_suffers_them() {
    let mut bench = Bench::new(8, 1, 1);
    bench.host.cause(TalosTrouble::PullsLimited(431));
    let (step, words) = told(&bench.up().await);
    assert_eq!(step, "platform/nodes");
    assert!(words.contains("kubelet on worker-01 is"), "{words}");
    assert!(words.contains("hint: give the castle file a mirror"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_shared_address_that_takes_connections_and_says_nothing_is_told_apart() {
    let mut bench = Bench::new(9, 1, 1);
    bench.host.cause(TalosTrouble::MuteVip(true));
    let (step, words) = told(&bench.up().await);
    assert_eq!(step, "platform/vip");
    assert!(
        words.contains("takes connections, but the castle's API server does not answer"),
        "{words}"
    );
    bench.host.cause(TalosTrouble::MuteVip(false));
    assert_done(&bench.up().await);
}

#[tokio::test(start_paused = true)]
async fn a_new_first_control_plane_among_restarting_others_joins_and_begins_nothing() {
    for seed in 0..4 {
        let mut bench = Bench::new(seed, 3, 1);
        assert_done(&bench.up().await);
        // The state is lost, the first control plane's VM is gone with its disk, the others just start again.
        bench.disk = MemoryDisk::new();
        bench.destroy(421).await;
        bench.host.cause(TalosTrouble::Reboots(422));
        bench.host.cause(TalosTrouble::Reboots(423));
        pass(Duration::from_secs(seed * 4)).await;
        assert_done(&bench.up().await);
        assert_eq!(bench.etcds(), 1, "{seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_castle_was_born_with_is_not_changed_in_place() {
    let mut bench = Bench::new(2, 1, 1);
    assert_done(&bench.up().await);
    let before = bench.mutations("talos");
    let mut spec = Spec::clone(&bench.spec);
    spec.machine.cert_sans.push("castle.lan".to_owned());
    bench.spec = Arc::new(spec.clone());
    let report = bench.up().await;
    assert_eq!(report.outcome, RunOutcome::Failed);
    let failure = &report.failures[&ids::config(&spec.nodes[0])];
    assert_eq!(failure.class, Class::Conflict);
    assert!(failure.why.contains("needs a rebirth"), "{failure:?}");
    assert_eq!(bench.mutations("talos"), before);
}

#[tokio::test(start_paused = true)]
async fn other_changes_are_sent_and_versions_are_only_told() {
    let mut bench = Bench::new(2, 1, 1);
    assert_done(&bench.up().await);
    let before = bench.mutations("talos");
    let mut spec = Spec::clone(&bench.spec);
    spec.network.nameservers.push([9, 9, 9, 9].into());
    bench.spec = Arc::new(spec.clone());
    assert_done(&bench.up().await);
    assert_eq!(bench.mutations("talos"), before + 2, "one config each");
    assert_done(&bench.up().await);
    assert_eq!(bench.mutations("talos"), before + 2, "once");
    spec.kubernetes.patch += 1;
    bench.spec = Arc::new(spec);
    assert_done(&bench.up().await);
    assert_eq!(bench.mutations("talos"), before + 2, "no upgrade by the way");
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_was_changed_reaches_the_machines() {
    let mut bench = Bench::new(2, 1, 1);
    let mut spec = Spec::clone(&bench.spec);
    spec.machine.registries.push(RegistrySpec {
        host: "docker.io".to_owned(),
        mirrors: Vec::new(),
        skip_fallback: false,
        ca: None,
        username: Some(SecretRef("REGISTRY_USER".to_owned())),
        password: Some(SecretRef("REGISTRY_PASSWORD".to_owned())),
    });
    bench.spec = Arc::new(spec);
    for (key, value) in [("REGISTRY_USER", "castle"), ("REGISTRY_PASSWORD", "old")] {
        bench.values.insert(key.to_owned(), Secret::new(value));
    }
    assert_done(&bench.up().await);
    let before = bench.mutations("talos");
    assert_done(&bench.up().await);
    assert_eq!(bench.mutations("talos"), before);
    bench.values.insert("REGISTRY_PASSWORD".to_owned(), Secret::new("new"));
    assert_done(&bench.up().await);
    assert_eq!(bench.mutations("talos"), before + 2, "one config each");
}

#[tokio::test(start_paused = true)]
async fn control_planes_that_were_all_switched_off_and_on_are_waited_for() {
    let (mut found_down, mut seconds) = (0, 10);
    while seconds < 60 {
        let mut bench = Bench::new(3, 3, 1);
        assert_done(&bench.up().await);
        let before = bench.mutations("talos");
        for vmid in 421..=423 {
            bench.host.cause(TalosTrouble::Reboots(vmid));
        }
        pass(Duration::from_secs(seconds)).await;
        let began = Instant::now();
        let report = bench.up().await;
        assert_eq!(report.outcome, RunOutcome::Done, "{seconds} s: {:#?}", report.failures);
        found_down += u32::from(began.elapsed() > Duration::from_secs(1));
        assert_eq!(bench.mutations("talos"), before, "nothing was begun anew");
        assert_eq!(bench.etcds(), 1);
        seconds += 4;
    }
    assert!(found_down >= 3, "{found_down}");
}
