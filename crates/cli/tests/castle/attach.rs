//! Runs without their terminal, seen and waited for from another one.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::context::{Context, Said};

/// Starts `up` at a speed at which it lasts a while, and waits until it has told so many events.
fn under_way(castle: &Context, speed: &str, events: usize) -> (Child, BufReader<ChildStdout>) {
    let mut command = castle.command(&["up", "--json", "--speed", speed]);
    let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut reader = BufReader::new(process.stdout.take().unwrap());
    for _ in 0..events {
        reader.read_line(&mut String::new()).unwrap();
    }
    (process, reader)
}

fn send(process: &Child, signal: Signal) {
    kill_process(Pid::from_child(process), signal).unwrap();
}

/// Checks that a process is in a session of its own, and carries nothing in its arguments and its environment.
fn alone(pid: &str) {
    let read = |what: &str| std::fs::read_to_string(format!("/proc/{pid}/{what}"));
    let stat = read("stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!(fields[3], pid, "its session is its own: {stat}");
    assert!(read("cmdline").unwrap().ends_with("castle\0detached\0"));
    // Only root may look at the environment of a hardened process.
    assert_eq!(read("environ").unwrap_or_default(), "");
}

#[test]
fn a_detached_run_goes_on_and_is_shown_from_its_beginning() {
    let castle = Context::new();
    // The secret of the environment reaches the other process, and no file.
    let mut command = castle.command(&["up", "--detach", "--speed", "60"]);
    let started = Said::of(&command.env("SOPS_AGE_KEY", "hunter2").output().unwrap()).ends(0);
    let (_, rest) = started.err.split_once("detached: process ").unwrap();
    alone(rest.split(' ').next().unwrap());
    assert!(!started.err.contains("layer platform stands"), "it says nothing more here");
    let attached = castle.run(&["attach", "--json"]).ends(0);
    assert!(attached.out.lines().next().unwrap().contains("run-started"), "{}", attached.out);
    assert!(attached.out.contains("\"event\":\"handover\""), "it is followed to its end");
    assert_eq!(castle.guests().len(), 5);
    let kept = std::fs::read_dir(castle.state().join("runs")).unwrap();
    let events =
        kept.filter(|file| file.as_ref().unwrap().path().extension() == Some("jsonl".as_ref()));
    assert_eq!(events.count(), 1, "asking is no run");

    let last = castle.run(&["attach"]).ends(0);
    assert!(last.out.contains("castle blue (a rehearsal) stands"), "{}", last.out);
    assert!(last.err.contains("with exit code 0; nothing runs now"), "{}", last.err);

    let refused = castle.run(&["down", "--detach"]).ends(3);
    assert!(refused.err.contains("nobody is there to agree"), "{}", refused.err);
    castle.run(&["down", "--detach", "--yes"]).ends(0);
    castle.run(&["attach"]).ends(0);
    assert_eq!(castle.guests(), Vec::<u64>::new());
    let reborn = castle.run(&["rebirth", "--certify", "1", "--detach", "--yes"]).ends(0);
    assert!(reborn.err.contains("detached: process "), "{}", reborn.err);
    let reborn = castle.run(&["attach"]).ends(0);
    assert!(reborn.out.contains("rebirth of castle blue: certified"), "{}", reborn.out);
}

#[test]
fn what_goes_wrong_before_a_detached_run_is_told_in_the_terminal() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, "20", 40);
    let refused = castle.run(&["up", "--detach"]).ends(3);
    assert!(refused.err.contains("is in use by `castle up`"), "{}", refused.err);
    let stray = castle.run(&["detached"]).ends(2);
    assert!(stray.err.contains("is how castle starts itself"), "{}", stray.err);
    send(&process, Signal::KILL);
    process.wait().unwrap();
    drop(reader);
    let killed = castle.run(&["attach"]).ends(1);
    assert!(killed.err.contains("was ended before its end"), "{}", killed.err);
    assert!(killed.err.contains("`castle up` goes on"), "{}", killed.err);
}

#[test]
fn what_is_going_on_is_seen_from_another_terminal() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, "20", 60);
    let status = castle.run(&["status"]).ends(0);
    let now = status.out.lines().find(|line| line.starts_with("now: up, ")).unwrap();
    assert!(now.contains(" steps done after "), "{now}");
    assert!(status.out.contains(" for "), "{}", status.out);
    let json: serde_json::Value =
        serde_json::from_str(&castle.run(&["status", "--json"]).ends(0).out).unwrap();
    assert!(!json["now"]["busy"].as_array().unwrap().is_empty(), "{json}");

    let mut attach = castle.command(&["attach"]);
    let mut attach = attach.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut talk = BufReader::new(attach.stderr.take().unwrap());
    talk.read_line(&mut String::new()).unwrap();
    send(&attach, Signal::INT);
    let rest: Vec<String> = talk.lines().map(Result::unwrap).collect();
    assert_eq!(attach.wait().unwrap().code(), Some(130));
    assert!(rest.last().unwrap().starts_with("left alone: `castle up` (process "), "{rest:?}");
    assert!(process.try_wait().unwrap().is_none(), "the run goes on");
    send(&process, Signal::INT);
    drop(reader);
    assert_eq!(process.wait().unwrap().code(), Some(130));
    assert!(!castle.run(&["status"]).ends(0).out.contains("now: "));
}

#[test]
fn a_stopped_holder_keeps_the_castle_and_a_patient_one_gets_it() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, "100", 40);
    send(&process, Signal::STOP);
    // The signal is taken when the process next runs.
    let refused = loop {
        let refused = castle.run(&["up"]).ends(3);
        if refused.err.contains("state T") {
            break refused;
        }
    };
    let pid = process.id();
    assert!(refused.err.contains(&format!("(process {pid} on ")), "{}", refused.err);
    assert!(refused.err.contains(&format!("`kill -CONT {pid}` lets it go on")), "{}", refused.err);
    let impatient = castle.run(&["up", "--wait=1s"]).ends(3);
    assert!(impatient.err.contains("waiting up to "), "{}", impatient.err);
    send(&process, Signal::CONT);
    drop(reader);
    let patient = castle.run(&["up", "--wait=5m"]).ends(0);
    assert!(patient.err.contains(&format!("(process {pid} on ")), "{}", patient.err);
    assert_eq!(process.wait().unwrap().code(), Some(0));
    assert_eq!(patient.changes(), 0, "the first had finished");
}

#[test]
fn of_many_operators_at_once_one_works_and_the_others_find_it_done() {
    let castle = Context::new();
    let start = || {
        let mut command = castle.command(&["up", "--wait=10m"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let processes: Vec<Child> = (0..5).map(|_| start()).collect();
    let said: Vec<Said> = processes
        .into_iter()
        .map(|process| Said::of(&process.wait_with_output().unwrap()).ends(0))
        .collect();
    let at_work = said.iter().filter(|said| said.changes() > 0).count();
    assert_eq!(at_work, 1, "one raised it, the others changed nothing");
    assert_eq!(castle.guests().len(), 5);
}
