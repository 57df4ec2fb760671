//! What a call says beside its object: the options in its query, the form of its body, the form that it takes for an answer.

use serde_json::{Value, json};

use super::kinds::Resource;
use super::refuse::No;
use super::route::Query;
use crate::turn::HttpCall;

/// The forms of objects that the server names.
const FORMS: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
/// What it names besides for a list, which may be watched.
const STREAMS: &str =
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
/// The patches that it takes.
const PATCHES: &[&str] = &[
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

/// A field and what is wrong with it.
type Wrong = (&'static str, String);

/// Refuses options that the server refuses, with all reasons at once.
pub(super) fn check(call: &HttpCall, query: &Query, lists: bool) -> Result<(), No> {
    let mut wrong: Vec<Wrong> = Vec::new();
    let kind = match call.method.as_str() {
        "POST" => "CreateOptions",
        "PUT" => "UpdateOptions",
        "PATCH" => {
            let apply = media(call) == "application/apply-patch+yaml";
            if apply && query.get("fieldManager").is_empty() {
                let why = "Required value: is required for apply patch";
                wrong.push(("fieldManager", why.to_owned()));
            }
            if !apply && query.has("force") {
                let why = "Forbidden: may not be specified for non-apply patch";
                wrong.push(("force", why.to_owned()));
            }
            "PatchOptions"
        }
        "DELETE" => {
            number(query, "gracePeriodSeconds")?;
            "DeleteOptions"
        }
        _ => "ListOptions",
    };
    if lists || call.method == "DELETE" {
        number(query, "limit")?;
        number(query, "timeoutSeconds")?;
    }
    if call.method == "GET" {
        if lists && !query.is("watch") {
            list(query, &mut wrong);
        }
        return judged(kind, &wrong);
    }
    let dry = query.all("dryRun");
    if dry.iter().any(|word| word != "All") {
        let given: Vec<String> = dry.iter().map(|word| format!("{word:?}")).collect();
        let given = given.join(",");
        wrong.push(("dryRun", format!("Unsupported value: [{given}]: supported values: \"All\"")));
    }
    let strict = query.get("fieldValidation");
    if kind != "DeleteOptions" && !matches!(strict, "" | "Ignore" | "Strict" | "Warn") {
        let known = "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"";
        wrong.push(("fieldValidation", format!("Unsupported value: {strict:?}: {known}")));
    }
    judged(kind, &wrong)
}

/// Refuses a body of a deletion that asks for what is not there.
pub(super) fn check_deletion(options: &Value) -> Result<(), No> {
    let mut wrong: Vec<Wrong> = Vec::new();
    if let Some(dry) = options["dryRun"].as_array()
        && dry.iter().any(|word| word != "All")
    {
        let given = options["dryRun"].to_string();
        wrong.push(("dryRun", format!("Unsupported value: {given}: supported values: \"All\"")));
    }
    if let Some(how) = options["propagationPolicy"].as_str()
        && !matches!(how, "Foreground" | "Background" | "Orphan")
    {
        let known = "supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"";
        wrong.push(("propagationPolicy", format!("Unsupported value: {how:?}: {known}")));
    }
    judged("DeleteOptions", &wrong)
}

fn list(query: &Query, wrong: &mut Vec<Wrong>) {
    let (matching, version) = (query.get("resourceVersionMatch"), query.get("resourceVersion"));
    let forbidden = |why: &str| ("resourceVersionMatch", format!("Forbidden: {why}"));
    match matching {
        "Exact" | "NotOlderThan" if version.is_empty() => {
            let why = "resourceVersionMatch is forbidden unless resourceVersion is provided";
            wrong.push(forbidden(why));
        }
        "Exact" if version == "0" => {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            wrong.push(forbidden(why));
        }
        "" | "Exact" | "NotOlderThan" => {}
        other => {
            let known = "supported values: \"Exact\", \"NotOlderThan\", \"\"";
            let why = format!("Unsupported value: {other:?}: {known}");
            wrong.push(("resourceVersionMatch", why));
        }
    }
    if query.has("sendInitialEvents") {
        let why = "Forbidden: sendInitialEvents is forbidden for list";
        wrong.push(("sendInitialEvents", why.to_owned()));
    }
}

/// Refuses a number that is none, in Go's words.
fn number(query: &Query, name: &str) -> Result<(), No> {
    let text = query.get(name);
    let Err(error) = text.parse::<i64>() else { return Ok(()) };
    if text.is_empty() {
        return Ok(());
    }
    let why = match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
            "value out of range"
        }
        _ => "invalid syntax",
    };
    Err(No::bad(format!("strconv.ParseInt: parsing {text:?}: {why}")))
}

fn judged(kind: &str, wrong: &[Wrong]) -> Result<(), No> {
    if wrong.is_empty() {
        return Ok(());
    }
    let causes: Vec<Value> = wrong
        .iter()
        .map(|(field, why)| {
            let reason = match why.split(':').next() {
                Some("Required value") => "FieldValueRequired",
                Some("Forbidden") => "FieldValueForbidden",
                _ => "FieldValueNotSupported",
            };
            json!({"reason": reason, "message": why, "field": field})
        })
        .collect();
    let all: Vec<String> = wrong.iter().map(|(field, why)| format!("{field}: {why}")).collect();
    let said =
        if let [one] = all.as_slice() { one.clone() } else { format!("[{}]", all.join(", ")) };
    let no = No::new(422, "Invalid", format!("{kind}.meta.k8s.io \"\" is invalid: {said}"));
    Err(no.with(json!({"group": "meta.k8s.io", "kind": kind, "causes": causes})))
}

/// The media type of a body, without what it is qualified by.
pub(super) fn media(call: &HttpCall) -> String {
    let media = call.header("content-type").unwrap_or_default();
    media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Refuses a body in a form that the server does not read. Protobuf is another matter: see [`super::review`].
pub(super) fn check_body(call: &HttpCall, resource: &Resource) -> Result<(), No> {
    let media = media(call);
    let known = match call.method.as_str() {
        "PATCH" if resource.custom => PATCHES.contains(&media.as_str()) && !media.contains("strat"),
        "PATCH" => PATCHES.contains(&media.as_str()),
        "DELETE" if call.body.is_empty() => true,
        "POST" | "PUT" | "DELETE" => is_object(&media),
        _ => true,
    };
    match (known, call.method.as_str()) {
        (true, _) => Ok(()),
        (false, "PATCH") if !resource.custom => {
            let no = No::new(415, "UnsupportedMediaType", "415: Unsupported Media Type");
            Err(no.with(json!({})))
        }
        (false, "PATCH") => Err(No::media(
            "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
        )),
        (false, _) => Err(No::media(FORMS)),
    }
}

/// Refuses the body of a review in a form that the server does not read.
pub(super) fn check_review(call: &HttpCall) -> Result<(), No> {
    if is_object(&media(call)) { Ok(()) } else { Err(No::media(FORMS)) }
}

fn is_object(media: &str) -> bool {
    matches!(media, "" | "application/json" | "application/yaml")
        || media == "application/vnd.kubernetes.protobuf"
}

/// What answers whoever takes no form that the server has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// The version, which has one form.
    Version,
    /// The groups, and objects of kinds that are not built in.
    Any,
    /// Objects of a built-in kind.
    Objects,
    /// A list of them.
    List,
}

/// Refuses a caller who takes no form that the server has.
pub(super) fn check_accept(accept: &str, answers: Answers) -> Result<(), No> {
    let clauses = || accept.split(',').map(str::trim).filter(|clause| !clause.is_empty());
    let plain = |clause: &str| clause.split(';').next().unwrap_or_default().trim().to_owned();
    let known = |media: &str| {
        media == "*/*"
            || media == "application/json"
            || (answers != Answers::Version && is_object(media))
            // What is not bound to a fixed list of forms reads this one too.
            || (answers == Answers::Any && media == "application/*")
    };
    if clauses().next().is_none() {
        return Ok(());
    }
    if !clauses().any(|clause| known(&plain(clause))) {
        let forms = match answers {
            Answers::Version => "application/json".to_owned(),
            Answers::Objects => FORMS.to_owned(),
            Answers::List => format!("{FORMS}, {STREAMS}"),
            Answers::Any => return Err(unacceptable()),
        };
        let text = format!("406: Not Acceptable\n\nAvailable representations: {forms}");
        return Err(No::new(406, "NotAcceptable", text).with(json!({})));
    }
    let shaped = |clause: &str| {
        let part = |name: &str| {
            let mut parts = clause.split(';').filter_map(|part| part.trim().split_once('='));
            parts.find(|(found, _)| *found == name).map(|(_, value)| value.to_owned())
        };
        match part("as").as_deref() {
            None | Some("APIGroupDiscoveryList") => true,
            Some("Table" | "PartialObjectMetadata" | "PartialObjectMetadataList") => {
                matches!(part("v").as_deref(), Some("v1" | "v1beta1"))
            }
            Some(_) => false,
        }
    };
    let listed = answers != Answers::Version;
    if listed && !clauses().any(|clause| known(&plain(clause)) && shaped(clause)) {
        return Err(unacceptable());
    }
    Ok(())
}

fn unacceptable() -> No {
    let text = format!("only the following media types are accepted: {FORMS}");
    No::new(406, "NotAcceptable", text)
}
