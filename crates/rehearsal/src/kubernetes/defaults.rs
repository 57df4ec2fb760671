//! Defaults: what the server fills in where an object of a built-in kind says nothing.

use serde_json::{Map, Value, json};

use super::kinds::Resource;

/// Fills in the defaults of a built-in kind, and leaves out what is empty.
pub(super) fn fill(resource: &Resource, object: &mut Value) {
    if resource.custom {
        return;
    }
    without_empty(object, &["data", "binaryData"]);
    without_empty(
        &mut object["metadata"],
        &["labels", "annotations", "finalizers", "ownerReferences"],
    );
    match resource.kind.as_str() {
        "Namespace" => {
            set(object, "spec", || json!({"finalizers": ["kubernetes"]}));
            set(object, "status", || json!({"phase": "Active"}));
            let name = object["metadata"]["name"].clone();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name;
        }
        "Deployment" => {
            let spec = &mut object["spec"];
            set(spec, "replicas", || 1.into());
            set(spec, "revisionHistoryLimit", || 10.into());
            set(spec, "progressDeadlineSeconds", || 600.into());
            set(spec, "strategy", || json!({"type": "RollingUpdate"}));
            if spec["strategy"]["type"] == "RollingUpdate" {
                let rolling = json!({"maxSurge": "25%", "maxUnavailable": "25%"});
                set(&mut spec["strategy"], "rollingUpdate", || rolling);
            }
            pod(&mut spec["template"]["spec"]);
        }
        "DaemonSet" => {
            let spec = &mut object["spec"];
            set(spec, "revisionHistoryLimit", || 10.into());
            set(
                spec,
                "updateStrategy",
                || json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}),
            );
            pod(&mut spec["template"]["spec"]);
        }
        "StatefulSet" => {
            let spec = &mut object["spec"];
            set(spec, "replicas", || 1.into());
            set(spec, "revisionHistoryLimit", || 10.into());
            set(spec, "podManagementPolicy", || "OrderedReady".into());
            set(
                spec,
                "updateStrategy",
                || json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}),
            );
            pod(&mut spec["template"]["spec"]);
        }
        "Pod" => {
            pod(&mut object["spec"]);
            set(object, "status", || json!({"phase": "Pending"}));
        }
        "PersistentVolumeClaim" => {
            set(&mut object["spec"], "volumeMode", || "Filesystem".into());
            set(object, "status", || json!({"phase": "Pending"}));
        }
        "Secret" => set(object, "type", || "Opaque".into()),
        "EndpointSlice" => {
            for port in object["ports"].as_array_mut().into_iter().flatten() {
                set(port, "protocol", || "TCP".into());
            }
        }
        _ => {}
    }
}

/// Sets a field that is not there, in a map that is.
fn set(map: &mut Value, field: &str, value: impl FnOnce() -> Value) {
    if let Some(map) = map.as_object_mut()
        && map.get(field).is_none_or(Value::is_null)
    {
        map.insert(field.to_owned(), value());
    }
}

fn without_empty(object: &mut Value, fields: &[&str]) {
    let empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    if let Some(map) = object.as_object_mut() {
        map.retain(|name, value| !(fields.contains(&name.as_str()) && empty(value)));
    }
}

/// Looking for a field leaves a null where there is none.
fn without_nulls(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        map.retain(|_, value| !value.is_null());
    }
}

/// The defaults of a pod's specification.
fn pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            container_defaults(container);
        }
    }
    without_nulls(spec);
    set(spec, "dnsPolicy", || "ClusterFirst".into());
    set(spec, "restartPolicy", || "Always".into());
    set(spec, "schedulerName", || "default-scheduler".into());
    set(spec, "securityContext", || Value::Object(Map::new()));
    set(spec, "terminationGracePeriodSeconds", || 30.into());
    if let Some(account) = spec["serviceAccountName"].as_str().map(str::to_owned) {
        set(spec, "serviceAccount", || account.into());
    }
}

fn container_defaults(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let last = image.rsplit('/').next().unwrap_or_default();
    let latest = !last.contains(':') || last.ends_with(":latest");
    let policy = if latest && !last.contains('@') { "Always" } else { "IfNotPresent" };
    set(container, "imagePullPolicy", || policy.into());
    set(container, "resources", || Value::Object(Map::new()));
    set(container, "terminationMessagePath", || "/dev/termination-log".into());
    set(container, "terminationMessagePolicy", || "File".into());
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        set(port, "protocol", || "TCP".into());
    }
    without_nulls(container);
}
