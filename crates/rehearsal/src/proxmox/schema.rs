//! The published schema of the calls that are served: who may, with which parameters, and what is said about wrong ones.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;
use serde_json::Value;

use super::form::Parameters;
use super::format;
use super::pattern::fits;
use super::reply::Refusal;

const TEXT: &str = include_str!("schema.json");

/// The words for a parameter that no schema knows.
const UNKNOWN: &str =
    "property is not defined in schema and the schema does not allow additional properties";

/// All of it.
#[derive(Deserialize)]
pub(super) struct Schema {
    /// Property strings by name.
    formats: BTreeMap<String, Properties>,
    /// The options of a guest, as they stand in its config.
    options: Properties,
    operations: Vec<Operation>,
}

type Properties = BTreeMap<String, Property>;

/// One call.
#[derive(Deserialize)]
pub(super) struct Operation {
    pub(super) method: String,
    /// The path with the names of its parameters in braces.
    pub(super) path: String,
    parameters: Properties,
    /// Whether it takes a guest's options too.
    #[serde(default)]
    options: bool,
    /// The privileges it needs, as the schema writes them.
    #[serde(default)]
    pub(super) check: Value,
    /// Whether tokens may not call it at all.
    #[serde(default)]
    pub(super) closed: bool,
}

/// One parameter, option, or piece of a property string.
#[derive(Deserialize)]
pub(super) struct Property {
    #[serde(default)]
    required: bool,
    #[serde(default)]
    r#type: Kind,
    format: Option<String>,
    #[serde(default)]
    r#enum: Vec<String>,
    pattern: Option<String>,
    requires: Option<String>,
    #[serde(rename = "maxLength")]
    longest: Option<usize>,
    minimum: Option<i64>,
    maximum: Option<i64>,
    #[serde(default)]
    default_key: bool,
    /// How many there may be of an indexed one (`scsi0`, `scsi1`, …).
    count: Option<u32>,
    /// In a property string, the key that is meant.
    alias: Option<String>,
    /// The key whose value is the name that was written.
    #[serde(rename = "keyAlias")]
    key_alias: Option<String>,
}

/// The type of a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    #[default]
    String,
    Integer,
    Number,
    Boolean,
}

/// The schema, read once.
pub(super) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| serde_json::from_str(TEXT).expect("the schema's file is part of castle"))
}

impl Schema {
    /// The call with this method and path, and the values of the path's parameters.
    pub(super) fn find(
        &self,
        method: &str,
        segments: &[String],
    ) -> Option<(&Operation, Parameters)> {
        self.operations
            .iter()
            .filter(|operation| operation.method == method)
            .find_map(|operation| Some((operation, operation.parameters_in(segments)?)))
    }

    /// An option of a guest by its full name.
    pub(super) fn option(&self, name: &str) -> Option<&Property> {
        find(&self.options, name)
    }

    /// The names of a guest's options, without numbers.
    pub(super) fn option_names(&self) -> impl Iterator<Item = &str> {
        self.options.keys().map(String::as_str)
    }

    /// What is wrong with an option of a guest, or with its value.
    pub(super) fn judge_option(&self, name: &str, value: Option<&str>) -> Result<(), String> {
        let property = self.option(name).ok_or_else(|| UNKNOWN.to_owned())?;
        value.map_or(Ok(()), |value| self.judge(property, name, value))
    }

    /// Whether an option of a guest is a drive.
    pub(super) fn is_drive(&self, name: &str) -> bool {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let drive = matches!(stem, "efidisk" | "ide" | "sata" | "scsi" | "tpmstate" | "virtio");
        drive && self.option(name).is_some()
    }

    #[cfg(test)]
    pub(super) fn format_names(&self) -> std::collections::BTreeSet<&str> {
        let calls = self.operations.iter().map(|operation| &operation.parameters);
        let all = calls.chain([&self.options]).chain(self.formats.values());
        let named = all.flat_map(|set| set.values().filter_map(|one| one.format.as_deref()));
        named.filter(|name| !self.formats.contains_key(*name)).collect()
    }

    fn judge(&self, property: &Property, name: &str, value: &str) -> Result<(), String> {
        property.r#type.judge(value)?;
        if let Some(format) = &property.format {
            let checked = match self.formats.get(format) {
                Some(pieces) => self.judge_string(pieces, name, value),
                None => format::check(format, value),
            };
            checked.map_err(|words| format!("invalid format - {words}"))?;
        }
        if property.pattern.as_ref().is_some_and(|pattern| !fits(pattern, value)) {
            return Err("value does not match the regex pattern".to_owned());
        }
        if let Some(longest) = property.longest.filter(|longest| value.chars().count() > *longest) {
            return Err(format!("value may only be {longest} characters long"));
        }
        property.judge_range(value)?;
        if !property.r#enum.is_empty() && !property.r#enum.iter().any(|one| one == value) {
            let listed = property.r#enum.join(", ");
            return Err(format!(
                "value '{value}' does not have a value in the enumeration '{listed}'"
            ));
        }
        Ok(())
    }

    /// Judges a property string such as `local:4,discard=on`.
    fn judge_string(&self, pieces: &Properties, name: &str, value: &str) -> Result<(), String> {
        let mut found = Parameters::new();
        let default = pieces.iter().find(|(_, piece)| piece.default_key).map(|(key, _)| key);
        for part in value.split(',').filter(|part| !part.trim().is_empty()) {
            let (key, text) = match (part.split_once('='), default) {
                (Some(("", _) | (_, "")), _) => {
                    return Err("missing key in comma-separated list property\n".to_owned());
                }
                (Some((key, text)), _) => (key, text),
                (None, Some(key)) => (key.as_str(), part),
                (None, None) => {
                    let words = "value without key, but schema does not define a default key\n";
                    return Err(words.to_owned());
                }
            };
            let key = resolve(pieces, key, &mut found)?;
            let kind = pieces.get(key).map(|piece| piece.r#type);
            let text = if kind == Some(Kind::Boolean) { boolean(text) } else { text };
            if found.insert(key.to_owned(), text.to_owned()).is_some() {
                return Err(format!("duplicate key in comma-separated list property: {key}\n"));
            }
        }
        let errors = self.judge_all(&[pieces], &found);
        if errors.is_empty() {
            return Ok(());
        }
        let lines = errors.iter().map(|(key, words)| format!("{name}.{key}: {words}\n"));
        Err(format!("format error\n{}", lines.collect::<String>()))
    }

    fn judge_all(&self, sets: &[&Properties], given: &Parameters) -> BTreeMap<String, String> {
        let mut errors = BTreeMap::new();
        for (name, value) in given {
            let Some(property) = sets.iter().find_map(|set| find(set, name)) else {
                errors.insert(name.clone(), UNKNOWN.to_owned());
                continue;
            };
            if let Err(words) = self.judge(property, name, value) {
                errors.insert(name.clone(), words);
            }
            if let Some(other) = property.requires.as_ref().filter(|n| !given.contains_key(*n)) {
                let words = format!("missing property required by '{name}'");
                errors.insert(other.clone(), words);
            }
        }
        for (name, property) in sets.iter().copied().flatten() {
            if property.required && !given.contains_key(name) {
                let words = "property is missing and it is not optional";
                errors.insert(name.clone(), words.to_owned());
            }
        }
        errors
    }
}

impl Operation {
    /// The values of the path's parameters, if a path is this one. A volume's name may hold slashes.
    fn parameters_in(&self, segments: &[String]) -> Option<Parameters> {
        let mut found = Parameters::new();
        let wanted: Vec<&str> = self.path.split('/').skip(1).collect();
        let mut given = segments.iter();
        for (at, piece) in wanted.iter().enumerate() {
            let Some(name) = piece.strip_prefix('{').and_then(|piece| piece.strip_suffix('}'))
            else {
                given.next().filter(|segment| segment == piece)?;
                continue;
            };
            let mut value = given.next()?.clone();
            if name == "volume" && at + 1 == wanted.len() {
                for more in given.by_ref() {
                    value = format!("{value}/{more}");
                }
            }
            found.insert(name.to_owned(), value);
        }
        given.next().is_none().then_some(found)
    }

    /// Judges the parameters of a call, all at once.
    pub(super) fn verify(&self, path: &Parameters, given: &Parameters) -> Result<(), Refusal> {
        let conflict =
            path.iter().find(|(name, value)| given.get(*name).is_some_and(|g| g != *value));
        if let Some((name, _)) = conflict {
            let words = "duplicate parameter (already defined in URI) with conflicting values!";
            return Err(Refusal::parameter(name, words));
        }
        let mut all = given.clone();
        all.extend(path.clone());
        let schema = schema();
        let sets = [&self.parameters, &schema.options];
        let errors = schema.judge_all(&sets[..=usize::from(self.options)], &all);
        if errors.is_empty() { Ok(()) } else { Err(Refusal::Invalid(errors)) }
    }
}

impl Property {
    /// Whether it is shown as a number.
    pub(super) fn is_numeric(&self) -> bool {
        self.r#type != Kind::String
    }

    fn judge_range(&self, value: &str) -> Result<(), String> {
        if self.r#type == Kind::String {
            return Ok(());
        }
        // A number with a fraction is beyond a limit if its whole part is.
        let number: i64 = value.split('.').next().and_then(|n| n.parse().ok()).unwrap_or(i64::MAX);
        if let Some(most) = self.maximum.filter(|most| number > *most) {
            return Err(format!("value must have a maximum value of {most}"));
        }
        match self.minimum.filter(|least| number < *least) {
            Some(least) => Err(format!("value must have a minimum value of {least}")),
            None => Ok(()),
        }
    }
}

impl Kind {
    fn judge(self, value: &str) -> Result<(), String> {
        let (name, fine) = match self {
            Self::String => return Ok(()),
            Self::Integer => ("integer", fits(r"[+-]?\d+", value)),
            Self::Number => ("number", fits(r"[+-]?(\d+(\.\d*)?|\.\d+)", value)),
            Self::Boolean => ("boolean", matches!(value, "0" | "1")),
        };
        if fine { Ok(()) } else { Err(format!("type check ('{name}') failed - got '{value}'")) }
    }
}

/// The key that is meant by one in a property string; a model of a card is a key and a value at once.
fn resolve<'a>(
    pieces: &'a Properties,
    key: &'a str,
    found: &mut Parameters,
) -> Result<&'a str, String> {
    let Some(alias) = pieces.get(key).and_then(|piece| Some((piece, piece.alias.as_ref()?))) else {
        return Ok(key);
    };
    if let Some(other) = &alias.0.key_alias
        && found.insert(other.clone(), key.to_owned()).is_some()
    {
        return Err(format!("key alias '{other}' is already defined\n"));
    }
    Ok(alias.1)
}

/// Property strings know more words for yes and no than parameters do.
fn boolean(text: &str) -> &str {
    match text.to_ascii_lowercase().as_str() {
        "1" | "on" | "yes" | "true" => "1",
        "0" | "off" | "no" | "false" => "0",
        _ => text,
    }
}

fn find<'a>(set: &'a Properties, name: &str) -> Option<&'a Property> {
    let plain = set.get(name).filter(|property| property.count.is_none());
    plain.or_else(|| {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let index = &name[stem.len()..];
        let property = set.get(stem)?;
        let in_range = index.parse::<u32>().is_ok_and(|n| Some(n) < property.count);
        (in_range && (index == "0" || !index.starts_with('0'))).then_some(property)
    })
}
