//! Torn tails, exchanged files, full disks and second writers: explained, named, and never written over.

use castle_model::event::RunOutcome;
use castle_model::time::Moment;
use castle_model::{LayerName, StepId};

use crate::{Corruption, MemoryDisk, StateError, StepState};

use super::{intent, layer, outcome, reopened, risen, start};

const PLATFORM: &str = "layers/platform.journal";
const RUN: &str = "run.journal";

/// The corruption that opening finds, in the run journal or in a layer.
fn corruption(disk: &MemoryDisk) -> Option<Corruption> {
    let corrupt = |error: &StateError| match error {
        StateError::Corrupt(corruption) => Some(corruption.clone()),
        _ => None,
    };
    match reopened(disk) {
        Err(error) => corrupt(&error),
        Ok(journals) => journals.problems().values().find_map(corrupt),
    }
}

#[test]
fn a_torn_tail_is_explained_and_cut() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let before = disk.content(PLATFORM).unwrap();
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let step = StepId::new("platform", "vip");
    journals.append(Moment(3001), &layer("platform"), intent(&step)).unwrap();
    journals.commit().unwrap();
    let after = disk.content(PLATFORM).unwrap();
    for length in before.len() + 1..after.len() - 1 {
        for zeros in [0, 100] {
            let torn = disk.copy();
            let mut bytes = after[..length].to_vec();
            bytes.resize(length + zeros, 0);
            torn.put(PLATFORM, bytes);
            let read = reopened(&torn).unwrap();
            assert!(read.problems().is_empty(), "cut to {length}");
            assert_eq!(read.notices().len(), 1, "cut to {length}");
            assert_eq!(read.notices()[0].bytes, (length + zeros - before.len()) as u64);
            assert_eq!(*read.records().step(&step), StepState::Absent);
            assert_eq!(torn.content(PLATFORM).unwrap(), before);
            assert!(reopened(&torn).unwrap().notices().is_empty());
        }
    }
    let torn = disk.copy();
    torn.put(PLATFORM, after[..before.len() + 9].to_vec());
    insta::assert_snapshot!(reopened(&torn).unwrap().notices()[0], @"layers/platform.journal: entry 10 was never finished (9 bytes of it): a run was stopped while writing it, and nothing was done on its word");
}

#[test]
fn a_cut_in_the_middle_of_a_killed_run_is_found() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let before = disk.content(PLATFORM).unwrap();
    let (vip, store) = (StepId::new("platform", "vip"), StepId::new("engine", "store"));
    journals.append(Moment(3001), &layer("platform"), intent(&vip)).unwrap();
    journals.commit().unwrap();
    journals.append(Moment(3002), &layer("engine"), intent(&store)).unwrap();
    journals.commit().unwrap();
    drop(journals);
    assert!(reopened(&disk).is_ok());
    disk.put(PLATFORM, before);
    let Err(error) = reopened(&disk) else { panic!("the lost intent was not missed") };
    insta::assert_snapshot!(error.failure("open the state").why, @"the journal is damaged: run.journal, entry 2: entry 2 of run r2 was durable and is in no file: a layer's journal was cut");
}

#[test]
fn exchanged_old_doubled_and_missing_files_are_named() {
    let whole = MemoryDisk::new();
    risen(&whole);
    let old = whole.content(PLATFORM).unwrap();
    let mut journals = reopened(&whole).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let vip = StepId::new("platform", "vip");
    journals.append(Moment(3001), &layer("platform"), intent(&vip)).unwrap();
    journals.append(Moment(3002), &layer("platform"), outcome(&vip)).unwrap();
    journals.end_run(Moment(3003), RunOutcome::Done).unwrap();
    let bytes = whole.content(PLATFORM).unwrap();
    let tail = bytes[old.len()..].to_vec();

    let spoil = |change: &dyn Fn(&MemoryDisk)| {
        let disk = whole.copy();
        change(&disk);
        let found = corruption(&disk).map(|found| found.to_string());
        found.unwrap_or_else(|| "not found".to_owned())
    };
    let secrets = whole.content("layers/secrets.journal").unwrap();
    let cases = [
        spoil(&|disk| disk.put(PLATFORM, Vec::new())),
        spoil(&|disk| disk.remove(PLATFORM)),
        spoil(&|disk| disk.put(PLATFORM, secrets.clone())),
        spoil(&|disk| disk.put(PLATFORM, old.clone())),
        spoil(&|disk| disk.put(PLATFORM, [&bytes[..], &tail].concat())),
        spoil(&|disk| disk.put(PLATFORM, [&bytes[..], b"hello"].concat())),
        spoil(&|disk| disk.put(PLATFORM, bytes[bytes.len() - tail.len()..].to_vec())),
        spoil(&|disk| disk.remove(RUN)),
    ];
    insta::assert_snapshot!(cases.join("\n"), @r"
    layers/platform.journal, entry 1: the run journal has seen 11 entries here, and none is left
    layers/platform.journal, entry 1: the run journal has seen 11 entries here, and none is left
    layers/platform.journal, entry 1: it belongs to the layer secrets, not to the layer platform
    layers/platform.journal, entry 10: the run journal has seen entries up to 11: the file was cut or is an old copy
    layers/platform.journal, entry 12: it has number 10: entries are missing or doubled
    layers/platform.journal, entry 12: its check sum does not fit its text
    layers/platform.journal, entry 1: it has number 10: entries are missing or doubled
    layers/platform.journal, entry 1: its run r1 is not in the run journal, which was cut, removed or is an old copy
    ");
}

#[test]
fn a_newer_schema_is_not_guessed_at() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let text = String::from_utf8(disk.content(PLATFORM).unwrap()).unwrap();
    let line = text.lines().next().unwrap().replacen("\"v\":1", "\"v\":2", 1);
    let body = line.split_once(",\"sum\"").unwrap().0;
    let sum = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(body));
    disk.put(PLATFORM, format!("{body},\"sum\":\"{}\"}}\n", &sum[..16]).into_bytes());
    let journals = reopened(&disk).unwrap();
    let problem = &journals.problems()[&layer("platform")];
    insta::assert_snapshot!(problem, @"layers/platform.journal was written by a later castle (schema 2; this one reads up to 1)");
}

#[test]
fn a_damaged_layer_does_not_stop_the_others() {
    let disk = MemoryDisk::new();
    risen(&disk);
    disk.put("layers/secrets.journal", b"nonsense\n".to_vec());
    let mut journals = reopened(&disk).unwrap();
    assert_eq!(journals.problems().keys().map(LayerName::as_str).collect::<Vec<_>>(), ["secrets"]);
    assert_eq!(journals.records().steps.len(), 3);
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let refused = journals.append(Moment(3001), &layer("secrets"), super::incarnation(2));
    assert!(matches!(refused, Err(StateError::Corrupt(_))));
    let vip = StepId::new("platform", "vip");
    journals.append(Moment(3001), &layer("platform"), intent(&vip)).unwrap();
    journals.end_run(Moment(3002), RunOutcome::Failed).unwrap();
    // The run journal still remembers what the damaged file held.
    assert_eq!(reopened(&disk).unwrap().problems().len(), 1);
    assert_eq!(disk.content("layers/secrets.journal").unwrap(), b"nonsense\n");
}

#[test]
fn a_damaged_layer_can_be_set_aside_and_begun_anew() {
    let disk = MemoryDisk::new();
    risen(&disk);
    disk.put("layers/secrets.journal", b"nonsense\n".to_vec());
    let mut journals = reopened(&disk).unwrap();
    assert!(journals.set_aside(&layer("platform")).is_err(), "nothing is wrong with it");
    let aside = journals.set_aside(&layer("secrets")).unwrap().kept_as.unwrap();
    assert_eq!(aside, "layers/secrets.journal.damaged-1");
    assert_eq!(disk.content(&aside).unwrap(), b"nonsense\n");
    journals.start_run(Moment(3000), start("r2")).unwrap();
    journals.append(Moment(3001), &layer("secrets"), super::incarnation(2)).unwrap();
    journals.end_run(Moment(3002), RunOutcome::Done).unwrap();
    let read = reopened(&disk).unwrap();
    assert!(read.problems().is_empty());
    assert_eq!(read.records().incarnation, journals.records().incarnation);
}

#[test]
fn a_full_disk_stops_before_the_act_and_leaves_the_files_readable() {
    let whole = MemoryDisk::new();
    risen(&whole);
    let vip = StepId::new("platform", "vip");
    let mut refusals = 0;
    for space in (0..1500).step_by(7) {
        let disk = whole.copy();
        disk.set_space(Some(space));
        let mut journals = reopened(&disk).unwrap();
        let mut acknowledged = StepState::Absent.word();
        let mut run = || -> Result<(), StateError> {
            journals.start_run(Moment(3000), start("r2"))?;
            journals.append(Moment(3001), &layer("platform"), intent(&vip))?;
            journals.commit()?;
            acknowledged = "intended";
            journals.append(Moment(3002), &layer("platform"), outcome(&vip))?;
            journals.commit()?;
            acknowledged = "done";
            journals.end_run(Moment(3003), RunOutcome::Done)
        };
        if let Err(error) = run() {
            refusals += 1;
            assert!(matches!(error, StateError::Write { .. }), "{error}");
            assert!(error.hint().contains("free some space"));
        }
        let read = reopened(&disk).unwrap();
        assert!(read.problems().is_empty() && read.notices().is_empty(), "space {space}");
        assert_eq!(read.records().step(&vip).word(), acknowledged, "space {space}");
        disk.set_space(None);
        assert!(journals.commit().is_ok(), "after space was made, what was refused is written");
        assert!(reopened(&disk).is_ok());
    }
    assert!((20..200).contains(&refusals), "{refusals}");
}

#[test]
fn after_a_failed_sync_nothing_more_is_recorded() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    disk.set_syncs(Some(0));
    let vip = StepId::new("platform", "vip");
    journals.append(Moment(3001), &layer("platform"), intent(&vip)).unwrap();
    assert!(matches!(journals.commit(), Err(StateError::Poisoned { .. })));
    disk.set_syncs(None);
    assert!(matches!(journals.commit(), Err(StateError::Poisoned { .. })));
    let more = journals.append(Moment(3002), &layer("platform"), outcome(&vip));
    assert!(matches!(more, Err(StateError::Poisoned { .. })));
    assert!(reopened(&disk).unwrap().problems().is_empty());
}

#[test]
fn a_second_writer_is_noticed_and_not_overwritten() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let mut first = reopened(&disk).unwrap();
    let mut second = reopened(&disk).unwrap();
    first.start_run(Moment(3000), start("r2")).unwrap();
    let before = disk.content(RUN);
    let error = second.start_run(Moment(3000), start("r3")).unwrap_err();
    assert!(error.to_string().contains("somebody else writes"), "{error}");
    assert_eq!(disk.content(RUN), before);
}
