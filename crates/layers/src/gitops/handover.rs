//! `gitops/handover`: the root Kustomization is applied at the branch's head. From here on castle only observes.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mark, Object, ObjectId, Place};
use castle_model::{Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::Cluster;
use serde_json::json;

use super::{KUSTOMIZE, NAMESPACE, REVISION};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The step.
pub(super) struct Handover(pub(super) Arc<Cluster>);

impl Handover {
    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self
            .0
            .mark(cx, &"gitops".parse().map_err(|_| Failure::bug("name the layer", "gitops"))?)?;
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
}

#[async_trait]
impl Step for Handover {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let revision = cx.outputs().get(&REVISION)?;
        let (mark, wanted) = self.wanted(cx)?;
        let survey = self.0.client(cx)?.survey(&mark, &wanted).await?;
        if let Some(observed) = lacking(&survey) {
            return Ok(observed);
        }
        Ok(match survey.same.first().map(|root| applied_at(root, &revision)) {
            Some(Verdict::Ready(words)) => Observed::right(words),
            Some(Verdict::Waiting(why)) => Observed::wrong(why),
            Some(Verdict::Failed(failure)) => Observed::wrong(failure.to_string()),
            None => Observed::Absent,
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        apply_tried(cx, &self.0.client(cx)?, &mark, &wanted).await.map(Acted::of)
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let revision = cx.outputs().get(&REVISION)?;
        let id = ObjectId::namespaced(KUSTOMIZE, "Kustomization", NAMESPACE, NAMESPACE);
        let place = Place::within(KUSTOMIZE, "Kustomization", NAMESPACE);
        let words = self
            .0
            .settled(cx, "the root Kustomization to be applied", vec![place], |there| {
                match there.get(&id) {
                    Some(root) => applied_at(root, &revision),
                    None => Verdict::Waiting(format!("{id} is not there yet")),
                }
            })
            .await?;
        let gitops = &self.0.spec.gitops;
        cx.handover(format!("{} {revision}", gitops.url));
        Ok(words)
    }
}

/// Whether a Kustomization is ready at a revision.
pub(super) fn applied_at(object: &Object, revision: &str) -> Verdict {
    match judge(object) {
        Verdict::Ready(_) => {
            let applied = object.text("/status/lastAppliedRevision").unwrap_or("nothing");
            if applied == revision {
                Verdict::Ready(format!("{} applied at {revision}", object.id()))
            } else {
                Verdict::Waiting(format!("{} is at {applied}, not yet at {revision}", object.id()))
            }
        }
        other => other,
    }
}
