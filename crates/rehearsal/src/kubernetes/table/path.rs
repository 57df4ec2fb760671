//! The paths of columns: the part of JSONPath that stands in definitions.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

/// The operators of filters, those first that begin with another one.
const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

/// The first value at a path such as `.status.conditions[?(@.type=="Ready")].status`.
pub(super) fn first<'v>(path: &str, value: &'v Value) -> Option<&'v Value> {
    all(path.trim(), vec![value]).into_iter().next()
}

/// A value as a column of text shows it: objects and lists as JSON, their names in order.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "<no value>".to_owned(),
        Value::String(text) => text.clone(),
        // Go writes these three so that a page could hold them.
        Value::Array(_) | Value::Object(_) => ordered(value)
            .to_string()
            .replace('<', "\\u003c")
            .replace('>', "\\u003e")
            .replace('&', "\\u0026"),
        Value::Number(number) if number.is_f64() => number.as_f64().unwrap_or_default().to_string(),
        other => other.to_string(),
    }
}

fn ordered(value: &Value) -> Value {
    match value {
        Value::Array(list) => list.iter().map(ordered).collect(),
        Value::Object(map) => {
            let sorted: BTreeMap<&String, &Value> = map.iter().collect();
            sorted.into_iter().map(|(name, value)| (name.clone(), ordered(value))).collect()
        }
        other => other.clone(),
    }
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
            found = match name.as_str() {
                "" => found,
                "*" => found.into_iter().flat_map(every).collect(),
                _ => found.into_iter().filter_map(|value| value.get(&name)).collect(),
            };
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

/// Everything directly below a value.
fn every(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(list) => list.iter().collect(),
        Value::Object(map) => map.iter().collect::<BTreeMap<_, _>>().into_values().collect(),
        _ => Vec::new(),
    }
}

/// What brackets choose: an index, a part, all, a name, or those that a comparison holds for.
fn chosen<'v>(inner: &str, value: &'v Value) -> Vec<&'v Value> {
    let inner = inner.trim();
    if inner == "*" {
        return every(value);
    }
    if let Some(test) = inner.strip_prefix("?(").and_then(|test| test.strip_suffix(')')) {
        let entries = value.as_array().into_iter().flatten();
        return entries.filter(|entry| holds(test, entry)).collect();
    }
    if inner.starts_with(['"', '\'']) {
        return value.get(unquoted(inner)).into_iter().collect();
    }
    let Some(list) = value.as_array() else { return Vec::new() };
    // An index from the end is a negative number.
    let place = |text: &str, missing: usize| match text.trim().parse::<isize>() {
        Ok(number) if number < 0 => list.len().checked_sub(number.unsigned_abs()),
        Ok(number) => usize::try_from(number).ok(),
        Err(_) => text.trim().is_empty().then_some(missing),
    };
    match inner.split_once(':') {
        Some((from, to)) => {
            let (from, to) = (place(from, 0), place(to, list.len()));
            let part = from.zip(to).and_then(|(from, to)| list.get(from..to.min(list.len())));
            part.into_iter().flatten().collect()
        }
        None if inner.is_empty() => Vec::new(),
        None => place(inner, 0).and_then(|index| list.get(index)).into_iter().collect(),
    }
}

/// Whether a comparison holds for an entry; a path alone asks whether there is something.
fn holds(test: &str, entry: &Value) -> bool {
    let found = |path: &str| first(path.trim().trim_start_matches('@'), entry).cloned();
    let Some((at, operator)) = operator(test) else { return found(test).is_some() };
    let side = |text: &str| match text.trim() {
        path if path.starts_with('@') => found(path),
        text if text.starts_with(['"', '\'']) => Some(unquoted(text).into()),
        text => serde_json::from_str(text).ok(),
    };
    let (Some(left), Some(right)) = (side(&test[..at]), side(&test[at + operator.len()..])) else {
        return false;
    };
    let order = match (&left, &right) {
        (Value::Number(left), Value::Number(right)) => left.as_f64().partial_cmp(&right.as_f64()),
        (Value::String(left), Value::String(right)) => Some(left.cmp(right)),
        (Value::Bool(left), Value::Bool(right)) => Some(left.cmp(right)),
        _ => None,
    };
    order.is_some_and(|order| match operator {
        "==" => order == Ordering::Equal,
        "!=" => order != Ordering::Equal,
        "<=" => order != Ordering::Greater,
        ">=" => order != Ordering::Less,
        "<" => order == Ordering::Less,
        _ => order == Ordering::Greater,
    })
}

/// The operator of a comparison and where it is.
fn operator(test: &str) -> Option<(usize, &'static str)> {
    let at = test.find(['=', '!', '<', '>'])?;
    OPERATORS.into_iter().find(|known| test[at..].starts_with(known)).map(|known| (at, known))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}
