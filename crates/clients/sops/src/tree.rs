//! What a file holds, in clear: ordered, typed, with its comments. Nothing of it is shown by `Debug`.

use std::fmt;

use castle_model::Secret;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{Format, SopsError, json, limits, yaml};

/// The values of a file: one mapping, or several in a YAML file of several documents.
#[derive(Clone, PartialEq)]
pub struct Tree {
    pub(crate) documents: Vec<Branch>,
}

/// A mapping in the order of its file, with the comments between its entries.
#[derive(Clone, PartialEq, Default)]
pub struct Branch(pub(crate) Vec<Item>);

/// What stands in a mapping.
#[derive(Clone, PartialEq)]
pub(crate) enum Item {
    Comment(Secret),
    Entry(String, Value),
}

/// What stands in a list.
#[derive(Clone, PartialEq)]
pub(crate) enum Element {
    Comment(Secret),
    Value(Value),
}

/// One value.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Text.
    Text(Secret),
    /// A whole number.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// True or false.
    Boolean(bool),
    /// Nothing; never encrypted.
    Null,
    /// What is not text: base64 in YAML.
    Bytes(Bytes),
    /// A moment in the one form that sops seals: RFC 3339, no more digits than needed.
    Time(String),
    /// Values in a row.
    List(List),
    /// Values by key.
    Branch(Branch),
}

/// Secret bytes, wiped when dropped.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub struct Bytes(pub(crate) Vec<u8>);

/// Values in a row, with the comments between them.
#[derive(Clone, PartialEq, Default)]
pub struct List(pub(crate) Vec<Element>);

impl Tree {
    /// Reads a plain text.
    ///
    /// # Errors
    /// If it is not of that format, or holds what sops can not seal.
    pub fn read(text: &str, format: Format) -> Result<Self, SopsError> {
        if text.len() > limits::BYTES {
            return Err(SopsError::TooLarge);
        }
        match format {
            Format::Yaml => yaml::read(text),
            Format::Json => json::read(text),
        }
    }

    /// A tree of one level.
    #[must_use]
    pub fn flat(entries: impl IntoIterator<Item = (String, Secret)>) -> Self {
        let mut tree = Self { documents: vec![Branch::default()] };
        for (key, secret) in entries {
            tree.set(&key, secret);
        }
        tree
    }

    /// Puts a text under a key at the top; in its old place if the key is there already.
    pub fn set(&mut self, key: &str, secret: Secret) {
        let holder = self.documents.iter().position(|document| document.get(key).is_some());
        if self.documents.is_empty() {
            self.documents.push(Branch::default());
        }
        let items = &mut self.documents[holder.unwrap_or(0)].0;
        let value = Value::Text(secret);
        let place = items.iter_mut().find_map(|item| match item {
            Item::Entry(name, place) if name == key => Some(place),
            _ => None,
        });
        match place {
            Some(place) => *place = value,
            None => items.push(Item::Entry(key.to_owned(), value)),
        }
    }

    /// Takes a key at the top away, and says whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let before = self.documents.iter().map(|document| document.0.len()).sum::<usize>();
        for document in &mut self.documents {
            document.0.retain(|item| !matches!(item, Item::Entry(name, _) if name == key));
        }
        before != self.documents.iter().map(|document| document.0.len()).sum::<usize>()
    }

    /// The keys at the top, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.documents.iter().flat_map(Branch::keys)
    }

    /// The value at a path of keys, in the first document that has it.
    #[must_use]
    pub fn value(&self, path: &[&str]) -> Option<&Value> {
        let (last, before) = path.split_last()?;
        self.documents.iter().find_map(|document| {
            let mut branch = document;
            for key in before {
                let Some(Value::Branch(next)) = branch.get(key) else { return None };
                branch = next;
            }
            branch.get(last)
        })
    }

    /// The text of the value at a path of keys; numbers, booleans and moments as they are written. None for
    /// what has no text: nothing, bytes, lists and mappings.
    #[must_use]
    pub fn text(&self, path: &[&str]) -> Option<Secret> {
        self.value(path)?.text()
    }

    /// The text of a key at the top.
    #[must_use]
    pub fn secret(&self, key: &str) -> Option<Secret> {
        self.text(&[key])
    }

    /// The tree as plain text, comments kept where the format has any.
    ///
    /// # Errors
    /// If JSON is asked for and a value has no form there.
    pub fn to_text(&self, format: Format) -> Result<Secret, SopsError> {
        match format {
            Format::Yaml => Ok(Secret::new(yaml::write(&self.documents))),
            Format::Json => json::write(&self.documents).map(Secret::new),
        }
    }

    /// How many documents there are.
    #[must_use]
    pub fn documents(&self) -> usize {
        self.documents.len()
    }
}

impl Branch {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find_map(|item| match item {
            Item::Entry(name, value) if name == key => Some(value),
            _ => None,
        })
    }

    /// The keys, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|item| match item {
            Item::Entry(name, _) => Some(name.as_str()),
            Item::Comment(_) => None,
        })
    }

    /// Whether nothing but comments is in it.
    pub(crate) fn is_bare(&self) -> bool {
        self.0.iter().all(|item| matches!(item, Item::Comment(_)))
    }
}

impl List {
    /// The values, in order.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.0.iter().filter_map(|element| match element {
            Element::Value(value) => Some(value),
            Element::Comment(_) => None,
        })
    }

    /// Whether nothing but comments is in it.
    pub(crate) fn is_bare(&self) -> bool {
        self.0.iter().all(|element| matches!(element, Element::Comment(_)))
    }
}

impl Value {
    /// Its text, if it has one.
    #[must_use]
    pub fn text(&self) -> Option<Secret> {
        Some(Secret::new(match self {
            Self::Text(text) => return Some(text.clone()),
            Self::Integer(number) => number.to_string(),
            Self::Float(number) => number.to_string(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Time(moment) => moment.clone(),
            Self::Null | Self::Bytes(_) | Self::List(_) | Self::Branch(_) => return None,
        }))
    }

    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Text(_) => "text",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Boolean(_) => "true or false",
            Self::Null => "nothing",
            Self::Bytes(_) => "bytes",
            Self::Time(_) => "a moment",
            Self::List(_) => "a list",
            Self::Branch(_) => "a mapping",
        }
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} documents)", self.documents.len())
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Value({})", self.kind())
    }
}

impl fmt::Debug for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Branch({} keys)", self.keys().count())
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "List({} values)", self.values().count())
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bytes({})", self.0.len())
    }
}

impl Bytes {
    /// Gives the bytes out.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}
