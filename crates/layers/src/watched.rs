//! A built-in layer that Flux installs: castle applies nothing of it, and looks whether it is there and works.
//!
//! What is looked at does not depend on how it was installed: its definitions, every workload of its namespace, its
//! webhooks, and what the layer is for. Proofs that would write something (a probe volume, a probe service, a probe
//! secret) are left out: the cluster is Flux' by then.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Object, ObjectId, Place};
use castle_model::{Failure, Observed, Spec, StepDecl, StepId, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};
use castle_platforms::ids;

use crate::gitops;
use crate::manifest::{hook_services, hooks_served};
use crate::objects::{held_up, held_up_among};

/// What is looked at of a layer.
pub(crate) struct Watched {
    /// Its name for a person: `MetalLB`.
    pub(crate) title: &'static str,
    /// What its gate proves.
    pub(crate) proves: &'static str,
    /// Its namespace, which every way of installing it uses by default.
    pub(crate) namespace: &'static str,
    /// Definitions that it can not be without.
    pub(crate) definitions: &'static [&'static str],
    /// Where else to look, as version, kind and namespace (none: everywhere).
    pub(crate) also: &'static [(&'static str, &'static str, Option<&'static str>)],
    /// Judges what the layer is for.
    pub(crate) works: fn(&Spec, &Objects) -> Verdict,
}

/// The step of a layer that is left to Flux.
pub(crate) fn declare(watched: &Watched, id: StepId, deadline: &str) -> StepDecl {
    StepDecl::new(id, format!("{}, installed by Flux", watched.title), deadline, watched.proves)
        .needs([gitops::handover_id()])
        .weight(20_000)
        .lives_on([ids::bootstrap()])
        .disturbed_by([ids::nodes()])
        .observed("Flux installs it, castle only looks")
}

/// The step.
pub(crate) struct WatchedStep {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) watched: &'static Watched,
}

impl Watched {
    fn places(&self) -> Vec<Place> {
        let mut places = vec![
            Place::everywhere("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
            Place::everywhere(HOOKS, "ValidatingWebhookConfiguration"),
            Place::everywhere(HOOKS, "MutatingWebhookConfiguration"),
            Place::within("discovery.k8s.io/v1", "EndpointSlice", self.namespace),
        ];
        places.push(Place::within("v1", "Pod", self.namespace));
        places.extend(WORKLOADS.map(|kind| Place::within("apps/v1", kind, self.namespace)));
        places.extend(self.also.iter().map(|(version, kind, namespace)| match namespace {
            Some(namespace) => Place::within(version, kind, namespace),
            None => Place::everywhere(version, kind),
        }));
        places
    }

    /// The places that can be looked at before its definitions are there.
    fn first_places(&self) -> Vec<Place> {
        let mut places = self.places();
        places.truncate(places.len() - self.also.len());
        places
    }

    /// Whether its definitions are there and established.
    fn defined(&self, there: &Objects) -> Verdict<usize> {
        let mut found = Vec::new();
        for name in self.definitions {
            let id = ObjectId::cluster("apiextensions.k8s.io/v1", "CustomResourceDefinition", name);
            match there.get(&id) {
                Some(object) => found.push(object),
                None => return Verdict::Waiting(format!("Flux has not made {name} yet")),
            }
        }
        held(held_up(found), self.definitions.len())
    }

    /// Judges everything of it.
    fn judge(&self, spec: &Spec, there: &Objects) -> Verdict {
        if let Some(other) = other_than_ready(self.defined(there)) {
            return other;
        }
        let ours = |object: &&Object| {
            WORKLOADS.contains(&object.kind()) && object.namespace() == Some(self.namespace)
        };
        let workloads: Vec<&Object> = there.values().filter(ours).collect();
        if workloads.is_empty() {
            return Verdict::Waiting(format!("nothing runs in {} yet", self.namespace));
        }
        let count = workloads.len();
        if let Some(other) = other_than_ready(held(held_up_among(workloads, there), count)) {
            return other;
        }
        let (hooks, services) = self.hooks(there);
        if let Some(other) = other_than_ready(held(held_up(hooks), count)) {
            return other;
        }
        if let Err(reason) = hooks_served(&services, there) {
            return Verdict::Waiting(reason);
        }
        match (self.works)(spec, there) {
            Verdict::Ready(words) => Verdict::Ready(format!(
                "{}, {}; {words}",
                counted(count, "workload runs", "workloads run"),
                counted(services.len(), "webhook is served", "webhooks are served"),
            )),
            other => other,
        }
    }

    /// The webhooks that are answered from its namespace, and the services behind them.
    fn hooks<'o>(&self, there: &'o Objects) -> (Vec<&'o Object>, BTreeSet<(String, String)>) {
        let mut found = (Vec::new(), BTreeSet::new());
        for object in there.values() {
            let services = hook_services(std::slice::from_ref(object));
            let own: Vec<_> = services.into_iter().filter(|(ns, _)| ns == self.namespace).collect();
            if !own.is_empty() {
                found.0.push(object);
                found.1.extend(own);
            }
        }
        found
    }
}

const HOOKS: &str = "admissionregistration.k8s.io/v1";
const WORKLOADS: [&str; 3] = ["Deployment", "DaemonSet", "StatefulSet"];

fn counted(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn held(verdict: Option<Verdict>, count: usize) -> Verdict<usize> {
    match verdict {
        None | Some(Verdict::Ready(_)) => Verdict::Ready(count),
        Some(Verdict::Waiting(reason)) => Verdict::Waiting(reason),
        Some(Verdict::Failed(failure)) => Verdict::Failed(failure),
    }
}

fn other_than_ready(verdict: Verdict<usize>) -> Option<Verdict> {
    match verdict {
        Verdict::Ready(_) => None,
        Verdict::Waiting(reason) => Some(Verdict::Waiting(reason)),
        Verdict::Failed(failure) => Some(Verdict::Failed(failure)),
    }
}

/// Every object of a kind among these, each ready; says how many there are.
pub(crate) fn all_ready(there: &Objects, kind: &str) -> Verdict<usize> {
    let found: Vec<&Object> = there.values().filter(|object| object.kind() == kind).collect();
    for object in &found {
        match judge(object) {
            Verdict::Ready(_) => {}
            Verdict::Waiting(reason) => return Verdict::Waiting(reason),
            Verdict::Failed(failure) => return Verdict::Failed(failure),
        }
    }
    Verdict::Ready(found.len())
}

#[async_trait]
impl Step for WatchedStep {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let there = self.cluster.look(cx, &self.watched.first_places()).await?;
        if other_than_ready(self.watched.defined(&there)).is_some() {
            return Ok(Observed::Absent);
        }
        let there = self.cluster.look(cx, &self.watched.places()).await?;
        Ok(observed(self.watched.judge(&self.cluster.spec, &there)))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let what = format!("Flux to have installed {}", self.watched.title);
        let defined = |there: &Objects| self.watched.defined(there);
        self.cluster.settled(cx, &what, self.watched.first_places(), defined).await?;
        let judge = |there: &Objects| self.watched.judge(&self.cluster.spec, there);
        self.cluster.settled(cx, &what, self.watched.places(), judge).await
    }
}

#[cfg(test)]
mod tests;
