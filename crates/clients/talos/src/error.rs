//! Why a call to a machine did not succeed, and whether it may be made again.

use std::net::Ipv4Addr;
use std::time::Duration;

use castle_model::{Class, Failure};
use castle_wire::connector::{End, HandshakeError};
use castle_wire::failure::chain;
use castle_wire::{ConnectError, TlsError};
use rustls::AlertDescription;
use thiserror::Error;

use crate::catalogue;

/// What to do where certificates are refused for their dates.
/// What to do about an answer that only a defect of castle can make strange.
const REPORT: &str = "this is a defect of castle: please report it with the journal of this run";

const CLOCKS: &str = "compare the machine's clock with this computer's (`date -u`): the machine takes its time from the servers in `ntp`";

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
    #[error("machine {address}: cannot reach its Talos API")]
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
        if self.is_untimely() {
            return (Class::Transient, Some(CLOCKS.to_owned()));
        }
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
        failure.hint = hint.or_else(|| self.ask_the_machine(class));
        failure
    }

    /// What to do about an answer that no catalogue has a word for. What may pass by itself is tried again first, and whoever
    /// tries says what to do when it did not.
    fn ask_the_machine(&self, class: Class) -> Option<String> {
        match (class, self) {
            (Class::Transient, _) => None,
            (Class::Bug, _) => Some(REPORT.to_owned()),
            (_, Self::Refused { address, .. }) => Some(format!(
                "ask the machine why (`talosctl -n {address} services`, `talosctl -n {address} dmesg`), mend that, then run the same command again"
            )),
            _ => Some("mend that, then run the same command again".to_owned()),
        }
    }

    /// Whether machine and caller do not agree what time it is, so that one refuses the other's certificate. A machine
    /// that has just booted finds the time by itself.
    #[must_use]
    pub fn is_untimely(&self) -> bool {
        match self {
            Self::Connect { source, .. } => {
                source.handshake().is_some_and(HandshakeError::is_untimely)
            }
            Self::Refused { ended: Some(End::Alert(alert)), .. } => {
                *alert == AlertDescription::CertificateExpired
            }
            _ => false,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_says_what_to_do_next_but_those_that_are_tried_again() {
        let address = Ipv4Addr::new(192, 168, 1, 211);
        let refused = |code, text: &str| {
            let (call, text) = ("List", text.to_owned());
            TalosError::Refused { address, call, code, text, ended: None }.failure("ask cp-01")
        };
        let strange = refused(tonic::Code::Unknown, "rpc error");
        assert_eq!(
            strange.hint.as_deref(),
            Some(
                "ask the machine why (`talosctl -n 192.168.1.211 services`, `talosctl -n 192.168.1.211 dmesg`), mend that, then run the same command again"
            )
        );
        let busy = refused(tonic::Code::Unavailable, "no route to host");
        assert_eq!((busy.class, busy.hint), (Class::Transient, None), "who tries again says it");
        let shape = TalosError::Shape { address, call: "List", problem: "no bytes".to_owned() };
        assert!(shape.failure("ask cp-01").hint.is_some());
    }
}
