//! `storage/volume`: every storage node has a disk that takes volumes, and a probe volume was bound.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mark, Mode, Object, ObjectId, Place};
use castle_model::spec::Role;
use castle_model::{Change, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects};
use serde_json::json;

use super::NAMESPACE;
use crate::objects::{marked, proof};

const VERSION: &str = "longhorn.io/v1beta2";
const CLASS: &str = "longhorn";
const PROBE: &str = "castle-probe";
const PROVEN: &str = "a volume was bound";

/// The step.
pub(super) struct Volume(pub(super) Arc<Cluster>);

impl Volume {
    fn mark(&self, cx: &Context) -> Result<Mark, Failure> {
        self.0.mark(cx, &"storage".parse().map_err(|_| Failure::bug("name the layer", "storage"))?)
    }

    fn note(mark: &Mark) -> Result<Vec<Object>, Failure> {
        marked(mark, vec![proof(NAMESPACE, "volume", PROVEN)])
    }

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
        let mark = self.mark(cx)?;
        let survey = client.survey(&mark, &Self::note(&mark)?).await?;
        if !survey.is_complete() {
            return Ok(Observed::Absent);
        }
        let mut there = Objects::new();
        for place in Self::places() {
            let namespace = place.namespace.as_deref();
            let listing = client.list(&place.api_version, &place.kind, namespace, "").await?;
            there.extend(listing.items.into_iter().map(|object| (object.id(), object)));
        }
        Ok(match disks(&self.0.spec, &there) {
            Verdict::Ready(words) => Observed::right(words),
            Verdict::Waiting(why) => Observed::wrong(why),
            Verdict::Failed(failure) => Observed::wrong(failure.to_string()),
        })
    }

    async fn act(&self, cx: &Context, _verb: Verb) -> Result<Acted, Failure> {
        let claim = json!({
            "apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": PROBE, "namespace": NAMESPACE},
            "spec": {
                "accessModes": ["ReadWriteOnce"], "storageClassName": CLASS,
                "resources": {"requests": {"storage": "64Mi"}},
            },
        });
        let client = self.0.client(cx)?;
        for claim in marked(&self.mark(cx)?, vec![claim])? {
            client.apply(&claim, Mode::Real).await?;
        }
        Ok(Acted::of(Change::Created))
    }

    async fn gate(&self, cx: &Context) -> Result<String, Failure> {
        let client = self.0.client(cx)?;
        let spec = &self.0.spec;
        let words = self
            .0
            .settled(cx, "every storage node to have a disk", Self::places(), |there| {
                disks(spec, there)
            })
            .await?;
        let claim = ObjectId::namespaced("v1", "PersistentVolumeClaim", NAMESPACE, PROBE);
        let place = Place::within("v1", "PersistentVolumeClaim", NAMESPACE);
        self.0
            .settled(cx, "a probe volume to be bound", vec![place], |there| {
                match there.get(&claim) {
                    Some(object) => judge(object),
                    None => Verdict::Waiting(format!("{claim} is not there yet")),
                }
            })
            .await?;
        client.delete(&claim).await?;
        for note in Self::note(&self.mark(cx)?)? {
            client.apply(&note, Mode::Real).await?;
        }
        Ok(format!("{words}; {PROVEN} and removed"))
    }
}

/// The nodes that carry volumes: those with a disk for them, or else every worker.
fn storage_nodes(spec: &Spec) -> Vec<&str> {
    let with_disk: Vec<&str> =
        spec.nodes.iter().filter(|n| n.data_disk_gib.is_some()).map(|n| n.name.as_str()).collect();
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
