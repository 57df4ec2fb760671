//! The state folder: where it may lie, who may read it, and who holds it now.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use castle_model::LayerName;
use rustix::fs::{AtFlags, Mode, OFlags};

use crate::aside::SetAside;
use crate::disk::{Folder, make_folder};
use crate::error::{StateError, Torn};
use crate::events::Runs;
use crate::holder::{Holder, Presence};
use crate::journals::Journals;
use crate::place;
use crate::reading::Reading;
use crate::rebirth::{self, Rebirth};
use crate::records::Records;

const LOCK_FILE: &str = "lock";
const LAYERS_FOLDER: &str = "layers";

/// A lock file that was exchanged while we locked it is tried again this often, then given up.
const LOCK_TRIES: usize = 8;

/// A state folder that this process holds alone, with its journals open.
pub struct StateRoot {
    path: PathBuf,
    root: OwnedFd,
    lock: File,
    journals: Journals,
}

/// What a state folder says to somebody who does not hold it.
#[derive(Debug)]
pub struct Peek {
    /// What the readable journals say.
    pub records: Records,
    /// Layers whose journal is damaged.
    pub problems: BTreeMap<LayerName, StateError>,
    /// What makes the folder unreadable as a whole: a damaged run journal.
    pub damage: Option<StateError>,
    /// Unfinished ends; with a live holder, an entry that is just being written.
    pub notices: Vec<Torn>,
    /// Who holds the folder now.
    pub holder: Option<Holder>,
    /// The last rebirth, if one was ever begun.
    ///
    /// # Errors
    /// If its journal can not be read, which spoils nothing else.
    pub rebirth: Result<Option<Rebirth>, StateError>,
}

/// The folder's path, itself held open, its lock, and the disk that its journals are on.
type Taken = (PathBuf, OwnedFd, File, Folder);

impl Peek {
    /// What is said where nothing can be read.
    fn damaged(damage: StateError, holder: Option<Holder>) -> Self {
        let (records, problems) = (Records::default(), BTreeMap::new());
        Self {
            records,
            problems,
            damage: Some(damage),
            notices: Vec::new(),
            holder,
            rebirth: Ok(None),
        }
    }
}

impl StateRoot {
    /// Makes the folder if there is none, locks it for `holder`, and reads and checks its journals.
    ///
    /// # Errors
    /// If the folder lies in a git repository, is held by another process, can be read by others, is damaged as
    /// a whole, or the file system refuses. Damage in one layer is in [`Journals::problems`] instead.
    pub fn open(path: &Path, holder: &Holder) -> Result<Self, StateError> {
        let (path, root, lock, folder) = Self::take(path, holder)?;
        let journals = Journals::open(Box::new(folder))?;
        Ok(Self { path, root, lock, journals })
    }

    /// Opens a folder that is damaged as a whole, by setting all of its journals aside; see [`Journals::open_anew`].
    ///
    /// # Errors
    /// As [`StateRoot::open`], but for the damage; and if a later castle wrote one of the files.
    pub fn open_anew(path: &Path, holder: &Holder) -> Result<(Self, Vec<SetAside>), StateError> {
        let (path, root, lock, folder) = Self::take(path, holder)?;
        let (journals, aside) = Journals::open_anew(Box::new(folder))?;
        Ok((Self { path, root, lock, journals }, aside))
    }

    /// Makes the folder if there is none, and locks it.
    fn take(path: &Path, holder: &Holder) -> Result<Taken, StateError> {
        let (path, leaf) = locate(path)?;
        if let Some(repository) = place::repository_around(&path) {
            return Err(StateError::InsideGit { path, repository });
        }
        let parent = path.parent().unwrap_or(&path);
        let access = |doing, source| StateError::Access { doing, path: path.clone(), source };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(parent)
            .map_err(|error| access("make the folder for", error))?;
        let above = open_folder(parent).map_err(|error| access("open the folder of", error))?;
        let root = make_folder(&above, &leaf, &path)?;
        let lock = take_lock(&root, &path, holder)?;
        let layers = make_folder(&root, LAYERS_FOLDER, &path.join(LAYERS_FOLDER))?;
        let ours = root.try_clone().map_err(|error| access("keep open", error))?;
        let folder = Folder::new(path.clone(), root, Some(layers))
            .guarded(LOCK_FILE, &lock)
            .map_err(|error| access("look at the lock of", error))?;
        folder.sweep().map_err(|error| access("tidy", error))?;
        Ok((path, ours, lock, folder))
    }

    /// Reads the folder without holding it, also while another process writes; none if there is no folder.
    ///
    /// # Errors
    /// As [`StateRoot::open`], but for the lock and the repository.
    pub fn peek(path: &Path) -> Result<Option<Peek>, StateError> {
        let (path, _) = locate(path)?;
        let open = |path: &Path| match open_folder(path) {
            Ok(folder) => {
                place::check_folder(&folder, path)?;
                Ok(Some(folder))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(match rustix::io::Errno::from_io_error(&error) {
                Some(errno) => place::refused(path, "a folder", errno),
                None => StateError::Access { doing: "open", path: path.to_owned(), source: error },
            }),
        };
        let Some(root) = open(&path)? else { return Ok(None) };
        let holder = read_holder(&root, &path)?.filter(is_there);
        let layers = open(&path.join(LAYERS_FOLDER))?;
        let again = root.try_clone().map_err(|source| StateError::Access {
            doing: "open",
            path: path.clone(),
            source,
        })?;
        let mut folder = Folder::new(path.clone(), root, layers);
        let mut reading = match Reading::new(&mut folder) {
            Ok(reading) => reading,
            Err(damage @ StateError::Corrupt(_)) => return Ok(Some(Peek::damaged(damage, holder))),
            Err(error) => return Err(error),
        };
        // With nobody at work, neither when we began to read nor now, the files must fit each other.
        if holder.is_none()
            && read_holder(&again, &path)?.as_ref().is_none_or(|holder| !is_there(holder))
            && let Err(damage) = reading.check_at_rest()
        {
            return Ok(Some(Peek::damaged(damage, None)));
        }
        let (records, problems, notices) = reading.fold();
        let rebirth = rebirth::read(&mut folder).map(|(known, _)| known);
        Ok(Some(Peek { records, problems, damage: None, notices, holder, rebirth }))
    }

    /// Who holds the folder now, and nothing more: cheap enough to be asked again and again.
    ///
    /// # Errors
    /// If the folder or its lock must not be trusted, or the file system refuses.
    pub fn holder(path: &Path) -> Result<Option<Holder>, StateError> {
        let (path, _) = locate(path)?;
        let root = match open_folder(&path) {
            Ok(root) => root,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(StateError::Access { doing: "open", path, source }),
        };
        Ok(read_holder(&root, &path)?.filter(is_there))
    }

    /// Where the folder is, with links resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The events and times of its runs.
    ///
    /// # Errors
    /// If the system gives no second handle of the folder.
    pub fn runs(&self) -> Result<Runs, StateError> {
        let path = self.path.clone();
        let root = self.root.try_clone().map_err(|source| StateError::Access {
            doing: "keep open",
            path: path.clone(),
            source,
        })?;
        Ok(Runs { root, path })
    }

    /// The journals, to read.
    #[must_use]
    pub fn journals(&self) -> &Journals {
        &self.journals
    }

    /// The journals, to record in.
    pub fn journals_mut(&mut self) -> &mut Journals {
        &mut self.journals
    }
}

impl Drop for StateRoot {
    /// Takes the holder's name off; the lock itself goes with the file, even if the process is killed.
    fn drop(&mut self) {
        drop(self.lock.set_len(0));
    }
}

/// The folder's path with links resolved in all but its own name, and that name.
fn locate(path: &Path) -> Result<(PathBuf, String), StateError> {
    let access = |source| StateError::Access { doing: "find", path: path.to_owned(), source };
    let nameless = || access(io::Error::from(io::ErrorKind::InvalidInput));
    let absolute = std::path::absolute(path).map_err(access)?;
    let leaf = absolute.file_name().and_then(|name| name.to_str()).ok_or_else(nameless)?;
    let above = absolute.parent().ok_or_else(nameless)?;
    let above = place::resolve(above).map_err(access)?;
    Ok((above.join(leaf), leaf.to_owned()))
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Locks the folder. The kernel drops the lock with the process, so that a dead holder never blocks anybody.
fn take_lock(root: &OwnedFd, path: &Path, holder: &Holder) -> Result<File, StateError> {
    let file = path.join(LOCK_FILE);
    let access = |doing, source| StateError::Access { doing, path: file.clone(), source };
    for _ in 0..LOCK_TRIES {
        let opened = place::open(root, LOCK_FILE, OFlags::RDWR | OFlags::CREATE)
            .map_err(|errno| place::refused(&file, "the lock", errno))?;
        place::check_file(&opened, &file)?;
        rustix::fs::fchmod(&opened, place::FILE_MODE)
            .map_err(|errno| access("protect", errno.into()))?;
        let mut lock = File::from(opened);
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = read_holder(root, path)?.map(Box::new);
                return Err(StateError::Locked { path: path.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(access("lock", error)),
        }
        if !is_in_place(root, &lock).map_err(|error| access("look at", error))? {
            continue;
        }
        let text = serde_json::to_vec(holder)
            .map_err(|error| access("write to", io::Error::other(error)))?;
        lock.set_len(0)
            .and_then(|()| lock.seek(SeekFrom::Start(0)))
            .and_then(|_| lock.write_all(&text))
            .map_err(|error| access("write to", error))?;
        return Ok(lock);
    }
    Err(access("lock", io::Error::other("somebody keeps exchanging the file")))
}

/// Whether the locked file is still the one under the lock's name.
fn is_in_place(root: &OwnedFd, lock: &File) -> io::Result<bool> {
    let ours = rustix::fs::fstat(lock)?;
    match rustix::fs::statat(root, LOCK_FILE, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(named) => Ok(named.st_ino == ours.st_ino && named.st_dev == ours.st_dev),
        Err(rustix::io::Errno::NOENT) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

/// Who the lock file names; none if it is empty, or just being written.
fn read_holder(root: &OwnedFd, path: &Path) -> Result<Option<Holder>, StateError> {
    let file = path.join(LOCK_FILE);
    let opened = match place::open(root, LOCK_FILE, OFlags::RDONLY) {
        Err(rustix::io::Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(place::refused(&file, "the lock", errno)),
        Ok(opened) => opened,
    };
    place::check_file(&opened, &file)?;
    let mut text = Vec::new();
    File::from(opened).take(4096).read_to_end(&mut text).map_err(|source| StateError::Access {
        doing: "read",
        path: file,
        source,
    })?;
    Ok(serde_json::from_slice(&text).ok())
}

/// Whether a holder still runs. On another machine nobody can tell from here; it is taken at its word.
fn is_there(holder: &Holder) -> bool {
    holder.presence() != Presence::Gone
}
