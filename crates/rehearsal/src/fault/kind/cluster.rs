//! What goes wrong in the cluster, and with Flux.

use super::super::rule::Who;
use super::super::value::Given;
use super::{Kind, Make, Shape, Slot};
use crate::trouble::{FluxTrouble, KubernetesTrouble as K, Named, Trouble};

const WHO: &[Who] = &[Who::Kubernetes];
/// Longer than any run.
const LONG: u64 = 1_000_000_000;

/// An object of the cluster.
const OBJECT: &[Slot] = &[Slot::needed("OBJECT", Shape::Object)];

fn named(given: &Given<'_>) -> Named {
    let text = given.text(0).unwrap_or_default();
    let parts: Vec<&str> = text.split('/').collect();
    let (kind, namespace, name) = match parts[..] {
        [kind, namespace, name] => (kind, namespace, name),
        [kind, name] => (kind, "", name),
        _ => ("", "", ""),
    };
    Named { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
}

fn suspended(given: &Given<'_>, suspended: bool) -> Vec<Trouble> {
    let unit = Some(given.object_text()).filter(|unit| !unit.is_empty());
    vec![FluxTrouble::Suspended { unit, suspended }.into()]
}

fn one(trouble: K) -> Vec<Trouble> {
    vec![trouble.into()]
}

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "webhooks cut off",
        who: WHO,
        object: Some(Slot::needed("NODE", Shape::Machine)),
        arguments: &[],
        about: "The API server of a machine reaches no webhook, while their pods are Ready.",
        example: "kubernetes cp-01: webhooks cut off for 3:00",
        says: "reaches no webhook",
        make: Make::Passing(
            |given| one(K::WebhooksCutOff(given.address(), LONG)),
            |given| one(K::WebhooksCutOff(given.address(), 0)),
        ),
    },
    Kind {
        name: "webhook slow",
        who: WHO,
        object: None,
        arguments: &[Slot::needed("SERVICE", Shape::Text)],
        about: "The process behind a service (NAMESPACE/NAME) answers webhooks too late.",
        example: "kubernetes: webhook slow metallb-system/metallb-webhook-service for 3:00",
        says: "waits too long for the webhook of {0}",
        make: Make::Passing(
            |given| one(K::WebhookSlow(given.text(0).unwrap_or_default(), LONG)),
            |given| one(K::WebhookSlow(given.text(0).unwrap_or_default(), 0)),
        ),
    },
    Kind {
        name: "webhook refused",
        who: WHO,
        object: None,
        arguments: &[Slot::needed("SERVICE", Shape::Text)],
        about: "A Ready pod behind a service (NAMESPACE/NAME) refuses connections.",
        example: "kubernetes: webhook refused metallb-system/metallb-webhook-service for 3:00",
        says: "is refused by the webhook of {0}",
        make: Make::Passing(
            |given| one(K::WebhookRefused(given.text(0).unwrap_or_default(), LONG)),
            |given| one(K::WebhookRefused(given.text(0).unwrap_or_default(), 0)),
        ),
    },
    Kind {
        name: "pulls limited",
        who: WHO,
        object: None,
        arguments: &[Slot::needed("REGISTRY", Shape::Text), Slot::needed("PULLS", Shape::Number)],
        about: "A registry lets only so many pulls through: pods are in ImagePullBackOff.",
        example: "kubernetes: pulls limited docker.io 1 for 2:00",
        says: "gets only {1} images from {0}",
        make: Make::Passing(
            |given| {
                let pulls = u32::try_from(given.number(1)).unwrap_or(u32::MAX);
                one(K::PullsLimited(given.text(0).unwrap_or_default(), pulls, LONG))
            },
            |given| one(K::PullsLimited(given.text(0).unwrap_or_default(), 0, 0)),
        ),
    },
    Kind {
        name: "empty secrets",
        who: WHO,
        object: None,
        arguments: &[],
        about: "External Secrets writes empty values, and says that it synced.",
        example: "kubernetes: empty secrets for 4:00",
        says: "gets empty secrets",
        make: Make::Passing(|_| one(K::EmptySecrets(LONG)), |_| one(K::EmptySecrets(0))),
    },
    Kind {
        name: "definitions held",
        who: WHO,
        object: None,
        arguments: &[],
        about: "No custom resource definition is established.",
        example: "kubernetes: definitions held for 4:00",
        says: "establishes no definition",
        make: Make::Passing(|_| one(K::DefinitionsHeld(LONG)), |_| one(K::DefinitionsHeld(0))),
    },
    Kind {
        name: "deleted",
        who: WHO,
        object: None,
        arguments: OBJECT,
        about: "Somebody deletes an object: KIND/NAMESPACE/NAME, or KIND/NAME.",
        example: "kubernetes: deleted deployments/metallb-system/controller during flux",
        says: "has lost {0}, which somebody deleted",
        make: Make::Change(|given| one(K::Removed(named(given)))),
    },
    Kind {
        name: "scaled",
        who: WHO,
        object: None,
        arguments: &[OBJECT[0], Slot::needed("REPLICAS", Shape::Number)],
        about: "Somebody scales a workload.",
        example: "kubernetes: scaled deploy/metallb-system/controller 0 during flux",
        says: "has {0} scaled to {1} by hand",
        make: Make::Change(|given| {
            let patch = format!("{{\"spec\":{{\"replicas\":{}}}}}", given.number(1));
            one(K::Patched(named(given), patch))
        }),
    },
    Kind {
        name: "patched",
        who: WHO,
        object: None,
        arguments: &[OBJECT[0], Slot::needed("JSON", Shape::Json)],
        about: "Somebody edits an object: a merge patch in JSON, in quotes.",
        example: "kubernetes: patched node/cp-01 {\"spec\":{\"unschedulable\":true}} during nodes",
        says: "has {0} edited by hand",
        make: Make::Change(|given| {
            one(K::Patched(named(given), given.text(1).unwrap_or_default()))
        }),
    },
    Kind {
        name: "suspended",
        who: &[Who::Flux],
        object: Some(Slot::optional("UNIT", Shape::Text)),
        arguments: &[],
        about: "Somebody suspends a Kustomization; without a name all, and their source.",
        example: "flux: suspended during flux",
        says: "is suspended",
        make: Make::Passing(|given| suspended(given, true), |given| suspended(given, false)),
    },
    Kind {
        name: "deaf",
        who: &[Who::Flux],
        object: Some(Slot::needed("UNIT", Shape::Text)),
        arguments: &[],
        about: "A Kustomization does not hear that what it depends on has become ready.",
        example: "flux apps-static: deaf",
        says: "does not hear what it depends on",
        make: Make::Change(|given| vec![FluxTrouble::Miss { unit: given.object_text() }.into()]),
    },
];
