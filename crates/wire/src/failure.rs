//! Failures of the wire as the engine hears of them: a class, and words that name the cure.

use std::error::Error;
use std::io;

use castle_model::{Class, Failure};
use rustls::{CertificateError, Error as RustlsError};

use crate::connector::{ConnectError, HandshakeError};
use crate::rest::{CallError, OpenError};
use crate::tls::show_fingerprint;

/// The words of an error and of everything behind it, in one line.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut step = error.source();
    while let Some(current) = step {
        let text = current.to_string();
        if !words.ends_with(&text) {
            words.push_str(": ");
            words.push_str(&text);
        }
        step = current.source();
    }
    words
}

impl ConnectError {
    /// Decides whether the same connection may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::BadUri { .. } => Class::Invalid,
            Self::Dial { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Class::Denied,
                io::ErrorKind::InvalidInput => Class::Invalid,
                _ => Class::Transient,
            },
            Self::DialDeadline { .. } | Self::HandshakeDeadline { .. } => Class::Transient,
            Self::Tls { source, .. } => source.class(),
        }
    }

    /// What a person can do about it, where something is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Tls { source, .. } => source.hint(),
            _ => None,
        }
    }
}

impl HandshakeError {
    /// Decides whether the same handshake may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Pin(_) => Class::Denied,
            // A machine that has just booted may not know the time yet, and its certificate is as young.
            Self::Rustls(RustlsError::InvalidCertificate(
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
            )) => Class::Transient,
            Self::Rustls(RustlsError::InvalidCertificate(_) | RustlsError::AlertReceived(_)) => {
                Class::Denied
            }
            Self::Rustls(_) | Self::Broken(_) => Class::Transient,
        }
    }

    fn hint(&self) -> Option<String> {
        let Self::Rustls(RustlsError::InvalidCertificate(why)) = self else {
            return match self {
                Self::Pin(mismatch) => Some(format!(
                    "compare it with the server's own display; if it is right, write: fingerprint = \"{}\"",
                    show_fingerprint(&mismatch.seen)
                )),
                _ => None,
            };
        };
        match why {
            // Another authority of the same name, as every Talos and Proxmox cluster has one, gives a bad signature.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => Some(
                "name its authority with `ca`, or pin the certificate with `fingerprint`"
                    .to_owned(),
            ),
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some("renew the server's certificate, and compare both clocks".to_owned())
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some(
                    "use a name that the certificate holds, or pin it with `fingerprint`"
                        .to_owned(),
                )
            }
            _ => None,
        }
    }
}

impl CallError {
    /// Decides whether the same call may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Request { .. } => Class::Bug,
            Self::Connect { source, .. } => source.class(),
            Self::Rejected { .. } => Class::Denied,
            Self::NotSent { .. } | Self::Broken { .. } | Self::Deadline { .. } => Class::Transient,
            Self::TooLarge { .. } => Class::Invalid,
        }
    }

    /// The failure of something that needed this call.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        let mut failure = Failure::new(self.class(), what, chain(self));
        failure.hint = match self {
            Self::Connect { source, .. } => source.hint(),
            Self::Rejected { .. } => {
                Some("the client certificate is missing or not accepted".to_owned())
            }
            _ => None,
        };
        failure
    }
}

impl OpenError {
    /// The failure of something that needed this client.
    #[must_use]
    pub fn failure(&self, what: impl Into<String>) -> Failure {
        Failure::new(Class::Invalid, what, chain(self))
    }
}
