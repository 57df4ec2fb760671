//! The note in the cluster that says that it was handed over, and what castle had applied then.
//!
//! From the handover on the root and its source belong to Flux and to whoever pushes: the note is how a later run tells
//! a castle file that has changed (which is followed) from what others have changed (which is told, and left).

use castle_engine::Context;
use castle_kubernetes::mark::{CASTLE, INCARNATION};
use castle_kubernetes::{Kubernetes, Mark, Object, ObjectId};
use castle_model::Failure;
use serde_json::{Value, json};

use super::NAMESPACE;
use crate::objects::marked;

const NAME: &str = "castle-handover";

/// What was handed over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Note {
    /// The revision at which the root was applied.
    pub(super) revision: String,
    /// The specification of the root, as applied.
    pub(super) root: String,
    /// The specification of its source, as applied.
    pub(super) source: String,
}

impl Note {
    /// The note of this life of the castle.
    pub(super) async fn read(client: &Kubernetes, mark: &Mark) -> Result<Option<Self>, Failure> {
        let id = ObjectId::namespaced("v1", "ConfigMap", NAMESPACE, NAME);
        let there = client.get(&id).await?;
        let ours = |object: &Object| {
            object.label(CASTLE) == Some(mark.castle.as_str())
                && object.label(INCARNATION) == Some(mark.incarnation.to_string().as_str())
        };
        Ok(there.filter(ours).map(|object| {
            let text =
                |key: &str| object.text(&format!("/data/{key}")).unwrap_or_default().to_owned();
            Self { revision: text("revision"), root: text("root"), source: text("source") }
        }))
    }

    /// Writes it down.
    pub(super) async fn write(&self, client: &Kubernetes, mark: &Mark) -> Result<(), Failure> {
        let note = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME, "namespace": NAMESPACE},
            "data": {"revision": self.revision, "root": self.root, "source": self.source},
        });
        for object in marked(mark, vec![note])? {
            client.ensure(mark, &object).await?;
        }
        Ok(())
    }
}

/// A specification as the note keeps it.
pub(super) fn specification(object: &Value) -> String {
    object["spec"].to_string()
}

/// The fields of a specification that are no longer as castle applied them, from what to what.
pub(super) fn drift(wanted: &Value, there: &Object) -> Vec<String> {
    let fields = wanted["spec"].as_object().into_iter().flatten();
    fields
        .filter_map(|(key, value)| {
            let now = there.at(&format!("/spec/{key}"));
            (now != Some(value)).then(|| match (value.as_str(), now) {
                (Some(was), Some(Value::String(now))) => format!("spec.{key} {was} -> {now}"),
                (Some(was), None) => format!("spec.{key} {was} -> nothing"),
                _ => format!("spec.{key}"),
            })
        })
        .collect()
}

/// Tells that something of the handover is no longer as castle applied it: it is Flux' and its people's, and left so.
pub(super) fn tell_drift(cx: &Context, id: &ObjectId, wanted: &Value, there: &Object) {
    let mut changed = drift(wanted, there);
    if there.at("/spec/suspend") == Some(&Value::Bool(true)) {
        changed.push("suspended: nothing changes until it is resumed".to_owned());
    }
    if !changed.is_empty() {
        let changed = changed.join(", ");
        let note = format!(
            "{id} is no longer as castle applied it ({changed}): since the handover it is Flux' and yours, and is left so"
        );
        cx.left_so("Flux", format!("{id}: {changed}"), note);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_castle_applied_can_drift() {
        let wanted =
            json!({"spec": {"interval": "10m", "path": "./a", "sourceRef": {"name": "x"}}});
        let there = |spec: Value| {
            Object::new(
                json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": spec}),
            )
            .unwrap()
        };
        let same =
            json!({"interval": "10m", "path": "./a", "sourceRef": {"name": "x"}, "force": false});
        assert_eq!(drift(&wanted, &there(same)), [""; 0]);
        let other = json!({"interval": "1h", "path": "./a"});
        assert_eq!(drift(&wanted, &there(other)), ["spec.interval 10m -> 1h", "spec.sourceRef"]);
    }
}
