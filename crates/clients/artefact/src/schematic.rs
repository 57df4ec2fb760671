//! Which Talos image is wanted, and the id that the factory will give to it.

use sha2::{Digest, Sha256};

use crate::ArtefactError;

/// What is added to a plain Talos image, or changed in it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schematic {
    overlay: Option<(String, String)>,
    kernel_arguments: Vec<String>,
    meta: Vec<(u8, String)>,
    extensions: Vec<String>,
    well_known_certificates: bool,
    sector_size: Option<u32>,
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
        match extensions.iter().find(|name| !(is_plain(name) && name.contains('/'))) {
            Some(bad) => Err(ArtefactError::Extension(bad.clone())),
            None => Ok(Self { extensions, ..Self::default() }),
        }
    }

    /// With arguments for the kernel, in their order.
    ///
    /// # Errors
    /// If one holds characters that YAML could quote.
    pub fn kernel_arguments(
        mut self,
        arguments: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ArtefactError> {
        for argument in arguments {
            self.kernel_arguments.push(plain(argument.into())?);
        }
        Ok(self)
    }

    /// With a value in the machine's META partition.
    ///
    /// # Errors
    /// If it holds characters that YAML could quote.
    pub fn meta(mut self, key: u8, value: impl Into<String>) -> Result<Self, ArtefactError> {
        self.meta.push((key, plain(value.into())?));
        Ok(self)
    }

    /// With what a single-board computer needs: an image, and a name in it.
    ///
    /// # Errors
    /// If one holds characters that YAML could quote.
    pub fn overlay(
        mut self,
        image: impl Into<String>,
        name: impl Into<String>,
    ) -> Result<Self, ArtefactError> {
        self.overlay = Some((plain(image.into())?, plain(name.into())?));
        Ok(self)
    }

    /// With the certificates that firmware usually knows, for secure boot.
    #[must_use]
    pub fn well_known_certificates(mut self) -> Self {
        self.well_known_certificates = true;
        self
    }

    /// For disks with sectors of this many bytes.
    #[must_use]
    pub fn sector_size(mut self, bytes: u32) -> Self {
        self.sector_size = Some(bytes);
        self
    }

    /// The text that the factory hashes: its own encoder indents by four, sequences too, and knows one order.
    #[must_use]
    pub fn canonical(&self) -> String {
        let overlay = self.overlay.as_ref().map_or_else(String::new, |(image, name)| {
            format!("overlay:\n    image: {image}\n    name: {name}\n")
        });
        let list = |head: &str, depth: usize, items: Vec<String>| {
            if items.is_empty() {
                return String::new();
            }
            let indent = " ".repeat(depth);
            let items = items.iter().map(|item| format!("{indent}- {item}\n"));
            format!("{head}\n{}", items.collect::<String>())
        };
        let meta = |(key, value): &(u8, String)| format!("key: {key}\n          value: {value}");
        let mut parts = vec![
            list("    extraKernelArgs:", 8, self.kernel_arguments.clone()),
            list("    meta:", 8, self.meta.iter().map(meta).collect()),
            list("    systemExtensions:\n        officialExtensions:", 12, self.extensions.clone()),
        ];
        if self.well_known_certificates {
            parts.push("    secureboot:\n        includeWellKnownCertificates: true\n".to_owned());
        }
        if let Some(bytes) = self.sector_size {
            parts.push(format!("    diskImage:\n        sectorSize: {bytes}\n"));
        }
        let parts = parts.concat();
        let head = if parts.is_empty() { "customization: {}\n" } else { "customization:\n" };
        [&overlay, head, &parts].concat()
    }

    /// The id: SHA-256 of the canonical text, hexadecimal.
    #[must_use]
    pub fn id(&self) -> String {
        hex::encode(Sha256::digest(self.canonical()))
    }
}

/// Lets a text pass that YAML writes without quotes.
fn plain(text: String) -> Result<String, ArtefactError> {
    if is_plain(&text) { Ok(text) } else { Err(ArtefactError::Scalar(text)) }
}

/// Whether YAML writes the text as it is, whatever its dialect.
fn is_plain(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_./=".contains(c);
    let word = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"].contains(&text);
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(allowed) && !word
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
    fn ids_of_other_images_are_those_of_the_factory_too() {
        let plain = Schematic::default;
        for (schematic, id) in [
            (
                plain().kernel_arguments(["noapic", "nolapic"]).unwrap(),
                "9cba8e32753f91a16c1837ab8abf356af021706ef284aef07380780177d9a06c",
            ),
            (
                plain().meta(10, "foo").unwrap(),
                "d308a2a5ee2277bed5fbaa104fcbc8d59122abfa737df987a95b4ca763459a7f",
            ),
            (
                plain().well_known_certificates(),
                "fa8e05f142a851d3ee568eb0a8e5841eaf6b0ebc8df9a63df16ac5ed2c04f3e6",
            ),
            (
                plain().sector_size(4096),
                "92833e9ddd9bb9e11b2464fa5525429f01866306d52ebd882ee08d7918f6d1ea",
            ),
            (
                plain().overlay("siderolabs/sbc-raspberrypi", "rpi_generic").unwrap(),
                "ee21ef4a5ef808a9b7484cc0dda0f25075021691c8c09a276591eedb638ea1f9",
            ),
        ] {
            assert_eq!(schematic.id(), id, "{}", schematic.canonical());
        }
    }

    #[test]
    fn other_texts_that_would_be_quoted_are_refused() {
        for bad in ["", "true", "off", "a: b", "console=ttyS0 quiet", "#x", "10"] {
            assert!(Schematic::default().kernel_arguments([bad]).is_err(), "{bad:?}");
            assert!(Schematic::default().meta(10, bad).is_err(), "{bad:?}");
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
