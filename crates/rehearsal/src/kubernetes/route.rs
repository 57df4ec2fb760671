//! What a request asks for: path and query taken apart.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::kinds::Resource;
use super::refuse::No;
use super::selector::Labels;

/// A path below `/api` or `/apis`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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

/// The query, decoded. Of what is named more than once, the first counts.
#[derive(Debug, Default)]
pub(super) struct Query(BTreeMap<String, Vec<String>>);

impl Query {
    pub(super) fn parse(text: &str) -> Self {
        let mut query = Self::default();
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            // What is not written as a query is passed over.
            if let (Some(name), Some(value)) = (decoded(name), decoded(value)) {
                query.0.entry(name).or_default().push(value);
            }
        }
        query
    }

    pub(super) fn get(&self, name: &str) -> &str {
        self.all(name).first().map_or("", String::as_str)
    }

    /// All values of one name.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether something is asked for: whatever is not `false` or `0` does.
    pub(super) fn is(&self, name: &str) -> bool {
        let text = self.get(name);
        self.has(name) && text != "0" && !text.eq_ignore_ascii_case("false")
    }

    pub(super) fn dry_run(&self) -> bool {
        self.has("dryRun")
    }
}

fn decoded(part: &str) -> Option<String> {
    let hex = |part: &str| part.bytes().take(2).filter(u8::is_ascii_hexdigit).count() == 2;
    let written = part.split('%').skip(1).all(hex);
    let plain = || percent_decode_str(&part.replace('+', " ")).decode_utf8_lossy().into_owned();
    written.then(plain)
}

/// Which objects of a kind are meant.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Selector {
    labels: Labels,
    /// Path, whether it must be the value, value.
    fields: Vec<(String, bool, String)>,
}

/// Fields that objects of a kind can be selected by, beside their names.
const SELECTABLE: &[(&str, &[&str])] = &[
    (
        "Event",
        &[
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.uid",
            "reason",
            "type",
        ],
    ),
    ("Job", &["status.successful"]),
    ("Namespace", &["status.phase"]),
    ("Node", &["spec.unschedulable"]),
    (
        "Pod",
        &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
        ],
    ),
    ("ReplicaSet", &["status.replicas"]),
    ("Secret", &["type"]),
    ("Service", &["spec.clusterIP", "spec.type"]),
];

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, No> {
        let labels = Labels::parse(query.get("labelSelector")).map_err(No::bad)?;
        let mut selector = Self { labels, fields: Vec::new() };
        let text = query.get("fieldSelector");
        for part in text.split(',').filter(|part| !part.is_empty()) {
            let (path, equal, value) = if let Some((path, value)) = part.split_once("!=") {
                (path, false, value)
            } else if let Some((path, value)) = part.split_once('=') {
                (path, true, value.strip_prefix('=').unwrap_or(value))
            } else {
                let why = format!("invalid selector: '{text}'; can't understand '{part}'");
                return Err(No::bad(why));
            };
            if value.contains('=') {
                let why = "invalid field selector: unescaped character in value: 61";
                return Err(No::bad(why));
            }
            let own = SELECTABLE.iter().find(|(kind, _)| *kind == resource.kind);
            let own = own.map_or(&[][..], |(_, paths)| paths);
            if !matches!(path, "metadata.name" | "metadata.namespace") && !own.contains(&path) {
                let plain = format!("field label not supported: {path}");
                let message = format!(
                    "Unable to find {:?} that match label selector {:?}, field selector {:?}: {plain}",
                    format!("{}, Resource={}", resource.api_version(), resource.plural),
                    query.get("labelSelector"),
                    query.get("fieldSelector"),
                );
                return Err(No::bad(message));
            }
            selector.fields.push((path.to_owned(), equal, value.to_owned()));
        }
        Ok(selector)
    }

    /// The same, of one name only.
    pub(super) fn named(mut self, name: Option<&str>) -> Self {
        if let Some(name) = name {
            self.fields.push(("metadata.name".to_owned(), true, name.to_owned()));
        }
        self
    }

    /// Whether every object is meant.
    pub(super) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        self.labels.match_object(object)
            && self.fields.iter().all(|(path, equal, value)| {
                let at = format!("/{}", path.replace('.', "/"));
                let there = object.pointer(&at).and_then(Value::as_str).unwrap_or_default();
                (there == value) == *equal
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
        let kind = Resource::default();
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
            ("fieldSelector=metadata.name!=y", true),
            ("labelSelector=a+in+(1,2),b%2Fc", true),
            ("labelSelector=a+notin+(1,2)", false),
            ("labelSelector=c+notin+(1)", true),
            ("labelSelector=a>0", true),
            ("labelSelector=a<1", false),
            ("labelSelector=a+in+(,2)", false),
            ("labelSelector=%zz", true),
        ] {
            let selector = Selector::parse(&Query::parse(text), &kind).unwrap();
            assert_eq!(selector.matches(&object), wanted, "{text}");
        }
        for (text, why) in [
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a==1=", "found '=', expected: ',' or 'end of string'"),
            ("a===", "unable to parse requirement: found '=', expected: identifier"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            (",", "found ',', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            (
                "a!",
                "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
            ),
        ] {
            assert_eq!(Labels::parse(text).unwrap_err(), why, "{text}");
        }
        let no = Selector::parse(&Query::parse("fieldSelector=spec.x=1"), &kind).unwrap_err();
        assert!(no.message.ends_with("field label not supported: spec.x"), "{}", no.message);
    }
}
