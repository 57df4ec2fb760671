//! Where images and manifests come from: the Talos image factory, and the release pages of what castle installs.
//!
//! [`schematic`] says which image is wanted and knows its id before anybody is asked; [`factory`] registers it;
//! [`manifest`] has the table of pinned releases and fetches them.

pub mod factory;
pub mod manifest;
mod redirect;
pub mod schematic;

pub use factory::Factory;
pub use manifest::{Manifest, ManifestSource, fetch, manifests, source};
pub use schematic::Schematic;

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
    #[error("{url} broke off after {size} of {promised} bytes")]
    BrokenOff {
        /// The address.
        url: String,
        /// How long it is.
        promised: u64,
        /// How much came.
        size: u64,
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

fn said(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

impl ArtefactError {
    /// Decides whether the same may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Open { .. } | Self::Extension(_) | Self::Scalar(_) | Self::Redirect { .. } => {
                Class::Invalid
            }
            Self::Call { source, .. } => source.class(),
            Self::Answer { status, .. } => match status {
                401..=403 => Class::Denied,
                404 | 410 => Class::Gone,
                429 | 500..=599 => Class::Transient,
                _ => Class::Invalid,
            },
            Self::OtherId { .. } => Class::Conflict,
            Self::BrokenOff { .. } => Class::Transient,
        }
    }

    /// The failure of something that needed the artefact.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let what = what.into();
        match self {
            Self::Call { source, .. } => source.failure(what),
            Self::Answer { status: 404, .. } => Failure::new(self.class(), what, self.to_string())
                .hint("compare the version with those that are published"),
            Self::OtherId { .. } => Failure::new(self.class(), what, self.to_string()).hint(
                "the factory's rules have changed: this castle needs a newer version of castle",
            ),
            _ => Failure::new(self.class(), what, chain(self)),
        }
    }
}
