//! The API server's writes: create, replace, patch, apply, delete, with defaults, admission and dry runs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::Kubernetes;
use super::kinds::{self, Resource};
use super::managed::{Managers, Writer};
use super::patch;
use super::refuse::No;
use super::route::{Query, Route};
use super::shown::Shown;
use super::store::key;
use super::typed;
use crate::turn::{HttpCall, HttpReply, Turn};

/// The media type of server-side apply.
const APPLY: &str = "application/apply-patch+yaml";

/// A call that writes.
pub(super) struct Write<'a> {
    pub(super) resource: Resource,
    pub(super) route: Route,
    pub(super) query: Query,
    pub(super) call: &'a HttpCall,
}

impl Write<'_> {
    pub(super) fn create(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let object = self.body()?;
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(No::invalid(
                &self.resource,
                "",
                "metadata.name: Required value: name or generateName is required",
            ));
        }
        let place = self.place(&name);
        if cluster.store.get(&place).is_some() {
            return Err(No::exists(&self.resource, &name));
        }
        self.store(cluster, turn, &place, object)
    }

    pub(super) fn replace(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let object = self.body()?;
        let place = self.place(self.name());
        let live =
            cluster.store.get(&place).ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        let known = object["metadata"]["resourceVersion"].as_str();
        if known.is_some_and(|known| live["metadata"]["resourceVersion"] != known) {
            return Err(No::modified(&self.resource, self.name()));
        }
        self.store(cluster, turn, &place, object)
    }

    pub(super) fn patch(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let media = self.call.header("content-type").unwrap_or_default();
        let media = media.split(';').next().unwrap_or_default().trim();
        if media == APPLY {
            return self.apply(cluster, turn);
        }
        let place = self.place(self.name());
        let live =
            cluster.store.get(&place).ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        let mut object = live.clone();
        let wanted = self.parsed()?;
        match media {
            "application/merge-patch+json" | "application/strategic-merge-patch+json" => {
                patch::merge_patch(&mut object, &wanted);
            }
            "application/json-patch+json" => patch::json_patch(&mut object, &wanted)
                .map_err(|why| No::new(422, "Invalid", why))?,
            other => {
                let message = format!(
                    "the body of the request was in an unknown format - accepted media types include: \
                    application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml (not {other})"
                );
                return Err(No::new(415, "UnsupportedMediaType", message));
            }
        }
        self.store(cluster, turn, &place, object)
    }

    /// Server-side apply.
    fn apply(&self, cluster: &mut Kubernetes, turn: &mut Turn<'_>) -> Result<HttpReply, No> {
        let manager = self.query.get("fieldManager");
        if manager.is_empty() {
            return Err(No::bad(
                "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
            ));
        }
        let mut config = without_string_data(self.body()?);
        if !config["metadata"]["managedFields"].is_null() {
            return Err(No::bad("metadata.managedFields must be nil"));
        }
        typed::without_nulls(&mut config);
        let place = self.place(self.name());
        let live = cluster.store.shared(&place);
        if let (Some(live), Some(known)) = (&live, config["metadata"]["resourceVersion"].as_str())
            && live["metadata"]["resourceVersion"] != known
        {
            return Err(No::modified(&self.resource, self.name()));
        }
        if self.is_status() && live.is_none() {
            return Err(No::not_found(&self.resource, self.name()));
        }
        let empty = json!({"metadata": {}});
        let live = live.as_deref().unwrap_or(&empty);
        let definition = cluster.definition(&self.resource);
        let shape = kinds::shape(&self.resource, definition.as_deref());
        let by = (&self.writer(cluster.stamp()), self.query.is("force"));
        let object = Managers::read(live).apply(live, &config, by, &shape)?;
        self.store(cluster, turn, &place, object)
    }

    pub(super) fn delete(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let place = self.place(self.name());
        let live =
            cluster.store.get(&place).ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        let uid = live["metadata"]["uid"].clone();
        if !self.query.dry_run() {
            cluster.delete(turn, &place);
        }
        let reply = HttpReply::json(
            200,
            &json!({
                "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
                "details": {"name": self.name(), "group": self.resource.group, "kind": self.resource.plural, "uid": uid},
            }),
        );
        Ok(if self.query.dry_run() { reply } else { reply.changed() })
    }

    /// Fills in what the server gives, asks the webhooks, and stores unless it is a dry run.
    fn store(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
        place: &str,
        object: Value,
    ) -> Result<HttpReply, No> {
        self.check_namespace(cluster)?;
        let before = cluster.store.shared(place);
        let before = before.as_deref();
        let object = if self.is_status() {
            with_all_but_status_of(before, object)
        } else {
            with_status_of(before, object)
        };
        let mut object = cluster.completed(turn, &self.resource, before, object);
        if !self.is_apply() {
            self.note_update(cluster, before, &mut object);
        }
        super::admission::check(&self.resource, &object)?;
        if !self.is_status() {
            let operation = if before.is_some() { "UPDATE" } else { "CREATE" };
            cluster.admit(&self.resource, operation, &object)?;
        }
        let code = if before.is_none() { 201 } else { 200 };
        if self.query.dry_run() {
            return Ok(HttpReply::json(code, &object));
        }
        let same_spec = before.is_some_and(|b| content(b) == content(&object));
        let stored = cluster.store.put(place, object);
        let leaving = !stored["metadata"]["deletionTimestamp"].is_null();
        if leaving && stored["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty) {
            cluster.remove(turn, place);
        } else if !same_spec || nudged(before, &stored) {
            cluster.touched(turn, place);
        }
        let version = self.resource.api_version();
        Ok(HttpReply::json(code, &Shown::alone(&stored, &version)).changed())
    }

    fn check_namespace(&self, cluster: &Kubernetes) -> Result<(), No> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let namespace = &self.route.namespace;
        let found = cluster.store.get(&key("", "namespaces", "", namespace)).ok_or_else(|| {
            No::new(404, "NotFound", format!("namespaces \"{namespace}\" not found"))
        })?;
        if found["status"]["phase"] == "Terminating" {
            let message = format!(
                "{} \"{}\" is forbidden: unable to create new content in namespace {namespace} because it is being terminated",
                self.resource.full_name(),
                self.name()
            );
            return Err(No::new(403, "Forbidden", message));
        }
        Ok(())
    }

    /// The body as an object that agrees with the path.
    fn body(&self) -> Result<Value, No> {
        let mut object = self.parsed()?;
        if !object.is_object() {
            return Err(No::bad("the object provided is unrecognized (must be of type Object)"));
        }
        let kind = object["kind"].as_str().unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        if kind != self.resource.kind || version != self.resource.api_version() {
            return Err(No::bad(format!(
                "the API version in the data ({version}, Kind={kind}) does not match the expected API version ({}, Kind={})",
                self.resource.api_version(),
                self.resource.kind
            )));
        }
        if let Some(name) = &self.route.name
            && object["metadata"]["name"] != name.as_str()
        {
            return Err(No::bad("the name of the object does not match the name on the URL"));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&self.route.namespace);
        if self.resource.namespaced && namespace != self.route.namespace {
            return Err(No::bad(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if self.resource.namespaced {
            object["metadata"]["namespace"] = self.route.namespace.clone().into();
        }
        Ok(object)
    }

    fn parsed(&self) -> Result<Value, No> {
        serde_json::from_slice(&self.call.body)
            .or_else(|_| yaml_serde::from_slice(&self.call.body))
            .map_err(|_| No::bad("error decoding the body: it is neither JSON nor YAML"))
    }

    fn name(&self) -> &str {
        self.route.name.as_deref().unwrap_or_default()
    }

    fn is_status(&self) -> bool {
        self.route.subresource.as_deref() == Some("status")
    }

    fn place(&self, name: &str) -> String {
        key(&self.resource.group, &self.resource.plural, &self.route.namespace, name)
    }

    fn is_apply(&self) -> bool {
        self.call.method == "PATCH"
            && self.call.header("content-type").is_some_and(|m| m.starts_with(APPLY))
    }

    /// Who writes, and how, for `managedFields`.
    fn writer(&self, time: String) -> Writer {
        let manager = match self.query.get("fieldManager") {
            "" => self
                .call
                .header("user-agent")
                .and_then(|a| a.split('/').next())
                .filter(|name| !name.is_empty())
                .unwrap_or("unknown"),
            named => named,
        };
        Writer {
            manager: manager.to_owned(),
            apply: self.is_apply(),
            api_version: self.resource.api_version(),
            subresource: self.route.subresource.clone().unwrap_or_default(),
            time,
        }
    }

    /// Notes whose the fields are that a write other than apply changed. Who sends managers of its own means them.
    fn note_update(&self, cluster: &Kubernetes, before: Option<&Value>, object: &mut Value) {
        let given = object["metadata"]["managedFields"].as_array().is_some_and(|m| !m.is_empty());
        let managers = if given {
            Managers::read(object)
        } else {
            before.map(Managers::read).unwrap_or_default()
        };
        let definition = cluster.definition(&self.resource);
        let shape = kinds::shape(&self.resource, definition.as_deref());
        let empty = json!({"metadata": {}});
        managers.update(before.unwrap_or(&empty), object, &self.writer(cluster.stamp()), &shape);
    }
}

impl Kubernetes {
    /// Makes an object whole: identity, times, generation and defaults.
    fn completed(
        &mut self,
        turn: &mut Turn<'_>,
        resource: &Resource,
        before: Option<&Value>,
        object: Value,
    ) -> Value {
        let mut object = without_string_data(object);
        let null = Value::Null;
        let old = before.unwrap_or(&null);
        let fresh = [
            ("uid", old["metadata"]["uid"].as_str().map_or_else(|| uuid(turn), str::to_owned)),
            (
                "creationTimestamp",
                old["metadata"]["creationTimestamp"]
                    .as_str()
                    .map_or_else(|| self.stamp(), str::to_owned),
            ),
        ];
        for (field, value) in fresh {
            object["metadata"][field] = value.into();
        }
        self.defaults(resource, &mut object);
        if resource.has_generation() {
            let last = old["metadata"]["generation"].as_i64().unwrap_or(0);
            let changed = before.is_none_or(|b| content(b) != content(&object));
            object["metadata"]["generation"] = (last + i64::from(changed)).into();
        }
        object
    }

    /// What the server fills in for kinds that others read.
    fn defaults(&mut self, resource: &Resource, object: &mut Value) {
        match resource.kind.as_str() {
            "Namespace" if object["status"].is_null() => {
                object["status"]["phase"] = "Active".into();
                let name = object["metadata"]["name"].clone();
                object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
            }
            "Deployment" | "StatefulSet" if object["spec"]["replicas"].is_null() => {
                object["spec"]["replicas"] = 1.into();
            }
            "PersistentVolumeClaim" if object["status"].is_null() => {
                object["status"]["phase"] = "Pending".into();
            }
            "Service"
                if object["spec"]["clusterIP"].is_null()
                    && object["spec"]["type"] != "ExternalName" =>
            {
                self.counter += 1;
                let (high, low) = (self.counter / 250 % 250, self.counter % 250 + 2);
                object["spec"]["clusterIP"] = format!("10.96.{high}.{low}").into();
                if object["spec"]["type"].is_null() {
                    object["spec"]["type"] = "ClusterIP".into();
                }
            }
            _ => {}
        }
    }
}

/// Everything of an object but what the server and the controllers keep on it.
fn content(object: &Value) -> Vec<(&String, &Value)> {
    let own = |name: &str| !matches!(name, "metadata" | "status" | "apiVersion");
    object
        .as_object()
        .map_or_else(Vec::new, |map| map.iter().filter(|(name, _)| own(name)).collect())
}

/// A write of the object itself leaves its status alone.
fn with_status_of(before: Option<&Value>, mut object: Value) -> Value {
    match before.map(|before| &before["status"]).filter(|status| !status.is_null()) {
        Some(status) => object["status"] = status.clone(),
        None => {
            object.as_object_mut().map(|map| map.shift_remove("status"));
        }
    }
    object
}

/// A write of the status leaves all else alone, but for who owns what.
fn with_all_but_status_of(before: Option<&Value>, mut object: Value) -> Value {
    let Some(before) = before else { return object };
    let mut whole = before.clone();
    whole["status"] = object["status"].take();
    whole["metadata"]["managedFields"] = object["metadata"]["managedFields"].take();
    whole
}

/// Whether somebody asked Flux to look again.
fn nudged(before: Option<&Value>, after: &Value) -> bool {
    let asked = |object: &Value| {
        object["metadata"]["annotations"]["reconcile.fluxcd.io/requestedAt"].clone()
    };
    before.is_some_and(|before| asked(before) != asked(after))
}

/// A Secret keeps `stringData` encoded, as `data`.
fn without_string_data(mut object: Value) -> Value {
    if object["kind"] == "Secret"
        && let Some(Value::Object(plain)) =
            object.as_object_mut().and_then(|map| map.shift_remove("stringData"))
    {
        for (name, value) in plain {
            let text = value.as_str().unwrap_or_default();
            object["data"][name] = STANDARD.encode(text).into();
        }
    }
    object
}

/// A random UUID.
pub(super) fn uuid(turn: &mut Turn<'_>) -> String {
    let mut bytes = [0_u8; 16];
    turn.dice.fill(&mut bytes);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::encode(bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}
