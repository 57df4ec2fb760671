//! How one object becomes another: server-side apply, merge patch and JSON patch.

use serde_json::{Map, Value};

/// Keys by which entries of a list are the same entry, in the order they are tried.
const ENTRY_KEYS: [&str; 4] = ["name", "type", "containerPort", "port"];

/// Applies a configuration: fields the manager had before and leaves out now are removed, the rest is merged.
pub(super) fn apply(live: &Value, before: Option<&Value>, wanted: &Value) -> Value {
    let mut result = live.clone();
    if let Some(before) = before {
        drop_left_out(&mut result, before, wanted);
    }
    merge_in(&mut result, wanted);
    result
}

/// The first field that two managers want differently, as the server writes it: `.spec.replicas`.
pub(super) fn conflict(live: &Value, theirs: &Value, ours: &Value, path: &str) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => theirs.iter().find_map(|(name, value)| {
            conflict(&live[name], value, ours.get(name)?, &format!("{path}.{name}"))
        }),
        (Value::Array(_), Value::Array(_)) => None,
        _ => (ours != theirs && ours != live && !path.starts_with(".metadata"))
            .then(|| path.to_owned()),
    }
}

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

/// Merges what is wanted into what is there; lists of named entries are merged entry by entry.
fn merge_in(live: &mut Value, wanted: &Value) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            for (name, value) in wanted {
                merge_in(live.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(live), Value::Array(wanted)) if entry_key(wanted).is_some() => {
            let key = entry_key(wanted).unwrap_or_default();
            for value in wanted {
                match live.iter_mut().find(|entry| entry[key] == value[key]) {
                    Some(entry) => merge_in(entry, value),
                    None => live.push(value.clone()),
                }
            }
        }
        (live, wanted) => *live = wanted.clone(),
    }
}

fn drop_left_out(live: &mut Value, before: &Value, wanted: &Value) {
    match (live, before) {
        (Value::Object(live), Value::Object(before)) => {
            for (name, old) in before {
                match wanted.get(name) {
                    Some(new) => {
                        if let Some(place) = live.get_mut(name) {
                            drop_left_out(place, old, new);
                        }
                    }
                    None => {
                        live.remove(name);
                    }
                }
            }
        }
        (Value::Array(live), Value::Array(before)) => {
            let Some(key) = entry_key(before) else { return };
            let new = wanted.as_array().map_or(&[][..], Vec::as_slice);
            live.retain(|entry| {
                let had = before.iter().any(|old| old[key] == entry[key]);
                !had || new.iter().any(|value| value[key] == entry[key])
            });
        }
        _ => {}
    }
}

/// The key that tells the entries of a list apart, if each has one of its own.
fn entry_key(list: &[Value]) -> Option<&'static str> {
    ENTRY_KEYS.into_iter().find(|key| {
        !list.is_empty()
            && list.iter().enumerate().all(|(index, entry)| {
                let own = entry.get(key);
                own.is_some() && list[..index].iter().all(|other| other.get(key) != own)
            })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn apply_keeps_what_others_set_and_drops_what_is_left_out() {
        let live = json!({"a": 1, "mine": 2, "hooks": [{"name": "x", "url": "u", "caBundle": "b"}, {"name": "old"}]});
        let before = json!({"mine": 2, "hooks": [{"name": "x", "url": "u"}, {"name": "old"}]});
        let wanted = json!({"hooks": [{"name": "x", "url": "v"}]});
        assert_eq!(
            apply(&live, Some(&before), &wanted),
            json!({"a": 1, "hooks": [{"name": "x", "url": "v", "caBundle": "b"}]})
        );
    }

    #[test]
    fn conflicts_are_named() {
        let live = json!({"spec": {"replicas": 2}});
        let theirs = json!({"spec": {"replicas": 2}});
        assert_eq!(
            conflict(&live, &theirs, &json!({"spec": {"replicas": 3}}), ""),
            Some(".spec.replicas".into())
        );
        assert_eq!(conflict(&live, &theirs, &json!({"spec": {"replicas": 2}}), ""), None);
        assert_eq!(conflict(&live, &theirs, &json!({"spec": {"paused": true}}), ""), None);
    }

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
