//! The few things a journal asks of a disk, and the real one: owner-only files in a folder held open.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use thiserror::Error;

use crate::error::StateError;
use crate::place;

/// A journal longer than this is not ours; it is refused before it fills the memory.
const READ_LIMIT: u64 = 256 << 20;

/// Which file it is, whatever its name.
type FileId = (u64, u64);

/// Where journals are kept. Names are `run.journal` and `layers/<layer>.journal`.
pub trait Disk: Send {
    /// The names of the journals of layers.
    ///
    /// # Errors
    /// If the folder cannot be read.
    fn layers(&self) -> Result<Vec<String>, StateError>;

    /// The whole of a file; none if there is no such file.
    ///
    /// # Errors
    /// If it cannot be read, or must not be trusted (modes, links, not a file).
    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, StateError>;

    /// How long a file is, made if there is none.
    ///
    /// # Errors
    /// If it cannot be made or looked at.
    fn length(&mut self, name: &str) -> io::Result<u64>;

    /// Adds to the end of a file.
    ///
    /// # Errors
    /// If not all was written. What was written of it may remain: the caller cuts it.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Makes durable what was added to a file, and the file's place in its folder.
    ///
    /// # Errors
    /// If that is not sure. Then nothing is known about the file any more.
    fn sync(&mut self, name: &str) -> io::Result<()>;

    /// Cuts a file.
    ///
    /// # Errors
    /// If it could not be cut.
    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()>;

    /// Puts a new file in the place of another, durably and all at once.
    ///
    /// # Errors
    /// If it could not; the old one is then still there.
    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Gives a file another name, under which it is no journal, and says which.
    ///
    /// # Errors
    /// If it could not.
    fn set_aside(&mut self, name: &str) -> io::Result<String>;
}

/// The folder that is held is no longer where the next castle looks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "somebody has moved or deleted the state folder while it was in use, and another castle may hold what is there now"
)]
pub struct Taken;

/// The real disk. The folder is held open, so that nobody can move another one into its place; and what is written counts only
/// while the lock that is held is the one that the next castle would meet, so that there are never two who act.
pub(crate) struct Folder {
    path: PathBuf,
    /// The lock that is held: where it is, and which file that was.
    lock: Option<(PathBuf, FileId)>,
    root: OwnedFd,
    layers: Option<OwnedFd>,
    open: BTreeMap<String, File>,
    /// Files that were made, whose names are not durable yet.
    fresh: Vec<String>,
}

impl Folder {
    /// Works in a folder whose modes were checked.
    pub(crate) fn new(path: PathBuf, root: OwnedFd, layers: Option<OwnedFd>) -> Self {
        Self { path, lock: None, root, layers, open: BTreeMap::new(), fresh: Vec::new() }
    }

    /// Takes entries only as long as this lock is the one under its name.
    pub(crate) fn guarded(self, name: &str, lock: &File) -> io::Result<Self> {
        let lock = (self.path.join(name), file_id(&rustix::fs::fstat(lock)?));
        Ok(Self { lock: Some(lock), ..self })
    }

    fn check_held(&self) -> io::Result<()> {
        let Some((path, held)) = &self.lock else { return Ok(()) };
        match rustix::fs::lstat(path) {
            Ok(found) if file_id(&found) == *held => Ok(()),
            Ok(_) | Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => {
                Err(io::Error::other(Taken))
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// Removes what a compaction that was stopped has left.
    pub(crate) fn sweep(&self) -> io::Result<()> {
        for directory in [Some(&self.root), self.layers.as_ref()].into_iter().flatten() {
            for name in place::names(directory)? {
                if name.starts_with('.') && name.ends_with(".journal.new") {
                    rustix::fs::unlinkat(directory, &name, AtFlags::empty())?;
                }
            }
        }
        Ok(())
    }

    fn locate<'a>(&self, name: &'a str) -> io::Result<(&OwnedFd, &'a str)> {
        let found = match name.split_once('/') {
            None => Some((&self.root, name)),
            Some((_, leaf)) => self.layers.as_ref().map(|layers| (layers, leaf)),
        };
        found.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn handle(&mut self, name: &str) -> io::Result<&mut File> {
        if !self.open.contains_key(name) {
            let (directory, leaf) = self.locate(name)?;
            let flags = OFlags::RDWR | OFlags::APPEND;
            let opened = match place::open(directory, leaf, flags) {
                Err(rustix::io::Errno::NOENT) => {
                    let made = place::open(directory, leaf, flags | OFlags::CREATE | OFlags::EXCL)?;
                    rustix::fs::fchmod(&made, place::FILE_MODE)?;
                    self.fresh.push(name.to_owned());
                    made
                }
                other => other?,
            };
            place::check_file(&opened, Path::new(name)).map_err(io::Error::other)?;
            self.open.insert(name.to_owned(), File::from(opened));
        }
        self.open.get_mut(name).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }
}

impl Disk for Folder {
    fn layers(&self) -> Result<Vec<String>, StateError> {
        let Some(layers) = &self.layers else { return Ok(Vec::new()) };
        let path = self.path.join("layers");
        let mut names = place::names(layers).map_err(|source| StateError::Access {
            doing: "list",
            path,
            source,
        })?;
        names.retain(|name| !name.starts_with('.') && name.ends_with(".journal"));
        names.sort();
        Ok(names.into_iter().map(|name| format!("layers/{name}")).collect())
    }

    fn read(&mut self, name: &str) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.path.join(name);
        let access = |source| StateError::Access { doing: "read", path: path.clone(), source };
        let Ok((directory, leaf)) = self.locate(name) else { return Ok(None) };
        let opened = match place::open(directory, leaf, OFlags::RDONLY) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(place::refused(&path, "a journal", errno)),
            Ok(opened) => opened,
        };
        place::check_file(&opened, &path)?;
        let mut bytes = Vec::new();
        let file = File::from(opened);
        let read = file.take(READ_LIMIT + 1).read_to_end(&mut bytes).map_err(access)?;
        if read as u64 > READ_LIMIT {
            return Err(access(io::Error::from(io::ErrorKind::FileTooLarge)));
        }
        Ok(Some(bytes))
    }

    fn length(&mut self, name: &str) -> io::Result<u64> {
        self.check_held()?;
        Ok(self.handle(name)?.metadata()?.len())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.check_held()?;
        self.handle(name)?.write_all(bytes)
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        self.handle(name)?.sync_data()?;
        if let Some(index) = self.fresh.iter().position(|fresh| fresh == name) {
            let (directory, _) = self.locate(name)?;
            rustix::fs::fsync(directory)?;
            self.fresh.swap_remove(index);
        }
        // What is durable where nobody will look is not.
        self.check_held()
    }

    fn truncate(&mut self, name: &str, length: u64) -> io::Result<()> {
        self.handle(name)?.set_len(length)
    }

    fn replace(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.check_held()?;
        let (directory, leaf) = self.locate(name)?;
        let temporary = format!(".{leaf}.new");
        match rustix::fs::unlinkat(directory, &temporary, AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let made = place::open(directory, &temporary, flags)?;
        rustix::fs::fchmod(&made, place::FILE_MODE)?;
        let mut file = File::from(made);
        let written = file.write_all(bytes).and_then(|()| file.sync_all());
        if let Err(error) = written {
            rustix::fs::unlinkat(directory, &temporary, AtFlags::empty())?;
            return Err(error);
        }
        let renamed = rustix::fs::renameat(directory, &temporary, directory, leaf)
            .and_then(|()| rustix::fs::fsync(directory));
        // Whatever came of it, the file that was open may have no name any more: nothing may be added to it.
        self.open.remove(name);
        renamed?;
        self.open.insert(name.to_owned(), file);
        Ok(())
    }

    fn set_aside(&mut self, name: &str) -> io::Result<String> {
        let (directory, leaf) = self.locate(name)?;
        let names = place::names(directory)?;
        let aside = name_aside(leaf, |aside| names.iter().any(|name| name == aside));
        match rustix::fs::renameat(directory, leaf, directory, &aside) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        rustix::fs::fsync(directory)?;
        self.open.remove(name);
        Ok(name.replace(leaf, &aside))
    }
}

fn file_id(stat: &Stat) -> FileId {
    (stat.st_dev, stat.st_ino)
}

/// The first name for a file set aside that is not taken.
pub(crate) fn name_aside(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut number = 1_u32;
    loop {
        let aside = format!("{name}.damaged-{number}");
        if !is_taken(&aside) {
            return aside;
        }
        number += 1;
    }
}

/// Makes a folder that only its owner can enter, if it is not there, whatever the umask.
pub(crate) fn make_folder(
    parent: &OwnedFd,
    name: &str,
    path: &Path,
) -> Result<OwnedFd, StateError> {
    let access = |doing, errno: rustix::io::Errno| StateError::Access {
        doing,
        path: path.to_owned(),
        source: errno.into(),
    };
    let made = match rustix::fs::mkdirat(parent, name, place::FOLDER_MODE) {
        Ok(()) => true,
        Err(rustix::io::Errno::EXIST) => false,
        Err(errno) => return Err(access("make", errno)),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(parent, name, flags, Mode::empty())
        .map_err(|errno| place::refused(path, "a folder", errno))?;
    if made {
        rustix::fs::fchmod(&folder, place::FOLDER_MODE).map_err(|e| access("protect", e))?;
        rustix::fs::fsync(parent).map_err(|e| access("make", e))?;
    }
    place::check_folder(&folder, path)?;
    Ok(folder)
}
