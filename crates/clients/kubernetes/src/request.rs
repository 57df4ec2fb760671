//! Where things are: the paths and queries of the API.

use std::fmt::Write;

use serde_json::Value;

/// A kind as discovery shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kind {
    /// Group and version.
    pub(crate) api_version: String,
    /// Its name in objects: `Deployment`.
    pub(crate) name: String,
    /// Its name in paths: `deployments`.
    pub(crate) plural: String,
    /// Whether its objects live in namespaces.
    pub(crate) namespaced: bool,
    /// Whether its objects can be listed.
    pub(crate) listed: bool,
}

impl Kind {
    /// The place of a group and version: `/api/v1`, `/apis/apps/v1`.
    pub(crate) fn prefix(api_version: &str) -> String {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        format!("/{root}/{}", escaped(api_version, true))
    }
}

/// A kind, in one namespace or in all.
pub(crate) struct KindPath<'a> {
    pub(crate) kind: Kind,
    pub(crate) namespace: Option<&'a str>,
}

impl KindPath<'_> {
    /// The place of all of its objects.
    pub(crate) fn all(&self) -> String {
        let prefix = Kind::prefix(&self.kind.api_version);
        match self.namespace.filter(|_| self.kind.namespaced) {
            Some(namespace) => {
                format!("{prefix}/namespaces/{}/{}", escaped(namespace, false), self.kind.plural)
            }
            None => format!("{prefix}/{}", self.kind.plural),
        }
    }

    /// The place of one object. What names no namespace but needs one is in `default`.
    pub(crate) fn one(&self, name: &str) -> String {
        let namespace = self.namespace.or(Some("default"));
        let placed = KindPath { kind: self.kind.clone(), namespace };
        format!("{}/{}", placed.all(), escaped(name, false))
    }
}

/// The kinds in the answer to discovery, without subresources.
pub(crate) fn kinds_of(api_version: &str, reply: &Value) -> Vec<Kind> {
    let resources = reply.get("resources").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    resources
        .iter()
        .filter_map(|resource| {
            let plural = resource.get("name")?.as_str()?;
            (!plural.contains('/')).then_some(())?;
            Some(Kind {
                api_version: api_version.to_owned(),
                name: resource.get("kind")?.as_str()?.to_owned(),
                plural: plural.to_owned(),
                namespaced: resource.get("namespaced")?.as_bool()?,
                listed: resource
                    .get("verbs")
                    .and_then(Value::as_array)
                    .is_some_and(|verbs| verbs.iter().any(|verb| verb == "list")),
            })
        })
        .collect()
}

/// A query of the parts that are not empty, with its `?`.
pub(crate) fn query(parts: &[(&str, &str)]) -> String {
    let mut text = String::new();
    for (key, value) in parts.iter().filter(|(_, value)| !value.is_empty()) {
        let lead = if text.is_empty() { '?' } else { '&' };
        // Writing to a String cannot fail.
        let _ = write!(text, "{lead}{key}={}", escaped(value, false));
    }
    text
}

fn escaped(text: &str, slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let plain =
            byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) || (slash && byte == b'/');
        if plain {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(api_version: &str, plural: &str, namespaced: bool, namespace: Option<&str>) -> String {
        let kind = Kind {
            api_version: api_version.into(),
            name: String::new(),
            plural: plural.into(),
            namespaced,
            listed: true,
        };
        KindPath { kind, namespace }.one("x")
    }

    #[test]
    fn places() {
        assert_eq!(path("v1", "pods", true, Some("a")), "/api/v1/namespaces/a/pods/x");
        assert_eq!(path("v1", "pods", true, None), "/api/v1/namespaces/default/pods/x");
        assert_eq!(path("v1", "nodes", false, Some("a")), "/api/v1/nodes/x");
        assert_eq!(
            path("apps/v1", "deployments", true, Some("a")),
            "/apis/apps/v1/namespaces/a/deployments/x"
        );
        assert_eq!(
            query(&[("a", ""), ("labelSelector", "castle.dev/castle=blue"), ("b", "1")]),
            "?labelSelector=castle.dev%2Fcastle%3Dblue&b=1"
        );
    }

    #[test]
    fn subresources_are_no_kinds() {
        let reply = json!({"resources": [
            {"name": "pods", "kind": "Pod", "namespaced": true},
            {"name": "pods/status", "kind": "Pod", "namespaced": true},
        ]});
        assert_eq!(kinds_of("v1", &reply).len(), 1);
    }
}
