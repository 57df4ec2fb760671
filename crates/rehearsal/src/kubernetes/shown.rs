//! Objects on their way out: written as they are stored, but for what says of which kind they are.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// One object as an answer shows it.
pub(super) struct Shown<'a> {
    object: &'a Value,
    /// The version that it was asked in; none where the list around it says it already.
    version: Option<&'a str>,
}

impl<'a> Shown<'a> {
    /// An object by itself, in the version that it was asked in.
    pub(super) fn alone(object: &'a Value, version: &'a str) -> Self {
        Self { object, version: Some(version) }
    }

    /// An entry of a list of a built-in kind: these leave out what all of their entries are.
    pub(super) fn in_list(object: &'a Value) -> Self {
        Self { object, version: None }
    }
}

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Value::Object(fields) = self.object else { return self.object.serialize(serializer) };
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in fields {
            match (name.as_str(), self.version) {
                ("apiVersion" | "kind", None) => {}
                ("apiVersion", Some(version)) => map.serialize_entry(name, version)?,
                _ => map.serialize_entry(name, value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_says_the_kind_differs() {
        let object = json!({"apiVersion": "a/v1", "kind": "Thing", "metadata": {"name": "x"}});
        let text = |shown: Shown<'_>| serde_json::to_string(&shown).unwrap();
        assert_eq!(
            text(Shown::alone(&object, "a/v2")),
            r#"{"apiVersion":"a/v2","kind":"Thing","metadata":{"name":"x"}}"#
        );
        assert_eq!(text(Shown::in_list(&object)), r#"{"metadata":{"name":"x"}}"#);
    }
}
