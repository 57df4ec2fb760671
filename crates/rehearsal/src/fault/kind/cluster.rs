//! What goes wrong in the cluster, and with Flux.

use super::super::rule::Who;
use super::{Kind, Make, Shape, Slot};
use crate::trouble::{FluxTrouble, KubernetesTrouble as K, Trouble};

const WHO: &[Who] = &[Who::Kubernetes];
/// Longer than any run.
const LONG: u64 = 1_000_000_000;

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
        name: "pulls limited",
        who: WHO,
        object: None,
        arguments: &[Slot::needed("REGISTRY", Shape::Text), Slot::needed("PULLS", Shape::Number)],
        about: "A registry lets only so many pulls through: pods are in ImagePullBackOff.",
        example: "kubernetes: pulls limited docker.io 3 for 2:00",
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
        name: "deaf",
        who: &[Who::Flux],
        object: Some(Slot::needed("UNIT", Shape::Text)),
        arguments: &[],
        about: "A Kustomization does not hear that what it depends on has become ready.",
        example: "flux apps: deaf",
        says: "does not hear what it depends on",
        make: Make::Change(|given| vec![FluxTrouble::Miss { unit: given.object_text() }.into()]),
    },
];
