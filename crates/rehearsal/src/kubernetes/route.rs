//! What a request asks for: path and query taken apart.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

/// A path below `/api` or `/apis`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Route {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    /// Empty for the whole cluster, or for all namespaces.
    pub(super) namespace: String,
    pub(super) name: Option<String>,
    pub(super) subresource: Option<String>,
}

impl Route {
    /// Takes a path apart; none if it is no path of objects. The plural is empty for a whole group and version.
    pub(super) fn parse(path: &str) -> Option<Self> {
        let decoded: Vec<String> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
            .collect();
        let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let mut route =
            Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        let rest = match rest {
            ["namespaces", namespace, plural, rest @ ..] if !is_subresource(plural) => {
                (*namespace).clone_into(&mut route.namespace);
                (*plural).clone_into(&mut route.plural);
                rest
            }
            [plural, rest @ ..] => {
                (*plural).clone_into(&mut route.plural);
                rest
            }
            [] => return Some(route),
        };
        match rest {
            [] => {}
            [name] => route.name = Some((*name).to_owned()),
            [name, subresource] => {
                route.name = Some((*name).to_owned());
                route.subresource = Some((*subresource).to_owned());
            }
            _ => return None,
        }
        Some(route)
    }
}

/// `/api/v1/namespaces/x/status` is about the namespace itself.
fn is_subresource(part: &str) -> bool {
    matches!(part, "status" | "finalize")
}

/// The query, decoded.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let decode = |part: &str| {
            percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned()
        };
        Self(
            text.split('&')
                .filter(|part| !part.is_empty())
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .map(|(name, value)| (decode(name), decode(value)))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(super) fn is(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1")
    }

    pub(super) fn dry_run(&self) -> bool {
        self.get("dryRun") == "All"
    }
}

/// Which objects of a kind are meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Selector {
    labels: Vec<(String, bool, Option<String>)>,
    fields: Vec<(String, String)>,
}

impl Selector {
    /// Reads `labelSelector` (equality and presence) and `fieldSelector` (equality).
    pub(super) fn parse(query: &Query) -> Self {
        let label = |part: &str| {
            let part = part.trim();
            if let Some((name, value)) = part.split_once("!=") {
                return (name.trim().to_owned(), false, Some(value.trim().to_owned()));
            }
            if let Some((name, value)) = part.split_once('=') {
                let value = value.trim_start_matches('=').trim();
                return (name.trim().to_owned(), true, Some(value.to_owned()));
            }
            match part.strip_prefix('!') {
                Some(name) => (name.to_owned(), false, None),
                None => (part.to_owned(), true, None),
            }
        };
        let parts = |text: &str| -> Vec<String> {
            text.split(',').filter(|p| !p.trim().is_empty()).map(str::to_owned).collect()
        };
        Self {
            labels: parts(query.get("labelSelector")).iter().map(|p| label(p)).collect(),
            fields: parts(query.get("fieldSelector"))
                .iter()
                .filter_map(|p| p.split_once('='))
                .map(|(path, value)| (path.to_owned(), value.trim_start_matches('=').to_owned()))
                .collect(),
        }
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = &object["metadata"]["labels"];
        self.labels.iter().all(|(name, wanted, value)| {
            let there = labels[name.as_str()].as_str();
            let matching = match value {
                Some(value) => there == Some(value),
                None => there.is_some(),
            };
            matching == *wanted
        }) && self.fields.iter().all(|(path, value)| {
            let at = format!("/{}", path.replace('.', "/"));
            object.pointer(&at).and_then(Value::as_str).unwrap_or_default() == value
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths() {
        let shown = |path: &str| {
            Route::parse(path).map(|r| {
                format!(
                    "{}|{}|{}|{}|{:?}|{:?}",
                    r.group, r.version, r.plural, r.namespace, r.name, r.subresource
                )
            })
        };
        assert_eq!(shown("/api/v1/namespaces/a/pods/b").unwrap(), "|v1|pods|a|Some(\"b\")|None");
        assert_eq!(shown("/api/v1/namespaces/a").unwrap(), "|v1|namespaces||Some(\"a\")|None");
        assert_eq!(
            shown("/api/v1/namespaces/a/status").unwrap(),
            "|v1|namespaces||Some(\"a\")|Some(\"status\")"
        );
        assert_eq!(shown("/apis/apps/v1/deployments").unwrap(), "apps|v1|deployments||None|None");
        assert_eq!(shown("/apis/apps/v1").unwrap(), "apps|v1|||None|None");
        assert_eq!(shown("/readyz"), None);
    }

    #[test]
    fn selectors() {
        let object = json!({"metadata": {"name": "x", "labels": {"a": "1", "b/c": "2"}}});
        for (text, wanted) in [
            ("labelSelector=a%3D1", true),
            ("labelSelector=a==1,b%2Fc=2", true),
            ("labelSelector=a=2", false),
            ("labelSelector=a!=1", false),
            ("labelSelector=a", true),
            ("labelSelector=!a", false),
            ("fieldSelector=metadata.name%3Dx", true),
            ("fieldSelector=metadata.name=y", false),
        ] {
            assert_eq!(Selector::parse(&Query::parse(text)).matches(&object), wanted, "{text}");
        }
    }
}
