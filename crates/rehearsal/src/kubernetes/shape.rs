//! What the server knows of the shape of a field: which lists are merged by which keys, which maps are one piece.

use serde_json::Value;

/// How the entries of a list are told apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ListKind<'a> {
    /// Not at all: the list is one piece.
    Atomic,
    /// Each value is an entry of its own.
    Set,
    /// By the values of these keys.
    Keyed(Vec<&'a str>),
}

/// The shape of one field.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape<'a> {
    /// Of a kind that is built in.
    BuiltIn {
        /// The kind of the whole object.
        kind: &'a str,
        /// The name of the field that this one is in.
        parent: &'a str,
        /// Its own name.
        name: &'a str,
        /// Whether it is an entry of the list of that name.
        entry: bool,
    },
    /// Of a definition, by its schema.
    Custom {
        /// What the definition says of it; nothing if it says nothing.
        schema: &'a Value,
        /// Whether it is the object itself, whose metadata are the server's.
        root: bool,
    },
}

/// Lists of built-in kinds that are merged by keys, and the fields that they are in (empty: any).
const KEYED: &[(&str, &str, &[&str])] = &[
    ("addresses", "status", &["type"]),
    ("claims", "resources", &["name"]),
    ("conditions", "status", &["type"]),
    ("containers", "spec", &["name"]),
    ("drivers", "spec", &["name"]),
    ("env", "", &["name"]),
    ("ephemeralContainers", "spec", &["name"]),
    ("hostAliases", "spec", &["ip"]),
    ("imagePullSecrets", "spec", &["name"]),
    ("initContainers", "spec", &["name"]),
    ("matchConditions", "", &["name"]),
    ("ownerReferences", "metadata", &["uid"]),
    ("podIPs", "status", &["ip"]),
    ("ports", "containers", &["containerPort", "protocol"]),
    ("ports", "initContainers", &["containerPort", "protocol"]),
    ("resourceClaims", "spec", &["name"]),
    ("schedulingGates", "spec", &["name"]),
    ("secrets", "", &["name"]),
    ("topologySpreadConstraints", "spec", &["topologyKey", "whenUnsatisfiable"]),
    ("volumeDevices", "", &["devicePath"]),
    ("volumeMounts", "", &["mountPath"]),
    ("volumes", "spec", &["name"]),
    ("webhooks", "", &["name"]),
];

/// Lists of built-in kinds whose values are entries, and the fields that they are in.
const SETS: &[(&str, &str)] =
    &[("finalizers", "metadata"), ("podCIDRs", "spec"), ("volumeLifecycleModes", "spec")];

/// Maps of built-in kinds that are one piece: selectors and references.
const PIECES: &[&str] = &[
    "configMapKeyRef",
    "fieldRef",
    "labelSelector",
    "namespaceSelector",
    "nodeSelector",
    "objectSelector",
    "podSelector",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resourceFieldRef",
    "roleRef",
    "scopeSelector",
    "secretKeyRef",
    "secretRef",
    "selector",
    "targetRef",
];

/// Lists of built-in kinds whose entries are one piece each.
const ENTRIES_OF_ONE_PIECE: &[&str] = &["imagePullSecrets", "ownerReferences", "secrets"];

/// Fields of built-in kinds that are there in every object, be they empty, so that nobody adds them.
const ALWAYS_THERE: &[&str] = &[
    "containers",
    "jobTemplate",
    "metadata",
    "spec",
    "status",
    "strategy",
    "template",
    "updateStrategy",
];

/// What is known of a field that no schema tells of.
const UNKNOWN: &Value = &Value::Null;

impl<'a> Shape<'a> {
    /// An object of a built-in kind.
    pub(super) fn built_in(kind: &'a str) -> Self {
        Self::BuiltIn { kind, parent: "", name: "", entry: false }
    }

    /// An object of a kind that a definition brings.
    pub(super) fn custom(schema: &'a Value) -> Self {
        Self::Custom { schema, root: true }
    }

    fn below(schema: &'a Value) -> Self {
        Self::Custom { schema, root: false }
    }

    /// A field of this one. The metadata of every kind are of one shape.
    pub(super) fn field(&self, field: &'a str) -> Self {
        match *self {
            Self::BuiltIn { kind, name, .. } => {
                Self::BuiltIn { kind, parent: name, name: field, entry: false }
            }
            Self::Custom { root: true, .. } if field == "metadata" => {
                Self::BuiltIn { kind: "", parent: "", name: field, entry: false }
            }
            Self::Custom { schema, .. } => {
                let own = schema["properties"].get(field);
                let any = own.or_else(|| schema.get("additionalProperties"));
                Self::below(any.filter(|s| s.is_object()).unwrap_or(UNKNOWN))
            }
        }
    }

    /// An entry of this list.
    pub(super) fn entry(&self) -> Self {
        match *self {
            Self::BuiltIn { kind, parent, name, .. } => {
                Self::BuiltIn { kind, parent, name, entry: true }
            }
            Self::Custom { schema, .. } => Self::below(schema.get("items").unwrap_or(UNKNOWN)),
        }
    }

    /// How this list is merged.
    pub(super) fn list(&self) -> ListKind<'a> {
        match *self {
            Self::BuiltIn { kind: "Service", parent: "spec", name: "ports", .. } => {
                ListKind::Keyed(vec!["port", "protocol"])
            }
            Self::BuiltIn { kind: "Job", parent: "status", name: "conditions", .. } => {
                ListKind::Atomic
            }
            Self::BuiltIn { parent, name, .. } => {
                let same = |n: &str, p: &str| n == name && (p.is_empty() || p == parent);
                if SETS.iter().any(|(n, p)| same(n, p)) {
                    return ListKind::Set;
                }
                let row = KEYED.iter().find(|(n, p, _)| same(n, p));
                row.map_or(ListKind::Atomic, |(_, _, keys)| ListKind::Keyed(keys.to_vec()))
            }
            Self::Custom { schema, .. } => match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => ListKind::Set,
                Some("map") => ListKind::Keyed(
                    schema["x-kubernetes-list-map-keys"]
                        .as_array()
                        .map_or(&[][..], Vec::as_slice)
                        .iter()
                        .filter_map(Value::as_str)
                        .collect(),
                ),
                _ => ListKind::Atomic,
            },
        }
    }

    /// Whether this map is one piece.
    pub(super) fn is_piece(&self) -> bool {
        match *self {
            Self::BuiltIn { name, entry: true, .. } => ENTRIES_OF_ONE_PIECE.contains(&name),
            Self::BuiltIn { name, .. } => PIECES.contains(&name),
            Self::Custom { schema, .. } => schema["x-kubernetes-map-type"] == "atomic",
        }
    }

    /// Whether this field counts as there before anybody sets it.
    pub(super) fn is_always_there(&self) -> bool {
        match *self {
            Self::BuiltIn { name, entry, .. } => {
                !entry && (name.is_empty() || ALWAYS_THERE.contains(&name))
            }
            Self::Custom { root, .. } => root,
        }
    }

    /// Whether a field of this map is named by a schema, not by whoever writes it.
    pub(super) fn names(&self, field: &str) -> bool {
        match *self {
            Self::BuiltIn { .. } => true,
            Self::Custom { schema, root } => {
                (root && matches!(field, "apiVersion" | "kind" | "metadata"))
                    || schema["properties"].get(field).is_some()
            }
        }
    }

    /// What a key is where an entry does not say it.
    pub(super) fn default_of(&self, key: &str) -> Option<Value> {
        match *self {
            Self::BuiltIn { name: "ports", .. } if key == "protocol" => Some("TCP".into()),
            Self::BuiltIn { .. } => None,
            Self::Custom { schema, .. } => {
                schema["items"]["properties"][key].get("default").cloned()
            }
        }
    }
}
