//! Sets of fields as `managedFields` writes them: a tree of `f:name`, `k:{"key":…}` and `v:"value"`.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// A set of fields of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    /// Whether this very field is in the set, not only some below it.
    pub(super) member: bool,
    /// By the element as it is written.
    pub(super) children: BTreeMap<String, Self>,
}

impl FieldSet {
    /// One field, and nothing below it.
    pub(super) fn leaf() -> Self {
        Self { member: true, children: BTreeMap::new() }
    }

    /// Reads `fieldsV1`.
    pub(super) fn read(fields: &Value) -> Self {
        let mut set = Self::default();
        for (element, below) in fields.as_object().into_iter().flatten() {
            if element == "." {
                set.member = true;
                continue;
            }
            let mut child = Self::read(below);
            child.member |= child.children.is_empty();
            set.children.insert(element.clone(), child);
        }
        set
    }

    /// Writes `fieldsV1`.
    pub(super) fn written(&self) -> Value {
        let mut fields = Map::new();
        if self.member && !self.children.is_empty() {
            fields.insert(".".to_owned(), Value::Object(Map::new()));
        }
        for (element, child) in &self.children {
            fields.insert(element.clone(), child.written());
        }
        Value::Object(fields)
    }

    pub(super) fn is_empty(&self) -> bool {
        !self.member && self.children.is_empty()
    }

    /// Adds a set below an element; an empty one is nothing.
    pub(super) fn insert(&mut self, element: String, below: Self) {
        if below.is_empty() {
            return;
        }
        match self.children.get_mut(&element) {
            Some(there) => there.add(below),
            None => {
                self.children.insert(element, below);
            }
        }
    }

    /// Adds every field of another set.
    pub(super) fn add(&mut self, other: Self) {
        self.member |= other.member;
        for (element, below) in other.children {
            self.insert(element, below);
        }
    }

    /// Takes out every field of another set.
    pub(super) fn subtract(&mut self, other: &Self) {
        self.member &= !other.member;
        for (element, below) in &other.children {
            if let Some(child) = self.children.get_mut(element) {
                child.subtract(below);
                if child.is_empty() {
                    self.children.remove(element);
                }
            }
        }
    }

    /// The fields that are in both.
    pub(super) fn common(&self, other: &Self) -> Self {
        let mut both = Self { member: self.member && other.member, children: BTreeMap::default() };
        for (element, child) in &self.children {
            if let Some(theirs) = other.children.get(element) {
                both.insert(element.clone(), child.common(theirs));
            }
        }
        both
    }

    /// The fields as the server writes them in messages, those of a level before those below them.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut found = Vec::new();
        self.collect("", &mut found);
        found
    }

    fn collect(&self, path: &str, found: &mut Vec<String>) {
        let shown = |element: &str| format!("{path}{}", spoken(element));
        let members = self.children.iter().filter(|(_, child)| child.member);
        found.extend(members.map(|(element, _)| shown(element)));
        for (element, child) in &self.children {
            child.collect(&shown(element), found);
        }
    }
}

/// `f:name` is `.name`, `k:{"name":"x"}` is `[name="x"]`, `v:"x"` is `[="x"]`.
pub(super) fn spoken(element: &str) -> String {
    match element.split_at(2) {
        ("k:", keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> =
                keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", keys.join(","))
        }
        ("v:", value) => format!("[={value}]"),
        (_, name) => format!(".{name}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(fields: &Value) -> FieldSet {
        FieldSet::read(fields)
    }

    #[test]
    fn what_is_written_is_read_again() {
        let fields = json!({
            "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}}},
            "f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {".": {}, "f:image": {}}}, "f:replicas": {}},
        });
        assert_eq!(read(&fields).written(), fields);
    }

    #[test]
    fn paths_are_spoken_as_the_server_does() {
        let fields = json!({
            "f:metadata": {"f:finalizers": {"v:\"a/b\"": {}}},
            "f:spec": {
                "f:ports": {"k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
                "f:type": {},
            },
        });
        assert_eq!(
            read(&fields).paths(),
            [
                ".metadata.finalizers[=\"a/b\"]",
                ".spec.type",
                ".spec.ports[port=80,protocol=\"TCP\"]",
                ".spec.ports[port=80,protocol=\"TCP\"].port",
            ]
        );
    }

    #[test]
    fn sets_are_added_taken_out_and_compared() {
        let one = read(&json!({"f:a": {".": {}, "f:b": {}}, "f:c": {}}));
        let two = read(&json!({"f:a": {"f:b": {}, "f:d": {}}}));
        assert_eq!(one.common(&two).written(), json!({"f:a": {"f:b": {}}}));
        let mut less = one.clone();
        less.subtract(&two);
        assert_eq!(less.written(), json!({"f:a": {}, "f:c": {}}));
        let mut more = one.clone();
        more.add(two);
        assert_eq!(more.written(), json!({"f:a": {".": {}, "f:b": {}, "f:d": {}}, "f:c": {}}));
        less.subtract(&one);
        assert!(less.is_empty());
    }
}
