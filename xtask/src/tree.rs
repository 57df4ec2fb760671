//! The files of the house: where its root is, and every file that a person wrote.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::talk;

/// Folders that hold nothing a person wrote; in a git worktree, `.git` is a file.
const SKIPPED: [&str; 3] = [".git", "target", "node_modules"];

/// One text file of the house.
pub(crate) struct Source {
    /// Where it is, from the root, with `/` between the parts.
    pub(crate) path: String,
    /// What it says.
    pub(crate) text: String,
}

impl Source {
    /// Whether it is Rust.
    pub(crate) fn is_rust(&self) -> bool {
        self.has_ending("rs")
    }

    /// Whether its name has this ending.
    pub(crate) fn has_ending(&self, ending: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == ending)
    }
}

/// The folder with `house.toml`, at or above the one we were started in.
pub(crate) fn root() -> Result<PathBuf> {
    let start = std::env::current_dir().context("finding the current folder")?;
    match start.ancestors().find(|folder| folder.join("house.toml").is_file()) {
        Some(root) => Ok(root.to_owned()),
        None => {
            bail!("no house.toml in {} or above: run this inside the repository", start.display())
        }
    }
}

#[derive(Deserialize)]
struct Metadata {
    target_directory: PathBuf,
}

/// Where cargo puts what it builds.
pub(crate) fn target(root: &Path) -> Result<PathBuf> {
    let text = talk::output(root, &["cargo", "metadata", "--format-version=1", "--no-deps"])?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("understanding what cargo metadata wrote")?;
    Ok(metadata.target_directory)
}

/// Every file below the root, sorted by path. A file that is not UTF-8 counts with an empty text.
pub(crate) fn files(root: &Path) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    collect(root, root, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))? {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        let path = entry.path();
        let kind = entry.file_type().with_context(|| format!("looking at {}", path.display()))?;
        if SKIPPED.iter().any(|skipped| entry.file_name() == *skipped) {
            continue;
        }
        if kind.is_dir() {
            collect(root, &path, found)?;
        } else if kind.is_file() {
            let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let inside = path.strip_prefix(root).unwrap_or(&path);
            let parts: Vec<_> = inside.iter().map(|part| part.to_string_lossy()).collect();
            found.push(Source {
                path: parts.join("/"),
                text: String::from_utf8(bytes).unwrap_or_default(),
            });
        }
    }
    Ok(())
}
