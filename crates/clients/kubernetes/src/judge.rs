//! The judge: a pure function from an object as it is to ready, waiting or failed, always with a reason in words.
//!
//! The rules are those of kstatus, which Flux uses too, so that both say the same of the same object. Ours differ on purpose where
//! a gate needs more than "the controller has done its part", or less than "give up":
//!
//! - a `LoadBalancer` has an address, a Job has ended, a webhook has its authority, a known custom kind has been looked at;
//! - what heals by itself is waited for and told: a container that crashes, a pod that finds no node, a rollout past its
//!   deadline. Failed is only what waiting can never mend.

mod around;
mod cluster;
mod custom;
mod flux;
mod longhorn;
mod pod;
mod scaling;
mod served;
mod workload;

use castle_model::{Class, Failure, Verdict};
use serde_json::Value;

use crate::object::Object;

/// Judges one object by the rules of its kind.
///
/// An object of a kind without rules is judged by its conditions; one without any is ready by being there.
#[must_use]
pub fn judge(object: &Object) -> Verdict {
    if let Some(leaving) = leaving(object) {
        return leaving;
    }
    let kind = object.kind();
    match object.group() {
        "" => core(object, kind),
        "apps" => match kind {
            "Deployment" => workload::deployment(object),
            "ReplicaSet" => workload::replica_set(object),
            "DaemonSet" => workload::daemon_set(object),
            "StatefulSet" => workload::stateful_set(object),
            _ => custom::by_conditions(object),
        },
        "batch" => match kind {
            "Job" => workload::job(object),
            "CronJob" => workload::cron_job(object),
            _ => custom::by_conditions(object),
        },
        "policy" if kind == "PodDisruptionBudget" => scaling::disruption_budget(object),
        "autoscaling" if kind == "HorizontalPodAutoscaler" => scaling::autoscaler(object),
        "networking.k8s.io" if kind == "Ingress" => cluster::ingress(object),
        "discovery.k8s.io" if kind == "EndpointSlice" => cluster::endpoint_slice(object),
        "apiextensions.k8s.io" if kind == "CustomResourceDefinition" => served::definition(object),
        "apiregistration.k8s.io" if kind == "APIService" => served::api_service(object),
        "admissionregistration.k8s.io" if kind.ends_with("WebhookConfiguration") => {
            served::webhooks(object)
        }
        "external-secrets.io" => custom::external_secrets(object),
        "longhorn.io" => match kind {
            "Node" => longhorn::node(object),
            "Volume" => longhorn::volume(object),
            _ => custom::by_conditions(object),
        },
        group if flux::is_of(group) => flux::unit(object),
        _ => custom::by_conditions(object),
    }
}

fn core(object: &Object, kind: &str) -> Verdict {
    match kind {
        "Pod" => pod::pod(object),
        "Node" => cluster::node(object),
        "Namespace" => cluster::namespace(object),
        "PersistentVolumeClaim" => cluster::claim(object),
        "PersistentVolume" => cluster::volume(object),
        "Service" => cluster::service(object),
        "ReplicationController" => workload::replica_set(object),
        _ => custom::by_conditions(object),
    }
}

/// Judges one object as [`judge`] does, and says what keeps it by what is around: which of its pods, and why.
#[must_use]
pub fn judge_among<'a>(object: &Object, around: impl IntoIterator<Item = &'a Object>) -> Verdict {
    match judge(object) {
        Verdict::Waiting(reason) => Verdict::Waiting(around::explain(object, reason, around)),
        other => other,
    }
}

/// Judges many objects: ready when all are, failed when one is, else waiting with the first reason and a count.
#[must_use]
pub fn judge_all<'a>(objects: impl IntoIterator<Item = &'a Object>) -> Verdict {
    let (mut ready, mut waiting) = (0_usize, 0_usize);
    let mut first = None;
    for object in objects {
        match judge(object) {
            Verdict::Ready(_) => ready += 1,
            Verdict::Waiting(reason) => {
                waiting += 1;
                first.get_or_insert(reason);
            }
            failed @ Verdict::Failed(_) => return failed,
        }
    }
    match first {
        None => Verdict::Ready(format!("{ready} ready")),
        Some(reason) if waiting == 1 => Verdict::Waiting(reason),
        Some(reason) => Verdict::Waiting(format!("{reason}; and {} more", waiting - 1)),
    }
}

/// What is being deleted is never ready, whatever its status still says; who holds it is told.
fn leaving(object: &Object) -> Option<Verdict> {
    let marked = object.at("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null());
    let ending = object.kind() == "Namespace"
        && object.group().is_empty()
        && object.text("/status/phase") == Some("Terminating");
    if !marked && !ending {
        return None;
    }
    let holders: Vec<&str> = object
        .entries("/metadata/finalizers")
        .iter()
        .chain(if ending { object.entries("/spec/finalizers") } else { &[] })
        .filter_map(Value::as_str)
        .collect();
    let mut words = "is being deleted".to_owned();
    if !holders.is_empty() {
        words = format!("{words}, held by {}", holders.join(", "));
    }
    for kind in ["NamespaceContentRemaining", "NamespaceFinalizersRemaining"] {
        if let Some(rest) = object.condition(kind).filter(|c| ending && c.holds()) {
            words = format!("{words}; {}", rest.words());
        }
    }
    Some(waiting(object, words))
}

fn ready(object: &Object, words: impl AsRef<str>) -> Verdict {
    Verdict::Ready(format!("{} {}", object.id(), words.as_ref()))
}

fn waiting(object: &Object, words: impl AsRef<str>) -> Verdict {
    Verdict::Waiting(format!("{} {}", object.id(), words.as_ref()))
}

fn failed(object: &Object, why: impl Into<String>, hint: &str) -> Verdict {
    let failure = Failure::new(Class::Invalid, format!("wait for {}", object.id()), why);
    Verdict::Failed(if hint.is_empty() { failure } else { failure.hint(hint) })
}

/// Whether the controller has not looked at the newest generation yet.
fn unseen(object: &Object) -> bool {
    object.number("/status/observedGeneration") < object.number("/metadata/generation")
}

/// Whether something at a pointer is `true`.
fn is_set(object: &Object, pointer: &str) -> bool {
    object.at(pointer).and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests;
