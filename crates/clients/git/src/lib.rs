//! Reads Git repositories over smart HTTP, in process: what a branch points at, and the files of that commit.
//!
//! [`head`] asks for the commit, [`tree`] for its files. [`advertisement`] reads what the server lists, `fetch` speaks
//! both versions of the protocol, [`pack`] unpacks what comes, [`tree`](mod@tree) puts paths together. Every one of them
//! reads bytes of a stranger: all have limits.

pub mod advertisement;
pub mod error;
pub mod fetch;
pub mod pack;
pub mod packet;
pub mod tree;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;
use castle_wire::rest::Reply;
use castle_wire::{Rest, Verify, World};
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};

use crate::advertisement::{Abilities, Advertisement, AdvertisementError, Greeting};
pub use crate::error::GitError;
pub use crate::tree::{Entry, Tree};

/// The kind of content that a Git server greets in.
const GREETING: &str = "application/x-git-upload-pack-advertisement";
/// The kind of content of questions, and of answers.
const REQUEST: &str = "application/x-git-upload-pack-request";
const RESULT: &str = "application/x-git-upload-pack-result";

/// How large a packed commit may be. Those of manifests are below one.
const PACK_LIMIT: usize = 32 << 20;

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
    let remote = Remote::open(world, url, token)?;
    Ok(remote.head(branch).await?.commit)
}

/// The files of the commit that a branch points at, without its past.
///
/// # Errors
/// As [`head`], and if the commit is not given or cannot be read; [`GitError::is_unreadable`] tells that apart.
pub async fn tree(
    world: &World,
    url: &str,
    branch: &str,
    token: Option<&Secret>,
) -> Result<Tree, GitError> {
    let remote = Remote::open(world, url, token)?;
    let head = remote.head(branch).await?;
    remote.files(&head).await
}

/// One repository on a server.
struct Remote {
    rest: Rest,
    url: String,
    authorization: Option<HeaderValue>,
}

/// Where a branch is, on a server of which we know how it speaks.
struct Head {
    commit: String,
    abilities: Abilities,
    two: bool,
}

impl Remote {
    fn open(world: &World, url: &str, token: Option<&Secret>) -> Result<Self, GitError> {
        let rest = Rest::open(world, url, &Verify::Roots(world.roots.clone()))
            .map_err(|source| GitError::Open { url: url.to_owned(), source })?
            .limit(PACK_LIMIT);
        let authorization = token.and_then(|token| {
            let basic = STANDARD.encode(format!("git:{}", token.expose().trim()));
            let mut value = HeaderValue::try_from(format!("Basic {basic}")).ok()?;
            value.set_sensitive(true);
            Some(value)
        });
        Ok(Self { rest, url: url.to_owned(), authorization })
    }

    /// Asks what a branch points at.
    async fn head(&self, branch: &str) -> Result<Head, GitError> {
        let reply = self.call(Method::GET, "/info/refs?service=git-upload-pack", "").await?;
        if reply.header("content-type") != Some(GREETING) {
            return Err(self.not_git(AdvertisementError::Kind));
        }
        let greeting = Greeting::read(&reply.body).map_err(|source| self.not_git(source))?;
        let (listed, abilities, two) = match greeting {
            Greeting::Zero(listed, abilities) => (listed, abilities, false),
            Greeting::Two(abilities) => {
                let body = self.ask(fetch::ask_references()).await?;
                let listed = Advertisement::read(&body).map_err(|source| self.not_git(source))?;
                (listed, abilities, true)
            }
        };
        if listed.is_empty() {
            return Err(GitError::Empty { url: self.url.clone() });
        }
        match listed.branch(branch) {
            Some(commit) => Ok(Head { commit: commit.to_owned(), abilities, two }),
            None => Err(GitError::NoBranch {
                url: self.url.clone(),
                branch: branch.to_owned(),
                branches: error::nearest(branch, listed.branches()),
            }),
        }
    }

    /// The files of a commit.
    async fn files(&self, head: &Head) -> Result<Tree, GitError> {
        let (url, commit) = (|| self.url.clone(), || head.commit.clone());
        let Head { abilities, .. } = head;
        if abilities.sha256 {
            return Err(GitError::Sha256 { url: url() });
        }
        let packed = if head.two {
            fetch::pack(&self.ask(fetch::ask_commit(&head.commit, abilities.filter)).await?)
        } else {
            fetch::pack_zero(
                &self.ask(fetch::ask_commit_zero(&head.commit, abilities.filter)).await?,
            )
        };
        let packed =
            packed.map_err(|source| GitError::Fetch { url: url(), commit: commit(), source })?;
        let objects = pack::unpack(&packed).map_err(|source| GitError::Pack {
            url: url(),
            commit: commit(),
            source,
        })?;
        Tree::read(&head.commit, &objects).map_err(|source| GitError::Tree {
            url: url(),
            commit: commit(),
            source,
        })
    }

    /// Puts a question of the protocol.
    async fn ask(&self, question: String) -> Result<bytes::Bytes, GitError> {
        let reply = self.call(Method::POST, "/git-upload-pack", question).await?;
        if reply.header("content-type") != Some(RESULT) {
            return Err(self.not_git(AdvertisementError::Kind));
        }
        Ok(reply.body)
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: impl Into<bytes::Bytes>,
    ) -> Result<Reply, GitError> {
        let url = || self.url.clone();
        let text = HeaderValue::from_static;
        let mut headers = vec![(HeaderName::from_static("git-protocol"), text("version=2"))];
        if method == Method::POST {
            headers.extend([(CONTENT_TYPE, text(REQUEST)), (ACCEPT, text(RESULT))]);
        } else {
            headers.push((ACCEPT, text(GREETING)));
        }
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        let reply = self
            .rest
            .request(method, path, headers, body)
            .await
            .map_err(|source| GitError::Call { url: url(), source })?;
        let status = reply.status.as_u16();
        match status {
            200 => Ok(reply),
            401 | 403 => {
                let with_token = self.authorization.is_some();
                Err(GitError::Denied { url: url(), status, with_token })
            }
            404 => Err(GitError::NotFound { url: url() }),
            _ => {
                let location = reply.header("location").map(str::to_owned);
                Err(GitError::Answer { url: url(), status, location })
            }
        }
    }

    fn not_git(&self, source: AdvertisementError) -> GitError {
        GitError::NotGit { url: self.url.clone(), source }
    }
}
