//! Tests of the room as a whole: what is recorded is read back, and damage is never read over.

mod aside;
mod damage;
mod every_byte;
mod every_call;
mod folder;
mod laws;
mod life;
mod rebirth;
mod runs;

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Change, Incarnation, LayerName, RunId, StepId, Verb};

use crate::{Journals, MemoryDisk, Record, Records, Start, StateError, StepState};

fn layer(name: &str) -> LayerName {
    name.parse().unwrap()
}

fn start(run: &str) -> Start {
    Start {
        run: RunId::new(run),
        castle: "blue".parse().unwrap(),
        direction: Direction::Up,
        plan: "c0ffee".into(),
        version: "0.1.0".into(),
    }
}

fn intent(step: &StepId) -> Record {
    Record::Intent { step: step.clone(), verb: Verb::Create, reason: "it is absent".into() }
}

fn outcome(step: &StepId) -> Record {
    Record::Outcome {
        step: step.clone(),
        change: Change::Created,
        proof: "seen running".into(),
        outputs: BTreeMap::from([("vmid".to_owned(), "421".to_owned())]),
        took_ms: 1200,
    }
}

fn incarnation(id: u8) -> Record {
    Record::Incarnation { id: Incarnation::from_bytes([id; 8]) }
}

/// Two layers, one run that ended well, one step after the other.
fn risen(disk: &MemoryDisk) -> Records {
    let mut journals = Journals::open(Box::new(disk.clone())).unwrap();
    journals.start_run(Moment(1000), start("r1")).unwrap();
    journals.append(Moment(1001), &layer("secrets"), incarnation(1)).unwrap();
    journals.commit().unwrap();
    for (number, node) in ["cp-01", "cp-02", "w-01"].iter().enumerate() {
        let step = StepId::of("platform", "vm", node);
        let at = Moment(1002 + number as u64);
        journals.append(at, &layer("platform"), intent(&step)).unwrap();
        journals.commit().unwrap();
        let task = Record::Task { step: step.clone(), task: format!("UPID:{number}") };
        journals.append(at, &layer("platform"), task).unwrap();
        journals.append(at, &layer("platform"), outcome(&step)).unwrap();
        journals.commit().unwrap();
    }
    journals.end_run(Moment(2000), RunOutcome::Done).unwrap();
    journals.records().clone()
}

fn reopened(disk: &MemoryDisk) -> Result<Journals, StateError> {
    Journals::open(Box::new(disk.clone()))
}

#[test]
fn what_is_committed_is_read_back_even_after_a_loss_of_power() {
    let disk = MemoryDisk::new();
    let live = risen(&disk);
    disk.lose_power();
    let journals = reopened(&disk).unwrap();
    assert_eq!(journals.records().steps, live.steps);
    assert_eq!(journals.records(), &live);
    assert_eq!(live.steps.len(), 3);
    assert_eq!(live.incarnation, Some(Incarnation::from_bytes([1; 8])));
    assert!(journals.problems().is_empty() && journals.notices().is_empty());
}

#[test]
fn what_is_not_committed_is_not_promised() {
    let disk = MemoryDisk::new();
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(1), start("r1")).unwrap();
    let step = StepId::new("platform", "image");
    journals.append(Moment(2), &layer("platform"), intent(&step)).unwrap();
    assert_eq!(journals.records().step(&step).word(), "intended");
    disk.lose_power();
    assert_eq!(*reopened(&disk).unwrap().records().step(&step), StepState::Absent);
}

#[test]
fn a_line_reads_like_a_sentence() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let text = String::from_utf8(disk.content("layers/platform.journal").unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().take(3).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"v":1,"run":"r1","seq":3,"durable":2,"layer":"platform","lseq":1,"at":1002,"record":"intent","step":"platform/vm/cp-01","verb":"create","reason":"it is absent","prev":"00000000000000000000000000000000","sum":"8bf971289b5f39d5"}
    {"v":1,"run":"r1","seq":4,"durable":3,"layer":"platform","lseq":2,"at":1002,"record":"task","step":"platform/vm/cp-01","task":"UPID:0","prev":"5ccb86be07b3a7bcd5ce2edeab5f81a2","sum":"beaf029658a1fed6"}
    {"v":1,"run":"r1","seq":5,"durable":3,"layer":"platform","lseq":3,"at":1002,"record":"outcome","step":"platform/vm/cp-01","change":"created","proof":"seen running","outputs":{"vmid":"421"},"took_ms":1200,"prev":"260711f57eb2bb25000a7eef84eaa9a3","sum":"c4e8d05c57da1d7c"}
    "#);
}

#[test]
fn one_sync_serves_all_steps_of_a_turn() {
    let disk = MemoryDisk::new();
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(1), start("r1")).unwrap();
    for number in 0..100 {
        let step = StepId::of("platform", "vm", &number.to_string());
        journals.append(Moment(2), &layer("platform"), intent(&step)).unwrap();
    }
    assert_eq!(journals.commit().unwrap(), 1);
    assert_eq!(journals.commit().unwrap(), 0);
    assert_eq!(disk.synced(), 2);
}

#[test]
fn a_thousand_steps_take_one_sync_a_batch_and_one_pass_to_read() {
    let disk = MemoryDisk::new();
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(1), start("r1")).unwrap();
    let mut syncs = 0;
    for batch in 0..20 {
        let steps: Vec<StepId> =
            (0..50).map(|n| StepId::of("platform", "vm", &format!("{batch}-{n}"))).collect();
        for record in [intent, outcome] {
            for step in &steps {
                journals.append(Moment(2), &layer("platform"), record(step)).unwrap();
            }
            syncs += journals.commit().unwrap();
        }
    }
    assert_eq!(syncs, 40);
    assert_eq!(reopened(&disk).unwrap().records(), journals.records());
    assert_eq!(journals.records().steps.len(), 1000);
}

#[test]
fn records_outside_of_a_run_or_in_the_wrong_place_are_refused() {
    let mut journals = Journals::in_memory().unwrap();
    let step = StepId::new("platform", "image");
    let misuse = journals.append(Moment(1), &layer("platform"), intent(&step));
    assert!(matches!(misuse, Err(StateError::Misuse { .. })));
    journals.start_run(Moment(1), start("r1")).unwrap();
    let again = journals.start_run(Moment(1), start("r2"));
    assert!(matches!(again, Err(StateError::Misuse { .. })));
    for (where_, record) in [("engine", intent(&step)), ("engine", incarnation(1))] {
        let wrong = journals.append(Moment(2), &layer(where_), record);
        assert!(matches!(wrong, Err(StateError::Illegal(_))));
    }
    let ended = Record::IncarnationEnded { id: Incarnation::from_bytes([9; 8]) };
    let wrong = journals.append(Moment(2), &layer("secrets"), ended);
    assert!(matches!(wrong, Err(StateError::Illegal(_))));
    journals.end_run(Moment(3), RunOutcome::Failed).unwrap();
    assert!(journals.append(Moment(4), &layer("platform"), intent(&step)).is_err());
    let reused = journals.start_run(Moment(5), start("r1"));
    assert!(matches!(reused, Err(StateError::Misuse { .. })));
    journals.start_run(Moment(5), start("r3")).unwrap();
}

#[test]
fn a_life_ends_and_another_begins() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let id = Incarnation::from_bytes([1; 8]);
    journals.append(Moment(3001), &layer("secrets"), Record::IncarnationEnded { id }).unwrap();
    journals.end_run(Moment(3002), RunOutcome::Done).unwrap();
    assert_eq!(reopened(&disk).unwrap().records().incarnation, None);
}

#[test]
fn compaction_keeps_the_fold_and_shortens_the_files() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(3000), start("r2")).unwrap();
    let step = StepId::new("platform", "vip");
    let proof = "v".repeat(1000);
    for number in 0..100 {
        let record = Record::Outcome {
            step: step.clone(),
            change: Change::Unchanged,
            proof: format!("{number} {proof}"),
            outputs: BTreeMap::new(),
            took_ms: 1,
        };
        journals.append(Moment(3001), &layer("platform"), record).unwrap();
    }
    assert!(matches!(journals.compact(Moment(3002)), Err(StateError::Misuse { .. })));
    journals.end_run(Moment(3002), RunOutcome::Done).unwrap();
    let before = disk.content("layers/platform.journal").unwrap();
    assert!(journals.compact_if_grown(Moment(3003)).unwrap());
    assert!(!journals.compact_if_grown(Moment(3003)).unwrap());
    let live = journals.records().clone();
    let after = disk.content("layers/platform.journal").unwrap();
    assert!(after.len() * 10 < before.len());
    let read = reopened(&disk).unwrap();
    assert_eq!(read.records().steps, live.steps);
    assert_eq!(read.records().incarnation, live.incarnation);
    assert_eq!(read.records().last_run, live.last_run);

    // The long file is what the short one says, so that meeting it again is no damage.
    disk.put("layers/platform.journal", before);
    assert_eq!(reopened(&disk).unwrap().problems().len(), 1, "an old copy behind the head");

    // And a compacted folder goes on.
    disk.put("layers/platform.journal", after);
    let mut journals = reopened(&disk).unwrap();
    journals.start_run(Moment(4000), start("r4")).unwrap();
    journals.append(Moment(4001), &layer("platform"), intent(&step)).unwrap();
    journals.end_run(Moment(4002), RunOutcome::Interrupted).unwrap();
    assert_eq!(reopened(&disk).unwrap().records().step(&step).word(), "intended");
}

#[test]
fn the_reference_explains_every_record() {
    let reference = include_str!("../../../docs/reference/state.md");
    let error = serde_json::from_str::<Record>(r#"{"record":"?"}"#).unwrap_err().to_string();
    let listed = error.split_once("expected one of ").unwrap().1;
    let words: Vec<&str> = listed.split('`').skip(1).step_by(2).collect();
    assert_eq!(words.len(), 11);
    for word in words {
        assert!(reference.contains(&format!("| `{word}` |")), "{word}");
    }
}
