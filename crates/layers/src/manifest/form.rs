//! Small untidinesses of manifests, set right before anything is compared: each would differ for ever from what the
//! server keeps.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use castle_kubernetes::Object;
use castle_kubernetes::scope::is_built_in;
use serde_json::Value;

/// Built-in kinds of the whole cluster. Manifests that were printed for a namespace name it here too; servers drop it.
const CLUSTER_WIDE: &[&str] = &[
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CSIDriver",
    "CustomResourceDefinition",
    "IngressClass",
    "MutatingWebhookConfiguration",
    "Namespace",
    "PersistentVolume",
    "PriorityClass",
    "StorageClass",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// The object as the server will keep it: without the namespace of a kind that has none, and with a Secret's texts
/// encoded, since nobody can tell later who holds them otherwise.
pub(super) fn settled(object: Object) -> Value {
    let built_in = is_built_in(&object);
    let kind = object.kind().to_owned();
    let mut value = object.into_value();
    let Some(map) = value.as_object_mut() else { return value };
    if built_in
        && CLUSTER_WIDE.contains(&kind.as_str())
        && let Some(metadata) = map.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.remove("namespace");
    }
    if built_in && kind == "Secret" {
        encode_texts(map);
    }
    value
}

fn encode_texts(secret: &mut serde_json::Map<String, Value>) {
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = secret.entry("data").or_insert_with(|| Value::Object(serde_json::Map::new()));
    if data.is_null() {
        *data = Value::Object(serde_json::Map::new());
    }
    if let Some(data) = data.as_object_mut() {
        for (name, text) in texts {
            data.insert(name, STANDARD.encode(text.as_str().unwrap_or_default()).into());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(given: Value, kept: &Value) {
        assert_eq!(settled(Object::new(given).unwrap()), *kept);
    }

    #[test]
    fn a_cluster_wide_kind_loses_its_namespace_and_a_secret_its_texts() {
        check(
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a", "namespace": "b"}}),
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "a"}}),
        );
        let other = json!({"apiVersion": "example.org/v1", "kind": "ClusterRole", "metadata": {"name": "a", "namespace": "b"}});
        check(other.clone(), &other);
        check(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "eA=="}, "stringData": {"y": "z"}}),
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "eA==", "y": "eg=="}}),
        );
    }
}
