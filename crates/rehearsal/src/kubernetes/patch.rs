//! Patches: how one object becomes another by merge patch and JSON patch.

use serde_json::{Map, Value};

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
            map.remove(name);
        } else {
            merge_patch(map.entry(name).or_insert(Value::Null), value);
        }
    }
}

/// RFC 6902: `add`, `replace`, `remove` and `test`.
pub(super) fn json_patch(target: &mut Value, operations: &Value) -> Result<(), String> {
    let operations = operations.as_array().ok_or("a JSON patch is a list")?;
    for operation in operations {
        let path = operation["path"].as_str().unwrap_or_default();
        let value = &operation["value"];
        match operation["op"].as_str() {
            Some("test") if target.pointer(path) == Some(value) => {}
            Some("test") => return Err(format!("testing value {path} failed")),
            Some("replace") => {
                let place = target.pointer_mut(path).ok_or_else(|| missing(path))?;
                *place = value.clone();
            }
            Some("add") => add(target, path, value.clone())?,
            Some("remove") => remove(target, path)?,
            other => return Err(format!("unknown operation {other:?}")),
        }
    }
    Ok(())
}

fn missing(path: &str) -> String {
    format!("the path {path} does not exist")
}

fn place<'a, 'p>(
    target: &'a mut Value,
    path: &'p str,
) -> Result<(&'a mut Value, String, &'p str), String> {
    let (parent, last) = path.rsplit_once('/').ok_or_else(|| missing(path))?;
    let name = last.replace("~1", "/").replace("~0", "~");
    Ok((target.pointer_mut(parent).ok_or_else(|| missing(path))?, name, path))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), String> {
    let (parent, name, path) = place(target, path)?;
    match parent {
        Value::Object(map) => {
            map.insert(name, value);
        }
        Value::Array(list) if name == "-" => list.push(value),
        Value::Array(list) => {
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

fn remove(target: &mut Value, path: &str) -> Result<(), String> {
    let (parent, name, path) = place(target, path)?;
    let found = match parent {
        Value::Object(map) => map.remove(&name).is_some(),
        Value::Array(list) => match name.parse::<usize>() {
            Ok(index) if index < list.len() => {
                list.remove(index);
                true
            }
            _ => false,
        },
        _ => false,
    };
    if found { Ok(()) } else { Err(missing(path)) }
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
            ]),
        )
        .unwrap();
        assert_eq!(value, json!({"a": {"d": 4, "x/y": 5}, "l": [1, 2, 3]}));
        assert!(json_patch(&mut value, &json!([{"op": "remove", "path": "/zz"}])).is_err());
    }
}
