//! Which Talos image is wanted, and the id that the factory will give to it.

use sha2::{Digest, Sha256};

use crate::ArtefactError;

/// What is added to a plain Talos image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schematic {
    extensions: Vec<String>,
}

impl Schematic {
    /// An image with these system extensions. Their order would change the id, so they are sorted.
    ///
    /// # Errors
    /// If a name holds characters that YAML could quote.
    pub fn new(
        extensions: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ArtefactError> {
        let mut extensions: Vec<String> = extensions.into_iter().map(Into::into).collect();
        extensions.sort();
        extensions.dedup();
        match extensions.iter().find(|name| !is_plain(name)) {
            Some(bad) => Err(ArtefactError::Extension(bad.clone())),
            None => Ok(Self { extensions }),
        }
    }

    /// The text that the factory hashes: its own encoder indents by four, sequences too.
    #[must_use]
    pub fn canonical(&self) -> String {
        if self.extensions.is_empty() {
            return "customization: {}\n".to_owned();
        }
        let head =
            "customization:\n    systemExtensions:\n        officialExtensions:\n".to_owned();
        self.extensions.iter().fold(head, |text, name| format!("{text}            - {name}\n"))
    }

    /// The id: SHA-256 of the canonical text, hexadecimal.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.canonical()))
    }
}

/// Whether YAML writes the name without quotes.
fn is_plain(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./".contains(c);
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.contains('/')
        && name.chars().all(allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_factory() {
        for (extensions, id) in [
            (vec![], "376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba"),
            (
                vec!["siderolabs/qemu-guest-agent"],
                "ce4c980550dd2ab1b17bbf2b08801c7eb59418eafe8f279833297925d67c7515",
            ),
            (
                vec!["siderolabs/util-linux-tools", "siderolabs/iscsi-tools"],
                "613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245",
            ),
            (
                vec![
                    "siderolabs/iscsi-tools",
                    "siderolabs/qemu-guest-agent",
                    "siderolabs/util-linux-tools",
                    "siderolabs/iscsi-tools",
                ],
                "88d1f7a5c4f1d3aba7df787c448c1d3d008ed29cfb34af53fa0df4336a56040b",
            ),
        ] {
            assert_eq!(Schematic::new(extensions.clone()).unwrap().id(), id, "{extensions:?}");
        }
    }

    #[test]
    fn names_that_would_be_quoted_are_refused() {
        for bad in
            ["siderolabs/a: b", "", "iscsi-tools", "siderolabs/Ä", "siderolabs/x\n- y", "1/2"]
        {
            assert!(Schematic::new([bad]).is_err(), "{bad:?}");
        }
    }
}
