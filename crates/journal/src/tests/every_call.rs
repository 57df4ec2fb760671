//! Every call to the disk fails in every way, once or for good; then the process goes on, dies, or the power does.

use castle_model::RunId;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;

use crate::rebirth::follow;
use crate::{
    DiskFault, Journals, MemoryDisk, Rebirth, RebirthEnd, RebirthRecord, Records, StateError,
};

use super::life::{Act, acts, perform, recorded};
use super::{layer, reopened, risen};

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

/// Every kind of record of a rebirth's journal; a file that is replaced, and lines that are added to it.
fn rebirths() -> Vec<RebirthRecord> {
    let run = RunId::new;
    let begun = |cycles| RebirthRecord::Begun { cycles, certify: true, after: None };
    vec![
        begun(1),
        RebirthRecord::Ended { end: RebirthEnd::GivenUp { by: "castle down".into() } },
        begun(2),
        RebirthRecord::Razed { run: run("r1") },
        RebirthRecord::Resumed,
        RebirthRecord::Stumbled { exit: 1, why: "a VM was denied".into() },
        RebirthRecord::Risen { run: run("r2") },
        RebirthRecord::Ended { end: RebirthEnd::NotCertified { why: "cycle 1".into() } },
    ]
}

/// Records a rebirth until the disk refuses: what is known after every record, how many were promised, and the error.
fn reborn(journals: &mut Journals) -> (Vec<Option<Rebirth>>, usize, Option<StateError>) {
    let mut folds = vec![None];
    for (at, record) in (1000..).map(Moment).zip(rebirths()) {
        let next = follow(folds[folds.len() - 1].clone(), at, record.clone()).unwrap();
        folds.push(Some(next));
        if let Err(error) = journals.record_rebirth(at, &record) {
            return (folds.clone(), folds.len() - 2, Some(error));
        }
    }
    let promised = folds.len() - 1;
    (folds, promised, None)
}

#[test]
fn no_failure_of_the_disk_loses_a_rebirth_or_makes_one_up() {
    let disk = MemoryDisk::new();
    assert!(reborn(&mut reopened(&disk).unwrap()).2.is_none());
    let calls = disk.calls();
    assert!(calls > 20, "{calls}");
    for (at, fault) in (0..calls).flat_map(|at| FAULTS.map(|fault| (at, fault))) {
        for lasting in [false, true] {
            let case = format!("call {at}, {fault:?}, lasting {lasting}");
            let disk = MemoryDisk::new();
            let mut journals = reopened(&disk).unwrap();
            disk.fail(at, fault, lasting);
            let (folds, promised, error) = reborn(&mut journals);
            // A line that could be cut off again is told; nothing but the cut is tried twice.
            assert!(error.is_some() || disk.struck() == 0, "{case}: never silent");
            disk.heal();
            let (killed, dark) = (disk.copy(), disk.copy());
            dark.lose_power();
            for left in [disk, killed, dark] {
                let mut read = reopened(&left).unwrap();
                let found = read.rebirth().unwrap_or_else(|e| panic!("{case}: {e}")).cloned();
                assert!(folds[promised..].contains(&found), "{case}: {found:?}");
                let next = match read.open_rebirth() {
                    Some(_) => RebirthRecord::Ended { end: RebirthEnd::Done },
                    None => rebirths().remove(0),
                };
                read.record_rebirth(Moment(9000), &next).unwrap();
            }
        }
    }
}

/// Damages files of a whole life, and mends that while one call to the disk fails.
fn mended_under_fire(damaged: &[&str], mend: &dyn Fn(&MemoryDisk) -> Result<(), StateError>) {
    let whole = MemoryDisk::new();
    risen(&whole);
    reborn(&mut reopened(&whole).unwrap());
    for file in damaged {
        whole.put(file, format!("nonsense of {file}\n").into_bytes());
    }
    let kept = |disk: &MemoryDisk, case: &str| {
        for file in damaged {
            let bytes = format!("nonsense of {file}\n").into_bytes();
            let names = disk.names();
            let is_kept = names.iter().any(|name| disk.content(name).as_ref() == Some(&bytes));
            assert!(is_kept, "{case}: {file} was thrown away: {names:?}");
        }
    };
    let tried = whole.copy();
    let before = tried.calls();
    mend(&tried).unwrap();
    let calls = tried.calls() - before;
    for (at, fault) in (0..calls).flat_map(|at| FAULTS.map(|fault| (at, fault))) {
        for lasting in [false, true] {
            let case = format!("call {at}, {fault:?}, lasting {lasting}");
            let disk = whole.copy();
            disk.fail(disk.calls() + at, fault, lasting);
            let mended = mend(&disk);
            assert_eq!(mended.is_err(), disk.struck() > 0, "{case}: never silent");
            disk.heal();
            let dark = disk.copy();
            dark.lose_power();
            for left in [disk, dark] {
                kept(&left, &case);
                // Whoever comes next finds it damaged or aside, and can mend it.
                mend(&left).unwrap();
                kept(&left, &case);
            }
        }
    }
}

#[test]
fn what_is_set_aside_on_a_failing_disk_is_kept_and_can_be_set_aside_again() {
    let open = |disk: &MemoryDisk| reopened(disk);
    mended_under_fire(&["rebirth.journal"], &|disk| open(disk)?.set_aside_rebirth().map(|_| ()));
    mended_under_fire(&["layers/platform.journal"], &|disk| {
        let mut journals = open(disk)?;
        let platform = layer("platform");
        if !journals.problems().contains_key(&platform) {
            return Ok(());
        }
        journals.set_aside(&platform).map(|_| ())
    });
    mended_under_fire(&["run.journal", "layers/platform.journal"], &|disk| match open(disk) {
        Err(StateError::Corrupt(_)) => Journals::open_anew(Box::new(disk.clone())).map(|_| ()),
        other => other.map(|_| ()),
    });
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
