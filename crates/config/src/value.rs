//! What an expression of the castle file amounts to, with the place of each part.

use std::ops::Range;

/// The result of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// `null`.
    Null,
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A number that is not whole, or too large; no setting takes one.
    Fraction(String),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Item>),
    /// An object, in the order of the file.
    Map(Vec<(String, Item)>),
}

/// A value and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Item {
    /// The value.
    pub(crate) value: Value,
    /// Where it stands.
    pub(crate) range: Range<usize>,
    /// Whether the text came from the environment or another file, so that no message may repeat it.
    pub(crate) foreign: bool,
}

impl Value {
    /// The kind of value, for a sentence.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Integer(_) => "a number",
            Self::Fraction(_) => "a number that is not whole",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}
