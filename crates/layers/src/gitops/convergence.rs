//! `gitops/convergence`: every Kustomization of the tree is ready at what its own source holds.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_kubernetes::{KubeError, ObjectId, Place};
use castle_model::{Class, Failure, Finding, Observed, Verdict};
use castle_platforms::cluster::{Closer, Cluster, Objects, observed};
use tokio::time::Instant;

use super::handover::root;
use super::revision::{KINDS, SOURCES};
use super::units::{State, beside, units};
use super::watchdog::{REQUESTED, Watchdog};
use super::{HELM, KUSTOMIZE};
use crate::objects::told;

/// The step.
pub(super) struct Convergence(pub(super) Arc<Cluster>);

impl Convergence {
    /// Where Kustomizations, their sources and releases are. Older Flux lacks kinds; nothing can name those.
    async fn places(&self, cx: &Context) -> Result<Vec<Place>, Failure> {
        let client = self.0.client(cx)?;
        let mut places = vec![Place::everywhere(KUSTOMIZE, "Kustomization")];
        for (version, kind) in
            KINDS.map(|kind| (SOURCES, kind)).into_iter().chain([(HELM, "HelmRelease")])
        {
            match client.list(version, kind, None, "").await {
                Ok(_) => places.push(Place::everywhere(version, kind)),
                Err(KubeError::NoSuchKind { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(places)
    }

    /// Asks Flux to look at units that it seems to have forgotten.
    async fn nudge(&self, cx: &Context, overdue: Vec<ObjectId>) {
        let Ok(client) = self.0.client(cx) else { return };
        let now = self.0.world.clock.now().to_string();
        for id in overdue {
            // A nudge that fails is made up for by the next one.
            if client.annotate(&id, REQUESTED, &now).await.is_ok() {
                cx.notice(format!(
                    "{id} does not go on though all that it depends on is ready: Flux is asked to look again"
                ));
            }
        }
    }

    /// Tells of every milestone that is reached, once.
    fn tell(&self, cx: &Context, there: &Objects, reached: &Mutex<BTreeSet<String>>) {
        let mut reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, state) in units(there) {
            let wanted = self.0.spec.gitops.milestones.contains(&id.name);
            if let State::Ready(revision) = state
                && wanted
                && reached.insert(id.name.clone())
            {
                cx.milestone(&id.name, revision);
            }
        }
    }
}

/// What its gate proves.
pub(super) const PROVES: &str = "every Kustomization is Ready at what its source holds";

#[async_trait]
impl Step for Convergence {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let there = self.0.look(cx, &self.places(cx).await?).await?;
        Ok(observed(converged(&there, &self.0.spec.gitops.milestones)))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let places = self.places(cx).await?;
        let (dog, reached, late) = (Watchdog::default(), Mutex::default(), Mutex::default());
        let closer = Closer {
            due: &|| dog.due().unwrap_or(cx.deadline()),
            look: &|| Box::pin(self.nudge(cx, dog.overdue(Instant::now()))),
        };
        let judge = |there: &Objects| {
            dog.see(there, Instant::now());
            self.tell(cx, there, &reached);
            *late.lock().unwrap_or_else(PoisonError::into_inner) = findings(there);
            converged(there, &self.0.spec.gitops.milestones)
        };
        let what = "every Kustomization to be ready";
        let proof = self.0.settled_by(cx, what, places, judge, Some(closer)).await;
        let milestones = reached_words(&self.0.spec.gitops.milestones, &reached);
        match proof {
            Ok(proof) => Ok(format!("{proof}{milestones}")),
            Err(failure) if failure.class != Class::Transient => Err(failure),
            Err(mut failure) => {
                let seen = failure.evidence.take().unwrap_or_default();
                let late = late.into_inner().unwrap_or_else(PoisonError::into_inner);
                Err(failure.evidence(format!("{seen}{milestones}")).findings(late).hint(
                    "the handover stands: Flux goes on by itself; run `castle up` again to see how far it is",
                ))
            }
        }
    }
}

/// Which milestones were reached, of those that the castle file names.
fn reached_words(milestones: &[String], reached: &Mutex<BTreeSet<String>>) -> String {
    let reached = reached.lock().unwrap_or_else(PoisonError::into_inner);
    let told = |name: &String| {
        format!("{name} {}", if reached.contains(name) { "reached" } else { "not reached" })
    };
    match milestones {
        [] => String::new(),
        all => format!("; milestones: {}", all.iter().map(told).collect::<Vec<_>>().join(", ")),
    }
}

/// Every unit that is not ready, with why: causes first.
fn findings(there: &Objects) -> Vec<Finding> {
    let mut found: Vec<(bool, Finding)> = units(there)
        .into_iter()
        .filter_map(|(id, state)| {
            let finding = |why: String, cure: &str| {
                let why = why.strip_prefix(&format!("{id} ")).unwrap_or(&why).to_owned();
                Finding::new(id.to_string(), why, cure)
            };
            match state {
                State::Ready(_) | State::Resting => None,
                State::Cause(why) => {
                    Some((false, finding(why, "correct it in the repository, and push")))
                }
                State::Late(why) => Some((
                    false,
                    finding(
                        why,
                        "correct it in the repository, and push; Flux was asked to look again",
                    ),
                )),
                State::Blocked(by) => {
                    let why = format!("waits for {}", by.join(", "));
                    Some((true, finding(why, "it goes on by itself once they are ready")))
                }
            }
        })
        .collect();
    found.sort_by_key(|(blocked, _)| *blocked);
    found.into_iter().map(|(_, finding)| finding).collect()
}

/// Judges the whole tree: causes first, then who waits for them. What is suspended on purpose is not waited for.
fn converged(there: &Objects, milestones: &[String]) -> Verdict {
    let units = units(there);
    let (mut causes, mut blocked, mut revisions) = (Vec::new(), Vec::new(), Vec::new());
    let mut resting = Vec::new();
    for (id, state) in &units {
        match state {
            State::Ready(revision) => revisions.push((id, revision)),
            State::Resting => resting.push(id.name.clone()),
            State::Cause(why) | State::Late(why) => causes.push((id.name.clone(), why.clone())),
            State::Blocked(by) => {
                blocked.push((id.name.clone(), format!("{id} waits for {}", by.join(", "))));
            }
        }
    }
    let rests = match resting.as_slice() {
        [] => String::new(),
        names => format!("; suspended: {}", names.join(", ")),
    };
    let all = units.len() - resting.len();
    let late: Vec<(String, String)> = causes.into_iter().chain(blocked).collect();
    if !late.is_empty() {
        return Verdict::Waiting(format!(
            "{} of {all} are not ready: {}{rests}",
            late.len(),
            told(&late)
        ));
    }
    let at = revisions.iter().find(|(id, _)| **id == root()).map(|(_, at)| *at);
    // A root that rests is told, and not waited for either.
    if at.is_none() && units.get(&root()) != Some(&State::Resting) {
        return Verdict::waiting("the root Kustomization is not there yet");
    }
    let missing = |name: &&String| !revisions.iter().any(|(id, _)| id.name == **name);
    if let Some(name) = milestones.iter().find(missing) {
        return Verdict::Failed(unknown(name, &resting, &revisions));
    }
    let rests = match beside(there).as_slice() {
        [] => rests,
        names => format!("{rests}; not of the tree and not ready: {}", names.join(", ")),
    };
    let others = revisions.iter().filter(|(_, revision)| Some(*revision) != at).count();
    Verdict::Ready(match (at, others) {
        (None, _) => format!("{all} Kustomizations ready{rests}"),
        (Some(at), 0) => format!("{all} Kustomizations ready at {at}{rests}"),
        (Some(at), _) => {
            format!("{all} Kustomizations ready, {others} from other sources than {at}{rests}")
        }
    })
}

/// The failure of a milestone that nothing can reach.
fn unknown(name: &str, resting: &[String], units: &[(&ObjectId, &String)]) -> Failure {
    let what = format!("reach the milestone {name}");
    if resting.iter().any(|rests| rests == name) {
        return Failure::new(Class::Conflict, what, "that Kustomization is suspended")
            .hint("resume it, or take it out of `milestones`; the handover stands");
    }
    let names: Vec<&str> = units.iter().map(|(id, _)| id.name.as_str()).collect();
    Failure::new(Class::Invalid, what, "there is no Kustomization of that name")
        .evidence(format!("all {} are ready: {}", names.len(), names.join(", ")))
        .hint("correct `milestones` in the `gitops` block; the handover stands")
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

    fn say_with(milestones: &[&str], mut objects: Vec<Value>) -> String {
        objects.push(holding("GitRepository", NAMESPACE, NOW));
        let milestones: Vec<String> = milestones.iter().map(|name| (*name).to_owned()).collect();
        match converged(&picture(objects), &milestones) {
            Verdict::Ready(words) | Verdict::Waiting(words) => words,
            Verdict::Failed(failure) => failure.to_string(),
        }
    }

    fn say(objects: Vec<Value>) -> String {
        say_with(&[], objects)
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
        let blocked = |name: &str| {
            let mut unit = not_ready(name, "DependencyNotReady", "dependency 'd' is not ready");
            unit["spec"]["dependsOn"] = json!([{"name": "d"}]);
            unit
        };
        let broken = || not_ready("d", "BuildFailed", "no such file");
        assert_eq!(
            say(vec![ours(NAMESPACE, NOW), blocked("a"), blocked("b"), broken()]),
            "3 of 4 are not ready: Kustomization flux-system/d is not ready: BuildFailed: no such file; \
             also a and 1 more"
        );
        assert_eq!(
            say(vec![ours(NAMESPACE, NOW), blocked("a"), broken()]),
            "2 of 3 are not ready: Kustomization flux-system/d is not ready: BuildFailed: no such file; also a"
        );
    }

    #[test]
    fn what_is_suspended_is_told_and_not_waited_for() {
        let mut resting = not_ready("a", "BuildFailed", "no such file");
        resting["spec"]["suspend"] = true.into();
        assert_eq!(
            say(vec![ours(NAMESPACE, NOW), resting.clone()]),
            "1 Kustomizations ready at main@sha1:2; suspended: a"
        );
        assert!(say_with(&["a"], vec![ours(NAMESPACE, NOW), resting]).contains("is suspended"));
        let mut root = ours(NAMESPACE, "main@sha1:1");
        root["spec"]["suspend"] = true.into();
        assert_eq!(
            say(vec![root, ours("a", NOW)]),
            "1 Kustomizations ready; suspended: flux-system"
        );
    }

    #[test]
    fn a_milestone_must_be_a_unit() {
        let tree = || vec![ours(NAMESPACE, NOW), ours("apps", NOW)];
        assert_eq!(say_with(&["apps"], tree()), "2 Kustomizations ready at main@sha1:2");
        assert!(say_with(&["blog"], tree()).contains("there is no Kustomization of that name"));
        // Only when all is ready: before, it may still come.
        let late = vec![ours(NAMESPACE, NOW), not_ready("apps", "BuildFailed", "no")];
        assert!(say_with(&["blog"], late).starts_with("1 of 2 are not ready"));
    }
}
