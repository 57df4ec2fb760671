//! Events: what controllers say about objects, counted where they say it again.

use serde_json::json;
use sha2::{Digest, Sha256};

use super::Kubernetes;
use super::store::{key, parts};
use crate::turn::Turn;

impl Kubernetes {
    /// A controller warns about an object.
    pub(super) fn warn(
        &mut self,
        turn: &mut Turn<'_>,
        place: &str,
        by: (&str, &str),
        message: &str,
    ) {
        self.event(turn, place, ("Warning", by.0, by.1), message);
    }

    /// A controller says something about an object.
    pub(super) fn event(
        &mut self,
        turn: &mut Turn<'_>,
        place: &str,
        (kind, component, reason): (&str, &str, &str),
        message: &str,
    ) {
        let Some(object) = self.store.shared(place) else { return };
        let (_, _, namespace, name) = parts(place);
        let home = if namespace.is_empty() { "default" } else { namespace };
        let digest = hex::encode(Sha256::digest(format!("{place} {reason} {message}")));
        let event = format!("{name}.{}", &digest[..16]);
        let stamp = self.stamp();
        let at = key("", "events", home, &event);
        if self.store.get(&at).is_some() {
            self.store.change(&at, |event| {
                event["count"] = (event["count"].as_u64().unwrap_or(0) + 1).into();
                event["lastTimestamp"] = stamp.into();
            });
            return;
        }
        let metadata = &object["metadata"];
        let about = json!({
            "kind": object["kind"], "namespace": namespace, "name": name, "uid": metadata["uid"],
            "apiVersion": object["apiVersion"], "resourceVersion": metadata["resourceVersion"],
        });
        self.make(
            turn,
            ("", "events"),
            json!({
                "apiVersion": "v1", "kind": "Event", "metadata": {"name": event, "namespace": home},
                "involvedObject": about, "reason": reason, "message": message, "type": kind,
                "source": {"component": component}, "reportingComponent": component, "reportingInstance": "",
                "firstTimestamp": stamp, "lastTimestamp": stamp, "count": 1,
            }),
        );
    }
}
