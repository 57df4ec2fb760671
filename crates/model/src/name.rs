//! A newtype for each identity, with its parsing in one place.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest name that fits a DNS label (RFC 1123), which node and castle names become.
pub const LABEL_MAX: usize = 63;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NameError {
    /// Nothing was given.
    #[error("it is empty")]
    Empty,
    /// More characters than a DNS label takes.
    #[error("it has {0} characters, {LABEL_MAX} at most are allowed")]
    TooLong(usize),
    /// A character that RFC 1123 does not allow, and where it stands (counted from 1).
    #[error("`{0}` at position {1} is not allowed (only a-z, 0-9 and `-`)")]
    Character(char, usize),
    /// A hyphen at an end.
    #[error("it may not begin or end with `-`")]
    Edge,
}

/// Checks that `text` is a DNS label: a-z, 0-9 and inner hyphens, 63 characters at most.
///
/// # Errors
/// Says what is wrong with the text.
pub fn check_label(text: &str) -> Result<(), NameError> {
    if text.is_empty() {
        return Err(NameError::Empty);
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some((at, c)) = text.chars().enumerate().find(|(_, c)| !allowed(*c)) {
        return Err(NameError::Character(c, at + 1));
    }
    if text.len() > LABEL_MAX {
        return Err(NameError::TooLong(text.len()));
    }
    if text.starts_with('-') || text.ends_with('-') {
        return Err(NameError::Edge);
    }
    Ok(())
}

/// The name of a castle: a DNS label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct CastleName(String);

/// The name of a layer, such as `platform`: a DNS label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct LayerName(String);

/// The name of a machine of the castle, such as `cp-01`: a DNS label.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct NodeName(String);

/// Names one step: `layer/kind` or `layer/kind/object`, such as `platform/vm/cp-01`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct StepId(String);

/// Names one run of a command, unique within a state root and sortable by time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct RunId(String);

/// One life of a castle, from its first VM to its last: 16 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(try_from = "String", into = "String")]
pub struct Incarnation(String);

/// A guest's number in Proxmox, 100 to 999,999,999.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct VmId(pub u32);

impl VmId {
    /// The lowest number that Proxmox gives out.
    pub const MIN: Self = Self(100);
    /// The highest number that Proxmox accepts.
    pub const MAX: Self = Self(999_999_999);
}

impl fmt::Display for VmId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StepId {
    /// Makes `layer/kind`.
    #[must_use]
    pub fn new(layer: &str, kind: &str) -> Self {
        Self(format!("{layer}/{kind}"))
    }

    /// Makes `layer/kind/object`.
    #[must_use]
    pub fn of(layer: &str, kind: &str, object: &str) -> Self {
        Self(format!("{layer}/{kind}/{object}"))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The part before the first slash.
    #[must_use]
    pub fn layer(&self) -> &str {
        self.0.split('/').next().unwrap_or_default()
    }
}

impl fmt::Display for StepId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl RunId {
    /// Wraps a run id that was made or read elsewhere.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl Incarnation {
    /// Makes an incarnation from eight random bytes.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(hex::encode(bytes))
    }
}

impl FromStr for Incarnation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let hexadecimal = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if text.len() == 16 && text.bytes().all(hexadecimal) {
            Ok(Self(text.to_owned()))
        } else {
            Err(format!("`{text}` is not an incarnation (16 hexadecimal digits)"))
        }
    }
}

impl TryFrom<String> for Incarnation {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// The three kinds of label share everything but their name.
macro_rules! label {
    ($name:ident) => {
        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = NameError;

            fn from_str(text: &str) -> Result<Self, NameError> {
                check_label(text)?;
                Ok(Self(text.to_owned()))
            }
        }

        impl TryFrom<String> for $name {
            type Error = NameError;

            fn try_from(text: String) -> Result<Self, NameError> {
                check_label(&text)?;
                Ok(Self(text))
            }
        }
    };
}

label!(CastleName);
label!(LayerName);
label!(NodeName);

/// Everything that is text inside shows as that text.
macro_rules! shown_as_text {
    ($($name:ident),*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0
            }
        }
    )*};
}

shown_as_text!(CastleName, LayerName, NodeName, Incarnation);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_follow_rfc_1123() {
        for good in ["a", "cp-01", "1", &"x".repeat(63)] {
            assert_eq!(check_label(good), Ok(()), "{good}");
        }
        assert_eq!(check_label(""), Err(NameError::Empty));
        assert_eq!(check_label("Blue"), Err(NameError::Character('B', 1)));
        assert_eq!(check_label("a_b"), Err(NameError::Character('_', 2)));
        assert_eq!(check_label("-a"), Err(NameError::Edge));
        assert_eq!(check_label("a-"), Err(NameError::Edge));
        assert_eq!(check_label(&"x".repeat(64)), Err(NameError::TooLong(64)));
    }

    #[test]
    fn an_incarnation_round_trips() {
        let made = Incarnation::from_bytes([0, 1, 2, 3, 0xfd, 0xfe, 0xff, 9]);
        assert_eq!(made.to_string().parse(), Ok(made));
        assert!("xyz".parse::<Incarnation>().is_err());
        assert!("ABCDEF0123456789".parse::<Incarnation>().is_err());
    }

    #[test]
    fn a_step_knows_its_layer() {
        assert_eq!(StepId::of("platform", "vm", "cp-01").layer(), "platform");
    }
}
