//! The runner on a disk that fails: it stops before it acts, says so, and the next run goes on.

use castle_journal::DiskFault;

use super::*;

fn bench() -> Bench {
    Bench::new(&[("a", &[], Script::Fine), ("b", &["a"], Script::Fine), ("c", &[], Script::Fine)])
}

/// One direction on a disk whose call `at` fails, then the same again on a sound one.
async fn stumbles(direction: Direction, at: usize, fault: DiskFault, lasting: bool, power: bool) {
    let case = format!("{direction:?}, call {at}, {fault:?}, lasting {lasting}, power {power}");
    let mut bench = bench();
    if direction == Direction::Down {
        bench.run(Direction::Up).await.unwrap();
    }
    let before = bench.disk.calls();
    bench.disk.fail(before + at, fault, lasting);
    // That an act never runs without its durable intent, `act` itself asserts.
    match bench.run(direction).await {
        Ok(report) => {
            assert_eq!(bench.disk.struck(), 0, "{case}: nobody was told");
            assert_eq!(report.outcome, RunOutcome::Done, "{case}");
        }
        Err(RunError::Journal(error)) => {
            assert!(bench.disk.struck() > 0, "{case}: {error}");
            let told = error.failure("record");
            assert!(told.why.contains(".journal") && told.hint.is_some(), "{case}: {told}");
        }
    }
    bench.disk.heal();
    if power {
        bench.disk.lose_power();
    }
    assert_eq!(bench.run(direction).await.unwrap().outcome, RunOutcome::Done, "{case}");
    for name in ["a", "b", "c"] {
        assert_eq!(bench.acts(name), 1, "{case}: {name}");
    }
    let left = bench.shared.lock().unwrap().made.len();
    assert_eq!(left, if direction == Direction::Up { 3 } else { 0 }, "{case}");
}

#[tokio::test(start_paused = true)]
async fn wherever_the_disk_fails_no_step_acts_unannounced_and_the_next_run_goes_on() {
    let faults =
        [DiskFault::Io, DiskFault::Short, DiskFault::Full, DiskFault::ReadOnly, DiskFault::Late];
    for direction in [Direction::Up, Direction::Down] {
        let mut sound = bench();
        sound.run(Direction::Up).await.unwrap();
        let mut calls = sound.disk.calls();
        if direction == Direction::Down {
            sound.run(Direction::Down).await.unwrap();
            calls = sound.disk.calls() - calls;
        }
        assert!(calls > 12, "{calls}");
        for at in 0..calls {
            for fault in faults {
                for (lasting, power) in [(false, false), (true, false), (true, true)] {
                    stumbles(direction, at, fault, lasting, power).await;
                }
            }
        }
    }
}
