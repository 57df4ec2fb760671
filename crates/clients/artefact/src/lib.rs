//! Where images and manifests come from: the Talos image factory, and the release pages of what castle installs.
//!
//! [`schematic`] says which image is wanted and knows its id before anybody is asked; [`factory`] registers it;
//! [`catalogue`] has the releases that castle installs; [`manifest`] reads them, held against `castle.lock`.

mod cache;
pub mod catalogue;
mod download;
pub mod factory;
pub mod manifest;
mod place;
mod redirect;
pub mod schematic;

pub use catalogue::{Component, ManifestSource, catalogue, component, installed};
pub use download::Progress;
pub use factory::Factory;
pub use manifest::{Manifest, fetch, pinned, read, read_url};
pub use schematic::Schematic;

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use castle_model::{Class, Failure};
use castle_wire::CallError;
use castle_wire::failure::chain;
use castle_wire::rest::OpenError;
use thiserror::Error;

/// Why an artefact could not be had.
#[derive(Debug, Error)]
pub enum ArtefactError {
    /// The address cannot be used.
    #[error("cannot set up a client for {url}")]
    Open {
        /// The address.
        url: String,
        /// Why not.
        #[source]
        source: OpenError,
    },
    /// Nothing can be read there.
    #[error("`{url}` can not be read: {why}")]
    Address {
        /// The address.
        url: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A file can not be read.
    #[error("{} can not be read", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// There is no answer.
    #[error("no answer from {url}")]
    Call {
        /// The address.
        url: String,
        /// Why not.
        #[source]
        source: CallError,
    },
    /// The server says no.
    #[error("{url} answers {status}{}", said(.text))]
    Answer {
        /// The address.
        url: String,
        /// The status.
        status: u16,
        /// The first line of what it says.
        text: String,
    },
    /// The server sends us from one address to the next without end, or away from https.
    #[error("{url} redirects {why}")]
    Redirect {
        /// The first address.
        url: String,
        /// In which way.
        why: String,
    },
    /// What was sent is not all of it.
    #[error("{url} broke off after {size} bytes{}", of(*.promised))]
    BrokenOff {
        /// The address.
        url: String,
        /// How long it is, if that was told.
        promised: Option<u64>,
        /// How much came.
        size: u64,
    },
    /// Nothing was sent.
    #[error("{url} is empty")]
    Empty {
        /// The address.
        url: String,
    },
    /// It did not come to its end.
    #[error("{url} was not read to its end within {} s", .after.as_secs())]
    Late {
        /// The address.
        url: String,
        /// How long was waited.
        after: Duration,
    },
    /// More is sent than we take.
    #[error("{url} is larger than {limit} bytes")]
    TooLarge {
        /// The address.
        url: String,
        /// The limit.
        limit: u64,
    },
    /// What is sent is packed, although nobody asked for that.
    #[error("{url} is sent in the encoding `{encoding}`, which was not asked for")]
    Encoded {
        /// The address.
        url: String,
        /// In which way.
        encoding: String,
    },
    /// There is a lock, and this is not in it.
    #[error("castle.lock does not pin {what}")]
    NotPinned {
        /// Which.
        what: String,
    },
    /// There is a lock, and it is about another one.
    #[error("castle.lock pins {pinned}, wanted is {what}")]
    PinnedOther {
        /// Which is wanted.
        what: String,
        /// Which is pinned.
        pinned: String,
    },
    /// It is not what is pinned.
    #[error("{url} has the sha256 {found}, pinned is {pinned}")]
    OtherContent {
        /// The address.
        url: String,
        /// The content that is pinned.
        pinned: String,
        /// The content that came.
        found: String,
    },
    /// An extension's name holds characters whose quoting we do not reproduce.
    #[error("`{0}` is not the name of a Talos extension (a-z, 0-9, `-`, `_`, `.` and `/`)")]
    Extension(String),
    /// A value of a schematic holds characters whose quoting we do not reproduce.
    #[error("`{0}` can not stand in a schematic whose id is computed (a-z, 0-9 and `-_./=`)")]
    Scalar(String),
    /// The factory computes another id than we do.
    #[error("the image factory gives the schematic the id {given}, {expected} was computed")]
    OtherId {
        /// Ours.
        expected: String,
        /// Its.
        given: String,
    },
}

fn of(promised: Option<u64>) -> String {
    promised.map_or(String::new(), |promised| format!(" of {promised}"))
}

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl ArtefactError {
    /// Decides whether the same may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Open { .. }
            | Self::Address { .. }
            | Self::Extension(_)
            | Self::Scalar(_)
            | Self::Redirect { .. }
            | Self::Empty { .. }
            | Self::TooLarge { .. }
            | Self::Encoded { .. }
            | Self::NotPinned { .. }
            | Self::PinnedOther { .. } => Class::Invalid,
            Self::File { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Class::Gone,
                io::ErrorKind::PermissionDenied => Class::Denied,
                _ => Class::Invalid,
            },
            Self::Call { source, .. } => source.class(),
            Self::Answer { status, .. } => match status {
                401..=403 => Class::Denied,
                404 | 410 => Class::Gone,
                429 | 500..=599 => Class::Transient,
                _ => Class::Invalid,
            },
            Self::OtherId { .. } | Self::OtherContent { .. } => Class::Conflict,
            Self::BrokenOff { .. } | Self::Late { .. } => Class::Transient,
        }
    }

    /// The failure of something that needed the artefact.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let what = what.into();
        match self {
            Self::Call { source, .. } => source.failure(what),
            Self::Answer { status: 404, .. } => Failure::new(self.class(), what, self.to_string())
                .hint("compare the version with those that are published; a mirror has it only if somebody put it there"),
            Self::File { .. } => Failure::new(self.class(), what, chain(self))
                .hint("put the file there, readable for you; nothing of it was used"),
            Self::OtherId { .. } => Failure::new(self.class(), what, self.to_string()).hint(
                "the factory's rules have changed: this castle needs a newer version of castle",
            ),
            Self::NotPinned { .. } | Self::PinnedOther { .. } => {
                Failure::new(self.class(), what, self.to_string())
                    .hint("`castle lock` pins what the castle file wants; nothing of it was used")
            }
            Self::OtherContent { .. } => Failure::new(self.class(), what, self.to_string()).hint(
                "nothing of it was used: find out why it changed before you pin it anew, the same address should never give other content",
            ),
            _ => Failure::new(self.class(), what, chain(self)),
        }
    }
}
