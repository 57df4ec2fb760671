//! Strategic merge: changes generated documents by the patches of a castle file, as Talos' own tools would.
//!
//! Talos merges typed values; the documents here are untyped. What the types decide (which lists are replaced, which
//! are merged by a key, where anything may stand) is data in [`mod@rules`]. Unknown kinds of documents are refused
//! here, and unknown keys at their top; those below only by the machine itself, when it is sent the config.

mod delete;
mod kinds;
mod merge;
mod rules;

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize as _;
use serde_json::{Map, Number, Value};
use thiserror::Error;

use crate::config::Contract;

/// The longest patch. Real ones have a few kilobytes; Talos takes no message beyond 32 MiB.
const LONGEST: usize = 1 << 20;

/// Why a patch can not be applied.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PatchError {
    /// It is too long.
    #[error("it has {bytes} bytes, and more than {LONGEST} are not taken")]
    Long {
        /// How long it is.
        bytes: usize,
    },
    /// It is not YAML. The parser's words are left out, because they may quote a secret.
    #[error("it is not YAML that can be read ({place})")]
    Yaml {
        /// Where.
        place: String,
    },
    /// It is a list of operations.
    #[error(
        "it is a list of operations (JSON 6902), which Talos refuses for configs of several documents"
    )]
    Operations,
    /// It holds nothing.
    #[error("it holds no document")]
    Empty,
    /// A part of it is not a document.
    #[error("its document {number} is {problem}")]
    Document {
        /// Which, counted from 1.
        number: usize,
        /// What is wrong with it.
        problem: String,
    },
    /// It speaks of one document twice.
    #[error("it holds {document} twice, which Talos before 1.14 refuses")]
    Twice {
        /// Which.
        document: String,
    },
    /// A `$patch` that is not understood, or at a place where it can not be.
    #[error("in {document}, `{path}`: {problem}")]
    Directive {
        /// In which document.
        document: String,
        /// Where.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// What is to be deleted is not there.
    #[error("in {document} there is no `{path}` to delete")]
    Missing {
        /// In which document.
        document: String,
        /// What.
        path: String,
    },
    /// Config and patch have values of different kinds.
    #[error("in {document}, `{path}` is {left} in the config and {right} in the patch")]
    Mismatch {
        /// In which document.
        document: String,
        /// Where.
        path: String,
        /// What the config has.
        left: &'static str,
        /// What the patch has.
        right: &'static str,
    },
}

impl PatchError {
    /// What a person can do about it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            Self::Long { .. } => "split the patch, or put large content elsewhere",
            Self::Yaml { .. } => {
                "check indentation and quotes there; merge keys (`<<`) must be written out"
            }
            Self::Operations => {
                "write the part of the config as it shall be, as YAML: it is merged; to remove something, give it `$patch: delete`"
            }
            Self::Empty => "remove the patch, or write the part of the config as it shall be",
            Self::Document { .. } => {
                "a document has `apiVersion` and `kind`; without them it begins with `machine:` or `cluster:`"
            }
            Self::Twice { .. } => "write both parts into one document, or into two patches",
            Self::Directive { .. } => {
                "only `$patch: delete` is known: on a field, on a whole document with its kind and name, or on a list's element with one key that tells which"
            }
            Self::Missing { .. } => "remove the deletion, or correct the path",
            Self::Mismatch { .. } => {
                "give the value the same form as in the config: see `castle machineconfig`"
            }
        }
    }
}

/// What tells documents apart.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    version: String,
    kind: String,
    name: Option<String>,
}

/// The kind of the main document, which has none written.
const MAIN: &str = "v1alpha1";

impl Identity {
    fn of(document: &Value) -> Self {
        let text = |key: &str| document[key].as_str().unwrap_or_default().to_owned();
        let kind = if document.get("kind").is_some() { text("kind") } else { MAIN.to_owned() };
        let name = document["name"].as_str().map(str::to_owned);
        Self { version: text("apiVersion"), kind, name }
    }

    fn is_main(&self) -> bool {
        self.kind == MAIN
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            _ if self.is_main() => f.write_str("the main document"),
            Some(name) => write!(f, "{} {name}", self.kind),
            None => f.write_str(&self.kind),
        }
    }
}

/// Applies one patch, which may hold several documents, and gives the documents as they are then.
///
/// # Errors
/// If the patch can not be read, or does not fit the documents.
pub fn apply(
    documents: &[Value],
    patch: &str,
    contract: Contract,
) -> Result<Vec<Value>, PatchError> {
    let parts = read(patch)?;
    let mut patched = documents.to_vec();
    let mut seen = BTreeSet::new();
    for (index, mut part) in parts.into_iter().enumerate() {
        let identity = Identity::of(&part);
        let deletions = delete::take(&mut part, &identity)?;
        for deletion in &deletions.list {
            delete::apply(&mut patched, &identity, deletion)?;
        }
        if deletions.nothing_else {
            continue;
        }
        check(&part, &identity, index + 1, contract)?;
        if !seen.insert(identity.clone()) && contract < Contract::V1_14 {
            return Err(PatchError::Twice { document: identity.to_string() });
        }
        match patched.iter_mut().find(|document| Identity::of(document) == identity) {
            Some(document) => merge::merge(document, &part, &identity, contract)?,
            None => patched.push(part),
        }
    }
    Ok(patched)
}

/// What a patch took from documents without having said so, in words: Talos' merge loses sizes and disk selectors of
/// volumes that a patch does not repeat, and the machine would then refuse the config, or take another disk.
#[must_use]
pub fn lost(before: &[Value], after: &[Value]) -> Vec<String> {
    let mut lost = Vec::new();
    for document in before {
        let identity = Identity::of(document);
        let Some(now) = after.iter().find(|now| Identity::of(now) == identity) else { continue };
        for (parent, key) in rules::FORGOTTEN {
            let path = format!("{parent}/{key}");
            if document.pointer(&path).is_some() && now.pointer(&path).is_none() {
                lost.push(format!("`{}` of {identity}", path[1..].replace('/', ".")));
            }
        }
    }
    lost
}

/// Refuses what Talos could not even decode.
fn check(
    part: &Value,
    identity: &Identity,
    number: usize,
    contract: Contract,
) -> Result<(), PatchError> {
    let problem = if identity.is_main() {
        let keys = ["machine", "cluster", "debug", "persist"];
        let known = keys.iter().any(|key| part.get(key).is_some());
        (!known).then(|| "of no known kind".to_owned())
    } else if identity.version.is_empty() {
        Some("without `apiVersion`".to_owned())
    } else if !kinds::is_kind(&identity.kind, contract) {
        Some(format!("of the kind `{}`, which this version of Talos does not know", identity.kind))
    } else {
        None
    };
    let problem = problem.or_else(|| {
        let key = kinds::unknown(part, &identity.kind, contract)?;
        Some(format!("{identity}, with the key `{key}` that Talos does not know"))
    });
    problem.map_or(Ok(()), |problem| Err(PatchError::Document { number, problem }))
}

/// Reads the documents of a patch.
fn read(text: &str) -> Result<Vec<Value>, PatchError> {
    if text.len() > LONGEST {
        return Err(PatchError::Long { bytes: text.len() });
    }
    let mut documents = Vec::new();
    for (index, document) in yaml_serde::Deserializer::from_str(text).enumerate() {
        // As YAML's own value first: it refuses a key that stands there twice, and too deep a nesting.
        let value = yaml_serde::Value::deserialize(document).map_err(|error| {
            let place = error.location().map_or_else(
                || "as a whole".to_owned(),
                |place| format!("line {}, column {}", place.line(), place.column()),
            );
            PatchError::Yaml { place }
        })?;
        match plain(value, "").map_err(|place| PatchError::Yaml { place })? {
            Value::Null => {}
            Value::Array(_) => return Err(PatchError::Operations),
            document @ Value::Object(_) => documents.push(document),
            _ => {
                let problem = "not a mapping".to_owned();
                return Err(PatchError::Document { number: index + 1, problem });
            }
        }
    }
    if documents.is_empty() { Err(PatchError::Empty) } else { Ok(documents) }
}

/// YAML as plain data; the error is the place of what has no such form.
fn plain(value: yaml_serde::Value, key: &str) -> Result<Value, String> {
    use yaml_serde::Value as Yaml;
    Ok(match value {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Number(number) => number
            .as_i64()
            .map(Number::from)
            .or_else(|| number.as_u64().map(Number::from))
            .or_else(|| number.as_f64().and_then(Number::from_f64))
            .map(Value::Number)
            .ok_or_else(|| format!("the number at `{key}`"))?,
        // Talos reads modes in the old octal form, which YAML's own rules make a text.
        Yaml::String(text) if ["permissions", "mode"].contains(&key) && text.starts_with('0') => {
            i64::from_str_radix(&text, 8).map_or(Value::String(text), Value::from)
        }
        Yaml::String(text) => Value::String(text),
        Yaml::Sequence(list) => {
            list.into_iter().map(|element| plain(element, key)).collect::<Result<_, _>>()?
        }
        Yaml::Mapping(mapping) => {
            let mut map = Map::new();
            for (name, value) in mapping {
                let name = match name {
                    Yaml::String(text) => text,
                    Yaml::Bool(value) => value.to_string(),
                    Yaml::Number(number) => number.to_string(),
                    _ => return Err(format!("a key in `{key}`")),
                };
                if name == "<<" {
                    return Err(format!("a merge key in `{key}`"));
                }
                let value = plain(value, &name)?;
                map.insert(name, value);
            }
            Value::Object(map)
        }
        Yaml::Tagged(_) => return Err(format!("a tag at `{key}`")),
    })
}

/// A path, as a person writes it.
fn shown(path: &[String]) -> String {
    path.join(".").replace(".[", "[").replace(".*", "[*]")
}

#[cfg(test)]
mod tests;
