//! The releases that castle installs, each pinned to a version, and fetching them.

use bytes::Bytes;
use castle_wire::{Rest, Verify, World};
use http::Method;
use sha2::{Digest, Sha256};

use crate::ArtefactError;
use crate::redirect::{REDIRECTS, not_https, redirect, split, target};

/// How large a manifest may be; the largest, Longhorn's and External Secrets', are under 2 MiB.
const LIMIT: usize = 8 * 1024 * 1024;

/// One release's manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestSource {
    /// What it installs.
    pub component: &'static str,
    /// The version, without a leading `v`.
    pub version: &'static str,
    /// Where it is.
    pub url: &'static str,
}

/// The releases of this version of castle.
const SOURCES: &[ManifestSource] = &[
    ManifestSource {
        component: "external-secrets",
        version: "1.3.2",
        url: "https://github.com/external-secrets/external-secrets/releases/download/v1.3.2/external-secrets.yaml",
    },
    ManifestSource {
        component: "metallb",
        version: "0.15.3",
        url: "https://raw.githubusercontent.com/metallb/metallb/v0.15.3/config/manifests/metallb-native.yaml",
    },
    ManifestSource {
        component: "longhorn",
        version: "1.10.0",
        url: "https://raw.githubusercontent.com/longhorn/longhorn/v1.10.0/deploy/longhorn.yaml",
    },
    ManifestSource {
        component: "flux",
        version: "2.8.0",
        url: "https://github.com/fluxcd/flux2/releases/download/v2.8.0/install.yaml",
    },
];

/// A manifest as fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The text.
    pub bytes: Bytes,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

/// Every release that castle installs.
#[must_use]
pub fn manifests() -> &'static [ManifestSource] {
    SOURCES
}

/// The release of one component.
#[must_use]
pub fn source(component: &str) -> Option<&'static ManifestSource> {
    SOURCES.iter().find(|source| source.component == component)
}

/// Fetches a manifest by its https address, of 8 MiB at most.
///
/// # Errors
/// If the server does not answer or refuses, or what it sends is too large.
pub async fn fetch(world: &World, url: &str) -> Result<Manifest, ArtefactError> {
    let mut next = url.to_owned();
    for _ in 0..=REDIRECTS {
        let (base, path) = split(&next).ok_or_else(|| not_https(url, &next))?;
        let rest = Rest::open(world, &base, &Verify::Roots(world.roots.clone()))
            .map_err(|source| ArtefactError::Open { url: next.clone(), source })?
            .limit(LIMIT);
        let reply = rest
            .request(Method::GET, &path, Vec::new(), "")
            .await
            .map_err(|source| ArtefactError::Call { url: url.to_owned(), source })?;
        if reply.status.is_success() {
            let sha256 = hex::encode(Sha256::digest(&reply.body));
            return Ok(Manifest { bytes: reply.body, sha256 });
        }
        next = target(url, &base, &reply)?;
    }
    Err(redirect(url, format!("more than {REDIRECTS} times")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_https_and_names_its_version() {
        for source in manifests() {
            assert!(split(source.url).is_some(), "{}", source.url);
            assert!(source.url.contains(&format!("/v{}/", source.version)), "{}", source.url);
        }
        assert_eq!(source("flux").unwrap().version, "2.8.0");
        assert!(source("traefik").is_none());
    }

    #[test]
    fn addresses_are_split_into_server_and_path() {
        assert_eq!(
            split("https://a.example:8443/x/y?z=1"),
            Some(("https://a.example:8443".to_owned(), "/x/y?z=1".to_owned()))
        );
        assert_eq!(split("http://a.example/x"), None);
        assert_eq!(split("/x"), None);
    }
}
