//! Why a repository could not be read, what kind of trouble that is, and what to do about it.

use castle_model::suggest::distance;
use castle_model::{Class, Failure};
use castle_wire::CallError;
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use thiserror::Error;

use crate::advertisement::AdvertisementError;
use crate::fetch::FetchError;
use crate::pack::PackError;
use crate::tree::TreeError;

/// How many branches are named.
const NAMED: usize = 5;

/// Why a repository could not be read.
#[derive(Debug, Error)]
pub enum GitError {
    /// The address cannot be used.
    #[error("cannot set up a client for {url}")]
    Open {
        /// The repository.
        url: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// There is no answer.
    #[error("no answer from {url}")]
    Call {
        /// The repository.
        url: String,
        /// Why not.
        #[source]
        source: CallError,
    },
    /// The server wants a token, or another one.
    #[error("{url} answers {status}: {}", if *.with_token { "the token may not read the repository" } else { "it is not public, and no token was given" })]
    Denied {
        /// The repository.
        url: String,
        /// The status.
        status: u16,
        /// Whether a token was sent.
        with_token: bool,
    },
    /// There is no such repository, or the token may not know of it.
    #[error("there is no repository at {url}, or the token may not see it")]
    NotFound {
        /// The repository.
        url: String,
    },
    /// The server says something else.
    #[error("{url} answers {status}{}", .location.as_ref().map(|to| format!(", it has moved to {to}")).unwrap_or_default())]
    Answer {
        /// The repository.
        url: String,
        /// The status.
        status: u16,
        /// Where it sends us.
        location: Option<String>,
    },
    /// What answers is not a Git server.
    #[error("{url} does not answer as a Git server does")]
    NotGit {
        /// The repository.
        url: String,
        /// What is wrong with the answer.
        #[source]
        source: AdvertisementError,
    },
    /// There are no commits yet.
    #[error("the repository at {url} is empty")]
    Empty {
        /// The repository.
        url: String,
    },
    /// The branch does not exist.
    #[error("{url} has no branch `{branch}`; it has {}", few(.branches))]
    NoBranch {
        /// The repository.
        url: String,
        /// The branch that was asked for.
        branch: String,
        /// Those that exist, the nearest first.
        branches: Vec<String>,
    },
    /// Its objects are named in a way that we do not read.
    #[error("the repository at {url} names its objects by SHA-256, which castle does not read")]
    Sha256 {
        /// The repository.
        url: String,
    },
    /// The server does not give the commit.
    #[error("{url} does not give the commit {commit}")]
    Fetch {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// Why not.
        #[source]
        source: FetchError,
    },
    /// What the server gives cannot be unpacked.
    #[error("what {url} gives for the commit {commit} cannot be unpacked")]
    Pack {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// Why not.
        #[source]
        source: PackError,
    },
    /// The commit's files cannot be told.
    #[error("the files of the commit {commit} of {url} cannot be told")]
    Tree {
        /// The repository.
        url: String,
        /// The commit.
        commit: String,
        /// Why not.
        #[source]
        source: TreeError,
    },
}

impl GitError {
    /// Decides whether the same may be asked again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Call { source, .. } => source.class(),
            Self::Denied { .. } => Class::Denied,
            Self::NotFound { .. } | Self::Empty { .. } | Self::NoBranch { .. } => Class::Gone,
            // A branch moves while one asks, and a connection can be cut within a pack.
            Self::Answer { status: 429 | 500..=599, .. }
            | Self::Fetch { .. }
            | Self::Pack { source: PackError::Torn | PackError::CheckSum, .. } => Class::Transient,
            Self::Open { .. }
            | Self::Answer { .. }
            | Self::NotGit { .. }
            | Self::Sha256 { .. }
            | Self::Pack { .. }
            | Self::Tree { .. } => Class::Invalid,
        }
    }

    /// Whether the repository is there and only too large, or too strange, for us to look into.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        matches!(
            self,
            Self::Sha256 { .. }
                | Self::Call { source: CallError::TooLarge { .. }, .. }
                | Self::Pack { source: PackError::TooLarge { .. }, .. }
                | Self::Tree { source: TreeError::TooLarge { .. }, .. }
        )
    }

    /// The failure of something that needed the repository.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        if let Self::Call { source, .. } = self {
            return source.failure(what);
        }
        Failure::new(self.class(), what, chain(self)).hint(self.hint())
    }

    /// What to do about it.
    fn hint(&self) -> String {
        let words = match self {
            Self::Denied { with_token: true, .. } => {
                "give a token that may read the repository's contents"
            }
            Self::Denied { .. } => {
                "set `token` to a secret that may read the repository's contents"
            }
            Self::NotFound { .. } => {
                "compare `url` with the repository's address; servers hide private ones as not found"
            }
            Self::Empty { .. } => {
                "push a first commit, such as the skeleton that `castle new` makes"
            }
            Self::NoBranch { branch, branches, .. } => match branches.first() {
                Some(near) if is_near(branch, near) => {
                    return format!("set `branch = \"{near}\"`, or push `{branch}`");
                }
                _ => "set `branch`, or push it",
            },
            Self::Answer { location: Some(to), .. } => {
                return format!("set `url` to {to}, if that is the repository that you mean");
            }
            Self::Open { .. } | Self::NotGit { .. } => {
                "compare `url` with the repository's address, as `git clone` takes it"
            }
            Self::Sha256 { .. } => "give a repository that was made without --object-format=sha256",
            Self::Call { .. } | Self::Answer { .. } | Self::Fetch { .. } => {
                "ask with `git ls-remote` from here; once that answers, run the same command again"
            }
            Self::Pack { .. } | Self::Tree { .. } => {
                "try `git clone`, then `git fsck`; if they find nothing wrong, castle can not read what Git can"
            }
        };
        words.to_owned()
    }
}

fn few(branches: &[String]) -> String {
    let named = branches.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match branches.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Branches with those first that somebody may have meant.
pub(crate) fn nearest<'a>(meant: &str, branches: impl Iterator<Item = &'a str>) -> Vec<String> {
    let usual = |name: &str| !matches!(name, "main" | "master");
    let mut sorted: Vec<&str> = branches.collect();
    sorted.sort_by_key(|name| (!is_near(meant, name), usual(name), *name));
    sorted.into_iter().map(str::to_owned).collect()
}

/// Whether one name may have been typed for the other: by letters, by case, or as a part of it.
fn is_near(meant: &str, name: &str) -> bool {
    let (one, other) = (meant.to_lowercase(), name.to_lowercase());
    let part = one.len() > 2 && other.len() > 2 && (one.contains(&other) || other.contains(&one));
    let usual = |name: &str| matches!(name, "main" | "master");
    part || (usual(&one) && usual(&other)) || distance(&one, &other) <= 2.min(one.len() / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_that_may_have_been_meant_is_named_first() {
        let near = |meant: &str| nearest(meant, ["dev", "main", "production", "Test"].into_iter());
        assert_eq!(near("mian")[0], "main");
        assert_eq!(near("master")[0], "main");
        assert_eq!(near("prod")[0], "production");
        assert_eq!(near("test")[0], "Test");
        assert_eq!(near("nowhere")[0], "main");
        let told = |meant: &str| {
            let branches = near(meant);
            let (url, branch) = ("https://git.example/x".to_owned(), meant.to_owned());
            GitError::NoBranch { url, branch, branches }.failure("ask").hint.unwrap()
        };
        assert_eq!(told("mian"), "set `branch = \"main\"`, or push `mian`");
        assert_eq!(told("nowhere"), "set `branch`, or push it");
    }

    #[test]
    fn an_answer_that_nobody_expects_has_a_next_step() {
        let answer = |status, location: Option<&str>| {
            let (url, location) = ("https://git.example/x".to_owned(), location.map(str::to_owned));
            GitError::Answer { url, status, location }.failure("ask").hint.unwrap()
        };
        assert!(answer(409, None).contains("git ls-remote"));
        assert!(
            answer(301, Some("https://git.example/y")).contains("`url` to https://git.example/y")
        );
    }
}
