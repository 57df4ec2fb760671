//! One file that is written to: what is known of its end, and how its buffer becomes durable.

use castle_model::{Bug, planted};

use crate::disk::Disk;
use crate::entry::GENESIS;
use crate::error::StateError;
use crate::replay::Replay;

/// A file open for writing. `lseq` and `chain` count the buffer in, `length` does not.
pub(crate) struct JournalFile {
    pub(crate) name: String,
    pub(crate) length: u64,
    pub(crate) lseq: u64,
    pub(crate) chain: String,
    pub(crate) buffer: Vec<u8>,
}

/// Why a file's buffer did not become durable.
pub(crate) enum Flush {
    /// The file is as it was; it may be tried again.
    Refused(StateError),
    /// Nobody knows what is on the disk.
    Unsure(String),
}

impl JournalFile {
    pub(crate) fn new(name: String) -> Self {
        Self { name, length: 0, lseq: 0, chain: GENESIS.to_owned(), buffer: Vec::new() }
    }

    /// Goes on behind what was read, after mending the end of the file where a write was stopped.
    pub(crate) fn take_up(
        disk: &mut dyn Disk,
        name: String,
        read: &Replay,
    ) -> Result<Self, StateError> {
        let mut length = read.length;
        let mended = if read.torn.is_some() {
            disk.truncate(&name, length).and_then(|()| disk.sync(&name))
        } else if read.unterminated {
            length += 1;
            disk.append(&name, b"\n").and_then(|()| disk.sync(&name))
        } else {
            Ok(())
        };
        mended.map_err(|source| StateError::Write { file: name.clone(), source })?;
        let (lseq, chain) = (read.lseq(), read.chain().to_owned());
        Ok(Self { name, length, lseq, chain, buffer: Vec::new() })
    }

    pub(crate) fn flush(&mut self, disk: &mut dyn Disk) -> Result<usize, Flush> {
        if self.buffer.is_empty() {
            return Ok(0);
        }
        self.check_alone(disk)?;
        if let Err(source) = disk.append(&self.name, &self.buffer) {
            return Err(match disk.truncate(&self.name, self.length) {
                Ok(()) => Flush::Refused(StateError::Write { file: self.name.clone(), source }),
                Err(error) => Flush::Unsure(format!(
                    "a write to {} failed ({source}) and could not be taken back ({error})",
                    self.name
                )),
            });
        }
        if !planted(Bug::SyncSkipped) {
            disk.sync(&self.name).map_err(|error| {
                Flush::Unsure(format!("{} could not be made durable ({error})", self.name))
            })?;
        }
        self.length += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(1)
    }

    /// Notices a second writer before it is overwritten, in case the lock was taken away by hand.
    fn check_alone(&self, disk: &mut dyn Disk) -> Result<(), Flush> {
        match disk.length(&self.name) {
            Ok(found) if found == self.length => Ok(()),
            Ok(found) => Err(Flush::Unsure(format!(
                "{} has {found} bytes where this process left {}: somebody else writes to it",
                self.name, self.length
            ))),
            Err(source) => {
                Err(Flush::Refused(StateError::Write { file: self.name.clone(), source }))
            }
        }
    }
}
