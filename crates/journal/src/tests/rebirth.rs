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
        RebirthRecord::Risen { run: run(3) },
        RebirthRecord::Razed { run: run(4) },
        RebirthRecord::Resumed,
        RebirthRecord::Risen { run: run(5) },
        RebirthRecord::Ended { end: RebirthEnd::Certified },
    ];
    let (down, up) = (Some(Direction::Down), Some(Direction::Up));
    assert_eq!(told(&disk, &records), [down, up, down, up, up, None, None]);
    let journals = open(&disk);
    let rebirth = journals.rebirth().unwrap().unwrap();
    assert!(!rebirth.seen[0].resumed && rebirth.seen[1].resumed);
    assert_eq!(rebirth.runs(), [run(1), run(3), run(4), run(5)].into());
    told(&disk, &[begun(1)]);
    assert_eq!(open(&disk).rebirth().unwrap().unwrap().seen, [], "only the last one is kept");
}

#[test]
fn every_run_since_its_beginning_is_of_it_and_none_that_came_after_it() {
    let disk = MemoryDisk::new();
    let first = RebirthRecord::Begun { cycles: 2, certify: true, after: Some(run(7)) };
    told(&disk, &[first, RebirthRecord::Razed { run: run(8) }]);
    let of = |number| open(&disk).rebirth().unwrap().unwrap().is_of(&run(number));
    // The ninth failed, and no record of the rebirth names it.
    assert_eq!([7, 8, 9, 10, 99].map(of), [false, true, true, true, true]);
    let end = RebirthRecord::Ended { end: RebirthEnd::Done };
    told(&disk, &[RebirthRecord::Risen { run: run(10) }, end]);
    assert_eq!([7, 8, 9, 10, 11].map(of), [false, true, true, true, false]);
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
        let Ok(rebirth) = journals.rebirth().map(Option::<&Rebirth>::cloned) else {
            let first = whole.iter().position(|byte| *byte == b'\n').unwrap();
            assert!(length <= first, "cut at {length}");
            continue;
        };
        assert_ne!(rebirth, known, "cut at {length}");
        assert!(
            rebirth.is_some(),
            "cut at {length}: a file without a whole line is no file of ours"
        );
        // What is written next does not go on in the middle of a line.
        let end = RebirthRecord::Ended { end: RebirthEnd::Done };
        journals.record_rebirth(Moment(9), &end).unwrap();
        assert!(open(&disk).rebirth().unwrap().unwrap().ended.is_some());
    }
}

#[test]
fn a_damaged_one_is_kept_beside_and_another_begins_but_not_over_a_newer_one() {
    let disk = MemoryDisk::new();
    told(&disk, &[begun(2), RebirthRecord::Razed { run: run(1) }]);
    assert!(open(&disk).set_aside_rebirth().unwrap().is_none(), "there is nothing wrong with it");
    let mut damaged = disk.content(FILE).unwrap();
    damaged[30] ^= 1;
    disk.put(FILE, damaged.clone());
    let mut journals = open(&disk);
    let (why, aside) = journals.set_aside_rebirth().unwrap().unwrap();
    assert!(matches!(why, StateError::Corrupt(_)), "{why}");
    assert_eq!(disk.content(&aside.kept_as.unwrap()).unwrap(), damaged);
    assert_eq!(journals.rebirth().unwrap(), None);
    journals.record_rebirth(Moment(3), &begun(1)).unwrap();
    assert_eq!(open(&disk).open_rebirth().unwrap().cycles, 1);

    let text = br#"{"v":99,"at":7,"record":"resumed"}"#;
    let newer = [crate::entry::sum(text).as_bytes(), b" ", text, b"\n"].concat();
    disk.put(FILE, newer.clone());
    let refused = open(&disk).set_aside_rebirth().unwrap_err();
    assert!(matches!(refused, StateError::Newer { found: 99, .. }), "{refused}");
    assert_eq!(disk.content(FILE).unwrap(), newer);
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

#[test]
fn a_hand_in_a_cycle_spoils_the_certificate_and_one_between_two_cycles_does_not() {
    let (at, disk) = (Moment(7), MemoryDisk::new());
    let go = |number: u32, direction| {
        let mut journals = open(&disk);
        let start = Start { direction, ..start(run(number).as_str()) };
        journals.start_run(Moment(1), start).unwrap();
        journals.end_run(Moment(2), RunOutcome::Done).unwrap();
    };
    let done = |number, direction| {
        go(number, direction);
        open(&disk).note_half(at, direction, HalfEnd::Done(run(number))).unwrap();
    };
    open(&disk).begin_rebirth(at, Some(3)).unwrap();
    open(&disk).begin_rebirth(at, Some(3)).unwrap();
    done(1, Direction::Down);
    done(2, Direction::Up);
    // Ended between two cycles, and begun once more.
    open(&disk).begin_rebirth(at, Some(3)).unwrap();
    let spoiled = || open(&disk).open_rebirth().unwrap().spoiled();
    assert_eq!(spoiled(), None);
    // Ended while the castle goes for the second time.
    go(3, Direction::Down);
    open(&disk).begin_rebirth(at, Some(3)).unwrap();
    assert_eq!(spoiled().unwrap(), "cycle 2 was interrupted and gone on with by hand");
    done(4, Direction::Down);
    done(5, Direction::Up);
    assert_eq!(open(&disk).due_half().map(|(direction, _)| direction), None, "no other is begun");
    open(&disk).conclude_rebirth(at).unwrap();
    let ended = open(&disk).rebirth().unwrap().unwrap().ended.clone().unwrap().1;
    assert!(matches!(ended, RebirthEnd::NotCertified { .. }), "{ended:?}");
}

#[test]
fn a_file_that_became_shorter_is_not_filled_up() {
    let disk = MemoryDisk::new();
    told(&disk, &[begun(2), RebirthRecord::Razed { run: run(1) }]);
    let mut journals = open(&disk);
    let cut = disk.content(FILE).unwrap()[..20].to_vec();
    disk.put(FILE, cut.clone());
    let risen = RebirthRecord::Risen { run: run(2) };
    let refused = journals.record_rebirth(Moment(9), &risen).unwrap_err();
    assert!(matches!(refused, StateError::Write { .. }), "{refused}");
    assert_eq!(disk.content(FILE).unwrap(), cut);
}
