//! Which values of a file are encrypted: sops' rules, honoured when reading and chosen when writing.

use regex::{Regex, RegexBuilder};

use crate::SopsError;
use crate::tree::{Branch, Item, Value};
use castle_model::Secret;

/// The suffix of keys that stay in clear if a file names no rule.
pub const UNENCRYPTED_SUFFIX: &str = "_unencrypted";

/// A pattern may not grow beyond this many bytes when compiled; those of people are far smaller.
const PATTERN_SIZE: usize = 1 << 20;

/// What is encrypted in a file, and what its MAC covers.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Which values are encrypted. sops allows one such rule for a file.
    pub selection: Selection,
    /// Whether the MAC covers only what is encrypted, so that the rest may be edited by hand.
    pub mac_only_encrypted: bool,
}

/// Which values are encrypted.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Selection {
    /// All but those below a key that ends so.
    UnencryptedSuffix(String),
    /// Only those below a key that ends so.
    EncryptedSuffix(String),
    /// All but those below a key that matches.
    UnencryptedRegex(Pattern),
    /// Only those below a key that matches.
    EncryptedRegex(Pattern),
    /// All but those that follow a comment that matches.
    UnencryptedCommentRegex(Pattern),
    /// Only those that follow a comment that matches.
    EncryptedCommentRegex(Pattern),
}

/// A regular expression of a rule, found anywhere in a key or comment.
#[derive(Debug, Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// If it is none, or grows too large.
    pub fn new(text: &str) -> Result<Self, SopsError> {
        let compiled = RegexBuilder::new(text).size_limit(PATTERN_SIZE).build();
        compiled.map(Self).map_err(|_| SopsError::Metadata {
            field: "regex".to_owned(),
            why: "not a regular expression, or too large a one".to_owned(),
        })
    }

    pub(crate) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl Default for Rules {
    fn default() -> Self {
        let selection = Selection::UnencryptedSuffix(UNENCRYPTED_SUFFIX.to_owned());
        Self { selection, mac_only_encrypted: false }
    }
}

impl Rules {
    /// The rules that a file's metadata names.
    pub(crate) fn of_metadata(metadata: &Branch) -> Result<Self, SopsError> {
        let mut selections = Vec::new();
        for (field, make) in FIELDS {
            match metadata.get(field) {
                None | Some(Value::Null) => {}
                Some(Value::Text(text)) if text.expose().is_empty() => {}
                Some(Value::Text(text)) => {
                    selections.push(make(text.expose()).map_err(|error| match error {
                        SopsError::Metadata { why, .. } => {
                            SopsError::Metadata { field: field.to_owned(), why }
                        }
                        other => other,
                    })?);
                }
                Some(_) => {
                    let why = "not text".to_owned();
                    return Err(SopsError::Metadata { field: field.to_owned(), why });
                }
            }
        }
        let mac_only_encrypted = match metadata.get("mac_only_encrypted") {
            None | Some(Value::Null | Value::Boolean(false)) => false,
            Some(Value::Boolean(true)) => true,
            Some(_) => {
                let why = "neither true nor false".to_owned();
                return Err(SopsError::Metadata { field: "mac_only_encrypted".to_owned(), why });
            }
        };
        if selections.len() > 1 {
            return Err(SopsError::Metadata {
                field: "encrypted_regex".to_owned(),
                why: "only one rule of encrypted or unencrypted suffix, regex or comment_regex may stand in a file".to_owned(),
            });
        }
        let selection = selections.pop().unwrap_or_else(|| Self::default().selection);
        Ok(Self { selection, mac_only_encrypted })
    }

    /// The entries that name these rules in a file's metadata.
    pub(crate) fn to_metadata(&self) -> Vec<Item> {
        let (field, text) = match &self.selection {
            Selection::UnencryptedSuffix(text) => ("unencrypted_suffix", text.as_str()),
            Selection::EncryptedSuffix(text) => ("encrypted_suffix", text.as_str()),
            Selection::UnencryptedRegex(pattern) => ("unencrypted_regex", pattern.0.as_str()),
            Selection::EncryptedRegex(pattern) => ("encrypted_regex", pattern.0.as_str()),
            Selection::UnencryptedCommentRegex(pattern) => {
                ("unencrypted_comment_regex", pattern.0.as_str())
            }
            Selection::EncryptedCommentRegex(pattern) => {
                ("encrypted_comment_regex", pattern.0.as_str())
            }
        };
        let mut items = vec![Item::Entry(field.to_owned(), Value::Text(Secret::new(text)))];
        if self.mac_only_encrypted {
            items.push(Item::Entry("mac_only_encrypted".to_owned(), Value::Boolean(true)));
        }
        items
    }

    /// Whether a comment is one that the rules look for.
    pub(crate) fn marks(&self, comment: &Secret) -> bool {
        match &self.selection {
            Selection::UnencryptedCommentRegex(pattern)
            | Selection::EncryptedCommentRegex(pattern) => pattern.matches(comment.expose()),
            _ => false,
        }
    }

    /// Whether the value or comment at this path of keys is encrypted. `marked`: whether a comment right before it, or
    /// before what it stands in, is one that the rules look for; where the question is about a comment, `itself` is
    /// whether it is one.
    pub(crate) fn encrypts(&self, keys: &[String], marked: bool, itself: bool) -> bool {
        match &self.selection {
            // An empty suffix is none, for sops as for us.
            Selection::UnencryptedSuffix(suffix) => {
                suffix.is_empty() || !keys.iter().any(|key| key.ends_with(suffix))
            }
            Selection::EncryptedSuffix(suffix) => keys.iter().any(|key| key.ends_with(suffix)),
            Selection::UnencryptedRegex(pattern) => !keys.iter().any(|key| pattern.matches(key)),
            Selection::EncryptedRegex(pattern) => keys.iter().any(|key| pattern.matches(key)),
            Selection::UnencryptedCommentRegex(_) => !(marked || itself),
            // The comment that asks for encryption stays in clear itself, unless an earlier one asked too.
            Selection::EncryptedCommentRegex(_) => marked,
        }
    }
}

type Make = fn(&str) -> Result<Selection, SopsError>;

/// The names of the rules in the metadata.
const FIELDS: [(&str, Make); 6] = [
    ("unencrypted_suffix", |text| Ok(Selection::UnencryptedSuffix(text.to_owned()))),
    ("encrypted_suffix", |text| Ok(Selection::EncryptedSuffix(text.to_owned()))),
    ("unencrypted_regex", |text| Pattern::new(text).map(Selection::UnencryptedRegex)),
    ("encrypted_regex", |text| Pattern::new(text).map(Selection::EncryptedRegex)),
    ("unencrypted_comment_regex", |text| {
        Pattern::new(text).map(Selection::UnencryptedCommentRegex)
    }),
    ("encrypted_comment_regex", |text| Pattern::new(text).map(Selection::EncryptedCommentRegex)),
];
