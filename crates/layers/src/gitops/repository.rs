//! `gitops/repository`: the repository is read before anything is built, so that what Flux would stumble over in an hour
//! is known now.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Key, Step};
use castle_git::{Entry, GitError, Tree};
use castle_model::{Class, Failure, Finding, Observed};
use castle_platforms::cluster::Cluster;
use castle_platforms::handed::SECRETS;

use super::contents::{Contents, clean};
use super::owners::claims;

/// What was read, kept for the rest of the run: a plan and its run see the same commit.
const READ: Key<Tree> = Key::new("gitops/repository");

/// How much of a commit is shown to a person.
const DIGITS: usize = 8;
/// How many warnings are told; the rest is counted.
const TOLD: usize = 8;

/// The step.
pub(super) struct Repository(pub(super) Arc<Cluster>);

impl Repository {
    fn what(&self) -> String {
        let gitops = &self.0.spec.gitops;
        format!("look into {} at {} before anything is built", gitops.url, gitops.branch)
    }

    async fn read(&self, cx: &Context) -> Result<Arc<Tree>, GitError> {
        if let Ok(known) = cx.outputs().get(&READ) {
            return Ok(known);
        }
        let gitops = &self.0.spec.gitops;
        let secrets = cx.outputs().get(&SECRETS).ok();
        let token = secrets.as_ref().zip(gitops.token.as_ref());
        let token = token.and_then(|(secrets, key)| secrets.get(key).ok());
        let tree = castle_git::tree(&self.0.world, &gitops.url, &gitops.branch, token)
            .await
            .map(Arc::new)?;
        cx.outputs().put(&READ, tree.as_ref().clone());
        Ok(tree)
    }

    /// What is wrong with the repository, or what was seen.
    fn judged(&self, cx: &Context, tree: &Tree) -> Result<String, Failure> {
        let spec = &self.0.spec;
        let path = self.folder(tree)?;
        let contents = Contents::read(tree, &path);
        let claims = claims(spec, &contents);
        let refuse = |why: &str, findings: Vec<Finding>| {
            Failure::new(Class::Conflict, self.what(), why).findings(findings)
        };
        if !claims.doubled.is_empty() {
            return Err(refuse(
                "something would have two owners, and they would fight",
                claims.doubled,
            ));
        }
        if !claims.orphaned.is_empty() && !contents.partial {
            return Err(refuse("something would have no owner", claims.orphaned));
        }
        let declared = |name: &&String| contents.units().any(|unit| unit.object.name() == **name);
        let unknown = spec.gitops.milestones.iter().filter(|name| !declared(name)).map(|name| {
            let why = format!("the milestone {name} is no Kustomization of the repository");
            Finding::new("milestones", why, "correct it, or push the Kustomization")
        });
        let unknown: Vec<Finding> = unknown.collect();
        let doubtful = contents.warnings.iter().chain(&claims.orphaned).chain(&unknown);
        let warnings: Vec<&Finding> = doubtful.collect();
        for warning in warnings.iter().take(TOLD) {
            cx.notice(format!("{}: {}; {}", warning.place, warning.why, warning.cure));
        }
        if warnings.len() > TOLD {
            cx.notice(format!("and {} more of that kind in the repository", warnings.len() - TOLD));
        }
        let at = short(tree.commit());
        let units = contents.units().count();
        let doubts = match warnings.len() {
            0 => String::new(),
            some => format!(", and {some} things in it are doubtful"),
        };
        Ok(format!("{} at {at} declares {units} Kustomizations{doubts}", spec.gitops.branch))
    }

    /// The cluster's folder, which must be one.
    fn folder(&self, tree: &Tree) -> Result<String, Failure> {
        let told = &self.0.spec.gitops.path;
        let refuse = |class, why: String| Failure::new(class, self.what(), why);
        let path = clean(told).ok_or_else(|| {
            refuse(Class::Invalid, format!("`path = \"{told}\"` leads out of the repository"))
                .hint("name a folder of the repository, such as clusters/blue")
        })?;
        match tree.entry(&path) {
            Some(Entry::Folder) => Ok(path),
            Some(_) => Err(refuse(Class::Invalid, format!("`{path}` is a file, not a directory"))
                .hint("`path` names the folder that Flux begins in; leave the file's name out")),
            None => {
                let near = folders_beside(tree, &path);
                let hint = if near.is_empty() {
                    "push the folder, or correct `path` in the `gitops` block".to_owned()
                } else {
                    format!("push the folder, or correct `path`: beside it are {}", near.join(", "))
                };
                let at = short(tree.commit());
                Err(refuse(Class::Gone, format!("there is no `{path}` at {at}")).hint(hint))
            }
        }
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the repository holds what Flux is to build";

#[async_trait]
impl Step for Repository {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        match self.read(cx).await {
            Ok(tree) => Ok(Observed::right(self.judged(cx, &tree)?)),
            Err(error) if error.is_unreadable() => {
                cx.notice(format!(
                    "the repository is not looked into: {}",
                    error.failure("read it").why
                ));
                Ok(Observed::right("there, and not looked into"))
            }
            Err(error) => {
                let failure = error.failure(self.what());
                // A castle that stands does not fall with its Git host: it was looked into before.
                if failure.is_transient() && cx.state().word() == "done" {
                    cx.notice(format!("the repository is not looked into again: {}", failure.why));
                    return Ok(Observed::right(
                        "looked into by an earlier run; it does not answer now",
                    ));
                }
                Err(failure)
            }
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        match self.observe(cx).await? {
            Observed::Right { evidence } => Ok(evidence),
            _ => Err(Failure::bug(self.what(), "a look that is neither right nor a failure")),
        }
    }
}

fn short(commit: &str) -> String {
    commit.chars().take(DIGITS).collect()
}

/// Folders at the place where one was looked for, or where the way to it ends.
fn folders_beside(tree: &Tree, path: &str) -> Vec<String> {
    let mut parent = path;
    loop {
        parent = parent.rsplit_once('/').map_or("", |(parent, _)| parent);
        if matches!(tree.entry(parent), Some(Entry::Folder)) {
            break;
        }
    }
    let depth = if parent.is_empty() { 0 } else { parent.len() + 1 };
    tree.below(parent)
        .filter(|(path, entry)| **entry == Entry::Folder && !path[depth..].contains('/'))
        .map(|(path, _)| path.to_owned())
        .take(5)
        .collect()
}
