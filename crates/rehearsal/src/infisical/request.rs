//! What a call brings along: the fields of its body, the switches of its query, its place in the vault.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::{Map, Value, json};

use super::reply::{Refusal, required};
use crate::turn::HttpCall;

/// The largest body that is taken.
const LARGEST: usize = 1 << 20;

/// The JSON body of a call.
pub(super) struct Body(Map<String, Value>);

impl Body {
    /// Reads the body. What is not JSON is an inner error to this server.
    pub(super) fn read(call: &HttpCall) -> Result<Self, Refusal> {
        let json =
            call.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if !json || call.body.len() > LARGEST {
            return Err(Refusal::broken());
        }
        match serde_json::from_slice(&call.body) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            _ => Err(Refusal::broken()),
        }
    }

    /// Demands that these fields are texts, and names all that are not.
    pub(super) fn need(&self, fields: &[&str]) -> Result<(), Refusal> {
        let missing =
            fields.iter().filter(|field| !self.0.get(**field).is_some_and(Value::is_string));
        let issues: Vec<Value> = missing.map(|field| required(field, "string")).collect();
        if issues.is_empty() { Ok(()) } else { Err(Refusal::invalid(issues)) }
    }

    /// A text, empty if there is none.
    pub(super) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// The same body in today's words: a project was a workspace once, named by its id or its slug.
    pub(super) fn renamed(mut self, id_of: impl Fn(&str) -> Option<String>) -> Self {
        let text =
            |fields: &Map<String, Value>, name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let slug = text(&self.0, "workspaceSlug").or(text(&self.0, "projectSlug"));
        let id = text(&self.0, "workspaceId").or(slug.map(|slug| id_of(&slug).unwrap_or(slug)));
        if let Some(id) = id {
            self.0.insert("projectId".to_owned(), Value::String(id));
        }
        self
    }

    /// The body on the wire.
    pub(super) fn bytes(&self) -> Vec<u8> {
        Value::Object(self.0.clone()).to_string().into_bytes()
    }

    /// A field.
    pub(super) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// Where in the vault the body points to.
    pub(super) fn place(&self, path: &str) -> Place {
        Place {
            project: self.text("projectId").to_owned(),
            environment: self.text("environment").to_owned(),
            path: normal_path(self.0.get(path).and_then(Value::as_str).unwrap_or("/")),
        }
    }
}

/// The query of a call.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads the query.
    pub(super) fn read(call: &HttpCall) -> Self {
        let pairs = call.query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
        });
        Self(pairs.collect())
    }

    /// A value.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A switch, which is exactly `true` or `false`.
    pub(super) fn switch(&self, name: &str, otherwise: bool) -> Result<bool, Refusal> {
        match self.get(name) {
            None => Ok(otherwise),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(other) => Err(Refusal::invalid(vec![json!({
                "received": other,
                "code": "invalid_enum_value",
                "options": ["true", "false"],
                "path": [name],
                "message": format!("Invalid enum value. Expected 'true' | 'false', received '{other}'"),
            })])),
        }
    }

    /// A switch that is read generously, as the folders' calls do.
    pub(super) fn loose_switch(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| {
            !value.is_empty() && value != "0" && !value.eq_ignore_ascii_case("false")
        })
    }

    /// Adds a value, unless one is there.
    pub(super) fn otherwise(&mut self, name: &str, value: &str) {
        self.0.entry(name.to_owned()).or_insert_with(|| value.to_owned());
    }

    /// The query on the wire.
    pub(super) fn text(&self) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        let pairs = self.0.iter().map(|(name, value)| format!("{name}={}", escaped(value)));
        pairs.collect::<Vec<_>>().join("&")
    }

    /// Where in the vault the query points to.
    pub(super) fn place(&self, path: &str) -> Place {
        let value = |name: &str| self.get(name).unwrap_or_default().to_owned();
        Place {
            project: value("projectId"),
            environment: value("environment"),
            path: normal_path(self.get(path).unwrap_or("/")),
        }
    }
}

/// A folder of a project's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The project's id.
    pub(super) project: String,
    /// The environment's slug.
    pub(super) environment: String,
    /// The folder, `/` first and none last.
    pub(super) path: String,
}

/// Decodes a piece of a path or query.
pub(super) fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// A path with one slash before every name: slashes too many or too few are tolerated.
pub(super) fn normal_path(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    format!("/{}", names.join("/"))
}
