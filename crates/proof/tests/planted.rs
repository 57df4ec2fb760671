//! Every planted bug is found at its known place, and nothing is found there without it.

#![cfg(debug_assertions)]

use std::collections::BTreeSet;

use castle_model::Bug;
use castle_proof::planted::{all, play};

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
fn nothing_is_found_where_no_bug_is_planted() {
    let mut seen = BTreeSet::new();
    for planted in all().iter().filter(|planted| seen.insert(planted.trial.name)) {
        assert_eq!(planted.trial.play(), Vec::new(), "{}", planted.trial.name);
    }
}
