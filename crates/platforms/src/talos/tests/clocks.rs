//! Clocks that are wrong: a machine's that finds no time server, a machine's that is off, and castle's own.

use castle_model::time::Moment;
use castle_rehearsal::trouble::TalosTrouble;
use castle_wire::Clock;

use super::diagnoses::read;
use super::faults::{pass, told};
use super::*;

const HOUR: i64 = 3600;

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_not_in_sync_is_waited_for_and_told() {
    let mut bench = Bench::new(6, 1, 1);
    bench.host.cause(TalosTrouble::ClockAstray(421, true));
    let report = bench.up().await;
    assert_eq!(report.outcome, RunOutcome::Failed);
    insta::assert_snapshot!(read(&report), @"
    platform/config/cp-01
      wait for cp-01 to answer with its new identity: not so after 2:59
      its clock is not in sync with its time servers (time.cloudflare.com) yet; the clock is not in sync on cp-01, and Talos starts nothing before it is
      hint: the machines cannot reach their time servers: check `ntp`, the gateway, the name servers and UDP port 123
    platform/config/worker-01
      wait for worker-01 to answer with its new identity: not so after 2:59
      machine 192.168.1.214: cannot reach its Talos API: cannot connect to 192.168.1.214:50000: Connection refused; the clock is not in sync on cp-01, and Talos starts nothing before it is; worker-01 cannot answer yet: a worker's certificate comes from a control plane, and none can give one yet
      hint: the machines cannot reach their time servers: check `ntp`, the gateway, the name servers and UDP port 123
    ");
    assert_eq!(bench.etcds(), 0);
    // The same command meets the same, and says so again.
    let again = bench.up().await;
    assert!(again.failures.contains_key(&ids::config(&bench.spec.nodes[0])), "{}", read(&again));
    assert!(read(&again).contains("its clock is not in sync with its time servers (time.cloud"));
    assert!(read(&again).contains("hint: the machines cannot reach their time servers"));
    // Other time servers reach a machine that waits for them.
    let before = bench.mutations("talos");
    let mut spec = Spec::clone(&bench.spec);
    spec.network.ntp = vec!["192.168.1.1".to_owned()];
    bench.spec = Arc::new(spec);
    assert!(read(&bench.up().await).contains("its time servers (192.168.1.1) yet"));
    assert_eq!(bench.mutations("talos"), before + 1);
    // Set right, it goes on.
    bench.host.cause(TalosTrouble::ClockAstray(421, false));
    assert_done(&bench.up().await);
    assert_eq!(bench.etcds(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_finds_the_time_while_castle_waits_costs_nothing_else() {
    for trouble in [TalosTrouble::ClockAstray(421, true), TalosTrouble::ClockOff(421, -3 * HOUR)] {
        let mut bench = Bench::new(6, 1, 1);
        bench.host.cause(trouble);
        let mended = TalosTrouble::ClockAstray(421, false);
        let report = bench.up_while(Duration::from_mins(2), mended).await;
        assert_done(&report);
        assert_eq!((bench.etcds(), bench.mutations("talos")), (1, 3));
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_clock_is_off_is_not_taken_for_somebody_else() {
    // Ahead of ours its certificate has not begun; behind, it does not take ours; far behind, its own is over.
    for (off, seen) in [
        (3 * HOUR, "its certificate is not valid before"),
        (-3 * HOUR, "takes our certificate, which is new, for not valid"),
        (-48 * HOUR, "its certificate was valid until"),
    ] {
        let mut bench = Bench::new(5, 1, 0);
        bench.host.cause(TalosTrouble::ClockOff(421, off));
        let (step, words) = told(&bench.up().await);
        assert_eq!(step, "platform/config/cp-01", "{words}");
        assert!(words.contains(seen), "{words}");
        assert!(words.contains("the clock of cp-01 and that of this computer differ"), "{words}");
        assert!(words.contains("hint: compare this computer's clock"), "{words}");
        if off > 0 {
            // A second run looks at a machine that has its config already.
            let again = bench.up().await;
            assert!(read(&again).contains(seen), "{}", read(&again));
            assert!(again.failures.values().all(Failure::is_transient), "{}", read(&again));
        }
        bench.host.cause(TalosTrouble::ClockAstray(421, false));
        assert_done(&bench.up().await);
        assert_eq!(bench.etcds(), 1);
    }
}

/// A clock that is ahead of the world's.
pub(super) struct Ahead(pub(super) Arc<dyn Clock>, pub(super) Duration);

impl Clock for Ahead {
    fn now(&self) -> Moment {
        Moment(self.0.now().0 + u64::try_from(self.1.as_millis()).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn castles_own_wrong_clock_is_named() {
    let mut bench = Bench::new(5, 1, 0);
    assert_done(&bench.up().await);
    bench.ahead = Duration::from_hours(5);
    let report = bench.up().await;
    assert_eq!(report.outcome, RunOutcome::Failed);
    insta::assert_snapshot!(read(&report), @"
    platform/boot/cp-01
      wait for cp-01 to answer at 192.168.1.211: not so after 3:59
      machine 192.168.1.211 takes our certificate, which is new, for not valid: its clock is behind ours, or ours ahead of it; the clock of cp-01 and that of this computer differ
      hint: compare this computer's clock (`date -u`) with the right time; if it is right, the machine cannot reach its time servers: check `ntp`, the gateway, the name servers and UDP port 123
    ");
    assert_eq!(bench.mutations("talos"), 2, "nothing was sent again");
    bench.ahead = Duration::ZERO;
    pass(Duration::from_secs(1)).await;
    assert_done(&bench.up().await);
}
