//! What can not be trusted is set aside, kept, and never named again; what a later castle wrote is left alone.

use castle_model::RunId;
use castle_model::event::RunOutcome;
use castle_model::time::Moment;

use crate::{Journals, MemoryDisk, SetAside, StateError};

use super::{incarnation, layer, reopened, risen, start};

const PLATFORM: &str = "layers/platform.journal";
const RUN: &str = "run.journal";

fn anew(disk: &MemoryDisk) -> Result<(Journals, Vec<SetAside>), StateError> {
    Journals::open_anew(Box::new(disk.clone()))
}

#[test]
fn without_a_run_journal_all_is_set_aside_and_kept() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let files = [RUN, PLATFORM, "layers/secrets.journal"];
    let mut before = files.map(|file| disk.content(file).unwrap());
    before[0][40] ^= 1;
    disk.put(RUN, before[0].clone());
    assert!(matches!(reopened(&disk), Err(StateError::Corrupt(_))));
    let (mut journals, aside) = anew(&disk).unwrap();
    assert!(journals.records().steps.is_empty() && journals.records().incarnation.is_none());
    for (file, bytes) in files.iter().zip(&before) {
        let kept = aside.iter().find(|aside| aside.file == *file).unwrap().kept_as.clone();
        assert_eq!(kept, Some(format!("{file}.damaged-1")));
        assert_eq!(disk.content(&kept.unwrap()).as_ref(), Some(bytes));
        assert_eq!(disk.content(file), None);
    }
    // The run that the layers name is not begun a second time.
    assert_eq!(journals.records().last_id(), Some(&RunId::new("r1")));
    let again = journals.start_run(Moment(3000), start("r1"));
    assert!(matches!(again, Err(StateError::Misuse { .. })));
    journals.start_run(Moment(3000), start("r2")).unwrap();
    journals.append(Moment(3001), &layer("secrets"), incarnation(1)).unwrap();
    journals.end_run(Moment(3002), RunOutcome::Done).unwrap();
    let read = reopened(&disk).unwrap();
    assert!(read.problems().is_empty());
    assert_eq!(read.records().last_id(), Some(&RunId::new("r2")));
}

#[test]
fn a_file_that_is_gone_is_not_said_to_be_kept() {
    let disk = MemoryDisk::new();
    risen(&disk);
    disk.remove(PLATFORM);
    let mut journals = reopened(&disk).unwrap();
    let aside = journals.set_aside(&layer("platform")).unwrap();
    assert_eq!(aside, SetAside { file: PLATFORM.to_owned(), kept_as: None });
    journals.start_run(Moment(3000), start("r2")).unwrap();
    journals.end_run(Moment(3002), RunOutcome::Done).unwrap();
    assert!(reopened(&disk).unwrap().problems().is_empty(), "the run journal has forgotten it");
}

#[test]
fn whoever_is_cut_off_between_setting_aside_and_the_next_run_finds_it_again() {
    let disk = MemoryDisk::new();
    risen(&disk);
    disk.put(PLATFORM, b"nonsense\n".to_vec());
    reopened(&disk).unwrap().set_aside(&layer("platform")).unwrap();
    let mut journals = reopened(&disk).unwrap();
    assert_eq!(journals.problems().len(), 1, "the run journal still misses it");
    assert_eq!(journals.set_aside(&layer("platform")).unwrap().kept_as, None);
    assert_eq!(disk.content("layers/platform.journal.damaged-1").unwrap(), b"nonsense\n");
}

#[test]
fn what_a_later_castle_wrote_is_never_set_aside() {
    let disk = MemoryDisk::new();
    risen(&disk);
    let text = String::from_utf8(disk.content(PLATFORM).unwrap()).unwrap();
    let line = text.lines().next().unwrap().replacen("\"v\":1", "\"v\":2", 1);
    let body = line.split_once(",\"sum\"").unwrap().0;
    let sum = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(body));
    disk.put(PLATFORM, format!("{body},\"sum\":\"{}\"}}\n", &sum[..16]).into_bytes());
    let aside = reopened(&disk).unwrap().set_aside(&layer("platform"));
    assert!(matches!(aside, Err(StateError::Newer { found: 2, .. })));
    disk.put(RUN, b"nonsense\n".to_vec());
    let files = [RUN, PLATFORM, "layers/secrets.journal"];
    let before = files.map(|file| disk.content(file));
    assert!(matches!(anew(&disk), Err(StateError::Newer { found: 2, .. })));
    assert_eq!(files.map(|file| disk.content(file)), before, "nothing was touched");
}
