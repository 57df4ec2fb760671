//! What outlives a run: its events, and what it took.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::context::Context;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn every_run_is_kept_and_compared_with_those_like_it() {
    let castle = Context::new();
    let none = castle.run(&["history"]).ends(0);
    assert!(none.err.contains("no run of castle `blue` is remembered yet"), "{}", none.err);
    let up = castle.run(&["up", "--json"]).ends(0);
    castle.run(&["down", "--yes"]).ends(0);
    castle.run(&["up"]).ends(0);

    let kept = castle.state().join("runs");
    let mut files: Vec<_> = std::fs::read_dir(&kept).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 6, "events and a page of each: {files:?}");
    assert_eq!(std::fs::read_to_string(&files[0]).unwrap(), up.out, "what a face hears is kept");
    for file in &files {
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }

    let history = lines(&castle.run(&["history", "--json"]).ends(0).out);
    let ways: Vec<&str> = history.iter().map(|run| run["direction"].as_str().unwrap()).collect();
    assert_eq!(ways, ["up", "down", "up"]);
    let ended = lines(&up.out).into_iter().find(|event| event["event"] == "run-ended").unwrap();
    assert_eq!(history[0]["took_ms"], ended["took_ms"], "in the rehearsal's own time");
    assert_ne!(history[0]["took_ms"], history[2]["took_ms"], "the dice go on");
    assert_eq!(history[0]["shape"], history[2]["shape"]);
    assert_eq!(history[0]["work"], history[2]["work"]);
    let text = castle.run(&["history"]).ends(0).out;
    assert!(text.contains("castle blue (a rehearsal): 3 runs"), "{text}");
    for layer in ["secrets", "platform", "engine", "networking", "storage", "gitops", "all"] {
        assert!(text.lines().any(|line| line.starts_with(layer)), "{layer}:\n{text}");
    }

    castle.run(&["rehearse", "reset", "--yes"]).ends(0);
    assert!(!castle.state().exists(), "a reset leaves nothing");
}

#[test]
fn a_place_that_can_not_be_written_stops_no_run() {
    let castle = Context::new();
    std::fs::create_dir_all(castle.state()).unwrap();
    std::fs::set_permissions(castle.state(), PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(castle.state().join("runs"), "somebody's").unwrap();
    std::fs::create_dir(castle.state().join("history.jsonl")).unwrap();
    let up = castle.run(&["up"]).ends(0);
    assert_eq!(up.err.matches("the events of this run can not be kept").count(), 1, "{}", up.err);
    assert_eq!(up.err.matches("can not be remembered").count(), 1, "{}", up.err);
    assert!(
        !up.err.contains("the page of this run"),
        "without events there is nothing to tell: {}",
        up.err
    );
    assert_eq!(castle.guests().len(), 5);
}
