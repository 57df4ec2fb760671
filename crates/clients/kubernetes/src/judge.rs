//! The judge: a pure function from an object as it is to ready, waiting or failed, always with a reason in words.

mod cluster;
mod custom;
mod workload;

use castle_model::{Class, Failure, Verdict};

use crate::object::Object;

/// Judges one object by the rules of its kind.
///
/// An object of a kind without rules is judged by its conditions; one without any is ready by being there.
#[must_use]
pub fn judge(object: &Object) -> Verdict {
    if object.at("/metadata/deletionTimestamp").is_some() && object.kind() != "Namespace" {
        return waiting(object, "is being deleted");
    }
    match (object.group(), object.kind()) {
        ("apps", "Deployment") => workload::deployment(object),
        ("apps", "DaemonSet") => workload::daemon_set(object),
        ("apps", "StatefulSet") => workload::stateful_set(object),
        ("", "Pod") => workload::pod(object),
        ("batch", "Job") => workload::job(object),
        ("", "Node") => cluster::node(object),
        ("", "Namespace") => cluster::namespace(object),
        ("", "PersistentVolumeClaim") => cluster::claim(object),
        ("", "Service") => cluster::service(object),
        ("discovery.k8s.io", "EndpointSlice") => cluster::endpoint_slice(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => cluster::definition(object),
        ("apiregistration.k8s.io", "APIService") => cluster::api_service(object),
        (
            "admissionregistration.k8s.io",
            "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
        ) => cluster::webhooks(object),
        ("external-secrets.io", "ExternalSecret" | "ClusterSecretStore" | "SecretStore")
        | (
            "source.toolkit.fluxcd.io" | "kustomize.toolkit.fluxcd.io" | "helm.toolkit.fluxcd.io",
            _,
        ) => custom::must_say_ready(object),
        ("longhorn.io", "Node") => custom::longhorn_node(object),
        _ => custom::by_conditions(object),
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

#[cfg(test)]
mod tests;
