//! Keeps a world on disk: an append-only log of inputs and snapshots, so that it outlives its process.
//!
//! ```text
//! rehearsal/            0700, one process at a time (`lock` names the holder)
//!   world.json          0600, a snapshot: one line about it, then the datacenter
//!   world.log           0600, every input since: {"sum":"…","entry":{"v":1,"n":7,"at":1200,"input":…}}
//! ```
//! An input is written before its answer leaves. There is no fsync: a world need not survive its host. Whoever only
//! looks takes no lock and writes nothing.

use std::cmp::Ordering;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::world::{Datacenter, FORMAT, Input};

mod error;
mod place;

pub use error::{Holder, StoreError};

const SNAPSHOT: &str = "world.json";
const LOG: &str = "world.log";
const LOCK: &str = "lock";

/// Who has written his number into the lock of the world in a folder, whether he holds it still or not.
pub(crate) fn holder(folder: &Path) -> Option<Holder> {
    let mut lock = place::open_to_read(&folder.join(LOCK)).ok().flatten()?;
    Some(place::holder(&mut lock))
}

/// A line of the log: this, the check sum, [`MIDDLE`], the entry, `}`.
const HEAD: &str = "{\"sum\":\"";
const MIDDLE: &str = "\",\"entry\":";
const SUM_DIGITS: usize = 16;

/// After so many inputs a snapshot is due: replaying them costs some ten milliseconds.
const SNAPSHOT_EVERY: u64 = 5_000;

/// A log so short at a clean end is left to the next reader: a snapshot costs more than replaying it.
const SHORT: u64 = 64;

/// How often a look begins again because the host took a snapshot meanwhile.
const LOOKS: u32 = 5;

/// The open files of one world.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    log: File,
    number: u64,
    snapshot_at: u64,
    /// Holds the lock until it is dropped.
    _lock: File,
}

#[derive(Serialize, Deserialize)]
struct Entry<I> {
    v: u32,
    n: u64,
    at: u64,
    input: I,
}

/// The first line of a snapshot.
#[derive(Serialize, Deserialize)]
struct About {
    format: u32,
    number: u64,
    sum: String,
}

impl Store {
    /// Opens the world in a folder for a command, which others are told of meanwhile, or makes it by `birth` where
    /// there is none.
    ///
    /// # Errors
    /// If it is in use, damaged, written by a newer castle, or the file system refuses.
    pub fn open(
        folder: &Path,
        command: &str,
        birth: impl FnOnce() -> Datacenter,
    ) -> Result<(Self, Datacenter), StoreError> {
        place::make_folder(folder)?;
        let lock = lock(folder, command)?;
        let snapshot = read_snapshot(&folder.join(SNAPSHOT))?;
        let fresh = snapshot.is_none();
        let log_path = folder.join(LOG);
        if fresh && fs::metadata(&log_path).is_ok_and(|meta| meta.len() > 0) {
            return Err(damaged(
                &folder.join(SNAPSHOT),
                "its start",
                "it is missing, and its log is not",
            ));
        }
        let (mut datacenter, number) = snapshot.unwrap_or_else(|| (birth(), 0));
        let log = place::open(&log_path)?;
        let mut store =
            Self { folder: folder.to_owned(), log, number, snapshot_at: number, _lock: lock };
        if fresh {
            store.snapshot(&datacenter)?;
        } else {
            store.catch_up(&mut datacenter)?;
        }
        Ok((store, datacenter))
    }

    /// Writes an input that was applied.
    ///
    /// # Errors
    /// If the file system refuses: then the world on disk is behind, and must not be spoken for any more.
    pub fn append(&mut self, at: u64, input: &Input) -> Result<(), StoreError> {
        let entry = Entry { v: FORMAT, n: self.number + 1, at, input };
        let text = to_json(&entry, &self.folder.join(LOG))?;
        let line = format!("{HEAD}{}{MIDDLE}{text}}}\n", sum(text.as_bytes()));
        self.log
            .write_all(line.as_bytes())
            .map_err(io_error("write to", &self.folder.join(LOG)))?;
        self.number += 1;
        Ok(())
    }

    /// Whether the log has grown so long that a snapshot should be taken.
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        self.number - self.snapshot_at >= SNAPSHOT_EVERY
    }

    /// Whether replaying the log costs more than taking a snapshot.
    #[must_use]
    pub fn is_long(&self) -> bool {
        self.number - self.snapshot_at > SHORT
    }

    /// Makes every later write fail, as a full disk does.
    #[cfg(test)]
    pub(crate) fn break_log(&mut self) {
        self.log = File::open(self.folder.join(LOG)).unwrap();
    }

    /// Replaces snapshot and log by the world as it is.
    ///
    /// # Errors
    /// If the file system refuses; then the older snapshot and its log still stand.
    pub fn snapshot(&mut self, datacenter: &Datacenter) -> Result<(), StoreError> {
        let path = self.folder.join(SNAPSHOT);
        let body = to_json(datacenter, &path)?;
        let sum = snapshot_sum(self.number, &body);
        let about = About { format: FORMAT, number: self.number, sum };
        let new = self.folder.join("world.json.new");
        place::write(&new, &[&to_json(&about, &path)?, "\n", &body, "\n"])?;
        fs::rename(&new, &path).map_err(io_error("replace", &path))?;
        // Entries up to the snapshot's number are skipped on reading, so a crash before this line is harmless.
        let log = self.folder.join(LOG);
        self.log
            .set_len(0)
            .and_then(|()| self.log.seek(SeekFrom::Start(0)))
            .map_err(io_error("empty", &log))?;
        self.snapshot_at = self.number;
        Ok(())
    }

    /// Reads the world in a folder as it is, also while another process hosts it; none if there is none.
    ///
    /// # Errors
    /// As [`Store::open`], but for the lock.
    pub fn look(folder: &Path) -> Result<Option<Datacenter>, StoreError> {
        if !place::check_folder(folder)? {
            return Ok(None);
        }
        let (snapshot_path, log_path) = (folder.join(SNAPSHOT), folder.join(LOG));
        for last in (0..LOOKS).map(|n| n + 1 == LOOKS) {
            let Some((mut datacenter, number)) = read_snapshot(&snapshot_path)? else {
                return Ok(None);
            };
            let mut bytes = Vec::new();
            if let Some(mut log) = place::open_to_read(&log_path)? {
                log.read_to_end(&mut bytes).map_err(io_error("read", &log_path))?;
            }
            let replayed = replay(&bytes, number, &mut datacenter, &log_path);
            // A snapshot that the host took meanwhile has emptied the log: then the two do not belong together.
            if last || snapshot_number(&snapshot_path)? == Some(number) {
                return replayed.map(|_| Some(datacenter));
            }
        }
        Ok(None)
    }

    /// Brings the world up to the end of its log, and cuts off what is not whole.
    fn catch_up(&mut self, datacenter: &mut Datacenter) -> Result<(), StoreError> {
        let path = self.folder.join(LOG);
        let mut bytes = Vec::new();
        self.log.read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        let Replayed { number, kept, lacks_end } = replay(&bytes, self.number, datacenter, &path)?;
        self.number = number;
        if lacks_end {
            return self.log.write_all(b"\n").map_err(io_error("write to", &path));
        }
        let kept = kept as u64;
        self.log
            .set_len(kept)
            .and_then(|()| self.log.seek(SeekFrom::Start(kept)))
            .map_err(io_error("cut", &path))?;
        Ok(())
    }
}

/// How far a log goes.
struct Replayed {
    /// The number of its last entry.
    number: u64,
    /// Its whole bytes.
    kept: usize,
    /// Whether its last entry is whole but for the line's end.
    lacks_end: bool,
}

/// Applies the entries of a log that come after a snapshot.
fn replay(
    bytes: &[u8],
    snapshot_at: u64,
    datacenter: &mut Datacenter,
    path: &Path,
) -> Result<Replayed, StoreError> {
    let mut replayed = Replayed { number: snapshot_at, kept: 0, lacks_end: false };
    for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let whole = line.ends_with(b"\n");
        let entry = match read_entry(line.strip_suffix(b"\n").unwrap_or(line)) {
            Ok(entry) => entry,
            // Only the last line can lack its end: the process died while it wrote it. It never wrote more than that.
            Err(_) if !whole && read_entry(&line[..line.len() - 1]).is_ok() => {
                let why = "its end is not what was written";
                return Err(damaged(path, &format!("line {}", index + 1), why));
            }
            Err(_) if !whole => break,
            Err(why) => return Err(damaged(path, &format!("line {}", index + 1), &why)),
        };
        check_format(path, entry.v)?;
        replayed.kept += line.len();
        replayed.lacks_end = !whole;
        if entry.n <= snapshot_at {
            continue;
        }
        if entry.n != replayed.number + 1 {
            let why = format!("entry {} follows entry {}", entry.n, replayed.number);
            return Err(damaged(path, &format!("line {}", index + 1), &why));
        }
        datacenter.input(entry.at, &entry.input);
        replayed.number = entry.n;
    }
    Ok(replayed)
}

fn read_entry(line: &[u8]) -> Result<Entry<Input>, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    let rest = text.strip_prefix(HEAD).ok_or("it does not begin as an entry does")?;
    let (expected, rest) = rest.split_at_checked(SUM_DIGITS).ok_or("it ends too early")?;
    let json = rest
        .strip_prefix(MIDDLE)
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or("it does not have the form of an entry")?;
    if sum(json.as_bytes()) != expected {
        return Err("its check sum is wrong".to_owned());
    }
    serde_json::from_str(json).map_err(|error| error.to_string())
}

fn read_snapshot(path: &Path) -> Result<Option<(Datacenter, u64)>, StoreError> {
    let Some(mut file) = place::open_to_read(path)? else { return Ok(None) };
    let mut text = String::new();
    match file.read_to_string(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(damaged(path, "some byte", "it is not text"));
        }
        Err(error) => return Err(io_error("read", path)(error)),
    }
    if text.is_empty() {
        return Err(damaged(path, "line 1", "it is empty"));
    }
    let (first, body) =
        text.split_once('\n').ok_or_else(|| damaged(path, "line 1", "it has no end"))?;
    let about: About =
        serde_json::from_str(first).map_err(|error| damaged(path, "line 1", &error.to_string()))?;
    check_format(path, about.format)?;
    let body = body.strip_suffix('\n').unwrap_or(body);
    if snapshot_sum(about.number, body) != about.sum {
        return Err(damaged(path, "line 2", "its check sum is wrong"));
    }
    let datacenter =
        serde_json::from_str(body).map_err(|error| damaged(path, "line 2", &error.to_string()))?;
    Ok(Some((datacenter, about.number)))
}

/// The entry up to which a snapshot goes, from its first line alone.
fn snapshot_number(path: &Path) -> Result<Option<u64>, StoreError> {
    let Some(file) = place::open_to_read(path)? else { return Ok(None) };
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line).map_err(io_error("read", path))?;
    Ok(serde_json::from_str::<About>(&line).ok().map(|about| about.number))
}

fn lock(folder: &Path, command: &str) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let mut file = place::open(&path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let holder = place::holder(&mut file);
            return Err(StoreError::Locked { path: folder.to_owned(), holder });
        }
        Err(fs::TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "process {}\n{command}", std::process::id()))
        .map_err(io_error("write", &path))?;
    Ok(file)
}

fn to_json(value: &impl Serialize, path: &Path) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| io_error("put into words for", path)(io::Error::other(error)))
}

/// Refuses what another castle wrote: it would be misread.
fn check_format(path: &Path, found: u32) -> Result<(), StoreError> {
    let path = path.to_owned();
    match found.cmp(&FORMAT) {
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(StoreError::Newer { path, found }),
        Ordering::Less => Err(StoreError::Older { path, found }),
    }
}

/// The check sum of a snapshot: of its world, and of its place in the log.
fn snapshot_sum(number: u64, body: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(number.to_string());
    hash.update("\n");
    hash.update(body);
    hex::encode(hash.finalize())
}

fn sum(bytes: &[u8]) -> String {
    let mut digits = hex::encode(Sha256::digest(bytes));
    digits.truncate(SUM_DIGITS);
    digits
}

fn io_error(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> StoreError {
    move |source| StoreError::Io { doing, path: path.to_owned(), source }
}

fn damaged(path: &Path, place: &str, why: &str) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), place: place.to_owned(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
