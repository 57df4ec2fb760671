//! `castle.lock`: what a castle was made from, by content, so that the same lock gives the same castle.
//!
//! A file of JSON beside the castle file, sorted, so that it can be kept in git and a change is one line there.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::spec::Version;

/// The version of the file's form.
const FORMAT: u32 = 1;

/// Everything that is pinned.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Disk images of Talos, by where the image factory has them: `<schematic>/v<version>/<file>`.
    #[serde(default)]
    pub images: BTreeMap<String, ImagePin>,
    /// Releases that castle installs, by component: `metallb`.
    #[serde(default)]
    pub manifests: BTreeMap<String, ManifestPin>,
}

/// The content of a release's manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManifestPin {
    /// The version.
    pub version: Version,
    /// Where it was read.
    pub url: String,
    /// SHA-256 of the text, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
}

/// The content of a disk image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImagePin {
    /// SHA-256 of the file, 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Its length in bytes.
    pub size: u64,
}

/// Why a `castle.lock` can not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LockError {
    /// It is not what `castle lock` writes.
    #[error("line {line}: {why}")]
    Syntax {
        /// Where it goes wrong.
        line: usize,
        /// In what way.
        why: String,
    },
    /// It was written by a newer castle.
    #[error("it has the format {0}, this castle reads {FORMAT}")]
    Newer(u32),
    /// Something is pinned by what is no content.
    #[error("{what}: {why}")]
    Pin {
        /// Which.
        what: String,
        /// What is wrong.
        why: &'static str,
    },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: u32,
    #[serde(default)]
    images: BTreeMap<String, ImagePin>,
    #[serde(default)]
    manifests: BTreeMap<String, ManifestPin>,
}

#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Lock {
    /// Whether nothing is pinned, as without a lock.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.images.is_empty() && self.manifests.is_empty()
    }

    /// Reads the text of a `castle.lock`.
    ///
    /// # Errors
    /// If it was damaged, or written by a newer castle.
    pub fn from_text(text: &str) -> Result<Self, LockError> {
        let syntax = |error: serde_json::Error| {
            let words = error.to_string();
            let why = words.split(" at line ").next().unwrap_or_default().to_owned();
            LockError::Syntax { line: error.line(), why }
        };
        let header: Header = serde_json::from_str(text).map_err(syntax)?;
        if header.format > FORMAT {
            return Err(LockError::Newer(header.format));
        }
        let file: File = serde_json::from_str(text).map_err(syntax)?;
        for (image, pin) in &file.images {
            let what = format!("the image {image}");
            check(&what, &pin.sha256, pin.size)?;
            if image.split('/').count() != 3 || image.split('/').any(str::is_empty) {
                let why = "its name is not `<schematic>/v<version>/<file>`";
                return Err(LockError::Pin { what, why });
            }
        }
        for (component, pin) in &file.manifests {
            check(&format!("the manifest of {component}"), &pin.sha256, pin.size)?;
        }
        Ok(Self { images: file.images, manifests: file.manifests })
    }

    /// The text of a `castle.lock`: the same lock gives the same bytes.
    ///
    /// # Panics
    /// Never: it is plain data.
    #[must_use]
    pub fn to_text(&self) -> String {
        let file =
            File { format: FORMAT, images: self.images.clone(), manifests: self.manifests.clone() };
        let text = serde_json::to_string_pretty(&file).expect("a lock is plain data");
        format!("{text}\n")
    }
}

fn check(what: &str, sha256: &str, size: u64) -> Result<(), LockError> {
    let fail = |why| Err(LockError::Pin { what: what.to_owned(), why });
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    if sha256.len() != 64 || !sha256.chars().all(hex) {
        return fail("its sha256 is not 64 lower-case hexadecimal digits");
    }
    if size == 0 {
        return fail("its size is 0");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let pin = ImagePin { sha256: "0a".repeat(32), size: 327_155_712 };
        let manifest = ManifestPin {
            version: Version { major: 0, minor: 15, patch: 3 },
            url: "https://a.example/metallb.yaml".to_owned(),
            sha256: "1b".repeat(32),
            size: 7_000,
        };
        Lock {
            images: BTreeMap::from([("88d1/v1.13.9/nocloud-amd64.qcow2".to_owned(), pin)]),
            manifests: BTreeMap::from([("metallb".to_owned(), manifest)]),
        }
    }

    #[test]
    fn a_lock_survives_its_file() {
        assert_eq!(Lock::from_text(&lock().to_text()), Ok(lock()));
        assert_eq!(Lock::from_text(&Lock::default().to_text()), Ok(Lock::default()));
    }

    #[test]
    fn what_is_damaged_is_told() {
        let good = lock().to_text();
        let said = |text: &str| Lock::from_text(text).unwrap_err().to_string();
        assert_eq!(
            said("{\n  \"format\": 2, \"later\": 1}"),
            "it has the format 2, this castle reads 1"
        );
        let torn = good.split_once("327155712").unwrap().0;
        assert!(said(torn).starts_with("line 6: EOF while parsing"));
        assert!(said("").starts_with("line 1: "));
        assert!(said(&good.replace("images", "pictures")).contains("unknown field `pictures`"));
        assert!(said(&good.replacen("0a", "0A", 1)).contains("64 lower-case hexadecimal digits"));
        assert!(said(&good.replace("327155712", "0")).contains("its size is 0"));
        assert_eq!(said(&good.replace("7000", "0")), "the manifest of metallb: its size is 0");
        assert!(said(&good.replace("88d1/", "")).contains("<schematic>/v<version>/<file>"));
    }
}
