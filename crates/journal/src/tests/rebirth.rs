//! The journal of a rebirth: what follows what, and every way in which its file can be damaged.

use castle_model::RunId;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;

use crate::{HalfEnd, Journals, MemoryDisk, Rebirth, RebirthEnd, RebirthRecord, Start, StateError};

use super::start;

const FILE: &str = "rebirth.journal";

fn run(number: u32) -> RunId {
    RunId::new(format!("r{number:04}"))
}

fn open(disk: &MemoryDisk) -> Journals {
    Journals::open(Box::new(disk.clone())).unwrap()
}

fn begun(cycles: u32) -> RebirthRecord {
    RebirthRecord::Begun { cycles, certify: true, after: None }
}

/// Records everything, each line by a process of its own, and says what is open after each.
fn told(disk: &MemoryDisk, records: &[RebirthRecord]) -> Vec<Option<Direction>> {
    let each = records.iter().map(|record| {
        open(disk).record_rebirth(Moment(7), record).unwrap();
        open(disk).open_rebirth().and_then(Rebirth::due)
    });
    each.collect()
}

#[test]
fn each_half_follows_the_other_until_every_cycle_is_done() {
    let disk = MemoryDisk::new();
    let records = [
        begun(2),
        RebirthRecord::Razed { run: run(1) },
        RebirthRecord::Resumed,
        RebirthRecord::Risen { run: run(3) },
        RebirthRecord::Razed { run: run(4) },
        RebirthRecord::Risen { run: run(5) },
        RebirthRecord::Ended { end: RebirthEnd::Certified },
    ];
    let (down, up) = (Some(Direction::Down), Some(Direction::Up));
    assert_eq!(told(&disk, &records), [down, up, up, down, up, None, None]);
    let journals = open(&disk);
    let rebirth = journals.rebirth().unwrap().unwrap();
    assert!(rebirth.seen[0].resumed && !rebirth.seen[1].resumed);
    assert_eq!(rebirth.runs(), [run(1), run(3), run(4), run(5)].into());
    told(&disk, &[begun(1)]);
    assert_eq!(open(&disk).rebirth().unwrap().unwrap().seen, [], "only the last one is kept");
}

#[test]
fn one_that_stumbled_is_finished_and_goes_no_further() {
    let disk = MemoryDisk::new();
    let stumbled = RebirthRecord::Stumbled { exit: 1, why: "a VM was denied".into() };
    told(&disk, &[begun(5), RebirthRecord::Razed { run: run(1) }, stumbled]);
    assert_eq!(open(&disk).open_rebirth().unwrap().due(), Some(Direction::Up));
    told(&disk, &[RebirthRecord::Risen { run: run(2) }]);
    let journals = open(&disk);
    let rebirth = journals.open_rebirth().unwrap();
    assert_eq!(rebirth.due(), None);
    assert_eq!(rebirth.spoiled().unwrap(), "cycle 1: a VM was denied (exit code 1)");
}

#[test]
fn what_can_not_follow_is_not_recorded() {
    let disk = MemoryDisk::new();
    let mut journals = open(&disk);
    let refused = |journals: &mut Journals, record: RebirthRecord| {
        let error = journals.record_rebirth(Moment(1), &record).unwrap_err();
        assert!(matches!(error, StateError::Misuse { .. }), "{error}");
    };
    refused(&mut journals, RebirthRecord::Razed { run: run(1) });
    journals.record_rebirth(Moment(1), &begun(1)).unwrap();
    refused(&mut journals, begun(1));
    refused(&mut journals, RebirthRecord::Risen { run: run(1) });
    journals.record_rebirth(Moment(1), &RebirthRecord::Razed { run: run(1) }).unwrap();
    refused(&mut journals, RebirthRecord::Razed { run: run(1) });
}

#[test]
fn every_flipped_bit_is_noticed_and_every_cut_leaves_a_beginning() {
    let disk = MemoryDisk::new();
    let records = [
        begun(2),
        RebirthRecord::Resumed,
        RebirthRecord::Stumbled { exit: 4, why: "left over".into() },
        RebirthRecord::Razed { run: run(1) },
        RebirthRecord::Risen { run: run(2) },
        RebirthRecord::Ended { end: RebirthEnd::GivenUp { by: "castle down".into() } },
    ];
    told(&disk, &records);
    let whole = disk.content(FILE).unwrap();
    let known = open(&disk).rebirth().unwrap().cloned();
    for at in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[at / 8] ^= 1 << (at % 8);
        disk.put(FILE, damaged);
        let journals = open(&disk);
        let read = journals.rebirth().map(Option::<&Rebirth>::cloned);
        // The end of the last line alone may go: then it was never finished, and it counts as not written.
        let torn = at / 8 == whole.len() - 1;
        assert!(read.is_err() || (torn && read.unwrap() != known), "bit {at}");
        assert!(journals.problems().is_empty(), "the layers are not spoiled by it");
    }
    for length in 0..whole.len() {
        disk.put(FILE, whole[..length].to_vec());
        let mut journals = open(&disk);
        let rebirth = journals.rebirth().unwrap().cloned();
        assert_ne!(rebirth, known, "cut at {length}");
        if rebirth.is_some() {
            // What is written next does not go on in the middle of a line.
            let end = RebirthRecord::Ended { end: RebirthEnd::Done };
            journals.record_rebirth(Moment(9), &end).unwrap();
            assert!(open(&disk).rebirth().unwrap().unwrap().ended.is_some());
        }
    }
}

#[test]
fn a_full_disk_and_a_lost_sync_are_told() {
    let disk = MemoryDisk::new();
    told(&disk, &[begun(2)]);
    let before = disk.content(FILE);
    let razed = RebirthRecord::Razed { run: run(1) };
    let mut journals = open(&disk);
    disk.set_space(Some(10));
    assert!(matches!(journals.record_rebirth(Moment(1), &razed), Err(StateError::Write { .. })));
    assert_eq!(disk.content(FILE), before, "nothing of it remains");
    disk.set_space(None);
    disk.set_syncs(Some(0));
    assert!(matches!(journals.record_rebirth(Moment(1), &razed), Err(StateError::Poisoned { .. })));
    disk.set_syncs(None);
    assert!(journals.record_rebirth(Moment(1), &razed).is_err(), "nothing is sure any more");
    disk.lose_power();
    assert_eq!(open(&disk).open_rebirth().unwrap().due(), Some(Direction::Down));
}

#[test]
fn a_way_up_that_only_the_runs_know_is_not_razed_again() {
    let disk = MemoryDisk::new();
    let mut journals = open(&disk);
    let went = |journals: &mut Journals, number: u32, direction| {
        let start = Start { direction, ..start(run(number).as_str()) };
        journals.start_run(Moment(1), start).unwrap();
        journals.end_run(Moment(2), RunOutcome::Failed).unwrap();
    };
    went(&mut journals, 1, Direction::Up);
    let begun = RebirthRecord::Begun { cycles: 2, certify: true, after: Some(run(1)) };
    journals.record_rebirth(Moment(1), &begun).unwrap();
    let behind = |journals: &Journals| {
        let last = journals.records().last_run.clone().unwrap();
        journals.open_rebirth().unwrap().is_behind(&last)
    };
    assert!(!behind(&journals), "the run before it is not its own");
    went(&mut journals, 2, Direction::Down);
    assert!(!behind(&journals));
    went(&mut journals, 3, Direction::Up);
    assert!(behind(&journals), "the record of the way down was lost");
    journals.record_rebirth(Moment(1), &RebirthRecord::Razed { run: run(2) }).unwrap();
    journals.record_rebirth(Moment(1), &RebirthRecord::Risen { run: run(3) }).unwrap();
    assert!(!behind(&journals), "the next cycle begins on its way down");
}

#[test]
fn the_course_goes_on_in_another_process_and_ends_with_its_verdict() {
    let disk = MemoryDisk::new();
    let (at, due) = (Moment(7), || open(&disk).due_half().map(|(direction, _)| direction));
    open(&disk).begin_rebirth(at, None).unwrap();
    assert!(!open(&disk).catch_up_rebirth(at).unwrap(), "there is nothing that only runs know");
    assert_eq!(due(), Some(Direction::Down));
    open(&disk).note_half(at, Direction::Down, HalfEnd::Done(run(1))).unwrap();
    open(&disk).begin_rebirth(at, None).unwrap();
    assert_eq!(due(), Some(Direction::Up), "it is gone on with, and not begun a second time");
    let stumbled = HalfEnd::Stumbled { exit: 1, why: "a VM was denied".into() };
    open(&disk).note_half(at, Direction::Up, stumbled).unwrap();
    assert_eq!(due(), Some(Direction::Up), "what stumbled is still due");
    open(&disk).note_half(at, Direction::Up, HalfEnd::Done(run(2))).unwrap();
    assert_eq!(due(), None);
    open(&disk).conclude_rebirth(at).unwrap();
    let journals = open(&disk);
    let rebirth = journals.rebirth().unwrap().unwrap();
    assert_eq!(rebirth.ended, Some((at, RebirthEnd::Done)));
    assert!(rebirth.seen[0].resumed && rebirth.seen[0].stumbled.is_some());
    open(&disk).conclude_rebirth(at).unwrap();
    open(&disk).begin_rebirth(at, Some(3)).unwrap();
    assert_eq!(open(&disk).open_rebirth().unwrap().cycles, 3, "another one can be begun");
}
