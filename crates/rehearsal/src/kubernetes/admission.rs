//! What stands between a write and the store: the rules of the server itself.

use serde_json::Value;

use super::kinds::Resource;
use super::refuse::No;

/// The few rules of the server's own that a mistake of ours would meet first.
pub(super) fn check(resource: &Resource, before: Option<&Value>, object: &Value) -> Result<(), No> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    let loose = resource.group == "rbac.authorization.k8s.io";
    if name.is_empty() || name.len() > 253 || !(loose || name.bytes().all(plain)) {
        let why = format!(
            "metadata.name: Invalid value: \"{name}\": a lowercase RFC 1123 subdomain must consist of \
            lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character"
        );
        return Err(No::invalid(resource, name, &why));
    }
    match resource.kind.as_str() {
        "Deployment" | "DaemonSet" | "StatefulSet" => {
            let selector = &object["spec"]["selector"]["matchLabels"];
            if selector.as_object().is_none_or(serde_json::Map::is_empty) {
                return Err(No::invalid(resource, name, "spec.selector: Required value"));
            }
            let old = before.map(|before| &before["spec"]["selector"]["matchLabels"]);
            if old.is_some_and(|old| old != selector) {
                let why = format!(
                    "spec.selector: Invalid value: {}: field is immutable",
                    object["spec"]["selector"]
                );
                return Err(No::invalid(resource, name, &why));
            }
            if !includes(&object["spec"]["template"]["metadata"]["labels"], selector) {
                return Err(No::invalid(
                    resource,
                    name,
                    "spec.template.metadata.labels: Invalid value: `selector` does not match template `labels`",
                ));
            }
        }
        "CustomResourceDefinition" => {
            let spec = &object["spec"];
            let wanted = format!(
                "{}.{}",
                spec["names"]["plural"].as_str().unwrap_or_default(),
                spec["group"].as_str().unwrap_or_default()
            );
            if name != wanted {
                let why = format!(
                    "metadata.name: Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group"
                );
                return Err(No::invalid(resource, name, &why));
            }
        }
        _ => {}
    }
    Ok(())
}

/// Whether a set of labels has everything that a selector asks for.
pub(super) fn includes(labels: &Value, selector: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|wanted| wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
}
