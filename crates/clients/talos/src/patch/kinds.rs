//! The kinds of documents that Talos knows, with the keys at their top; Talos refuses all others, and so do we.

use castle_talos_proto::document;
use serde_json::Value;

use super::MAIN;
use crate::config::Contract;

fn keys(kind: &str, contract: Contract) -> Option<&'static str> {
    document::keys(kind, contract >= Contract::V1_14)
}

/// Whether Talos knows this kind of document.
pub(super) fn is_kind(kind: &str, contract: Contract) -> bool {
    keys(kind, contract).is_some()
}

/// The first key at the top of a document, or in the parts of the main one, that Talos does not know.
pub(super) fn unknown(document: &Value, kind: &str, contract: Contract) -> Option<String> {
    if kind == MAIN {
        return document::MAIN.iter().find_map(|(part, keys)| {
            let value = if part.is_empty() { document } else { &document[*part] };
            let key = stray(value, keys)?;
            Some(if part.is_empty() { key } else { format!("{part}.{key}") })
        });
    }
    stray(document, &format!("apiVersion kind {}", keys(kind, contract)?))
}

fn stray(value: &Value, keys: &str) -> Option<String> {
    let unknown = |key: &&String| !keys.split(' ').any(|known| known == *key);
    value.as_object()?.keys().find(unknown).cloned()
}
