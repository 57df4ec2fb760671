//! The events and times of past runs: read while written, pruned, never in anybody's way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::history::HISTORY;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Event, EventKind, PastRun, RunId};
use tempfile::TempDir;

use crate::{Holder, Runs, StateError, StateRoot, number};

fn runs() -> (TempDir, PathBuf, Runs) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("blue");
    let holder = Holder::this("desk".into(), Moment(0), "castle up".into());
    let runs = StateRoot::open(&path, &holder).unwrap().runs().unwrap();
    (place, path, runs)
}

fn id(number: u32) -> RunId {
    RunId::new(format!("r{number:04}-20260202"))
}

fn event(run: &RunId, seq: u64, at: u64) -> Event {
    let kind = EventKind::Notice { step: None, text: format!("number {seq}") };
    Event { v: SCHEMA, seq, at: Moment(at), run: run.clone(), kind }
}

fn past(run: &RunId, started: u64) -> PastRun {
    PastRun {
        v: HISTORY,
        run: run.clone(),
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        rehearsal: false,
        shape: "5ca1ab1e".into(),
        work: [("create".to_owned(), 3)].into(),
        started: Moment(started),
        outcome: RunOutcome::Done,
        exit: 0,
        took_ms: 1000,
        changed: 3,
        layers: [("platform".parse().unwrap(), 900)].into(),
        steps: [].into(),
        version: "0.1.0".into(),
    }
}

#[test]
fn a_reader_follows_the_writer_line_by_line() {
    let (_place, path, runs) = runs();
    let run = id(1);
    assert!(runs.events(&run).unwrap().is_none());
    let mut file = runs.begin(&run).unwrap();
    let mut reader = Runs::at(&path).unwrap().unwrap().events(&run).unwrap().unwrap();
    assert_eq!(reader.more().unwrap(), []);
    file.add(&event(&run, 1, 5)).unwrap();
    file.add(&event(&run, 2, 6)).unwrap();
    assert_eq!(reader.more().unwrap(), [event(&run, 1, 5), event(&run, 2, 6)]);
    // A line that is just being written is not read before its end is there.
    let line = serde_json::to_string(&event(&run, 3, 7)).unwrap();
    let (first, rest) = line.split_at(20);
    let named = path.join("runs/r0001-20260202.jsonl");
    let append = |text: &str| {
        use std::io::Write;
        fs::OpenOptions::new()
            .append(true)
            .open(&named)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    };
    append(first);
    assert_eq!(reader.more().unwrap(), []);
    append(rest);
    append("\n");
    assert_eq!(reader.more().unwrap(), [event(&run, 3, 7)]);
    append("{\"v\":1,\"seq\":4,\"at\":8,\"run\":\"r\",\"event\":\"of-tomorrow\"}\n\u{fffd}\u{0}\n");
    file.add(&event(&run, 5, 9)).unwrap();
    assert_eq!(reader.more().unwrap(), [event(&run, 5, 9)]);
    assert_eq!(reader.skipped(), 2, "what can not be read is counted and passed over");
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(path.join("runs")), mode(named)), (0o700, 0o600));
}

#[test]
fn the_oldest_runs_go_but_none_that_is_needed() {
    let (_place, _path, runs) = runs();
    for number in [1, 2, 3, 9, 10, 9999, 10_000] {
        drop(runs.begin(&id(number)).unwrap());
    }
    assert_eq!(
        runs.list().unwrap().iter().map(number_of).collect::<Vec<_>>(),
        [1, 2, 3, 9, 10, 9999, 10_000]
    );
    runs.prune(3, |run| *run == id(2)).unwrap();
    assert_eq!(
        runs.list().unwrap().iter().map(number_of).collect::<Vec<_>>(),
        [2, 10, 9999, 10_000]
    );
    assert!(runs.begin(&id(10)).is_err(), "the events of a run are never written over");
}

fn number_of(run: &RunId) -> u64 {
    number(run)
}

#[test]
fn a_place_that_can_not_be_written_is_an_error_and_not_more() {
    let (_place, path, runs) = runs();
    fs::write(path.join("runs"), "somebody's").unwrap();
    assert!(matches!(runs.begin(&id(1)), Err(StateError::WrongKind { .. })));
    assert!(matches!(runs.list(), Err(StateError::WrongKind { .. })));
    fs::remove_file(path.join("runs")).unwrap();
    drop(runs.begin(&id(1)).unwrap());
    let (file, elsewhere) = (path.join("runs/r0001-20260202.jsonl"), path.join("elsewhere"));
    fs::rename(&file, &elsewhere).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(runs.events(&id(1)), Err(StateError::WrongKind { .. })));
}

#[test]
fn a_torn_line_of_the_history_spoils_no_other() {
    let (_place, path, runs) = runs();
    assert_eq!(runs.history().unwrap().runs, []);
    // The clock goes back between the runs, to 1970 even: their order is that of the file.
    for (number, started) in [(1, 1_770_033_600_000), (2, 0), (3, 500)] {
        runs.remember(&past(&id(number), started)).unwrap();
    }
    let file = path.join("history.jsonl");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() - 9]).unwrap();
    runs.remember(&past(&id(4), 600)).unwrap();
    let history = runs.history().unwrap();
    let numbers: Vec<u64> = history.runs.iter().map(|past| number(&past.run)).collect();
    assert_eq!((numbers, history.skipped), (vec![1, 2, 4], 1));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o600);
}

#[test]
fn a_history_does_not_grow_for_ever() {
    let (_place, path, runs) = runs();
    let lines: String = (1..=1000)
        .map(|number| serde_json::to_string(&past(&id(number), 0)).unwrap() + "\n")
        .collect();
    let file = path.join("history.jsonl");
    fs::write(&file, lines).unwrap();
    fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    runs.remember(&past(&id(1001), 0)).unwrap();
    let kept = runs.history().unwrap().runs;
    assert_eq!((kept.len(), number(&kept[0].run), number(&kept[499].run)), (500, 502, 1001));
}
