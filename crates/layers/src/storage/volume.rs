//! `storage/volume`: every storage node has a disk that takes volumes, and a probe volume was bound.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mode, ObjectId, Place};
use castle_model::spec::Role;
use castle_model::{Change, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};
use serde_json::json;

use super::NAMESPACE;
use crate::objects::{Probe, marked};

const VERSION: &str = "longhorn.io/v1beta2";
const CLASS: &str = "longhorn";
const PROBE: Probe = Probe {
    api_version: "v1",
    kind: "PersistentVolumeClaim",
    namespace: NAMESPACE,
    of: "volume",
    proves: "a volume was bound",
};

/// The step.
pub(crate) struct Volume(pub(crate) Arc<Cluster>);

impl Volume {
    fn places() -> Vec<Place> {
        vec![
            Place::within(VERSION, "Node", NAMESPACE),
            Place::everywhere("storage.k8s.io/v1", "StorageClass"),
        ]
    }
}

#[async_trait]
impl Step for Volume {
    async fn observe(&self, cx: &Context) -> Result<Observed, Failure> {
        let client = self.0.client(cx)?;
        if !PROBE.is_proven(&client, &self.0.mark(cx)?).await? {
            return Ok(Observed::Absent);
        }
        if let Some(left) = PROBE.leftover(&client).await? {
            return Ok(Observed::wrong(left));
        }
        Ok(observed(disks(&self.0.spec, &self.0.look(cx, &Self::places()).await?)))
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        if PROBE.is_proven(&client, &mark).await? {
            let removed = PROBE.remove(&client).await?;
            return Ok(Acted::of(if removed { Change::Updated } else { Change::Unchanged }));
        }
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": Probe::NAME, "namespace": NAMESPACE},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
                "resources": {"requests": {"storage": "64Mi"}},
            },
        });
        for claim in marked(&mark, vec![claim])? {
            client.apply(&claim, Mode::Real).await?;
        }
        Ok(Acted::of(Change::Created))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let mark = self.0.mark(cx)?;
        let what = "every storage node to have a disk";
        let judged = |there: &Objects| disks(&self.0.spec, there);
        let words = self.0.settled(cx, what, Self::places(), judged).await?;
        if !PROBE.is_proven(&client, &mark).await? {
            let claim = PROBE.id();
            let place = Place::within("v1", "PersistentVolumeClaim", NAMESPACE);
            self.0
                .settled(cx, "a probe volume to be bound", vec![place], |there| {
                    match there.get(&claim) {
                        Some(object) => judge(object),
                        None => Verdict::Waiting(format!("{claim} is not there yet")),
                    }
                })
                .await?;
        }
        PROBE.passed(&client, &mark).await?;
        Ok(format!("{words}; {} and removed", PROBE.proves))
    }
}

/// The nodes that carry volumes: those with a disk for them, or else every worker.
fn storage_nodes(spec: &Spec) -> Vec<&str> {
    let with_disk: Vec<&str> =
        spec.nodes.iter().filter(|n| n.has_data_disk()).map(|n| n.name.as_str()).collect();
    if !with_disk.is_empty() {
        return with_disk;
    }
    spec.nodes.iter().filter(|n| n.role == Role::Worker).map(|n| n.name.as_str()).collect()
}

/// Judges the disks of the storage nodes, and that the class is there.
fn disks(spec: &Spec, there: &Objects) -> Verdict {
    let nodes = storage_nodes(spec);
    for name in &nodes {
        match there.get(&ObjectId::namespaced(VERSION, "Node", NAMESPACE, name)).map(judge) {
            None => return Verdict::Waiting(format!("Longhorn does not know the node {name} yet")),
            Some(Verdict::Ready(_)) => {}
            Some(other) => return other,
        }
    }
    if !there.contains_key(&ObjectId::cluster("storage.k8s.io/v1", "StorageClass", CLASS)) {
        return Verdict::Waiting(format!("StorageClass {CLASS} is not there yet"));
    }
    Verdict::Ready(format!("disks on {} take volumes", nodes.join(", ")))
}
