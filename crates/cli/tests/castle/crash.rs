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

/// Runs `castle WORDS --json` and kills it with SIGKILL once a line tells this.
fn killed_at(castle: &Context, words: &[&str], sign: &str) -> bool {
    let mut command = castle.command(words);
    let mut process =
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let told = lines.map(Result::unwrap).any(|line| line.contains(sign));
    process.kill().unwrap();
    process.wait().unwrap();
    told
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
fn a_killed_down_is_finished_before_anything_rises_again() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let removed =
        killed_at(&castle, &["down", "--yes", "--speed", "200"], "\"change\":\"removed\"");
    assert!(removed, "it was killed in the middle");
    let up = castle.run(&["up"]).ends(3);
    assert!(up.err.contains("finish it with `castle down`"), "{}", up.err);
    castle.run(&["down", "--yes"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    let status = castle.run(&["status"]).ends(0);
    assert!(!status.out.contains("begun") && status.out.contains("not born"), "{}", status.out);
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.guests().len(), 5);
}

#[test]
fn down_waits_for_what_a_killed_up_had_begun() {
    for sign in
        ["download is running", "qmcreate is running", "resize is running", "qmstart is running"]
    {
        let castle = Context::new();
        assert!(killed_at(&castle, &["up", "--speed", "200"], sign), "{sign}");
        castle.run(&["down", "--yes"]).ends(0);
        let world = castle.inventory();
        assert_eq!(world["proxmox"]["running_tasks"], serde_json::json!([]), "{sign}");
        assert_eq!(world["proxmox"]["files"], serde_json::json!([]), "{sign}");
        castle.run(&["up"]).ends(0);
    }
}

#[test]
fn down_finds_a_download_whose_journal_is_lost_too() {
    let castle = Context::new();
    assert!(killed_at(&castle, &["up", "--speed", "200"], "download is running"));
    std::fs::remove_dir_all(castle.state()).unwrap();
    castle.run(&["down", "--yes"]).ends(0);
    let world = castle.inventory();
    assert_eq!(world["proxmox"]["running_tasks"], serde_json::json!([]));
    assert_eq!(world["proxmox"]["files"], serde_json::json!([]));
}

#[test]
fn a_datacenter_that_lost_everything_gets_a_castle_of_a_new_life() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    std::fs::remove_dir_all(castle.datacenter()).unwrap();
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.guests().len(), 5);
}

#[test]
fn a_vm_that_is_made_for_ever_and_that_nobody_remembers_is_named_with_its_task() {
    let castle = Context::new();
    let killed = "castle: killed before on GET *qmcreate*/status the 5th";
    let up = castle.run(&["up", "--fault", "proxmox: task hangs qmcreate", "--fault", killed]);
    assert!(up.err.contains("fault: castle is killed before"), "{}", up.err);
    std::fs::remove_dir_all(castle.state()).unwrap();
    let said = castle.run(&["up"]).ends(1);
    assert!(said.err.contains("it is just being made, and bears no mark yet"), "{}", said.err);
    assert!(said.out.contains("if it hangs, end it in Proxmox"), "{}", said.out);
}
