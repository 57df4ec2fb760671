//! A disk in memory that forgets what was not synced and can be made to fail, for tests of whoever records.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{Disk, name_aside};
use crate::error::StateError;

/// A disk in memory. Clones share it, so that a test can look at it, break it and open it again.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk(Arc<Mutex<Platter>>);

#[derive(Debug, Default, Clone)]
struct Platter {
    files: BTreeMap<String, Content>,
    /// Bytes that still fit; none for no limit.
    space: Option<usize>,
    /// Syncs that still work; none for no limit.
    syncs: Option<usize>,
    synced: usize,
    /// Calls that could change something, so far.
    calls: usize,
    planned: Option<Planned>,
    /// Calls that met the fault.
    struck: usize,
}

#[derive(Debug, Default, Clone)]
struct Content {
    bytes: Vec<u8>,
    durable: usize,
}

/// What goes wrong with a call to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskFault {
    /// The device does nothing and says so.
    Io,
    /// Half of what was to be written is written; calls that write nothing fail as a whole.
    Short,
    /// Half of it fits. What needs no room still works.
    Full,
    /// The file system takes no change.
    ReadOnly,
    /// All of it is done, and the answer is an error all the same.
    Late,
}

/// A fault, and which calls meet it.
#[derive(Debug, Clone, Copy)]
struct Planned {
    fault: DiskFault,
    from: usize,
    lasting: bool,
}

/// What a call asks of the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Length { makes: bool },
    Append,
    Sync,
    Truncate,
    Replace,
    SetAside,
}

impl MemoryDisk {
    /// An empty disk without limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Another disk with the same on it, which goes its own way from here.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self(Arc::new(Mutex::new(self.platter().clone())))
    }

    /// Forgets everything, as if somebody had taken the folder away.
    pub fn forget(&self) {
        self.platter().files.clear();
    }

    /// The names of all files.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.platter().files.keys().cloned().collect()
    }

    /// Sets how many more bytes fit; a write that does not fit writes what does and fails.
    pub fn set_space(&self, bytes: Option<usize>) {
        self.platter().space = bytes;
    }

    /// Sets how many more syncs work.
    pub fn set_syncs(&self, syncs: Option<usize>) {
        self.platter().syncs = syncs;
    }

    /// Lets the call with this number (from 0, reads not counted) meet a fault, and if it is lasting all after it.
    pub fn fail(&self, from: usize, fault: DiskFault, lasting: bool) {
        let mut platter = self.platter();
        platter.planned = Some(Planned { fault, from, lasting });
        platter.struck = 0;
    }

    /// From here on no call meets a fault.
    pub fn heal(&self) {
        self.platter().planned = None;
    }

    /// How many calls were made that could change something.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.platter().calls
    }

    /// How many calls met the fault that was asked for last.
    #[must_use]
    pub fn struck(&self) -> usize {
        self.platter().struck
    }

    /// How many syncs were made.
    #[must_use]
    pub fn synced(&self) -> usize {
        self.platter().synced
    }

    /// Loses what was not synced, as a host that loses its power does.
    pub fn lose_power(&self) {
        for content in self.platter().files.values_mut() {
            content.bytes.truncate(content.durable);
        }
        self.platter().files.retain(|_, content| content.durable > 0);
    }

    /// How many sectors of this size hold something that was not synced, over all files.
    #[must_use]
    pub fn unsynced_sectors(&self, size: usize) -> usize {
        self.platter().files.values().map(|content| content.unsynced(size).len()).sum()
    }

    /// Loses power as a disk may that writes in any order: of the sectors that were not synced, counted over all files
    /// in the order of their names, only those that `kept` names are there. A file that had grown is filled with
    /// zeros, or with `shrunk` ends with the last sector that was kept.
    pub fn lose_sectors(&self, size: usize, shrunk: bool, kept: impl Fn(usize) -> bool) {
        let mut platter = self.platter();
        let mut number = 0;
        for content in platter.files.values_mut() {
            let mut end = content.durable.min(content.bytes.len());
            for sector in content.unsynced(size) {
                if kept(number) {
                    end = sector.end;
                } else {
                    content.bytes[sector].fill(0);
                }
                number += 1;
            }
            if shrunk {
                content.bytes.truncate(end);
            }
            content.durable = content.bytes.len();
        }
        platter.files.retain(|_, content| !content.bytes.is_empty());
    }

    /// What of a file would survive a loss of power now.
    #[must_use]
    pub fn durable(&self, name: &str) -> Option<Vec<u8>> {
        let platter = self.platter();
        let content = platter.files.get(name)?;
        Some(content.bytes[..content.durable.min(content.bytes.len())].to_vec())
    }

    /// The content of a file.
    #[must_use]
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.platter().files.get(name).map(|content| content.bytes.clone())
    }

    /// Puts a file there, as somebody else might.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let durable = bytes.len();
        self.platter().files.insert(name.to_owned(), Content { bytes, durable });
    }

    /// Removes a file, as somebody else might.
    pub fn remove(&self, name: &str) {
        self.platter().files.remove(name);
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Content {
    /// The sectors of this size that hold something that was not synced, clipped to that.
    fn unsynced(&self, size: usize) -> Vec<Range<usize>> {
        let (from, to) = (self.durable.min(self.bytes.len()), self.bytes.len());
        let borders = (from / size + 1..).map(|number| number * size).take_while(|at| *at < to);
        let ends: Vec<usize> = borders.chain((from < to).then_some(to)).collect();
        let starts = std::iter::once(from).chain(ends.iter().copied());
        starts.zip(ends.iter().copied()).map(|(start, end)| start..end).collect()
    }
}

impl DiskFault {
    fn error(self) -> io::Error {
        match self {
            Self::Full => io::Error::from(io::ErrorKind::StorageFull),
            Self::ReadOnly => io::Error::from(io::ErrorKind::ReadOnlyFilesystem),
            Self::Io | Self::Short | Self::Late => io::Error::other("input/output error"),
        }
    }

    /// Whether such a call meets it: a full disk still cuts, syncs and renames.
    fn concerns(self, call: Call) -> bool {
        match self {
            Self::Full => {
                matches!(call, Call::Append | Call::Replace | Call::Length { makes: true })
            }
            Self::ReadOnly => call != (Call::Length { makes: false }),
            Self::Io | Self::Short | Self::Late => true,
        }
    }
}

impl Platter {
    /// The fault that this call meets.
    fn meets(&mut self, call: Call) -> Option<DiskFault> {
        let number = self.calls;
        self.calls += 1;
        let Planned { fault, from, lasting } = self.planned?;
        let due = number == from || (lasting && number > from);
        let met = (due && fault.concerns(call)).then_some(fault);
        self.struck += usize::from(met.is_some());
        met
    }

    fn take_space(&mut self, wanted: usize) -> usize {
        let fits = self.space.map_or(wanted, |space| space.min(wanted));
        self.space = self.space.map(|space| space - fits);
        fits
    }
}

impl Disk for MemoryDisk {
    fn layers(&self) -> Result<Vec<String>, StateError> {
        let platter = self.platter();
        Ok(platter
            .files
            .keys()
            .filter(|name| name.starts_with("layers/") && name.ends_with(".journal"))
            .cloned()
            .collect())
    }

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        Ok(self.content(name))
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        let mut platter = self.platter();
        let makes = !platter.files.contains_key(name);
        if let Some(fault) = platter.meets(Call::Length { makes }) {
            return Err(fault.error());
        }
        Ok(platter.files.get(name).map_or(0, |content| content.bytes.len() as u64))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        let fault = platter.meets(Call::Append);
        let sent = match fault {
            None | Some(DiskFault::Late) => bytes.len(),
            Some(DiskFault::Short | DiskFault::Full) => bytes.len() / 2,
            Some(DiskFault::Io | DiskFault::ReadOnly) => 0,
        };
        let fits = platter.take_space(sent);
        let content = platter.files.entry(name.to_owned()).or_default();
        content.bytes.extend_from_slice(&bytes[..fits]);
        if let Some(fault) = fault {
            return Err(fault.error());
        }
        if fits < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut platter = self.platter();
        let fault = platter.meets(Call::Sync);
        if let Some(fault) = fault.filter(|fault| *fault != DiskFault::Late) {
            return Err(fault.error());
        }
        if platter.syncs == Some(0) {
            return Err(io::Error::other("input/output error"));
        }
        platter.syncs = platter.syncs.map(|left| left - 1);
        platter.synced += 1;
        if let Some(content) = platter.files.get_mut(name) {
            content.durable = content.bytes.len();
        }
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        let mut platter = self.platter();
        let fault = platter.meets(Call::Truncate);
        if let Some(fault) = fault.filter(|fault| *fault != DiskFault::Late) {
            return Err(fault.error());
        }
        if let Some(content) = platter.files.get_mut(name) {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let freed = content.bytes.len().saturating_sub(length);
            content.bytes.truncate(length);
            platter.space = platter.space.map(|space| space + freed);
        }
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        let fault = platter.meets(Call::Replace);
        if let Some(fault) = fault.filter(|fault| *fault != DiskFault::Late) {
            return Err(fault.error());
        }
        if platter.take_space(bytes.len()) < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        platter.synced += 1;
        let content = Content { bytes: bytes.to_vec(), durable: bytes.len() };
        platter.files.insert(name.to_owned(), content);
        fault.map_or(Ok(()), |fault| Err(fault.error()))
    }

    fn set_aside(&mut self, name: &str) -> io::Result<String> {
        let mut platter = self.platter();
        if let Some(fault) = platter.meets(Call::SetAside) {
            return Err(fault.error());
        }
        let aside = name_aside(name, |aside| platter.files.contains_key(aside));
        if let Some(content) = platter.files.remove(name) {
            platter.files.insert(aside.clone(), content);
        }
        Ok(aside)
    }
}
