//! Failures of the wire as the engine hears of them: a class, and words that name the cure.

use std::error::Error;
use std::io;

use castle_model::{Class, Failure};
use rustls::{AlertDescription, Error as RustlsError};

use crate::connector::{ConnectError, HandshakeError};
use crate::rest::{CallError, OpenError};
use crate::tls::show_fingerprint;
use crate::verifier::Fault;

/// The words of an error and of everything behind it, in one line. What has been said before is left out.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut words = error.to_string();
    let mut step = error.source();
    while let Some(current) = step {
        add(&mut words, &current.to_string());
        step = current.source();
    }
    plain(words)
}

/// What somebody said of an error, and the words of everything behind it, without what has been said before.
#[must_use]
pub fn chain_after(said: &str, behind: &(dyn Error + 'static)) -> String {
    let mut words = said.to_owned();
    let mut step = Some(behind);
    while let Some(current) = step {
        add(&mut words, &current.to_string());
        step = current.source();
    }
    plain(words)
}

/// The same without the words, and the manual, of the library that met a connection cut off.
fn plain(mut words: String) -> String {
    while let Some(at) = words.find(CUT_OFF) {
        let end = at + CUT_OFF.len();
        let manual = words[end..].strip_prefix(": https://").map_or(0, |rest| {
            ": https://".len() + rest.find(char::is_whitespace).unwrap_or(rest.len())
        });
        words.replace_range(at..end + manual, "the connection was closed in the middle");
    }
    words
}

/// How rustls says that the other side went without a word.
const CUT_OFF: &str = "peer closed connection without sending TLS close_notify";

/// Adds a cause, unless all of it has been said.
fn add(words: &mut String, cause: &str) {
    // gRPC's word for "what comes next failed".
    let news = |part: &str| part != "transport error" && !words.contains(part);
    if !cause.split(": ").any(news) {
        return;
    }
    if !words.is_empty() {
        words.push_str(": ");
    }
    words.push_str(cause);
}

impl ConnectError {
    /// Decides whether the same connection may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::BadUri { .. } => Class::Invalid,
            Self::Dial { source, .. } => match source.kind() {
                io::ErrorKind::PermissionDenied => Class::Denied,
                // A name without an address: what is wrong is the name, or the DNS that should know it.
                io::ErrorKind::InvalidInput | io::ErrorKind::NotFound => Class::Invalid,
                _ => Class::Transient,
            },
            Self::DialDeadline { .. } | Self::HandshakeDeadline { .. } => Class::Transient,
            Self::Tls { source, .. } => source.class(),
        }
    }

    /// What failed in the handshake, if that is where it ended.
    #[must_use]
    pub fn handshake(&self) -> Option<&HandshakeError> {
        match self {
            Self::Tls { source, .. } => Some(source),
            _ => None,
        }
    }

    /// What a person can do about it, where something is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        if let Self::Dial { target, source } = self
            && source.kind() == io::ErrorKind::NotFound
        {
            let host = target.rsplit_once(':').map_or(target.as_str(), |(host, _)| host);
            return Some(format!(
                "compare the name with the castle file; if it is right, this computer's DNS does not know it: `getent hosts {host}` asks it"
            ));
        }
        let unheard = match self {
            Self::Dial { source, .. } => source.kind() == io::ErrorKind::ConnectionRefused,
            Self::DialDeadline { .. } => true,
            _ => false,
        };
        if unheard {
            return Some(
                "is the server up, and is that its port? a firewall may stand in between"
                    .to_owned(),
            );
        }
        self.handshake()?.hint()
    }
}

/// How far a clock may be behind before waiting is no cure: machines that have just booted find the time within seconds.
const SKEW: u64 = 60_000;

impl HandshakeError {
    /// Whether the two sides do not agree what time it is: one takes the other's certificate for over, or not begun.
    #[must_use]
    pub fn is_untimely(&self) -> bool {
        match self {
            Self::Certificate(distrusted) => {
                matches!(distrusted.fault(), Fault::Expired | Fault::NotYet(_))
            }
            Self::Rustls(error) => {
                *error == RustlsError::AlertReceived(AlertDescription::CertificateExpired)
            }
            Self::Pin(_) | Self::Broken(_) => false,
        }
    }

    /// Decides whether the same handshake may be tried again.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Self::Certificate(distrusted) => match distrusted.fault() {
                Fault::NotYet(behind) if behind <= SKEW => Class::Transient,
                _ => Class::Denied,
            },
            Self::Pin(_)
            | Self::Rustls(
                RustlsError::InvalidCertificate(_)
                | RustlsError::NoCertificatesPresented
                | RustlsError::AlertReceived(_),
            ) => Class::Denied,
            Self::Rustls(RustlsError::PeerIncompatible(_) | RustlsError::InvalidMessage(_)) => {
                Class::Invalid
            }
            Self::Rustls(_) | Self::Broken(_) => Class::Transient,
        }
    }

    /// What a person can do about it, where something is known.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let distrusted = match self {
            Self::Pin(mismatch) => {
                return Some(format!(
                    "compare it with the server's own display; if it is right, write: fingerprint = \"{}\"",
                    show_fingerprint(&mismatch.seen)
                ));
            }
            Self::Certificate(distrusted) => distrusted,
            Self::Rustls(
                RustlsError::PeerIncompatible(_)
                | RustlsError::AlertReceived(
                    AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity,
                ),
            ) => {
                return Some("update the server, or what stands in front of it".to_owned());
            }
            Self::Rustls(RustlsError::InvalidMessage(_)) => {
                return Some("compare host and port with where the server listens".to_owned());
            }
            Self::Rustls(RustlsError::NoCertificatesPresented) => {
                return Some("give the server a certificate".to_owned());
            }
            Self::Rustls(_) | Self::Broken(_) => return None,
        };
        Some(
            match distrusted.fault() {
                Fault::Issuer => {
                    "if it is the right server, make its authority known: to this system (SSL_CERT_FILE names another list), or by `ca` or `fingerprint` where the castle file takes them"
                }
                Fault::Expired => "renew the server's certificate, and compare both clocks",
                Fault::NotYet(_) => "compare both clocks: one of them is wrong",
                Fault::Name => {
                    "use a name that the certificate holds, or pin it where the castle file takes a `fingerprint`"
                }
                Fault::Purpose => "give the server a certificate with the purpose `serverAuth`",
                Fault::Signature => "renew the server's certificate: SHA-1 has been forged",
                Fault::Other => return None,
            }
            .to_owned(),
        )
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{0}")]
    struct Said(&'static str, #[source] Option<Box<Self>>);

    fn said(words: &[&'static str]) -> Said {
        let mut behind = None;
        for text in words[1..].iter().rev() {
            behind = Some(Box::new(Said(text, behind)));
        }
        Said(words[0], behind)
    }

    #[test]
    fn a_cause_that_was_told_is_not_told_again() {
        let late = "no answer from 10.0.0.1:50000 within 0.5 s";
        assert_eq!(chain(&said(&["can not ask", late])), format!("can not ask: {late}"));
        assert_eq!(chain(&said(&["can not ask", late, late])), format!("can not ask: {late}"));
        // As gRPC has it: the status has the words of the cause, then comes a wrapper, then the cause.
        assert_eq!(chain_after(late, &said(&["transport error", late])), late);
        let refused = said(&["transport error", "Connection refused"]);
        assert_eq!(chain_after("can not ask", &refused), "can not ask: Connection refused");
        // rustls' own words, as tonic hands them on, say nothing to a user.
        let link = "peer closed connection without sending TLS close_notify: https://docs.rs/rustls/latest/rustls/manual/_03_howto/index.html#unexpected-eof";
        let cut = said(&["transport error", "connection error", link]);
        assert_eq!(
            chain_after("transport error", &cut),
            "transport error: connection error: the connection was closed in the middle"
        );
        // The word of a wrapper stays where it is the first: it may be all that tells what kind of failure it is.
        let broken = said(&["transport error", "connection closed"]);
        assert_eq!(chain_after("transport error", &broken), "transport error: connection closed");
        assert_eq!(chain_after("", &said(&["broken pipe"])), "broken pipe");
    }
}
