//! Which of the fields that we apply a field manager holds: `fieldsV1` of `metadata.managedFields`, walked beside an object.
//!
//! The server writes a manager's fields as a tree: `f:name` is a field, `k:{"name":"a"}` an entry of a list by its keys,
//! `v:"a"` an entry of a set, `i:0` one by its index; `.` is the thing itself, and what is empty is held whole.
//! Which lists have keys is in the server's schema alone, so the tree that is walked says it, never the object. The walk
//! goes no deeper than the object does, whatever the tree holds.

use std::fmt;

use serde_json::{Map, Value};

/// What the server keeps for itself: nobody holds it, though objects may say it.
const UNHELD: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "generateName",
    "generation",
    "managedFields",
    "name",
    "namespace",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// A way into an object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Path<'a>(Vec<Step<'a>>);

#[derive(Debug, Clone, PartialEq)]
enum Step<'a> {
    Field(&'a str),
    /// An entry of a list, with the words by which the server names it.
    Entry {
        index: usize,
        entry: &'a Value,
        words: String,
    },
}

impl fmt::Display for Path<'_> {
    /// As the server writes it: `.spec.containers[name="a"].image`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| match step {
            Step::Field(name) => write!(f, ".{name}"),
            Step::Entry { words, .. } => write!(f, "[{words}]"),
        })
    }
}

impl Path<'_> {
    /// The last field's name.
    pub(crate) fn last(&self) -> &str {
        match self.0.last() {
            Some(Step::Field(name)) => name,
            _ => "",
        }
    }

    /// What is there in an object, where the way leads over fields alone: entries of lists may have moved.
    pub(crate) fn at<'v>(&self, object: &'v Value) -> Option<&'v Value> {
        self.0.iter().try_fold(object, |at, step| match step {
            Step::Field(name) => at.get(*name),
            Step::Entry { .. } => None,
        })
    }

    /// Takes what is there out of an object of the same shape.
    pub(crate) fn remove_from(&self, object: &mut Value) {
        let Some((last, way)) = self.0.split_last() else { return };
        let mut at = object;
        for step in way {
            let next = match step {
                Step::Field(name) => at.get_mut(*name),
                Step::Entry { index, .. } => at.get_mut(*index),
            };
            match next {
                Some(next) => at = next,
                None => return,
            }
        }
        if let (Step::Field(name), Value::Object(map)) = (last, at) {
            map.remove(*name);
        }
    }
}

/// The fields of an object that none of these trees holds.
pub(crate) fn lost<'a>(wanted: &'a Value, trees: &[&Value]) -> Vec<Path<'a>> {
    let mut walk = Walk { way: Vec::new(), found: Vec::new() };
    walk.lost(wanted, trees);
    walk.found
}

/// The fields of an object that a tree holds.
pub(crate) fn held<'a>(wanted: &'a Value, tree: &Value) -> Vec<Path<'a>> {
    let mut walk = Walk { way: Vec::new(), found: Vec::new() };
    walk.held(wanted, tree);
    walk.found
}

/// Whether a tree holds what is at a path, or something below it.
pub(crate) fn holds(tree: &Value, path: &Path<'_>) -> bool {
    let mut node = tree;
    for step in &path.0 {
        if is_whole(node) {
            return true;
        }
        let next = match step {
            Step::Field(name) => field(node, name),
            Step::Entry { index, entry, .. } => entry_of(node, *index, entry),
        };
        match next {
            Some(next) => node = next,
            None => return false,
        }
    }
    true
}

struct Walk<'a> {
    way: Vec<Step<'a>>,
    found: Vec<Path<'a>>,
}

impl<'a> Walk<'a> {
    fn note(&mut self) {
        self.found.push(Path(self.way.clone()));
    }

    fn lost(&mut self, wanted: &'a Value, nodes: &[&Value]) {
        // The root is never held as a whole: an empty tree there holds nothing.
        if !self.way.is_empty() && nodes.iter().any(|node| is_whole(node)) {
            return;
        }
        match wanted {
            Value::Object(map) => {
                for (name, value) in self.own_fields(map) {
                    self.way.push(Step::Field(name));
                    let below: Vec<&Value> =
                        nodes.iter().filter_map(|node| field(node, name)).collect();
                    // What is missing as a whole is named field by field: some of them may be others' to fill in.
                    let parts = value.as_object().is_some_and(|map| !map.is_empty());
                    if !below.is_empty() || parts {
                        self.lost(value, &below);
                    } else if !leaves_no_trace(value) {
                        self.note();
                    }
                    self.way.pop();
                }
            }
            Value::Array(list) => {
                for (index, entry) in list.iter().enumerate() {
                    let below: Vec<&Value> =
                        nodes.iter().filter_map(|node| entry_of(node, index, entry)).collect();
                    let words = words_of(nodes, index, entry);
                    self.way.push(Step::Entry { index, entry, words });
                    if below.is_empty() {
                        self.note();
                    } else {
                        self.lost(entry, &below);
                    }
                    self.way.pop();
                }
            }
            _ => {}
        }
    }

    fn held(&mut self, wanted: &'a Value, node: &Value) {
        if !self.way.is_empty() && is_whole(node) {
            self.note();
            return;
        }
        match wanted {
            Value::Object(map) => {
                for (name, value) in self.own_fields(map) {
                    if let Some(below) = field(node, name) {
                        self.way.push(Step::Field(name));
                        self.held(value, below);
                        self.way.pop();
                    }
                }
            }
            Value::Array(list) => {
                for (index, entry) in list.iter().enumerate() {
                    if let Some(below) = entry_of(node, index, entry) {
                        let words = words_of(&[node], index, entry);
                        self.way.push(Step::Entry { index, entry, words });
                        self.held(entry, below);
                        self.way.pop();
                    }
                }
            }
            // Something below a plain value: the tree is of another version of the kind.
            _ => self.note(),
        }
    }

    /// The fields that can be held at all: not what the server keeps for itself, nor the status, which is another's
    /// to write, nor what is null and so not there.
    fn own_fields(&self, map: &'a Map<String, Value>) -> Vec<(&'a str, &'a Value)> {
        let unheld = |name: &str| match self.way[..] {
            [] => matches!(name, "apiVersion" | "kind" | "status"),
            [Step::Field("metadata")] => UNHELD.contains(&name),
            _ => false,
        };
        let fields = map.iter().filter(|(name, value)| !unheld(name) && !value.is_null());
        fields.map(|(name, value)| (name.as_str(), value)).collect()
    }
}

/// Whether nothing is below: then it is held as a whole.
fn is_whole(node: &Value) -> bool {
    node.as_object().is_none_or(Map::is_empty)
}

/// An empty list of entries with keys is in nobody's tree.
fn leaves_no_trace(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty)
}

fn field<'v>(node: &'v Value, name: &str) -> Option<&'v Value> {
    let map = node.as_object()?;
    let mut key = String::with_capacity(name.len() + 2);
    key.push_str("f:");
    key.push_str(name);
    map.get(&key)
}

/// The node of a list's entry: by its keys, where the server fills in those that the entry leaves out; by its value; or
/// by its index.
fn entry_of<'v>(node: &'v Value, index: usize, entry: &Value) -> Option<&'v Value> {
    let map = node.as_object()?;
    let mut best: Option<(usize, &Value)> = None;
    for (key, below) in map {
        let fit = match key.split_once(':') {
            Some(("k", keys)) => fit_of_keys(keys, entry),
            Some(("v", value)) => {
                serde_json::from_str::<Value>(value).ok().filter(|v| v == entry).map(|_| 1)
            }
            Some(("i", number)) => (number.parse() == Ok(index)).then_some(1),
            _ => None,
        };
        if let Some(fit) = fit.filter(|fit| best.is_none_or(|(other, _)| *fit > other)) {
            best = Some((fit, below));
        }
    }
    best.map(|(_, below)| below)
}

/// How many of the keys an entry says itself; none if it says one otherwise, or no key at all.
fn fit_of_keys(keys: &str, entry: &Value) -> Option<usize> {
    let keys: Map<String, Value> = serde_json::from_str(keys).ok()?;
    let mut fit = 0;
    for (name, value) in &keys {
        match entry.get(name) {
            Some(said) if said == value => fit += 1,
            Some(_) => return None,
            None => {}
        }
    }
    (fit > 0).then_some(fit)
}

/// How the server names an entry of the list at these nodes.
fn words_of(nodes: &[&Value], index: usize, entry: &Value) -> String {
    let element = nodes
        .iter()
        .filter_map(|node| node.as_object())
        .flat_map(Map::keys)
        .find_map(|key| key.split_once(':').filter(|(sort, _)| matches!(*sort, "k" | "v")));
    match element {
        Some(("k", keys)) => {
            let names: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let said = |name: &String| entry.get(name).map(|value| format!("{name}={value}"));
            let said: Vec<String> = names.keys().filter_map(said).collect();
            if said.is_empty() { index.to_string() } else { said.join(",") }
        }
        Some(_) if !entry.is_object() && !entry.is_array() => format!("={entry}"),
        _ => index.to_string(),
    }
}

#[cfg(test)]
mod tests;
