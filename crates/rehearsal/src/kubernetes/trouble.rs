//! What goes wrong in the cluster because somebody says so, such as a test.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::{Kubernetes, kinds};
use crate::turn::{HttpCall, Peer, Turn};

/// Something that goes wrong in the cluster, for a number of milliseconds. It need not be born yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubernetesTrouble {
    /// The API server of the control plane at this address reaches no webhook.
    WebhooksCutOff(Ipv4Addr, u64),
    /// The process behind this service (`namespace/name`) answers webhooks too late.
    WebhookSlow(String, u64),
    /// The process behind this service refuses connections, while its pod is Ready.
    WebhookRefused(String, u64),
    /// A registry (`docker.io`) lets only so many pulls through.
    PullsLimited(String, u32, u64),
    /// External Secrets writes empty values, and says that it synced.
    EmptySecrets(u64),
    /// No definition of a custom kind is established.
    DefinitionsHeld(u64),
    /// Somebody deletes an object with kubectl, now.
    Removed(Named),
    /// Somebody edits an object with kubectl, now: a merge patch in JSON.
    Patched(Named, String),
}

/// An object, as people name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Its kind: `Deployment`, `deployments`, `deploy`.
    pub kind: String,
    /// Its namespace; empty for what is in none.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// The troubles that last, each until a time in virtual milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Troubles {
    cut_off: BTreeMap<Ipv4Addr, u64>,
    slow: BTreeMap<String, u64>,
    #[serde(default)]
    refused: BTreeMap<String, u64>,
    empty_secrets: u64,
    held_definitions: u64,
}

impl Troubles {
    /// Whether the API server at a host reaches no webhook.
    pub(super) fn cuts_off(&self, now: u64, host: &str) -> bool {
        host.parse()
            .is_ok_and(|host: Ipv4Addr| self.cut_off.get(&host).is_some_and(|end| now < *end))
    }

    /// Whether a service (`namespace/name`) answers too late.
    pub(super) fn slows(&self, now: u64, service: &str) -> bool {
        self.slow.get(service).is_some_and(|end| now < *end)
    }

    /// Whether the process behind a service (`namespace/name`) refuses connections.
    pub(super) fn refuses(&self, now: u64, service: &str) -> bool {
        self.refused.get(service).is_some_and(|end| now < *end)
    }

    /// Whether no definition is established.
    pub(super) fn holds_definitions(&self, now: u64) -> bool {
        now < self.held_definitions
    }

    /// Whether External Secrets writes empty values.
    pub(super) fn empties(&self, now: u64) -> bool {
        now < self.empty_secrets
    }
}

impl KubernetesTrouble {
    /// Whether somebody writes to the API server: without etcd that is refused.
    #[must_use]
    pub fn writes(&self) -> bool {
        matches!(self, Self::Removed(_) | Self::Patched(..))
    }
}

impl Kubernetes {
    /// Lets something go wrong.
    pub fn suffer(&mut self, turn: &mut Turn<'_>, trouble: &KubernetesTrouble) {
        let now = turn.now;
        let until = |ms: &u64| now.saturating_add(*ms);
        match trouble {
            KubernetesTrouble::WebhooksCutOff(server, ms) => {
                self.troubles.cut_off.insert(*server, until(ms));
            }
            KubernetesTrouble::WebhookSlow(service, ms) => {
                self.troubles.slow.insert(service.clone(), until(ms));
            }
            KubernetesTrouble::WebhookRefused(service, ms) => {
                self.troubles.refused.insert(service.clone(), until(ms));
            }
            KubernetesTrouble::PullsLimited(registry, pulls, ms) => {
                self.pulls.limit(registry, *pulls, until(ms));
            }
            KubernetesTrouble::EmptySecrets(ms) => self.troubles.empty_secrets = until(ms),
            KubernetesTrouble::DefinitionsHeld(ms) => self.troubles.held_definitions = until(ms),
            KubernetesTrouble::Removed(object) => self.by_hand(turn, object, "DELETE", ""),
            KubernetesTrouble::Patched(object, patch) => self.by_hand(turn, object, "PATCH", patch),
        }
    }

    /// What is wrong because somebody said so.
    pub(crate) fn wrong(&self, now: u64) -> Vec<String> {
        let lasts = |until: &u64| now < *until;
        let troubles = &self.troubles;
        let cut_off = troubles.cut_off.iter().filter(|(_, until)| lasts(until));
        let slow = troubles.slow.iter().filter(|(_, until)| lasts(until));
        let refused = troubles.refused.iter().filter(|(_, until)| lasts(until));
        let mut wrong: Vec<String> = cut_off
            .map(|(host, _)| format!("the API server at {host} reaches no webhook"))
            .collect();
        wrong.extend(slow.map(|(name, _)| format!("the webhook of {name} answers too late")));
        wrong.extend(refused.map(|(name, _)| format!("the webhook of {name} refuses connections")));
        if troubles.empties(now) {
            wrong.push("External Secrets writes empty values".to_owned());
        }
        if troubles.holds_definitions(now) {
            wrong.push("no custom resource definition is established".to_owned());
        }
        wrong.extend(self.pulls.scant(now));
        wrong.extend(
            self.deaf.iter().map(|unit| format!("Flux' {unit} does not hear what it needs")),
        );
        wrong
    }

    /// Somebody with all rights calls the API server. What it refuses has not happened.
    fn by_hand(&mut self, turn: &mut Turn<'_>, object: &Named, method: &str, body: &str) {
        let Some(resource) = kinds::called(&self.store, &object.kind) else { return };
        let home = if resource.namespaced {
            format!("/namespaces/{}", object.namespace)
        } else {
            String::new()
        };
        let root = if resource.group.is_empty() { "api" } else { "apis" };
        let version = resource.api_version();
        let call = HttpCall {
            method: method.to_owned(),
            host: "kubectl".to_owned(),
            path: format!("/{root}/{version}{home}/{}/{}", resource.plural, object.name),
            query: "fieldManager=kubectl-edit".to_owned(),
            headers: vec![("content-type".to_owned(), "application/merge-patch+json".to_owned())],
            body: body.as_bytes().to_vec(),
            peer: Some(Peer {
                common_name: "admin".to_owned(),
                organizations: vec!["system:masters".to_owned()],
            }),
        };
        let before = std::mem::replace(&mut self.now, turn.now);
        if !self.answer(turn, &call).mutated {
            self.now = before;
        }
    }
}
