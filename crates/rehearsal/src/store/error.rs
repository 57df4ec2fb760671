//! Why a world cannot be opened or kept, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use castle_model::shell::{with_environment, word};
use castle_model::time::Moment;
use thiserror::Error;

use crate::world::FORMAT;

/// Why a world cannot be opened or kept.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {doing} {path}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// To which file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Another process hosts it.
    #[error("the rehearsal's world in {path} is in use by {holder}")]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Who holds it.
        holder: Holder,
    },
    /// Something else stands where a file or folder of the world should be.
    #[error("{path} is {found}, where {wanted} should be")]
    WrongKind {
        /// Where.
        path: PathBuf,
        /// What is there.
        found: &'static str,
        /// What should be there.
        wanted: &'static str,
    },
    /// Others could read or change it.
    #[error("{path} has mode {mode:04o}: others could read or change it")]
    Exposed {
        /// The file or folder.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Somebody else made it.
    #[error("{path} belongs to user {owner}, not to the one who runs castle")]
    ForeignOwner {
        /// The file or folder.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
    },
    /// A newer castle wrote it.
    #[error("{path} has format {found}, this castle reads {FORMAT}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// An older castle wrote it.
    #[error("{path} has format {found}, this castle reads {FORMAT} only")]
    Older {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// It is not what was written.
    #[error("{path} is damaged at {place}: {why}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it.
        place: String,
        /// What is wrong.
        why: String,
    },
}

impl StoreError {
    /// What to do next, where throwing the world away is not it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Locked { holder, .. } if holder.stopped => holder.awakening(),
            Self::Locked { path, holder }
                if holder.command.as_deref().is_some_and(|command| command.ends_with(" serve")) =>
            {
                let folder = path.join("served");
                let environment = with_environment(folder.join("environment").display());
                let file = word(folder.join("served.hcl").display());
                Some(format!(
                    "it is served: `{environment} castle -f {file} up` builds in it; `castle rehearse inventory` looks at it, `castle rehearse poke` changes something in it"
                ))
            }
            Self::Locked { .. } => {
                let look = "`castle status` and `castle rehearse inventory` look at it meanwhile";
                let poke = "`castle rehearse poke` changes something in it";
                Some(format!("wait until it has ended; {look}, {poke}"))
            }
            Self::Exposed { path, .. } => Some(format!("chmod go-rwx {}", path.display())),
            Self::Newer { .. } => Some("use the newer castle".to_owned()),
            Self::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("make room on the disk, then run the same command again".to_owned())
            }
            Self::Io { path, source, .. } => Some(match source.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    let folder = path.parent().unwrap_or(path).display();
                    format!("{folder} must be writable for you, or choose another place for the state")
                }
                io::ErrorKind::FileTooLarge => {
                    "`ulimit -f` says how large a file may be: raise it, then run the same command again"
                        .to_owned()
                }
                _ => "see to what the operating system says, then run the same command again".to_owned(),
            }),
            _ => None,
        }
    }
}

/// Who hosts a world, as far as its lock tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process; none if it has not written its number yet.
    pub pid: Option<u32>,
    /// Since when.
    pub since: Option<Moment>,
    /// What it does: `castle rehearse up`.
    pub command: Option<String>,
    /// Whether it was stopped (Ctrl-Z, SIGSTOP): it keeps the world, and does nothing with it.
    pub stopped: bool,
}

impl Holder {
    /// How it is brought to go on, if it is stopped.
    pub(crate) fn awakening(&self) -> Option<String> {
        let pid = self.pid.filter(|_| self.stopped)?;
        Some(format!(
            "it keeps the world until it goes on or ends: `kill -CONT {pid}` lets it go on, `kill -KILL {pid}` ends it"
        ))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = match self.pid {
            Some(pid) => format!("process {pid}"),
            None => "another process".to_owned(),
        };
        let since = self.since.map(|since| format!(" since {since}")).unwrap_or_default();
        match &self.command {
            Some(command) => write!(f, "`{command}` ({of}{since})")?,
            None => write!(f, "{of}{since}")?,
        }
        f.write_str(if self.stopped { ", which is stopped (state T)" } else { "" })
    }
}
