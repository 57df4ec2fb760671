//! The objects of one layer: read, adjusted by the castle file, and known to be no other layer's.

use std::sync::Arc;

use castle_artefact::ManifestSource;
use castle_engine::{Context, Key};
use castle_kubernetes::Object;
use castle_kubernetes::manifest::{ManifestError, parse, parse_all};
use castle_model::spec::ExtraLayer;
use castle_model::{Class, Failure, LayerName, Spec};
use castle_platforms::cluster::Cluster;
use serde_json::Value;

use super::{bringer, form};
use crate::overlay::{Adjustment, adjust};

/// The objects of a set, kept for the rest of the run: a plan and its run see the same.
const READ: Key<Vec<Object>> = Key::new("manifest/read");

/// Where the objects come from.
pub(crate) enum Source {
    /// A release that castle knows.
    Release(ManifestSource),
    /// The files of a layer of one's own.
    Files(ExtraLayer),
}

/// The set.
pub(crate) struct Set {
    /// Whose it is.
    pub(crate) layer: LayerName,
    pub(crate) source: Source,
    /// How the castle file changes the objects.
    pub(crate) overlay: fn(&Spec) -> Vec<Adjustment>,
}

impl Set {
    /// What it is called.
    pub(crate) fn name(&self) -> String {
        match &self.source {
            Source::Release(release) => format!("{} {}", release.component, release.version),
            Source::Files(layer) => format!("the manifests of {}", layer.name),
        }
    }

    /// Its objects as they are wanted, without our mark: read once in a run.
    ///
    /// # Errors
    /// They can not be had, are not what is pinned, are no objects, do not fit what the castle file asks for, or are
    /// another layer's too.
    pub(crate) async fn objects(
        &self,
        cx: &Context,
        cluster: &Cluster,
    ) -> Result<Arc<Vec<Object>>, Failure> {
        let name = self.name();
        if let Ok(known) = cx.outputs().get_of(&READ, &name) {
            return Ok(known);
        }
        let read: Result<Vec<Object>, String> =
            self.read(cluster).await?.into_iter().map(Object::new).collect();
        let read = read.map_err(|why| Failure::bug(format!("adjust {name}"), why))?;
        bringer::once(cx, &name, &self.layer, &read)?;
        cx.outputs().put_of(&READ, &name, read);
        cx.outputs().get_of(&READ, &name)
    }

    async fn read(&self, cluster: &Cluster) -> Result<Vec<Value>, Failure> {
        let what = format!("read {}", self.name());
        let refuse = |error: ManifestError| {
            Failure::new(Class::Invalid, &what, error.to_string())
                .hint("correct the manifest at that place")
        };
        let Cluster { world, spec, .. } = cluster;
        let mut objects = Vec::new();
        match &self.source {
            Source::Release(release) => {
                let manifest = castle_artefact::read(world, spec, release)
                    .await
                    .map_err(|error| error.failure(&what))?;
                let text = String::from_utf8_lossy(&manifest.bytes);
                objects.extend(parse(&release.url, &text).map_err(refuse)?);
            }
            Source::Files(layer) => {
                let mut texts: Vec<(&str, &str)> = layer
                    .manifests
                    .iter()
                    .map(|(file, text)| (file.as_str(), text.as_str()))
                    .collect();
                let fetched;
                if let Some(wanted) = &layer.url {
                    let manifest = castle_artefact::read_url(world, spec, wanted)
                        .await
                        .map_err(|error| error.failure(&what))?;
                    fetched = String::from_utf8_lossy(&manifest.bytes).into_owned();
                    texts.push((&wanted.url, &fetched));
                }
                objects.extend(parse_all(texts).map_err(refuse)?);
            }
        }
        let mut values: Vec<Value> = objects.into_iter().map(form::settled).collect();
        adjust(&self.name(), &(self.overlay)(spec), &mut values)?;
        Ok(values)
    }
}
