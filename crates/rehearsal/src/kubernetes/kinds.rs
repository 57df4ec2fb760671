//! The kinds that the API server knows: those built in, and those that CustomResourceDefinitions bring.

use serde_json::Value;

use super::shape::Shape;
use super::store::{Store, key};
use crate::fidelity;

/// One kind of object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Resource {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    pub(super) kind: String,
    pub(super) namespaced: bool,
    pub(super) custom: bool,
    /// Whether its status is written apart.
    pub(super) status: bool,
    pub(super) singular: String,
    /// The names that people type.
    pub(super) short: Vec<String>,
}

impl Resource {
    pub(super) fn api_version(&self) -> String {
        join(&self.group, &self.version)
    }

    /// Its name in the words of the server: `deployments.apps`, `pods`.
    pub(super) fn full_name(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether the server counts changes of the specification.
    pub(super) fn has_generation(&self) -> bool {
        !self.group.is_empty() && !NO_GENERATION.contains(&self.group.as_str())
            || self.kind == "Pod"
    }
}

/// Groups whose objects carry no generation.
const NO_GENERATION: &[&str] = &[
    "apiregistration.k8s.io",
    "coordination.k8s.io",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
];

/// Built-in kinds whose status is written apart.
const WITH_STATUS: &[&str] = &[
    "APIService",
    "CronJob",
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "Ingress",
    "Job",
    "Namespace",
    "Node",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodDisruptionBudget",
    "ReplicaSet",
    "ResourceQuota",
    "Service",
    "StatefulSet",
];

/// The names of built-in kinds that people type.
const SHORT: &[(&str, &str)] = &[
    ("configmaps", "cm"),
    ("cronjobs", "cj"),
    ("customresourcedefinitions", "crd"),
    ("daemonsets", "ds"),
    ("deployments", "deploy"),
    ("events", "ev"),
    ("horizontalpodautoscalers", "hpa"),
    ("ingresses", "ing"),
    ("namespaces", "ns"),
    ("networkpolicies", "netpol"),
    ("nodes", "no"),
    ("persistentvolumeclaims", "pvc"),
    ("persistentvolumes", "pv"),
    ("poddisruptionbudgets", "pdb"),
    ("pods", "po"),
    ("priorityclasses", "pc"),
    ("replicasets", "rs"),
    ("resourcequotas", "quota"),
    ("serviceaccounts", "sa"),
    ("services", "svc"),
    ("statefulsets", "sts"),
    ("storageclasses", "sc"),
];

/// The fields of built-in kinds that have others than `spec` and `status`.
const FIELDS: &[(&str, &[&str])] = &[
    ("ClusterRole", &["rules", "aggregationRule"]),
    ("ClusterRoleBinding", &["subjects", "roleRef"]),
    ("ConfigMap", &["data", "binaryData", "immutable"]),
    ("EndpointSlice", &["addressType", "endpoints", "ports"]),
    ("MutatingWebhookConfiguration", &["webhooks"]),
    ("PriorityClass", &["value", "globalDefault", "description", "preemptionPolicy"]),
    ("Role", &["rules"]),
    ("RoleBinding", &["subjects", "roleRef"]),
    ("Secret", &["data", "stringData", "type", "immutable"]),
    ("ServiceAccount", &["secrets", "imagePullSecrets", "automountServiceAccountToken"]),
    (
        "StorageClass",
        &[
            "provisioner",
            "parameters",
            "reclaimPolicy",
            "mountOptions",
            "allowVolumeExpansion",
            "volumeBindingMode",
            "allowedTopologies",
        ],
    ),
    ("ValidatingWebhookConfiguration", &["webhooks"]),
];

/// Group, version, plural, kind, whether it lives in namespaces.
type BuiltIn = (&'static str, &'static str, &'static str, &'static str, bool);

/// The kinds that the server has from the beginning.
const BUILT_IN: &[BuiltIn] = &[
    ("", "v1", "configmaps", "ConfigMap", true),
    ("", "v1", "events", "Event", true),
    ("", "v1", "namespaces", "Namespace", false),
    ("", "v1", "nodes", "Node", false),
    ("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", true),
    ("", "v1", "persistentvolumes", "PersistentVolume", false),
    ("", "v1", "pods", "Pod", true),
    ("", "v1", "resourcequotas", "ResourceQuota", true),
    ("", "v1", "secrets", "Secret", true),
    ("", "v1", "serviceaccounts", "ServiceAccount", true),
    ("", "v1", "services", "Service", true),
    (
        "admissionregistration.k8s.io",
        "v1",
        "mutatingwebhookconfigurations",
        "MutatingWebhookConfiguration",
        false,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
        false,
    ),
    ("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false),
    ("apiregistration.k8s.io", "v1", "apiservices", "APIService", false),
    ("apps", "v1", "daemonsets", "DaemonSet", true),
    ("apps", "v1", "deployments", "Deployment", true),
    ("apps", "v1", "replicasets", "ReplicaSet", true),
    ("apps", "v1", "statefulsets", "StatefulSet", true),
    ("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", true),
    ("batch", "v1", "cronjobs", "CronJob", true),
    ("batch", "v1", "jobs", "Job", true),
    ("coordination.k8s.io", "v1", "leases", "Lease", true),
    ("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", true),
    ("networking.k8s.io", "v1", "ingressclasses", "IngressClass", false),
    ("networking.k8s.io", "v1", "ingresses", "Ingress", true),
    ("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy", true),
    ("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", true),
    ("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", false),
    ("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false),
    ("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding", true),
    ("rbac.authorization.k8s.io", "v1", "roles", "Role", true),
    ("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", false),
    ("storage.k8s.io", "v1", "csidrivers", "CSIDriver", false),
    ("storage.k8s.io", "v1", "storageclasses", "StorageClass", false),
];

/// The kinds that are built in, as the page about fidelity tells them.
pub(crate) fn known_kinds() -> Vec<fidelity::Kind> {
    let known = |row: &_| {
        let resource = built_in(row);
        let status = resource.status.then_some("status");
        let size = resource.has_size().then_some("scale");
        fidelity::Kind {
            version: resource.api_version(),
            parts: status.into_iter().chain(size).collect(),
            name: resource.kind,
        }
    };
    BUILT_IN.iter().map(known).collect()
}

/// Every kind, those built in first. Definitions count once they are established.
pub(super) fn all(store: &Store) -> Vec<Resource> {
    let defined = store
        .all("apiextensions.k8s.io", "customresourcedefinitions")
        .flat_map(|(_, definition)| from_definition(definition));
    BUILT_IN.iter().map(built_in).chain(defined).collect()
}

/// The kinds of one group and version; the definitions of other groups are not read for it.
pub(super) fn of(store: &Store, group: &str, version: &str) -> Vec<Resource> {
    let own = BUILT_IN.iter().filter(|row| (row.0, row.1) == (group, version)).map(built_in);
    let defined = store
        .all("apiextensions.k8s.io", "customresourcedefinitions")
        .filter(|(_, definition)| definition["spec"]["group"] == group)
        .flat_map(|(_, definition)| from_definition(definition))
        .filter(|kind| kind.version == version);
    own.chain(defined).collect()
}

/// The kind that people mean by a name: `Deployment`, `deployments`, `deployments.apps`, `deploy`.
pub(super) fn called(store: &Store, name: &str) -> Option<Resource> {
    let name = name.to_lowercase();
    all(store).into_iter().find(|resource| {
        resource.kind.to_lowercase() == name
            || resource.plural == name
            || resource.full_name() == name
            || resource.singular == name
            || resource.short.contains(&name)
    })
}

/// The kind at a group, version and plural. A definition is called by plural and group.
pub(super) fn find(store: &Store, group: &str, version: &str, plural: &str) -> Option<Resource> {
    if let Some(row) = BUILT_IN.iter().find(|row| (row.0, row.1, row.2) == (group, version, plural))
    {
        return Some(built_in(row));
    }
    let place =
        key("apiextensions.k8s.io", "customresourcedefinitions", "", &format!("{plural}.{group}"));
    from_definition(store.get(&place)?).into_iter().find(|kind| kind.version == version)
}

fn built_in(&(group, version, plural, kind, namespaced): &BuiltIn) -> Resource {
    Resource {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: plural.to_owned(),
        kind: kind.to_owned(),
        namespaced,
        custom: false,
        status: WITH_STATUS.contains(&kind),
        singular: kind.to_lowercase(),
        short: SHORT
            .iter()
            .find(|(plural_name, _)| *plural_name == plural)
            .map_or_else(Vec::new, |(_, short)| vec![(*short).to_owned()]),
    }
}

/// The shape of the objects of a kind; a kind that is not built in has its definition.
pub(super) fn shape<'a>(resource: &'a Resource, definition: Option<&'a Value>) -> Shape<'a> {
    definition.map_or_else(
        || Shape::built_in(&resource.kind),
        |definition| Shape::custom(schema(resource, definition)),
    )
}

/// What a definition says of the objects of its kind; nothing if it says nothing.
pub(super) fn schema<'a>(resource: &Resource, definition: &'a Value) -> &'a Value {
    let versions = definition["spec"]["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let version = versions.iter().find(|version| version["name"] == resource.version.as_str());
    version.and_then(|version| version["schema"].get("openAPIV3Schema")).unwrap_or(&Value::Null)
}

/// Takes out the fields that a built-in kind does not have, and tells their names.
pub(super) fn prune(resource: &Resource, object: &mut Value) -> Vec<String> {
    if resource.kind == "Event" {
        return Vec::new();
    }
    let own = FIELDS.iter().find(|(kind, _)| *kind == resource.kind);
    let own = own.map_or(&["spec", "status"][..], |(_, fields)| fields);
    let known =
        |name: &str| own.contains(&name) || matches!(name, "apiVersion" | "kind" | "metadata");
    let Some(map) = object.as_object_mut() else { return Vec::new() };
    let unknown: Vec<String> = map.keys().filter(|name| !known(name)).cloned().collect();
    map.retain(|name, _| known(name));
    unknown
}

/// A field of an applied object of a built-in kind that is of another type, in the server's words.
pub(super) fn mistyped(resource: &Resource, object: &Value) -> Option<String> {
    if !matches!(resource.kind.as_str(), "ConfigMap" | "Secret") {
        return None;
    }
    let mut data = object["data"].as_object()?.iter();
    let (name, value) = data.find(|(_, value)| !value.is_string())?;
    Some(super::custom::not_text(&format!(".data.{name}"), value))
}

/// Whether a group and version are served.
pub(super) fn is_served(store: &Store, group: &str, version: &str) -> bool {
    BUILT_IN.iter().any(|row| (row.0, row.1) == (group, version))
        || store
            .all("apiextensions.k8s.io", "customresourcedefinitions")
            .filter(|(_, definition)| definition["spec"]["group"] == group)
            .flat_map(|(_, definition)| from_definition(definition))
            .any(|kind| kind.version == version)
}

/// Whether a condition of an object is `True`.
pub(super) fn condition(object: &Value, kind: &str) -> bool {
    object["status"]["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|c| c["type"] == kind && c["status"] == "True")
    })
}

/// The kinds of a definition, one for each version; none before it is established.
fn from_definition(definition: &Value) -> Vec<Resource> {
    if !condition(definition, "Established") {
        return Vec::new();
    }
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    versions
        .iter()
        .filter(|version| version["served"].as_bool().unwrap_or(true))
        .map(|version| Resource {
            group: text(&spec["group"]),
            version: text(&version["name"]),
            plural: text(&spec["names"]["plural"]),
            kind: text(&spec["names"]["kind"]),
            namespaced: spec["scope"] == "Namespaced",
            custom: true,
            status: version["subresources"].get("status").is_some(),
            singular: spec["names"]["singular"]
                .as_str()
                .map_or_else(|| text(&spec["names"]["kind"]).to_lowercase(), str::to_owned),
            short: spec["names"]["shortNames"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
        })
        .collect()
}

/// `apps/v1`, or `v1` for the core group.
pub(super) fn join(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}
