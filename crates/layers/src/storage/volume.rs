//! `storage/volume`: every storage node has a disk that takes volumes, and a probe volume was bound.

use std::sync::Arc;

use async_trait::async_trait;
use castle_engine::{Acted, Context, Step};
use castle_kubernetes::judge::judge;
use castle_kubernetes::{Mode, Object, ObjectId, Place};
use castle_model::spec::LayerOwner;
use castle_model::{Change, Class, Failure, Observed, Spec, Verb, Verdict};
use castle_platforms::cluster::{Cluster, Objects, observed};
use serde_json::json;

use super::{NAMESPACE, storage_nodes};
use crate::objects::{Probe, marked};

pub(super) const VERSION: &str = "longhorn.io/v1beta2";
const DEFAULT: &str = "storageclass.kubernetes.io/is-default-class";
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

/// What its gate proves.
pub(super) const PROVES: &str = "every storage node has a disk, and a probe volume binds";

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

/// Judges the disks of the storage nodes, and that volumes have one class by default.
pub(super) fn disks(spec: &Spec, there: &Objects) -> Verdict {
    let nodes = storage_nodes(spec);
    let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
    for name in &names {
        match there.get(&ObjectId::namespaced(VERSION, "Node", NAMESPACE, name)).map(judge) {
            None => return Verdict::Waiting(format!("Longhorn does not know the node {name} yet")),
            Some(Verdict::Ready(_)) => {}
            Some(other) => return other,
        }
    }
    if spec.storage.owner == LayerOwner::Castle
        && let Some(verdict) = copies(spec.storage.replicas, there)
    {
        return verdict;
    }
    match default_class(there) {
        Verdict::Ready(class) => Verdict::Ready(format!(
            "disks on {} take volumes, of class {class} by default",
            names.join(", ")
        )),
        other => other,
    }
}

/// Whether there are as many nodes that take volumes as a volume has copies.
fn copies(replicas: u32, there: &Objects) -> Option<Verdict> {
    let of = |object: &&Object| object.kind() == "Node" && object.api_version() == VERSION;
    let takes = |object: &&Object| matches!(judge(object), Verdict::Ready(_));
    let able = there.values().filter(of).filter(takes).count();
    (able < usize::try_from(replicas).unwrap_or(usize::MAX)).then(|| {
        Verdict::Waiting(format!(
            "{able} nodes take volumes, and each volume is to have {replicas} copies on different ones"
        ))
    })
}

/// The one class that volumes have by default: with two of them nobody can say which one a claim gets.
fn default_class(there: &Objects) -> Verdict {
    let classes = || there.values().filter(|object| object.kind() == "StorageClass");
    if !classes().any(|class| class.name() == CLASS) {
        return Verdict::Waiting(format!("StorageClass {CLASS} is not there yet"));
    }
    let defaults: Vec<&str> =
        classes().filter(|c| c.annotation(DEFAULT) == Some("true")).map(Object::name).collect();
    let failed = |class, why: String, hint: &str| {
        Verdict::Failed(Failure::new(class, "find the default StorageClass", why).hint(hint))
    };
    match defaults.as_slice() {
        [one] => Verdict::Ready((*one).to_owned()),
        [] => failed(
            Class::Invalid,
            format!("StorageClass {CLASS} is there, but no class is the default one"),
            "take the patch that changes it out of storage \"longhorn\"; or mark a class of your own as the default",
        ),
        several => failed(
            Class::Conflict,
            format!("{} StorageClasses are the default one: {}", several.len(), several.join(", ")),
            "keep one: kubectl annotate storageclass NAME storageclass.kubernetes.io/is-default-class=false --overwrite",
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn node(name: &str, schedulable: bool) -> Value {
        json!({"apiVersion": VERSION, "kind": "Node", "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"allowScheduling": schedulable},
            "status": {"conditions": [{"type": "Ready", "status": "True"}],
                "diskStatus": {"d": {"conditions": [{"type": "Schedulable", "status": "True"}]}}}})
    }

    fn class(name: &str, default: bool) -> Value {
        json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "p",
            "metadata": {"name": name, "annotations": {(DEFAULT): default.to_string()}}})
    }

    fn told(spec: &Spec, values: &[Value]) -> String {
        let objects = values.iter().map(|value| Object::new(value.clone()).unwrap());
        match disks(spec, &objects.map(|object| (object.id(), object)).collect()) {
            Verdict::Ready(words) => format!("ready: {words}"),
            Verdict::Waiting(reason) => format!("waiting: {reason}"),
            Verdict::Failed(failure) => format!("failed: {failure}"),
        }
    }

    #[test]
    fn volumes_need_a_disk_on_each_node_room_for_their_copies_and_one_class() {
        let spec = castle_config::example();
        let both = [node("worker-01", true), node("worker-02", true)];
        let with = |more: &[Value]| told(&spec, &[&both[..], more].concat());
        let mut wide = spec.clone();
        wide.storage.replicas = 3;
        let lines = [
            told(&spec, &[]),
            told(&spec, &[node("worker-01", true), node("worker-02", false)]),
            told(&wide, &both),
            with(&[]),
            with(&[class("longhorn", true)]),
            with(&[class("longhorn", false)]),
            with(&[class("longhorn", false), class("local", true)]),
            with(&[class("longhorn", true), class("local", true)]),
        ];
        insta::assert_snapshot!(lines.join("\n"), @r#"
        waiting: Longhorn does not know the node worker-01 yet
        waiting: Node longhorn-system/worker-02 is switched off for volumes
        waiting: 2 nodes take volumes, and each volume is to have 3 copies on different ones
        waiting: StorageClass longhorn is not there yet
        ready: disks on worker-01, worker-02 take volumes, of class longhorn by default
        failed: find the default StorageClass: StorageClass longhorn is there, but no class is the default one
        ready: disks on worker-01, worker-02 take volumes, of class local by default
        failed: find the default StorageClass: 2 StorageClasses are the default one: local, longhorn
        "#);
    }
}
