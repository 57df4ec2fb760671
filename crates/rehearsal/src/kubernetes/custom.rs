//! Objects of defined kinds against the schema of their definition: defaults, what is pruned, what is refused.

use serde_json::{Map, Value};

/// Fields that every object has, whatever its schema says.
const ROOT: &[&str] = &["apiVersion", "kind", "metadata"];

fn keeps_unknown(schema: &Value) -> bool {
    schema["x-kubernetes-preserve-unknown-fields"] == true
        || schema["x-kubernetes-embedded-resource"] == true
}

/// Takes out the fields that the schema does not know, and tells their paths.
pub(super) fn prune(object: &mut Value, schema: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    let Value::Object(map) = object else { return unknown };
    if schema["properties"].is_object() {
        let names: Vec<String> =
            map.keys().filter(|n| !ROOT.contains(&n.as_str())).cloned().collect();
        for name in names {
            prune_field(map, &name, (schema, ""), &mut unknown);
        }
    }
    unknown
}

fn prune_field(
    map: &mut Map<String, Value>,
    name: &str,
    (schema, path): (&Value, &str),
    unknown: &mut Vec<String>,
) {
    let here = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let known = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
    match known {
        Some(below) if below.is_object() => {
            if let Some(value) = map.get_mut(name) {
                prune_below(value, below, &here, unknown);
            }
        }
        Some(_) => {}
        None if keeps_unknown(schema) => {}
        None => {
            map.shift_remove(name);
            unknown.push(here);
        }
    }
}

fn prune_below(value: &mut Value, schema: &Value, path: &str, unknown: &mut Vec<String>) {
    match value {
        Value::Object(map) if schema["type"] == "object" || schema["properties"].is_object() => {
            let names: Vec<String> = map.keys().cloned().collect();
            for name in names {
                prune_field(map, &name, (schema, path), unknown);
            }
        }
        Value::Array(list) if schema["items"].is_object() => {
            for (index, entry) in list.iter_mut().enumerate() {
                prune_below(entry, &schema["items"], &format!("{path}[{index}]"), unknown);
            }
        }
        _ => {}
    }
}

/// Fills in what the schema gives where an object says nothing.
pub(super) fn fill(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(map) => {
            for (name, below) in schema["properties"].as_object().into_iter().flatten() {
                if let (None, Some(default)) = (map.get(name), below.get("default")) {
                    map.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in map {
                let below = schema["properties"].get(name.as_str());
                if let Some(below) = below.or_else(|| schema.get("additionalProperties")) {
                    fill(value, below);
                }
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|entry| fill(entry, &schema["items"])),
        _ => {}
    }
}

/// A field of an applied object whose value is of another type than the schema says, in the server's words.
pub(super) fn mistyped(object: &Value, schema: &Value) -> Option<String> {
    let fields = object.as_object()?.iter().filter(|(name, _)| !ROOT.contains(&name.as_str()));
    fields.into_iter().find_map(|(name, value)| {
        mistyped_below(value, schema["properties"].get(name)?, &format!(".{name}"))
    })
}

fn mistyped_below(value: &Value, schema: &Value, path: &str) -> Option<String> {
    if schema["x-kubernetes-int-or-string"] == true {
        return None;
    }
    let go = match value {
        Value::Bool(_) => "bool",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        _ => "map[string]interface {}",
    };
    match (schema["type"].as_str(), value) {
        (Some("integer" | "number"), other) if !other.is_number() => {
            Some(format!("{path}: expected numeric (int or float), got {go}"))
        }
        (Some("string"), other) if !other.is_string() => Some(not_text(path, other)),
        (Some("boolean"), other) if !other.is_boolean() => {
            Some(format!("{path}: expected boolean, got {go}"))
        }
        (_, Value::Object(map)) => map.iter().find_map(|(name, value)| {
            let below = schema["properties"].get(name);
            let below = below.or_else(|| schema.get("additionalProperties"))?;
            mistyped_below(value, below, &format!("{path}.{name}"))
        }),
        (_, Value::Array(list)) => list.iter().enumerate().find_map(|(index, value)| {
            mistyped_below(value, &schema["items"], &format!("{path}[{index}]"))
        }),
        _ => None,
    }
}

/// A text was expected.
pub(super) fn not_text(path: &str, value: &Value) -> String {
    format!("{path}: expected string, got &value.valueUnstructured{{Value:{value}}}")
}

/// What the schema refuses first, in the server's words: `spec.size: Required value`.
pub(super) fn judge(object: &Value, schema: &Value) -> Result<(), String> {
    let Some(map) = object.as_object() else { return Ok(()) };
    required(map, schema, "")?;
    for (name, value) in map.iter().filter(|(name, _)| !ROOT.contains(&name.as_str())) {
        if let Some(below) = schema["properties"].get(name) {
            judge_below(value, below, name)?;
        }
    }
    Ok(())
}

fn judge_below(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    if value.is_null() && schema["nullable"] == true {
        return Ok(());
    }
    right_type(value, schema, path)?;
    if let Some(allowed) = schema["enum"].as_array().filter(|all| !all.contains(value)) {
        let allowed: Vec<String> = allowed.iter().map(Value::to_string).collect();
        return Err(format!(
            "{path}: Unsupported value: {value}: supported values: {}",
            allowed.join(", ")
        ));
    }
    right_size(value, schema, path)?;
    match value {
        Value::Object(map) => {
            required(map, schema, path)?;
            for (name, value) in map {
                let below = schema["properties"].get(name);
                if let Some(below) = below.or_else(|| schema.get("additionalProperties")) {
                    judge_below(value, below, &format!("{path}.{name}"))?;
                }
            }
            Ok(())
        }
        Value::Array(list) => list.iter().enumerate().try_for_each(|(index, entry)| {
            judge_below(entry, &schema["items"], &format!("{path}[{index}]"))
        }),
        _ => Ok(()),
    }
}

fn required(map: &Map<String, Value>, schema: &Value, path: &str) -> Result<(), String> {
    let mut names = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let dot = if path.is_empty() { "" } else { "." };
    match names.find(|name| !map.contains_key(*name)) {
        Some(name) => Err(format!("{path}{dot}{name}: Required value")),
        None => Ok(()),
    }
}

fn right_type(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    let is = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let free = schema["x-kubernetes-int-or-string"] == true;
    match schema["type"].as_str() {
        Some(wanted) if !free && wanted != is && (wanted, is) != ("number", "integer") => {
            let kind = format!("{is:?}");
            Err(format!(
                "{path}: Invalid value: {kind}: {path} in body must be of type {wanted}: {kind}"
            ))
        }
        _ => Ok(()),
    }
}

fn right_size(value: &Value, schema: &Value, path: &str) -> Result<(), String> {
    let bound = |name: &str| schema[name].as_f64();
    let count = |list: &[Value]| u32::try_from(list.len()).map_or(f64::MAX, f64::from);
    match value {
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if let Some(least) = bound("minimum").filter(|least| number < *least) {
                return Err(format!(
                    "{path}: Invalid value: {value}: {path} in body should be greater than or equal to {least}"
                ));
            }
            if let Some(most) = bound("maximum").filter(|most| number > *most) {
                return Err(format!(
                    "{path}: Invalid value: {value}: {path} in body should be less than or equal to {most}"
                ));
            }
        }
        Value::Array(list) => {
            if let Some(least) = bound("minItems").filter(|least| count(list) < *least) {
                return Err(format!(
                    "{path}: Invalid value: {}: {path} in body should have at least {least} items",
                    list.len()
                ));
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "mode": {"type": "string", "enum": ["fast", "safe"], "default": "safe"},
                "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }}})
    }

    #[test]
    fn unknown_fields_go_and_are_named() {
        let mut object = json!({"kind": "X", "metadata": {"name": "a"},
            "spec": {"size": 1, "odd": 2, "free": {"any": 1}}, "other": 1});
        assert_eq!(prune(&mut object, &schema()), ["spec.odd", "other"]);
        assert_eq!(
            object,
            json!({"kind": "X", "metadata": {"name": "a"}, "spec": {"size": 1, "free": {"any": 1}}})
        );
        let mut free = json!({"any": 1});
        assert_eq!(prune(&mut free, &json!({"type": "object"})), Vec::<String>::new());
    }

    #[test]
    fn defaults_are_filled_in() {
        let mut object = json!({"spec": {"size": 1}});
        fill(&mut object, &schema());
        assert_eq!(object, json!({"spec": {"size": 1, "mode": "safe"}}));
    }

    #[test]
    fn refusals_are_in_the_servers_words() {
        for (object, why) in [
            (json!({}), "spec: Required value"),
            (json!({"spec": {}}), "spec.size: Required value"),
            (
                json!({"spec": {"size": "1"}}),
                "spec.size: Invalid value: \"string\": spec.size in body must be of type integer: \"string\"",
            ),
            (
                json!({"spec": {"size": 0}}),
                "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
            ),
            (
                json!({"spec": {"size": 1, "mode": "odd"}}),
                "spec.mode: Unsupported value: \"odd\": supported values: \"fast\", \"safe\"",
            ),
            (
                json!({"spec": {"size": 1, "tags": []}}),
                "spec.tags: Invalid value: 0: spec.tags in body should have at least 1 items",
            ),
        ] {
            assert_eq!(judge(&object, &schema()), Err(why.to_owned()));
        }
        assert_eq!(judge(&json!({"spec": {"size": 1, "tags": ["a"]}}), &schema()), Ok(()));
    }
}
