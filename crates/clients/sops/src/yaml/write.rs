//! Tree to YAML text, laid out as sops lays it out. Whatever could be taken for something else is quoted.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use castle_model::Secret;

use crate::scalar;
use crate::tree::{Branch, Element, Item, List, Value};

/// How far each level is indented; sops' own default.
const INDENT: usize = 4;

/// Unquoted words that older readers take for booleans.
const OLD_BOOLEANS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];

/// Writes documents one after the other.
pub(crate) fn write(documents: &[Branch]) -> String {
    let mut out = String::new();
    for (number, document) in documents.iter().enumerate() {
        if number > 0 {
            out.push_str("---\n");
        }
        branch(&mut out, document, 0, "");
        if document.is_bare() {
            out.push_str("{}\n");
        }
    }
    out
}

fn margin(out: &mut String, column: usize) {
    out.extend(std::iter::repeat_n(' ', column));
}

fn comment(out: &mut String, text: &Secret, column: usize) {
    for line in text.expose().split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']) {
        margin(out, column);
        out.push('#');
        out.push_str(line);
        out.push('\n');
    }
}

/// Writes a mapping. The first entry may stand behind a dash, which is then the lead of its line.
fn branch(out: &mut String, branch: &Branch, column: usize, lead: &str) {
    let mut lead = lead;
    for item in &branch.0 {
        match item {
            // Before the dash there is no room for a comment of the mapping: it would be one of the list.
            Item::Comment(text) => comment(out, text, column - lead.len()),
            Item::Entry(key, value) => {
                bare_comments(out, value, column - lead.len());
                margin(out, column - lead.len());
                out.push_str(lead);
                lead = "";
                text(out, key, None);
                out.push(':');
                entry(out, value, column);
            }
        }
    }
}

/// Comments in an empty collection have no place inside it.
fn bare_comments(out: &mut String, value: &Value, column: usize) {
    match value {
        Value::Branch(branch) if branch.is_bare() => {
            for item in &branch.0 {
                if let Item::Comment(text) = item {
                    comment(out, text, column);
                }
            }
        }
        Value::List(list) if list.is_bare() => {
            for element in &list.0 {
                if let Element::Comment(text) = element {
                    comment(out, text, column);
                }
            }
        }
        _ => {}
    }
}

fn entry(out: &mut String, value: &Value, column: usize) {
    match value {
        Value::Branch(inner) if !inner.is_bare() => {
            out.push('\n');
            branch(out, inner, column + INDENT, "");
        }
        Value::List(inner) if !inner.is_bare() => {
            out.push('\n');
            list(out, inner, column + INDENT, "");
        }
        value => {
            out.push(' ');
            leaf(out, value, column + INDENT);
            out.push('\n');
        }
    }
}

fn list(out: &mut String, list: &List, column: usize, lead: &str) {
    let mut lead = lead.to_owned();
    for element in &list.0 {
        match element {
            Element::Comment(text) => comment(out, text, column - lead.len()),
            Element::Value(value) => {
                bare_comments(out, value, column - lead.len());
                lead.push_str("- ");
                match value {
                    Value::Branch(inner) if !inner.is_bare() => {
                        branch(out, inner, column + 2, &lead);
                    }
                    Value::List(inner) if !inner.is_bare() => {
                        self::list(out, inner, column + 2, &lead);
                    }
                    value => {
                        margin(out, column + 2 - lead.len());
                        out.push_str(&lead);
                        leaf(out, value, column + INDENT);
                        out.push('\n');
                    }
                }
                lead.clear();
            }
        }
    }
}

fn leaf(out: &mut String, value: &Value, column: usize) {
    let written = match value {
        Value::Text(secret) => return text(out, secret.expose(), Some(column)),
        Value::Integer(number) => write!(out, "{number}"),
        Value::Float(number) if number.is_nan() => write!(out, ".nan"),
        Value::Float(f64::INFINITY) => write!(out, ".inf"),
        Value::Float(f64::NEG_INFINITY) => write!(out, "-.inf"),
        // `Debug` keeps the point, so that it is read as a float again.
        Value::Float(number) => write!(out, "{number:?}"),
        Value::Boolean(truth) => write!(out, "{truth}"),
        Value::Null => write!(out, "null"),
        Value::Bytes(bytes) => write!(out, "!!binary {}", STANDARD.encode(bytes.expose())),
        Value::Time(moment) => write!(out, "{moment}"),
        Value::List(_) => write!(out, "[]"),
        Value::Branch(_) => write!(out, "{{}}"),
    };
    // A string takes whatever is written to it.
    debug_assert!(written.is_ok());
}

/// Writes a text in the plainest form that is read as the same text. A block needs a column; keys have none.
fn text(out: &mut String, text: &str, block: Option<usize>) {
    if is_plain(text) {
        out.push_str(text);
        return;
    }
    let Some(column) = block.filter(|_| is_block(text)) else {
        return quoted(out, text);
    };
    out.push('|');
    let body = text.strip_suffix('\n').unwrap_or(text);
    if body.len() == text.len() {
        out.push('-');
    }
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            margin(out, column);
            out.push_str(line);
        }
    }
}

fn is_plain(text: &str) -> bool {
    let first = text.chars().next();
    let begins =
        first.is_some_and(|first| first.is_ascii_alphabetic() || matches!(first, '_' | '/'));
    let fits = |character: char| {
        character.is_ascii_alphanumeric() || " _./@%+=,:;()[]{}~!$^*&|<>?'\"-".contains(character)
    };
    begins
        && text.chars().all(fits)
        && !text.contains(": ")
        && !text.ends_with([' ', ':'])
        && !OLD_BOOLEANS.contains(&text.to_ascii_lowercase().as_str())
        && matches!(scalar::resolve(text), Some(Value::Text(_)))
}

fn is_block(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let clean = |line: &str| line.is_empty() || !line.trim().is_empty() && !line.starts_with('\t');
    body.contains('\n')
        && !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.split('\n').all(clean)
        && body.chars().all(|character| character == '\n' || is_printable(character))
}

fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            character if is_printable(character) => out.push(character),
            character => {
                let written = write!(out, "\\u{:04x}", u32::from(character));
                // A string takes whatever is written to it.
                debug_assert!(written.is_ok());
            }
        }
    }
    out.push('"');
}
