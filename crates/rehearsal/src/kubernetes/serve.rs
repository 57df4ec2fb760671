//! The API server's verbs: which call asks for what, and the answers to those that only read.

use std::sync::Arc;

use serde_json::{Value, json};

use super::kinds::{self, Resource};
use super::list::Form;
use super::options::Answers;
use super::refuse::No;
use super::route::{Query, Route};
use super::shown::Shown;
use super::store::key;
use super::table::Table;
use super::write::Write;
use super::{Kubernetes, discovery, options, review};
use crate::turn::{HttpBody, HttpCall, HttpReply, Turn};

/// The version that the server says it is before it knows of a control plane.
const VERSION: &str = "v1.36.3";

impl Kubernetes {
    /// Answers while etcd has no quorum: the server lives, and can neither read nor write.
    pub(crate) fn without_etcd(call: &HttpCall) -> HttpReply {
        if call.peer.is_none() {
            return No::new(401, "Unauthorized", "Unauthorized").reply();
        }
        let check = match call.path.trim_end_matches('/') {
            "/readyz" => "readyz",
            "/livez" => "livez",
            "/healthz" => "healthz",
            _ => return No::new(500, "", "etcdserver: request timed out").reply(),
        };
        let mut reply = HttpReply::empty(500);
        reply.headers.push(("content-type".into(), "text/plain; charset=utf-8".into()));
        let text = format!("[+]ping ok\n[-]etcd failed: reason withheld\n{check} check failed\n");
        reply.body = HttpBody::Whole(text.into());
        reply
    }

    /// Answers a call of an administrator.
    pub(super) fn serve(&mut self, turn: &mut Turn<'_>, call: &HttpCall) -> Result<HttpReply, No> {
        let get = call.method == "GET";
        let accept = call.header("accept").unwrap_or_default();
        match call.path.trim_end_matches('/') {
            "/readyz" | "/livez" | "/healthz" if get => {
                let mut reply = HttpReply::empty(200);
                reply.headers.push(("content-type".into(), "text/plain; charset=utf-8".into()));
                reply.body = HttpBody::Whole("ok".into());
                return Ok(reply);
            }
            "/version" if get => {
                options::check_accept(accept, Answers::Version)?;
                return Ok(HttpReply::json(200, &self.version()));
            }
            "/version" => return Err(No::not_allowed().with(json!({}))),
            _ => {}
        }
        let asked = discovery::answer(&self.store, &call.path, accept, &call.host);
        if let Some(reply) = asked.filter(|_| get) {
            options::check_accept(accept, Answers::Any)?;
            return Ok(reply);
        }
        if let Some(review) = review::answer(call) {
            return review;
        }
        let route = Route::parse(&call.path).ok_or_else(No::no_such_group)?;
        if route.plural.is_empty() {
            return discovery::kinds(&self.store, &route.group, &route.version)
                .filter(|_| get)
                .map(|list| HttpReply::json(200, &list))
                .ok_or_else(No::no_such_group);
        }
        if !kinds::is_served(&self.store, &route.group, &route.version) {
            return Err(No::no_such_group());
        }
        let resource = kinds::find(&self.store, &route.group, &route.version, &route.plural)
            .ok_or_else(No::no_such_path)?;
        if resource.namespaced && route.name.is_some() && route.namespace.is_empty() {
            return Err(No::no_such_path());
        }
        if resource.custom && !resource.namespaced && !route.namespace.is_empty() {
            return Err(No::no_such_group());
        }
        if let Some(no) = self.of_kubelets(&resource, &route) {
            return Err(no);
        }
        if route.subresource.as_deref() == Some("scale") && resource.has_size() {
            return self.scale(turn, (&resource, &route), call);
        }
        let there = match route.subresource.as_deref() {
            None => true,
            Some("status") => resource.status,
            Some("finalize") => resource.kind == "Namespace",
            Some(_) => false,
        };
        if !there {
            return Err(No::no_such_path());
        }
        let query = Query::parse(&call.query);
        let lists = route.name.is_none() || query.is("watch");
        options::check_accept(
            accept,
            match (resource.custom, get && route.name.is_none()) {
                (true, _) => Answers::Any,
                (false, true) => Answers::List,
                (false, false) => Answers::Objects,
            },
        )?;
        options::check_body(call, &resource)?;
        options::check(call, &query, lists)?;
        let table = Table::wanted(self, accept, &query, &resource).filter(|_| get);
        let form = match &table {
            Some(table) => Form::Rows(table.clone()),
            None if accept.contains("as=PartialObjectMetadataList") => Form::Metadata,
            None => Form::Whole,
        };
        match (call.method.as_str(), &route.name) {
            ("GET", Some(name)) if !query.is("watch") => self.get(&resource, &route, name, table),
            ("GET", _) => self.list(turn, (&resource, &route), &query, form),
            ("POST", None) => Write { resource, route, query, call }.create(self, turn),
            ("PUT", Some(_)) => Write { resource, route, query, call }.replace(self, turn),
            ("PATCH", Some(_)) => Write { resource, route, query, call }.patch(self, turn),
            ("DELETE", Some(_)) => Write { resource, route, query, call }.delete(self, turn),
            ("DELETE", None) if !resource.namespaced || !route.namespace.is_empty() => {
                Write { resource, route, query, call }.delete_all(self, turn)
            }
            _ => Err(No::not_allowed()),
        }
    }

    /// The version of the API servers: that of the control planes.
    fn version(&self) -> Value {
        let known = self.nodes.values().filter(|node| node.control_plane);
        let known = known.map(|node| node.version.as_str()).find(|version| !version.is_empty());
        let version = known.unwrap_or(VERSION);
        let mut numbers = version.trim_start_matches('v').split('.');
        let mut next = || numbers.next().unwrap_or_default();
        json!({
            "major": next(), "minor": next(), "gitVersion": version, "gitTreeState": "clean",
            "platform": "linux/amd64",
        })
    }

    /// The definition of a kind that is not built in.
    pub(super) fn definition(&self, resource: &Resource) -> Option<Arc<Value>> {
        let name = format!("{}.{}", resource.plural, resource.group);
        let place = key("apiextensions.k8s.io", "customresourcedefinitions", "", &name);
        resource.custom.then(|| self.store.shared(&place)).flatten()
    }

    fn get(
        &self,
        resource: &Resource,
        route: &Route,
        name: &str,
        table: Option<Table>,
    ) -> Result<HttpReply, No> {
        let place = key(&resource.group, &resource.plural, &route.namespace, name);
        let object = self.store.get(&place).ok_or_else(|| No::not_found(resource, name))?;
        if let Some(table) = table {
            return Ok(HttpReply::json(200, &table.alone(self, object)));
        }
        Ok(HttpReply::json(200, &Shown::alone(object, &resource.api_version())))
    }
}
