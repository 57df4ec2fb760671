//! Reads one file back: every line checked, the fold made by the same function that recorded it.

use castle_model::{LayerName, RunId};

use crate::entry::{self, Entry, GENESIS, SCHEMA, Unreadable};
use crate::error::{Corruption, StateError, Torn};
use crate::record::Record;
use crate::records::Records;

/// What one file says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Replay {
    pub(crate) records: Records,
    /// The number of the first entry, and the chain before it.
    pub(crate) first: Option<(u64, String)>,
    /// The chain after each entry.
    pub(crate) chains: Vec<String>,
    /// Run, number within the run, and how many of the run were durable: of each entry.
    pub(crate) seen: Vec<(RunId, u64, u64)>,
    /// Bytes that hold whole entries.
    pub(crate) length: u64,
    /// Whether the last entry is whole but for its newline.
    pub(crate) unterminated: bool,
    /// An unfinished entry at the end.
    pub(crate) torn: Option<Torn>,
}

impl Replay {
    /// The number of the last entry; 0 if there is none.
    pub(crate) fn lseq(&self) -> u64 {
        self.first.as_ref().map_or(0, |(first, _)| first + self.chains.len() as u64 - 1)
    }

    /// The chain after the last entry.
    pub(crate) fn chain(&self) -> &str {
        self.chains.last().map_or(GENESIS, String::as_str)
    }

    /// The chain after the entry with this number, if the file says so.
    pub(crate) fn chain_at(&self, lseq: u64) -> Option<&str> {
        let (first, before) = self.first.as_ref()?;
        if lseq + 1 == *first {
            return Some(before);
        }
        let index = usize::try_from(lseq.checked_sub(*first)?).ok()?;
        self.chains.get(index).map(String::as_str)
    }
}

/// Reads a file that belongs to `layer`, or the run journal.
pub(crate) fn replay(
    file: &str,
    layer: Option<&LayerName>,
    bytes: &[u8],
) -> Result<Replay, StateError> {
    go_on(Replay::default(), file, layer, bytes)
}

/// Reads what follows what was read.
pub(crate) fn go_on(
    mut read: Replay,
    file: &str,
    layer: Option<&LayerName>,
    bytes: &[u8],
) -> Result<Replay, StateError> {
    let mut rest = bytes;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        take(&mut read, file, layer, &rest[..end])?;
        read.length += end as u64 + 1;
        rest = &rest[end + 1..];
    }
    if rest.is_empty() {
        return Ok(read);
    }
    if entry::is_torn(rest) && matches!(Entry::decode(rest), Err(Unreadable::Sum)) {
        let entry = read.lseq() + 1;
        read.torn = Some(Torn { file: file.to_owned(), entry, bytes: rest.len() as u64 });
    } else {
        take(&mut read, file, layer, rest)?;
        read.length += rest.len() as u64;
        read.unterminated = true;
    }
    Ok(read)
}

fn take(
    read: &mut Replay,
    file: &str,
    layer: Option<&LayerName>,
    line: &[u8],
) -> Result<(), StateError> {
    let expected = read.lseq() + 1;
    let corrupt = |why: String| {
        StateError::Corrupt(Corruption { file: file.to_owned(), entry: expected, why })
    };
    let entry = Entry::decode(line).map_err(|unreadable| match unreadable {
        Unreadable::Sum => corrupt("its check sum does not fit its text".to_owned()),
        Unreadable::Shape(why) => corrupt(format!("it is not an entry ({why})")),
        Unreadable::Newer(found) => {
            StateError::Newer { file: file.to_owned(), found, known: SCHEMA }
        }
    })?;
    if entry.layer.as_ref() != layer {
        let name = |layer: Option<&LayerName>| {
            layer.map_or_else(|| "the run journal".to_owned(), |l| format!("the layer {l}"))
        };
        let why = format!("it belongs to {}, not to {}", name(entry.layer.as_ref()), name(layer));
        return Err(corrupt(why));
    }
    let opens = read.first.is_none();
    let snapshot = matches!(entry.record, Record::Snapshot { .. });
    if snapshot && !opens {
        return Err(corrupt("a snapshot stands in the middle of the file".to_owned()));
    }
    if !snapshot && entry.lseq != expected {
        return Err(corrupt(format!(
            "it has number {}: entries are missing or doubled",
            entry.lseq
        )));
    }
    if !snapshot && entry.prev != read.chain() {
        return Err(corrupt("the chain is broken: an entry before it was exchanged".to_owned()));
    }
    read.records.apply(&entry).map_err(|illegal| corrupt(illegal.to_string()))?;
    if opens {
        read.first = Some((entry.lseq, entry.prev.clone()));
    }
    read.chains.push(entry::chain(&entry.prev, line));
    read.seen.push((entry.run, entry.seq, entry.durable));
    Ok(())
}
