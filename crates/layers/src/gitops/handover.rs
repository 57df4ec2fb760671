//! `gitops/handover`: the root Kustomization is applied at what Flux has fetched. From here on castle only observes.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::{Mark, Object, ObjectId, Place};
use castle_model::{Class, Failure, Observed, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects};
use serde_json::{Value, json};

use super::note::{Note, specification, tell_drift};
use super::revision::{SOURCES, applied, short};
use super::source::repository;
use super::{KUSTOMIZE, NAMESPACE};
use crate::manifest::lacking;
use crate::objects::{apply_tried, marked};

/// The step.
pub(super) struct Handover(pub(super) Arc<Cluster>);

impl Handover {
    fn value(&self) -> Value {
        let path = self.0.spec.gitops.path.trim_start_matches("./").trim_matches('/');
        json!({
            "apiVersion": KUSTOMIZE, "kind": "Kustomization",
            "metadata": {"name": NAMESPACE, "namespace": NAMESPACE},
            "spec": {
                "interval": "10m", "retryInterval": "1m", "prune": true, "path": format!("./{path}"),
                "sourceRef": {"kind": "GitRepository", "name": NAMESPACE},
                "postBuild": {"substituteFrom": [{"kind": "ConfigMap", "name": "cluster-vars"}]},
            },
        })
    }

    fn wanted(&self, cx: &Context) -> Result<(Mark, Vec<Object>), Failure> {
        let mark = self.0.mark(cx)?;
        let objects = marked(&mark, vec![self.value()])?;
        Ok((mark, objects))
    }

    fn places() -> Vec<Place> {
        vec![
            Place::within(KUSTOMIZE, "Kustomization", NAMESPACE),
            Place::within(SOURCES, "GitRepository", NAMESPACE),
        ]
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "the root Kustomization is applied at what its source holds";

#[async_trait]
impl Step for Handover {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let client = self.0.client(cx)?;
        let note = Note::read(&client, &mark).await?;
        let (Some(note), Some(there)) = (note, client.get(&root()).await?) else {
            let survey = client.survey(&mark, &wanted).await?;
            return Ok(lacking(&survey).unwrap_or_else(|| Observed::wrong("not handed over yet")));
        };
        if note.root != specification(&self.value()) {
            return Ok(Observed::wrong("the castle file has changed since the handover"));
        }
        tell_drift(cx, &root(), &self.value(), &there);
        let at = there.text("/status/lastAppliedRevision").unwrap_or_default();
        let (then, now) = (short(&note.revision), short(at));
        Ok(Observed::right(format!("handed over at {then}; the root is at {now}")))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let (mark, wanted) = self.wanted(cx)?;
        let applied = apply_tried(cx, &self.0.client(cx)?, &mark, &wanted).await;
        applied.map(Acted::of).map_err(|failure| match failure.class {
            Class::Conflict => failure.hint(
                "the repository itself holds the Kustomization flux-system and Flux would put it back: change it there, too",
            ),
            _ => failure,
        })
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let what = "the root Kustomization to be applied";
        let revision = self.0.settled(cx, what, Self::places(), root_applied).await?;
        let (client, mark) = (self.0.client(cx)?, self.0.mark(cx)?);
        let gitops = &self.0.spec.gitops;
        let before = Note::read(&client, &mark).await?;
        let note = Note {
            revision: revision.clone(),
            root: specification(&self.value()),
            source: specification(&repository(gitops)),
        };
        note.write(&client, &mark).await?;
        // Once in a life: later runs may follow a castle file that has changed, and hand nothing over.
        if before.is_none() {
            cx.handover(format!("{} {revision}", gitops.url));
        } else {
            cx.notice(format!("{} follows the castle file again", root()));
        }
        Ok(format!("{} applied at {revision}", root()))
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
