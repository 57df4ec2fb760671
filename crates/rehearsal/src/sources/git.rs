//! The Git host: repositories over smart HTTP, as far as asking for their branches goes.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::text_reply;
use crate::turn::{Declared, HttpCall, HttpReply};

/// The Kustomizations of every rehearsed repository: name, folder, what must be Ready before.
const TREE: [(&str, &str, &[&str]); 6] = [
    ("operators-namespaces", "./infrastructure/operators/namespaces", &[]),
    ("operators-core", "./infrastructure/operators/core", &["operators-namespaces"]),
    ("bridge", "./infrastructure/bridge", &["operators-core"]),
    ("configs", "./infrastructure/configs", &["bridge"]),
    ("apps-static", "./apps/static", &["configs"]),
    ("monitoring", "./infrastructure/monitoring", &["configs"]),
];

/// What a server without news of the client's credentials says.
const DENIED: &str =
    "Invalid username or token. Password authentication is not supported for Git operations.";

/// One repository.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Repository {
    /// The token that reads it; none if everybody may.
    pub(super) token: Option<String>,
    /// Commits by branch.
    pub(super) branches: BTreeMap<String, String>,
    /// What folders declare.
    pub(super) folders: BTreeMap<String, Vec<Declared>>,
}

impl fmt::Debug for Repository {
    /// Without the token.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repository").field("branches", &self.branches).finish_non_exhaustive()
    }
}

impl Repository {
    /// What a folder declares; the folders of the declared ones are there and declare nothing.
    pub(super) fn folder(&self, path: &str) -> Option<Vec<Declared>> {
        let path = folder(path);
        if let Some(declared) = self.folders.get(&path) {
            return Some(declared.clone());
        }
        TREE.iter().any(|(_, known, _)| folder(known) == path).then(Vec::new)
    }

    fn admits(&self, credentials: Option<(&str, &str)>) -> bool {
        self.token
            .as_deref()
            .is_none_or(|token| credentials.is_some_and(|(_, given)| given == token))
    }
}

/// A repository's address without the differences that mean nothing: `host/path`, no `.git`.
#[must_use]
pub fn key(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let rest = rest.trim_end_matches('/');
    rest.strip_suffix(".git").unwrap_or(rest).to_lowercase()
}

/// A folder without the differences that mean nothing.
pub(super) fn folder(path: &str) -> String {
    path.trim_start_matches("./").trim_matches('/').to_owned()
}

/// The tree that every rehearsed repository has.
pub(super) fn declared() -> Vec<Declared> {
    TREE.iter()
        .map(|(name, path, before)| Declared {
            name: (*name).to_owned(),
            path: (*path).to_owned(),
            depends_on: before.iter().map(|name| (*name).to_owned()).collect(),
        })
        .collect()
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
    let (Some(path), "GET") = (call.path.strip_suffix("/info/refs"), call.method.as_str()) else {
        return plain(404, "Not Found");
    };
    if call.query != "service=git-upload-pack" {
        return plain(403, "Please upgrade your git client.");
    }
    let given = call.header("authorization").and_then(basic);
    let credentials = given.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
    match repositories.get(&key(&format!("{}{path}", call.host))) {
        Some(repository) if repository.admits(credentials) => {
            let mut reply = text_reply(
                200,
                "application/x-git-upload-pack-advertisement",
                advertisement(repository),
            );
            reply.headers.push(("cache-control".to_owned(), "no-cache".to_owned()));
            reply
        }
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

/// The refs in protocol version 0: lines with their length in front, `0000` between the parts.
fn advertisement(repository: &Repository) -> String {
    let branches = &repository.branches;
    let mut text = packet("# service=git-upload-pack\n") + "0000";
    if let Some((branch, commit)) = branches.get_key_value("main").or(branches.iter().next()) {
        let abilities = "multi_ack thin-pack side-band-64k ofs-delta shallow no-progress";
        let head = format!("symref=HEAD:refs/heads/{branch} agent=git/rehearsal");
        text += &packet(&format!("{commit} HEAD\0{abilities} {head}\n"));
    }
    for (branch, commit) in branches {
        text += &packet(&format!("{commit} refs/heads/{branch}\n"));
    }
    text + "0000"
}

fn packet(line: &str) -> String {
    format!("{:04x}{line}", line.len() + 4)
}

fn basic(header: &str) -> Option<(String, String)> {
    let decoded = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (user, password) = text.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}
