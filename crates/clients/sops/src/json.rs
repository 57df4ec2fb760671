//! JSON to tree and back: one object, laid out as sops lays it out.

use std::collections::BTreeSet;
use std::fmt;

use castle_model::Secret;
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};

use crate::tree::{Branch, Element, Item, List, Tree, Value};
use crate::{SopsError, limits};

/// What a reader says, so that the refusal can be told from bad syntax. It stands in no text of a user.
const DEEP: &str = "castle: nested too deep";
const MANY: &str = "castle: too many values";
const TWICE: &str = "castle: a key stands twice in one object";

/// Reads a text whose size is checked already.
pub(crate) fn read(text: &str) -> Result<Tree, SopsError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let mut nodes = 0;
    let value = Seed { depth: 0, nodes: &mut nodes }.deserialize(&mut deserializer);
    let value = value.and_then(|value| deserializer.end().map(|()| value));
    match value.map_err(|error| told(&error))? {
        Value::Branch(branch) => Ok(Tree { documents: vec![branch] }),
        _ => Err(SopsError::Refused {
            place: "line 1".to_owned(),
            what: "JSON that is not an object".to_owned(),
            cure: "put it under a key: sops takes only objects",
        }),
    }
}

/// The parser's messages may quote what they stumbled over, so only their kind is told.
fn told(error: &serde_json::Error) -> SopsError {
    let (line, place) = (error.line(), format!("line {}", error.line()));
    let words = error.to_string();
    if words.starts_with(DEEP) || words.starts_with("recursion limit") {
        return SopsError::TooDeep { place };
    }
    if words.starts_with(MANY) {
        return SopsError::TooMany { place };
    }
    if words.starts_with(TWICE) {
        let what = "a key stands twice in one object".to_owned();
        return SopsError::Refused { place, what, cure: "keep one of the two" };
    }
    let why = if error.is_eof() { "it ends too early" } else { "unexpected character or number" };
    SopsError::Syntax { format: "JSON", line, why: why.to_owned() }
}

struct Seed<'nodes> {
    depth: usize,
    nodes: &'nodes mut usize,
}

impl<'text> DeserializeSeed<'text> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'text>>(self, deserializer: D) -> Result<Value, D::Error> {
        *self.nodes += 1;
        if *self.nodes > limits::NODES {
            return Err(D::Error::custom(MANY));
        }
        if self.depth > limits::DEPTH {
            return Err(D::Error::custom(DEEP));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'text> Visitor<'text> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Value, E> {
        Ok(Value::Boolean(truth))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Value, E> {
        Ok(Value::Integer(number))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Value, E> {
        #[expect(
            clippy::cast_precision_loss,
            reason = "sops makes a float of what is beyond 64 bits with a sign"
        )]
        let value = i64::try_from(number).map_or(Value::Float(number as f64), Value::Integer);
        Ok(value)
    }

    fn visit_f64<E>(self, number: f64) -> Result<Value, E> {
        Ok(Value::Float(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::Text(Secret::new(text)))
    }

    fn visit_string<E>(self, text: String) -> Result<Value, E> {
        Ok(Value::Text(Secret::new(text)))
    }

    fn visit_seq<A: SeqAccess<'text>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut elements = Vec::new();
        loop {
            let seed = Seed { depth: self.depth + 1, nodes: &mut *self.nodes };
            let Some(value) = sequence.next_element_seed(seed)? else { break };
            elements.push(Element::Value(value));
        }
        Ok(Value::List(List(elements)))
    }

    fn visit_map<A: MapAccess<'text>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        let mut known = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if !known.insert(key.clone()) {
                return Err(A::Error::custom(TWICE));
            }
            let value =
                map.next_value_seed(Seed { depth: self.depth + 1, nodes: &mut *self.nodes })?;
            items.push(Item::Entry(key, value));
        }
        Ok(Value::Branch(Branch(items)))
    }
}

/// Writes one document; comments have no place in JSON.
pub(crate) fn write(documents: &[Branch]) -> Result<String, SopsError> {
    let [document] = documents else {
        return Err(unwritable("", "JSON holds one document, and there are several"));
    };
    let mut out = String::new();
    branch(&mut out, document, 0, "")?;
    out.push('\n');
    Ok(out)
}

fn unwritable(place: &str, why: &'static str) -> SopsError {
    let place = if place.is_empty() { "the tree" } else { place };
    SopsError::Unwritable { place: place.to_owned(), why }
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n('\t', depth));
}

fn branch(out: &mut String, branch: &Branch, depth: usize, place: &str) -> Result<(), SopsError> {
    out.push('{');
    let mut first = true;
    for item in &branch.0 {
        let Item::Entry(key, inner) = item else { continue };
        if !std::mem::take(&mut first) {
            out.push(',');
        }
        line(out, depth + 1);
        text(out, key);
        out.push_str(": ");
        value(out, inner, depth + 1, &format!("{place}.{key}"))?;
    }
    if !first {
        line(out, depth);
    }
    out.push('}');
    Ok(())
}

fn list(out: &mut String, list: &List, depth: usize, place: &str) -> Result<(), SopsError> {
    out.push('[');
    for (number, inner) in list.values().enumerate() {
        if number > 0 {
            out.push(',');
        }
        line(out, depth + 1);
        value(out, inner, depth + 1, place)?;
    }
    if list.values().next().is_some() {
        line(out, depth);
    }
    out.push(']');
    Ok(())
}

fn value(out: &mut String, value: &Value, depth: usize, place: &str) -> Result<(), SopsError> {
    match value {
        Value::Text(secret) => text(out, secret.expose()),
        Value::Integer(number) => out.push_str(&number.to_string()),
        Value::Float(number) if !number.is_finite() => {
            return Err(unwritable(place.trim_start_matches('.'), "JSON has no such number"));
        }
        Value::Float(number) => out.push_str(&number.to_string()),
        Value::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Null => out.push_str("null"),
        Value::Bytes(_) => {
            return Err(unwritable(
                place.trim_start_matches('.'),
                "bytes that are not text have no form in JSON",
            ));
        }
        Value::Time(moment) => text(out, moment),
        Value::List(inner) => list(out, inner, depth, place)?,
        Value::Branch(inner) => branch(out, inner, depth, place)?,
    }
    Ok(())
}

fn text(out: &mut String, text: &str) {
    out.push_str(&serde_json::Value::from(text).to_string());
}
