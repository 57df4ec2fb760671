//! The paths of columns: the simple part of JSONPath that definitions use.

use serde_json::Value;

/// The first value at a path such as `.status.conditions[?(@.type=="Ready")].status`.
pub(super) fn first<'v>(path: &str, value: &'v Value) -> Option<&'v Value> {
    let path = path.trim().trim_start_matches('{').trim_end_matches('}');
    all(path.trim_start_matches('$'), vec![value]).into_iter().find(|found| !found.is_null())
}

fn all<'v>(path: &str, mut found: Vec<&'v Value>) -> Vec<&'v Value> {
    let mut rest = path;
    while !rest.is_empty() && !found.is_empty() {
        if let Some(after) = rest.strip_prefix('[') {
            let Some(end) = closing(after) else { return Vec::new() };
            let inner = &after[..end];
            rest = &after[end + 1..];
            found = found.into_iter().flat_map(|value| chosen(inner, value)).collect();
        } else {
            let (name, after) = name(rest.strip_prefix('.').unwrap_or(rest));
            rest = after;
            found = found.into_iter().filter_map(|value| value.get(&name)).collect();
        }
    }
    found
}

/// Where a bracket closes: not inside of quotes.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (character, quote) {
            ('"' | '\'', None) => quote = Some(character),
            (']', None) => return Some(at),
            _ if quote == Some(character) => quote = None,
            _ => {}
        }
    }
    None
}

/// The name that a path begins with, and the rest; `\.` is a dot in a name.
fn name(path: &str) -> (String, &str) {
    let mut name = String::new();
    let mut characters = path.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => name.extend(characters.next().map(|(_, escaped)| escaped)),
            '.' | '[' => return (name, &path[at..]),
            _ => name.push(character),
        }
    }
    (name, "")
}

/// What brackets choose: an index, all, a name, or those that a comparison holds for.
fn chosen<'v>(inner: &str, value: &'v Value) -> Vec<&'v Value> {
    let inner = inner.trim();
    if let Ok(index) = inner.parse::<usize>() {
        return value.get(index).into_iter().collect();
    }
    let entries = || value.as_array().into_iter().flatten();
    if inner == "*" {
        return entries().collect();
    }
    let Some(test) = inner.strip_prefix("?(").and_then(|test| test.strip_suffix(')')) else {
        return value.get(unquoted(inner)).into_iter().collect();
    };
    let Some((path, wanted)) = test.split_once("==") else { return Vec::new() };
    let path = path.trim().trim_start_matches('@');
    let holds = |entry: &&Value| {
        first(path, entry).is_some_and(|found| match found {
            Value::String(text) => text == unquoted(wanted),
            other => serde_json::from_str::<Value>(unquoted(wanted)).is_ok_and(|w| w == *other),
        })
    };
    entries().filter(holds).collect()
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}
