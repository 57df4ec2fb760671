//! What can be wrong with a state folder, each with what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use castle_model::{Class, Failure};
use thiserror::Error;

use crate::disk::Taken;
use crate::holder::{Holder, Presence};
use crate::state::Illegal;

/// Damage in one file, named by entry. Nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}, entry {entry}: {why}")]
pub struct Corruption {
    /// The file, relative to the state folder.
    pub file: String,
    /// The number of the entry (its line in the file, or where it would stand), from 1.
    pub entry: u64,
    /// What is wrong with it.
    pub why: String,
}

/// The end of a file that a stopped write left unfinished. Nothing was done on its word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// The file, relative to the state folder.
    pub file: String,
    /// The number of the entry that was not finished.
    pub entry: u64,
    /// How many bytes of it there were.
    pub bytes: u64,
}

impl fmt::Display for Torn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, entry, bytes } = self;
        write!(
            f,
            "{file}: entry {entry} was never finished ({bytes} bytes of it): a run was stopped while writing it, \
             and nothing was done on its word"
        )
    }
}

/// Why the state folder cannot be used, or an entry not be recorded.
#[derive(Debug, Error)]
pub enum StateError {
    /// The folder lies inside a git work tree or a bare repository.
    #[error(
        "the state folder {} would lie inside the git repository at {}",
        path.display(),
        repository.display()
    )]
    InsideGit {
        /// The state folder.
        path: PathBuf,
        /// The repository.
        repository: PathBuf,
    },
    /// Others than its owner can read or change it.
    #[error("{} has mode {mode:04o}: others could read or change it", path.display())]
    Exposed {
        /// The file or folder.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to another user.
    #[error("{} belongs to user {owner}, not to the one who runs castle", path.display())]
    ForeignOwner {
        /// The file or folder.
        path: PathBuf,
        /// The owner's number.
        owner: u32,
    },
    /// Something else stands where a file or folder of ours should be.
    #[error("{} is {found}, where {wanted} should be", path.display())]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
        /// What should be there.
        wanted: &'static str,
    },
    /// Another process works with this folder.
    #[error("the state folder {} is in use by {}", path.display(), holder_words(.holder.as_deref()))]
    Locked {
        /// The state folder.
        path: PathBuf,
        /// Who holds it, if that could be read.
        holder: Option<Box<Holder>>,
    },
    /// The file system refused to make, open or read something.
    #[error("cannot {doing} {}", path.display())]
    Access {
        /// What was being done: "open".
        doing: &'static str,
        /// To what.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An entry could not be written; the file is as it was before.
    #[error("cannot write to the journal {file}")]
    Write {
        /// The file, relative to the state folder.
        file: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// An earlier failure left it unknown what is on the disk; this process may record nothing more.
    #[error("the journal takes no more entries: {why}")]
    Poisoned {
        /// What happened.
        why: String,
    },
    /// A file is damaged.
    #[error("the journal is damaged")]
    Corrupt(#[source] Corruption),
    /// A later version of castle wrote it.
    #[error("{file} was written by a later castle (schema {found}; this one reads up to {known})")]
    Newer {
        /// The file, relative to the state folder.
        file: String,
        /// The version found.
        found: u32,
        /// The highest version that can be read.
        known: u32,
    },
    /// Our own code tried to record something that cannot be.
    #[error("castle tried to record what cannot be")]
    Illegal(#[source] Illegal),
    /// Our own code recorded something outside of a run.
    #[error("castle tried to {doing}")]
    Misuse {
        /// What it tried.
        doing: &'static str,
    },
}

fn holder_words(holder: Option<&Holder>) -> String {
    let Some(holder) = holder else { return "another process".to_owned() };
    match holder.presence() {
        Presence::Alive | Presence::Unknown => holder.to_string(),
        Presence::Stopped => format!("{holder}, which is stopped (state T)"),
        Presence::Gone => format!(
            "a process that is not named (the last name in it, {holder}, is of one that has ended)"
        ),
    }
}

/// What to do about a holder.
fn locked_hint(holder: Option<&Holder>) -> String {
    let Some(holder) = holder else {
        return "wait for it (--wait); `castle status` works meanwhile".to_owned();
    };
    let Holder { pid, host, .. } = holder;
    match holder.presence() {
        Presence::Stopped => format!(
            "it keeps the folder until it goes on or ends: `kill -CONT {pid}` lets it go on, \
             `kill -KILL {pid}` ends it, and the next run goes on from where it was"
        ),
        Presence::Gone => "wait for it (--wait); `castle status` works meanwhile".to_owned(),
        Presence::Alive | Presence::Unknown => format!(
            "wait for it (--wait), or stop process {pid} on {host}; `castle status` works meanwhile"
        ),
    }
}

impl StateError {
    /// What a person can do about it.
    #[must_use]
    pub fn hint(&self) -> String {
        match self {
            Self::InsideGit { .. } => {
                "choose a folder outside of any repository with --state or CASTLE_STATE".to_owned()
            }
            Self::Exposed { path, mode } => {
                let right = if mode & 0o111 == 0 { "600" } else { "700" };
                format!("chmod {right} {}, once you know who could have read it", path.display())
            }
            Self::ForeignOwner { .. } => {
                "run castle as that user, or choose another folder with --state".to_owned()
            }
            Self::WrongKind { path, .. } => {
                format!("look at {} and move it away if it is not needed", path.display())
            }
            Self::Locked { holder, .. } => locked_hint(holder.as_deref()),
            Self::Access { .. } => "check the path and its permissions".to_owned(),
            Self::Write { source, .. } if is_full(source) => {
                "free some space, then run the same command again: nothing was done that is not recorded"
                    .to_owned()
            }
            Self::Write { source, .. } if is_taken(source) => {
                "`castle status` tells who holds the state now; run again, castle reads what there is back from the world"
                    .to_owned()
            }
            Self::Write { .. } => {
                "check the disk and its mount, then run the same command again".to_owned()
            }
            Self::Poisoned { .. } => {
                "check the disk, then run the same command again: it looks at the world first".to_owned()
            }
            Self::Corrupt(_) => {
                "`castle up` and `castle down` set it aside and read the world instead; nothing is lost by that"
                    .to_owned()
            }
            Self::Newer { .. } => "use the castle that wrote it, or a later one".to_owned(),
            Self::Illegal(_) | Self::Misuse { .. } => {
                "this is a defect of castle: please report it with the journal of this run".to_owned()
            }
        }
    }

    /// The same as data, for events and reports.
    #[must_use]
    pub fn failure(&self, what: &str) -> Failure {
        let class = match self {
            Self::Locked { .. } => Class::Conflict,
            Self::Exposed { .. }
            | Self::ForeignOwner { .. }
            | Self::Access { .. }
            | Self::Write { .. }
            | Self::Poisoned { .. } => Class::Denied,
            Self::InsideGit { .. }
            | Self::WrongKind { .. }
            | Self::Corrupt(_)
            | Self::Newer { .. } => Class::Invalid,
            Self::Illegal(_) | Self::Misuse { .. } => Class::Bug,
        };
        let source = std::error::Error::source(self).map(|source| format!(": {source}"));
        Failure::new(class, what, format!("{self}{}", source.unwrap_or_default())).hint(self.hint())
    }
}

fn is_taken(error: &io::Error) -> bool {
    error.get_ref().and_then(|inner| inner.downcast_ref::<Taken>()).is_some()
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
