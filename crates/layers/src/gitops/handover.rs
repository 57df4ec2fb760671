//! `gitops/handover`: the root Kustomization is applied at what Flux has fetched. From here on castle only observes.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::{Mark, Object, ObjectId, Place};
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};
use serde_json::json;

use super::revision::{SOURCES, applied};
use super::{KUSTOMIZE, NAMESPACE};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The step.
pub(super) struct Handover(pub(super) Arc<Cluster>);

impl Handover {
    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let path = self.0.spec.gitops.path.trim_start_matches("./").trim_matches('/');
        let root = json!({
            "apiVersion": KUSTOMIZE, "kind": "Kustomization",
            "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
            "spec": {
                "interval": "10m", "retryInterval": "1m", "prune": true, "path": format!("./{path}"),
                "sourceRef": {"kind": "GitRepository", "name": NAMESPACE},
                "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-vars"}]},
            },
        });
        let objects = marked(&mark, vec![root])?;
        Ok((mark, objects))
    }

    fn places() -> Vec<Place> {
        vec![
            Place::within(KUSTOMIZE, "Kustomization", NAMESPACE),
            Place::within(SOURCES, "GitRepository", NAMESPACE),
        ]
    }
}

#[async_trait]
impl Step for Handover {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        if let Some(observed) = lacking(&self.0.client(cx)?.survey(&mark, &wanted).await?) {
            return Ok(observed);
        }
        let there = self.0.look(cx, &Self::places()).await?;
        Ok(observed(match root_applied(&there) {
            Verdict::Ready(revision) => Verdict::Ready(words(&revision)),
            other => other,
        }))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        apply_tried(cx, &self.0.client(cx)?, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let what = "the root Kustomization to be applied";
        let revision = self.0.settled(cx, what, Self::places(), root_applied).await?;
        cx.handover(format!("{} {revision}", self.0.spec.gitops.url));
        Ok(words(&revision))
    }
}

/// The root of the tree.
pub(super) fn root() -> ObjectId {
    ObjectId::namespaced(KUSTOMIZE, "Kustomization", NAMESPACE, NAMESPACE)
}

/// Whether the root is applied at what its source holds now; then the revision.
fn root_applied(there: &Objects) -> Verdict {
    match there.get(&root()) {
        Some(object) => applied(object, there),
        None => Verdict::Waiting(format!("{} is not there yet", root())),
    }
}

fn words(revision: &str) -> String {
    format!("{} applied at {revision}", root())
}

#[cfg(test)]
mod tests {
    use super::super::revision::tests::{holding, picture, unit};
    use super::*;

    #[test]
    fn the_handover_holds_at_whatever_the_source_holds_now() {
        let git = json!({"kind": "GitRepository", "name": NAMESPACE});
        let at = |applied: &str, fetched: &str| {
            root_applied(&picture(vec![
                unit(NAMESPACE, &git, applied),
                holding("GitRepository", NAMESPACE, fetched),
            ]))
        };
        assert_eq!(at("main@sha1:1", "main@sha1:1"), Verdict::Ready("main@sha1:1".into()));
        assert!(matches!(at("main@sha1:1", "main@sha1:2"), Verdict::Waiting(_)));
        assert_eq!(at("main@sha1:2", "main@sha1:2"), Verdict::Ready("main@sha1:2".into()));
        assert_eq!(
            root_applied(&Objects::new()),
            Verdict::waiting("Kustomization flux-system/flux-system is not there yet")
        );
    }
}
