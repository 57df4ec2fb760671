//! The size of a workload, apart from the rest of it: what `kubectl scale` reads and writes.

use serde_json::{Value, json};

use super::Kubernetes;
use super::kinds::Resource;
use super::refuse::No;
use super::route::{Query, Route};
use super::store::key;
use super::write::Write;
use crate::turn::{HttpCall, HttpReply, Turn};

/// The kinds that have a size.
const SIZED: &[&str] = &["Deployment", "ReplicaSet", "StatefulSet"];

impl Resource {
    /// Whether objects of this kind have a size of their own.
    pub(super) fn has_size(&self) -> bool {
        self.group == "apps" && SIZED.contains(&self.kind.as_str())
    }
}

impl Kubernetes {
    /// Reads or writes the size of an object.
    pub(super) fn scale(
        &mut self,
        turn: &mut Turn<'_>,
        (resource, route): (&Resource, &Route),
        call: &HttpCall,
    ) -> Result<HttpReply, No> {
        let name = route.name.as_deref().unwrap_or_default();
        let place = key(&resource.group, &resource.plural, &route.namespace, name);
        let shown = |cluster: &Self| {
            let object = cluster.store.get(&place).ok_or_else(|| No::not_found(resource, name))?;
            Ok(HttpReply::json(200, &scale(object)))
        };
        let wanted = match call.method.as_str() {
            "GET" => return shown(self),
            "PATCH" | "PUT" => serde_json::from_slice::<Value>(&call.body).unwrap_or_default(),
            _ => {
                let text = "the server does not allow this method on the requested resource";
                return Err(No::new(405, "MethodNotAllowed", text));
            }
        };
        let live = self.store.get(&place).ok_or_else(|| No::not_found(resource, name))?;
        let replaced = call.method == "PUT";
        if replaced && wanted["metadata"]["name"] != name {
            return Err(No::bad(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                wanted["metadata"]["name"].as_str().unwrap_or_default()
            )));
        }
        // Who replaces it and names no number wants none; who patches it leaves the number.
        let kept = if replaced { 0 } else { live["spec"]["replicas"].as_i64().unwrap_or(1) };
        let replicas = wanted["spec"]["replicas"].as_i64().unwrap_or(kept);
        if replicas < 0 {
            let text = format!(
                "Scale.autoscaling \"{name}\" is invalid: spec.replicas: Invalid value: {replicas}: must be greater than or equal to 0"
            );
            return Err(No::new(422, "Invalid", text));
        }
        let body = json!({"spec": {"replicas": replicas}}).to_string().into_bytes();
        let mut inner = HttpCall { method: "PATCH".to_owned(), body, ..call.clone() };
        inner.headers.retain(|(name, _)| name != "content-type");
        inner.headers.push(("content-type".into(), "application/merge-patch+json".into()));
        let write = Write {
            resource: resource.clone(),
            route: Route { subresource: None, ..route.clone() },
            query: Query::parse(&call.query),
            call: &inner,
        };
        let written = write.patch(self, turn)?;
        Ok(HttpReply { body: shown(self)?.body, ..written })
    }
}

fn scale(object: &Value) -> Value {
    let mut metadata = json!({});
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(field) {
            metadata[field] = value.clone();
        }
    }
    let labels = object["spec"]["selector"]["matchLabels"].as_object();
    let labels = labels.into_iter().flatten();
    let mut selector: Vec<String> = labels
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()))
        .collect();
    selector.sort();
    let wanted = object["spec"]["replicas"].as_u64().unwrap_or(1);
    json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": if wanted == 0 { json!({}) } else { json!({"replicas": wanted}) },
        "status": {
            "replicas": object["status"]["replicas"].as_u64().unwrap_or(0),
            "selector": selector.join(","),
        },
    })
}
