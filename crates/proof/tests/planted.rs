//! Every planted bug is found at its known place, and nothing is found there without it.

#![cfg(debug_assertions)]

use std::collections::BTreeSet;

use castle_model::Bug;
use castle_proof::planted::{all, play};

#[test]
fn every_planted_bug_is_found() {
    let planted = all();
    let bugs: BTreeSet<Bug> = planted.iter().map(|planted| planted.bug).collect();
    assert_eq!(bugs, BTreeSet::from(Bug::ALL));
    for planted in &planted {
        let found = play(planted);
        let laws: BTreeSet<&str> = found.iter().map(|violation| violation.law).collect();
        assert!(laws.contains(planted.law), "{:?}: {found:?}", planted.bug);
    }
}

#[test]
fn nothing_is_found_where_no_bug_is_planted() {
    let planted = all();
    let mut seen = BTreeSet::new();
    for trial in planted.iter().map(|planted| planted.trial).filter(|t| seen.insert(t.name)) {
        assert_eq!(trial.play(), Vec::new(), "{}", trial.name);
    }
}
