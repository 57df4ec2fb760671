//! Checks the files against each other: what the run journal saw of a layer must still be there.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::{LayerName, RunId};

use crate::entry::Head;
use crate::error::Corruption;
use crate::replay::Replay;

/// Whether a layer's file still holds all that the run journal has seen in it.
pub(crate) fn check_head(file: &str, read: &Replay, head: Option<&Head>) -> Result<(), Corruption> {
    let Some(head) = head else { return Ok(()) };
    let corrupt =
        |entry, why: &str| Err(Corruption { file: file.to_owned(), entry, why: why.to_owned() });
    match read.chain_at(head.lseq) {
        Some(chain) if chain == head.chain => Ok(()),
        Some(_) => corrupt(head.lseq, "it is not the entry that the run journal has seen"),
        None if read.lseq() == 0 => {
            let emptied =
                format!("the run journal has seen {} entries here, and none is left", head.lseq);
            corrupt(1, &emptied)
        }
        None if read.lseq() < head.lseq => {
            let missing = format!(
                "the run journal has seen entries up to {}: the file was cut or is an old copy",
                head.lseq
            );
            corrupt(read.lseq() + 1, &missing)
        }
        None => corrupt(head.lseq, "the file begins later than the run journal knows"),
    }
}

/// Whether every entry of a layer belongs to a run that the run journal knows.
pub(crate) fn check_runs(
    file: &str,
    read: &Replay,
    known: &BTreeSet<RunId>,
) -> Result<(), Corruption> {
    match read.seen.iter().position(|(run, ..)| !known.contains(run)) {
        None => Ok(()),
        Some(index) => {
            let first = read.first.as_ref().map_or(1, |(first, _)| *first);
            let why = format!(
                "its run {} is not in the run journal, which was cut, removed or is an old copy",
                read.seen[index].0
            );
            Err(Corruption { file: file.to_owned(), entry: first + index as u64, why })
        }
    }
}

/// Whether all that an unfinished run has surely written is there, over all files.
///
/// Only the last batch of a run that was killed can be cut off at the border of an entry without a trace here.
pub(crate) fn check_unfinished<'a>(
    run: &RunId,
    files: impl Iterator<Item = &'a Replay>,
) -> Result<(), Corruption> {
    let mut present = BTreeSet::new();
    let mut durable = 0;
    for (_, seq, known) in files.flat_map(|read| &read.seen).filter(|(of, ..)| of == run) {
        present.insert(*seq);
        durable = durable.max(*known);
    }
    match (1..=durable).find(|seq| !present.contains(seq)) {
        None => Ok(()),
        Some(seq) => {
            let why = format!(
                "entry {seq} of run {run} was durable and is in no file: a layer's journal was cut"
            );
            Err(Corruption { file: "run.journal".to_owned(), entry: seq, why })
        }
    }
}

/// The heads of the files that could be read; those of the others as they were known.
pub(crate) fn heads_with<'a>(
    known: &BTreeMap<LayerName, Head>,
    files: impl Iterator<Item = (&'a LayerName, Head)>,
) -> BTreeMap<LayerName, Head> {
    let mut heads = known.clone();
    heads.extend(files.map(|(layer, head)| (layer.clone(), head)));
    heads
}
