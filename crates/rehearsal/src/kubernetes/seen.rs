//! The cluster as the datacenter itself knows it, past its API server.

use serde_json::Value;

use super::store::parts;
use super::{Kubernetes, kinds};
use crate::inventory::{Unit, Workload};

impl Kubernetes {
    /// Its workloads, and how many of their pods are ready.
    #[must_use]
    pub fn workloads(&self) -> Vec<Workload> {
        let kinds = ["daemonsets", "deployments", "statefulsets"];
        let all = kinds.iter().flat_map(|plural| self.store.all("apps", plural));
        all.map(|(place, object)| {
            let (_, plural, namespace, name) = parts(place);
            let status = &object["status"];
            let (ready, wanted) = match plural {
                "daemonsets" => (&status["numberReady"], &status["desiredNumberScheduled"]),
                _ => (&status["readyReplicas"], &object["spec"]["replicas"]),
            };
            Workload {
                name: format!("{plural}/{namespace}/{name}"),
                ready: ready.as_u64().unwrap_or(0),
                wanted: wanted.as_u64().unwrap_or(0),
            }
        })
        .collect()
    }

    /// What Flux looks after: its sources, then its Kustomizations.
    #[must_use]
    pub fn units(&self) -> Vec<Unit> {
        let sources = self.store.all("source.toolkit.fluxcd.io", "gitrepositories");
        let sources = sources.map(|(place, object)| (format!("source {}", parts(place).3), object));
        let units = self.store.all("kustomize.toolkit.fluxcd.io", "kustomizations");
        let units = units.map(|(place, object)| (parts(place).3.to_owned(), object));
        sources
            .chain(units)
            .map(|(name, object)| Unit {
                name,
                ready: kinds::condition(object, "Ready"),
                suspended: object["spec"]["suspend"] == true,
                says: message(object),
            })
            .collect()
    }
}

/// What the condition Ready of an object says.
fn message(object: &Value) -> String {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let mut ready = conditions.filter(|condition| condition["type"] == "Ready");
    let text = ready.next().and_then(|condition| condition["message"].as_str());
    text.unwrap_or("not looked at yet").to_owned()
}
