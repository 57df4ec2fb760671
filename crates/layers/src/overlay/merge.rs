//! Merges a patch into an object: maps by key, lists by the key that Kubernetes merges them by, the rest replaced.

use serde_json::Value;

/// What the entries of a list are told apart by, where it is not their `name`.
const KEYS: [(&str, &[&str]); 3] = [
    ("ports", &["containerPort", "port"]),
    ("volumeMounts", &["mountPath"]),
    ("hostAliases", &["ip"]),
];

/// Merges a patch into a value. `null` removes; an entry of a list with `$patch: delete` removes the one of its key.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    merge_at("", target, patch);
}

fn merge_at(field: &str, target: &mut Value, patch: &Value) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    target.remove(key);
                } else {
                    merge_at(key, target.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (Value::Array(target), Value::Array(patch)) => match key_of(field, target, patch) {
            Some(key) => merge_lists(key, target, patch),
            None => *target = patch.iter().filter(|entry| !deletes(entry)).map(fresh).collect(),
        },
        (target, patch) => *target = fresh(patch),
    }
}

/// A piece of a patch where there was nothing: what it would remove is not there.
fn fresh(patch: &Value) -> Value {
    match patch {
        Value::Object(map) => {
            let kept = map.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key.clone(), fresh(value))).collect())
        }
        Value::Array(list) => list.iter().filter(|entry| !deletes(entry)).map(fresh).collect(),
        plain => plain.clone(),
    }
}

fn deletes(entry: &Value) -> bool {
    entry.get("$patch").is_some_and(|patch| patch == "delete")
}

/// The key that every entry has, each another one; none if the list is one of plain values, or there is no such key.
fn key_of(field: &str, target: &[Value], patch: &[Value]) -> Option<&'static str> {
    let own = KEYS.iter().find(|(name, _)| *name == field).map_or(&["name"][..], |(_, keys)| keys);
    let of = |entry: &Value, key: &str| entry.get(key).filter(|value| !value.is_null()).cloned();
    own.iter().copied().find(|key| {
        let ours: Option<Vec<Value>> = patch.iter().map(|entry| of(entry, key)).collect();
        let differ =
            |keys: Vec<Value>| keys.iter().enumerate().all(|(at, k)| !keys[..at].contains(k));
        ours.is_some_and(differ) && target.iter().all(|entry| of(entry, key).is_some())
    })
}

fn merge_lists(key: &str, target: &mut Vec<Value>, patch: &[Value]) {
    for entry in patch {
        let at = target.iter().position(|old| old.get(key) == entry.get(key));
        match at {
            Some(at) if deletes(entry) => {
                target.remove(at);
            }
            None if deletes(entry) => {}
            Some(at) => merge_at("", &mut target[at], entry),
            None => target.push(fresh(entry)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn merged(mut target: Value, patch: &Value) -> Value {
        merge(&mut target, patch);
        target
    }

    #[test]
    fn maps_are_merged_nulls_remove_and_lists_go_by_their_key() {
        let object = json!({"spec": {"replicas": 1, "paused": true, "containers": [
            {"name": "a", "image": "x:1", "args": ["--one"], "env": [{"name": "K", "value": "1"}],
             "ports": [{"containerPort": 1, "name": "p"}]},
            {"name": "b"},
        ]}});
        let patch = json!({"spec": {"replicas": 2, "paused": null, "containers": [
            {"name": "a", "args": ["--two"], "env": [{"name": "K", "value": "2"}, {"name": "L", "value": "3"}],
             "ports": [{"containerPort": 1, "protocol": "UDP"}, {"containerPort": 2}]},
            {"name": "b", "$patch": "delete"},
            {"name": "c", "image": "y:1", "command": null},
        ]}});
        assert_eq!(
            merged(object, &patch),
            json!({"spec": {"replicas": 2, "containers": [
                {"name": "a", "image": "x:1", "args": ["--two"],
                 "env": [{"name": "K", "value": "2"}, {"name": "L", "value": "3"}],
                 "ports": [{"containerPort": 1, "name": "p", "protocol": "UDP"}, {"containerPort": 2}]},
                {"name": "c", "image": "y:1"},
            ]}})
        );
    }

    #[test]
    fn lists_without_a_key_are_replaced() {
        let tolerations = json!({"tolerations": [{"key": "a"}, {"key": "b"}]});
        let patch = json!({"tolerations": [{"operator": "Exists"}]});
        assert_eq!(merged(tolerations, &patch), patch);
        let mixed = json!({"a": [{"name": "x"}, "plain"]});
        assert_eq!(merged(mixed, &json!({"a": [{"name": "x"}]})), json!({"a": [{"name": "x"}]}));
        assert_eq!(
            merged(json!({"a": [{"name": "x"}]}), &json!({"a": []})),
            json!({"a": [{"name": "x"}]})
        );
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (0..4i64).prop_map(Value::from),
            "[ab]".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("name|a|b|ports|port", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn merging_a_patch_again_changes_nothing(target in tree(), patch in tree()) {
            let once = merged(target, &patch);
            prop_assert_eq!(merged(once.clone(), &patch), once);
        }
    }
}
