//! Goes through a tree as sops does: every leaf and comment once, in order, with what decides about it.

use castle_model::Secret;

use crate::SopsError;
use crate::cipher;
use crate::rules::Rules;
use crate::tree::{Branch, Element, Item, List, Value};

/// Where a leaf stands.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The keys on the way: what a ciphertext is bound to. Numbers of list items are not among them.
    keys: Vec<String>,
    /// For each step: a key, or the number of a list item.
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Key,
    Item(usize),
}

impl Place {
    /// What a ciphertext here is bound to.
    pub(crate) fn bound(&self) -> String {
        format!("{}:", self.keys.join(":"))
    }

    /// What ciphertexts further out are bound to, nearest first.
    pub(crate) fn bound_outside(&self) -> impl Iterator<Item = String> {
        (0..self.keys.len()).rev().map(|count| format!("{}:", self.keys[..count].join(":")))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut keys = self.keys.iter();
        if self.steps.is_empty() {
            return f.write_str("the top");
        }
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key => {
                    let dot = if number == 0 { "" } else { "." };
                    write!(f, "{dot}{}", keys.next().map_or("", String::as_str))?;
                }
                Step::Item(number) => write!(f, "[{number}]")?,
            }
        }
        Ok(())
    }
}

/// What is done to a leaf. Each gets the place, and whether the rules say that it is encrypted.
pub(crate) trait Visitor {
    /// A value that is neither nothing nor a collection.
    fn value(&mut self, value: &mut Value, place: &Place, encrypted: bool)
    -> Result<(), SopsError>;

    /// A comment. One of a list may become a value, and the other way round.
    fn comment(
        &mut self,
        text: &mut Secret,
        place: &Place,
        encrypted: bool,
    ) -> Result<(), SopsError>;

    /// Whether comments of lists stand as values in what comes out: sops seals them so.
    fn lists_comments_as_values(&self) -> bool;
}

/// Goes through one document after the other.
pub(crate) fn walk(
    documents: &mut [Branch],
    rules: &Rules,
    visitor: &mut dyn Visitor,
) -> Result<(), SopsError> {
    let mut walker = Walker { rules, visitor, place: Place::default(), marked: Vec::new() };
    documents.iter_mut().try_for_each(|document| walker.branch(document))
}

struct Walker<'walk> {
    rules: &'walk Rules,
    visitor: &'walk mut dyn Visitor,
    place: Place,
    /// For each level, whether a comment right before what is looked at is one that the rules look for. Not the comments
    /// themselves: each would be looked at again for each that follows it.
    marked: Vec<bool>,
}

impl Walker<'_> {
    /// Whether a comment is encrypted; what follows it is under its mark.
    fn heeds(&mut self, comment: &Secret) -> bool {
        let itself = self.rules.marks(comment);
        let encrypted = self.encrypts(itself);
        if let Some(level) = self.marked.last_mut() {
            *level |= itself;
        }
        encrypted
    }

    fn forget(&mut self) {
        if let Some(level) = self.marked.last_mut() {
            *level = false;
        }
    }

    fn encrypts(&self, itself: bool) -> bool {
        let marked = self.marked.iter().any(|level| *level);
        self.rules.encrypts(&self.place.keys, marked, itself)
    }

    fn branch(&mut self, branch: &mut Branch) -> Result<(), SopsError> {
        self.marked.push(false);
        for item in &mut branch.0 {
            match item {
                Item::Comment(text) => {
                    let encrypted = self.heeds(text);
                    self.visitor.comment(text, &self.place, encrypted)?;
                }
                Item::Entry(key, value) => {
                    self.place.keys.push(key.clone());
                    self.place.steps.push(Step::Key);
                    self.value(value)?;
                    self.place.keys.pop();
                    self.place.steps.pop();
                    self.forget();
                }
            }
        }
        self.marked.pop();
        Ok(())
    }

    fn value(&mut self, value: &mut Value) -> Result<(), SopsError> {
        match value {
            Value::Null => Ok(()),
            Value::Branch(branch) => self.branch(branch),
            Value::List(list) => self.list(list),
            value => {
                let encrypted = self.encrypts(false);
                self.visitor.value(value, &self.place, encrypted)
            }
        }
    }

    fn list(&mut self, list: &mut List) -> Result<(), SopsError> {
        self.marked.push(false);
        let as_values = self.visitor.lists_comments_as_values();
        if as_values {
            // sops would take an empty comment, sealed, for an empty text.
            list.0.retain(
                |element| !matches!(element, Element::Comment(text) if text.expose().is_empty()),
            );
        }
        for (number, element) in list.0.iter_mut().enumerate() {
            self.place.steps.push(Step::Item(number));
            match element {
                Element::Comment(text) => {
                    let encrypted = self.heeds(text);
                    self.visitor.comment(text, &self.place, encrypted)?;
                    if as_values && encrypted {
                        *element = Element::Value(Value::Text(text.clone()));
                    }
                }
                Element::Value(Value::Text(text))
                    if !as_values && cipher::is_sealed_comment(text.expose()) =>
                {
                    let encrypted = self.heeds(text);
                    if encrypted {
                        self.visitor.comment(text, &self.place, true)?;
                        *element = Element::Comment(text.clone());
                    } else if let Element::Value(value) = element {
                        self.visitor.value(value, &self.place, false)?;
                    }
                }
                Element::Value(value) => {
                    self.value(value)?;
                    self.forget();
                }
            }
            self.place.steps.pop();
        }
        self.marked.pop();
        Ok(())
    }
}
