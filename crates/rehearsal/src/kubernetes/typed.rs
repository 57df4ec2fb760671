//! Objects seen through their shapes: which fields one has, how two differ, how one is merged into another.

use serde_json::{Map, Value};

use super::fields::FieldSet;
use super::shape::{ListKind, Shape};

/// The field that tells of the others: nobody owns it.
const MANAGED: &str = "managedFields";

/// How an object differs from what it was.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// Fields that are new or have another value.
    pub(super) changed: FieldSet,
    /// Fields that are gone.
    pub(super) removed: FieldSet,
}

impl Difference {
    fn insert(&mut self, element: String, below: Self) {
        self.changed.insert(element.clone(), below.changed);
        self.removed.insert(element, below.removed);
    }
}

/// A list taken apart: each entry with the element that names it.
fn entries<'a>(list: &'a [Value], shape: &Shape<'_>) -> Vec<(String, &'a Value)> {
    list.iter().map(|entry| (element(entry, shape), entry)).collect()
}

/// The element that names an entry of a list: `k:{…}` or `v:…`.
fn element(entry: &Value, list: &Shape<'_>) -> String {
    let ListKind::Keyed(mut keys) = list.list() else { return format!("v:{entry}") };
    keys.sort_unstable();
    let mut named = Map::new();
    for key in keys {
        let value = entry.get(key).filter(|v| !v.is_null()).cloned();
        if let Some(value) = value.or_else(|| list.default_of(key)) {
            named.insert(key.to_owned(), value);
        }
    }
    format!("k:{}", Value::Object(named))
}

/// The fields that an applied configuration names.
pub(super) fn fields_of(value: &Value, shape: &Shape<'_>) -> FieldSet {
    match value {
        Value::Object(map) if !shape.is_piece() => {
            let mut set = FieldSet::default();
            for (name, below) in map {
                let mut child = fields_of(below, &shape.field(name));
                let empty = below.as_object().is_some_and(Map::is_empty);
                child.member |= empty || !shape.names(name);
                set.insert(format!("f:{name}"), child);
            }
            set
        }
        Value::Array(list) if shape.list() != ListKind::Atomic => {
            let mut set = FieldSet::default();
            for (element, entry) in entries(list, shape) {
                let mut child = fields_of(entry, &shape.entry());
                child.member = true;
                set.insert(element, child);
            }
            set
        }
        _ => FieldSet::leaf(),
    }
}

/// Every field of a value that is wholly new or wholly gone, its maps and lists among them.
fn whole(value: &Value, shape: &Shape<'_>) -> FieldSet {
    let mut set = FieldSet { member: !shape.is_always_there(), ..FieldSet::default() };
    match value {
        Value::Object(map) if !shape.is_piece() => {
            set.member |= map.is_empty();
            for (name, below) in map.iter().filter(|(name, _)| *name != MANAGED) {
                set.insert(format!("f:{name}"), whole(below, &shape.field(name)));
            }
        }
        Value::Array(list) if shape.list() != ListKind::Atomic => {
            for (element, entry) in entries(list, shape) {
                set.insert(element, whole(entry, &shape.entry()));
            }
        }
        _ => set.member = true,
    }
    set
}

/// How an object differs from what it was.
pub(super) fn compare(before: &Value, after: &Value, shape: &Shape<'_>) -> Difference {
    let mut difference = Difference::default();
    match (before, after) {
        _ if before == after => {}
        (Value::Object(old), Value::Object(new)) if !shape.is_piece() => {
            for (name, value) in old.iter().filter(|(name, _)| *name != MANAGED) {
                let field = shape.field(name);
                let below = match new.get(name) {
                    Some(now) => compare(value, now, &field),
                    None => Difference { removed: whole(value, &field), ..Difference::default() },
                };
                difference.insert(format!("f:{name}"), below);
            }
            let added =
                |name: &String| name.as_str() != MANAGED && !old.contains_key(name.as_str());
            for (name, value) in new.iter().filter(|(name, _)| added(name)) {
                difference.changed.insert(format!("f:{name}"), whole(value, &shape.field(name)));
            }
        }
        (Value::Array(old), Value::Array(new)) if shape.list() != ListKind::Atomic => {
            let (old, new) = (entries(old, shape), entries(new, shape));
            let find = |all: &[(String, &Value)], wanted: &str| {
                all.iter().position(|(element, _)| element == wanted)
            };
            for (element, value) in &old {
                let below = match find(&new, element) {
                    Some(at) => compare(value, new[at].1, &shape.entry()),
                    None => Difference {
                        removed: whole(value, &shape.entry()),
                        ..Difference::default()
                    },
                };
                difference.insert(element.clone(), below);
            }
            for (element, value) in &new {
                if find(&old, element).is_none() {
                    difference.changed.insert(element.clone(), whole(value, &shape.entry()));
                }
            }
        }
        _ => difference.changed = FieldSet::leaf(),
    }
    difference
}

/// Merges a configuration into what is there.
pub(super) fn merge(live: &mut Value, wanted: &Value, shape: &Shape<'_>) {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) if !shape.is_piece() => {
            for (name, value) in wanted {
                match live.get_mut(name) {
                    Some(there) => merge(there, value, &shape.field(name)),
                    None => {
                        live.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(live), Value::Array(wanted)) if shape.list() != ListKind::Atomic => {
            merge_lists(live, wanted, shape);
        }
        (live, wanted) => {
            if live != wanted {
                live.clone_from(wanted);
            }
        }
    }
}

/// Entries of the configuration come in its order; those that only the live list has stay before the next one
/// that both have.
fn merge_lists(live: &mut Vec<Value>, wanted: &[Value], shape: &Shape<'_>) {
    let theirs: Vec<String> = live.iter().map(|entry| element(entry, shape)).collect();
    let ours: Vec<String> = wanted.iter().map(|entry| element(entry, shape)).collect();
    let mut there: Vec<Option<Value>> = std::mem::take(live).into_iter().map(Some).collect();
    let mut at = 0;
    for (index, (name, value)) in ours.iter().zip(wanted).enumerate() {
        let next = ours[index..].iter().find(|name| theirs.contains(name));
        while at < theirs.len() && Some(&theirs[at]) != next {
            if !ours.contains(&theirs[at]) {
                live.extend(there[at].take());
            }
            at += 1;
        }
        let same = theirs.iter().position(|other| other == name);
        match same.and_then(|index| there[index].take()) {
            Some(mut entry) => {
                merge(&mut entry, value, &shape.entry());
                live.push(entry);
            }
            None => live.push(value.clone()),
        }
    }
    live.extend(there.into_iter().flatten());
}

/// Takes out what a manager had and has no longer, unless it is still somebody's.
pub(super) fn prune(value: &mut Value, last: &FieldSet, owned: &FieldSet, shape: &Shape<'_>) {
    for (name, had) in &last.children {
        let kept = owned.children.get(name);
        match value {
            Value::Object(map) => {
                let Some(field) = name.strip_prefix("f:") else { continue };
                match kept {
                    None => {
                        map.shift_remove(field);
                    }
                    Some(kept) => {
                        if let Some(below) = map.get_mut(field) {
                            prune(below, had, kept, &shape.field(field));
                        }
                    }
                }
            }
            Value::Array(list) => {
                let Some(at) = list.iter().position(|entry| element(entry, shape) == *name) else {
                    continue;
                };
                match kept {
                    None => {
                        list.remove(at);
                    }
                    Some(kept) => prune(&mut list[at], had, kept, &shape.entry()),
                }
            }
            _ => {}
        }
    }
}

/// An entry that a list has twice, though its entries are told apart: where, and which.
pub(super) fn twice(value: &Value, shape: &Shape<'_>, path: &str) -> Option<(String, String)> {
    match value {
        Value::Object(map) if !shape.is_piece() => map
            .iter()
            .find_map(|(name, below)| twice(below, &shape.field(name), &format!("{path}.{name}"))),
        Value::Array(list) if shape.list() != ListKind::Atomic => {
            let all = entries(list, shape);
            all.iter().enumerate().find_map(|(index, (element, entry))| {
                if all[..index].iter().any(|(other, _)| other == element) {
                    return Some((path.to_owned(), super::fields::spoken(element)));
                }
                let here = format!("{path}{}", super::fields::spoken(element));
                twice(entry, &shape.entry(), &here)
            })
        }
        _ => None,
    }
}

/// Takes out every field that is null: to the server it is not there.
pub(super) fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, below| !below.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
