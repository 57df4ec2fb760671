//! The files of one commit by their paths.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::pack::{Id, Kind, Objects};

/// The most paths of one commit. The same folder may stand at many places, so this is not bounded by the pack.
pub const MOST_PATHS: usize = 100_000;
/// How deep folders may be.
pub const DEEPEST: usize = 64;

/// Why the files of a commit cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TreeError {
    /// An object is not in what the server sent.
    #[error("{what} {id} was not sent")]
    Missing {
        /// Commit or folder.
        what: &'static str,
        /// Its name.
        id: String,
    },
    /// An object is not what it should be.
    #[error("{what} {id} cannot be read")]
    Broken {
        /// Commit or folder.
        what: &'static str,
        /// Its name.
        id: String,
    },
    /// More paths than we read, or deeper folders.
    #[error("it is larger than we read: {what}")]
    TooLarge {
        /// Which limit.
        what: &'static str,
    },
}

/// What is at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    /// A folder.
    Folder,
    /// A file with its bytes.
    File(Arc<[u8]>),
    /// A file that the server left out because it is large.
    Left,
    /// A link to another path.
    Link(String),
    /// Another repository.
    Module,
}

/// The files of one commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    commit: String,
    entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// A tree of text files, such as a test needs.
    #[must_use]
    pub fn of<'a>(commit: &str, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut entries = BTreeMap::new();
        for (path, text) in files {
            for (end, _) in path.match_indices('/') {
                entries.insert(path[..end].to_owned(), Entry::Folder);
            }
            entries.insert(path.to_owned(), Entry::File(text.as_bytes().into()));
        }
        Self { commit: commit.to_owned(), entries }
    }

    /// The commit.
    #[must_use]
    pub fn commit(&self) -> &str {
        &self.commit
    }

    /// What is at a path; the repository itself is at the empty one.
    #[must_use]
    pub fn entry(&self, path: &str) -> Option<&Entry> {
        if path.is_empty() { Some(&Entry::Folder) } else { self.entries.get(path) }
    }

    /// Everything below a folder, in the order of paths.
    pub fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &Entry)> {
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        self.entries
            .range(start.clone()..)
            .take_while(move |(path, _)| path.starts_with(&start))
            .map(|(path, entry)| (path.as_str(), entry))
    }

    /// Puts the files of a commit together.
    pub(crate) fn read(commit: &str, objects: &Objects) -> Result<Self, TreeError> {
        let missing = |what, id: &str| TreeError::Missing { what, id: id.to_owned() };
        let broken = |what, id: &str| TreeError::Broken { what, id: id.to_owned() };
        let id = named(commit).ok_or_else(|| broken("commit", commit))?;
        let Some((Kind::Commit, text)) = objects.get(&id) else {
            return Err(missing("commit", commit));
        };
        let root = text.strip_prefix(b"tree ").and_then(|rest| rest.get(..40));
        let root = root
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(named)
            .ok_or_else(|| broken("commit", commit))?;
        let mut files: BTreeMap<Id, Arc<[u8]>> = BTreeMap::new();
        let mut entries = BTreeMap::new();
        let mut open = vec![(String::new(), root)];
        while let Some((folder, id)) = open.pop() {
            let name = hex::encode(id);
            let Some((Kind::Tree, bytes)) = objects.get(&id) else {
                return Err(missing("folder", &name));
            };
            if folder.matches('/').count() >= DEEPEST {
                return Err(TreeError::TooLarge { what: "folders within folders" });
            }
            for (mode, file, id) in lines(bytes).ok_or_else(|| broken("folder", &name))? {
                let path = if folder.is_empty() { file } else { format!("{folder}/{file}") };
                let entry = match mode {
                    "40000" => {
                        open.push((path.clone(), id));
                        Entry::Folder
                    }
                    "160000" => Entry::Module,
                    mode => match objects.get(&id) {
                        Some((Kind::Blob, bytes)) if mode == "120000" => {
                            Entry::Link(String::from_utf8_lossy(bytes).into_owned())
                        }
                        Some((Kind::Blob, bytes)) => {
                            let shared = files.entry(id).or_insert_with(|| bytes.as_slice().into());
                            Entry::File(shared.clone())
                        }
                        Some(_) => return Err(broken("folder", &name)),
                        None => Entry::Left,
                    },
                };
                entries.insert(path, entry);
                if entries.len() > MOST_PATHS {
                    return Err(TreeError::TooLarge { what: "too many files" });
                }
            }
        }
        Ok(Self { commit: commit.to_owned(), entries })
    }
}

/// The lines of a folder: mode, name and object; none if one is not so.
fn lines(mut bytes: &[u8]) -> Option<Vec<(&str, String, Id)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|b| *b == 0)?;
        let (mode, name) = std::str::from_utf8(&bytes[..end]).ok()?.split_once(' ')?;
        let id = bytes.get(end + 1..end + 21)?.try_into().ok()?;
        if name.is_empty() || matches!(name, "." | "..") || name.contains('/') {
            return None;
        }
        found.push((mode, name.to_owned(), id));
        bytes = &bytes[end + 21..];
    }
    Some(found)
}

fn named(hex: &str) -> Option<Id> {
    hex::decode(hex).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(lines: &[(&str, &str, Id)]) -> Vec<u8> {
        let line = |(mode, name, id): &(&str, &str, Id)| {
            [format!("{mode} {name}\0").as_bytes(), id.as_slice()].concat()
        };
        lines.iter().flat_map(line).collect()
    }

    fn objects(root: Vec<u8>) -> Objects {
        let commit = format!("tree {}\nauthor nobody\n", hex::encode([2; 20])).into_bytes();
        [
            ([1; 20], (Kind::Commit, commit)),
            ([2; 20], (Kind::Tree, root)),
            ([3; 20], (Kind::Tree, folder(&[("100644", "a.yaml", [4; 20])]))),
            ([4; 20], (Kind::Blob, b"kind: A".to_vec())),
        ]
        .into()
    }

    #[test]
    fn files_are_found_by_their_paths() {
        let root = folder(&[
            ("40000", "apps", [3; 20]),
            ("40000", "copy", [3; 20]),
            ("120000", "link", [4; 20]),
            ("160000", "module", [9; 20]),
            ("100644", "large.bin", [8; 20]),
        ]);
        let tree = Tree::read(&"01".repeat(20), &objects(root)).unwrap();
        let file = Entry::File(b"kind: A".as_slice().into());
        assert_eq!(tree.entry(""), Some(&Entry::Folder));
        assert_eq!(tree.entry("apps"), Some(&Entry::Folder));
        assert_eq!(tree.entry("apps/a.yaml"), Some(&file));
        assert_eq!(tree.entry("link"), Some(&Entry::Link("kind: A".into())));
        assert_eq!(tree.entry("module"), Some(&Entry::Module));
        assert_eq!(tree.entry("large.bin"), Some(&Entry::Left));
        assert_eq!(tree.entry("nowhere"), None);
        assert_eq!(tree.below("copy").collect::<Vec<_>>(), [("copy/a.yaml", &file)]);
        assert_eq!(tree.below("").count(), 7);
        assert_eq!(tree.below("app").count(), 0, "not by the beginning of a name");
    }

    #[test]
    fn a_tree_that_is_not_whole_or_leads_out_is_refused() {
        let read = |root| Tree::read(&"01".repeat(20), &objects(root));
        for name in ["..", ".", "a/b"] {
            assert!(matches!(
                read(folder(&[("100644", name, [4; 20])])),
                Err(TreeError::Broken { what: "folder", .. })
            ));
        }
        let lost = read(folder(&[("40000", "lost", [7; 20])]));
        assert!(matches!(lost, Err(TreeError::Missing { what: "folder", .. })));
        assert!(matches!(read(b"100644 x".to_vec()), Err(TreeError::Broken { .. })));
        let nobody = Tree::read(&"05".repeat(20), &objects(Vec::new()));
        assert!(matches!(nobody, Err(TreeError::Missing { what: "commit", .. })));
    }

    #[test]
    fn a_few_folders_that_unfold_to_millions_are_not_followed() {
        // Each folder holds the next one ten times.
        let mut all = objects(folder(&[("40000", "a", [10; 20])]));
        for level in 10..20_u8 {
            let names: Vec<String> = (0..10).map(|n| format!("n{n}")).collect();
            let lines: Vec<_> =
                names.iter().map(|n| ("40000", n.as_str(), [level + 1; 20])).collect();
            all.insert([level; 20], (Kind::Tree, folder(&lines)));
        }
        all.insert([20; 20], (Kind::Tree, Vec::new()));
        let told = Tree::read(&"01".repeat(20), &all);
        assert_eq!(told, Err(TreeError::TooLarge { what: "too many files" }));
    }
}
