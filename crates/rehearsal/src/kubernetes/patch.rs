//! Patches: how one object becomes another by merge patch, strategic merge patch and JSON patch.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::shape::{ListKind, Shape};

/// RFC 7386.
pub(super) fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(map) = target.as_object_mut() else { return };
    for (name, value) in patch {
        if value.is_null() {
            map.shift_remove(name);
        } else {
            merge_patch(map.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// Merges as the server does for the kinds that it knows: lists entry by entry, with `$patch` directives.
pub(super) fn strategic(target: &mut Value, patch: &Value, shape: &Shape<'_>) {
    match (&mut *target, patch) {
        (Value::Object(map), Value::Object(patch)) => {
            if patch.get("$patch").is_some_and(|word| word == "replace") {
                map.clone_from(patch);
                map.shift_remove("$patch");
                return;
            }
            for (name, value) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
                if value.is_null() {
                    map.shift_remove(name);
                    continue;
                }
                let there = map.entry(name).or_insert_with(|| match value {
                    Value::Object(_) => Value::Object(Map::new()),
                    Value::Array(_) => Value::Array(Vec::new()),
                    _ => Value::Null,
                });
                strategic(there, value, &shape.field(name));
            }
        }
        (Value::Array(list), Value::Array(patch)) => match shape.list() {
            ListKind::Atomic => list.clone_from(patch),
            ListKind::Set => {
                for value in patch {
                    if !list.contains(value) {
                        list.push(value.clone());
                    }
                }
            }
            ListKind::Keyed(keys) => strategic_list(list, patch, (&keys, shape)),
        },
        _ => target.clone_from(patch),
    }
}

fn strategic_list(list: &mut Vec<Value>, patch: &[Value], (keys, shape): (&[&str], &Shape<'_>)) {
    if patch.iter().any(|entry| entry["$patch"] == "replace") {
        *list = patch.iter().filter(|entry| entry.get("$patch").is_none()).cloned().collect();
        return;
    }
    for entry in patch {
        // A patch may name an entry by less than all of its keys.
        let named: Vec<&str> =
            keys.iter().copied().filter(|key| entry.get(key).is_some()).collect();
        let same = |other: &Value| named.iter().all(|key| other.get(key) == entry.get(key));
        let at = list.iter().position(|other| !named.is_empty() && same(other));
        match (at, entry["$patch"] == "delete") {
            (Some(at), true) => {
                list.remove(at);
            }
            (Some(at), false) => strategic(&mut list[at], entry, &shape.entry()),
            (None, true) => {}
            (None, false) => list.push(entry.clone()),
        }
    }
}

/// A patch as Go prints it.
pub(super) fn shown(patch: &Value) -> String {
    match patch {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(list) => {
            let all: Vec<String> = list.iter().map(shown).collect();
            format!("[{}]", all.join(" "))
        }
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            let all: Vec<String> =
                sorted.iter().map(|(name, value)| format!("{name}:{}", shown(value))).collect();
            format!("map[{}]", all.join(" "))
        }
        other => other.to_string(),
    }
}

/// RFC 6902.
pub(super) fn json_patch(target: &mut Value, operations: &Value) -> Result<(), String> {
    let operations = operations.as_array().ok_or("a JSON patch is a list")?;
    for operation in operations {
        let path = operation["path"].as_str().ok_or("an operation has a path")?;
        let from = operation["from"].as_str().unwrap_or_default();
        let value = &operation["value"];
        match operation["op"].as_str() {
            Some("test") if target.pointer(path) == Some(value) => {}
            Some("test") => return Err(format!("testing value {path} failed: test failed")),
            Some("replace") => {
                let place = target.pointer_mut(path).ok_or_else(|| missing(path))?;
                *place = value.clone();
            }
            Some("add") => add(target, path, value.clone())?,
            Some("remove") => {
                remove(target, path)?;
            }
            Some("move") => {
                let moved = remove(target, from)?;
                add(target, path, moved)?;
            }
            Some("copy") => {
                // What is not there is copied as nothing, by the library that the server uses.
                let copied = target.pointer(from).cloned().unwrap_or_default();
                add(target, path, copied)?;
            }
            other => return Err(format!("unknown operation {other:?}")),
        }
    }
    Ok(())
}

fn missing(path: &str) -> String {
    format!("the path {path} does not exist")
}

fn place<'a>(target: &'a mut Value, path: &str) -> Result<(&'a mut Value, String), String> {
    let (parent, last) = path.rsplit_once('/').ok_or_else(|| missing(path))?;
    let name = last.replace("~1", "/").replace("~0", "~");
    Ok((target.pointer_mut(parent).ok_or_else(|| missing(path))?, name))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match place(target, path)? {
        (Value::Object(map), name) => {
            map.insert(name, value);
        }
        (Value::Array(list), name) if name == "-" => list.push(value),
        (Value::Array(list), name) => {
            let index: usize = name.parse().map_err(|_| missing(path))?;
            if index > list.len() {
                return Err(missing(path));
            }
            list.insert(index, value);
        }
        _ => return Err(missing(path)),
    }
    Ok(())
}

fn remove(target: &mut Value, path: &str) -> Result<Value, String> {
    let found = match place(target, path)? {
        (Value::Object(map), name) => map.shift_remove(&name),
        (Value::Array(list), name) => {
            let index = name.parse::<usize>().ok().filter(|index| *index < list.len());
            index.map(|index| list.remove(index))
        }
        _ => None,
    };
    found.ok_or_else(|| missing(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches() {
        let mut value = json!({"a": {"b": 1, "c": 2}, "l": [1, 2]});
        merge_patch(&mut value, &json!({"a": {"b": null, "d": 3}}));
        assert_eq!(value, json!({"a": {"c": 2, "d": 3}, "l": [1, 2]}));
        json_patch(
            &mut value,
            &json!([
                {"op": "add", "path": "/l/-", "value": 3},
                {"op": "remove", "path": "/a/c"},
                {"op": "replace", "path": "/a/d", "value": 4},
                {"op": "add", "path": "/a/x~1y", "value": 5},
                {"op": "copy", "from": "/a/d", "path": "/a/e"},
                {"op": "move", "from": "/l/0", "path": "/a/f"},
                {"op": "test", "path": "/a/f", "value": 1},
            ]),
        )
        .unwrap();
        assert_eq!(value, json!({"a": {"d": 4, "x/y": 5, "e": 4, "f": 1}, "l": [2, 3]}));
        assert!(json_patch(&mut value, &json!([{"op": "remove", "path": "/zz"}])).is_err());
        let failed = json_patch(&mut value, &json!([{"op": "test", "path": "/a/d", "value": 1}]));
        assert_eq!(failed, Err("testing value /a/d failed: test failed".to_owned()));
    }

    #[test]
    fn a_strategic_patch_finds_the_entry_that_it_names() {
        let shape = Shape::built_in("Deployment");
        let mut value = json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}],
            "tolerations": [{"key": "x"}]}});
        strategic(
            &mut value,
            &json!({"spec": {
                "containers": [{"name": "a", "image": "2"}, {"name": "b", "$patch": "delete"}, {"name": "c"}],
                "tolerations": [{"key": "y"}],
            }}),
            &shape,
        );
        assert_eq!(
            value,
            json!({"spec": {"containers": [{"name": "a", "image": "2"}, {"name": "c"}], "tolerations": [{"key": "y"}]}})
        );
    }
}
