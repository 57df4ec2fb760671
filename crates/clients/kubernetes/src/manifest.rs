//! Manifests: YAML or JSON text of many documents into objects, with limits on size, depth, number and aliases.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use thiserror::Error as ThisError;

use crate::object::{Object, ObjectId};

/// The largest text that is read: no release manifest comes near it.
pub const LARGEST: usize = 4 << 20;
/// The deepest nesting: CustomResourceDefinitions reach about 30.
pub const DEEPEST: u8 = 64;
/// The most documents in one text.
pub const MOST_DOCUMENTS: usize = 2_000;
/// What one text may grow to through aliases, in nodes and bytes of text together.
const LARGEST_EXPANDED: usize = 32 << 20;

/// The largest text of objects as a server shows them: `kubectl get -A` of a castle with its status.
pub const LARGEST_SHOWN: usize = 16 << 20;
/// What that may grow to.
const LARGEST_SHOWN_EXPANDED: usize = 128 << 20;

/// What is wrong with a text whose aliases stand for aliases.
const MULTIPLIED: &str = "its aliases (`*name`) stand for more than castle takes; write them out";

/// Why a manifest was refused, with its place.
#[derive(Debug, ThisError, PartialEq, Eq)]
#[error("{place}: {why}")]
pub struct ManifestError {
    /// The file or address, with document and line where known.
    pub place: String,
    /// What is wrong.
    pub why: String,
}

/// Reads all objects of a text, in their order. Empty documents are left out, `List`s are opened.
///
/// # Errors
/// Says where and why the text cannot be taken; then nothing of it is.
pub fn parse(name: &str, text: &str) -> Result<Vec<Object>, ManifestError> {
    parse_all([(name, text)])
}

/// Reads all objects of several texts that make one set, in their order; an object that is there twice is refused,
/// also where the two name different versions of its kind.
///
/// # Errors
/// Says where and why a text cannot be taken; then nothing of the set is.
pub fn parse_all<'a>(
    texts: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Object>, ManifestError> {
    let mut objects = Vec::new();
    let mut seen: BTreeMap<(String, ObjectId), String> = BTreeMap::new();
    for (name, text) in texts {
        check_size(name, text, LARGEST)?;
        for (place, value) in documents(name, text, LARGEST_EXPANDED)? {
            for (place, object) in open(&place, value)? {
                let id = object.id();
                let thing =
                    (object.group().to_owned(), ObjectId { api_version: String::new(), ..id });
                if let Some(before) = seen.get(&thing) {
                    let why = format!("{} was there before: {before}", thing.1);
                    return Err(ManifestError { place, why });
                }
                seen.insert(thing, place);
                objects.push(object);
            }
        }
    }
    Ok(objects)
}

/// Reads the documents of a text as they are, objects or not, with the same limits.
///
/// # Errors
/// Says where and why the text cannot be taken.
pub fn values(name: &str, text: &str) -> Result<Vec<Value>, ManifestError> {
    check_size(name, text, LARGEST)?;
    Ok(documents(name, text, LARGEST_EXPANDED)?.into_iter().map(|(_, value)| value).collect())
}

/// Reads objects as a server or `kubectl` shows them: YAML documents, or JSON values one after the other. `List`s are
/// opened; the same object may come again, since a watch shows it at every change.
///
/// # Errors
/// Says where and why the text cannot be taken; then nothing of it is.
pub fn shown(name: &str, text: &str) -> Result<Vec<Object>, ManifestError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    check_size(name, text, LARGEST_SHOWN)?;
    let json = text.trim_start().strip_prefix('{');
    let values = if json.is_some_and(|rest| rest.trim_start().starts_with(['"', '}'])) {
        // What starts like JSON may still be YAML; if it is neither, it was meant to be JSON.
        json_values(name, text)
            .or_else(|meant| documents(name, text, LARGEST_SHOWN_EXPANDED).map_err(|_| meant))?
    } else {
        documents(name, text, LARGEST_SHOWN_EXPANDED)?
    };
    let mut objects = Vec::new();
    for (place, value) in values {
        objects.extend(open(&place, value)?.into_iter().map(|(_, object)| object));
    }
    Ok(objects)
}

fn check_size(name: &str, text: &str, largest: usize) -> Result<(), ManifestError> {
    if text.len() <= largest {
        return Ok(());
    }
    let why = format!("it is larger than {} MiB", largest >> 20);
    Err(ManifestError { place: name.to_owned(), why })
}

fn too_many(name: &str) -> ManifestError {
    let why = format!("it has more than {MOST_DOCUMENTS} documents");
    ManifestError { place: name.to_owned(), why }
}

/// The documents of a YAML text, each with its place.
fn documents(name: &str, text: &str, budget: usize) -> Result<Vec<(String, Value)>, ManifestError> {
    check_flow_depth(name, text)?;
    let budget = Cell::new(budget);
    let lines = first_lines(text);
    let mut values = Vec::new();
    for (index, document) in yaml_serde::Deserializer::from_str(text).enumerate() {
        let number = index + 1;
        if number > MOST_DOCUMENTS {
            return Err(too_many(name));
        }
        let value = Tree { budget: &budget, depth: 0 }.deserialize(document).map_err(|error| {
            let words = error.to_string();
            let (place, why) = match error.location() {
                Some(at) => {
                    let again = format!(" at line {} column {}", at.line(), at.column());
                    (format!("{name}:{}:{}", at.line(), at.column()), words.replacen(&again, "", 1))
                }
                None if words.starts_with("repetition limit") => {
                    (format!("{name}, document {number}"), MULTIPLIED.to_owned())
                }
                None => (format!("{name}, document {number}"), words),
            };
            ManifestError { place, why }
        })?;
        let line = lines.get(index).map(|line| format!(" (line {line})")).unwrap_or_default();
        values.push((format!("{name}, document {number}{line}"), value));
    }
    Ok(values)
}

/// The lines on which the documents of a YAML text begin: the first that says something, and each after a `---`.
fn first_lines(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut fresh = true;
    for (index, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix("---")
            && (rest.is_empty() || rest.starts_with([' ', '\t']))
        {
            // The first line of a document is the one after its mark, unless it begins on the mark itself.
            let begins = !rest.trim().is_empty() && !rest.trim_start().starts_with('#');
            lines.push(index + if begins { 1 } else { 2 });
            fresh = false;
        } else if fresh && !line.trim().is_empty() && !line.starts_with(['#', '%']) {
            lines.push(index + 1);
            fresh = false;
        }
    }
    lines
}

/// The values of a JSON text, one after the other, each with its place.
fn json_values(name: &str, text: &str) -> Result<Vec<(String, Value)>, ManifestError> {
    let budget = Cell::new(LARGEST_SHOWN_EXPANDED);
    let refuse = |error: &serde_json::Error| ManifestError {
        place: format!("{name}:{}:{}", error.line(), error.column()),
        why: error.to_string(),
    };
    let mut reader = serde_json::Deserializer::from_str(text);
    let mut values = Vec::new();
    while reader.end().is_err() {
        let number = values.len() + 1;
        if number > MOST_DOCUMENTS {
            return Err(too_many(name));
        }
        let tree = Tree { budget: &budget, depth: 0 };
        let value = tree.deserialize(&mut reader).map_err(|error| refuse(&error))?;
        values.push((format!("{name}, document {number}"), value));
    }
    Ok(values)
}

/// The objects of a document: none of an empty one, many of a `List`, whose entries need not repeat their kind.
fn open(place: &str, value: Value) -> Result<Vec<(String, Object)>, ManifestError> {
    let whole = |value| {
        let object = Object::new(value);
        object.map_err(|why| ManifestError { place: place.to_owned(), why })
    };
    let listed = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = listed("kind").and_then(|kind| kind.strip_suffix("List").map(str::to_owned));
    match (kind, value.get("items")) {
        _ if value.is_null() => Ok(Vec::new()),
        (Some(kind), Some(Value::Null)) if kind.is_empty() => Ok(Vec::new()),
        (Some(kind), Some(Value::Array(items))) => {
            let version = listed("apiVersion");
            let mut objects = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let place = format!("{place}, item {}", index + 1);
                let mut item = item.clone();
                if let (Value::Object(map), false) = (&mut item, kind.is_empty()) {
                    map.entry("kind").or_insert_with(|| kind.clone().into());
                    if let Some(version) = &version {
                        map.entry("apiVersion").or_insert_with(|| version.clone().into());
                    }
                }
                let object =
                    Object::new(item).map_err(|why| ManifestError { place: place.clone(), why })?;
                objects.push((place, object));
            }
            Ok(objects)
        }
        _ => Ok(vec![(place.to_owned(), whole(value)?)]),
    }
}

/// Refuses text that opens far more brackets than anything may nest, before the parser, which takes quadratic time
/// over them. Within a line they are counted up to the first quote; over all lines of a document whatever stands around
/// them, with more patience, since a script in a text has brackets too.
fn check_flow_depth(name: &str, text: &str) -> Result<(), ManifestError> {
    let mut all = 0_usize;
    for (index, line) in text.lines().enumerate() {
        if line.starts_with("---") {
            all = 0;
        }
        let (mut open, mut quoted) = (0_usize, false);
        for byte in line.bytes() {
            match byte {
                b'[' | b'{' => (open, all) = (open + usize::from(!quoted), all + 1),
                b']' | b'}' => {
                    (open, all) = (open.saturating_sub(1), all.saturating_sub(1));
                }
                b'"' | b'\'' => quoted = true,
                _ => {}
            }
            if open > usize::from(DEEPEST) * 4 || all > usize::from(DEEPEST) * 16 {
                return Err(ManifestError {
                    place: format!("{name}:{}", index + 1),
                    why: format!("it is nested deeper than {DEEPEST}"),
                });
            }
        }
    }
    Ok(())
}

/// Builds a JSON value out of a YAML node, counting what it costs.
#[derive(Clone, Copy)]
struct Tree<'b> {
    budget: &'b Cell<usize>,
    depth: u8,
}

impl Tree<'_> {
    fn spend<E: Error>(self, cost: usize) -> Result<(), E> {
        let left = self.budget.get().checked_sub(cost + 1);
        self.budget.set(left.ok_or_else(|| E::custom("its aliases make it too large"))?);
        Ok(())
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.depth >= DEEPEST {
            return Err(E::custom(format!("it is nested deeper than {DEEPEST}")));
        }
        Ok(Self { depth: self.depth + 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON knows")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        self.spend(1)?;
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        self.spend(8)?;
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        self.spend(8)?;
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        self.spend(8)?;
        serde_json::Number::from_f64(value)
            .map(Value::Number)
            .ok_or_else(|| E::custom("a number that JSON does not know"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.spend(value.len())?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        self.spend(1)?;
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        self.visit_unit()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.spend(1)?;
        let inner = self.deeper()?;
        let mut list = Vec::new();
        while let Some(value) = entries.next_element_seed(inner)? {
            list.push(value);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        self.spend(1)?;
        let inner = self.deeper()?;
        let mut map = Map::new();
        while let Some(Key(key)) = entries.next_key::<Key>()? {
            self.spend(key.len())?;
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!("the key `{key}` is there twice")));
            }
            let value = entries.next_value_seed(inner)?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Value, A::Error> {
        Err(A::Error::custom("YAML tags have no meaning in a manifest"))
    }
}

/// A key of a mapping: text, or a number or boolean taken as text, as Kubernetes does.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let budget = Cell::new(usize::MAX);
        match (Tree { budget: &budget, depth: DEEPEST }).deserialize(deserializer)? {
            Value::String(text) => Ok(Self(text)),
            Value::Number(number) => Ok(Self(number.to_string())),
            Value::Bool(value) => Ok(Self(value.to_string())),
            _ => Err(D::Error::custom("a key must be text")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse("m.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn documents_lists_and_empty_documents() {
        let text = "---\n# nothing\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n\
            apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {name: p, namespace: a}}\n\
            - {apiVersion: v1, kind: Pod, metadata: {name: q, namespace: a}}\n";
        let names: Vec<_> =
            parse("m.yaml", text).unwrap().iter().map(|o| o.id().to_string()).collect();
        assert_eq!(names, ["Namespace a", "Pod a/p", "Pod a/q"]);
    }

    #[test]
    fn numbers_keep_their_meaning() {
        let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 010, b: no, 443: x, c: 1.5}\n";
        let object = &parse("m.yaml", text).unwrap()[0];
        assert_eq!(
            object.at("/data").unwrap().to_string(),
            r#"{"a":"010","b":"no","443":"x","c":1.5}"#
        );
    }

    #[test]
    fn mistakes_have_a_place() {
        insta::assert_snapshot!(refused("apiVersion: v1\nkind: [\n"), @"m.yaml:3:1: did not find expected node content, while parsing a flow node");
        insta::assert_snapshot!(refused("apiVersion: v1\nkind: Pod\n"), @"m.yaml, document 1 (line 1): it has no `metadata.name`");
        let twice = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
        insta::assert_snapshot!(refused(&format!("{twice}---\n{twice}")), @"m.yaml, document 2 (line 5): Namespace a was there before: m.yaml, document 1 (line 1)");
        assert!(refused("a: 1\na: 2\n").contains("the key `a` is there twice"));
        assert!(refused("a: !Foo 1\n").contains("tags"));
    }

    #[test]
    fn an_object_that_two_files_have_is_refused_with_both_places() {
        let old = "# ours\n---\n# more\n---\napiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a}\n";
        let new = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n";
        let refused = parse_all([("one.yaml", old), ("two.yaml", new)]).unwrap_err();
        insta::assert_snapshot!(refused, @"two.yaml, document 1 (line 1): Deployment a was there before: one.yaml, document 2 (line 5)");
        let other = new.replace("apps/v1", "example.org/v1");
        assert_eq!(parse_all([("one.yaml", old), ("two.yaml", &other)]).unwrap().len(), 2);
    }

    #[test]
    fn bombs_are_refused() {
        let mut laughs = vec!["a: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned()];
        for level in 1..12 {
            let nine = vec![format!("*a{}", level - 1); 9].join(",");
            laughs.push(format!("a{level}: &a{level} [{nine}]\n"));
        }
        let laughs = laughs.concat();
        let text = refused(&laughs);
        assert!(text.contains("its aliases") || text.contains("too large"), "{text}");
        assert!(refused(&"[".repeat(1_000_000)).contains("nested deeper than 64"));
        for piece in ["{\"a\":", "[\n", "- {'a': "] {
            let deep = piece.repeat(500_000);
            assert!(refused(&deep).contains("nested deeper than 64"), "{piece}");
            assert!(shown("-", &deep).unwrap_err().why.contains("nested deeper than 64"));
        }
        let steps = (0..200).map(|n| format!("{}a:", " ".repeat(n))).collect::<Vec<_>>().join("\n");
        assert!(refused(&steps).contains("nested deeper than 64"), "{}", refused(&steps));
        assert!(refused("---\na\n").contains("not a mapping"));
        let many = "--- \n".repeat(MOST_DOCUMENTS + 1);
        assert!(refused(&many).contains("documents"), "{}", refused(&many));
        assert!(refused(&" ".repeat(LARGEST + 1)).contains("larger than 4 MiB"));
    }

    #[test]
    fn what_a_server_shows_is_taken_as_it_comes() {
        let names = |text: &str| {
            let objects = shown("-", text).unwrap();
            objects.iter().map(|o| format!("{} {}", o.api_version(), o.id())).collect::<Vec<_>>()
        };
        let pod = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}"#;
        assert_eq!(names(&format!("{pod}\n{pod}{pod}")), ["v1 Pod p"; 3]);
        assert_eq!(names(&format!("\u{feff}{pod}")), ["v1 Pod p"]);
        assert_eq!(names(&format!("{pod}\n---\n{pod}\n")), ["v1 Pod p"; 2]);
        assert_eq!(names("{\"apiVersion\": v1, kind: Pod, metadata: {name: p}}"), ["v1 Pod p"]);
        let list = r#"{"apiVersion": "apps/v1", "kind": "DeploymentList", "metadata": {}, "items": [{"metadata": {"name": "d"}}]}"#;
        assert_eq!(names(list), ["apps/v1 Deployment d"]);
        assert!(names("apiVersion: v1\nkind: List\nitems: null\n").is_empty());
        assert!(names("").is_empty());
        let why = |text: &str| shown("-", text).unwrap_err().to_string();
        insta::assert_snapshot!(why(&format!("{pod}\n{{\"a\": ]")), @"-:2:7: expected value at line 2 column 7");
        insta::assert_snapshot!(why(r#"{"kind": "List", "items": [{}]}"#), @"-, document 1, item 1: it has no `apiVersion`");
        insta::assert_snapshot!(why("apiVersion: v1\nkind: [\n"), @"-:3:1: did not find expected node content, while parsing a flow node");
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert!(why(&deep).contains("nested deeper than 64"), "{}", why(&deep));
        assert!(why(&"{}".repeat(MOST_DOCUMENTS + 1)).contains("documents"));
        assert!(why(&" ".repeat(LARGEST_SHOWN + 1)).contains("larger than 16 MiB"));
    }

    #[test]
    fn one_long_text_repeated_by_aliases_is_refused() {
        let long = "y".repeat(1 << 20);
        let text = format!("a: &a {long}\nb: [{}]\n", vec!["*a"; 64].join(","));
        assert!(refused(&text).contains("too large"));
    }
}
