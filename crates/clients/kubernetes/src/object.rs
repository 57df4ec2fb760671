//! A Kubernetes object as plain data, and the few questions that are asked of every kind.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Names one object: what it is, where, and how it is called.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ObjectId {
    /// Group and version as in manifests: `v1`, `apps/v1`.
    pub api_version: String,
    /// The kind: `Deployment`.
    pub kind: String,
    /// The namespace; none for what belongs to the whole cluster.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
}

impl ObjectId {
    /// An object in a namespace.
    #[must_use]
    pub fn namespaced(api_version: &str, kind: &str, namespace: &str, name: &str) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::cluster(api_version, kind, name) }
    }

    /// An object that belongs to the whole cluster.
    #[must_use]
    pub fn cluster(api_version: &str, kind: &str, name: &str) -> Self {
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: None,
            name: name.to_owned(),
        }
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind, self.name),
            None => write!(f, "{} {}", self.kind, self.name),
        }
    }
}

/// An object: a JSON mapping that is known to say what it is and how it is called.
///
/// `Debug` shows the name only, because an object may hold a secret.
#[derive(Clone, PartialEq)]
pub struct Object(Value);

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({})", self.id())
    }
}

impl Object {
    /// Takes a JSON value as an object.
    ///
    /// # Errors
    /// Says in words what is missing: `apiVersion`, `kind` or `metadata.name`.
    pub fn new(value: Value) -> Result<Self, String> {
        if !value.is_object() {
            return Err("it is not a mapping".to_owned());
        }
        let filled =
            |path: &str| at(&value, path).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
        for (path, words) in
            [("/apiVersion", "apiVersion"), ("/kind", "kind"), ("/metadata/name", "metadata.name")]
        {
            if !filled(path) {
                return Err(format!("it has no `{words}`"));
            }
        }
        Ok(Self(value))
    }

    /// The whole of it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.0
    }

    /// The whole of it, to be taken apart.
    #[must_use]
    pub fn into_value(self) -> Value {
        self.0
    }

    /// What is at a JSON pointer such as `/status/phase`.
    #[must_use]
    pub fn at(&self, pointer: &str) -> Option<&Value> {
        at(&self.0, pointer)
    }

    /// The text at a JSON pointer.
    #[must_use]
    pub fn text(&self, pointer: &str) -> Option<&str> {
        self.at(pointer).and_then(Value::as_str)
    }

    /// The number at a JSON pointer; 0 if there is none, as Kubernetes leaves zeros out.
    #[must_use]
    pub fn number(&self, pointer: &str) -> i64 {
        self.at(pointer).and_then(Value::as_i64).unwrap_or(0)
    }

    /// The entries of the list at a JSON pointer; none if there is no list.
    #[must_use]
    pub fn entries(&self, pointer: &str) -> &[Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// Group and version.
    #[must_use]
    pub fn api_version(&self) -> &str {
        self.0.get("apiVersion").and_then(Value::as_str).unwrap_or_default()
    }

    /// The API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        group_of(self.api_version())
    }

    /// The kind.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.0.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata("name").unwrap_or_default()
    }

    /// The namespace, if it says one.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.metadata("namespace")
    }

    /// A text of its metadata. What every judge asks of every object is not looked up by pointer.
    fn metadata(&self, name: &str) -> Option<&str> {
        self.0.get("metadata")?.get(name)?.as_str()
    }

    /// A label's value.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.entry("labels", key)
    }

    /// An annotation's value.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.entry("annotations", key)
    }

    /// The status of a condition (`True`, `False`, `Unknown`) with its reason and message.
    #[must_use]
    pub fn condition(&self, kind: &str) -> Option<Condition<'_>> {
        self.entries("/status/conditions")
            .iter()
            .find(|c| c.get("type").and_then(Value::as_str) == Some(kind))
            .map(Condition)
    }

    /// Its name as data.
    #[must_use]
    pub fn id(&self) -> ObjectId {
        ObjectId {
            api_version: self.api_version().to_owned(),
            kind: self.kind().to_owned(),
            namespace: self.namespace().map(str::to_owned),
            name: self.name().to_owned(),
        }
    }

    /// Sets a label or an annotation.
    pub(crate) fn put(&mut self, part: &str, key: &str, text: &str) {
        let Some(metadata) = self.0.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        let entries = metadata.entry(part).or_insert_with(|| Value::Object(serde_json::Map::new()));
        if entries.is_null() {
            *entries = Value::Object(serde_json::Map::new());
        }
        if let Some(map) = entries.as_object_mut() {
            map.insert(key.to_owned(), Value::String(text.to_owned()));
        }
    }

    /// Drops what is large and no judge asks for: who holds which field, what was applied last, pod templates,
    /// containers, schemas.
    pub(crate) fn lighten(&mut self) {
        let heavy: &[&str] = match self.kind() {
            "DaemonSet" | "Deployment" | "Job" | "ReplicaSet" | "StatefulSet" => &["template"],
            "Pod" => &["containers", "initContainers", "volumes"],
            "CustomResourceDefinition" => &["versions"],
            _ => &[],
        };
        if let Some(spec) = self.0.get_mut("spec").and_then(Value::as_object_mut) {
            for name in heavy {
                spec.remove(*name);
            }
        }
        let Some(metadata) = self.0.get_mut("metadata").and_then(Value::as_object_mut) else {
            return;
        };
        metadata.remove("managedFields");
        if let Some(notes) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            notes.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }

    fn entry(&self, part: &str, key: &str) -> Option<&str> {
        self.0.get("metadata")?.get(part)?.get(key)?.as_str()
    }
}

/// One entry of `status.conditions`.
#[derive(Debug, Clone, Copy)]
pub struct Condition<'a>(&'a Value);

impl Condition<'_> {
    /// `True`, `False` or `Unknown`.
    #[must_use]
    pub fn status(&self) -> &str {
        self.field("status")
    }

    /// Whether it is `True`.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status() == "True"
    }

    /// The reason: one word of the controller.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.field("reason")
    }

    /// The generation it was written for, if it says so.
    #[must_use]
    pub fn observed_generation(&self) -> Option<i64> {
        self.0.get("observedGeneration").and_then(Value::as_i64)
    }

    /// Reason and message as one line; Flux ends messages with a line break, and Kustomize writes several lines.
    #[must_use]
    pub fn words(&self) -> String {
        let lines: Vec<&str> = self.field("message").lines().map(str::trim).collect();
        match (self.field("reason"), lines.join(" ").trim()) {
            ("", "") => format!("{} is {}", self.field("type"), self.status()),
            (reason, "") => reason.to_owned(),
            ("", message) => message.to_owned(),
            (reason, message) => format!("{reason}: {message}"),
        }
    }

    fn field(&self, key: &str) -> &str {
        self.0.get(key).and_then(Value::as_str).unwrap_or_default()
    }
}

/// What is at a JSON pointer. Almost none has an escaped name in it, and then nothing has to be rewritten on the way.
fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return value.pointer(pointer);
    }
    pointer.split('/').skip(1).try_fold(value, |value, name| match value {
        Value::Object(map) => map.get(name),
        Value::Array(list) => list.get(name.parse::<usize>().ok()?),
        _ => None,
    })
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_must_say_what_it_is() {
        let cases = [
            (json!([]), "it is not a mapping"),
            (json!({"kind": "Pod", "metadata": {"name": "a"}}), "it has no `apiVersion`"),
            (json!({"apiVersion": "v1", "metadata": {"name": "a"}}), "it has no `kind`"),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": ""}}),
                "it has no `metadata.name`",
            ),
        ];
        for (value, why) in cases {
            assert_eq!(Object::new(value).unwrap_err(), why);
        }
    }

    #[test]
    fn a_place_is_found_by_its_pointer() {
        let object = Object::new(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "annotations": {"a/b~c": "d"}}, "list": [{"x": 1}, {"x": 2}],
        }))
        .unwrap();
        for pointer in [
            "/metadata/name",
            "/metadata/annotations/a~1b~0c",
            "/list/1/x",
            "/list/2",
            "/list/x",
            "/metadata/name/x",
            "/nothing",
            "",
        ] {
            assert_eq!(object.at(pointer), object.value().pointer(pointer), "{pointer}");
        }
        assert_eq!(object.number("/list/1/x"), 2);
    }

    #[test]
    fn a_light_object_has_lost_what_is_large_and_is_judged_alike() {
        let mut object = Object::new(json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "a", "namespace": "n", "generation": 2, "managedFields": [{"manager": "x"}],
                "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes"}},
            "spec": {"replicas": 1, "template": {"spec": {"containers": [{"name": "main"}]}}},
            "status": {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 0},
        }))
        .unwrap();
        let before = crate::judge::judge(&object);
        object.lighten();
        assert_eq!(crate::judge::judge(&object), before);
        assert_eq!(object.at("/spec").unwrap(), &json!({"replicas": 1}));
        assert_eq!(
            object.at("/metadata").unwrap(),
            &json!({"name": "a", "namespace": "n", "generation": 2, "annotations": {"kept": "yes"}})
        );
    }

    #[test]
    fn debug_shows_no_content() {
        let secret = Object::new(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"},
            "stringData": {"token": "hunter2"},
        }))
        .unwrap();
        assert_eq!(format!("{secret:?}"), "Object(Secret n/s)");
    }
}
