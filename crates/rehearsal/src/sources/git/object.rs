//! Git's objects as the git program makes them: files, folders and commits, by the SHA-1 of what they hold, in packs.

use std::collections::BTreeMap;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use serde::{Deserialize, Serialize};

/// Who commits.
const AUTHOR: &str = "castle rehearsal <rehearsal@castle.invalid>";
/// The longest piece that the plainest kind of zlib stream is made of.
const PIECE: usize = 65_535;

/// One commit with all of its files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The one before.
    pub parent: Option<String>,
    /// When, in seconds since 1970.
    pub at: u64,
    /// What it says.
    pub message: String,
    /// Texts by their paths.
    pub files: BTreeMap<String, String>,
}

/// The kinds of objects, as packs number them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Commit = 1,
    Tree = 2,
    Blob = 3,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }
}

/// Objects by their names.
#[derive(Default)]
pub(super) struct Objects(BTreeMap<[u8; 20], (Kind, Vec<u8>)>);

impl Commit {
    /// Its name.
    pub(super) fn id(&self) -> String {
        self.put(&mut Objects::default())
    }

    /// Adds the commit, its folders and its files.
    pub(super) fn put(&self, objects: &mut Objects) -> String {
        let files: Vec<(&str, &str)> =
            self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let tree = hex::encode(objects.folder(&files));
        let parent = self.parent.as_ref().map(|id| format!("parent {id}\n")).unwrap_or_default();
        let text = format!(
            "tree {tree}\n{parent}author {AUTHOR} {at} +0000\ncommitter {AUTHOR} {at} +0000\n\n{}\n",
            self.message,
            at = self.at
        );
        hex::encode(objects.add(Kind::Commit, text.into_bytes()))
    }
}

impl Objects {
    fn add(&mut self, kind: Kind, bytes: Vec<u8>) -> [u8; 20] {
        let mut whole = format!("{} {}\0", kind.word(), bytes.len()).into_bytes();
        whole.extend_from_slice(&bytes);
        let mut id = [0; 20];
        id.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &whole).as_ref());
        self.0.insert(id, (kind, bytes));
        id
    }

    /// A folder of these files, in the order of paths.
    fn folder(&mut self, files: &[(&str, &str)]) -> [u8; 20] {
        // Git sorts a folder as if its name ended with a slash.
        let mut lines: BTreeMap<String, (&str, &str, [u8; 20])> = BTreeMap::new();
        let mut rest = files;
        while let Some((path, text)) = rest.first() {
            let Some((name, _)) = path.split_once('/') else {
                let id = self.add(Kind::Blob, text.as_bytes().to_vec());
                lines.insert((*path).to_owned(), ("100644", path, id));
                rest = &rest[1..];
                continue;
            };
            let within = format!("{name}/");
            let end = rest.iter().take_while(|(path, _)| path.starts_with(&within)).count();
            let inner: Vec<(&str, &str)> =
                rest[..end].iter().map(|(path, text)| (&path[within.len()..], *text)).collect();
            let id = self.folder(&inner);
            lines.insert(within, ("40000", name, id));
            rest = &rest[end..];
        }
        let mut bytes = Vec::new();
        for (mode, name, id) in lines.into_values() {
            bytes.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            bytes.extend_from_slice(&id);
        }
        self.add(Kind::Tree, bytes)
    }

    /// All of them as a pack, commits first.
    /// Those that others do not have.
    pub(super) fn without(mut self, others: &Self) -> Self {
        self.0.retain(|id, _| !others.0.contains_key(id));
        self
    }

    /// All of them, as they go over the wire.
    pub(super) fn pack(&self) -> Vec<u8> {
        let mut pack = b"PACK\0\0\0\x02".to_vec();
        pack.extend_from_slice(&u32::try_from(self.0.len()).unwrap_or(u32::MAX).to_be_bytes());
        let mut sorted: Vec<&(Kind, Vec<u8>)> = self.0.values().collect();
        sorted.sort_by_key(|(kind, _)| *kind);
        for (kind, bytes) in sorted {
            let mut size = bytes.len() >> 4;
            let mut byte = low_bits(bytes.len(), 15) | (*kind as u8) << 4;
            while size > 0 {
                pack.push(byte | 128);
                byte = low_bits(size, 127);
                size >>= 7;
            }
            pack.push(byte);
            deflate(bytes, &mut pack);
        }
        let sum = digest(&SHA1_FOR_LEGACY_USE_ONLY, &pack);
        pack.extend_from_slice(sum.as_ref());
        pack
    }
}

fn low_bits(number: usize, mask: u8) -> u8 {
    number.to_le_bytes()[0] & mask
}

/// A zlib stream that holds the bytes as they are: every reader takes it, and nothing must be chosen.
fn deflate(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&[0x78, 0x01]);
    let mut pieces = bytes.chunks(PIECE).peekable();
    if pieces.peek().is_none() {
        out.extend_from_slice(&[1, 0, 0, 0xff, 0xff]);
    }
    while let Some(piece) = pieces.next() {
        let length = u16::try_from(piece.len()).unwrap_or(u16::MAX);
        out.push(u8::from(pieces.peek().is_none()));
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&(!length).to_le_bytes());
        out.extend_from_slice(piece);
    }
    let (one, two) = bytes.iter().fold((1_u32, 0_u32), |(one, two), byte| {
        let one = (one + u32::from(*byte)) % 65_521;
        (one, (two + one) % 65_521)
    });
    out.extend_from_slice(&(two << 16 | one).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_the_name_that_the_git_program_gives_it() {
        let file = |text: &str| text.to_owned();
        let first = Commit {
            parent: None,
            at: 1_769_990_400,
            message: "first".into(),
            files: [
                ("a.b".into(), file("x\n")),
                ("a/one.yaml".into(), file("kind: One\n")),
                ("a/two/three.yaml".into(), file("")),
                ("a0".into(), file("y\n")),
            ]
            .into(),
        };
        assert_eq!(first.id(), "7ca73628e3a71fce569a08f7e1026df7e05908e7");
        let second = Commit { parent: Some(first.id()), message: "second".into(), ..first };
        assert_eq!(second.id(), "eeb1c7e2d65ec2e28c7329119e7e7871fa2cb409");
    }
}
