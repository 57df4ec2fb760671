//! Laws over random histories: reading back gives what was recorded, and compaction changes nothing.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::time::Moment;
use castle_model::{Change, Class, Failure, StepId, Verb};
use proptest::prelude::*;

use crate::{Journals, MemoryDisk, Record, StateError};

use super::{incarnation, layer, reopened, start};

const LAYERS: [&str; 3] = ["secrets", "platform", "gitops"];

#[derive(Debug, Clone)]
enum Act {
    Append(usize, Box<Record>),
    Commit,
    Restart { clean: bool, compact: bool },
}

fn any_record(layer: &'static str) -> impl Strategy<Value = Record> {
    let verbs = [Verb::Create, Verb::Adopt, Verb::Update, Verb::Replace, Verb::Remove];
    let changes = [Change::Created, Change::Updated, Change::Unchanged, Change::Removed];
    let step = (0_u8..4).prop_map(move |n| StepId::of(layer, "thing", &n.to_string()));
    (step, 0_u8..8, "\\PC{0,12}", 0_usize..4, 0_usize..5).prop_map(
        move |(step, kind, text, change, verb)| match kind {
            0 | 1 => Record::Intent { step, verb: verbs[verb], reason: text },
            2 => Record::Task { step, task: text },
            3 | 4 => Record::Outcome {
                step,
                change: changes[change],
                outputs: BTreeMap::from([("text".to_owned(), text.clone())]),
                proof: text,
                took_ms: change as u64,
            },
            5 => Record::Failed { step, failure: Failure::new(Class::Gone, "look", text) },
            6 => Record::Undone { step },
            _ if layer == "secrets" => incarnation(if verb > 2 { 1 } else { 2 }),
            _ => Record::Forgotten { step },
        },
    )
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        8 => (0_usize..3).prop_flat_map(|at| any_record(LAYERS[at]).prop_map(move |r| Act::Append(at, Box::new(r)))),
        3 => Just(Act::Commit),
        1 => (any::<bool>(), any::<bool>()).prop_map(|(clean, compact)| Act::Restart { clean, compact }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn replay_equals_live(acts in prop::collection::vec(any_act(), 1..80)) {
        let disk = MemoryDisk::new();
        let mut journals = Journals::open(Box::new(disk.clone())).unwrap();
        journals.start_run(Moment(0), start("r0")).unwrap();
        for (number, act) in acts.into_iter().enumerate() {
            let at = Moment(number as u64);
            match act {
                Act::Append(index, record) => match journals.append(at, &layer(LAYERS[index]), *record) {
                    Ok(()) | Err(StateError::Illegal(_)) => {}
                    Err(error) => panic!("{error}"),
                },
                Act::Commit => {
                    journals.commit().unwrap();
                    disk.lose_power();
                    let read = reopened(&disk).unwrap();
                    prop_assert_eq!(read.records(), journals.records());
                }
                Act::Restart { clean, compact } => {
                    if clean {
                        journals.end_run(at, RunOutcome::Done).unwrap();
                        if compact {
                            journals.compact(at).unwrap();
                        }
                    } else {
                        journals.commit().unwrap();
                    }
                    let live = journals.records().clone();
                    journals = reopened(&disk).unwrap();
                    prop_assert!(journals.problems().is_empty());
                    prop_assert_eq!(&journals.records().steps, &live.steps);
                    prop_assert_eq!(&journals.records().incarnation, &live.incarnation);
                    prop_assert_eq!(&journals.records().last_run, &live.last_run);
                    journals.start_run(at, start(&format!("r{}", number + 1))).unwrap();
                }
            }
        }
    }
}
