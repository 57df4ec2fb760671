//! The list of references that a Git server sends first: pkt-lines, read with limits.

use std::collections::BTreeMap;

use thiserror::Error;

/// The most references that are read; large repositories have tens of thousands.
const REFERENCES: usize = 200_000;

/// The longest pkt-line that the protocol knows.
const LINE: usize = 65_520;

/// Why an answer is not a list of references.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AdvertisementError {
    /// The content type is another one.
    #[error("its content type is not that of a Git server")]
    Kind,
    /// The first line does not say what follows.
    #[error("it does not begin with the service's name")]
    Service,
    /// A line's length cannot be read, or is longer than what follows.
    #[error("the line at byte {at} has no proper length")]
    Length {
        /// Where.
        at: usize,
    },
    /// A line is not a commit and a name.
    #[error("the line at byte {at} is not a reference")]
    Reference {
        /// Where.
        at: usize,
    },
    /// The list has no end.
    #[error("it ends in the middle")]
    Torn,
    /// More references than we read.
    #[error("it lists more than {REFERENCES} references")]
    TooMany,
}

/// The references of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Advertisement {
    references: BTreeMap<String, String>,
}

impl Advertisement {
    /// Reads what a server sends for `service=git-upload-pack`.
    ///
    /// # Errors
    /// Says where it is not what it should be.
    pub fn read(bytes: &[u8]) -> Result<Self, AdvertisementError> {
        let mut lines = Lines { bytes, at: 0 };
        match lines.next_line()? {
            (_, Some(line)) if trimmed(line) == b"# service=git-upload-pack" => {}
            _ => return Err(AdvertisementError::Service),
        }
        if lines.next_line()?.1.is_some() {
            return Err(AdvertisementError::Service);
        }
        let mut references = BTreeMap::new();
        while let (at, Some(line)) = lines.next_line()? {
            let (commit, name) = reference(line).ok_or(AdvertisementError::Reference { at })?;
            // An empty repository lists its abilities under this name.
            if name == "capabilities^{}" {
                continue;
            }
            references.insert(name.to_owned(), commit.to_owned());
            if references.len() > REFERENCES {
                return Err(AdvertisementError::TooMany);
            }
        }
        Ok(Self { references })
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

struct Lines<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Lines<'a> {
    /// The next line with its place; no line is a flush.
    fn next_line(&mut self) -> Result<(usize, Option<&'a [u8]>), AdvertisementError> {
        let at = self.at;
        let wrong = AdvertisementError::Length { at };
        let head = self.bytes.get(at..at + 4).ok_or(AdvertisementError::Torn)?;
        let digits = std::str::from_utf8(head).map_err(|_| wrong.clone())?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong);
        }
        let length = usize::from_str_radix(digits, 16).map_err(|_| wrong.clone())?;
        if length == 0 {
            self.at += 4;
            return Ok((at, None));
        }
        if !(4..=LINE).contains(&length) {
            return Err(wrong);
        }
        let line = self.bytes.get(at + 4..at + length).ok_or(AdvertisementError::Torn)?;
        self.at += length;
        Ok((at, Some(line)))
    }
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Commit and name of a line; what the server can do stands behind a NUL in the first one.
fn reference(line: &[u8]) -> Option<(&str, &str)> {
    let text = std::str::from_utf8(trimmed(line)).ok()?;
    let text = text.split('\0').next()?;
    let (commit, name) = text.split_once(' ')?;
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
        let found = Advertisement::read(&bytes).unwrap();
        assert_eq!(found.branch("main"), Some(ONE));
        assert_eq!(found.branch("dev"), Some(TWO));
        assert_eq!(found.branch("v1"), None);
        assert_eq!(found.branches().collect::<Vec<_>>(), ["dev", "main"]);
    }

    #[test]
    fn an_empty_repository_is_not_an_error() {
        let zero = "0".repeat(40);
        let bytes = listed(&[&format!("{zero} capabilities^{{}}\0agent=git/2\n")]);
        assert!(Advertisement::read(&bytes).unwrap().is_empty());
    }

    #[test]
    fn what_is_not_a_list_is_told() {
        use AdvertisementError::{Length, Reference, Service, Torn};
        let good = listed(&[&format!("{ONE} refs/heads/main\n")]);
        for (bytes, error) in [
            (b"<html>".to_vec(), Length { at: 0 }),
            (b"".to_vec(), Torn),
            (line("# service=git-receive-pack\n").into_bytes(), Service),
            (good[..good.len() - 4].to_vec(), Torn),
            (good[..good.len() - 10].to_vec(), Torn),
            (listed(&["nonsense\n"]), Reference { at: 34 }),
            (listed(&["1234 refs/heads/main\n"]), Reference { at: 34 }),
            (b"0001".to_vec(), Length { at: 0 }),
            (b"+001x".to_vec(), Length { at: 0 }),
        ] {
            assert_eq!(Advertisement::read(&bytes), Err(error), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_at_all_can_make_it_fall(bytes: Vec<u8>) {
            let _read = Advertisement::read(&bytes);
        }
    }
}
