//! Why a call to a machine did not succeed, and whether it may be made again.

use std::net::Ipv4Addr;
use std::time::Duration;

use castle_model::{Class, Failure};
use castle_wire::connector::End;
use castle_wire::failure::chain;
use castle_wire::{ConnectError, TlsError};
use thiserror::Error;

use crate::catalogue;

/// Why a call to a machine did not succeed.
#[derive(Debug, Error)]
pub enum TalosError {
    /// The certificates for the connection are unusable.
    #[error("the certificates for machine {address} cannot be used")]
    Tls {
        /// Which machine.
        address: Ipv4Addr,
        /// Why not.
        #[source]
        source: TlsError,
    },
    /// No connection came about; nothing was sent.
    #[error("cannot reach the Talos API of machine {address}")]
    Connect {
        /// Which machine.
        address: Ipv4Addr,
        /// Why not.
        #[source]
        source: ConnectError,
    },
    /// The connection broke before the first call.
    #[error("the connection to the Talos API of machine {address} broke: {words}")]
    Broken {
        /// Which machine.
        address: Ipv4Addr,
        /// What the layers below say.
        words: String,
    },
    /// The machine did not do as asked.
    #[error("machine {address} answered {call} with {code:?}: {text}")]
    Refused {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// The gRPC code.
        code: tonic::Code,
        /// Its words.
        text: String,
        /// How the connection ended, if it did.
        ended: Option<End>,
    },
    /// The machine did not answer in time.
    #[error("machine {address} did not answer {call} within {} s", .after.as_secs())]
    Deadline {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// How long was waited.
        after: Duration,
    },
    /// The answer does not have the shape it should.
    #[error("the answer of machine {address} to {call} cannot be understood: {problem}")]
    Shape {
        /// Which machine.
        address: Ipv4Addr,
        /// Which call.
        call: &'static str,
        /// What is wrong with it.
        problem: String,
    },
}

impl TalosError {
    /// Decides whether the same call may be tried again, with a hint where one is known.
    #[must_use]
    pub fn class(&self) -> (Class, Option<String>) {
        match self {
            Self::Tls { .. } => (Class::Invalid, None),
            Self::Connect { source, .. } => (source.class(), source.hint()),
            Self::Broken { .. } | Self::Deadline { .. } => (Class::Transient, None),
            Self::Refused { code, text, ended, .. } => {
                let (class, hint) = catalogue::judge(*code, text, ended.as_ref());
                (class, hint.map(str::to_owned))
            }
            Self::Shape { .. } => (Class::Bug, None),
        }
    }

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let (class, hint) = self.class();
        let mut failure = Failure::new(class, what, chain(self));
        failure.hint = hint;
        failure
    }

    /// Whether the machine says that what was asked for is there already.
    #[must_use]
    pub fn is_already_there(&self) -> bool {
        self.code() == Some(tonic::Code::AlreadyExists)
    }

    /// The gRPC code, if the machine itself answered.
    #[must_use]
    pub fn code(&self) -> Option<tonic::Code> {
        match self {
            Self::Refused { code, ended: None, .. } => Some(*code),
            _ => None,
        }
    }
}
