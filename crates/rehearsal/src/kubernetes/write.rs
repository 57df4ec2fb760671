//! The API server's writes: create, replace, patch, apply, delete, with validation, admission and dry runs.

use serde_json::{Value, json};

use super::body::Sent;
use super::complete::{
    content, nudged, uuid, with_all_but_status_of, with_status_of, without_string_data,
};
use super::custom;
use super::hooks::Review;
use super::kinds::{self, Resource};
use super::managed::{Managers, Writer};
use super::patch;
use super::refuse::No;
use super::review;
use super::route::{Query, Route};
use super::shown::Shown;
use super::store::key;
use super::typed;
use super::{Kubernetes, body, options, twice};
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
        let Sent { mut object, twice } = self.body()?;
        if let (None, Some(prefix)) =
            (object["metadata"]["name"].as_str(), object["metadata"]["generateName"].as_str())
        {
            object["metadata"]["name"] = format!("{prefix}{}", &uuid(turn)[..5]).into();
        }
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        if name.is_empty() {
            let why = "metadata.name: Required value: name or generateName is required";
            return Err(No::invalid(&self.resource, "", why));
        }
        if object["metadata"]["resourceVersion"].as_str().is_some_and(|known| !known.is_empty()) {
            return Err(No::new(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        let place = self.place(&name);
        self.check_namespace(cluster, &name)?;
        self.store(cluster, turn, &place, (object, &twice))
    }

    pub(super) fn replace(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        let Sent { object, twice } = self.body()?;
        let place = self.place(self.name());
        let live =
            cluster.store.get(&place).ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        let metadata = &object["metadata"];
        if let Some(uid) = metadata["uid"].as_str().filter(|uid| live["metadata"]["uid"] != *uid) {
            let there = live["metadata"]["uid"].as_str().unwrap_or_default();
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {there}"
            );
            return Err(No::conflict(&self.resource, self.name(), &why));
        }
        match metadata["resourceVersion"].as_str().filter(|known| !known.is_empty()) {
            None if self.resource.custom => {
                let why =
                    "metadata.resourceVersion: Invalid value: 0x0: must be specified for an update";
                return Err(No::invalid_plural(&self.resource, self.name(), why));
            }
            Some(known) if live["metadata"]["resourceVersion"] != known => {
                return Err(No::modified(&self.resource, self.name()));
            }
            _ => {}
        }
        self.store(cluster, turn, &place, (object, &twice))
    }

    pub(super) fn patch(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
    ) -> Result<HttpReply, No> {
        if self.is_apply() {
            return self.apply(cluster, turn);
        }
        let place = self.place(self.name());
        let live =
            cluster.store.get(&place).ok_or_else(|| No::not_found(&self.resource, self.name()))?;
        let mut object = live.clone();
        let Sent { object: wanted, mut twice } = body::patch(self.call)?;
        match options::media(self.call).as_str() {
            "application/merge-patch+json" => patch::merge_patch(&mut object, &wanted),
            "application/json-patch+json" => {
                patch::json_patch(&mut object, &wanted).map_err(|_| No::unprocessable())?;
            }
            _ => patch::strategic(&mut object, &wanted, &kinds::shape(&self.resource, None)),
        }
        let known = wanted["metadata"]["resourceVersion"].as_str();
        if known.is_some_and(|known| live["metadata"]["resourceVersion"] != known) {
            return Err(No::modified(&self.resource, self.name()));
        }
        if object["metadata"]["name"] != self.name() {
            return Err(No::bad(format!(
                "the name of the object ({}) does not match the name on the URL ({})",
                object["metadata"]["name"].as_str().unwrap_or_default(),
                self.name()
            )));
        }
        if self.query.get("fieldValidation") == "Strict" {
            let definition = cluster.definition(&self.resource);
            let unknown = self.undeclared(&mut object.clone(), definition.as_deref());
            twice.extend(unknown.iter().map(|field| format!("unknown field {field:?}")));
            if !twice.is_empty() {
                let media = options::media(self.call);
                let strategic = media == "application/strategic-merge-patch+json";
                let shown = if strategic { patch::shown(&wanted) } else { object.to_string() };
                return Err(No::strict_patch(&shown, &twice));
            }
        }
        self.store(cluster, turn, &place, (object, &twice))
    }

    /// Server-side apply.
    fn apply(&self, cluster: &mut Kubernetes, turn: &mut Turn<'_>) -> Result<HttpReply, No> {
        let Sent { object, twice } = self.body()?;
        let mut config = without_string_data(object);
        if !config["metadata"]["managedFields"].is_null() {
            return Err(No::bad("metadata.managedFields must be nil"));
        }
        typed::without_nulls(&mut config);
        let place = self.place(self.name());
        let live = cluster.store.shared(&place);
        let known = config["metadata"]["resourceVersion"].as_str();
        match (&live, known) {
            (Some(live), Some(known)) if live["metadata"]["resourceVersion"] != known => {
                return Err(No::modified(&self.resource, self.name()));
            }
            (None, _) if self.is_status() => {
                return Err(No::not_found(&self.resource, self.name()));
            }
            (None, _) => self.check_namespace(cluster, self.name())?,
            _ => {}
        }
        let empty = json!({"metadata": {}});
        let live = live.as_deref().unwrap_or(&empty);
        let definition = cluster.definition(&self.resource);
        if let Some(field) = self.undeclared(&mut config.clone(), definition.as_deref()).first() {
            let why = format!(".{field}: field not declared in schema");
            return Err(No::untyped(&config, &why));
        }
        let wrong = match definition.as_deref() {
            Some(definition) => {
                custom::mistyped(&config, kinds::schema(&self.resource, definition))
            }
            None => kinds::mistyped(&self.resource, &config),
        };
        if let Some(why) = wrong {
            return Err(No::untyped(&config, &why));
        }
        let shape = kinds::shape(&self.resource, definition.as_deref());
        let by = (&self.writer(cluster.stamp()), self.query.is("force"));
        let object = Managers::read(live).apply(live, &config, by, &shape)?;
        if self.query.get("fieldValidation") == "Strict"
            && let Some(twice) = twice.first()
        {
            let why = "error strict decoding YAML: error converting YAML to JSON";
            return Err(No::bad(format!("{why}: {twice}")));
        }
        self.store(cluster, turn, &place, (object, &twice))
    }

    /// Fills in what the server gives, asks the webhooks, and stores unless it is a dry run.
    fn store(
        &self,
        cluster: &mut Kubernetes,
        turn: &mut Turn<'_>,
        place: &str,
        (mut object, twice): (Value, &[String]),
    ) -> Result<HttpReply, No> {
        let there = cluster.store.shared(place);
        let creates = self.call.method == "POST";
        let before = there.as_deref().filter(|_| !creates);
        let counter = cluster.counter;
        let definition = cluster.definition(&self.resource);
        let unknown = self.undeclared(&mut object, definition.as_deref());
        let unknown = unknown.iter().map(|field| format!("unknown field {field:?}"));
        let faults: Vec<String> = twice.iter().cloned().chain(unknown).collect();
        if !faults.is_empty() && self.query.get("fieldValidation") == "Strict" {
            return Err(No::strict(&self.resource, &faults));
        }
        if let Some(definition) = definition.as_deref() {
            custom::fill(&mut object, kinds::schema(&self.resource, definition));
        }
        let object = match (self.is_status(), self.resource.status) {
            (true, _) => with_all_but_status_of(before, object),
            (false, true) => with_status_of(before, object),
            (false, false) => object,
        };
        let home = if self.resource.namespaced { self.route.namespace.as_str() } else { "" };
        let mut object = cluster.completed(turn, (&self.resource, home), before, object);
        if !self.is_apply() {
            self.note_update(cluster, before, &mut object);
        }
        super::admission::check(&self.resource, before, &object)?;
        if let Some(definition) = definition.as_deref() {
            custom::judge(&object, kinds::schema(&self.resource, definition)).map_err(|why| {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                No::invalid(&self.resource, name, &why)
            })?;
        }
        if !self.is_status() {
            let operation = if before.is_some() { "UPDATE" } else { "CREATE" };
            self.ask_webhooks(cluster, operation, &object)?;
            if self.resource.kind == "Pod" && operation == "CREATE" {
                let name = object["metadata"]["name"].as_str().unwrap_or_default();
                cluster
                    .secure(&self.route.namespace, &object["spec"])
                    .map_err(|why| No::forbidden(&self.resource, name, &why))?;
            }
        }
        if creates && there.is_some() {
            // Only what is right in itself can be there already.
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            return Err(No::exists(&self.resource, name));
        }
        let code = if before.is_none() { 201 } else { 200 };
        let warned = |mut reply: HttpReply| {
            let quiet = self.query.get("fieldValidation") == "Ignore";
            let warnings = faults.iter().flat_map(|fault| twice::warnings(fault));
            for fault in warnings.filter(|_| !quiet) {
                reply.headers.push(("warning".to_owned(), format!("299 - {fault:?}")));
            }
            reply
        };
        if self.query.dry_run() {
            cluster.counter = counter;
            if let Some(before) = before {
                object["metadata"]["resourceVersion"] =
                    before["metadata"]["resourceVersion"].clone();
            }
            return Ok(warned(HttpReply::json(code, &object)));
        }
        let same_spec =
            before.is_some_and(|b| content(b, &self.resource) == content(&object, &self.resource));
        let stored = cluster.store.put(place, object);
        let leaving = !stored["metadata"]["deletionTimestamp"].is_null();
        let held = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
        let free = !held(&stored["metadata"]["finalizers"]) && !self.is_waiting(&stored);
        if leaving && free {
            cluster.remove(turn, place);
        } else if !same_spec || nudged(before, &stored) {
            cluster.touched(turn, place);
        }
        let version = self.resource.api_version();
        Ok(warned(HttpReply::json(code, &Shown::alone(&stored, &version)).changed()))
    }

    /// Asks the webhooks, from the API server that was called.
    pub(super) fn ask_webhooks(
        &self,
        cluster: &Kubernetes,
        operation: &'static str,
        object: &Value,
    ) -> Result<(), No> {
        cluster.admit(&Review {
            resource: &self.resource,
            operation,
            object,
            dry_run: self.query.dry_run(),
            server: &self.call.host,
        })
    }

    /// Whether something other than finalizers of its metadata holds an object that is being deleted.
    fn is_waiting(&self, stored: &Value) -> bool {
        match self.resource.kind.as_str() {
            "Namespace" => stored["spec"]["finalizers"].as_array().is_some_and(|f| !f.is_empty()),
            "Pod" => stored["metadata"]["deletionGracePeriodSeconds"] != 0,
            _ => false,
        }
    }

    /// Takes out the fields that the kind does not have, and tells their paths.
    fn undeclared(&self, object: &mut Value, definition: Option<&Value>) -> Vec<String> {
        match definition {
            Some(definition) => custom::prune(object, kinds::schema(&self.resource, definition)),
            None => kinds::prune(&self.resource, object),
        }
    }

    /// New objects need a namespace that is there and stays.
    fn check_namespace(&self, cluster: &Kubernetes, name: &str) -> Result<(), No> {
        if !self.resource.namespaced {
            return Ok(());
        }
        let namespace = &self.route.namespace;
        let found = cluster.store.get(&key("", "namespaces", "", namespace)).ok_or_else(|| {
            let mut no = No::new(404, "NotFound", format!("namespaces \"{namespace}\" not found"));
            no.details = Some(Box::new(json!({"name": namespace, "kind": "namespaces"})));
            no
        })?;
        if found["status"]["phase"] == "Terminating" {
            let why = format!(
                "unable to create new content in namespace {namespace} because it is being terminated"
            );
            let mut no = No::forbidden(&self.resource, name, &why);
            if let Some(details) = &mut no.details {
                details["causes"] = json!([{
                    "reason": "NamespaceTerminating", "field": "metadata.namespace",
                    "message": format!("namespace {namespace} is being terminated"),
                }]);
            }
            return Err(no);
        }
        Ok(())
    }

    /// The body as an object that agrees with the path.
    fn body(&self) -> Result<Sent, No> {
        review::check_protobuf(self.call)?;
        let Sent { mut object, twice } = if self.is_apply() {
            body::applied(self.call)?
        } else {
            body::object(self.call, &self.resource)?
        };
        if !self.resource.custom && !self.is_apply() {
            // What it is need not be said where the path says it.
            for (field, own) in
                [("kind", self.resource.kind.clone()), ("apiVersion", self.resource.api_version())]
            {
                if object[field].as_str().is_none_or(str::is_empty) {
                    object[field] = own.into();
                }
            }
        }
        let kind = object["kind"].as_str().unwrap_or_default();
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let other = kind != self.resource.kind || version != self.resource.api_version();
        if other && self.is_apply() {
            let slash = if version.contains('/') { "" } else { "/" };
            return Err(No::bad(format!("invalid object type: {slash}{version}, Kind={kind}")));
        }
        if other {
            return Err(No::bad(format!(
                "the API version in the data ({version}, Kind={kind}) does not match the expected API version ({}, Kind={})",
                self.resource.api_version(),
                self.resource.kind
            )));
        }
        if let Some(name) = &self.route.name
            && object["metadata"]["name"] != name.as_str()
        {
            return Err(No::bad(format!(
                "the name of the object ({}) does not match the name on the URL ({name})",
                object["metadata"]["name"].as_str().unwrap_or_default()
            )));
        }
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or(&self.route.namespace);
        if self.resource.namespaced && namespace != self.route.namespace {
            return Err(No::bad(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        Ok(Sent { object, twice })
    }

    pub(super) fn name(&self) -> &str {
        self.route.name.as_deref().unwrap_or_default()
    }

    fn is_status(&self) -> bool {
        self.route.subresource.as_deref() == Some("status")
    }

    pub(super) fn place(&self, name: &str) -> String {
        key(&self.resource.group, &self.resource.plural, &self.route.namespace, name)
    }

    fn is_apply(&self) -> bool {
        self.call.method == "PATCH" && options::media(self.call) == APPLY
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
