//! The references of a repository, as a server lists them in either version of the protocol, read with limits.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::packet::{Packet, PacketError, Packets, trimmed};

/// The most references that are read; large repositories have tens of thousands.
const REFERENCES: usize = 200_000;

/// Why an answer is not a list of references.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdvertisementError {
    /// The content type is another one.
    #[error("its content type is not that of a Git server")]
    Kind,
    /// The first line does not say what follows.
    #[error("it does not begin with the service's name")]
    Service,
    /// It is not in lines with their length.
    #[error(transparent)]
    Packet(#[from] PacketError),
    /// A line is not a commit and a name.
    #[error("the line at byte {at} is not a reference")]
    Reference {
        /// Where.
        at: usize,
    },
    /// More references than we read.
    #[error("it lists more than {REFERENCES} references")]
    TooMany,
}

/// What a server says first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Greeting {
    /// It speaks version 2, and lists its abilities.
    Two(Abilities),
    /// It speaks the first version, and lists its references.
    Zero(Advertisement, Abilities),
}

/// What a server can do, as far as we use it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Leaves out large files when asked to.
    pub(crate) filter: bool,
    /// Names objects by SHA-256.
    pub(crate) sha256: bool,
}

impl Greeting {
    /// Reads what a server sends for `service=git-upload-pack`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, AdvertisementError> {
        let mut packets = Packets::new(bytes);
        let mut first = packets.next()?;
        if let Packet::Line(line) = first.1
            && trimmed(line) == b"# service=git-upload-pack"
        {
            if packets.next()?.1 != Packet::Flush {
                return Err(AdvertisementError::Service);
            }
            first = packets.next()?;
        } else if !matches!(first.1, Packet::Line(line) if trimmed(line) == b"version 2") {
            return Err(AdvertisementError::Service);
        }
        match first.1 {
            Packet::Line(line) if trimmed(line) == b"version 2" => {
                abilities(packets).map(Self::Two)
            }
            _ => Advertisement::listed(first, &mut packets)
                .map(|(listed, abilities)| Self::Zero(listed, abilities)),
        }
    }
}

fn abilities(mut packets: Packets<'_>) -> Result<Abilities, AdvertisementError> {
    let mut found = Abilities::default();
    while let (_, Packet::Line(line)) = packets.next()? {
        let text = String::from_utf8_lossy(trimmed(line));
        match text.split_once('=') {
            Some(("fetch", can)) => found.filter = can.split(' ').any(|word| word == "filter"),
            Some(("object-format", format)) => found.sha256 = format == "sha256",
            _ => {}
        }
    }
    Ok(found)
}

/// The references of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Advertisement {
    references: BTreeMap<String, String>,
}

impl Advertisement {
    /// Reads the answer to `ls-refs`.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, AdvertisementError> {
        let mut packets = Packets::new(bytes);
        let first = packets.next()?;
        Self::listed(first, &mut packets).map(|(listed, _)| listed)
    }

    fn listed(
        first: (usize, Packet<'_>),
        packets: &mut Packets<'_>,
    ) -> Result<(Self, Abilities), AdvertisementError> {
        let mut references = BTreeMap::new();
        let mut abilities = Abilities::default();
        let mut current = first;
        while let (at, Packet::Line(line)) = current {
            let (text, can) = split(line).ok_or(AdvertisementError::Reference { at })?;
            let (commit, name) = reference(text).ok_or(AdvertisementError::Reference { at })?;
            abilities.sha256 |= commit.len() == 64;
            abilities.filter |= can.split(' ').any(|word| word == "filter");
            // An empty repository lists its abilities under this name.
            if name != "capabilities^{}" {
                references.insert(name.to_owned(), commit.to_owned());
            }
            if references.len() > REFERENCES {
                return Err(AdvertisementError::TooMany);
            }
            current = packets.next()?;
        }
        Ok((Self { references }, abilities))
    }

    /// Whether there is no commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.references.is_empty()
    }

    /// The commit of a branch.
    #[must_use]
    pub fn branch(&self, name: &str) -> Option<&str> {
        self.references.get(&format!("refs/heads/{name}")).map(String::as_str)
    }

    /// The names of the branches.
    pub fn branches(&self) -> impl Iterator<Item = &str> {
        self.references.keys().filter_map(|name| name.strip_prefix("refs/heads/"))
    }
}

/// A line's text, and what the server can do: that stands behind a NUL in the first one.
fn split(line: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(trimmed(line)).ok()?;
    Some(text.split_once('\0').unwrap_or((text, "")))
}

/// Commit and name of a line; version 2 says more behind the name.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (commit, rest) = text.split_once(' ')?;
    let name = rest.split(' ').next()?;
    let proper = matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit());
    (proper && !name.is_empty()).then_some((commit, name))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(text: &str) -> String {
        format!("{:04x}{text}", text.len() + 4)
    }

    fn listed(references: &[&str]) -> Vec<u8> {
        let lines: String = references.iter().map(|r| line(r)).collect();
        format!("{}0000{lines}0000", line("# service=git-upload-pack\n")).into_bytes()
    }

    fn zero(bytes: &[u8]) -> Result<Advertisement, AdvertisementError> {
        match Greeting::read(bytes)? {
            Greeting::Zero(listed, _) => Ok(listed),
            Greeting::Two(abilities) => panic!("{abilities:?}"),
        }
    }

    const ONE: &str = "1111111111111111111111111111111111111111";
    const TWO: &str = "2222222222222222222222222222222222222222";

    #[test]
    fn branches_are_found_by_name() {
        let bytes = listed(&[
            &format!("{ONE} HEAD\0multi_ack symref=HEAD:refs/heads/main agent=git/2\n"),
            &format!("{TWO} refs/heads/dev\n"),
            &format!("{ONE} refs/heads/main\n"),
            &format!("{TWO} refs/tags/v1\n"),
        ]);
        let found = zero(&bytes).unwrap();
        assert_eq!(found.branch("main"), Some(ONE));
        assert_eq!(found.branch("dev"), Some(TWO));
        assert_eq!(found.branch("v1"), None);
        assert_eq!(found.branches().collect::<Vec<_>>(), ["dev", "main"]);
    }

    #[test]
    fn the_second_version_lists_what_it_can_do_and_then_its_references() {
        let words = ["version 2\n", "agent=git/2.47\n", "ls-refs=unborn\n"];
        let can = ["fetch=shallow wait-for-done filter\n", "object-format=sha1\n"];
        let greeting = listed(&[&words[..], &can[..]].concat());
        let filter = Abilities { filter: true, sha256: false };
        assert_eq!(Greeting::read(&greeting), Ok(Greeting::Two(filter)));
        let bare: String = words.iter().map(|w| line(w)).collect::<String>() + "0000";
        assert_eq!(Greeting::read(bare.as_bytes()), Ok(Greeting::Two(Abilities::default())));
        let answer = format!(
            "{}{}0000",
            line(&format!("{ONE} HEAD symref-target:refs/heads/main\n")),
            line(&format!("{ONE} refs/heads/main\n"))
        );
        assert_eq!(Advertisement::read(answer.as_bytes()).unwrap().branch("main"), Some(ONE));
        assert!(Advertisement::read(b"0000").unwrap().is_empty());
    }

    #[test]
    fn an_empty_repository_is_not_an_error() {
        let none = "0".repeat(40);
        let bytes = listed(&[&format!("{none} capabilities^{{}}\0agent=git/2\n")]);
        assert!(zero(&bytes).unwrap().is_empty());
        assert!(zero(&listed(&[])).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_a_list_is_told() {
        use AdvertisementError::{Packet, Reference, Service};
        use PacketError::{Length, Torn};
        let good = listed(&[&format!("{ONE} refs/heads/main\n")]);
        for (bytes, error) in [
            (b"<html>".to_vec(), Packet(Length { at: 0 })),
            (b"".to_vec(), Packet(Torn)),
            (line("# service=git-receive-pack\n").into_bytes(), Service),
            (good[..good.len() - 4].to_vec(), Packet(Torn)),
            (good[..good.len() - 10].to_vec(), Packet(Torn)),
            (listed(&["nonsense\n"]), Reference { at: 34 }),
            (listed(&["1234 refs/heads/main\n"]), Reference { at: 34 }),
            (b"0003".to_vec(), Packet(Length { at: 0 })),
            (b"+001x".to_vec(), Packet(Length { at: 0 })),
        ] {
            assert_eq!(Greeting::read(&bytes), Err(error), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_can_make_it_fall(bytes: Vec<u8>) {
            let _read = Greeting::read(&bytes);
            let _listed = Advertisement::read(&bytes);
        }
    }
}
