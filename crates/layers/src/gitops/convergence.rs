//! `gitops/convergence`: every Kustomization of the tree is ready at what its own source holds.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_kubernetes::{KubeError, Object, Place};
use castle_model::{Failure, Observed, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};

use super::KUSTOMIZE;
use super::handover::root;
use super::revision::{KINDS, SOURCES, applied};
use crate::objects::told;

/// The step.
pub(super) struct Convergence(pub(super) Arc<Cluster>);

impl Convergence {
    /// Where Kustomizations and their sources are. Older releases of Flux lack kinds; nothing can name those.
    async fn places(&self, cx: &Context) -> Result<Vec<Place>, Failure> {
        let client = self.0.client(cx)?;
        let mut places = vec![Place::everywhere(KUSTOMIZE, "Kustomization")];
        for kind in KINDS {
            match client.list(SOURCES, kind, None, "").await {
                Ok(_) => places.push(Place::everywhere(SOURCES, kind)),
                Err(KubeError::NoSuchKind { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(places)
    }
}

#[async_trait]
impl Step for Convergence {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let there = self.0.look(cx, &self.places(cx).await?).await?;
        Ok(observed(converged(&there)))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let places = self.places(cx).await?;
        self.0
            .settled(cx, "every Kustomization to be ready", places, converged)
            .await
            .map_err(|failure| failure.hint("the handover stands: Flux goes on by itself; `castle status` shows how far it is"))
    }
}

/// Judges the whole tree. What is suspended on purpose is not waited for.
fn converged(there: &Objects) -> Verdict {
    let suspended = |object: &Object| {
        object.at("/spec/suspend").and_then(serde_json::Value::as_bool) == Some(true)
    };
    let is_unit = |object: &&Object| object.kind() == "Kustomization" && !suspended(object);
    let units: Vec<&Object> = there.values().filter(is_unit).collect();
    let (mut late, mut blocked, mut revisions) = (Vec::new(), Vec::new(), Vec::new());
    for unit in &units {
        let why = match applied(unit, there) {
            Verdict::Ready(revision) => {
                revisions.push((unit.id(), revision));
                continue;
            }
            Verdict::Waiting(reason) => reason,
            Verdict::Failed(failure) => format!("{}: {}", unit.id(), failure.why),
        };
        // One that waits for another is never the cause: the cause is told first.
        let line = if waits_for_another(unit) { &mut blocked } else { &mut late };
        line.push((unit.name().to_owned(), why));
    }
    late.append(&mut blocked);
    if !late.is_empty() {
        let (left, all) = (late.len(), units.len());
        return Verdict::Waiting(format!("{left} of {all} are not ready: {}", told(&late)));
    }
    let Some((_, at)) = revisions.iter().find(|(id, _)| *id == root()) else {
        return Verdict::waiting("the root Kustomization is not there yet");
    };
    let others = revisions.iter().filter(|(_, revision)| revision != at).count();
    Verdict::Ready(match others {
        0 => format!("{} Kustomizations ready at {at}", units.len()),
        _ => format!("{} Kustomizations ready, {others} from other sources than {at}", units.len()),
    })
}

fn waits_for_another(unit: &Object) -> bool {
    unit.condition("Ready").is_some_and(|ready| ready.words().starts_with("DependencyNotReady"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::NAMESPACE;
    use super::super::revision::tests::{holding, picture, unit};
    use super::*;

    const NOW: &str = "main@sha1:2";

    fn ours(name: &str, revision: &str) -> Value {
        unit(name, &json!({"kind": "GitRepository", "name": NAMESPACE}), revision)
    }

    fn not_ready(name: &str, reason: &str, message: &str) -> Value {
        let mut unit = ours(name, NOW);
        unit["status"]["conditions"][0] =
            json!({"type": "Ready", "status": "False", "reason": reason, "message": message});
        unit
    }

    fn say(mut objects: Vec<Value>) -> String {
        objects.push(holding("GitRepository", NAMESPACE, NOW));
        match converged(&picture(objects)) {
            Verdict::Ready(words) | Verdict::Waiting(words) => words,
            Verdict::Failed(failure) => failure.to_string(),
        }
    }

    #[test]
    fn every_unit_counts_at_what_its_source_holds() {
        let root = || ours(NAMESPACE, NOW);
        assert_eq!(say(vec![]), "the root Kustomization is not there yet");
        assert_eq!(
            say(vec![root(), ours("a", "main@sha1:1")]),
            "1 of 2 are not ready: Kustomization flux-system/a is at main@sha1:1, its source at main@sha1:2"
        );
        assert_eq!(say(vec![root(), ours("a", NOW)]), "2 Kustomizations ready at main@sha1:2");
        let charts =
            unit("charts", &json!({"kind": "OCIRepository", "name": "charts"}), "1@sha256:9");
        assert_eq!(
            say(vec![root(), charts.clone(), holding("OCIRepository", "charts", "1@sha256:9")]),
            "2 Kustomizations ready, 1 from other sources than main@sha1:2"
        );
        assert_eq!(
            say(vec![root(), charts, holding("OCIRepository", "charts", "2@sha256:8")]),
            "1 of 2 are not ready: Kustomization flux-system/charts is at 1@sha256:9, its source at 2@sha256:8"
        );
    }

    #[test]
    fn the_cause_is_told_before_what_waits_for_it() {
        let blocked =
            |name: &str| not_ready(name, "DependencyNotReady", "dependency 'd' is not ready");
        assert_eq!(
            say(vec![
                ours(NAMESPACE, NOW),
                blocked("a"),
                blocked("b"),
                not_ready("d", "BuildFailed", "no such file")
            ]),
            "3 of 4 are not ready: Kustomization flux-system/d is not ready: BuildFailed: no such file; \
             also a and 1 more"
        );
    }

    #[test]
    fn what_is_suspended_is_not_waited_for() {
        let mut resting = not_ready("a", "BuildFailed", "no such file");
        resting["spec"]["suspend"] = true.into();
        assert_eq!(
            say(vec![ours(NAMESPACE, NOW), resting]),
            "1 Kustomizations ready at main@sha1:2"
        );
    }
}
