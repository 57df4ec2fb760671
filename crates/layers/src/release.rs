//! The releases that castle installs, as steps.

use std::sync::Arc;

use castle_kubernetes::Object;
use castle_kubernetes::manifest::parse;
use castle_model::{Class, Failure, Spec};
use castle_platforms::cluster::Cluster;
use serde_json::Value;

use crate::manifest::{ManifestStep, Set, Source};
use crate::overlay::{Adjustment, adjust};
use crate::{engine, gitops, networking, storage};

/// One release.
pub(crate) struct Release {
    /// The layer that installs it.
    pub(crate) layer: &'static str,
    pub(crate) component: &'static str,
    /// What the gate of the step that installs it proves.
    pub(crate) proves: &'static str,
    /// How the castle file changes its objects.
    pub(crate) overlay: fn(&Spec) -> Vec<Adjustment>,
    /// Kind, namespace and name of the workloads that it makes by itself.
    pub(crate) makes: &'static [(&'static str, &'static str, &'static str)],
    /// Whether it is left to Flux once the repository installs it too.
    pub(crate) yields: bool,
}

impl Release {
    /// What the castle file changes of it, in words for the plan.
    pub(crate) fn notes(&self, spec: &Spec) -> Vec<String> {
        (self.overlay)(spec).into_iter().map(|adjustment| adjustment.what).collect()
    }
}

/// The objects of a release's manifest as the castle file changes them: what would be applied, without our mark.
///
/// # Errors
/// There is no such release, the text is no manifest, or an adjustment finds nothing to change in it.
pub fn adjusted(spec: &Spec, component: &str, text: &str) -> Result<Vec<Value>, Failure> {
    let releases = [engine::RELEASE, networking::RELEASE, storage::RELEASE, gitops::RELEASE];
    let what = format!("adjust {component}");
    let Some(release) = releases.into_iter().find(|release| release.component == component) else {
        return Err(Failure::bug(what, "castle installs no such release"));
    };
    let objects = parse(component, text)
        .map_err(|error| Failure::new(Class::Invalid, &what, error.to_string()))?;
    let mut values = objects.into_iter().map(Object::into_value).collect();
    adjust(component, &(release.overlay)(spec), &mut values)?;
    Ok(values)
}

/// The objects of a release.
///
/// # Panics
/// Never: every release is in the catalogue, and its layer has a good name.
pub(crate) fn set(release: &Release, spec: &Spec) -> Set {
    let component =
        castle_artefact::component(release.component).expect("every release is in the catalogue");
    Set {
        layer: release.layer.parse().expect("the names of built-in layers are good"),
        source: Source::Release(component.wanted(spec)),
        overlay: release.overlay,
    }
}

/// The step that installs a release.
pub(crate) fn step(release: &Release, cluster: &Arc<Cluster>) -> ManifestStep {
    ManifestStep {
        cluster: cluster.clone(),
        set: set(release, &cluster.spec),
        makes: release.makes,
        yields: release.yields,
        only_applied: false,
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
