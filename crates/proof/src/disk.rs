//! A disk that tells of every write, before and after it is durable.

use std::io;
use std::sync::Arc;

use castle_journal::{Disk, MemoryDisk, StateError};

/// What a disk does at this moment.
pub(crate) enum Write<'a> {
    /// Bytes are about to be written.
    Before { name: &'a str },
    /// They are written, and nothing says that they stay.
    Written { name: &'a str, bytes: &'a [u8] },
    /// They are durable.
    Durable { name: &'a str },
}

/// Hears of writes; the disk is as the moment says.
pub(crate) type Hearing = Arc<dyn Fn(&Write<'_>, &MemoryDisk) + Send + Sync>;

/// A disk in memory and who is told.
pub(crate) struct ToldDisk {
    pub(crate) disk: MemoryDisk,
    pub(crate) hearing: Option<Hearing>,
}

impl ToldDisk {
    fn tell(&self, write: &Write<'_>) {
        if let Some(hearing) = &self.hearing {
            hearing(write, &self.disk);
        }
    }
}

impl Disk for ToldDisk {
    fn layers(&self) -> Result<Vec<String>, StateError> {
        self.disk.layers()
    }

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        self.disk.read(name)
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        self.disk.length(name)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.tell(&Write::Before { name });
        self.disk.append(name, bytes)?;
        self.tell(&Write::Written { name, bytes });
        Ok(())
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.disk.sync(name)?;
        self.tell(&Write::Durable { name });
        Ok(())
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.tell(&Write::Before { name });
        self.disk.truncate(name, length)
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.tell(&Write::Before { name });
        self.disk.replace(name, bytes)?;
        self.tell(&Write::Durable { name });
        Ok(())
    }

    fn set_aside(&mut self, name: &str) -> io::Result<String> {
        self.tell(&Write::Before { name });
        let aside = self.disk.set_aside(name)?;
        self.tell(&Write::Durable { name });
        Ok(aside)
    }
}
