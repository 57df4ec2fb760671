//! The releases that castle installs, as steps.

use std::sync::Arc;

use castle_model::Spec;
use castle_platforms::cluster::Cluster;

use crate::manifest::{ManifestStep, Source};
use crate::overlay::Adjustment;

/// One release.
pub(crate) struct Release {
    pub(crate) component: &'static str,
    /// How the castle file changes its objects.
    pub(crate) overlay: fn(&Spec) -> Vec<Adjustment>,
    /// Kind, namespace and name of the workloads that it makes by itself.
    pub(crate) makes: &'static [(&'static str, &'static str, &'static str)],
}

impl Release {
    /// What the castle file changes of it, in words for the plan.
    pub(crate) fn notes(&self, spec: &Spec) -> Vec<String> {
        (self.overlay)(spec).into_iter().map(|adjustment| adjustment.what).collect()
    }
}

/// The step that installs a release.
///
/// # Panics
/// Never: every release is in the catalogue.
pub(crate) fn step(release: &Release, cluster: &Arc<Cluster>) -> ManifestStep {
    let source =
        castle_artefact::source(release.component).expect("every release is in the catalogue");
    ManifestStep {
        cluster: cluster.clone(),
        source: Source::Release(source),
        overlay: release.overlay,
        makes: release.makes,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_release_is_in_the_catalogue() {
        for component in ["external-secrets", "metallb", "longhorn", "flux"] {
            assert!(castle_artefact::source(component).is_some(), "{component}");
        }
    }
}
