//! Down and up as one act: killed anywhere, it goes on where it was.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::context::{Context, Said};

/// Runs `castle WORDS --json` and kills it once the sign was told so many times. Says what was told until then.
fn killed_at(castle: &Context, words: &[&str], sign: &str, times: usize) -> Vec<String> {
    let mut command = castle.command(words);
    let mut process =
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut told = Vec::new();
    let mut seen = 0;
    for line in BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap) {
        seen += usize::from(line.contains(sign));
        told.push(line);
        if seen == times {
            break;
        }
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(seen, times, "{told:?}");
    told
}

/// Which ways were gone, in order.
fn ways(said: &Said) -> Vec<&'static str> {
    let way = |line: &str| {
        let started = line.contains("\"event\":\"run-started\"");
        let up = line.contains("\"direction\":\"up\"");
        started.then_some(if up { "up" } else { "down" })
    };
    said.out.lines().filter_map(way).collect()
}

#[test]
fn a_castle_is_certified_by_going_and_coming_back() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let refused = castle.run(&["rebirth"]).ends(3);
    assert!(refused.err.contains("nobody is there to agree"), "{}", refused.err);
    assert!(!castle.state().join("rebirth.journal").exists(), "nothing was begun");
    let reborn = castle.run(&["rebirth", "--certify", "2", "--yes"]).ends(0);
    assert!(reborn.err.contains("rebirth: cycle 2 of 2, up"), "{}", reborn.err);
    assert!(
        reborn.out.contains("rebirth of castle blue: certified: 2 of 2 cycles without a failure"),
        "{}",
        reborn.out
    );
    for row in ["down ", "up, platform ", "up, gitops ", "up ", "down and up "] {
        assert!(reborn.out.lines().any(|line| line.starts_with(row)), "{row}:\n{}", reborn.out);
    }
    assert_eq!(castle.guests().len(), 5);
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0, "it stands as before");
    let history = castle.run(&["history", "--json"]).ends(0).out;
    assert_eq!(history.lines().count(), 6, "{history}");
}

#[test]
fn killed_on_its_way_down_it_finishes_that_and_rises() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    killed_at(&castle, &["rebirth", "--yes", "--speed", "200"], "\"change\":\"removed\"", 1);
    let up = castle.run(&["up"]).ends(3);
    assert!(up.err.contains("a rebirth of this castle is on its way down"), "{}", up.err);
    assert!(up.err.contains("`castle rebirth` goes on with it"), "{}", up.err);
    let status = castle.run(&["status"]).ends(0);
    assert!(status.out.contains("rebirth: down, not over; `castle rebirth`"), "{}", status.out);
    let other = castle.run(&["rebirth", "--certify", "3", "--yes"]).ends(3);
    assert!(other.err.contains("another rebirth is open"), "{}", other.err);
    let on = castle.run(&["rebirth", "--yes", "--json"]).ends(0);
    assert_eq!(ways(&on), ["down", "up"]);
    let history = castle.run(&["history"]).ends(0).out;
    assert!(history.lines().any(|line| line.ends_with("killed")), "{history}");
    assert_eq!(castle.guests().len(), 5);
    assert!(!castle.run(&["status"]).ends(0).out.contains("rebirth"));
}

#[test]
fn killed_on_its_way_up_nothing_is_razed_again() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let words = ["rebirth", "--certify", "2", "--yes", "--speed", "500"];
    killed_at(&castle, &words, "\"change\":\"created\"", 4);
    let on = castle.run(&["rebirth", "--yes", "--json"]).ends(0);
    assert_eq!(ways(&on), ["up", "down", "up"], "the first cycle goes on, the second is whole");
    assert!(on.out.contains("\"end\":\"certified\""), "{}", on.out.lines().last().unwrap());
    assert_eq!(castle.guests().len(), 5);

    // Killed again, and finished by a plain `up`.
    killed_at(&castle, &["rebirth", "--yes", "--speed", "500"], "\"change\":\"created\"", 4);
    let up = castle.run(&["up"]).ends(0);
    assert!(up.err.contains("this is its way up"), "{}", up.err);
    assert!(!castle.run(&["status"]).ends(0).out.contains("rebirth"), "it is over");
    // Begun once more, and given up by `down`.
    killed_at(&castle, &["rebirth", "--yes", "--speed", "200"], "\"change\":\"removed\"", 1);
    let down = castle.run(&["down", "--yes"]).ends(0);
    assert!(down.err.contains("is given up: the castle stays down"), "{}", down.err);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    assert!(!castle.run(&["status"]).ends(0).out.contains("rebirth"));
}

#[test]
fn one_that_stumbles_is_not_certified_and_can_be_finished() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let fault = "proxmox: answers 403 on POST /qemu";
    let words = ["rebirth", "--certify", "3", "--yes", "--fault", fault];
    let stumbled = castle.run(&words).ends(1);
    assert!(stumbled.err.contains("not certified: cycle 1: up in "), "{}", stumbled.err);
    let on = castle.run(&["rebirth", "--yes"]).ends(1);
    assert!(on.out.contains("not certified, because of cycle 1"), "{}", on.out);
    assert_eq!(castle.guests().len(), 5, "it stands all the same");
}
