//! Every bit and every cut of a recorded life, files swapped, old and doubled: noticed, recovered, or on the short list
//! of what no file can tell.

use std::collections::BTreeSet;

use castle_model::LayerName;

use crate::replay::{Replay, go_on, replay};
use crate::{MemoryDisk, Records, StateError};

use super::life::{FILES, lines, recorded};
use super::reopened;

/// What a reader learns from a spoilt folder.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    /// Damage, with file and entry.
    Damage(String, u64),
    /// An unfinished entry that was cut off, with file and entry.
    Unfinished(String, u64),
    /// Nothing, and everything is as it was.
    Same,
    /// Nothing, and something is not as it was.
    Silent,
}

fn told(disk: &MemoryDisk, whole: &Records) -> Told {
    let damage = |error: &StateError| match error {
        StateError::Corrupt(found) => Told::Damage(found.file.clone(), found.entry),
        other => panic!("damage is told as something else: {other}"),
    };
    let before: Vec<_> = FILES.map(|name| disk.content(name)).into();
    let read = match reopened(disk) {
        Ok(read) => read,
        Err(error) => {
            let after: Vec<_> = FILES.map(|name| disk.content(name)).into();
            assert_eq!(after, before, "touched, and refused all the same");
            return damage(&error);
        }
    };
    if let Some(problem) = read.problems().values().next() {
        return damage(problem);
    }
    if let Some(torn) = read.notices().first() {
        return Told::Unfinished(torn.file.clone(), torn.entry);
    }
    if read.records() == whole { Told::Same } else { Told::Silent }
}

fn layer_of(name: &str) -> Option<LayerName> {
    Some(name.strip_prefix("layers/")?.strip_suffix(".journal")?.parse().unwrap())
}

/// A file line by line: what was read before each line, its text, and the number by which it is called when damaged.
fn prefixes(name: &str, bytes: &[u8]) -> Vec<(Replay, usize, Vec<u8>, u64)> {
    let of = layer_of(name);
    let (mut read, mut offset, mut found) = (Replay::default(), 0, Vec::new());
    for line in lines(bytes) {
        found.push((read.clone(), offset, line.to_vec(), read.lseq() + 1));
        read = go_on(read, name, of.as_ref(), line).unwrap();
        offset += line.len();
    }
    found
}

#[test]
fn every_flipped_bit_is_named_by_file_and_entry() {
    let moments = recorded();
    let mut flips = 0;
    for name in FILES {
        let (of, bytes) = (layer_of(name), moments.killed().content(name).unwrap());
        for (before, offset, line, entry) in prefixes(name, &bytes) {
            // What follows is read only where the line itself does not tell.
            let mut rest = bytes[offset..].to_vec();
            for index in 0..line.len() {
                for bit in 0..8 {
                    rest[index] ^= 1 << bit;
                    match go_on(before.clone(), name, of.as_ref(), &rest) {
                        Err(StateError::Corrupt(found)) => {
                            assert_eq!((found.file.as_str(), found.entry), (name, entry));
                        }
                        other => panic!("{name}: bit {bit} of byte {}: {other:?}", offset + index),
                    }
                    rest[index] ^= 1 << bit;
                    flips += 1;
                }
            }
        }
    }
    assert!(flips > 40_000, "{flips}");
}

/// Cuts every file of a disk at every byte, and says where nothing was told although something was lost: the file, and
/// how many of its entries are left.
fn silent_cuts(disk: &MemoryDisk) -> BTreeSet<(String, usize)> {
    let whole = reopened(disk).unwrap().records().clone();
    let mut silent = BTreeSet::new();
    for name in FILES {
        let (of, bytes) = (layer_of(name), disk.content(name).unwrap());
        for (number, (before, offset, line, entry)) in (0..).zip(prefixes(name, &bytes)) {
            // In the middle of an entry every cut reads the same, so that one stands for all against the other files.
            let middle = line.len() / 2;
            for length in 1..line.len() - 1 {
                let read = go_on(before.clone(), name, of.as_ref(), &line[..length]).unwrap();
                let torn = read.torn.map(|torn| (torn.entry, torn.bytes));
                assert_eq!(torn, Some((entry, length as u64)), "{name}");
                assert_eq!((read.length, read.seen), (before.length, before.seen.clone()));
            }
            for length in [0, 1, middle, line.len() - 2, line.len() - 1] {
                let spoilt = disk.copy();
                spoilt.put(name, bytes[..offset + length].to_vec());
                match told(&spoilt, &whole) {
                    // Where the cut entry is not seen, what it is missed by is named: a later number, or its run.
                    Told::Damage(..) => {}
                    Told::Unfinished(file, found) => {
                        assert_eq!((file.as_str(), found), (name, entry));
                    }
                    Told::Same => assert_eq!(length, line.len() - 1, "{name}, entry {entry}"),
                    Told::Silent => {
                        // An entry that lacks only its newline is whole.
                        let whole = usize::from(length == line.len() - 1);
                        assert!(length == 0 || whole == 1, "{name}, entry {entry}, unnoticed");
                        silent.insert((name.to_owned(), number + whole));
                    }
                }
            }
        }
    }
    silent
}

#[test]
fn every_cut_is_noticed_or_recovered_but_those_that_the_reference_names() {
    let moments = recorded();
    let count = |name: &str, disk: &MemoryDisk| lines(&disk.content(name).unwrap()).len();
    let list = |entries: &[(&str, usize)]| -> BTreeSet<(String, usize)> {
        entries.iter().map(|(name, left)| ((*name).to_owned(), *left)).collect()
    };

    let ended = moments.ended();
    let runs = count(FILES[3], ended);
    // What no layer knows of: the last run, which had nothing to record in any, and the end of the one before it.
    assert_eq!(silent_cuts(ended), list(&[1, 2, 3].map(|lost| (FILES[3], runs - lost))));

    let killed = moments.killed();
    let (engine, platform) = (count(FILES[0], killed), count(FILES[1], killed));
    // The last batch: one entry of the one layer, two of the other.
    let batch = [(FILES[0], engine - 1), (FILES[1], platform - 1), (FILES[1], platform - 2)];
    assert_eq!(silent_cuts(killed), list(&batch));
}

#[test]
fn an_old_copy_of_any_file_is_noticed_but_within_the_last_batch() {
    let moments = recorded();
    let killed = moments.killed();
    let whole = reopened(killed).unwrap().records().clone();
    let mut noticed = 0;
    let before_last = &moments.all[moments.all.len() - 2];
    for (at, old) in moments.all.iter().enumerate() {
        for name in FILES {
            let (Some(copy), now) = (old.content(name), killed.content(name)) else { continue };
            if Some(&copy) == now.as_ref() {
                continue;
            }
            let spoilt = killed.copy();
            spoilt.put(name, copy);
            match told(&spoilt, &whole) {
                Told::Damage(file, _) => {
                    noticed += 1;
                    // A layer that is behind its run is missed by number; the run journal, by the runs it lacks.
                    assert!(file == name || name == FILES[3] || file == FILES[3], "{name}: {file}");
                }
                Told::Silent => {
                    assert_eq!(old.content(name), before_last.content(name), "{name} of {at}");
                }
                other => panic!("{name} of moment {at}: {other:?}"),
            }
        }
    }
    assert!(noticed > 30, "{noticed}");
}

#[test]
fn swapped_emptied_removed_and_doubled_files_are_named() {
    let moments = recorded();
    for disk in [moments.ended(), moments.killed()] {
        let whole = reopened(disk).unwrap().records().clone();
        let content = |name: &str| disk.content(name).unwrap();
        let spoil = |changes: &[(&str, Option<Vec<u8>>)]| {
            let spoilt = disk.copy();
            for (name, bytes) in changes {
                match bytes {
                    Some(bytes) => spoilt.put(name, bytes.clone()),
                    None => spoilt.remove(name),
                }
            }
            told(&spoilt, &whole)
        };
        for (index, one) in FILES.into_iter().enumerate() {
            for other in &FILES[index + 1..] {
                let swapped = [(one, Some(content(other))), (*other, Some(content(one)))];
                let Told::Damage(file, 1) = spoil(&swapped) else { panic!("{one} and {other}") };
                assert!(file == one || file == *other);
            }
            for bytes in [None, Some(Vec::new())] {
                assert!(matches!(spoil(&[(one, bytes)]), Told::Damage(..)), "{one} emptied");
            }
            let (bytes, parts) = (content(one), lines(&content(one)).len());
            for doubled in 1..=parts {
                let tail = lines(&bytes)[parts - doubled..].concat();
                let longer = [bytes.clone(), tail].concat();
                let Told::Damage(file, entry) = spoil(&[(one, Some(longer))]) else {
                    panic!("{one}: {doubled} doubled entries")
                };
                let end = replay(one, layer_of(one).as_ref(), &bytes).unwrap().lseq();
                assert_eq!((file.as_str(), entry), (one, end + 1));
            }
        }
    }
}

/// What is lost without a trace is what a run that was killed a moment earlier would not have written either.
#[test]
fn what_no_file_can_tell_is_as_if_the_run_had_been_killed_a_moment_earlier() {
    let moments = recorded();
    for disk in [moments.ended(), moments.killed()] {
        let whole = reopened(disk).unwrap().records().clone();
        for (name, left) in silent_cuts_at_borders(disk, &whole) {
            let spoilt = disk.copy();
            let bytes = disk.content(&name).unwrap();
            spoilt.put(&name, lines(&bytes)[..left].concat());
            let read = reopened(&spoilt).unwrap();
            let lost: Vec<_> = whole
                .steps
                .iter()
                .filter(|(id, state)| read.records().step(id) != *state)
                .map(|(id, state)| (id.to_string(), state.word()))
                .collect();
            assert!(lost.iter().all(|(_, word)| *word == "intended"), "{name} {left}: {lost:?}");
            assert_eq!(read.records().incarnation, whole.incarnation);
        }
    }
}

fn silent_cuts_at_borders(disk: &MemoryDisk, whole: &Records) -> Vec<(String, usize)> {
    let mut silent = Vec::new();
    for name in FILES {
        let bytes = disk.content(name).unwrap();
        for left in 0..lines(&bytes).len() {
            let spoilt = disk.copy();
            spoilt.put(name, lines(&bytes)[..left].concat());
            if told(&spoilt, whole) == Told::Silent {
                silent.push((name.to_owned(), left));
            }
        }
    }
    assert!(!silent.is_empty());
    silent
}
