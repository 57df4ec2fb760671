//! Asks a Git server over smart HTTP what a branch points at; nothing is cloned.
//!
//! [`head`] is the whole of it; [`advertisement`] reads what the server lists.

pub mod advertisement;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_model::{Class, Failure, Secret};
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use castle_wire::{CallError, Rest, Verify, World};
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use thiserror::Error;

use crate::advertisement::{Advertisement, AdvertisementError};

/// The kind of content that a Git server lists its references in.
const KIND: &str = "application/x-git-upload-pack-advertisement";

/// Why the head of a branch is not known.
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
    #[error("{url} has no branch `{branch}`; it has {}", .branches.join(", "))]
    NoBranch {
        /// The repository.
        url: String,
        /// The branch that was asked for.
        branch: String,
        /// The first few that exist.
        branches: Vec<String>,
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
            Self::Answer { status: 429 | 500..=599, .. } => Class::Transient,
            Self::Open { .. } | Self::Answer { .. } | Self::NotGit { .. } => Class::Invalid,
        }
    }

    /// The failure of something that needed the head.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        if let Self::Call { source, .. } = self {
            return source.failure(what);
        }
        let mut failure = Failure::new(self.class(), what, chain(self));
        failure.hint = match self {
            Self::Denied { .. } => Some("give a token that may read the repository's contents".to_owned()),
            Self::NotFound { .. } => Some("compare `url` with the repository's address; servers hide private ones as not found".to_owned()),
            Self::Empty { .. } => Some("push a first commit, such as the skeleton that `castle new` makes".to_owned()),
            Self::NoBranch { .. } => Some("set `branch`, or push it".to_owned()),
            _ => None,
        };
        failure
    }
}

/// The commit that a branch of the repository at `url` points at.
///
/// # Errors
/// If the server does not answer, does not let us in, is no Git server, or has no such branch.
pub async fn head(
    world: &World,
    url: &str,
    branch: &str,
    token: Option<&Secret>,
) -> Result<String, GitError> {
    let owned = || url.to_owned();
    let rest = Rest::open(world, url, &Verify::Roots(world.roots.clone()))
        .map_err(|source| GitError::Open { url: owned(), source })?;
    let mut headers = vec![(ACCEPT, HeaderValue::from_static(KIND))];
    if let Some(token) = token {
        let basic = STANDARD.encode(format!("git:{}", token.expose().trim()));
        if let Ok(mut value) = HeaderValue::try_from(format!("Basic {basic}")) {
            value.set_sensitive(true);
            headers.push((AUTHORIZATION, value));
        }
    }
    let reply = rest
        .request(Method::GET, "/info/refs?service=git-upload-pack", headers, "")
        .await
        .map_err(|source| GitError::Call { url: owned(), source })?;
    let status = reply.status.as_u16();
    match status {
        200 => {}
        401 | 403 => {
            return Err(GitError::Denied { url: owned(), status, with_token: token.is_some() });
        }
        404 => return Err(GitError::NotFound { url: owned() }),
        _ => {
            let location = reply.header("location").map(str::to_owned);
            return Err(GitError::Answer { url: owned(), status, location });
        }
    }
    if reply.header("content-type") != Some(KIND) {
        return Err(GitError::NotGit { url: owned(), source: AdvertisementError::Kind });
    }
    let listed = Advertisement::read(&reply.body)
        .map_err(|source| GitError::NotGit { url: owned(), source })?;
    if listed.is_empty() {
        return Err(GitError::Empty { url: owned() });
    }
    listed.branch(branch).map(str::to_owned).ok_or_else(|| GitError::NoBranch {
        url: owned(),
        branch: branch.to_owned(),
        branches: listed.branches().take(5).map(str::to_owned).collect(),
    })
}
