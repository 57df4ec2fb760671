//! The Talos image factory: registering a schematic, the addresses of what it builds, and its content.

use castle_model::lock::ImagePin;
pub use castle_model::spec::FACTORY;
use castle_model::spec::Version;
use castle_wire::{Rest, Verify, World};
use http::Method;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::ArtefactError;
use crate::download::{Download, Progress, Sink};
use crate::redirect::{REDIRECTS, not_https, redirect, split, target};
use crate::schematic::Schematic;

/// A client of the image factory.
#[derive(Clone)]
pub struct Factory {
    world: World,
    /// Where it is: scheme, host and port.
    place: String,
    rest: Rest,
}

/// How large an image may be; those of the factory are under 500 MiB.
const LIMIT: u64 = 8 << 30;

/// The content of what comes, which is not kept.
struct Hash(Sha256);

impl Sink for Hash {
    fn restart(&mut self) {
        self.0 = Sha256::new();
    }

    fn take(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
}

#[derive(Deserialize)]
struct Registered {
    id: String,
}

impl Factory {
    /// A client of the factory at an address; nothing is sent yet.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(world: &World, place: &str) -> Result<Self, ArtefactError> {
        let rest = Rest::open(world, place, &Verify::Roots(world.roots.clone()))
            .map_err(|source| ArtefactError::Open { url: place.to_owned(), source })?;
        Ok(Self { world: world.clone(), place: place.to_owned(), rest })
    }

    /// Registers a schematic, so that its images can be fetched. Registering twice changes nothing.
    ///
    /// # Errors
    /// If the factory does not answer, refuses, or computes another id than we do.
    pub async fn register(&self, schematic: &Schematic) -> Result<String, ArtefactError> {
        let url = format!("{}/schematics", self.place);
        let reply = self
            .rest
            .request(Method::POST, "/schematics", Vec::new(), schematic.canonical())
            .await
            .map_err(|source| ArtefactError::Call { url: url.clone(), source })?;
        let answer = |text: String| ArtefactError::Answer {
            url: url.clone(),
            status: reply.status.as_u16(),
            text,
        };
        if !reply.status.is_success() {
            return Err(answer(reply.text().lines().next().unwrap_or_default().to_owned()));
        }
        let registered: Registered = serde_json::from_slice(&reply.body)
            .map_err(|e| answer(format!("something that cannot be read: {e}")))?;
        let expected = schematic.id();
        if registered.id != expected {
            return Err(ArtefactError::OtherId { expected, given: registered.id });
        }
        Ok(expected)
    }

    /// How long the disk image is, in bytes, where the factory says so.
    ///
    /// # Errors
    /// If it does not answer, or has no such image: a schematic must be registered before.
    pub async fn size(
        &self,
        schematic: &Schematic,
        talos: Version,
    ) -> Result<Option<u64>, ArtefactError> {
        Ok(self.located(&image_url(&self.place, schematic, talos)).await?.1)
    }

    /// The content of the disk image, read to its end and kept nowhere.
    ///
    /// # Errors
    /// If the factory does not answer, has no such image, or breaks off.
    pub async fn digest(
        &self,
        schematic: &Schematic,
        talos: Version,
        progress: Progress<'_>,
    ) -> Result<ImagePin, ArtefactError> {
        let url = image_url(&self.place, schematic, talos);
        let (place, promised) = self.located(&url).await?;
        let mut hash = Hash(Sha256::new());
        let size = Download::new(&self.world, &place, LIMIT).run(&mut hash, progress).await?;
        if promised.is_some_and(|promised| promised != size) {
            return Err(ArtefactError::BrokenOff { url, promised, size });
        }
        Ok(ImagePin { sha256: hex::encode(hash.0.finalize()), size })
    }

    /// Where something really is, after all that the factory sends us to, and how long it is.
    async fn located(&self, url: &str) -> Result<(String, Option<u64>), ArtefactError> {
        let mut next = url.to_owned();
        for _ in 0..=REDIRECTS {
            let (base, path) = split(&next).ok_or_else(|| not_https(url, &next))?;
            let reply = self
                .rest(&base)?
                .request(Method::HEAD, &path, Vec::new(), "")
                .await
                .map_err(|source| ArtefactError::Call { url: url.to_owned(), source })?;
            if reply.status.is_success() {
                let length = reply.header("content-length").and_then(|text| text.parse().ok());
                return Ok((next, length.filter(|length| *length > 0)));
            }
            next = target(url, &base, &reply)?;
        }
        Err(redirect(url, format!("more than {REDIRECTS} times")))
    }

    fn rest(&self, base: &str) -> Result<Rest, ArtefactError> {
        if base == self.place {
            return Ok(self.rest.clone());
        }
        Rest::open(&self.world, base, &Verify::Roots(self.world.roots.clone()))
            .map_err(|source| ArtefactError::Open { url: base.to_owned(), source })
    }
}

/// Under which name the factory, and `castle.lock`, know the disk image for Proxmox: cloud-init's `nocloud`, as qcow2.
#[must_use]
pub fn image_key(schematic: &Schematic, talos: Version) -> String {
    format!("{}/v{talos}/nocloud-amd64.qcow2", schematic.id())
}

/// The address of that image at a factory.
#[must_use]
pub fn image_url(factory: &str, schematic: &Schematic, talos: Version) -> String {
    format!("{factory}/image/{}", image_key(schematic, talos))
}

/// The file name under which the image is kept: version, and as much of the schematic's id as can not be met twice.
#[must_use]
pub fn image_file(schematic: &Schematic, talos: Version) -> String {
    format!("talos-{talos}-{}.qcow2", &schematic.id()[..32])
}

/// The reference of the installer with the same extensions, for machine configs and upgrades.
#[must_use]
pub fn installer(schematic: &Schematic, talos: Version) -> String {
    format!("factory.talos.dev/nocloud-installer/{}:v{talos}", schematic.id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_hold_the_schematic_and_the_version() {
        let plain = Schematic::default();
        let talos: Version = "1.13.9".parse().unwrap();
        assert_eq!(
            image_url(FACTORY, &plain, talos),
            "https://factory.talos.dev/image/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba/v1.13.9/nocloud-amd64.qcow2"
        );
        assert_eq!(
            image_file(&plain, talos),
            "talos-1.13.9-376567988ad370138ad8b2698212367b.qcow2"
        );
        assert_eq!(
            installer(&plain, talos),
            "factory.talos.dev/nocloud-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.9"
        );
    }
}
