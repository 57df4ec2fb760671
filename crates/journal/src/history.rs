//! The history of runs: one line for each that is over, kept when its castle is gone.

use std::fs::File;
use std::io::{Read, Write};

use castle_model::PastRun;
use castle_model::history::HISTORY;
use rustix::fs::OFlags;

use crate::error::StateError;
use crate::events::Runs;
use crate::place;

const FILE: &str = "history.jsonl";

/// How many runs are remembered; when there are twice as many, the older half goes.
const REMEMBERED: usize = 500;

/// More than this is not read: it would not be ours.
const READ_LIMIT: u64 = 64 << 20;

/// What is remembered of earlier runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The runs, the oldest first.
    pub runs: Vec<PastRun>,
    /// Lines that could not be read: torn, damaged, or of a later castle.
    pub skipped: usize,
}

impl Runs {
    /// Remembers a run that is over.
    ///
    /// # Errors
    /// If the file system refuses. A torn line is passed over by readers and by the next run that is remembered.
    pub fn remember(&self, run: &PastRun) -> Result<(), StateError> {
        let bytes = self.history_bytes()?.unwrap_or_default();
        let mut line = encode(run);
        // A write that was stopped left a line without its end: it must not spoil this one.
        if bytes.last().is_some_and(|last| *last != b'\n') {
            line.insert(0, b'\n');
        }
        let known = bytes.split(|byte| *byte == b'\n').count();
        if known >= 2 * REMEMBERED {
            let History { mut runs, .. } = read(&bytes);
            runs.push(run.clone());
            let kept = &runs[runs.len().saturating_sub(REMEMBERED)..];
            let lines = kept.iter().flat_map(encode).collect::<Vec<u8>>();
            return place::replace(&self.root, &self.path.join(FILE), FILE, &lines);
        }
        let path = self.path.join(FILE);
        let access = |source| StateError::Access { doing: "write to", path: path.clone(), source };
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let opened = place::open(&self.root, FILE, flags)
            .map_err(|errno| place::refused(&path, "the history", errno))?;
        place::check_file(&opened, &path)?;
        rustix::fs::fchmod(&opened, place::FILE_MODE).map_err(|e| access(e.into()))?;
        File::from(opened).write_all(&line).map_err(access)
    }

    /// What is remembered.
    ///
    /// # Errors
    /// If the file must not be trusted, or the file system refuses.
    pub fn history(&self) -> Result<History, StateError> {
        Ok(self.history_bytes()?.map(|bytes| read(&bytes)).unwrap_or_default())
    }

    fn history_bytes(&self) -> Result<Option<Vec<u8>>, StateError> {
        let path = self.path.join(FILE);
        let opened = match place::open(&self.root, FILE, OFlags::RDONLY) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(place::refused(&path, "the history", errno)),
            Ok(opened) => opened,
        };
        place::check_file(&opened, &path)?;
        let mut bytes = Vec::new();
        File::from(opened)
            .take(READ_LIMIT)
            .read_to_end(&mut bytes)
            .map_err(|source| StateError::Access { doing: "read", path, source })?;
        Ok(Some(bytes))
    }
}

fn encode(run: &PastRun) -> Vec<u8> {
    let mut line = serde_json::to_vec(run).unwrap_or_default();
    line.push(b'\n');
    line
}

fn read(bytes: &[u8]) -> History {
    let mut history = History::default();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        match serde_json::from_slice::<PastRun>(line) {
            Ok(run) if run.v <= HISTORY => history.runs.push(run),
            _ => history.skipped += 1,
        }
    }
    history
}
