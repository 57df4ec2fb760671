//! Ctrl-C, SIGTERM, a closed terminal and a reader that goes away.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::context::Context;

/// Starts `up` at a speed at which it lasts a while, and waits until it has told so many events.
fn under_way(castle: &Context, events: usize) -> (Child, BufReader<std::process::ChildStdout>) {
    let mut command = castle.command(&["up", "--json", "--speed", "100"]);
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

#[test]
fn one_request_to_stop_settles_and_the_next_up_goes_on() {
    for signal in [Signal::INT, Signal::TERM] {
        let castle = Context::new();
        let (mut process, reader) = under_way(&castle, 60);
        send(&process, signal);
        let rest: Vec<String> = reader.lines().map(Result::unwrap).collect();
        assert_eq!(process.wait().unwrap().code(), Some(130), "{rest:?}");
        assert!(rest.iter().any(|l| l.contains("\"event\":\"interrupted\"")), "{rest:?}");
        let last = rest.last().unwrap();
        assert!(
            last.contains("\"run-ended\"") && last.contains("\"outcome\":\"interrupted\""),
            "{last}"
        );
        castle.run(&["up"]).ends(0);
        assert_eq!(castle.guests().len(), 5);
    }
}

#[test]
fn a_second_request_stops_at_once_and_loses_nothing() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, 50);
    send(&process, Signal::INT);
    send(&process, Signal::INT);
    drop(reader);
    assert_eq!(process.wait().unwrap().code(), Some(130));
    castle.run(&["up"]).ends(0);
    assert_eq!(castle.guests().len(), 5);
}

#[test]
fn a_closed_terminal_and_a_reader_that_goes_away_stop_nothing() {
    let castle = Context::new();
    let (mut process, reader) = under_way(&castle, 5);
    drop(reader);
    send(&process, Signal::HUP);
    assert_eq!(process.wait().unwrap().code(), Some(0));
    assert_eq!(castle.run(&["up"]).ends(0).changes(), 0, "the castle was finished");
}
