//! Bodies: read in the form that they come in, and refused in the server's words.

use serde_json::{Value, json};

use super::gojson::{self, Twice};
use super::kinds::Resource;
use super::options::media;
use super::refuse::No;
use super::twice;
use crate::turn::HttpCall;

/// What the server would read first of any object, as its language writes it.
const TYPED: &str = "struct { APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
const MAP: &str = "map[string]interface {}";

/// The fields of an operation of a patch.
const OPERATION: [&str; 4] = ["op", "path", "from", "value"];

/// How much of a body that can not be read is shown.
const SHOWN: usize = 30;

/// An object as it came, and which of its keys came twice.
pub(super) struct Sent {
    pub(super) object: Value,
    /// As the refusal, or the warning, tells them.
    pub(super) twice: Vec<String>,
}

/// The object that is to be made or replaced.
///
/// # Errors
/// Why it can not be read.
pub(super) fn object(call: &HttpCall, resource: &Resource) -> Result<Sent, No> {
    let kind = &resource.kind;
    let unreadable = |why: String| {
        let shown = summary(&call.body);
        No::bad(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({shown})"
        ))
    };
    let (value, twice) = if media(call) == "application/yaml" {
        let value = yaml(&call.body).map_err(&unreadable)?;
        let twice = twice::found(&String::from_utf8_lossy(&call.body));
        (value, twice.into_iter().collect())
    } else {
        let read = gojson::read(&call.body).map_err(|why| unreadable(untyped(&why)))?;
        (read.value, doubled("", &read.twice))
    };
    let object = match value {
        Value::Object(_) => value,
        Value::Null if resource.custom => value,
        Value::Null => json!({}),
        other => return Err(unreadable(untyped(&mistaken(&other, TYPED)))),
    };
    if resource.custom && object["kind"].as_str().is_none_or(str::is_empty) {
        let text = String::from_utf8_lossy(&call.body);
        return Err(unreadable(format!("Object 'Kind' is missing in '{text}'")));
    }
    Ok(Sent { object, twice })
}

/// The faults that keys which come twice are.
fn doubled(of: &str, twice: &[Twice]) -> Vec<String> {
    twice.iter().map(|twice| format!("{of}duplicate field {:?}", twice.path)).collect()
}

/// The configuration that is applied.
///
/// # Errors
/// Why it can not be read.
pub(super) fn applied(call: &HttpCall) -> Result<Sent, No> {
    let object = match gojson::read(&call.body) {
        Ok(read) if read.value.is_object() => read.value,
        _ => configuration(&call.body)?,
    };
    let twice = twice::found(&String::from_utf8_lossy(&call.body));
    Ok(Sent { object, twice: twice.into_iter().collect() })
}

fn configuration(body: &[u8]) -> Result<Value, No> {
    let value = yaml(body).map_err(|why| {
        No::bad(format!("error decoding YAML: error converting YAML to JSON: {why}"))
    })?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(json!({})),
        other => Err(No::bad(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: {}",
            mistaken(&other, MAP)
        ))),
    }
}

/// A patch of a media type, and which of its keys came twice or mean nothing.
///
/// # Errors
/// Why it can not be read.
pub(super) fn patch(call: &HttpCall) -> Result<Sent, No> {
    let (media, type_of) = (media(call), "[]handlers.jsonPatchOp");
    let strategic = media == "application/strategic-merge-patch+json";
    let no =
        |why: String| No::bad(if strategic { why } else { format!("error decoding patch: {why}") });
    let gojson::Read { value, twice } = gojson::read(&call.body).map_err(no)?;
    let operations = media == "application/json-patch+json";
    let mut faults = doubled(if operations { "json patch " } else { "" }, &twice);
    if operations {
        faults.extend(unknown(&value));
        // The server puts values where they belong as they are, and reads the object afterwards.
        faults.extend(twice.iter().filter_map(|twice| within(&value, &twice.path)));
    }
    let object = match (media.as_str(), &value) {
        ("application/json-patch+json", Value::Null) => Ok(json!([])),
        ("application/json-patch+json", Value::Array(operations)) => {
            match operations.iter().find(|operation| !operation.is_object()) {
                Some(other) => Err(no(mistaken(other, "handlers.jsonPatchOp"))),
                None => Ok(value),
            }
        }
        ("application/json-patch+json", other) => Err(no(mistaken(other, type_of))),
        (_, Value::Object(_)) => Ok(value),
        (_, Value::Null) if strategic => Ok(json!({})),
        (_, Value::Null) => Err(No::bad("Invalid JSON Patch")),
        (_, other) => Err(no(mistaken(other, MAP))),
    }?;
    Ok(Sent { object, twice: faults })
}

/// The fault in the object that is one in the value of an operation.
fn within(operations: &Value, path: &str) -> Option<String> {
    let (place, rest) = path.strip_prefix('[')?.split_once("].value.")?;
    let to = operations[place.parse::<usize>().ok()?]["path"].as_str()?;
    let to = to.trim_start_matches('/').replace('/', ".");
    Some(format!("duplicate field {:?}", format!("{to}.{rest}")))
}

/// The fields of a patch's operations that no operation has.
fn unknown(operations: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    for (place, operation) in operations.as_array().into_iter().flatten().enumerate() {
        let fields = operation.as_object().into_iter().flat_map(|map| map.keys());
        for field in fields.filter(|name| !OPERATION.contains(&name.as_str())) {
            let path = format!("[{place}].{field}");
            faults.push(format!("json patch unknown field {path:?}"));
        }
    }
    faults
}

/// The options in the body of a deletion.
///
/// # Errors
/// Why they can not be read.
pub(super) fn options(call: &HttpCall) -> Result<Value, No> {
    if call.body.is_empty() {
        return Ok(Value::Null);
    }
    if media(call) == "application/yaml" {
        return yaml(&call.body).map_err(No::bad);
    }
    let value = gojson::read(&call.body).map_err(|why| No::bad(untyped(&why)))?.value;
    match value {
        Value::Object(_) | Value::Null => Ok(value),
        other => Err(No::bad(untyped(&mistaken(&other, TYPED)))),
    }
}

fn yaml(bytes: &[u8]) -> Result<Value, String> {
    // Only the first document is read.
    let text = String::from_utf8_lossy(bytes);
    let begin = text.strip_prefix("---").unwrap_or(&text);
    let first = begin.split("\n---").next().unwrap_or_default();
    if first.trim().is_empty() {
        return Ok(Value::Null);
    }
    yaml_serde::from_str(first).map_err(|error| {
        let text = error.to_string();
        let problem = text.split(" at line ").next().unwrap_or_default();
        format!("yaml: {problem}")
    })
}

fn untyped(why: &str) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}

fn mistaken(value: &Value, wanted: &str) -> String {
    format!("json: cannot unmarshal {} into Go value of type {wanted}", gojson::kind(value))
}

/// The beginning of a body: as text if it may be an object.
fn summary(body: &[u8]) -> String {
    let more = if body.len() > SHOWN { " ..." } else { "" };
    let head = &body[..body.len().min(SHOWN)];
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => {
            let hex = hex::encode(head);
            format!("{hex}{more}")
        }
    }
}
