//! Watches: a place in the numbered changes, moved on whenever the world has changed.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::Resource;
use super::refuse::No;
use super::route::{Query, Selector};
use super::shown::Shown;
use super::store::Change;
use super::table::Table;
use super::{BOOKMARKS, Kubernetes};
use crate::turn::json_bytes;

/// How a client opens a watch.
pub(super) struct Opening {
    /// The change to go on from; empty or `0` for what is there now.
    from: String,
    bookmarks: bool,
    /// Whether it wants to be told where what is there ends.
    initial: bool,
    /// For how long, in milliseconds.
    pub(super) lasts: Option<u64>,
}

impl Opening {
    pub(super) fn read(query: &Query) -> Self {
        Self {
            from: query.get("resourceVersion").to_owned(),
            bookmarks: query.is("allowWatchBookmarks"),
            initial: query.is("sendInitialEvents"),
            lasts: query.get("timeoutSeconds").parse::<u64>().ok().map(|s| s * 1_000),
        }
    }
}

/// Where a watch stands.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchCursor {
    /// The cluster's birth; a watch does not survive another one.
    era: u64,
    /// What the places of its objects begin with.
    prefix: String,
    selector: Selector,
    api_version: String,
    kind: String,
    /// The last change that it has seen.
    version: u64,
    /// When it last sent anything, in virtual milliseconds.
    spoke: u64,
    bookmarks: bool,
    /// When it ends, in virtual milliseconds.
    ends: Option<u64>,
    over: bool,
    /// Objects to begin with, where no place was given.
    first: Vec<Arc<Value>>,
    /// Whether a bookmark must say where those end.
    marks_first: bool,
    /// The oldest change that is remembered of the kind, if that is not old enough.
    forgotten: Option<u64>,
    /// The table whose rows are sent instead of objects.
    table: Option<Table>,
}

impl WatchCursor {
    /// The same, telling rows of a table if one is wanted.
    pub(super) fn in_rows(self, table: Option<Table>) -> Self {
        Self { table, ..self }
    }

    fn line(&mut self, world: &Kubernetes, word: &str, object: &Value) -> Bytes {
        match &mut self.table {
            Some(table) => line(word, &table.next(world, object)),
            None => line(word, &Shown::alone(object, &self.api_version)),
        }
    }

    fn bookmark(&self, last_of_first: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.version.to_string()});
        if last_of_first {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let place =
            json!({"kind": self.kind, "apiVersion": self.api_version, "metadata": metadata});
        line("BOOKMARK", &place)
    }

    /// What a change is to this watch: an object that ceases to match its selector is gone from it.
    fn word(&self, change: &Change) -> Option<&'static str> {
        if !change.key.starts_with(&self.prefix) {
            return None;
        }
        let was = change.before.as_ref().is_some_and(|before| self.selector.matches(before));
        let is = !change.gone && self.selector.matches(&change.object);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }
}

impl Kubernetes {
    /// A watch from a resource version on; from now on, beginning with what is there, if it is empty or `0`.
    pub(super) fn watch(
        &self,
        resource: &Resource,
        prefix: String,
        selector: Selector,
        opening: &Opening,
    ) -> Result<WatchCursor, No> {
        let mut cursor = WatchCursor {
            era: self.era,
            prefix,
            selector,
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            version: self.store.version(),
            spoke: self.now,
            bookmarks: opening.bookmarks,
            ends: opening.lasts.map(|lasts| self.now + lasts),
            over: false,
            first: Vec::new(),
            marks_first: opening.initial,
            forgotten: None,
            table: None,
        };
        if opening.initial || matches!(opening.from.as_str(), "" | "0") {
            let there = self.store.under(&cursor.prefix).map(|(_, object)| object);
            cursor.first =
                there.filter(|object| cursor.selector.matches(object)).cloned().collect();
        } else {
            let from = &opening.from;
            cursor.version = from.parse().map_err(|_| No::new(500, "", no_number(from)))?;
            // What the server remembers of a defined kind begins with its definition.
            let definition = self.definition(resource);
            let born = definition.and_then(|d| {
                d["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse::<u64>().ok())
            });
            cursor.forgotten = born.filter(|born| cursor.version < *born);
        }
        Ok(cursor)
    }

    /// Forgets what came since a watch last spoke, so that it ends with 410.
    pub fn expire(&self, cursor: &mut WatchCursor) {
        cursor.forgotten = Some(self.store.version());
    }

    /// The lines that a watch has not sent yet; none when it is over.
    pub fn watch_lines(&self, cursor: &mut WatchCursor) -> Option<Vec<Bytes>> {
        if cursor.over || cursor.era != self.era {
            return None;
        }
        let mut lines: Vec<Bytes> = Vec::new();
        for object in std::mem::take(&mut cursor.first) {
            lines.push(cursor.line(self, "ADDED", &object));
        }
        if std::mem::take(&mut cursor.marks_first) {
            lines.push(cursor.bookmark(true));
        }
        let changes = self.store.since(cursor.version).filter(|_| cursor.forgotten.is_none());
        let Some(changes) = changes else {
            cursor.over = true;
            let oldest = cursor.forgotten.unwrap_or(self.store.oldest());
            let message = format!("too old resource version: {} ({oldest})", cursor.version);
            lines.push(line("ERROR", &No::new(410, "Expired", message).status()));
            return Some(lines);
        };
        for change in changes {
            if let Some(word) = cursor.word(change) {
                lines.push(cursor.line(self, word, &change.object));
            }
        }
        cursor.version = cursor.version.max(self.store.version());
        if lines.is_empty() && cursor.bookmarks && self.now >= cursor.spoke + BOOKMARKS {
            lines.push(cursor.bookmark(false));
        }
        if !lines.is_empty() {
            cursor.spoke = self.now;
        }
        if cursor.ends.is_some_and(|end| self.now >= end) {
            cursor.over = true;
            return (!lines.is_empty()).then_some(lines);
        }
        Some(lines)
    }
}

/// What the server says of a resource version that is no number.
pub(super) fn no_number(text: &str) -> String {
    format!(
        "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
    )
}

fn line(word: &str, object: &impl Serialize) -> Bytes {
    #[derive(Serialize)]
    struct Line<'a, T> {
        r#type: &'a str,
        object: &'a T,
    }
    let mut text = json_bytes(&Line { r#type: word, object });
    text.push(b'\n');
    Bytes::from(text)
}
