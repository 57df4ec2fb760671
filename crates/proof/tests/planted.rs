//! Every planted bug is found at its known place, and nothing is found there without it.

#![cfg(debug_assertions)]

use std::collections::BTreeSet;

use castle_model::Bug;
use castle_proof::Almanac;
use castle_proof::planted::{all, play, relive};

/// The seeds that `proof.rs` lives without a bug: from 1 to this.
const LIVED: u64 = 200;

#[test]
fn every_bug_has_its_trial() {
    let bugs: BTreeSet<Bug> = all().iter().map(|planted| planted.bug).collect();
    assert_eq!(bugs, BTreeSet::from(Bug::ALL));
    assert!(bugs.len() >= 20);
}

#[test]
fn every_planted_bug_is_found() {
    for planted in all() {
        let found = play(&planted);
        let laws: BTreeSet<&str> = found.iter().map(|violation| violation.law).collect();
        assert!(laws.contains(planted.law), "{:?} is missed: {found:?}", planted.bug);
    }
}

#[test]
fn every_planted_bug_is_found_by_its_seed() {
    let almanac = Almanac::default();
    almanac.prepare().expect("castles rise when no bug is planted");
    let (mut missed, mut unknown) = (Vec::new(), Vec::new());
    for planted in all() {
        let (Some(found), Some((seed, law))) = (relive(&planted, &almanac), planted.seed) else {
            unknown.push(planted.bug);
            continue;
        };
        let laws: BTreeSet<&str> = found.iter().map(|violation| violation.law).collect();
        if !laws.contains(law) {
            missed.push(format!("{:?} by {seed}, where {laws:?} broke", planted.bug));
        }
        // Without the bug it is one of those that `proof.rs` lives, where it breaks nothing.
        assert!((1..=LIVED).contains(&seed), "{:?}: nobody lives {seed}", planted.bug);
    }
    assert!(missed.is_empty(), "{missed:#?}");
    assert_eq!(unknown, [], "no seed is known for these");
}

#[test]
fn nothing_is_found_where_no_bug_is_planted() {
    let mut seen = BTreeSet::new();
    for planted in all().iter().filter(|planted| seen.insert(planted.trial.name)) {
        assert_eq!(planted.trial.play(), Vec::new(), "{}", planted.trial.name);
    }
}
