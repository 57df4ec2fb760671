//! `gitops/convergence`: every Kustomization of the tree is ready at the revision that was handed over.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_kubernetes::{Object, Place};
use castle_model::{Failure, Observed, Verdict};
use castle_platforms::cluster::{Cluster, Objects};

use super::handover::applied_at;
use super::{KUSTOMIZE, NAMESPACE, REVISION};

/// How many reasons are told at a time.
const REASONS: usize = 3;

/// The step.
pub(super) struct Convergence(pub(super) Arc<Cluster>);

#[async_trait]
impl Step for Convergence {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let revision = cx.outputs().get(&REVISION)?;
        let listing = self.0.client(cx)?.list(KUSTOMIZE, "Kustomization", None, "").await?;
        let there = listing.items.into_iter().map(|object| (object.id(), object)).collect();
        Ok(match converged(&there, &revision) {
            Verdict::Ready(words) => Observed::right(words),
            Verdict::Waiting(why) => Observed::wrong(why),
            Verdict::Failed(failure) => Observed::wrong(failure.to_string()),
        })
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let revision = cx.outputs().get(&REVISION)?;
        let places = vec![Place::everywhere(KUSTOMIZE, "Kustomization")];
        self.0
            .settled(cx, "every Kustomization to be ready", places, |there| converged(there, &revision))
            .await
            .map_err(|failure| failure.hint("the handover stands: Flux goes on by itself; `castle status` shows how far it is"))
    }
}

/// Judges the whole tree. What is suspended on purpose is not waited for.
fn converged(there: &Objects, revision: &str) -> Verdict {
    let suspended = |object: &Object| {
        object.at("/spec/suspend").and_then(serde_json::Value::as_bool) == Some(true)
    };
    let active: Vec<&Object> = there.values().filter(|object| !suspended(object)).collect();
    if !active.iter().any(|object| object.name() == NAMESPACE) {
        return Verdict::waiting("the root Kustomization is not there yet");
    }
    let mut reasons = Vec::new();
    for object in &active {
        match applied_at(object, revision) {
            Verdict::Ready(_) => {}
            Verdict::Waiting(reason) => reasons.push(reason),
            Verdict::Failed(failure) => reasons.push(format!("{}: {}", object.id(), failure.why)),
        }
    }
    if reasons.is_empty() {
        return Verdict::Ready(format!("{} Kustomizations ready at {revision}", active.len()));
    }
    let left = reasons.len();
    reasons.truncate(REASONS);
    Verdict::Waiting(format!("{left} of {} are not ready: {}", active.len(), reasons.join("; ")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn unit(name: &str, ready: &str, revision: &str) -> Object {
        Object::new(json!({
            "apiVersion": KUSTOMIZE, "kind": "Kustomization", "metadata": {"name": name, "namespace": NAMESPACE},
            "status": {"lastAppliedRevision": revision, "conditions": [
                {"type": "Ready", "status": ready, "reason": "DependencyNotReady", "message": "dependency 'a' is not ready"}]},
        }))
        .unwrap()
    }

    fn say(units: Vec<Object>) -> String {
        let there = units.into_iter().map(|object| (object.id(), object)).collect();
        match converged(&there, "main@sha1:2") {
            Verdict::Ready(words) | Verdict::Waiting(words) => words,
            Verdict::Failed(failure) => failure.to_string(),
        }
    }

    #[test]
    fn every_unit_counts_at_the_new_revision() {
        let root = || unit(NAMESPACE, "True", "main@sha1:2");
        assert_eq!(say(vec![]), "the root Kustomization is not there yet");
        assert_eq!(
            say(vec![root(), unit("a", "True", "main@sha1:1")]),
            "1 of 2 are not ready: Kustomization flux-system/a is at main@sha1:1, not yet at main@sha1:2"
        );
        assert_eq!(
            say(vec![root(), unit("b", "False", "main@sha1:2")]),
            "1 of 2 are not ready: Kustomization flux-system/b is not ready: DependencyNotReady: dependency 'a' is not ready"
        );
        assert_eq!(
            say(vec![root(), unit("a", "True", "main@sha1:2")]),
            "2 Kustomizations ready at main@sha1:2"
        );
    }
}
