//! Who may what: the words for those who may not, questions that a client asks about itself, and what of a pod this
//! cluster does not have.
//!
//! Whoever is of `system:masters` may everything; every other known one may look around and ask about himself, as the
//! roles that each real cluster begins with say. A review is posted like an object and kept nowhere.

use serde_json::{Value, json};

use super::kinds::Resource;
use super::refuse::No;
use super::route::{Query, Route};
use super::store::key;
use super::{Kubernetes, body, options};
use crate::turn::{HttpCall, HttpReply, Peer};

/// The group that may everything.
const MASTERS: &str = "system:masters";

/// The reviews, by group and plural, with their kinds.
const REVIEWS: &[(&str, &str, &str)] = &[
    ("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    ("authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    ("authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview"),
];

/// What everybody who is known may look at.
const OPEN: &[&str] = &["api", "apis", "healthz", "livez", "openapi", "readyz", "version"];

/// What only a kubelet could answer.
const OF_KUBELETS: &[&str] = &["attach", "exec", "log", "portforward"];

/// How protobuf of Kubernetes begins.
const PROTOBUF: &[u8] = b"k8s\0";

fn is_master(peer: &Peer) -> bool {
    peer.organizations.iter().any(|group| group == MASTERS)
}

/// Why somebody may not ask this; none if he may.
pub(super) fn forbidden(peer: &Peer, call: &HttpCall) -> Option<No> {
    if is_master(peer) {
        return None;
    }
    let user = &peer.common_name;
    let Some(route) = Route::parse(&call.path).filter(|route| !route.plural.is_empty()) else {
        let first = call.path.split('/').find(|part| !part.is_empty()).unwrap_or_default();
        let open = call.method == "GET" && OPEN.contains(&first);
        let verb = call.method.to_lowercase();
        let text = format!("forbidden: User \"{user}\" cannot {verb} path \"{}\"", call.path);
        return (!open).then(|| No::new(403, "Forbidden", text).with(json!({})));
    };
    if review(&route).is_some() && call.method == "POST" {
        return None;
    }
    let (named, watch) = (route.name.is_some(), Query::parse(&call.query).is("watch"));
    let verb = match (call.method.as_str(), named) {
        ("GET", _) if watch => "watch",
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", true) => "delete",
        _ => "deletecollection",
    };
    let Route { group, plural, namespace, name, subresource, .. } = &route;
    let full = if group.is_empty() { plural.clone() } else { format!("{plural}.{group}") };
    let object = name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let part = subresource.as_ref().map(|part| format!("/{part}")).unwrap_or_default();
    let scope = if namespace.is_empty() {
        "at the cluster scope".to_owned()
    } else {
        format!("in the namespace \"{namespace}\"")
    };
    let text = format!(
        "{full}{object} is forbidden: User \"{user}\" cannot {verb} resource \"{plural}{part}\" in API group \"{group}\" {scope}"
    );
    let mut details = json!({});
    for (field, value) in
        [("name", name.as_deref()), ("group", Some(group.as_str())), ("kind", Some(plural))]
    {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            details[field] = value.into();
        }
    }
    Some(No::new(403, "Forbidden", text).with(details))
}

fn review(route: &Route) -> Option<(&'static str, &'static str)> {
    let found = |(group, plural, _): &&(&str, &str, &str)| {
        (route.group.as_str(), route.plural.as_str()) == (*group, *plural)
    };
    REVIEWS.iter().find(found).map(|(group, _, kind)| (*group, *kind))
}

/// Answers a review; none if the call is none.
pub(super) fn answer(call: &HttpCall) -> Option<Result<HttpReply, No>> {
    let route = Route::parse(&call.path)?;
    let (group, kind) = review(&route)?;
    if route.version != "v1" || route.name.is_some() || !route.namespace.is_empty() {
        return Some(Err(No::no_such_path()));
    }
    if call.method != "POST" {
        let text = "the server does not allow this method on the requested resource";
        return Some(Err(No::new(405, "MethodNotAllowed", text)));
    }
    // What was asked is not read: the answer is the same for everything. kubectl writes it in protobuf.
    let asked = if call.body.starts_with(PROTOBUF) {
        Value::Null
    } else {
        let known = Resource { kind: kind.to_owned(), ..Resource::default() };
        match options::check_review(call).and_then(|()| body::object(call, &known)) {
            Ok(sent) => sent.object,
            Err(no) => return Some(Err(no)),
        }
    };
    let master = call.peer.as_ref().is_some_and(is_master);
    let status = match kind {
        "SelfSubjectAccessReview" => json!({"allowed": master}),
        "SelfSubjectRulesReview" => rules(master),
        _ => json!({"userInfo": user(call)}),
    };
    let mut answer = json!({"kind": kind, "apiVersion": format!("{group}/v1"), "metadata": {}});
    if kind != "SelfSubjectReview" {
        answer["spec"] = asked.get("spec").cloned().unwrap_or_else(|| json!({}));
    }
    answer["status"] = status;
    Some(Ok(HttpReply::json(201, &answer)))
}

fn rules(master: bool) -> Value {
    let all = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]);
    let paths = json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}]);
    let none = json!([]);
    json!({
        "resourceRules": if master { &all } else { &none },
        "nonResourceRules": if master { &paths } else { &none },
        "incomplete": false,
    })
}

/// Whom a client's certificate names.
fn user(call: &HttpCall) -> Value {
    let (name, mut groups) = call.peer.as_ref().map_or_else(Default::default, |peer| {
        (peer.common_name.clone(), peer.organizations.clone())
    });
    groups.push("system:authenticated".to_owned());
    json!({"username": name, "groups": groups})
}

/// Refuses protobuf, which is not read here.
pub(super) fn check_protobuf(call: &HttpCall) -> Result<(), No> {
    if call.body.starts_with(PROTOBUF) || options::media(call).ends_with("protobuf") {
        return Err(No::media("application/json, application/yaml"));
    }
    Ok(())
}

impl Kubernetes {
    /// Says what a kubelet would be needed for; none if the call asks for nothing of the kind.
    pub(super) fn of_kubelets(&self, resource: &Resource, route: &Route) -> Option<No> {
        let part = route.subresource.as_deref().filter(|part| OF_KUBELETS.contains(part))?;
        let name = route.name.as_deref().filter(|_| resource.kind == "Pod")?;
        let place = key(&resource.group, &resource.plural, &route.namespace, name);
        if self.store.get(&place).is_none() {
            return Some(No::not_found(resource, name));
        }
        let text = format!("no containers run in a rehearsal: pods \"{name}\" has no {part}");
        Some(No::new(501, "NotImplemented", text))
    }
}
