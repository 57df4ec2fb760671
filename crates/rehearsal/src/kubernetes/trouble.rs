//! What goes wrong in the cluster because somebody says so, such as a test.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::Kubernetes;
use crate::turn::Turn;

/// Something that goes wrong in the cluster, for a number of milliseconds. It need not be born yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KubernetesTrouble {
    /// The API server of the control plane at this address reaches no webhook.
    WebhooksCutOff(Ipv4Addr, u64),
    /// The process behind this service (`namespace/name`) answers webhooks too late.
    WebhookSlow(String, u64),
    /// A registry (`docker.io`) lets only so many pulls through.
    PullsLimited(String, u32, u64),
    /// External Secrets writes empty values, and says that it synced.
    EmptySecrets(u64),
}

/// The troubles that last, each until a time in virtual milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Troubles {
    cut_off: BTreeMap<Ipv4Addr, u64>,
    slow: BTreeMap<String, u64>,
    empty_secrets: u64,
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

    /// Whether External Secrets writes empty values.
    pub(super) fn empties(&self, now: u64) -> bool {
        now < self.empty_secrets
    }
}

impl Kubernetes {
    /// Lets something go wrong.
    pub fn suffer(&mut self, turn: &Turn<'_>, trouble: &KubernetesTrouble) {
        let until = |ms: &u64| turn.now.saturating_add(*ms);
        match trouble {
            KubernetesTrouble::WebhooksCutOff(server, ms) => {
                self.troubles.cut_off.insert(*server, until(ms));
            }
            KubernetesTrouble::WebhookSlow(service, ms) => {
                self.troubles.slow.insert(service.clone(), until(ms));
            }
            KubernetesTrouble::PullsLimited(registry, pulls, ms) => {
                self.pulls.limit(registry, *pulls, until(ms));
            }
            KubernetesTrouble::EmptySecrets(ms) => self.troubles.empty_secrets = until(ms),
        }
    }
}
