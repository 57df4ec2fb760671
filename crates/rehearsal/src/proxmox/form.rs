//! Reads the parameters of a call as Proxmox does, with its traps: `&` and `;` both part, every `=` cuts.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;
use serde_json::Value;

use super::reply::Refusal;
use crate::turn::HttpCall;

/// The parameters of a call by name.
pub(super) type Parameters = BTreeMap<String, String>;

/// Decodes one segment of a path.
pub(super) fn segment(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Collects the parameters of a call from its query or body.
pub(super) fn parameters(call: &HttpCall) -> Result<Parameters, Refusal> {
    let mut found = form(&call.query);
    if call.method == "GET" {
        return Ok(found);
    }
    if call.method == "DELETE" {
        if !call.body.is_empty() {
            let text = "Unexpected content for method 'DELETE'".to_owned();
            return Err(Refusal::Plain { status: 501, text });
        }
        return Ok(found);
    }
    let kind = call.header("content-type").unwrap_or_default();
    match kind.split([';', ',']).next().unwrap_or_default().trim_end() {
        _ if call.body.is_empty() => {}
        "application/json" => found.extend(json(&call.body)?),
        "" | "application/x-www-form-urlencoded" => {
            found.extend(form(&String::from_utf8_lossy(&call.body)));
        }
        _ => {
            let text = format!("upload 'Content-Type '{kind}' not implemented");
            return Err(Refusal::Plain { status: 506, text });
        }
    }
    Ok(found)
}

/// Splits a form. What stands after a second `=` is lost, and `;` starts a new parameter.
fn form(text: &str) -> Parameters {
    let mut found = Parameters::new();
    for pair in text.split(['&', ';']).filter(|pair| !pair.is_empty()) {
        let mut pieces = pair.split('=');
        let name = unescape(pieces.next().unwrap_or_default());
        found.insert(name, unescape(pieces.next().unwrap_or_default()));
    }
    found
}

fn unescape(text: &str) -> String {
    segment(&text.replace('+', " "))
}

fn json(body: &[u8]) -> Result<Parameters, Refusal> {
    if body.is_empty() {
        return Ok(Parameters::new());
    }
    let malformed = || {
        let text = String::from_utf8_lossy(body);
        let words = match text.strip_prefix('{') {
            Some(rest) => format!("'\"' expected, at character offset 1 (before \"{rest}\")"),
            None => {
                "malformed JSON string, neither tag, array, object, number, string or atom, at \
                     character offset 0"
                    .to_owned()
            }
        };
        let text = format!("{words} at /usr/share/perl5/PVE/APIServer/AnyEvent.pm line 934.");
        Refusal::Plain { status: 500, text }
    };
    let Ok(Value::Object(object)) = serde_json::from_slice(body) else { return Err(malformed()) };
    let mut found = Parameters::new();
    for (name, value) in object {
        let text = match value {
            Value::String(text) => text,
            Value::Bool(yes) => u8::from(yes).to_string(),
            Value::Number(number) => number.to_string(),
            Value::Null => continue,
            Value::Array(_) | Value::Object(_) => return Err(malformed()),
        };
        found.insert(name, text);
    }
    Ok(found)
}
