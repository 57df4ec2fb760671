//! How far a long work is: a line that is written over on a terminal, and a line for each twentieth elsewhere.

use std::io::{IsTerminal as _, Write as _, stderr};

/// The width of the bar.
const BAR: u64 = 24;
/// How many lines are written where nobody looks on.
const LINES: u64 = 20;

/// A work of a known length.
pub(super) struct Progress {
    what: String,
    of: u64,
    terminal: bool,
    /// The last part that was told of.
    told: u64,
}

impl Progress {
    /// A work of so many parts.
    pub(super) fn new(what: &str, of: u64) -> Self {
        Self { what: what.to_owned(), of: of.max(1), terminal: stderr().is_terminal(), told: 0 }
    }

    /// So many parts are done. What can not be told is no reason to stop.
    pub(super) fn at(&mut self, done: u64, words: &str) {
        let (of, what) = (self.of, &self.what);
        if self.terminal {
            let filled = usize::try_from(BAR * done.min(of) / of).unwrap_or(0);
            let bar = "#".repeat(filled);
            let width = usize::try_from(BAR).unwrap_or(0);
            write!(stderr(), "\r\x1b[K{what} [{bar:width$}] {done} of {of}, {words}").ok();
            return;
        }
        let part = LINES * done / of;
        if part > self.told {
            self.told = part;
            writeln!(stderr(), "{what}: {done} of {of}, {words}").ok();
        }
    }

    /// Makes room for other words.
    pub(super) fn clear(&self) {
        if self.terminal {
            write!(stderr(), "\r\x1b[K").ok();
        }
    }
}
