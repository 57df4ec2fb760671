//! Merges one document of a patch into the document that it changes.

use serde_json::{Map, Value};

use super::rules::{self, Rule};
use super::{Identity, PatchError, shown};
use crate::config::Contract;

/// Merges a document into another of the same kind and name.
pub(super) fn merge(
    left: &mut Value,
    right: &Value,
    identity: &Identity,
    contract: Contract,
) -> Result<(), PatchError> {
    let mut merger = Merger { identity, contract, path: Vec::new() };
    merger.values(left, right)?;
    if !identity.is_main() {
        forget(left, right);
    }
    Ok(())
}

/// Removes sizes and selectors that the patch does not repeat: Talos' own merge loses them, and a config of ours that
/// kept them would not be the one that its tools show.
fn forget(left: &mut Value, right: &Value) {
    for (parent, key) in rules::FORGOTTEN {
        if right.pointer(&format!("{parent}/{key}")).is_none()
            && let Some(Value::Object(map)) = left.pointer_mut(parent)
        {
            map.shift_remove(*key);
        }
    }
}

struct Merger<'a> {
    identity: &'a Identity,
    contract: Contract,
    /// Where we are; elements of lists are `*`.
    path: Vec<String>,
}

impl Merger<'_> {
    fn values(&mut self, left: &mut Value, right: &Value) -> Result<(), PatchError> {
        if right.is_null() {
            return self.nothing(left);
        }
        if left.is_null() {
            *left = right.clone();
            return Ok(());
        }
        let rule = rules::rule(&self.identity.kind, &self.path, self.contract);
        match (rule, left, right) {
            (Rule::Replace, left, right) => *left = right.clone(),
            (Rule::Arguments, Value::Object(left), Value::Object(right)) => {
                left.extend(right.clone());
            }
            (Rule::Keyed(keys), Value::Array(left), Value::Array(right)) => {
                self.keyed(keys, left, right)?;
            }
            (Rule::ReplacedBy(key), Value::Array(left), Value::Array(right)) => {
                for element in right {
                    match left.iter_mut().find(|known| known[key] == element[key]) {
                        Some(known) => *known = element.clone(),
                        None => left.push(element.clone()),
                    }
                }
            }
            (_, Value::Object(left), Value::Object(right)) => self.maps(left, right)?,
            (_, Value::Array(left), Value::Array(right)) => left.extend(right.iter().cloned()),
            (_, left, right) => self.scalars(left, right)?,
        }
        Ok(())
    }

    /// A null in the patch: nothing was said, except where anything may stand; there Talos' tools break.
    fn nothing(&self, left: &Value) -> Result<(), PatchError> {
        if !left.is_null() && self.is_unstructured() {
            return Err(self.mismatch(left, &Value::Null));
        }
        Ok(())
    }

    fn maps(
        &mut self,
        left: &mut Map<String, Value>,
        right: &Map<String, Value>,
    ) -> Result<(), PatchError> {
        for (key, value) in right {
            self.path.push(key.clone());
            match left.get_mut(key) {
                Some(known) => self.values(known, value)?,
                None if value.is_null() && !self.is_unstructured() => {}
                None => {
                    left.insert(key.clone(), value.clone());
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    /// A list whose elements are matched by the first of some keys that they have.
    fn keyed(
        &mut self,
        keys: &[&str],
        left: &mut Vec<Value>,
        right: &[Value],
    ) -> Result<(), PatchError> {
        for element in right {
            let key = keys.iter().find(|key| element.get(**key).is_some_and(|it| !it.is_null()));
            let known = key
                .and_then(|key| left.iter_mut().find(|known| known.get(*key) == element.get(*key)));
            match known {
                Some(known) => {
                    self.path.push("*".to_owned());
                    // What they are matched by is the same on both sides, and is not merged once more.
                    let mut rest = element.clone();
                    if let (Some(rest), Some(key)) = (rest.as_object_mut(), key) {
                        rest.shift_remove(*key);
                    }
                    self.values(known, &rest)?;
                    self.path.pop();
                }
                None => left.push(element.clone()),
            }
        }
        Ok(())
    }

    fn scalars(&self, left: &mut Value, right: &Value) -> Result<(), PatchError> {
        let composed = |value: &Value| value.is_object() || value.is_array();
        let same_form = form(left) == form(right);
        if !same_form && (composed(left) || composed(right) || self.is_unstructured()) {
            return Err(self.mismatch(left, right));
        }
        if !rules::is_zero(&self.identity.kind, &self.path, right) {
            *left = right.clone();
        }
        Ok(())
    }

    fn is_unstructured(&self) -> bool {
        rules::is_unstructured(&self.identity.kind, &self.path)
    }

    fn mismatch(&self, left: &Value, right: &Value) -> PatchError {
        PatchError::Mismatch {
            document: self.identity.to_string(),
            path: shown(&self.path),
            left: form(left),
            right: form(right),
        }
    }
}

/// What kind of value it is, in words.
fn form(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}
