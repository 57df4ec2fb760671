//! Diagnoses of castles that do not rise: each from a datacenter that shows it, in the words that a person reads.

use std::fmt::Write as _;

use castle_rehearsal::trouble::TalosTrouble;

use super::faults::pass;
use super::*;

/// All failures of a run, as a person reads them.
pub(super) fn read(report: &Report) -> String {
    let mut text = String::new();
    for (step, failure) in &report.failures {
        let evidence = failure.evidence.clone().unwrap_or_default();
        let hint = failure.hint.clone().unwrap_or_default();
        let (what, why) = (&failure.what, &failure.why);
        writeln!(text, "{step}\n  {what}: {why}\n  {evidence}\n  hint: {hint}").unwrap();
    }
    text
}

/// Identities are random: they are left out of what is compared.
fn without_identities(text: &str) -> String {
    let mut parts = text.split("(identities ");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (identities, rest) = part.split_once(')').unwrap();
        assert_eq!(identities.split(", ").count(), 2, "{text}");
        plain += "(identities …)";
        plain += rest;
    }
    plain
}

#[tokio::test(start_paused = true)]
async fn a_bootstrap_by_somebody_else_splits_the_brain_and_is_told() {
    let mut bench = Bench::new(1, 3, 1);
    let host = bench.host.clone();
    let mischief = async {
        // A config for each machine and our own bootstrap: now somebody helps.
        while host.mutations().get("talos").copied().unwrap_or(0) < 5 {
            pass(Duration::from_millis(100)).await;
        }
        // He tries until the machine takes it, which it does before it has found the first one.
        for _ in 0..300 {
            host.cause(TalosTrouble::Usurped(422));
            pass(Duration::from_millis(100)).await;
        }
    };
    let report = tokio::join!(bench.up(), mischief).0;
    assert_eq!(report.outcome, RunOutcome::Failed);
    assert_eq!(bench.etcds(), 2);
    insta::assert_snapshot!(read(&report), @"
    platform/etcd
      prove that the control planes share one etcd: there are two of them: the brain is split
      cp-01 and cp-02 share no member
      hint: this castle cannot be mended: raze it with `castle down`, then `castle up`
    ");
    let before = bench.mutations("talos");
    let again = bench.up().await;
    assert_eq!(again.failures[&ids::etcd()].why, report.failures[&ids::etcd()].why);
    assert_eq!(
        bench.mutations("talos"),
        before,
        "nothing is tried on a castle that can not be mended"
    );
}

#[tokio::test(start_paused = true)]
async fn ghosts_of_an_earlier_life_are_told_while_the_castle_rises_in_spite_of_them() {
    let mut bench = Bench::new(2, 3, 1);
    for number in 1..=3 {
        let earlier = [192, 168, 1, 220 + number].into();
        bench.host.cause(TalosTrouble::Ghost(420 + u32::from(number), earlier));
    }
    assert_done(&bench.up().await);
    assert_eq!(bench.etcds(), 1);
    // Which of them joins last is left to chance.
    let ghosts = bench.notices.iter().filter(|text| text.contains("ghost"));
    let told: Vec<String> = ghosts.map(|text| without_identities(text)).collect();
    insta::assert_snapshot!(told.join("\n"), @"more than one machine claims, by name or address, to be cp-01 (identities …), cp-02 (identities …), cp-03 (identities …): one of each is a ghost; the discovery service forgets a machine 30 minutes after it was last seen: wait that long, or raze the castle and raise it again, because a new life has a discovery of its own; if both machines run, switch one off");
}

#[tokio::test(start_paused = true)]
async fn maintenance_mode_for_ever_is_told_with_the_worker_that_waits_for_it() {
    let mut bench = Bench::new(3, 1, 1);
    bench.host.cause(TalosTrouble::Unwritable(421, true));
    let report = bench.up().await;
    assert_eq!(report.outcome, RunOutcome::Failed);
    assert_eq!(bench.etcds(), 0);
    insta::assert_snapshot!(read(&report), @"
    platform/config/cp-01
      wait for cp-01 to answer with its new identity: not so after 2:59
      still in maintenance mode; still in maintenance mode: cp-01
      hint: the config was taken, but not written: look at the console of the machine for its system disk (too small, failing, or without a STATE partition)
    platform/config/worker-01
      wait for worker-01 to answer with its new identity: not so after 2:59
      machine 192.168.1.214: cannot reach its Talos API: cannot connect to 192.168.1.214:50000: Connection refused; still in maintenance mode: cp-01; worker-01 cannot answer yet: a worker's certificate comes from a control plane, and none can give one yet
      hint: the config was taken, but not written: look at the console of the machine for its system disk (too small, failing, or without a STATE partition)
    ");
    // With another disk the same command goes on.
    bench.host.cause(TalosTrouble::Unwritable(421, false));
    assert_done(&bench.up().await);
    assert_eq!(bench.etcds(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_waits_for_a_certificate_is_not_taken_for_dead() {
    let mut bench = Bench::new(4, 1, 1);
    bench.host.cause(TalosTrouble::Dead(421));
    let report = bench.up().await;
    assert_eq!(report.outcome, RunOutcome::Failed);
    let text = read(&report);
    let (plane, worker) = text.split_once("platform/config/worker-01").unwrap();
    assert!(plane.contains("nothing answers at the address of cp-01"), "{plane}");
    insta::assert_snapshot!(worker, @"
      wait for worker-01 to answer with its new identity: not so after 2:59
      machine 192.168.1.214: cannot reach its Talos API: cannot connect to 192.168.1.214:50000: Connection refused; nothing answers at the address of cp-01; worker-01 cannot answer yet: a worker's certificate comes from a control plane, and none can give one yet
      hint: look at the console of the machine: it does not boot, it has another address (a DHCP server, or cloud-init that was not read), it is in another network (bridge, VLAN), or it has its config and waits for the right time before it listens (`ntp`)
    ");
    bench.host.cause(TalosTrouble::Revived(421));
    assert_done(&bench.up().await);
    assert_eq!(bench.etcds(), 1);
}
