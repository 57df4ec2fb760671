//! The part of the proof that every submission goes through: an eighth of the crash matrix, and seeds, each lived twice.
//!
//! `CASTLE_EIGHTH` (0 to 7) says which eighth; `cargo xtask test` takes it from the commit, plain `cargo test` the first.
//! All of it: `cargo xtask soak`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use castle_proof::asked::missing;
use castle_proof::matrix::reference;
use castle_proof::point::Point;
use castle_proof::{Act, Almanac, End, Setting, Shape, live, live_watched, matrix};

/// The seed of the matrix' world.
const SEED: u64 = 8;
/// How many parts the matrix has.
const PARTS: usize = 8;
/// How many seeds are lived.
const SEEDS: u64 = 200;
/// Of how many lives in a hundred the whole world is compared at the end, at least.
const COMPARED: u64 = 75;
/// How many lives in a hundred may need more than one start of the calm, at most.
const LATER: u64 = 10;
/// On how many cores.
const THREADS: usize = 2;

#[expect(clippy::disallowed_methods, reason = "the workshop names the part by this variable alone")]
fn eighth() -> usize {
    let asked = std::env::var("CASTLE_EIGHTH").ok();
    asked.map_or(0, |text| text.parse().expect("CASTLE_EIGHTH is a number")) % PARTS
}

#[expect(clippy::print_stdout, reason = "which part was tried, for whoever reads the log")]
fn an_eighth_of(act: Act) {
    let setting = Setting::of(Shape::WHOLE, SEED);
    let reference = reference(&setting, act).expect("the act succeeds when nobody kills it");
    let part = eighth();
    let chosen = move |p: &Point| act.is_told_by(p) && p.state % PARTS == part;
    let found = matrix(&setting, &reference, chosen, THREADS, |_| ());
    let tried: usize = found.tried.values().sum();
    let (word, points, states) = (act.word(), found.points, found.states);
    println!("{word}: {points} points, {states} states; {tried} tried (part {part} of {PARTS})");
    let least = if act == Act::Forgotten { 1 } else { found.states / PARTS };
    assert!(tried >= least, "{tried} of {}", found.states);
    assert!(
        found.broken.is_empty(),
        "{:#?}\nagain: cargo xtask soak --point {} {}",
        found.broken,
        act.word(),
        found.broken[0].point.number
    );
}

#[test]
fn an_up_that_is_killed_anywhere_comes_to_the_same_castle() {
    an_eighth_of(Act::Up);
}

#[test]
fn an_up_that_is_killed_anywhere_and_forgotten_comes_to_the_same_castle() {
    an_eighth_of(Act::Forgotten);
}

#[test]
fn a_down_that_is_killed_anywhere_leaves_nothing() {
    an_eighth_of(Act::Down);
}

#[test]
fn a_wipe_that_is_killed_anywhere_leaves_nothing_and_no_state() {
    an_eighth_of(Act::Wipe);
}

#[test]
fn a_rebirth_that_is_killed_anywhere_comes_to_the_same_castle() {
    an_eighth_of(Act::Rebirth);
}

#[test]
fn seeds_hold_and_are_the_same_twice() {
    let almanac = Almanac::default();
    let next = AtomicU64::new(1);
    let (kinds, broken) = (Mutex::new(BTreeSet::new()), Mutex::new(Vec::new()));
    let (ends, starts) = (Mutex::new(BTreeMap::new()), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > SEEDS {
                        return;
                    }
                    // To be watched changes nothing of a life.
                    let (one, other) = (live(seed, &almanac), live_watched(seed, &almanac));
                    assert_eq!(one.trace, other.trace, "seed {seed} is not the same twice");
                    kinds.lock().unwrap().extend(one.kinds.iter().cloned());
                    *ends.lock().unwrap().entry(one.end).or_insert(0_u64) += 1;
                    if one.converged {
                        *starts.lock().unwrap().entry(one.starts).or_insert(0_u64) += 1;
                    }
                    let lives = [one, other].into_iter();
                    let found = lives.filter(|life| !life.violations.is_empty());
                    broken.lock().unwrap().extend(found);
                }
            });
        }
    });
    let broken = broken.into_inner().unwrap();
    assert!(broken.is_empty(), "{:#?}\nagain: cargo xtask soak --seed {}", broken, broken[0].seed);
    let kinds = kinds.into_inner().unwrap();
    assert!(kinds.len() >= 24, "only {} kinds of faults struck: {kinds:#?}", kinds.len());
    tell_missing(&kinds);
    judged(&ends.into_inner().unwrap(), &starts.into_inner().unwrap());
}

/// Which of the kinds that were asked for have not struck in these seeds.
#[expect(clippy::print_stdout, reason = "what was not met, for whoever reads the log")]
fn tell_missing(kinds: &BTreeSet<String>) {
    for rule in missing(kinds) {
        println!("never struck, of those that were asked for: {rule}");
    }
}

/// What the lives were held against, so that no law is kept by excusing all that could break it.
#[expect(
    clippy::print_stdout,
    reason = "how strict the lives were judged, for whoever reads the log"
)]
fn judged(ends: &BTreeMap<End, u64>, starts: &BTreeMap<usize, u64>) {
    for (end, lives) in ends {
        println!("{lives} of {SEEDS} lives: {}", end.words());
    }
    for (start, lives) in starts {
        println!("{lives} converged at start {start} of the calm");
    }
    let compared = ends.iter().filter(|(end, _)| end.is_compared());
    let compared: u64 = compared.map(|(_, lives)| lives).sum();
    assert!(compared * 100 >= SEEDS * COMPARED, "only {compared} worlds were compared: {ends:?}");
    let later = starts.iter().filter(|(start, _)| **start > 1).map(|(_, lives)| lives);
    let later: u64 = later.sum();
    assert!(later * 100 <= SEEDS * LATER, "{later} lives needed more than one start: {starts:?}");
}
