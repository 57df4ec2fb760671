//! One line of a journal: how it is written, and how every flipped bit in it is found.

use castle_model::time::Moment;
use castle_model::{LayerName, RunId};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::record::Record;

/// The version of the journal's schema. Raised when an older castle could misread a file.
pub const SCHEMA: u32 = 1;

/// The chain before the first entry of a file.
pub(crate) const GENESIS: &str = "00000000000000000000000000000000";

/// Every line begins so.
pub(crate) const OPENING: &[u8] = b"{\"v\":";

const SUM_KEY: &[u8] = b",\"sum\":\"";
const SUM_DIGITS: usize = 16;
const SUM_END: &[u8] = b"\"}";

/// One entry, as it stands in the file, without its check sum (which is the last key of the line).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The schema's version.
    pub v: u32,
    /// The run that wrote it.
    pub run: RunId,
    /// Its number within the run, over all files, from 1.
    pub seq: u64,
    /// How many entries of the run were surely durable, over all files, when it was written.
    pub durable: u64,
    /// The layer whose file it belongs to; none in the run journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<LayerName>,
    /// Its number within the file, from 1; a compacted file begins with a later one.
    pub lseq: u64,
    /// When.
    pub at: Moment,
    /// What.
    #[serde(flatten)]
    pub record: Record,
    /// The chain over all entries before it in the file.
    pub prev: String,
}

/// Where a file ends: the number of its last entry and the chain over all of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The number of the last entry.
    pub lseq: u64,
    /// The chain up to and with that entry.
    pub chain: String,
}

/// Why a line is not an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// The check sum is missing or does not fit.
    Sum,
    /// The sum fits, but a later castle wrote it.
    Newer(u32),
    /// The sum fits, yet the text is not an entry.
    Shape(String),
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u32,
}

impl Entry {
    /// The line for this entry, without its newline.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut line = serde_json::to_vec(self)?;
        line.pop();
        let sum = digest(&[&line], SUM_DIGITS);
        line.extend_from_slice(SUM_KEY);
        line.extend_from_slice(sum.as_bytes());
        line.extend_from_slice(SUM_END);
        Ok(line)
    }

    /// Reads a whole line, given without its newline.
    pub(crate) fn decode(line: &[u8]) -> Result<Self, Unreadable> {
        let body = line
            .len()
            .checked_sub(SUM_KEY.len() + SUM_DIGITS + SUM_END.len())
            .ok_or(Unreadable::Sum)?;
        let (body, rest) = line.split_at(body);
        let sum = rest
            .strip_prefix(SUM_KEY)
            .and_then(|rest| rest.strip_suffix(SUM_END))
            .ok_or(Unreadable::Sum)?;
        if digest(&[body], SUM_DIGITS).as_bytes() != sum {
            return Err(Unreadable::Sum);
        }
        let shape = |error: serde_json::Error| Unreadable::Shape(error.to_string());
        let version: VersionOnly = serde_json::from_slice(line).map_err(shape)?;
        if version.v > SCHEMA {
            return Err(Unreadable::Newer(version.v));
        }
        serde_json::from_slice(line).map_err(shape)
    }
}

/// The check sum of a line of a small journal.
pub(crate) fn sum(line: &[u8]) -> String {
    digest(&[line], SUM_DIGITS)
}

/// The chain after a line.
pub(crate) fn chain(prev: &str, line: &[u8]) -> String {
    digest(&[prev.as_bytes(), line], GENESIS.len())
}

/// Whether `tail`, which has no newline, can be what a stopped write leaves of a line of ours.
///
/// A file system that lost the end of a write may also have filled it with zeros. A whole entry with
/// something after it is no such thing: there the newline itself was damaged.
pub(crate) fn is_torn(tail: &[u8]) -> bool {
    let written = tail.iter().rposition(|b| *b != 0).map_or(0, |last| last + 1);
    let written = &tail[..written];
    let begun = written.len().min(OPENING.len());
    written[..begun] == OPENING[..begun] && !holds_an_entry(tail)
}

fn holds_an_entry(tail: &[u8]) -> bool {
    let found = tail.windows(SUM_KEY.len()).rposition(|window| window == SUM_KEY);
    found.is_some_and(|at| {
        let end = at + SUM_KEY.len() + SUM_DIGITS + SUM_END.len();
        tail.len() > end && !matches!(Entry::decode(&tail[..end]), Err(Unreadable::Sum))
    })
}

fn digest(parts: &[&[u8]], digits: usize) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut text = hex::encode(hasher.finalize());
    text.truncate(digits);
    text
}
