//! Keeps a world on disk: an append-only log of inputs and snapshots, so that it outlives its process.
//!
//! ```text
//! rehearsal/            0700, one process at a time (`lock` names the holder)
//!   world.json          0600, a snapshot: one line about it, then the datacenter
//!   world.log           0600, every input since: {"sum":"…","entry":{"v":1,"n":7,"at":1200,"input":…}}
//! ```
//! An input is written before its answer leaves. There is no fsync: a world need not survive its host.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;

use crate::world::{Datacenter, FORMAT, Input};

const SNAPSHOT: &str = "world.json";
const LOG: &str = "world.log";
const LOCK: &str = "lock";

/// A line of the log: this, the check sum, [`MIDDLE`], the entry, `}`.
const HEAD: &str = "{\"sum\":\"";
const MIDDLE: &str = "\",\"entry\":";
const SUM_DIGITS: usize = 16;

/// After so many inputs a snapshot is due: replaying them costs some ten milliseconds.
const SNAPSHOT_EVERY: u64 = 5_000;

/// A log so short at a clean end is left to the next reader: a snapshot costs more than replaying it.
const SHORT: u64 = 64;

/// Why a world cannot be opened or kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process hosts it.
    #[error("the rehearsal's world in {path} is in use by {holder}")]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// A newer castle wrote it.
    #[error("{path} has format {found}, this castle reads up to {FORMAT}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is not what was written.
    #[error("{path} is damaged at {place}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong.
        why: String,
    },
}

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
    /// Opens the world in a folder, or makes it by `birth` where there is none.
    ///
    /// # Errors
    /// If it is in use, damaged, written by a newer castle, or the file system refuses.
    pub fn open(
        folder: &Path,
        birth: impl FnOnce() -> Datacenter,
    ) -> Result<(Self, Datacenter), StoreError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .and_then(|()| fs::set_permissions(folder, Permissions::from_mode(0o700)))
            .map_err(io_error("make the folder", folder))?;
        let lock = lock(folder)?;
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
        let log = open_private(&log_path).map_err(io_error("open", &log_path))?;
        let mut store =
            Self { folder: folder.to_owned(), log, number, snapshot_at: number, _lock: lock };
        if fresh {
            store.snapshot(&datacenter)?;
        } else {
            store.replay(&mut datacenter)?;
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

    /// Replaces snapshot and log by the world as it is.
    ///
    /// # Errors
    /// If the file system refuses; then the older snapshot and its log still stand.
    pub fn snapshot(&mut self, datacenter: &Datacenter) -> Result<(), StoreError> {
        let path = self.folder.join(SNAPSHOT);
        let body = to_json(datacenter, &path)?;
        let about =
            About { format: FORMAT, number: self.number, sum: hex::encode(Sha256::digest(&body)) };
        let text = format!("{}\n{body}\n", to_json(&about, &path)?);
        let new = self.folder.join("world.json.new");
        write_private(&new, text.as_bytes()).map_err(io_error("write", &new))?;
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

    fn replay(&mut self, datacenter: &mut Datacenter) -> Result<(), StoreError> {
        let path = self.folder.join(LOG);
        let mut bytes = Vec::new();
        self.log.read_to_end(&mut bytes).map_err(io_error("read", &path))?;
        let mut kept = 0;
        for (index, line) in bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            let whole = line.ends_with(b"\n");
            let entry = match read_entry(line.strip_suffix(b"\n").unwrap_or(line)) {
                Ok(entry) => entry,
                // Only the last line can lack its end: the process died while it wrote it.
                Err(_) if !whole => break,
                Err(why) => return Err(damaged(&path, &format!("line {}", index + 1), &why)),
            };
            if entry.v > FORMAT {
                return Err(StoreError::Newer { path, found: entry.v });
            }
            kept += line.len();
            if entry.n <= self.snapshot_at {
                continue;
            }
            if entry.n != self.number + 1 {
                let why = format!("entry {} follows entry {}", entry.n, self.number);
                return Err(damaged(&path, &format!("line {}", index + 1), &why));
            }
            datacenter.input(entry.at, &entry.input);
            self.number = entry.n;
            if !whole {
                self.log.write_all(b"\n").map_err(io_error("write to", &path))?;
                return Ok(());
            }
        }
        let kept_length = kept as u64;
        self.log
            .set_len(kept_length)
            .and_then(|()| self.log.seek(SeekFrom::Start(kept_length)))
            .map_err(io_error("cut", &path))?;
        Ok(())
    }
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
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Err(damaged(path, "some byte", "it is not text"));
        }
        Err(error) => return Err(io_error("read", path)(error)),
    };
    let (first, body) =
        text.split_once('\n').ok_or_else(|| damaged(path, "line 1", "it has no end"))?;
    let about: About =
        serde_json::from_str(first).map_err(|error| damaged(path, "line 1", &error.to_string()))?;
    if about.format > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: about.format });
    }
    let body = body.strip_suffix('\n').unwrap_or(body);
    if hex::encode(Sha256::digest(body)) != about.sum {
        return Err(damaged(path, "line 2", "its check sum is wrong"));
    }
    let datacenter =
        serde_json::from_str(body).map_err(|error| damaged(path, "line 2", &error.to_string()))?;
    Ok(Some((datacenter, about.number)))
}

fn lock(folder: &Path) -> Result<File, StoreError> {
    let path = folder.join(LOCK);
    let mut file = open_private(&path).map_err(io_error("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // A holder that has not written its name yet is still a holder.
            drop(file.read_to_string(&mut holder));
            let holder = holder.trim();
            let holder = if holder.is_empty() { "another process" } else { holder };
            return Err(StoreError::Locked { path: folder.to_owned(), holder: holder.to_owned() });
        }
        Err(fs::TryLockError::Error(error)) => return Err(io_error("lock", &path)(error)),
    }
    file.set_len(0)
        .and_then(|()| writeln!(file, "process {}", std::process::id()))
        .map_err(io_error("write", &path))?;
    Ok(file)
}

fn open_private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open_private(path)?;
    file.set_len(0)?;
    file.write_all(bytes)
}

fn to_json(value: &impl Serialize, path: &Path) -> Result<String, StoreError> {
    serde_json::to_string(value)
        .map_err(|error| io_error("put into words for", path)(io::Error::other(error)))
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
