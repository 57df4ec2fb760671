//! The Git host: repositories with real files, over smart HTTP, so that the git program can clone them too.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::text_reply;
use crate::turn::{HttpCall, HttpReply};

mod example;
mod object;
mod protocol;

pub use object::Commit;

/// What a server without news of the client's credentials says.
const DENIED: &str =
    "Invalid username or token. Password authentication is not supported for Git operations.";

/// When the first commit of every rehearsed repository was made: 2026-02-01T00:00:00Z.
const FIRST: u64 = 1_769_904_000;

/// What somebody appends to a file who breaks it: YAML that never ends.
const SPOILED: &str = "---\nkind: [\n";

/// What happens at the Git host because somebody says so.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GitTrouble {
    /// Somebody pushes a commit to a branch.
    Push {
        /// The repository.
        url: String,
        /// The branch; it is made if it is not there.
        branch: String,
        /// Texts by their paths; none: the file is removed.
        files: BTreeMap<String, Option<String>>,
    },
    /// A branch is removed; without any, a repository is empty.
    Unbranch {
        /// The repository.
        url: String,
        /// The branch.
        branch: String,
    },
    /// The token of a repository becomes another one.
    Token {
        /// The repository.
        url: String,
        /// The token that reads it from now on.
        token: String,
    },
    /// Somebody pushes a commit that breaks the YAML of a folder, or one that mends it.
    Folder {
        /// The repository.
        url: String,
        /// The branch.
        branch: String,
        /// The folder, as the `path` of a unit names it.
        path: String,
        /// Whether it is broken from then on.
        broken: bool,
    },
    /// The host answers nobody, or answers again.
    Away(bool),
}

impl fmt::Debug for GitTrouble {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Push { url, branch, files } => {
                write!(f, "Push {url} {branch} {:?}", files.keys().collect::<Vec<_>>())
            }
            Self::Folder { url, branch, path, broken } => {
                write!(f, "Folder {url} {branch} {path} {broken}")
            }
            Self::Unbranch { url, branch } => write!(f, "Unbranch {url} {branch}"),
            Self::Token { url, .. } => write!(f, "Token {url}"),
            Self::Away(away) => write!(f, "Away({away})"),
        }
    }
}

/// One repository.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// The token that reads it; none if everybody may.
    pub(super) token: Option<String>,
    /// Commits by branch.
    branches: BTreeMap<String, String>,
    /// What commits hold.
    commits: BTreeMap<String, Commit>,
}

/// Where a branch is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The repository, host and path.
    pub repository: String,
    /// The branch.
    pub branch: String,
    /// The commit.
    pub commit: String,
    /// What it says.
    pub message: String,
}

impl fmt::Debug for Repository {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repository").field("branches", &self.branches).finish_non_exhaustive()
    }
}

impl Repository {
    /// Makes the branch of a castle file, and the files of its cluster, where they are missing.
    pub(super) fn ensure(&mut self, branch: &str, path: &str) {
        let known = self.branches.get(branch).and_then(|id| self.commits.get(id));
        let within = format!("{}/", folder(path));
        let lies = |file: &String| within == "/" || file.starts_with(&within);
        if known.is_some_and(|commit| commit.files.keys().any(lies)) {
            return;
        }
        let files = example::files(path).into_iter().map(|(path, text)| (path, Some(text)));
        self.push(branch, &files.collect(), &format!("raise {}", folder(path)));
    }

    /// Adds a commit to a branch.
    pub(super) fn push(
        &mut self,
        branch: &str,
        files: &BTreeMap<String, Option<String>>,
        message: &str,
    ) {
        let parent = self.branches.get(branch).cloned();
        let mut commit = Commit {
            at: FIRST + 60 * self.commits.len() as u64,
            message: message.to_owned(),
            files: parent
                .as_ref()
                .and_then(|id| self.commits.get(id))
                .map(|before| before.files.clone())
                .unwrap_or_default(),
            parent,
        };
        for (path, text) in files {
            match text {
                Some(text) => commit.files.insert(path.clone(), text.clone()),
                None => commit.files.remove(path),
            };
        }
        let id = commit.id();
        self.commits.insert(id.clone(), commit);
        self.branches.insert(branch.to_owned(), id);
    }

    /// Breaks the files of a folder, or mends them.
    pub(super) fn spoil(&mut self, branch: &str, path: &str, broken: bool) {
        let within = format!("{}/", folder(path));
        let Some(head) = self.branches.get(branch).and_then(|id| self.commits.get(id)) else {
            return;
        };
        let texts = head.files.iter().filter(|(name, _)| name.starts_with(&within));
        let changed: BTreeMap<String, Option<String>> = texts
            .filter(|(name, text)| {
                !name.ends_with("kustomization.yaml") && text.ends_with(SPOILED) != broken
            })
            .map(|(name, text)| {
                let text = if broken {
                    format!("{text}{SPOILED}")
                } else {
                    text.trim_end_matches(SPOILED).to_owned()
                };
                (name.clone(), Some(text))
            })
            .collect();
        if !changed.is_empty() {
            self.push(branch, &changed, if broken { "a typo" } else { "the typo is gone" });
        }
    }

    pub(super) fn unbranch(&mut self, branch: &str) {
        self.branches.remove(branch);
    }

    /// The files of a commit.
    pub(super) fn files(&self, commit: &str) -> Option<&BTreeMap<String, String>> {
        self.commits.get(commit).map(|commit| &commit.files)
    }

    /// Where its branches are.
    pub(super) fn heads<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Head> + 'a {
        self.branches.iter().map(move |(branch, commit)| Head {
            repository: name.to_owned(),
            branch: branch.clone(),
            commit: commit.clone(),
            message: self.commits.get(commit).map(|c| c.message.clone()).unwrap_or_default(),
        })
    }

    fn admits(&self, credentials: Option<(&str, &str)>) -> bool {
        self.token
            .as_deref()
            .is_none_or(|token| credentials.is_some_and(|(_, given)| given == token))
    }
}

/// A repository's address without the differences that mean nothing: `host/path`, no `.git`, no port.
#[must_use]
pub fn key(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.trim_end_matches('/');
    let rest = rest.strip_suffix(".git").unwrap_or(rest).to_lowercase();
    match rest.split_once('/') {
        Some((host, path)) => format!("{}/{path}", host.split(':').next().unwrap_or(host)),
        None => rest,
    }
}

/// A folder without the differences that mean nothing.
pub(super) fn folder(path: &str) -> String {
    path.trim_start_matches("./").trim_matches('/').to_owned()
}

/// The commit of a branch, with the words of Flux where there is none.
pub(super) fn head(
    repositories: &BTreeMap<String, Repository>,
    url: &str,
    branch: &str,
    credentials: Option<(&str, &str)>,
) -> Result<String, String> {
    let wrong = |why: &str| {
        format!("failed to checkout and determine revision: unable to clone '{url}': {why}")
    };
    let repository = repositories
        .get(&key(url))
        .ok_or_else(|| wrong("repository not found: Repository not found."))?;
    if !repository.admits(credentials) {
        return Err(wrong(&format!("authentication required: {DENIED}")));
    }
    repository
        .branches
        .get(branch)
        .cloned()
        .ok_or_else(|| wrong(&format!("couldn't find remote ref \"refs/heads/{branch}\"")))
}

/// Answers a request to the Git host.
pub(super) fn call(repositories: &BTreeMap<String, Repository>, call: &HttpCall) -> HttpReply {
    let plain = |status, text: &str| text_reply(status, "text/plain", text.to_owned());
    let greets = call.method == "GET" && call.path.ends_with("/info/refs");
    let answers = call.method == "POST" && call.path.ends_with("/git-upload-pack");
    if !greets && !answers {
        return plain(404, "Not Found");
    }
    if greets && call.query != "service=git-upload-pack" {
        return plain(403, "Please upgrade your git client.");
    }
    let path = call.path.trim_end_matches("/info/refs").trim_end_matches("/git-upload-pack");
    let given = call.header("authorization").and_then(basic);
    let credentials = given.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
    match repositories.get(&key(&format!("{}{path}", call.host))) {
        Some(repository) if repository.admits(credentials) => spoken(repository, call, greets),
        // A private repository and none at all look the same to a stranger.
        found => {
            if found.is_none() && credentials.is_some() {
                return plain(404, "Repository not found.");
            }
            let mut reply =
                plain(401, if credentials.is_some() { DENIED } else { "Repository not found." });
            let realm = ("www-authenticate".to_owned(), "Basic realm=\"GitHub\"".to_owned());
            reply.headers.push(realm);
            reply
        }
    }
}

/// The protocol itself, in the version that was asked for.
fn spoken(repository: &Repository, call: &HttpCall, greets: bool) -> HttpReply {
    let version = call.header("git-protocol").unwrap_or_default();
    let two = version.split(':').any(|word| word == "version=2");
    let (kind, body) = match (greets, two) {
        (true, true) => ("advertisement", Some(Repository::greeting_two())),
        (true, false) => ("advertisement", Some(repository.greeting_zero())),
        (false, true) => ("result", repository.answer_two(&call.body)),
        (false, false) => ("result", repository.answer_zero(&call.body)),
    };
    let Some(body) = body else {
        return text_reply(400, "text/plain", "Bad Request");
    };
    let mut reply = text_reply(200, &format!("application/x-git-upload-pack-{kind}"), body);
    reply.headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
    reply
}

fn basic(header: &str) -> Option<(String, String)> {
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
