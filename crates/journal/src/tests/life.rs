//! A recorded life in five runs whose files hold every kind of entry, and the disk after each of its commits.

use std::collections::BTreeSet;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{Class, Failure, Incarnation, StepId, Verb};

use crate::{Journals, MemoryDisk, Record, StateError};

use super::{incarnation, intent, layer, outcome, reopened, start};

/// Every file of the life.
pub(super) const FILES: [&str; 4] =
    ["layers/engine.journal", "layers/platform.journal", "layers/secrets.journal", "run.journal"];

/// A disk at one moment, and what was last said in a commit.
pub(super) struct Moments {
    /// The disk after each commit.
    pub(super) all: Vec<MemoryDisk>,
    /// Where the run ended that was the last to end.
    pub(super) ended: usize,
}

impl Moments {
    /// The disk when the last run was killed.
    pub(super) fn killed(&self) -> &MemoryDisk {
        &self.all[self.all.len() - 1]
    }

    /// The disk before the last run began.
    pub(super) fn ended(&self) -> &MemoryDisk {
        &self.all[self.ended]
    }
}

/// One thing that whoever records does.
pub(super) enum Act {
    Start(&'static str, Direction),
    Append(Record),
    Commit,
    End(RunOutcome),
    Compact,
}

fn vm() -> StepId {
    StepId::of("platform", "vm", "cp-01")
}

fn vip() -> StepId {
    StepId::new("platform", "vip")
}

fn store() -> StepId {
    StepId::new("engine", "store")
}

fn remove(step: StepId) -> Record {
    Record::Intent { step, verb: Verb::Remove, reason: "it is there".into() }
}

/// Up, and the files are rewritten; up with a failure; down; up with nothing to do; up, killed in the middle.
pub(super) fn acts() -> Vec<Act> {
    use Act::{Append, Commit, Compact, End, Start};
    let task = |step, task: &str| Record::Task { step, task: task.into() };
    let failure = Failure::new(Class::Denied, "hold the VIP", "403");
    vec![
        Start("r1", Direction::Up),
        Append(incarnation(1)),
        Commit,
        Append(intent(&vm())),
        Commit,
        Append(task(vm(), "UPID:1")),
        Commit,
        Append(outcome(&vm())),
        End(RunOutcome::Done),
        Compact,
        Start("r2", Direction::Up),
        Append(intent(&vip())),
        Append(intent(&store())),
        Commit,
        Append(task(store(), "UPID:2")),
        Append(Record::Failed { step: vip(), failure }),
        Commit,
        Append(outcome(&store())),
        End(RunOutcome::Failed),
        Start("r3", Direction::Down),
        Append(remove(store())),
        Append(remove(vm())),
        Commit,
        Append(Record::Undone { step: store() }),
        Append(Record::Undone { step: vm() }),
        Append(Record::Forgotten { step: vip() }),
        Append(Record::IncarnationEnded { id: Incarnation::from_bytes([1; 8]) }),
        End(RunOutcome::Done),
        Start("r4", Direction::Up),
        End(RunOutcome::Done),
        Start("r5", Direction::Up),
        Append(incarnation(2)),
        Commit,
        Append(intent(&vm())),
        Append(intent(&vip())),
        Append(intent(&store())),
        Commit,
    ]
}

/// Does one of them.
pub(super) fn perform(journals: &mut Journals, at: u64, act: Act) -> Result<(), StateError> {
    let at = Moment(at);
    match act {
        Act::Start(run, direction) => {
            let start = super::Start { direction, ..start(run) };
            journals.start_run(at, start)
        }
        Act::Append(record) => {
            let name = record.step().map_or("secrets", StepId::layer).to_owned();
            journals.append(at, &layer(&name), record)
        }
        Act::Commit => journals.commit().map(drop),
        Act::End(outcome) => journals.end_run(at, outcome),
        Act::Compact => journals.compact(at),
    }
}

/// Records the life, by the same calls as the engine.
pub(super) fn recorded() -> Moments {
    let disk = MemoryDisk::new();
    let mut journals = reopened(&disk).unwrap();
    let mut moments = Moments { all: Vec::new(), ended: 0 };
    for (at, act) in (1000..).zip(acts()) {
        let (is_end, is_append) = (matches!(act, Act::End(_)), matches!(act, Act::Append(_)));
        perform(&mut journals, at, act).unwrap();
        if is_end {
            moments.ended = moments.all.len();
        }
        if !is_append {
            moments.all.push(disk.copy());
        }
    }
    moments
}

/// The lines of a file, each with its newline.
pub(super) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

#[test]
fn the_recorded_life_holds_every_kind_of_entry_in_eight_kilobytes() {
    let moments = recorded();
    let mut words = BTreeSet::new();
    let mut total = 0;
    for name in FILES {
        let bytes = moments.killed().content(name).unwrap();
        total += bytes.len();
        for line in lines(&bytes) {
            let entry: serde_json::Value = serde_json::from_slice(line).unwrap();
            words.insert(entry["record"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(words.len(), 11, "{words:?}");
    assert!(total <= 8 << 10, "{total}");
}
