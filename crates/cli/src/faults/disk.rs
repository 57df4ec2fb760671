//! The disk under castle's own state, as the rules of a rehearsal break it: between the journals and the real one.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use castle_journal::{Disk, Journals, StateError, Taken};
use castle_rehearsal::fault::OwnDisk;

/// What the disk does now; whoever carries out the rules says so.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doing(Arc<Mutex<OwnDisk>>);

impl Doing {
    /// From here on the disk does this.
    pub(crate) fn set(&self, does: OwnDisk) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = does;
    }

    fn get(&self) -> OwnDisk {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the program, as a loss of power does.
pub(crate) type Gone = Arc<dyn Fn() + Send + Sync>;

/// Puts a disk that can break under the journals.
pub(crate) fn under(journals: &mut Journals, does: &Doing, gone: &Gone) {
    let (does, gone) = (does.clone(), gone.clone());
    journals.through(|disk| Box::new(Breaking { disk, does, gone }));
}

/// A disk that does what a rule says.
struct Breaking {
    disk: Box<dyn Disk>,
    does: Doing,
    gone: Gone,
}

impl Breaking {
    /// Whether a call that changes something is refused now. `needs_room` says whether it writes.
    fn refuses(&self, needs_room: bool) -> io::Result<()> {
        match self.does.get() {
            OwnDisk::Sound | OwnDisk::Tears => Ok(()),
            OwnDisk::Taken => Err(io::Error::other(Taken)),
            OwnDisk::Full if !needs_room => Ok(()),
            OwnDisk::Full => Err(rustix::io::Errno::NOSPC.into()),
            OwnDisk::Fails => Err(rustix::io::Errno::IO.into()),
            OwnDisk::ReadOnly => Err(rustix::io::Errno::ROFS.into()),
        }
    }
}

impl Disk for Breaking {
    fn layers(&self) -> Result<Vec<String>, StateError> {
        self.disk.layers()
    }

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        self.disk.read(name)
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        self.refuses(false)?;
        self.disk.length(name)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let half = &bytes[..bytes.len() / 2];
        let refused = self.refuses(true);
        match self.does.get() {
            OwnDisk::Tears => {
                self.disk.append(name, half)?;
                self.disk.sync(name)?;
                (self.gone)();
                return Err(rustix::io::Errno::IO.into());
            }
            OwnDisk::Full => self.disk.append(name, half)?,
            OwnDisk::Sound | OwnDisk::Fails | OwnDisk::ReadOnly | OwnDisk::Taken => {}
        }
        refused?;
        self.disk.append(name, bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.refuses(false)?;
        self.disk.sync(name)
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.refuses(false)?;
        self.disk.truncate(name, length)
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.refuses(true)?;
        self.disk.replace(name, bytes)
    }

    fn set_aside(&mut self, name: &str) -> io::Result<String> {
        self.refuses(false)?;
        self.disk.set_aside(name)
    }
}
