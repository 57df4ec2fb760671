//! Opens the files of a world: never through a link, never waiting for a pipe, never what others can reach.

use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use castle_model::time::Moment;
use rustix::fs::{FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::{Holder, StoreError};
use super::io_error;

const FILE_MODE: Mode = Mode::from_bits_retain(0o600);
const FILE: &str = "a file of its own";
const FOLDER: &str = "a folder";

/// Makes the folder of a world where there is none, and checks it.
pub(super) fn make_folder(folder: &Path) -> Result<(), StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(io_error("make the folder", folder))?;
    check_folder(folder).map(|_| ())
}

/// Checks the folder of a world, and says whether there is one.
pub(super) fn check_folder(folder: &Path) -> Result<bool, StoreError> {
    let stat = match rustix::fs::lstat(folder) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(false),
        Err(errno) => return Err(io_error("look at", folder)(errno.into())),
    };
    check(&stat, folder, FileType::Directory, FOLDER)?;
    Ok(true)
}

/// Opens a file to read and write, and makes it where there is none.
pub(super) fn open(path: &Path) -> Result<File, StoreError> {
    open_with(path, OFlags::RDWR | OFlags::CREATE)?
        .ok_or_else(|| io_error("open", path)(io::ErrorKind::NotFound.into()))
}

/// Opens a file to read, if it is there.
pub(super) fn open_to_read(path: &Path) -> Result<Option<File>, StoreError> {
    open_with(path, OFlags::RDONLY)
}

/// Writes a whole file, piece by piece: a copy of a world to put a line before it is as large as the world.
pub(super) fn write(path: &Path, pieces: &[&str]) -> Result<(), StoreError> {
    let mut file = open(path)?;
    let written = file.set_len(0);
    let written =
        written.and_then(|()| pieces.iter().try_for_each(|piece| file.write_all(piece.as_bytes())));
    written.map_err(io_error("write", path))
}

/// Who wrote his number into a lock, and when.
pub(super) fn holder(lock: &mut File) -> Holder {
    let mut text = String::new();
    // A holder that has not written its number yet is still a holder.
    drop(lock.read_to_string(&mut text));
    let mut lines = text.lines();
    let pid = lines.next().and_then(|line| line.strip_prefix("process ")?.parse().ok());
    let command = lines.next().filter(|line| !line.is_empty()).map(str::to_owned);
    let written = lock.metadata().and_then(|meta| meta.modified()).ok();
    let since = written.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    let since = since.and_then(|since| u64::try_from(since.as_millis()).ok()).map(Moment);
    Holder {
        pid,
        since: since.filter(|_| pid.is_some()),
        command,
        stopped: pid.is_some_and(is_stopped),
    }
}

/// Whether the kernel says that a process is stopped. Its program's name stands in brackets, and may hold anything.
fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

fn open_with(path: &Path, flags: OFlags) -> Result<Option<File>, StoreError> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let wrong = |found| StoreError::WrongKind { path: path.to_owned(), found, wanted: FILE };
    let file = match rustix::fs::open(path, flags, FILE_MODE) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(wrong("a symbolic link")),
        Err(Errno::ISDIR) => return Err(wrong("a folder")),
        Err(Errno::NXIO) => return Err(wrong("a pipe or socket")),
        Err(errno) => return Err(io_error("open", path)(errno.into())),
    };
    let stat = rustix::fs::fstat(&file).map_err(|errno| io_error("look at", path)(errno.into()))?;
    check(&stat, path, FileType::RegularFile, FILE)?;
    Ok(Some(file))
}

fn check(stat: &Stat, path: &Path, kind: FileType, wanted: &'static str) -> Result<(), StoreError> {
    let found = match FileType::from_raw_mode(stat.st_mode) {
        found if found == kind => None,
        FileType::RegularFile => Some("a file"),
        FileType::Directory => Some("a folder"),
        FileType::Symlink => Some("a symbolic link"),
        FileType::Fifo => Some("a pipe"),
        FileType::Socket => Some("a socket"),
        _ => Some("a device"),
    };
    if let Some(found) = found {
        return Err(StoreError::WrongKind { path: path.to_owned(), found, wanted });
    }
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(StoreError::ForeignOwner { path: path.to_owned(), owner: stat.st_uid });
    }
    match stat.st_mode & 0o777 {
        mode if mode & 0o077 != 0 => Err(StoreError::Exposed { path: path.to_owned(), mode }),
        _ => Ok(()),
    }
}
