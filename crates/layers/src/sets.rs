//! `platform/manifests`: what every layer will apply is read, verified and adjusted before anything is built, so that a
//! patch that fits nothing or a changed download is known now, and not when the machines stand.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Graph, Step};
use castle_model::spec::LayerOwner;
use castle_model::{Class, Failure, LayerName, Observed, Spec, StepDecl, StepId};
use castle_platforms::cluster::Cluster;
use castle_wire::World;
use futures::future::join_all;

use crate::manifest::{Set, together};
use crate::{engine, extra, gitops, networking, release, storage};

/// The step that reads them.
#[must_use]
pub fn manifests_id() -> StepId {
    StepId::new("platform", "manifests")
}

/// The step; none if castle applies no manifest of this castle.
#[must_use]
pub fn declare(spec: &Spec) -> Option<StepDecl> {
    let wanted = !releases(spec).is_empty() || !spec.layers.is_empty();
    wanted.then(|| {
        StepDecl::new(manifests_id(), "manifests of all layers", "releases", PROVES)
            .weight(500)
            .only("it only reads")
    })
}

/// Adds the step.
pub fn build(graph: &mut Graph, spec: &Arc<Spec>, world: &World) {
    let cluster = Cluster::new(spec, world);
    let releases = releases(spec).into_iter().map(|release| release::set(release, spec));
    let sets = releases.chain(spec.layers.iter().map(extra::set)).collect();
    if let Some(decl) = declare(spec) {
        graph.add(decl, Manifests { cluster, sets });
    }
}

/// The releases that castle itself installs.
fn releases(spec: &Spec) -> Vec<&'static release::Release> {
    let ours = |enabled: bool, owner: LayerOwner| enabled && owner == LayerOwner::Castle;
    [
        (ours(spec.engine.enabled, spec.engine.owner), &engine::RELEASE),
        (ours(spec.networking.enabled, spec.networking.owner), &networking::RELEASE),
        (ours(spec.storage.enabled, spec.storage.owner), &storage::RELEASE),
        (spec.gitops.enabled, &gitops::RELEASE),
    ]
    .into_iter()
    .filter_map(|(ours, release)| ours.then_some(release))
    .collect()
}

/// Whether a layer is the first one that applies a manifest: it speaks where one has to.
pub(crate) fn is_first(spec: &Spec, layer: &LayerName) -> bool {
    let extra = spec.layers.first().map(|layer| layer.name.as_str());
    releases(spec).first().map(|release| release.layer).or(extra) == Some(layer.as_str())
}

/// The step.
struct Manifests {
    cluster: Arc<Cluster>,
    sets: Vec<Set>,
}

/// What its gate proves.
const PROVES: &str = "every manifest is read and verified, and takes what the castle file changes";

#[async_trait]
impl Step for Manifests {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let all = join_all(self.sets.iter().map(|set| set.objects(cx, &self.cluster))).await;
        let sets = all.len();
        let objects: usize = all.iter().flatten().map(|objects| objects.len()).sum();
        match together(all.into_iter().filter_map(Result::err).collect()) {
            None => Ok(Observed::right(format!("{objects} objects of {sets} manifests are read"))),
            // A castle that stands does not fall with somebody's web server: they were read before, and the layer whose
            // manifest can not be had says so itself.
            Some(failure) if failure.class != Class::Invalid && cx.state().word() == "done" => {
                cx.notice(format!("not every manifest is read again: {}", failure.why));
                Ok(Observed::right("read by an earlier run; not all can be had now"))
            }
            Some(failure) => Err(failure),
        }
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        match self.observe(cx).await? {
            Observed::Right { evidence } => Ok(evidence),
            _ => Err(Failure::bug(
                "read the manifests",
                "a look that is neither right nor a failure",
            )),
        }
    }
}
