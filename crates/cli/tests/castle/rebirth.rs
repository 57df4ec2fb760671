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
    let kept = format!("the events of its runs are in {}", castle.state().join("runs").display());
    assert!(reborn.out.contains(&kept), "{}", reborn.out);
}

#[test]
fn the_cycle_of_a_castle_that_did_not_stand_is_not_held_against_the_others() {
    let castle = Context::new();
    let reborn = castle.run(&["rebirth", "--certify", "3", "--yes"]).ends(0);
    let told = "1 of 3 cycles are not in the table: they did not do the same as the last one";
    assert!(reborn.out.contains(told), "{}", reborn.out);
    let down = reborn.out.lines().find(|line| line.starts_with("down ")).unwrap();
    assert!(!down.contains(" 0.0 s"), "{down}");
    // A program has the same table.
    let reborn = castle.run(&["rebirth", "--yes", "--json"]).ends(0);
    let last = reborn.out.lines().last().unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    let row = last["table"].as_array().unwrap().first().unwrap();
    assert!(row["name"] == "down" && row["median_ms"].as_u64().unwrap() > 1000, "{last}");
    // A way down that leaves nothing says so to programs, too.
    assert!(reborn.out.contains("which should be gone") || reborn.out.contains("\"gone\":true"));
}

#[test]
fn a_plan_over_a_rebirth_on_its_way_down_says_what_up_says() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    killed_at(&castle, &["rebirth", "--yes", "--speed", "200"], "\"change\":\"removed\"", 1);
    let plan = castle.run(&["plan"]);
    assert!(plan.err.contains("`castle rebirth` goes on with it"), "{}", plan.err);
    let told = format!("{}{}", plan.out, plan.err);
    assert!(!told.contains("is done all the same"), "{told}");
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
fn a_damaged_journal_of_a_rebirth_stops_nothing() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    killed_at(&castle, &["rebirth", "--yes", "--speed", "200"], "\"change\":\"removed\"", 1);
    let file = castle.state().join("rebirth.journal");
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[30] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let status = castle.run(&["status"]).ends(0);
    let told = "the journal of the last rebirth is damaged: rebirth.journal, entry 1";
    assert!(status.out.replace("\n  ", " ").contains(told), "{}", status.out);
    let on = castle.run(&["rebirth", "--yes"]).ends(0);
    let told = "the journal of the rebirth is damaged: rebirth.journal, entry 1: its check sum does not fit. \
                The file is kept as rebirth.journal.damaged-1. How far it was is not known, so another one begins";
    assert!(on.err.contains(told), "{}", on.err);
    assert_eq!(castle.guests().len(), 5);
    assert!(castle.state().join("rebirth.journal.damaged-1").exists());

    // Damaged on its way up, it goes on with that.
    killed_at(&castle, &["rebirth", "--yes", "--speed", "500"], "\"change\":\"created\"", 4);
    let mut damaged = std::fs::read(&file).unwrap();
    damaged[30] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let on = castle.run(&["rebirth", "--yes", "--json"]).ends(0);
    assert!(on.err.contains("was on its way up, so nothing is razed again"), "{}", on.err);
    assert_eq!(ways(&on), ["up"]);
    assert_eq!(castle.guests().len(), 5);
}

#[test]
fn killed_on_its_way_up_nothing_is_razed_again() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let words = ["rebirth", "--certify", "2", "--yes", "--speed", "500"];
    killed_at(&castle, &words, "\"change\":\"created\"", 4);
    let on = castle.run(&["rebirth", "--yes", "--json"]).ends(1);
    assert_eq!(ways(&on), ["up"], "the cycle is finished, and no other begun");
    let last = on.out.lines().last().unwrap();
    let why = "cycle 1 was interrupted and gone on with by hand";
    assert!(last.contains("\"end\":\"not-certified\"") && last.contains(why), "{last}");
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
fn who_takes_the_machines_alone_gives_a_rebirth_up() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    killed_at(&castle, &["rebirth", "--yes", "--speed", "200"], "\"change\":\"removed\"", 1);
    // A layer that lives in the machines says nothing about them: the rebirth stays open.
    castle.run(&["down", "--layer", "storage", "--yes"]);
    assert!(castle.run(&["status"]).ends(0).out.contains("rebirth: down, not over"));
    let down = castle.run(&["down", "--layer", "platform", "--yes"]).ends(0);
    assert!(down.err.contains("is given up: the castle stays down"), "{}", down.err);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    assert!(!castle.run(&["status"]).ends(0).out.contains("rebirth"));
    let up = castle.run(&["up"]).ends(0);
    assert!(!up.err.contains("rebirth"), "{}", up.err);
    assert_eq!(castle.guests().len(), 5);
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
    assert!(on.out.contains("not certified: cycle 1"), "{}", on.out);
    assert_eq!(castle.guests().len(), 5, "it stands all the same");
}

#[test]
fn what_goes_on_with_a_half_that_failed_is_the_rebirth() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    castle.run(&["rehearse", "poke", "proxmox cp-02: edited protection 1"]).ends(0);
    let failed = castle.run(&["rebirth", "--yes"]);
    assert!(failed.code != 0 && failed.out.contains("castle rebirth"), "{}", failed.out);
    assert!(
        !failed.out.contains("next: `castle down`"),
        "it would give the rebirth up: {}",
        failed.out
    );
    let why = castle.run(&["why"]).out;
    assert!(why.contains("castle rebirth"), "{why}");
    let page = castle.run(&["report", "--out", "-"]).ends(0).out;
    assert!(page.contains("castle rebirth") && !page.contains("castle down<"), "{page}");
}
