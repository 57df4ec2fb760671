//! Whether a place on the disk may be trusted: its kind, its modes, its owner, and that no repository is around it.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::StateError;

/// Files: only their owner reads and writes.
pub(crate) const FILE_MODE: Mode = Mode::from_bits_retain(0o600);
/// Folders: only their owner enters.
pub(crate) const FOLDER_MODE: Mode = Mode::from_bits_retain(0o700);

/// Opens a file of ours: never through a link, never waiting for a pipe's other end, not passed on to children.
pub(crate) fn open(directory: &OwnedFd, leaf: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, leaf, flags, FILE_MODE)
}

/// Puts a file of ours in the place of an old one, whole or not at all.
pub(crate) fn replace(
    directory: &OwnedFd,
    path: &Path,
    leaf: &str,
    bytes: &[u8],
) -> Result<(), StateError> {
    let new = format!(".{leaf}.new");
    let access = |source| StateError::Access { doing: "write to", path: path.to_owned(), source };
    match rustix::fs::unlinkat(directory, &new, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(access(errno.into())),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let made = open(directory, &new, flags).map_err(|e| access(e.into()))?;
    rustix::fs::fchmod(&made, FILE_MODE).map_err(|e| access(e.into()))?;
    let mut file = File::from(made);
    let written =
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(access).and_then(|()| {
            rustix::fs::renameat(directory, &new, directory, leaf).map_err(|e| access(e.into()))
        });
    if written.is_err() {
        // What could not be written whole is of no use to anybody; that it can not be removed either is no news.
        rustix::fs::unlinkat(directory, &new, AtFlags::empty()).unwrap_or_default();
    }
    written
}

/// What a refused opening means.
pub(crate) fn refused(path: &Path, wanted: &'static str, errno: Errno) -> StateError {
    let found = match errno {
        Errno::LOOP | Errno::MLINK => "a symbolic link",
        Errno::NOTDIR if path.is_symlink() => "a symbolic link",
        Errno::NOTDIR => "no folder",
        Errno::ISDIR => "a folder",
        Errno::NXIO => "a pipe or socket",
        _ => {
            let source = io::Error::from(errno);
            return StateError::Access { doing: "open", path: path.to_owned(), source };
        }
    };
    StateError::WrongKind { path: path.to_owned(), found, wanted }
}

/// Checks that an opened file is a plain one of ours, with one name, that nobody else can read.
pub(crate) fn check_file(file: impl AsFd, path: &Path) -> Result<(), StateError> {
    let stat = status(file, path)?;
    let wrong = |found| {
        Err(StateError::WrongKind { path: path.to_owned(), found, wanted: "a file of its own" })
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if stat.st_nlink > 1 => {
            wrong("a file with a second name (hard link)")
        }
        FileType::RegularFile => check_owner(&stat, path),
        FileType::Directory => wrong("a folder"),
        FileType::Fifo => wrong("a pipe"),
        FileType::Socket => wrong("a socket"),
        _ => wrong("a device"),
    }
}

/// Checks that an opened folder is ours and that nobody else can enter it.
pub(crate) fn check_folder(folder: impl AsFd, path: &Path) -> Result<(), StateError> {
    let stat = status(folder, path)?;
    check_owner(&stat, path)
}

fn status(file: impl AsFd, path: &Path) -> Result<Stat, StateError> {
    rustix::fs::fstat(file).map_err(|errno| StateError::Access {
        doing: "look at",
        path: path.to_owned(),
        source: errno.into(),
    })
}

fn check_owner(stat: &Stat, path: &Path) -> Result<(), StateError> {
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(StateError::ForeignOwner { path: path.to_owned(), owner: stat.st_uid });
    }
    let mode = stat.st_mode & 0o777;
    if mode & 0o077 != 0 {
        return Err(StateError::Exposed { path: path.to_owned(), mode });
    }
    Ok(())
}

/// The names in a folder, without `.` and `..`; those that are no UTF-8 cannot be ours and are left out.
pub(crate) fn names(directory: &OwnedFd) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for item in rustix::fs::Dir::read_from(directory)? {
        let item = item?;
        if let Ok(name) = item.file_name().to_str()
            && name != "."
            && name != ".."
        {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// The nearest folder at or above `path` that is a git work tree or a bare repository.
pub(crate) fn repository_around(path: &Path) -> Option<PathBuf> {
    let is_bare = |folder: &Path| {
        folder.join("HEAD").is_file()
            && folder.join("objects").is_dir()
            && folder.join("refs").is_dir()
    };
    path.ancestors()
        .find(|folder| folder.join(".git").symlink_metadata().is_ok() || is_bare(folder))
        .map(Path::to_owned)
}

/// The path without links in the part that exists, so that walking up walks the real folders.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    let absolute = std::path::absolute(path)?;
    let mut missing = Vec::new();
    for folder in absolute.ancestors() {
        match folder.canonicalize() {
            Ok(real) => return Ok(missing.iter().rev().fold(real, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                missing.extend(folder.file_name().map(ToOwned::to_owned));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(absolute)
}
