//! A disk in memory that forgets what was not synced and can be made to fail, for tests of whoever records.

use std::collections::BTreeMap;
use std::io;
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
}

#[derive(Debug, Default, Clone)]
struct Content {
    bytes: Vec<u8>,
    durable: usize,
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

impl Platter {
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
        Ok(self.platter().files.get(name).map_or(0, |content| content.bytes.len() as u64))
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        let fits = platter.take_space(bytes.len());
        let content = platter.files.entry(name.to_owned()).or_default();
        content.bytes.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.syncs == Some(0) {
            return Err(io::Error::other("input/output error"));
        }
        platter.syncs = platter.syncs.map(|left| left - 1);
        platter.synced += 1;
        if let Some(content) = platter.files.get_mut(name) {
            content.durable = content.bytes.len();
        }
        Ok(())
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        let mut platter = self.platter();
        if let Some(content) = platter.files.get_mut(name) {
            let length = usize::try_from(length).map_err(io::Error::other)?;
            let freed = content.bytes.len().saturating_sub(length);
            content.bytes.truncate(length);
            platter.space = platter.space.map(|space| space + freed);
        }
        Ok(())
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut platter = self.platter();
        if platter.take_space(bytes.len()) < bytes.len() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        platter.synced += 1;
        let content = Content { bytes: bytes.to_vec(), durable: bytes.len() };
        platter.files.insert(name.to_owned(), content);
        Ok(())
    }

    fn set_aside(&mut self, name: &str) -> io::Result<String> {
        let mut platter = self.platter();
        let aside = name_aside(name, |aside| platter.files.contains_key(aside));
        if let Some(content) = platter.files.remove(name) {
            platter.files.insert(aside.clone(), content);
        }
        Ok(aside)
    }
}
