//! What stands between a write and the store: the rules of the server itself, for the kinds that mistakes are made in.

use serde_json::{Map, Value};

use super::kinds::Resource;
use super::refuse::No;

/// How names are written that become part of a domain.
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
/// How values of labels are written.
pub(super) const LABEL: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
/// How keys of ConfigMaps and Secrets are written.
const KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
    'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// Refuses what the server would refuse, with every reason at once.
pub(super) fn check(resource: &Resource, before: Option<&Value>, object: &Value) -> Result<(), No> {
    let mut wrong = Vec::new();
    metadata(resource, before, object, &mut wrong);
    match resource.kind.as_str() {
        "ConfigMap" | "Secret" => keys(object, &mut wrong),
        "Deployment" | "DaemonSet" | "StatefulSet" if !resource.custom => {
            workload(before, object, &mut wrong);
        }
        "Service" if !resource.custom => service(object, &mut wrong),
        "EndpointSlice" => slice(object, &mut wrong),
        "CustomResourceDefinition" => definition(object, &mut wrong),
        _ => {}
    }
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(No::invalid(resource, name, one)),
        several => Err(No::invalid(resource, name, &format!("[{}]", several.join(", ")))),
    }
}

fn metadata(resource: &Resource, before: Option<&Value>, object: &Value, wrong: &mut Vec<String>) {
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().unwrap_or_default();
    let loose = resource.group == "rbac.authorization.k8s.io";
    if !loose && !is_subdomain(name) {
        wrong.push(format!("metadata.name: Invalid value: \"{name}\": {SUBDOMAIN}"));
    }
    for value in metadata["labels"].as_object().into_iter().flat_map(Map::values) {
        let text = value.as_str().unwrap_or_default();
        if !is_label(text) {
            wrong.push(format!("metadata.labels: Invalid value: {text:?}: {LABEL}"));
        }
    }
    let Some(before) = before.filter(|b| b["metadata"]["deletionTimestamp"].is_string()) else {
        return;
    };
    let old = before["metadata"]["finalizers"].as_array().map_or(&[][..], Vec::as_slice);
    let new = metadata["finalizers"].as_array().into_iter().flatten();
    let added: Vec<String> = new.filter(|f| !old.contains(f)).map(Value::to_string).collect();
    if !added.is_empty() {
        wrong.push(format!(
            "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new \
            finalizers []string{{{}}}",
            added.join(", ")
        ));
    }
}

fn is_subdomain(name: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.len() <= 253
        && name.split('.').all(|part| {
            let bytes = part.as_bytes();
            edge(bytes.first()) && edge(bytes.last()) && part.bytes().all(inner)
        })
}

pub(super) fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    text.is_empty()
        || (text.len() <= 63
            && edge(bytes.first())
            && edge(bytes.last())
            && text.bytes().all(inner))
}

fn keys(object: &Value, wrong: &mut Vec<String>) {
    let good = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    for name in object["data"].as_object().into_iter().flat_map(Map::keys) {
        if name.is_empty() || !name.bytes().all(good) {
            wrong.push(format!("data[{name}]: Invalid value: {name:?}: {KEY}"));
        }
    }
}

fn workload(before: Option<&Value>, object: &Value, wrong: &mut Vec<String>) {
    let spec = &object["spec"];
    let selector = &spec["selector"]["matchLabels"];
    let labels = &spec["template"]["metadata"]["labels"];
    let empty = spec["selector"].as_object().is_some_and(Map::is_empty);
    if empty {
        let kind = object["kind"].as_str().unwrap_or_default().to_lowercase();
        wrong.push(format!(
            "spec.selector: Invalid value: {{}}: empty selector is invalid for {kind}"
        ));
    } else if spec["selector"].is_null() {
        wrong.push("spec.selector: Required value".to_owned());
    }
    if !empty && !includes(labels, selector) {
        wrong.push(format!(
            "spec.template.metadata.labels: Invalid value: {labels}: `selector` does not match template `labels`"
        ));
    }
    let containers = &spec["template"]["spec"]["containers"];
    if containers.as_array().is_none_or(Vec::is_empty) {
        wrong.push("spec.template.spec.containers: Required value".to_owned());
    }
    if before.is_some_and(|before| before["spec"]["selector"] != spec["selector"]) {
        wrong.push(format!(
            "spec.selector: Invalid value: {}: field is immutable",
            spec["selector"]
        ));
    }
}

fn service(object: &Value, wrong: &mut Vec<String>) {
    let spec = &object["spec"];
    let ports = spec["ports"].as_array().map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && spec["type"] != "ExternalName" && spec["clusterIP"] != "None" {
        wrong.push("spec.ports: Required value".to_owned());
    }
    for (index, port) in ports.iter().enumerate() {
        for field in ["port", "targetPort"] {
            let number = port[field].as_i64();
            if let Some(number) = number.filter(|number| !(1..=65_535).contains(number)) {
                wrong.push(format!(
                    "spec.ports[{index}].{field}: Invalid value: {number}: must be between 1 and 65535, inclusive"
                ));
            }
        }
    }
}

fn slice(object: &Value, wrong: &mut Vec<String>) {
    let endpoints = object["endpoints"].as_array().into_iter().flatten();
    for (index, endpoint) in endpoints.enumerate() {
        let addresses = endpoint["addresses"].as_array().into_iter().flatten();
        for (number, address) in addresses.filter_map(Value::as_str).enumerate() {
            if address.starts_with("127.") || address == "::1" {
                wrong.push(format!(
                    "endpoints[{index}].addresses[{number}]: Invalid value: {address:?}: may not be in the loopback range \
                    (127.0.0.0/8, ::1/128)"
                ));
            }
        }
    }
}

fn definition(object: &Value, wrong: &mut Vec<String>) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let spec = &object["spec"];
    let name = text(&object["metadata"]["name"]);
    if name != format!("{}.{}", text(&spec["names"]["plural"]), text(&spec["group"])) {
        wrong.push(format!(
            "metadata.name: Invalid value: \"{name}\": must be spec.names.plural+\".\"+spec.group"
        ));
    }
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    let columns = |version: &Value| version["additionalPrinterColumns"].clone();
    // What all versions share is judged once, where older definitions had it.
    if versions.windows(2).all(|pair| columns(&pair[0]) == columns(&pair[1])) {
        if let Some(version) = versions.first() {
            printed(&columns(version), "spec", wrong);
        }
    } else {
        for (index, version) in versions.iter().enumerate() {
            printed(&columns(version), &format!("spec.versions[{index}]"), wrong);
        }
    }
}

/// What a column of a table may be, and what its values may look like.
const COLUMN_TYPES: &[&str] = &["boolean", "date", "integer", "number", "string"];
const COLUMN_FORMATS: &[&str] =
    &["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Judges the columns that a definition wants printed.
fn printed(columns: &Value, place: &str, wrong: &mut Vec<String>) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let text = |name: &str| column[name].as_str().unwrap_or_default();
        let mut no = |field: &str, why: String| {
            wrong.push(format!("{place}.additionalPrinterColumns[{index}].{field}: {why}"));
        };
        let one_of = |known: &[&str]| format!("must be one of {}", known.join(","));
        let (kind, format, path) = (text("type"), text("format"), text("jsonPath"));
        if text("name").is_empty() {
            no("name", "Required value".to_owned());
        }
        if kind.is_empty() {
            no("type", format!("Required value: {}", one_of(COLUMN_TYPES)));
        } else if !COLUMN_TYPES.contains(&kind) {
            no("type", format!("Invalid value: {kind:?}: {}", one_of(COLUMN_TYPES)));
        }
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            no("format", format!("Invalid value: {format:?}: {}", one_of(COLUMN_FORMATS)));
        }
        if path.is_empty() {
            no("JSONPath", "Required value".to_owned());
        } else if !path.starts_with('.') {
            let why = "must be a simple json path starting with .";
            no("JSONPath", format!("Invalid value: {path:?}: {why}"));
        }
    }
}

/// Whether a set of labels has everything that a selector asks for.
pub(super) fn includes(labels: &Value, selector: &Value) -> bool {
    selector
        .as_object()
        .is_some_and(|wanted| wanted.iter().all(|(name, value)| labels.get(name) == Some(value)))
}
