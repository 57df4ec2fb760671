//! The Talos image factory: registering a schematic, and the addresses of what it builds.

use castle_model::spec::Version;
use castle_wire::{Rest, Verify, World};
use http::Method;
use serde::Deserialize;

use crate::ArtefactError;
use crate::schematic::Schematic;

/// Where the factory is.
pub const FACTORY: &str = "https://factory.talos.dev";

/// A client of the image factory.
#[derive(Clone)]
pub struct Factory {
    rest: Rest,
}

#[derive(Deserialize)]
struct Registered {
    id: String,
}

impl Factory {
    /// A client of the public factory; nothing is sent yet.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(world: &World) -> Result<Self, ArtefactError> {
        let rest = Rest::open(world, FACTORY, &Verify::Roots(world.roots.clone()))
            .map_err(|source| ArtefactError::Open { url: FACTORY.to_owned(), source })?;
        Ok(Self { rest })
    }

    /// Registers a schematic, so that its images can be fetched. Registering twice changes nothing.
    ///
    /// # Errors
    /// If the factory does not answer, refuses, or computes another id than we do.
    pub async fn register(&self, schematic: &Schematic) -> Result<String, ArtefactError> {
        let url = format!("{FACTORY}/schematics");
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
}

/// The address of the disk image for Proxmox: cloud-init's `nocloud`, as qcow2.
#[must_use]
pub fn image_url(schematic: &Schematic, talos: Version) -> String {
    format!("{FACTORY}/image/{}/v{talos}/nocloud-amd64.qcow2", schematic.id())
}

/// The file name under which the image is kept: version and the beginning of the schematic's id.
#[must_use]
pub fn image_file(schematic: &Schematic, talos: Version) -> String {
    format!("talos-{talos}-{}.qcow2", &schematic.id()[..16])
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
            image_url(&plain, talos),
            "https://factory.talos.dev/image/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba/v1.13.9/nocloud-amd64.qcow2"
        );
        assert_eq!(image_file(&plain, talos), "talos-1.13.9-376567988ad37013.qcow2");
        assert_eq!(
            installer(&plain, talos),
            "factory.talos.dev/nocloud-installer/376567988ad370138ad8b2698212367b8edcb69b5fd68c80be1f2ec7d603b4ba:v1.13.9"
        );
    }
}
