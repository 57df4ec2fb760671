//! Finds who listens at an address and opens a pipe to a task that serves it.

use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use castle_wire::{BoxedStream, DialFuture, Dialer};

use super::patience::Patience;
use super::serve::{self, Target};
use super::shared::Shared;
use super::strike;
use crate::fault::Blow;
use crate::turn::{Listen, Server};

/// The way there and back.
const DIAL: Duration = Duration::from_millis(1);
/// How long the network takes to say that no host is at an address.
const UNREACHABLE: Duration = Duration::from_secs(3);
/// One size for all pipes: the order of reads and writes depends on it.
const PIPE: usize = 64 * 1024;

pub(super) struct HostDialer {
    pub(super) shared: Arc<Shared>,
    /// Whether whoever dials is met as those outside are.
    pub(super) outside: bool,
}

impl Dialer for HostDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            pause(self.shared.time.real(DIAL)).await;
            let found = find(&self.shared, host, port);
            match strike::dial(&self.shared, &found, host) {
                Some(Blow::Refused) => return Err(refusal(io::ErrorKind::ConnectionRefused)),
                Some(_) => {
                    pause(self.shared.time.real(UNREACHABLE)).await;
                    return Err(refusal(io::ErrorKind::HostUnreachable));
                }
                None => {}
            }
            let target = match found {
                Found::Target(target) => target,
                Found::Refused => return Err(refusal(io::ErrorKind::ConnectionRefused)),
                Found::Nothing => {
                    pause(self.shared.time.real(UNREACHABLE)).await;
                    return Err(refusal(io::ErrorKind::HostUnreachable));
                }
                Found::NoName => {
                    let words = "failed to lookup address information: Name or service not known";
                    return Err(io::Error::new(io::ErrorKind::NotFound, words));
                }
            };
            let (near, far) = tokio::io::duplex(PIPE);
            let patience = self.outside.then(|| Patience::of(&target));
            self.shared.spawn(serve::connection(self.shared.clone(), target, far, patience));
            Ok(Box::new(near) as BoxedStream)
        })
    }
}

pub(super) enum Found {
    Target(Target),
    Refused,
    Nothing,
    NoName,
}

/// Who listens at an address.
pub(super) fn find(shared: &Shared, host: &str, port: u16) -> Found {
    shared.read(|datacenter| {
        let mut known = false;
        for endpoint in datacenter.birth.endpoints.iter().filter(|e| e.host == host) {
            if endpoint.port == port {
                let (host, server) = (host.to_owned(), endpoint.server);
                return Found::Target(Target::Endpoint { server, host });
            }
            known = true;
        }
        if known {
            return Found::Refused;
        }
        let Ok(address) = host.parse::<Ipv4Addr>() else { return Found::NoName };
        match datacenter.talos.listen(address, port) {
            None => Found::Nothing,
            Some(Listen::Refused) => Found::Refused,
            Some(listen) => match machine(listen) {
                Some(vmid) => Found::Target(Target::Machine { vmid, listen, address, port }),
                None => Found::Refused,
            },
        }
    })
}

fn machine(listen: Listen) -> Option<u32> {
    match listen {
        Listen::Maintenance { vmid }
        | Listen::Secure { vmid }
        | Listen::KubeApi { vmid }
        | Listen::Foreign { vmid }
        | Listen::Mute { vmid } => Some(vmid),
        Listen::Refused => None,
    }
}

impl Target {
    /// The protocols it speaks, in the order it likes them (ALPN).
    pub(super) fn protocols(&self) -> &'static [&'static [u8]] {
        match self {
            Self::Endpoint { server: Server::Proxmox, .. } => &[b"http/1.1"],
            Self::Endpoint { .. } | Self::Machine { listen: Listen::KubeApi { .. }, .. } => {
                &[b"h2", b"http/1.1"]
            }
            Self::Machine { .. } => &[b"h2"],
        }
    }
}

/// An error as the operating system words it.
fn refusal(kind: io::ErrorKind) -> io::Error {
    let words = match kind {
        io::ErrorKind::ConnectionRefused => "Connection refused",
        _ => "No route to host",
    };
    io::Error::new(kind, words)
}

/// Lets virtual time pass: on the wire, and nowhere else.
#[expect(clippy::disallowed_methods, reason = "the latency of the emulated wire is spent here")]
pub(super) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
