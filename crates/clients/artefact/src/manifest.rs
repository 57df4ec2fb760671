//! Manifests by content: what is pinned is compared before anybody reads it.

use std::time::Duration;

use bytes::Bytes;
use castle_model::Spec;
use castle_model::lock::{Lock, ManifestPin};
use castle_model::spec::{DownloadsSpec, UrlManifest};
use castle_wire::World;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::catalogue::ManifestSource;
use crate::download::{Download, Progress, Sink};
use crate::place::{self, Place};
use crate::{ArtefactError, cache};

/// How large a manifest may be; the largest, Longhorn's and External Secrets', are under 2 MiB.
const LIMIT: u64 = 8 * 1024 * 1024;

/// How long fetching one may take, however it trickles.
const DEADLINE: Duration = Duration::from_mins(5);

/// A manifest as fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The text.
    pub bytes: Bytes,
    /// Its SHA-256, hexadecimal.
    pub sha256: String,
}

impl Manifest {
    fn new(bytes: Vec<u8>) -> Self {
        Self { sha256: hex::encode(Sha256::digest(&bytes)), bytes: bytes.into() }
    }

    /// What `castle.lock` keeps of it.
    #[must_use]
    pub fn pin(&self, source: &ManifestSource) -> ManifestPin {
        ManifestPin {
            version: source.version,
            url: source.url.clone(),
            sha256: self.sha256.clone(),
            size: u64::try_from(self.bytes.len()).unwrap_or(u64::MAX),
        }
    }
}

struct Buffer(Vec<u8>);

impl Sink for Buffer {
    fn restart(&mut self) {
        self.0.clear();
    }

    fn take(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// What a lock says of a release; none only where there is no lock.
///
/// # Errors
/// If there is a lock, and it pins no such component, or another version or address of it.
pub fn pinned<'a>(
    lock: &'a Lock,
    source: &ManifestSource,
) -> Result<Option<&'a ManifestPin>, ArtefactError> {
    if lock.is_empty() {
        return Ok(None);
    }
    let wanted = || format!("{} {}", source.component, source.version);
    let Some(pin) = lock.manifests.get(source.component) else {
        return Err(ArtefactError::NotPinned { what: wanted() });
    };
    if pin.version != source.version {
        let pinned = pin.version.to_string();
        return Err(ArtefactError::PinnedOther { what: wanted(), pinned });
    }
    if pin.url != source.url {
        let pinned = pin.url.clone();
        return Err(ArtefactError::PinnedOther { what: source.url.clone(), pinned });
    }
    Ok(Some(pin))
}

/// Reads the manifest of a release, held against what the castle's lock pins.
///
/// # Errors
/// If it can not be had, or is not what is pinned.
pub async fn read(
    world: &World,
    spec: &Spec,
    source: &ManifestSource,
) -> Result<Manifest, ArtefactError> {
    let pin = pinned(&spec.lock, source)?.map(|pin| pin.sha256.as_str());
    by_content(world, &spec.downloads, &source.url, pin).await
}

/// Reads a manifest that a castle file names with its content.
///
/// # Errors
/// If it can not be had, or has other content.
pub async fn read_url(
    world: &World,
    spec: &Spec,
    wanted: &UrlManifest,
) -> Result<Manifest, ArtefactError> {
    by_content(world, &spec.downloads, &wanted.url, Some(&wanted.sha256)).await
}

/// Takes what is pinned from the cache; else fetches it, compares it and keeps it there.
async fn by_content(
    world: &World,
    downloads: &DownloadsSpec,
    url: &str,
    sha256: Option<&str>,
) -> Result<Manifest, ArtefactError> {
    let kept = |sha256| cache::get(world.cache.as_deref()?, sha256, LIMIT);
    if let Some(bytes) = sha256.and_then(kept) {
        return Ok(Manifest::new(bytes));
    }
    let manifest = fetch(world, downloads, url, &mut |_, _| {}).await?;
    match sha256 {
        Some(sha256) if manifest.sha256 != sha256 => Err(ArtefactError::OtherContent {
            url: url.to_owned(),
            pinned: sha256.to_owned(),
            found: manifest.sha256,
        }),
        _ => Ok(manifest),
    }
}

/// Fetches a manifest, of 8 MiB at most, and compares it with nothing. It is kept for whoever pins its content.
///
/// # Errors
/// If it can not be had, or is too large.
pub async fn fetch(
    world: &World,
    downloads: &DownloadsSpec,
    url: &str,
    progress: Progress<'_>,
) -> Result<Manifest, ArtefactError> {
    let manifest = match Place::of(downloads, url)? {
        Place::File(path) => Manifest::new(place::read(&path, LIMIT)?),
        Place::Web(url) => {
            let mut buffer = Buffer(Vec::new());
            let fetched = Download::new(world, &url, LIMIT).run(&mut buffer, progress);
            match timeout(DEADLINE, fetched).await {
                Ok(done) => done.map(|_| Manifest::new(buffer.0))?,
                Err(_) => return Err(ArtefactError::Late { url, after: DEADLINE }),
            }
        }
    };
    if let Some(folder) = &world.cache {
        cache::put(folder, &manifest.sha256, &manifest.bytes);
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::catalogue::component;

    #[test]
    fn a_lock_pins_a_release_by_version_and_address() {
        let spec = castle_config::example();
        let source = component("metallb").unwrap().offered(&spec);
        let pin = Manifest::new(b"a: b".to_vec()).pin(&source);
        assert_eq!(pinned(&Lock::default(), &source).unwrap(), None);
        let lock = |component: &str, pin: &ManifestPin| Lock {
            images: BTreeMap::new(),
            manifests: BTreeMap::from([(component.to_owned(), pin.clone())]),
        };
        assert_eq!(pinned(&lock("metallb", &pin), &source).unwrap(), Some(&pin));
        let said = |lock: &Lock| pinned(lock, &source).unwrap_err().to_string();
        assert_eq!(said(&lock("flux", &pin)), "castle.lock does not pin metallb 0.15.3");
        let older = ManifestPin { version: "0.15.2".parse().unwrap(), ..pin.clone() };
        assert_eq!(
            said(&lock("metallb", &older)),
            "castle.lock pins 0.15.2, wanted is metallb 0.15.3"
        );
        let elsewhere = ManifestPin { url: "https://a.example/x".to_owned(), ..pin };
        assert!(
            said(&lock("metallb", &elsewhere)).starts_with("castle.lock pins https://a.example/x,")
        );
    }
}
