//! What a Kustomization does to the cluster: objects are tried, applied, pruned, and their health looked at.

use serde_json::{Value, json};

use super::super::Kubernetes;
use super::super::kinds::{self, Resource, condition};
use super::super::store::key;
use super::Held;
use crate::turn::{HttpCall, Turn};

/// Labels on what a Kustomization applies.
const NAME: &str = "kustomize.toolkit.fluxcd.io/name";
const NAMESPACE: &str = "kustomize.toolkit.fluxcd.io/namespace";

impl Kubernetes {
    /// Applies the objects of a Kustomization and removes what it no longer has; gives its inventory.
    pub(super) fn put_all(
        &mut self,
        turn: &mut Turn<'_>,
        unit: &Value,
        mut objects: Vec<Value>,
    ) -> Result<Vec<Value>, Held> {
        for object in &mut objects {
            object["metadata"]["labels"][NAME] = unit["metadata"]["name"].clone();
            object["metadata"]["labels"][NAMESPACE] = unit["metadata"]["namespace"].clone();
            if unit["spec"]["targetNamespace"].is_string() {
                object["metadata"]["namespace"] = unit["spec"]["targetNamespace"].clone();
            }
        }
        let early = |object: &Value| {
            matches!(object["kind"].as_str(), Some("Namespace" | "CustomResourceDefinition"))
        };
        objects.sort_by_key(|object| !early(object));
        let mut inventory = Vec::new();
        for object in objects.iter().filter(|object| early(object)) {
            self.put(turn, object, false)?;
        }
        for object in &objects {
            inventory.push(self.put(turn, object, true)?);
        }
        for object in objects.iter().filter(|object| !early(object)) {
            self.put(turn, object, false)?;
        }
        if unit["spec"]["prune"] == true {
            let before = unit["status"]["inventory"]["entries"].as_array();
            for gone in before.into_iter().flatten().filter(|entry| !inventory.contains(entry)) {
                self.prune(turn, gone);
            }
        }
        Ok(inventory)
    }

    /// Applies one object, or only tries it; gives its entry in the inventory.
    fn put(&mut self, turn: &mut Turn<'_>, object: &Value, dry: bool) -> Result<Value, Held> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
        let name = text(&object["metadata"]["name"]);
        let failed = |namespace: &str, why: String| {
            let place =
                if namespace.is_empty() { name.clone() } else { format!("{namespace}/{name}") };
            ("ReconciliationFailed", format!("{kind}/{place} dry-run failed: {why}"))
        };
        let known = kinds::all(&self.store)
            .into_iter()
            .find(|resource| resource.kind == kind && resource.api_version() == version);
        let resource = known.ok_or_else(|| {
            let namespace = text(&object["metadata"]["namespace"]);
            failed(&namespace, format!("no matches for kind \"{kind}\" in version \"{version}\""))
        })?;
        let namespace = match object["metadata"]["namespace"].as_str() {
            _ if !resource.namespaced => String::new(),
            Some(named) => named.to_owned(),
            None => "default".to_owned(),
        };
        let dry = if dry { "&dryRun=All" } else { "" };
        let call = HttpCall {
            method: "PATCH".to_owned(),
            host: "kubernetes.default".to_owned(),
            path: path(&resource, &namespace, &name),
            query: format!("fieldManager=kustomize-controller&force=true{dry}"),
            headers: vec![("content-type".to_owned(), "application/apply-patch+yaml".to_owned())],
            body: object.to_string().into_bytes(),
            peer: None,
        };
        self.serve(turn, &call).map_err(|no| failed(&namespace, no.message))?;
        let id = format!("{namespace}_{name}_{}_{kind}", resource.group);
        Ok(json!({"id": id, "v": resource.version}))
    }

    /// Removes what an entry of an inventory names; a Kustomization takes along what it made.
    fn prune(&mut self, turn: &mut Turn<'_>, entry: &Value) {
        let Some((resource, namespace, name)) = self.found(entry) else { return };
        let place = key(&resource.group, &resource.plural, &namespace, &name);
        let Some(there) = self.store.shared(&place) else { return };
        let inner = there["status"]["inventory"]["entries"].as_array();
        for entry in inner.into_iter().flatten().filter(|_| there["spec"]["prune"] == true) {
            self.prune(turn, entry);
        }
        let call = HttpCall {
            method: "DELETE".to_owned(),
            host: "kubernetes.default".to_owned(),
            path: path(&resource, &namespace, &name),
            query: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            peer: None,
        };
        self.serve(turn, &call).ok();
    }

    /// The first thing of an inventory that does not yet do what it should, in the words of a health check.
    pub(super) fn unhealthy(&self, inventory: &[Value]) -> Option<String> {
        inventory.iter().find_map(|entry| {
            let (resource, namespace, name) = self.found(entry)?;
            let place = key(&resource.group, &resource.plural, &namespace, &name);
            let there = self.store.get(&place)?;
            let well = match resource.kind.as_str() {
                "Deployment" => condition(there, "Available"),
                "DaemonSet" | "StatefulSet" => self.is_up(&namespace, &resource.plural, &name),
                "Kustomization" | "HelmRelease" => condition(there, "Ready"),
                _ => true,
            };
            let what = format!("{}/{namespace}/{name} status: 'InProgress'", resource.kind);
            (!well).then_some(what)
        })
    }

    fn found(&self, entry: &Value) -> Option<(Resource, String, String)> {
        let mut parts = entry["id"].as_str()?.split('_');
        let (namespace, name) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (group, kind) = (parts.next()?, parts.next()?);
        let resource = kinds::all(&self.store)
            .into_iter()
            .find(|resource| resource.kind == kind && resource.group == group)?;
        Some((resource, namespace, name))
    }
}

fn path(resource: &Resource, namespace: &str, name: &str) -> String {
    let root = if resource.group.is_empty() { "/api" } else { "/apis" };
    let within =
        if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
    format!("{root}/{}/{within}{}/{name}", resource.api_version(), resource.plural)
}
