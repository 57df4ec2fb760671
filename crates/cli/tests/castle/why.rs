//! What is waited for, asked from another terminal and after the end.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::context::Context;

#[test]
fn every_question_has_its_answer() {
    let castle = Context::new();
    let none = castle.run(&["why"]).ends(0);
    assert!(none.err.contains("no run of castle `blue` is known"), "{}", none.err);
    let none: serde_json::Value =
        serde_json::from_str(&castle.run(&["why", "--json"]).ends(0).out).unwrap();
    assert_eq!((&none["run"], none["steps"].as_array().unwrap().len()), (&none["direction"], 0));
    let wrong = castle.run(&["why", "platform/vib"]).ends(2);
    assert!(wrong.err.contains("did you mean `platform/vip`?"), "{}", wrong.err);

    let mut command = castle.command(&["up", "--json", "--speed", "20"]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("step-waiting") {
        line.clear();
        reader.read_line(&mut line).unwrap();
    }
    let now = castle.run(&["why"]).ends(0);
    assert!(now.out.contains("platform/image has been waiting for"), "{}", now.out);
    for label in ["  what  ", "  waits for ", "  deadline  10:00 in all, ", "  blocks    "] {
        assert!(now.out.contains(label), "{label}: {}", now.out);
    }
    let json = castle.run(&["why", "vip", "--json"]).ends(0);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["steps"][0]["step"], "platform/vip");
    assert_eq!(json["steps"][0]["status"], "pending");
    assert!(!json["steps"][0]["needs"].as_object().unwrap().is_empty(), "{json}");
    assert_eq!(json["steps"][0]["roots"][0]["step"], "platform/image", "{json}");
    // What is silent goes on waiting: both halves go by the clock of the run, not by its last event.
    let status = castle.run(&["status", "--json"]).ends(0);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!((&status["state"], &status["next"]), (&"at work".into(), &"castle attach".into()));
    assert_eq!(status["layers"]["platform"]["state"], "under way", "{status}");
    kill_process(Pid::from_child(&process), Signal::KILL).unwrap();
    process.wait().unwrap();
    drop(reader);
    let killed = castle.run(&["why"]).ends(0);
    assert!(killed.out.contains("when the run ended"), "{}", killed.out);
    assert!(!killed.out.contains("  deadline "), "nothing is left of it: {}", killed.out);
    assert!(killed.out.trim_end().ends_with("\nnext: `castle up`"), "{}", killed.out);

    castle.run(&["up"]).ends(0);
    let calm = castle.run(&["why"]).ends(0);
    assert!(calm.err.contains("nothing waits and nothing failed"), "{}", calm.err);
    let proven = castle.run(&["rehearse", "why", "platform/vip"]).ends(0);
    assert!(proven.out.contains("platform/vip is done, in "), "{}", proven.out);
    assert!(proven.out.contains("  proof "), "{}", proven.out);
}
