//! The laws of judging times, and what a person reads of them.

use castle_model::event::RunOutcome;
use castle_model::history::HISTORY;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{PastRun, RunId};

use super::*;

fn run(number: u64, direction: Direction, platform: u64, gitops: u64) -> PastRun {
    PastRun {
        v: HISTORY,
        run: RunId::new(format!("r{number:04}-20260202")),
        castle: "blue".parse().unwrap(),
        direction,
        rehearsal: true,
        shape: "5ca1ab1e".into(),
        work: [("create".to_owned(), 5), ("leave".to_owned(), 1)].into(),
        started: Moment(1_770_033_600_000 + number * 600_000),
        outcome: RunOutcome::Done,
        exit: 0,
        took_ms: platform + gitops,
        changed: 5,
        layers: [("platform".parse().unwrap(), platform), ("gitops".parse().unwrap(), gitops)]
            .into(),
        steps: [].into(),
        version: "0.1.0".into(),
    }
}

fn layers() -> [LayerName; 2] {
    ["platform", "gitops"].map(|layer| layer.parse().unwrap())
}

#[test]
fn a_time_is_slow_only_beyond_a_tenth_and_beyond_the_usual_noise() {
    let calm = [100, 100, 100, 100];
    assert_eq!(regression(110, &calm), None);
    assert_eq!(regression(111, &calm), Some(Regression { median: 100, limit: 110 }));
    // Deviations 0, 20, 20, 40: three times their median is more than a tenth.
    let noisy = [100, 120, 80, 140];
    assert_eq!(regression(160, &noisy), None);
    assert!(regression(190, &noisy).is_some());
    assert_eq!(regression(900, &[100, 100]), None, "two runs are no rule");
    let mut long = vec![1_000_000; 50];
    long.extend([100; COMPARED]);
    assert!(regression(150, &long).is_some(), "only the last runs count");
    assert_eq!(regression(u64::MAX, &[u64::MAX; 3]), None, "nothing overflows");
}

#[test]
fn what_is_expected_are_the_medians_of_the_last_runs_that_did_the_same() {
    let image = || castle_model::StepId::new("platform", "image");
    let timed = |number, platform, took: u64| {
        let mut run = run(number, Direction::Up, platform, 10_000);
        run.steps.insert(image(), took);
        run
    };
    let this = run(99, Direction::Up, 0, 0);
    assert_eq!(expected(&this, &[]), Expected::default());
    let mut failed = timed(4, 900_000, 900_000);
    failed.outcome = RunOutcome::Failed;
    let mut other = timed(5, 900_000, 900_000);
    other.work.clear();
    let down = run(6, Direction::Down, 900_000, 0);
    let mut runs: Vec<PastRun> = (0..30).map(|n| timed(100 + n, 1_000_000, 1)).collect();
    let last = (0..COMPARED as u64).map(|n| timed(200 + n, 80_000 + n, 11_000 + 2 * n));
    runs.extend(last.chain([failed, other, down]));
    let found = expected(&this, &runs);
    assert_eq!((found.runs, found.whole), (COMPARED, Some(90_009)));
    assert_eq!(found.layers[&"platform".parse().unwrap()], 80_009);
    assert_eq!(found.steps[&image()], 11_019);
}

#[test]
fn a_history_is_a_table_of_runs_and_of_layers() {
    let mut runs: Vec<PastRun> =
        (1..=4).map(|n| run(2 * n - 1, Direction::Up, 80_000 + n * 500, 12_600)).collect();
    let mut failed = run(8, Direction::Up, 0, 0);
    failed.outcome = RunOutcome::Failed;
    failed.exit = 1;
    failed.layers.clear();
    runs.push(failed.clone());
    failed.outcome = RunOutcome::Interrupted;
    failed.exit = 137;
    runs.push(failed);
    runs.push(run(9, Direction::Up, 99_000, 11_000));
    let shown = text(&"blue".parse().unwrap(), true, &layers(), &runs, Style::default());
    insta::assert_snapshot!(shown, @"
    castle blue (a rehearsal): 7 runs

    run             began (UTC)       what   took  changed
    r0001-20260202  2026-02-02 12:10  up     1:33        5  done
    r0003-20260202  2026-02-02 12:30  up     1:33        5  done
    r0005-20260202  2026-02-02 12:50  up     1:34        5  done
    r0007-20260202  2026-02-02 13:10  up     1:34        5  done
    r0008-20260202  2026-02-02 13:20  up    0.0 s        5  failed
    r0008-20260202  2026-02-02 13:20  up    0.0 s        5  killed
    r0009-20260202  2026-02-02 13:30  up     1:50        5  done

    up, whole (create 5, leave 1): 5 runs
    layer       last     min  median     max  record
    platform    1:39    1:20    1:21    1:39    1:20  slower: +21 %
    gitops    11.0 s  11.0 s  12.6 s  12.6 s  11.0 s  record
    all         1:50    1:33    1:34    1:50    1:33  slower: +17 %
    regression: platform took 1:39 in r0009-20260202; up to 1:29 would have been
                usual (median 1:21 of 4 runs like it)
    regression: all took 1:50 in r0009-20260202; up to 1:43 would have been usual
                (median 1:33 of 4 runs like it)
    ");
}

#[test]
fn a_narrow_terminal_shows_whole_words() {
    let mut runs = vec![run(1, Direction::Up, 80_000, 12_600), run(2, Direction::Up, 0, 0)];
    (runs[1].outcome, runs[1].exit) = (RunOutcome::Interrupted, 130);
    let mut left = run(3, Direction::Down, 80_000, 12_600);
    left.exit = 4;
    runs.push(left);
    let at = |width| {
        let style = Style { width, ..Style::default() };
        text(&"blue".parse().unwrap(), true, &layers(), &runs, style)
    };
    insta::assert_snapshot!(at(60), @"
    castle blue (a rehearsal): 3 runs

    run             began (UTC)       what   took  changed
    r0001-20260202  2026-02-02 12:10  up     1:32        5  done
    r0002-20260202  2026-02-02 12:20  up    0.0 s        5
                                                     interrupted
    r0003-20260202  2026-02-02 12:30  down   1:32        5
                                                       something
                                                       left

    up, whole (create 5, leave 1): 1 run
    layer       last     min  median     max  record
    platform    1:20    1:20    1:20    1:20    1:20
    gitops    12.6 s  12.6 s  12.6 s  12.6 s  12.6 s
    all         1:32    1:32    1:32    1:32    1:32
    ");
    insta::assert_snapshot!(at(80).lines().take(6).collect::<Vec<_>>().join("\n"), @"
    castle blue (a rehearsal): 3 runs

    run             began (UTC)       what   took  changed
    r0001-20260202  2026-02-02 12:10  up     1:32        5  done
    r0002-20260202  2026-02-02 12:20  up    0.0 s        5  interrupted
    r0003-20260202  2026-02-02 12:30  down   1:32        5  something left
    ");
}

#[test]
fn a_rebirth_is_held_against_the_runs_before_it() {
    let mut history: Vec<PastRun> =
        (1..=3).map(|n| run(n, Direction::Up, 80_000, 12_600)).collect();
    for n in 0..3 {
        history.push(run(10 + 2 * n, Direction::Down, 9_000 + n * 100, 0));
        history.push(run(11 + 2 * n, Direction::Up, 81_000, 15_000 + n * 1000));
    }
    let (cycles_of, layers) = (&history[3..], layers());
    let pairs = cycles_of.chunks(2).map(|pair| (&pair[0], &pair[1])).collect();
    let reborn = Reborn { cycles: pairs, history: &history, layers: &layers };
    insta::assert_snapshot!(cycles(&reborn, Style::default()), @"
    layer            min  median     max  record
    down           9.0 s   9.1 s   9.2 s   9.0 s
    up, platform    1:21    1:21    1:21    1:20
    up, gitops    15.0 s  16.0 s  17.0 s  12.6 s  slower: +26 %
    up              1:36    1:37    1:38    1:32
    down and up     1:45    1:46    1:47    1:45
    regression: up, gitops took 16.0 s; up to 13.8 s would have been usual (median
                12.6 s of 3 runs like it)
    ");
}

#[test]
fn a_cycle_that_did_something_else_is_not_in_the_table() {
    let mut history = Vec::new();
    for n in 0..3 {
        history.push(run(10 + 2 * n, Direction::Down, 9_000 + n * 100, 0));
        history.push(run(11 + 2 * n, Direction::Up, 81_000, 15_000 + n * 1000));
    }
    // The castle did not stand: nothing was razed in no time.
    history[0].took_ms = 0;
    history[0].work = [("leave".to_owned(), 7)].into();
    let layers = layers();
    let pairs: Vec<_> = history.chunks(2).map(|pair| (&pair[0], &pair[1])).collect();
    assert_eq!(alike(&pairs).len(), 2);
    let reborn = Reborn { cycles: pairs, history: &history, layers: &layers };
    insta::assert_snapshot!(cycles(&reborn, Style::default()), @"
    layer            min  median     max  record
    down           9.1 s   9.1 s   9.2 s   9.1 s
    up, platform    1:21    1:21    1:21    1:21
    up, gitops    16.0 s  16.5 s  17.0 s  16.0 s
    up              1:37    1:37    1:38    1:37
    down and up     1:46    1:46    1:47    1:46
    ");
    let rows = cycle_rows(&reborn);
    assert_eq!((rows[0].name.as_str(), rows[0].min_ms), ("down", 9_100));
}

#[test]
fn a_run_without_cycles_says_nothing() {
    let reborn = Reborn { cycles: Vec::new(), history: &[], layers: &[] };
    assert_eq!(cycles(&reborn, Style::default()), "");
}
