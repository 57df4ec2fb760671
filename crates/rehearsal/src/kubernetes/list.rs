//! Lists: all objects of a kind that a selector means, page by page, as they were when the first page was given.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kinds::Resource;
use super::refuse::No;
use super::route::{Query, Route, Selector};
use super::shown::Shown;
use super::table::Table;
use super::watch::Opening;
use super::{BOOKMARKS, Kubernetes, Work};
use crate::turn::{HttpBody, HttpReply, Turn};

/// What a page says when the place that it goes on from is no longer remembered.
const TOO_OLD: &str = "The provided continue parameter is too old to display a consistent list result. You can start \
    a new list without the continue parameter, or use the continue token in this response to retrieve the remainder \
    of the results. Continuing with the provided token results in an inconsistent list - objects that were created, \
    modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/// Where the next page begins.
#[derive(Debug, Serialize, Deserialize)]
struct Token {
    v: String,
    /// As of which change; -1 for as of now.
    rv: i64,
    /// After which object, without what all places begin with.
    start: String,
}

impl Token {
    fn new(rv: i64, start: &str) -> Self {
        Self { v: "meta.k8s.io/v1".to_owned(), rv, start: start.to_owned() }
    }

    fn read(text: &str) -> Result<Self, No> {
        let bytes = URL_SAFE_NO_PAD.decode(text).unwrap_or_default();
        let token = serde_json::from_slice::<Self>(&bytes).ok();
        token.filter(|token| token.v == "meta.k8s.io/v1" && token.rv != 0).ok_or_else(|| {
            let first = bytes.first().copied().unwrap_or_default();
            let shown = if first.is_ascii_graphic() {
                char::from(first).to_string()
            } else {
                format!("\\u{first:04x}")
            };
            No::bad(format!(
                "invalid continue token: continue key is not valid: invalid character '{shown}' looking for beginning of value"
            ))
        })
    }

    fn written(&self) -> String {
        URL_SAFE_NO_PAD.encode(crate::turn::json_bytes(self))
    }
}

/// In which form a list shows its objects.
#[derive(Debug, Clone)]
pub(super) enum Form {
    /// All of them.
    Whole,
    /// The rows of a table.
    Rows(Table),
    /// Only what is known of any object: names, labels, who owns which field.
    Metadata,
}

/// Objects by their places.
type Objects = BTreeMap<String, Arc<Value>>;

impl Kubernetes {
    /// Answers a list, or opens a watch.
    pub(super) fn list(
        &self,
        turn: &mut Turn<'_>,
        (resource, route): (&Resource, &Route),
        query: &Query,
        form: Form,
    ) -> Result<HttpReply, No> {
        let mut prefix = format!("{}/{}/", resource.group, resource.plural);
        if !route.namespace.is_empty() {
            prefix = format!("{prefix}{}/", route.namespace);
        }
        let selector = Selector::parse(query, resource)?.named(route.name.as_deref());
        if query.is("watch") {
            let opening = Opening::read(query);
            let table = if let Form::Rows(table) = form { Some(table) } else { None };
            let cursor = self.watch(resource, prefix, selector, &opening)?.in_rows(table);
            // Bookmarks end the longer ones.
            if let Some(lasts) = opening.lasts.filter(|lasts| *lasts < BOOKMARKS) {
                self.in_time(turn, lasts, Work::WatchEnds);
            }
            let mut reply = HttpReply::json(200, &Value::Null);
            reply.body = HttpBody::Watch(Box::new(cursor));
            return Ok(reply);
        }
        let (version, mut objects) = self.page(&prefix, query)?;
        objects.retain(|_, object| selector.matches(object));
        let limit = query.get("limit").parse::<usize>().ok().filter(|limit| *limit > 0);
        let mut metadata = json!({"resourceVersion": version.to_string()});
        if resource.custom {
            metadata["continue"] = "".into();
        }
        let all = objects.len();
        if let Some(limit) = limit.filter(|limit| *limit < all) {
            let last = objects.keys().nth(limit - 1).cloned().unwrap_or_default();
            let start = format!("{}\0", last.strip_prefix(&prefix).unwrap_or_default());
            metadata["continue"] = Token::new(number(version), &start).written().into();
            if selector.is_everything() {
                metadata["remainingItemCount"] = (all - limit).into();
            }
        }
        let shown = objects.values().take(limit.unwrap_or(all)).map(|object| &**object);
        match form {
            Form::Rows(table) => {
                return Ok(HttpReply::json(200, &table.of(self, &metadata, shown)));
            }
            Form::Metadata => return Ok(HttpReply::json(200, &only_metadata(&metadata, shown))),
            Form::Whole => {}
        }
        let api_version = resource.api_version();
        let shown = |object| {
            if resource.custom {
                Shown::alone(object, &api_version)
            } else {
                Shown::in_list(object)
            }
        };
        let items = objects.values().take(limit.unwrap_or(all)).map(|o| shown(o)).collect();
        let kind = format!("{}List", resource.kind);
        let list = List { api_version: &api_version, kind, metadata, items };
        Ok(HttpReply::json(200, &list))
    }

    /// The objects that are left to show, and as of which change.
    fn page(&self, prefix: &str, query: &Query) -> Result<(u64, Objects), No> {
        let now = self.store.version();
        let current = || self.store.under(prefix).map(|(k, o)| (k.clone(), o.clone())).collect();
        let text = query.get("continue");
        if text.is_empty() {
            let asked = match query.get("resourceVersion") {
                "" => 0,
                text => text.parse::<u64>().map_err(|_| {
                    No::bad(format!("invalid resource version: {}", super::watch::no_number(text)))
                })?,
            };
            if asked > now {
                return Err(No::too_large(asked, now));
            }
            if query.get("resourceVersionMatch") == "Exact" {
                let then = self.store.under_at(prefix, asked);
                let expired = "The resourceVersion for the provided list is too old.";
                return then.map(|o| (asked, o)).ok_or_else(|| No::new(410, "Expired", expired));
            }
            return Ok((now, current()));
        }
        let token = Token::read(text)?;
        let (version, mut objects) = match u64::try_from(token.rv) {
            Err(_) => (now, current()),
            Ok(version) => {
                let then = self.store.under_at(prefix, version).ok_or_else(|| {
                    let mut no = No::new(410, "Expired", TOO_OLD);
                    no.proceed = Some(Token::new(-1, &token.start).written());
                    no
                })?;
                (version, then)
            }
        };
        Ok((version, objects.split_off(&format!("{prefix}{}", token.start))))
    }
}

fn number(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The answer to a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a> {
    api_version: &'a str,
    kind: String,
    metadata: Value,
    items: Vec<Shown<'a>>,
}

fn only_metadata<'a>(metadata: &Value, objects: impl Iterator<Item = &'a Value>) -> Value {
    let version = "meta.k8s.io/v1";
    let item = |object: &Value| json!({"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": object["metadata"]});
    json!({
        "kind": "PartialObjectMetadataList", "apiVersion": version, "metadata": metadata,
        "items": objects.map(item).collect::<Vec<Value>>(),
    })
}
