//! Every call to the disk fails in every way, once or for good; then the process goes on, dies, or the power does.

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;

use crate::{DiskFault, Journals, MemoryDisk, Records, StateError};

use super::life::{Act, acts, perform, recorded};
use super::{layer, reopened};

const FAULTS: [DiskFault; 5] =
    [DiskFault::Io, DiskFault::Short, DiskFault::Full, DiskFault::ReadOnly, DiskFault::Late];

/// A life as it was recorded until the disk refused.
struct Recording {
    /// The fold after every record, whether it became durable or not.
    folds: Vec<Records>,
    /// Which of them was promised last.
    promised: usize,
    error: Option<StateError>,
}

fn record(journals: &mut Journals) -> Recording {
    let mut recording =
        Recording { folds: vec![journals.records().clone()], promised: 0, error: None };
    for (at, act) in (1000..).zip(acts()) {
        let promises = !matches!(act, Act::Append(_));
        let result = perform(journals, at, act);
        recording.folds.push(journals.records().clone());
        if let Err(error) = result {
            recording.error = Some(error);
            return recording;
        }
        if promises {
            recording.promised = recording.folds.len() - 1;
        }
    }
    recording
}

/// What is read back of each layer is what was promised, or something that was recorded after it.
fn check_read(recording: &Recording, read: &Journals, case: &str) {
    assert!(read.problems().is_empty(), "{case}: {:?}", read.problems());
    for name in ["secrets", "platform", "engine"] {
        let layer = layer(name);
        let steps = |records: &Records| -> Vec<_> {
            records.layer(&layer).map(|(id, state)| (id.clone(), state.clone())).collect()
        };
        let found = steps(read.records());
        let life = &read.records().incarnation;
        let is_known = recording.folds[recording.promised..]
            .iter()
            .any(|fold| steps(fold) == found && (name != "secrets" || fold.incarnation == *life));
        assert!(is_known, "{case}: {name} is {found:?}");
    }
}

/// The first call that fails; then the process goes on, or dies with or without its host.
fn fails(at: usize, fault: DiskFault, lasting: bool) {
    let case = format!("call {at}, {fault:?}, lasting {lasting}");
    let disk = MemoryDisk::new();
    let mut journals = reopened(&disk).unwrap();
    disk.fail(at, fault, lasting);
    let recording = record(&mut journals);
    assert_eq!(recording.error.is_some(), disk.struck() > 0, "{case}: never silent");
    disk.heal();
    let Some(error) = &recording.error else { return };
    let words = error.failure("record").why;
    assert!(words.contains(".journal"), "{case}: the file is not named: {words}");
    let (killed, dark) = (disk.copy(), disk.copy());
    dark.lose_power();
    match journals.commit() {
        Ok(_) => {
            let read = reopened(&disk).unwrap();
            assert_eq!(read.records().steps, journals.records().steps, "{case}");
            assert!(read.notices().is_empty(), "{case}");
        }
        Err(error) => assert!(matches!(error, StateError::Poisoned { .. }), "{case}: {error}"),
    }
    drop(journals);
    for left in [disk, killed, dark] {
        let mut read = reopened(&left).unwrap();
        check_read(&recording, &read, &case);
        // And life goes on.
        perform(&mut read, 5000, Act::Start("r9", Direction::Up)).unwrap();
        perform(&mut read, 5001, Act::End(RunOutcome::Done)).unwrap();
        assert!(read.problems().is_empty(), "{case}");
    }
}

#[test]
fn no_failure_of_the_disk_is_silent_and_nothing_promised_is_lost() {
    let disk = MemoryDisk::new();
    record(&mut reopened(&disk).unwrap());
    let calls = disk.calls();
    assert!(calls > 60, "{calls}");
    for at in 0..calls {
        for fault in FAULTS {
            for lasting in [false, true] {
                fails(at, fault, lasting);
            }
        }
    }
}

/// A disk may write the sectors of one write in any order. They are small here, so that a batch has several.
#[test]
fn any_part_of_what_was_not_synced_may_be_lost() {
    const SECTOR: usize = 128;
    let whole = MemoryDisk::new();
    let mut calls = Vec::new();
    let mut journals = reopened(&whole).unwrap();
    for (at, act) in (1000..).zip(acts()) {
        let before = whole.calls();
        perform(&mut journals, at, act).unwrap();
        calls.extend(before..whole.calls());
    }
    let (mut cases, mut torn, mut damaged) = (0, 0, 0);
    for at in calls {
        // The sync that does not return: what was appended before it is on its way.
        let disk = MemoryDisk::new();
        disk.fail(at, DiskFault::Io, true);
        let recording = record(&mut reopened(&disk).unwrap());
        disk.heal();
        let sectors = disk.unsynced_sectors(SECTOR);
        for kept in 0..1_usize << sectors.min(8) {
            for shrunk in [false, true] {
                let spoilt = disk.copy();
                spoilt.lose_sectors(SECTOR, shrunk, |number| kept & (1 << number) != 0);
                cases += 1;
                let case = format!("call {at}, sectors {kept:b} of {sectors}, shrunk {shrunk}");
                match reopened(&spoilt) {
                    Err(StateError::Corrupt(_)) => damaged += 1,
                    Err(other) => panic!("{case}: {other}"),
                    Ok(read) if !read.problems().is_empty() => damaged += 1,
                    Ok(read) => {
                        torn += read.notices().len();
                        check_read(&recording, &read, &case);
                    }
                }
            }
        }
    }
    assert!(cases > 500 && torn > 100 && damaged > 100, "{cases} {torn} {damaged}");
}

#[test]
fn a_rewrite_that_happened_and_said_it_did_not_stops_the_process() {
    let disk = recorded().ended().copy();
    let mut journals = reopened(&disk).unwrap();
    perform(&mut journals, 5000, Act::Start("r8", Direction::Up)).unwrap();
    perform(&mut journals, 5001, Act::End(RunOutcome::Done)).unwrap();
    disk.fail(disk.calls(), DiskFault::Late, false);
    assert!(perform(&mut journals, 5002, Act::Compact).is_err());
    // It knows another file than the one that is there: whatever it adds could be lost.
    perform(&mut journals, 5003, Act::Start("r9", Direction::Up)).unwrap();
    let step = castle_model::StepId::new("engine", "store");
    perform(&mut journals, 5004, Act::Append(super::intent(&step))).unwrap();
    let refused = perform(&mut journals, 5005, Act::Commit);
    assert!(matches!(refused, Err(StateError::Poisoned { .. })), "{refused:?}");
    assert!(reopened(&disk).unwrap().problems().is_empty());
}
