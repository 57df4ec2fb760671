//! How long a server waits for those outside: as long as the real one, where it is known, and never for ever.

use std::time::Duration;

use super::serve::Target;
use crate::turn::{Listen, Server};

/// How long those outside may take, in real time. Inside, time is virtual and every client is ours.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    pub(super) handshake: Duration,
    /// For the first byte on a connection over HTTP/1.
    pub(super) first: Duration,
    /// For the head of a request, from its first byte on.
    pub(super) head: Duration,
    /// For the next byte of a head.
    pub(super) silence: Duration,
    pub(super) body: Duration,
    /// How long an HTTP/2 client is not heard of before it is asked whether it lives.
    pub(super) ping: Duration,
    /// How long a connection may be held while nothing on it waits for the server.
    pub(super) idle: Duration,
    /// How long a client has to go that was told to, or to answer a ping.
    pub(super) parting: Duration,
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

impl Patience {
    /// Where the real server would wait for ever, or nobody knows.
    const OURS: Self = Self {
        handshake: seconds(10),
        first: seconds(30),
        head: seconds(30),
        silence: seconds(30),
        body: seconds(60),
        ping: seconds(30),
        idle: seconds(60),
        parting: seconds(10),
    };

    /// The daemon gives up a connection on which nothing happens for five seconds, whatever it waits for.
    const PROXMOX: Self = Self {
        handshake: seconds(5),
        first: seconds(5),
        silence: seconds(5),
        idle: seconds(5),
        ..Self::OURS
    };

    /// `ReadHeaderTimeout` and `IdleTimeout` of the real one's server.
    const KUBERNETES: Self = Self {
        handshake: seconds(32),
        first: seconds(32),
        head: seconds(32),
        silence: seconds(32),
        idle: seconds(90),
        ..Self::OURS
    };

    /// `connectionTimeout` as Infisical sets it, `headersTimeout` as Node has it, `keepAliveTimeout` as Fastify has it.
    const INFISICAL: Self = Self { head: seconds(60), idle: seconds(72), ..Self::OURS };

    /// That of a server on sockets.
    pub(super) fn of(target: &Target) -> Self {
        match target {
            Target::Endpoint { server: Server::Proxmox, .. } => Self::PROXMOX,
            Target::Endpoint { server: Server::Infisical, .. } => Self::INFISICAL,
            Target::Machine { listen: Listen::KubeApi { .. }, .. } => Self::KUBERNETES,
            Target::Endpoint { .. } | Target::Machine { .. } => Self::OURS,
        }
    }
}
