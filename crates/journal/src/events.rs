//! The events of each run, kept as lines beside the journals: what `attach`, `status` and reports read.
//!
//! Less than a journal: nothing acts on it, so nothing is synced, and a disk that refuses it stops nobody. The writer is
//! the process that holds the folder; readers need no lock and may read while it writes.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use castle_model::{Event, RunId};
use rustix::fs::{AtFlags, OFlags};

use crate::disk::make_folder;
use crate::error::StateError;
use crate::place;

/// How many runs are kept; the oldest go.
pub const RUNS_KEPT: usize = 50;

/// The folder of the events, in the state folder.
pub(crate) const FOLDER: &str = "runs";
const ENDING: &str = ".jsonl";

/// More than this of one run is not read: it would not be ours.
const READ_LIMIT: u64 = 64 << 20;

/// The past runs of a state folder: their events, and the history of their times.
pub struct Runs {
    pub(crate) root: OwnedFd,
    pub(crate) path: PathBuf,
}

impl Runs {
    /// Those of a state folder that another process may hold; none if there is no folder.
    ///
    /// # Errors
    /// If the folder must not be trusted, or the file system refuses.
    pub fn at(path: &Path) -> Result<Option<Self>, StateError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, rustix::fs::Mode::empty()) {
            Ok(root) => {
                place::check_folder(&root, path)?;
                Ok(Some(Self { root, path: path.to_owned() }))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(place::refused(path, "a folder", errno)),
        }
    }

    /// Begins to keep the events of a run that was never kept before.
    ///
    /// # Errors
    /// If the file is there already, or the file system refuses.
    pub fn begin(&self, run: &RunId) -> Result<EventFile, StateError> {
        let folder = self.folder(true)?.ok_or_else(|| self.missing())?;
        let path = self.path.join(FOLDER).join(file_name(run));
        let access = |source| StateError::Access { doing: "make", path: path.clone(), source };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::EXCL;
        let made = place::open(&folder, &file_name(run), flags).map_err(|e| access(e.into()))?;
        rustix::fs::fchmod(&made, place::FILE_MODE).map_err(|e| access(e.into()))?;
        Ok(EventFile { file: File::from(made), path })
    }

    /// Loses the events of a run, as a host that loses its power may: they are never synced.
    ///
    /// # Errors
    /// If the file is not there, must not be trusted, or the file system refuses.
    pub fn lose(&self, run: &RunId) -> Result<(), StateError> {
        let folder = self.folder(false)?.ok_or_else(|| self.missing())?;
        let path = self.path.join(FOLDER).join(file_name(run));
        let access = |source| StateError::Access { doing: "cut", path: path.clone(), source };
        let opened = place::open(&folder, &file_name(run), OFlags::WRONLY);
        let file = opened.map_err(|errno| place::refused(&path, "events", errno))?;
        File::from(file).set_len(0).map_err(access)
    }

    /// The runs whose events are kept, the oldest first.
    ///
    /// # Errors
    /// If the folder must not be trusted, or the file system refuses.
    pub fn list(&self) -> Result<Vec<RunId>, StateError> {
        let Some(folder) = self.folder(false)? else { return Ok(Vec::new()) };
        let names = place::names(&folder).map_err(|source| StateError::Access {
            doing: "list",
            path: self.path.join(FOLDER),
            source,
        })?;
        let mut runs: Vec<RunId> =
            names.iter().filter_map(|name| name.strip_suffix(ENDING)).map(RunId::new).collect();
        runs.sort_by_key(|run| (number(run), run.to_string()));
        Ok(runs)
    }

    /// Opens the events of a run to read them; none if they are not kept.
    ///
    /// # Errors
    /// If the file must not be trusted, or the file system refuses.
    pub fn events(&self, run: &RunId) -> Result<Option<EventReader>, StateError> {
        let Some(folder) = self.folder(false)? else { return Ok(None) };
        let path = self.path.join(FOLDER).join(file_name(run));
        let opened = match place::open(&folder, &file_name(run), OFlags::RDONLY) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(place::refused(&path, "the events of a run", errno)),
            Ok(opened) => opened,
        };
        place::check_file(&opened, &path)?;
        let file = File::from(opened).take(READ_LIMIT);
        Ok(Some(EventReader { file, path, begun: Vec::new(), skipped: 0 }))
    }

    /// Removes the oldest runs beyond so many, with their pages, but none that somebody still needs.
    ///
    /// # Errors
    /// If one could not be removed.
    pub fn prune(&self, keep: usize, needed: impl Fn(&RunId) -> bool) -> Result<(), StateError> {
        let runs = self.list()?;
        let Some(folder) = self.folder(false)? else { return Ok(()) };
        let old = &runs[..runs.len().saturating_sub(keep)];
        for run in old.iter().filter(|run| !needed(run)) {
            self.drop_page(run)?;
            let name = file_name(run);
            rustix::fs::unlinkat(&folder, &name, AtFlags::empty()).map_err(|errno| {
                let path = self.path.join(FOLDER).join(&name);
                StateError::Access { doing: "remove", path, source: errno.into() }
            })?;
        }
        Ok(())
    }

    pub(crate) fn folder(&self, make: bool) -> Result<Option<OwnedFd>, StateError> {
        let path = self.path.join(FOLDER);
        if make {
            return make_folder(&self.root, FOLDER, &path).map(Some);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&self.root, FOLDER, flags, rustix::fs::Mode::empty()) {
            Ok(folder) => {
                place::check_folder(&folder, &path)?;
                Ok(Some(folder))
            }
            Err(rustix::io::Errno::NOENT) => Ok(None),
            Err(errno) => Err(place::refused(&path, "a folder", errno)),
        }
    }

    pub(crate) fn missing(&self) -> StateError {
        StateError::Access {
            doing: "open",
            path: self.path.join(FOLDER),
            source: io::ErrorKind::NotFound.into(),
        }
    }
}

fn file_name(run: &RunId) -> String {
    format!("{run}{ENDING}")
}

/// The number of a run, as its name tells: `r0012-20260202` is 12.
#[must_use]
pub fn number(run: &RunId) -> u64 {
    let told = run.as_str().strip_prefix('r').and_then(|rest| rest.split('-').next());
    told.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The events of one run, while it goes on.
#[derive(Debug)]
pub struct EventFile {
    file: File,
    path: PathBuf,
}

impl EventFile {
    /// Adds one event.
    ///
    /// # Errors
    /// If it was not written whole. Nothing more should be added then: readers pass over what is unfinished at the end.
    pub fn add(&mut self, event: &Event) -> Result<(), StateError> {
        let written = serde_json::to_vec(event).map_err(io::Error::other).and_then(|mut line| {
            line.push(b'\n');
            self.file.write_all(&line)
        });
        written.map_err(|source| StateError::Access {
            doing: "write to",
            path: self.path.clone(),
            source,
        })
    }
}

/// The events of one run as they are read, also while it goes on.
#[derive(Debug)]
pub struct EventReader {
    file: io::Take<File>,
    path: PathBuf,
    /// The beginning of a line whose end was not written yet.
    begun: Vec<u8>,
    skipped: u64,
}

impl EventReader {
    /// Everything that was added since the last time. Lines that can not be read are counted and passed over.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn more(&mut self) -> Result<Vec<Event>, StateError> {
        let mut bytes = std::mem::take(&mut self.begun);
        self.file.read_to_end(&mut bytes).map_err(|source| StateError::Access {
            doing: "read",
            path: self.path.clone(),
            source,
        })?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.begun = bytes.split_off(whole);
        let mut events = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice::<Event>(line) {
                Ok(event) => events.push(event),
                Err(_) => self.skipped += 1,
            }
        }
        Ok(events)
    }

    /// Lines that could not be read: damaged, or of a kind that a later castle wrote.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }
}
