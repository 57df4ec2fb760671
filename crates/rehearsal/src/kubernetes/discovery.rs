//! Discovery: which groups, versions and kinds the server has, in the forms that clients ask for.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::kinds::{Resource, all, join, of};
use super::store::Store;
use crate::turn::HttpReply;

/// What a client accepts that wants all groups at once.
const AGGREGATED: &str = "as=APIGroupDiscoveryList";
/// The media type of that answer.
const AGGREGATED_TYPE: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const VERBS: [&str; 8] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
const APART: [&str; 3] = ["get", "patch", "update"];

/// Answers a question about groups and kinds; none if the path is no such question.
pub(super) fn answer(store: &Store, path: &str, accept: &str, host: &str) -> Option<HttpReply> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let reply = |value: &Value| Some(HttpReply::json(200, value));
    match parts.as_slice() {
        ["api" | "apis"] if accept.contains(AGGREGATED) => {
            let mut reply = HttpReply::json(200, &aggregated(store, parts[0] == "api"));
            reply.headers = vec![("content-type".to_owned(), AGGREGATED_TYPE.to_owned())];
            Some(reply)
        }
        ["api"] => reply(&json!({
            "kind": "APIVersions", "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": format!("{host}:6443")}],
        })),
        ["apis"] => {
            let groups: Vec<Value> =
                versions(store).iter().map(|(name, all)| group(name, all)).collect();
            reply(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }
        ["apis", name] => {
            let all = versions(store);
            let mut found = group(name, all.get(*name)?);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            reply(&found)
        }
        ["openapi", "v3"] => reply(&openapi_index(store)),
        ["openapi", "v3", "api", version] => reply(&openapi(store, "", version)),
        ["openapi", "v3", "apis", name, version] => reply(&openapi(store, name, version)),
        _ => None,
    }
}

/// The answer about one group and version; none if there is no such group.
pub(super) fn kinds(store: &Store, group: &str, version: &str) -> Option<Value> {
    let mut resources: Vec<Value> = of(store, group, version).iter().flat_map(listed).collect();
    resources.sort_by_key(|entry| entry["name"].as_str().unwrap_or_default().to_owned());
    (!resources.is_empty()).then(|| {
        json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": join(group, version), "resources": resources})
    })
}

/// Whether `kubectl get all` means a kind.
fn is_of_all(kind: &Resource) -> bool {
    let named = |all: &[&str]| all.contains(&kind.plural.as_str());
    match kind.group.as_str() {
        "" => named(&["pods", "replicationcontrollers", "services"]),
        "apps" => named(&["daemonsets", "deployments", "replicasets", "statefulsets"]),
        "batch" => named(&["cronjobs", "jobs"]),
        "autoscaling" => named(&["horizontalpodautoscalers"]),
        _ => false,
    }
}

/// A kind in a list, and what is written apart of it.
fn listed(kind: &Resource) -> Vec<Value> {
    let mut entry = json!({
        "name": kind.plural, "singularName": kind.singular, "namespaced": kind.namespaced,
        "kind": kind.kind, "verbs": VERBS,
    });
    if !kind.short.is_empty() {
        entry["shortNames"] = kind.short.clone().into();
    }
    if is_of_all(kind) {
        entry["categories"] = json!(["all"]);
    }
    let mut all = vec![entry];
    if kind.status {
        all.push(json!({
            "name": format!("{}/status", kind.plural), "singularName": "", "namespaced": kind.namespaced,
            "kind": kind.kind, "verbs": APART,
        }));
    }
    all
}

/// The groups with their versions, those built in first.
fn versions(store: &Store) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for kind in all(store).into_iter().filter(|kind| !kind.group.is_empty()) {
        let versions = groups.entry(kind.group).or_default();
        if !versions.contains(&kind.version) {
            versions.push(kind.version);
        }
    }
    groups
}

fn group(name: &str, versions: &[String]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": join(name, version), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions[0]})
}

/// All groups with all their kinds, in one answer.
fn aggregated(store: &Store, core: bool) -> Value {
    let mut items: BTreeMap<String, BTreeMap<String, Vec<Value>>> = BTreeMap::new();
    for kind in all(store).iter().filter(|kind| kind.group.is_empty() == core) {
        let response = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let scope = if kind.namespaced { "Namespaced" } else { "Cluster" };
        let mut entry = json!({
            "resource": kind.plural, "responseKind": response, "scope": scope,
            "singularResource": kind.singular, "verbs": VERBS,
        });
        if !kind.short.is_empty() {
            entry["shortNames"] = kind.short.clone().into();
        }
        if is_of_all(kind) {
            entry["categories"] = json!(["all"]);
        }
        if kind.status {
            entry["subresources"] =
                json!([{"subresource": "status", "responseKind": response, "verbs": APART}]);
        }
        let group = items.entry(kind.group.clone()).or_default();
        group.entry(kind.version.clone()).or_default().push(entry);
    }
    let items: Vec<Value> = items
        .into_iter()
        .map(|(name, versions)| {
            let versions: Vec<Value> = versions
                .into_iter()
                .map(|(version, resources)| {
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if name.is_empty() { json!({}) } else { json!({"name": name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

/// Where the description of each group and version is.
fn openapi_index(store: &Store) -> Value {
    let mut paths = json!({"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1"}});
    for (name, versions) in versions(store) {
        for version in versions {
            let path = format!("apis/{name}/{version}");
            paths[path.as_str()] = json!({"serverRelativeURL": format!("/openapi/v3/{path}")});
        }
    }
    json!({"paths": paths})
}

/// The description of a group and version: which kinds can be patched how. What they look like it does not say.
fn openapi(store: &Store, group: &str, version: &str) -> Value {
    let mut paths = json!({});
    let root = if group.is_empty() { "/api".to_owned() } else { format!("/apis/{group}") };
    let query = |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string"}});
    for kind in all(store).iter().filter(|k| k.group == group && k.version == version) {
        let home = if kind.namespaced { "/namespaces/{namespace}" } else { "" };
        let path = format!("{root}/{version}{home}/{}/{{name}}", kind.plural);
        paths[path.as_str()] = json!({"patch": {
            "parameters": [query("dryRun"), query("fieldManager"), query("fieldValidation"), query("force")],
            "responses": {"200": {"description": "OK"}},
            "x-kubernetes-action": "patch",
            "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind.kind},
        }});
    }
    json!({
        "openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "unversioned"}, "paths": paths,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(path: &str, accept: &str) -> Value {
        let reply = answer(&Store::default(), path, accept, "10.0.0.1").unwrap();
        let crate::turn::HttpBody::Whole(bytes) = reply.body else { panic!("no body") };
        serde_json::from_slice(&bytes).unwrap()
    }

    #[test]
    fn one_group_is_told_alone() {
        insta::assert_snapshot!(
            ask("/apis/apps", ""),
            @r#"{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"},"kind":"APIGroup","apiVersion":"v1"}"#
        );
        assert_eq!(answer(&Store::default(), "/apis/nothing", "", "").map(|r| r.status), None);
    }

    #[test]
    fn all_kinds_come_in_one_answer_for_who_can_read_it() {
        let accept =
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
        let all = ask("/apis", accept);
        let apps =
            all["items"].as_array().unwrap().iter().find(|g| g["metadata"]["name"] == "apps");
        let kinds = apps.unwrap()["versions"][0]["resources"].as_array().unwrap();
        let deployments = kinds.iter().find(|k| k["resource"] == "deployments").unwrap();
        assert_eq!(deployments["shortNames"], json!(["deploy"]));
        assert_eq!(deployments["categories"], json!(["all"]));
        assert_eq!(deployments["subresources"][0]["subresource"], "status");
        assert_eq!(ask("/api", accept)["items"][0]["versions"][0]["version"], "v1");
        assert_eq!(ask("/apis", "application/json")["kind"], "APIGroupList");
    }

    #[test]
    fn what_can_be_validated_is_described() {
        let index = ask("/openapi/v3", "");
        assert!(index["paths"]["apis/apps/v1"].is_object());
        let apps = ask("/openapi/v3/apis/apps/v1", "");
        let patch =
            &apps["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Deployment");
    }
}
