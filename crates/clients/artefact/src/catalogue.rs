//! The catalogue: which releases castle installs, in which versions, and where their manifests lie.
//!
//! A version in the castle file is nearest, then the one that `castle.lock` pins (the same lock gives the same castle),
//! then the catalogue's. Digests stand nowhere here: `castle lock` takes them from what it downloads.

use castle_model::Spec;
use castle_model::spec::{LayerOwner, Version};

/// A component that castle installs.
#[derive(Debug, PartialEq, Eq)]
pub struct Component {
    /// Its name, as `castle.lock` knows it.
    pub name: &'static str,
    /// The layer that installs it.
    pub layer: &'static str,
    /// The version that castle installs where nothing names another.
    pub version: Version,
    /// The address of a release, before and after its version.
    address: [&'static str; 2],
}

/// One release's manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestSource {
    /// What it installs.
    pub component: &'static str,
    /// The version.
    pub version: Version,
    /// Where it is published.
    pub url: String,
}

const fn version(major: u16, minor: u16, patch: u16) -> Version {
    Version { major, minor, patch }
}

const CATALOGUE: &[Component] = &[
    Component {
        name: "external-secrets",
        layer: "engine",
        version: version(1, 3, 2),
        address: [
            "https://github.com/external-secrets/external-secrets/releases/download/v",
            "/external-secrets.yaml",
        ],
    },
    // The release that carries source-controller 1.9.3 and kustomize-controller 1.9.4.
    Component {
        name: "flux",
        layer: "gitops",
        version: version(2, 9, 3),
        address: ["https://github.com/fluxcd/flux2/releases/download/v", "/install.yaml"],
    },
    Component {
        name: "longhorn",
        layer: "storage",
        version: version(1, 10, 0),
        address: ["https://raw.githubusercontent.com/longhorn/longhorn/v", "/deploy/longhorn.yaml"],
    },
    Component {
        name: "metallb",
        layer: "networking",
        version: version(0, 15, 3),
        address: [
            "https://raw.githubusercontent.com/metallb/metallb/v",
            "/config/manifests/metallb-native.yaml",
        ],
    },
];

/// Every component that castle can install, sorted by name.
#[must_use]
pub fn catalogue() -> &'static [Component] {
    CATALOGUE
}

/// A component by its name.
#[must_use]
pub fn component(name: &str) -> Option<&'static Component> {
    CATALOGUE.iter().find(|component| component.name == name)
}

/// The components that castle itself installs in a castle: those of layers that are on and not left to Flux.
pub fn installed(spec: &Spec) -> impl Iterator<Item = &'static Component> {
    CATALOGUE.iter().filter(|component| {
        let (enabled, owner) = match component.layer {
            "engine" => (spec.engine.enabled, spec.engine.owner),
            "networking" => (spec.networking.enabled, spec.networking.owner),
            "storage" => (spec.storage.enabled, spec.storage.owner),
            _ => (spec.gitops.enabled, LayerOwner::Castle),
        };
        enabled && owner == LayerOwner::Castle
    })
}

impl Component {
    /// The version that the castle file names.
    #[must_use]
    pub fn asked(&self, spec: &Spec) -> Option<Version> {
        match self.layer {
            "engine" => spec.engine.version,
            "networking" => spec.networking.version,
            "storage" => spec.storage.version,
            _ => spec.gitops.version,
        }
    }

    /// The release that `castle lock` pins: of the castle file's version, else of the catalogue's.
    #[must_use]
    pub fn offered(&self, spec: &Spec) -> ManifestSource {
        self.release(self.asked(spec).unwrap_or(self.version))
    }

    /// The release that a run installs: of the castle file's version, else of the pinned one, else of the catalogue's.
    #[must_use]
    pub fn wanted(&self, spec: &Spec) -> ManifestSource {
        let pinned = spec.lock.manifests.get(self.name).map(|pin| pin.version);
        self.release(self.asked(spec).or(pinned).unwrap_or(self.version))
    }

    /// Whether castle was tried with this version's objects: its adjustments and gates name some of them.
    #[must_use]
    pub fn knows(&self, version: Version) -> bool {
        (self.version.major, self.version.minor) == (version.major, version.minor)
    }

    fn release(&self, version: Version) -> ManifestSource {
        let [before, after] = self.address;
        ManifestSource { component: self.name, version, url: format!("{before}{version}{after}") }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use castle_model::lock::ManifestPin;

    use super::*;
    use crate::redirect::split;

    #[test]
    fn every_address_is_https_and_names_its_version() {
        let names: Vec<&str> = catalogue().iter().map(|component| component.name).collect();
        assert_eq!(names, ["external-secrets", "flux", "longhorn", "metallb"]);
        for component in catalogue() {
            let source = component.release(version(7, 8, 9));
            assert!(split(&source.url).is_some(), "{}", source.url);
            assert!(source.url.contains("/v7.8.9/"), "{}", source.url);
        }
        assert!(component("traefik").is_none());
    }

    #[test]
    fn the_castle_files_version_is_nearest_then_the_pinned_one_then_the_catalogues() {
        let metallb = component("metallb").unwrap();
        let mut spec = castle_config::example();
        assert_eq!(metallb.wanted(&spec).version, metallb.version);
        let pin = ManifestPin {
            version: version(0, 14, 9),
            url: String::new(),
            sha256: String::new(),
            size: 1,
        };
        spec.lock.manifests = BTreeMap::from([("metallb".to_owned(), pin)]);
        assert_eq!(metallb.wanted(&spec).version, version(0, 14, 9));
        assert_eq!(metallb.offered(&spec).version, metallb.version);
        spec.networking.version = Some(version(0, 15, 1));
        assert_eq!(metallb.wanted(&spec).version, version(0, 15, 1));
        assert_eq!(metallb.offered(&spec).version, version(0, 15, 1));
        assert!(metallb.knows(version(0, 15, 1)) && !metallb.knows(version(0, 14, 9)));
    }

    #[test]
    fn what_is_off_or_left_to_flux_is_not_installed() {
        let mut spec = castle_config::example();
        let names = |spec: &Spec| installed(spec).map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(names(&spec), ["external-secrets", "flux", "longhorn", "metallb"]);
        spec.storage.enabled = false;
        spec.networking.owner = LayerOwner::Flux;
        assert_eq!(names(&spec), ["external-secrets", "flux"]);
    }
}
