//! What can go wrong between us and an API server, and how the engine hears of it.

use std::error::Error as StdError;
use std::time::Duration;

use castle_model::{Class, Failure};
use castle_wire::failure::chain;
use castle_wire::{CallError, ConnectError, TlsError};
use thiserror::Error;

use crate::catalogue::{Refusal, classify};

/// Why a call to an API server came to nothing.
#[derive(Debug, Error)]
pub enum KubeError {
    /// The access cannot be used at all.
    #[error("the access to {server} cannot be used: {why}")]
    Access {
        /// The server.
        server: String,
        /// What is wrong with it.
        why: String,
    },
    /// Certificates or key of the access cannot be used.
    #[error("the access to {server} cannot be used")]
    Tls {
        /// The server.
        server: String,
        /// What is wrong with them.
        #[source]
        source: TlsError,
    },
    /// The server answered and refused.
    #[error("{doing}: the API server refused ({}): {}", .refusal.code, .refusal.message)]
    Refused {
        /// What was being done, to what.
        doing: String,
        /// Its words.
        refusal: Refusal,
    },
    /// The server knows no such kind.
    #[error("no matches for kind \"{kind}\" in version \"{api_version}\"")]
    NoSuchKind {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
    /// No connection, or it broke.
    #[error("{doing}: no answer from the API server")]
    Broken {
        /// What was being done, to what.
        doing: String,
        /// How it broke.
        #[source]
        source: Box<dyn StdError + Send + Sync>,
    },
    /// A connection that was made for one call did not come about or broke.
    #[error("{doing}")]
    Call {
        /// What was being done, to what.
        doing: String,
        /// How it failed.
        #[source]
        source: Box<CallError>,
    },
    /// The deadline of one call passed.
    #[error("{doing}: no answer within {} s", .after.as_secs())]
    Deadline {
        /// What was being done, to what.
        doing: String,
        /// How long was waited.
        after: Duration,
    },
    /// A watch was over before it had said anything.
    #[error("{doing}: the API server ended the watch as soon as it began")]
    Ended {
        /// What was being done, to what.
        doing: String,
    },
    /// The answer makes no sense.
    #[error("{doing}: the answer cannot be read: {why}")]
    Reply {
        /// What was being done, to what.
        doing: String,
        /// What is wrong with it.
        why: String,
    },
}

impl KubeError {
    /// The server's own words, if it answered.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused { refusal, .. } => Some(refusal),
            _ => None,
        }
    }

    /// Whether the object, or its whole kind, is not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NoSuchKind { .. }) || self.refusal().is_some_and(|r| r.code == 404)
    }

    /// Whether a place in a list or a watch is too old to go on from.
    #[must_use]
    pub fn is_too_old(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == 410)
    }

    /// Whether the object is not (any more) what the call took it for.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        self.refusal().is_some_and(|refusal| refusal.code == 409)
    }

    /// Decides whether the same call may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Access { .. } | Self::Tls { .. } => Class::Invalid,
            Self::Refused { refusal, .. } => classify(refusal).0,
            Self::NoSuchKind { .. } => Class::Gone,
            Self::Broken { source, .. } => {
                connect_error(source.as_ref()).map_or(Class::Transient, ConnectError::class)
            }
            Self::Call { source, .. } => source.class(),
            Self::Deadline { .. } | Self::Ended { .. } => Class::Transient,
            Self::Reply { .. } => Class::Bug,
        }
    }

    /// The failure of what needed this call.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let class = self.class();
        match self {
            Self::Refused { doing, refusal } => {
                let failure = Failure::new(class, doing, &refusal.message)
                    .evidence(format!("HTTP {} {}", refusal.code, refusal.reason));
                let failure = failure.wait(refusal.wait);
                match classify(refusal).1 {
                    "" => failure,
                    hint => failure.hint(hint),
                }
            }
            Self::NoSuchKind { kind, .. } => {
                Failure::new(class, format!("find the kind {kind}"), self.to_string())
                    .hint("its CustomResourceDefinition is not installed or not established")
            }
            Self::Broken { doing, source } => {
                let connect = connect_error(source.as_ref());
                let why = connect.map_or_else(|| chain(source.as_ref()), |e| chain(e));
                let failure = Failure::new(class, doing, why);
                match connect.and_then(ConnectError::hint) {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            Self::Call { doing, source } => source.failure(doing),
            Self::Deadline { doing, after } => {
                Failure::new(class, doing, format!("no answer within {} s", after.as_secs()))
            }
            Self::Ended { doing } => {
                Failure::new(class, doing, "the API server ended the watch as soon as it began")
            }
            Self::Access { server, .. } | Self::Tls { server, .. } => {
                Failure::new(class, format!("open a client of {server}"), chain(self))
            }
            Self::Reply { doing, why } => Failure::bug(doing, why),
        }
    }
}

impl From<KubeError> for Failure {
    fn from(error: KubeError) -> Self {
        error.failure()
    }
}

/// The error of our own connector inside what hyper, tower and kube wrapped around it.
fn connect_error<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a ConnectError> {
    let mut step = Some(error);
    while let Some(current) = step {
        if let Some(found) = current.downcast_ref::<ConnectError>() {
            return Some(found);
        }
        step = current.source();
    }
    None
}
