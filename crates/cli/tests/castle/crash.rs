//! Killed at any moment, the next `up` finds the world as it was and goes on.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::context::Context;

/// Runs `castle WORDS --json` and kills it with SIGKILL once it has told so many events.
fn killed_after(castle: &Context, words: &[&str], events: usize) -> bool {
    let mut command = castle.command(words);
    let mut process =
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let told = lines.by_ref().take(events).count();
    process.kill().unwrap();
    process.wait().unwrap();
    told == events
}

#[test]
fn a_killed_up_goes_on_and_ends_in_the_same_world() {
    let whole = Context::new();
    whole.run(&["up"]).ends(0);
    let undisturbed = whole.inventory();
    for events in [40, 60, 75, 90, 110, 135, 160, 190, 230] {
        let castle = Context::new();
        assert!(
            killed_after(&castle, &["up", "--speed", "2000"], events),
            "it ended before {events} events"
        );
        castle.run(&["up"]).ends(0);
        let world = castle.inventory();
        for part in ["volumes", "files", "running_tasks"] {
            assert_eq!(
                world["proxmox"][part], undisturbed["proxmox"][part],
                "after {events} events"
            );
        }
        assert_eq!(castle.guests(), whole.guests(), "after {events} events");
        assert_eq!(world["nodes"], undisturbed["nodes"]);
        assert_eq!(world["secrets"], undisturbed["secrets"]);
        assert_eq!(castle.run(&["up"]).ends(0).changes(), 0, "after {events} events");
    }
}

#[test]
fn a_castle_whose_state_is_lost_half_way_is_finished_all_the_same() {
    for events in [60, 90, 150] {
        let castle = Context::new();
        killed_after(&castle, &["up", "--speed", "2000"], events);
        std::fs::remove_dir_all(castle.state()).unwrap();
        castle.run(&["up"]).ends(0);
        assert_eq!(castle.guests(), [421, 422, 423, 431, 432]);
    }
}

#[test]
fn a_killed_down_goes_on() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    killed_after(&castle, &["down", "--yes", "--speed", "2000"], 45);
    castle.run(&["down", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
}
