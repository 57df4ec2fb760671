//! The emulated artefact sources: the image factory, release manifests and the Git host.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::turn::{HttpBody, HttpCall, HttpReply};

pub mod factory;
pub mod file;
pub mod git;
pub mod manifest;

use factory::Schematic;
use git::{GitTrouble, Repository};

/// Where schematics are registered.
pub const FACTORY_HOST: &str = "factory.talos.dev";

/// Where release manifests lie.
pub const MANIFEST_HOSTS: [&str; 2] = ["github.com", "raw.githubusercontent.com"];

/// The repository that a castle file names.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct SourcesBirth {
    /// The repository, https.
    pub url: String,
    /// The branch.
    pub branch: String,
    /// The folder of the cluster.
    pub path: String,
    /// The token that reads it; none for a public one.
    pub token: Option<String>,
    /// Addresses of manifests that layers of one's own name; nobody here knows what is in them.
    pub manifests: Vec<String>,
}

/// What the sources hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Registered schematics by id.
    schematics: BTreeMap<String, Schematic>,
    /// Repositories by [`git::key`].
    repositories: BTreeMap<String, Repository>,
    /// Whether the Git host answers nobody.
    away: bool,
    /// Addresses of manifests that are invented, by host and path.
    invented: BTreeMap<String, String>,
    /// What goes wrong with files.
    troubles: Vec<file::SourcesTrouble>,
    /// How often a call has used one up.
    met: u64,
}

impl Sources {
    /// Sources with the repository of a castle file.
    #[must_use]
    pub fn new(birth: &SourcesBirth) -> Self {
        let mut sources = Self::default();
        sources.ensure(birth);
        sources
    }

    /// Adds the repository, branch or folder of a castle file where it is missing.
    pub fn ensure(&mut self, birth: &SourcesBirth) {
        let repository = self.repositories.entry(git::key(&birth.url)).or_default();
        repository.token.clone_from(&birth.token);
        repository.ensure(&birth.branch, &birth.path);
        let places = birth.manifests.iter().map(|url| (manifest::place(url), url.clone()));
        self.invented.extend(places);
    }

    /// Lets something happen at the Git host.
    pub fn git_suffers(&mut self, trouble: &GitTrouble) {
        match trouble {
            GitTrouble::Away(away) => self.away = *away,
            GitTrouble::Push { url, branch, files } => {
                self.repositories.entry(git::key(url)).or_default().push(branch, files, "push");
            }
            GitTrouble::Folder { url, branch, path, broken } => {
                if let Some(repository) = self.repositories.get_mut(&git::key(url)) {
                    repository.spoil(branch, path, *broken);
                }
            }
            GitTrouble::Unbranch { url, branch } => {
                if let Some(repository) = self.repositories.get_mut(&git::key(url)) {
                    repository.unbranch(branch);
                }
            }
            GitTrouble::Token { url, token } => {
                if let Some(repository) = self.repositories.get_mut(&git::key(url)) {
                    repository.token = Some(token.clone());
                }
            }
        }
    }

    /// Answers a request.
    pub fn call(&mut self, call: &HttpCall) -> HttpReply {
        if let Some(upstream) = self.mirrored(call) {
            return self.call(&upstream);
        }
        if call.host == FACTORY_HOST || factory::serves(call) {
            let reply = factory::call(&mut self.schematics, call);
            return match reply.body {
                HttpBody::Whole(image)
                    if call.path.starts_with("/image/") && reply.status == 200 =>
                {
                    self.file(call, image)
                }
                _ => reply,
            };
        }
        if let Some(text) = manifest::find(&call.host, &call.path) {
            return match call.method.as_str() {
                "GET" | "HEAD" => self.file(call, text),
                _ => text_reply(405, "text/plain; charset=utf-8", "method not allowed"),
            };
        }
        match self.invented.get(&format!("{}{}", call.host, call.path)) {
            Some(url) if matches!(call.method.as_str(), "GET" | "HEAD") => {
                self.file(call, manifest::invented(url))
            }
            _ if self.away => text_reply(503, "text/plain", "Service Unavailable"),
            _ => git::call(&self.repositories, call),
        }
    }

    /// The call that a mirror makes of one to it: it has everything as `/<host>/<path>` of its own address.
    fn mirrored(&self, call: &HttpCall) -> Option<HttpCall> {
        let place = call.path.strip_prefix('/')?;
        let (host, path) = place.split_once('/')?;
        let upstream = || [FACTORY_HOST].into_iter().chain(MANIFEST_HOSTS);
        let known = upstream().any(|known| known == host) || self.invented.contains_key(place);
        (known && !upstream().any(|known| known == call.host)).then(|| HttpCall {
            host: host.to_owned(),
            path: format!("/{path}"),
            ..call.clone()
        })
    }

    /// System extensions in an image, by the schematic id in its file name.
    #[must_use]
    pub fn extensions(&self, image: Option<&str>) -> Vec<String> {
        let Some(image) = image else { return Vec::new() };
        // File names may carry a shortened id; sixteen digits are beyond chance.
        self.schematics
            .iter()
            .find(|(id, _)| image.contains(&id[..16]))
            .map(|(_, schematic)| schematic.extensions().to_vec())
            .unwrap_or_default()
    }

    /// The commit that a branch is at.
    ///
    /// # Errors
    /// Flux's words for a repository, credential or branch that is not there.
    pub fn git_head(
        &self,
        url: &str,
        branch: &str,
        credentials: Option<(&str, &str)>,
    ) -> Result<String, String> {
        if self.away {
            return Err(format!(
                "failed to checkout and determine revision: unable to list remote for '{url}': 503 Service Unavailable"
            ));
        }
        git::head(&self.repositories, url, branch, credentials)
    }

    /// The files of a commit, by their paths.
    #[must_use]
    pub fn git_files(&self, url: &str, commit: &str) -> Option<&BTreeMap<String, String>> {
        self.repositories.get(&git::key(url))?.files(commit)
    }

    /// Where every branch of every repository is.
    #[must_use]
    pub fn heads(&self) -> Vec<git::Head> {
        self.repositories.iter().flat_map(|(name, repository)| repository.heads(name)).collect()
    }

    /// What is wrong because somebody said so.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let away = self.away.then(|| "the Git host answers nobody".to_owned());
        let files = self
            .troubles
            .iter()
            .map(|trouble| format!("downloads of {} go wrong", trouble.address));
        away.into_iter().chain(files).collect()
    }

    /// The registered schematic ids.
    pub fn schematics(&self) -> impl Iterator<Item = &str> {
        self.schematics.keys().map(String::as_str)
    }
}

/// What a status is said with where no call explains it: a line of text, as proxies and file servers have it.
pub(crate) fn refusal(status: u16) -> HttpReply {
    let name = http::StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    text_reply(status, "text/plain; charset=utf-8", name.unwrap_or("Error"))
}

/// A reply of text that changed nothing.
fn text_reply(status: u16, kind: &str, text: impl Into<Bytes>) -> HttpReply {
    HttpReply {
        status,
        reason: None,
        headers: vec![("content-type".to_owned(), kind.to_owned())],
        body: HttpBody::Whole(text.into()),
        mutated: false,
    }
}

#[cfg(test)]
mod tests;
