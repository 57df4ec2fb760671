//! What can be wrong with a file, a key or a list of recipients: its place, the reason, the cure, never a value.

use castle_model::{Class, Failure};
use thiserror::Error;

use crate::limits;

/// Why a SOPS file, an age file or a key is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SopsError {
    /// A format of sops that castle does not read.
    #[error("sops' {name} format is not supported")]
    OtherFormat {
        /// Its name in sops.
        name: &'static str,
    },
    /// More text than any secrets file has.
    #[error("the text is larger than {} MiB", limits::BYTES >> 20)]
    TooLarge,
    /// Nesting without end.
    #[error("{place}: nested deeper than {} levels", limits::DEPTH)]
    TooDeep {
        /// Where.
        place: String,
    },
    /// More values than any secrets file has.
    #[error("{place}: more than {} keys, values and comments", limits::NODES)]
    TooMany {
        /// Where.
        place: String,
    },
    /// The text is not what it should be.
    #[error("line {line}: not {format}: {why}")]
    Syntax {
        /// What it should have been.
        format: &'static str,
        /// Where.
        line: usize,
        /// The parser's reason.
        why: String,
    },
    /// Something that the format knows, and that is refused.
    #[error("{place}: {what}")]
    Refused {
        /// Where.
        place: String,
        /// What stands there.
        what: String,
        /// What to do about it.
        cure: &'static str,
    },
    /// A file that should be encrypted has no metadata of sops.
    #[error("this is not encrypted: it has no `sops` metadata")]
    NotSealed,
    /// A file that should be plain has a key `sops` at the top.
    #[error("this is encrypted already: it has a key `sops` at the top")]
    AlreadySealed,
    /// The metadata can not be used.
    #[error("sops.{field}: {why}")]
    Metadata {
        /// Which part of it.
        field: String,
        /// Why not.
        why: String,
    },
    /// The file can only be opened by means that castle does not have.
    #[error("the file is encrypted with {names}, which castle does not open")]
    OtherKeys {
        /// The sections of the metadata, by name.
        names: String,
    },
    /// None of the identities opens the file.
    #[error("none of {offered} opens this file; it is encrypted for {wanted}")]
    NoIdentity {
        /// The recipients of the file.
        wanted: String,
        /// The recipients of the identities that were tried.
        offered: String,
    },
    /// An encrypted data key is damaged.
    #[error("the data key for {recipient} can not be read: {why}")]
    DataKey {
        /// For whom it was encrypted.
        recipient: String,
        /// What is wrong.
        why: String,
    },
    /// One value does not decrypt: damaged, moved or forged.
    #[error("{place}: {why}")]
    Damaged {
        /// Where.
        place: String,
        /// What is wrong.
        why: &'static str,
    },
    /// Values stand in clear that should be encrypted.
    #[error("in clear, and should be encrypted: {}", places.join(", "))]
    InClear {
        /// Where.
        places: Vec<String>,
    },
    /// The values are not those that were sealed.
    #[error("the MAC does not fit: values were changed, added, removed or moved after sealing")]
    Mac,
    /// An identity can not be used.
    #[error("identity on line {line}: {why}")]
    Identity {
        /// Where in the given text.
        line: usize,
        /// What is wrong.
        why: &'static str,
        /// What to do about it.
        cure: &'static str,
    },
    /// There is no identity at all.
    #[error("there is no age identity")]
    NoIdentities,
    /// A recipient can not be used. It is never shown: it may be a private key.
    #[error("recipient {number}: {why}")]
    Recipient {
        /// Its place in the list, from 1.
        number: usize,
        /// What is wrong.
        why: &'static str,
        /// What to do about it.
        cure: &'static str,
    },
    /// There is nobody to encrypt for.
    #[error("there is no recipient to encrypt for")]
    NoRecipients,
    /// A plain age file does not open.
    #[error("the age file can not be opened: {why}")]
    AgeFile {
        /// What is wrong.
        why: AgeFault,
    },
    /// The values can not be written in this format.
    #[error("{place}: {why}")]
    Unwritable {
        /// Where.
        place: String,
        /// Why.
        why: &'static str,
    },
}

/// What is wrong with an age file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AgeFault {
    /// Not of this format, or of a newer one.
    #[error("its format is unknown")]
    Format,
    /// The header is not well-formed.
    #[error("its header is damaged")]
    Header,
    /// The header was changed.
    #[error("its header was changed: the MAC does not fit")]
    HeaderMac,
    /// The armor is not well-formed.
    #[error("its armor is damaged")]
    Armor,
    /// The body is truncated, or was changed.
    #[error("its body is damaged or truncated")]
    Body,
    /// No identity fits.
    #[error("no identity fits")]
    NoMatch,
    /// The passphrase would take too long to try.
    #[error("its passphrase needs more work than is allowed")]
    Work,
}

impl SopsError {
    /// Whether it is the file, the key or castle that has to change. Nothing here gets better by itself.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::NoIdentity { .. }
            | Self::NoIdentities
            | Self::AgeFile { why: AgeFault::NoMatch } => Class::Denied,
            _ => Class::Invalid,
        }
    }

    /// What a person can do about it.
    #[must_use]
    pub fn cure(&self) -> &'static str {
        match self {
            Self::OtherFormat { .. } => "keep secrets in a .yaml or .json file",
            Self::TooLarge | Self::TooDeep { .. } | Self::TooMany { .. } => {
                "a secrets file is small and flat: split it, or look whether this is the right file"
            }
            Self::Syntax { .. } => "repair the line, or take the file from its repository again",
            Self::Refused { cure, .. }
            | Self::Identity { cure, .. }
            | Self::Recipient { cure, .. } => cure,
            Self::NotSealed => {
                "encrypt it (castle secrets encrypt), and treat what it held as known to everybody who could read it"
            }
            Self::AlreadySealed => "decrypt it first, or rename the key `sops`",
            Self::Metadata { .. } => "take the file from its repository again, or encrypt it anew",
            Self::OtherKeys { .. } => {
                "add an age recipient with sops (sops updatekeys), and take it out of key groups"
            }
            Self::NoIdentity { .. } | Self::NoIdentities => {
                "give the right identity (SOPS_AGE_KEY, SOPS_AGE_KEY_FILE or sops/age/keys.txt), or let somebody who has one add yours as a recipient"
            }
            Self::DataKey { .. } | Self::Damaged { .. } | Self::Mac => {
                "somebody or something changed the file after it was sealed: take it from its repository again"
            }
            Self::InClear { .. } => {
                "encrypt them (sops edit, or castle secrets encrypt), and change the secrets if the file was shared"
            }
            Self::NoRecipients => {
                "name a recipient (age1… or an ssh public key), or give an identity to derive it from"
            }
            Self::AgeFile { .. } => {
                "look whether the file is whole, and the identity the right one"
            }
            Self::Unwritable { .. } => "write it as YAML",
        }
    }

    /// The failure of doing `what` with this file.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        Failure::new(self.class(), what, self.to_string()).hint(self.cure())
    }
}
