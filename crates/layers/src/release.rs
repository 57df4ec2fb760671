//! The releases that castle installs, as steps.

use std::sync::Arc;

use castle_model::Spec;
use castle_platforms::cluster::Cluster;
use serde_json::Value;

use crate::manifest::{ManifestStep, Source};

/// One release.
pub(crate) struct Release {
    pub(crate) component: &'static str,
    /// Adjusts its objects to the castle file.
    pub(crate) overlay: fn(&Spec, &mut Value),
    /// Kind, namespace and name of the workloads that it makes by itself.
    pub(crate) makes: &'static [(&'static str, &'static str, &'static str)],
}

/// The step that installs a release.
///
/// # Panics
/// Never: every release is in the catalogue.
pub(crate) fn step(release: &Release, cluster: &Arc<Cluster>) -> ManifestStep {
    let component =
        castle_artefact::component(release.component).expect("every release is in the catalogue");
    ManifestStep {
        cluster: cluster.clone(),
        source: Source::Release(component.wanted(&cluster.spec)),
        overlay: release.overlay,
        makes: release.makes,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_release_is_in_the_catalogue() {
        for component in ["external-secrets", "metallb", "longhorn", "flux"] {
            assert!(castle_artefact::component(component).is_some(), "{component}");
        }
    }
}
