//! Watches: a place in the numbered changes, moved on whenever the world has changed.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};

use super::kinds::Resource;
use super::refuse::No;
use super::route::Selector;
use super::shown::Shown;
use super::{BOOKMARKS, Kubernetes};
use crate::turn::json_bytes;

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
    over: bool,
    /// Objects to begin with, where no place was given.
    first: Vec<Arc<Value>>,
}

impl Kubernetes {
    /// A watch from a resource version on; from now on, beginning with what is there, if it is empty or `0`.
    pub(super) fn watch(
        &self,
        resource: &Resource,
        prefix: String,
        selector: Selector,
        (from, bookmarks): (&str, bool),
    ) -> Result<WatchCursor, No> {
        let mut cursor = WatchCursor {
            era: self.era,
            prefix,
            selector,
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            version: self.store.version(),
            spoke: self.now,
            bookmarks,
            over: false,
            first: Vec::new(),
        };
        if matches!(from, "" | "0") {
            let there = self.store.under(&cursor.prefix).map(|(_, object)| object);
            cursor.first =
                there.filter(|object| cursor.selector.matches(object)).cloned().collect();
        } else {
            cursor.version =
                from.parse().map_err(|_| No::bad(format!("invalid resource version {from:?}")))?;
        }
        Ok(cursor)
    }

    /// The lines that a watch has not sent yet; none when it is over.
    pub fn watch_lines(&self, cursor: &mut WatchCursor) -> Option<Vec<Bytes>> {
        if cursor.over || cursor.era != self.era {
            return None;
        }
        let mut lines: Vec<Bytes> = Vec::new();
        for object in std::mem::take(&mut cursor.first) {
            lines.push(line("ADDED", &Shown::alone(&object, &cursor.api_version)));
        }
        let Some(changes) = self.store.since(cursor.version) else {
            cursor.over = true;
            let message =
                format!("too old resource version: {} ({})", cursor.version, self.store.version());
            lines.push(line("ERROR", &No::new(410, "Expired", message).status()));
            return Some(lines);
        };
        for change in changes {
            if change.key.starts_with(&cursor.prefix) && cursor.selector.matches(&change.object) {
                let shown = Shown::alone(&change.object, &cursor.api_version);
                lines.push(line(change.word, &shown));
            }
        }
        cursor.version = self.store.version();
        if lines.is_empty() && cursor.bookmarks && self.now >= cursor.spoke + BOOKMARKS {
            let place = json!({
                "apiVersion": cursor.api_version, "kind": cursor.kind,
                "metadata": {"resourceVersion": cursor.version.to_string(), "creationTimestamp": null},
            });
            lines.push(line("BOOKMARK", &place));
        }
        if !lines.is_empty() {
            cursor.spoke = self.now;
        }
        Some(lines)
    }
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
