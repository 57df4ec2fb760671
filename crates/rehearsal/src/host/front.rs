//! Puts a live datacenter on real sockets, so that programs that nobody here wrote can speak to it. Loopback only.
//!
//! A castle file whose endpoints, nodes and shared address lie in 127.0.0.0/8 makes these addresses real as they
//! are: a machine's port is bound while the machine listens there, and refuses otherwise. Servers with names, and
//! machines with other addresses, stay inside.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use castle_model::Subnet;
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use super::Host;
use super::dial::{Found, find, pause};
use super::serve::{self, Patience};
use super::shared::Shared;

/// How many connections are served at a time: more than fifty clients with their watches need, and few enough that those
/// who never speak can not fill the memory.
const CONNECTIONS_MAX: usize = 1_000;

/// How long is waited where the system has no socket left for a caller.
const BREATH: Duration = Duration::from_millis(100);

/// How long those outside may take.
const PATIENCE: Patience = Patience {
    handshake: Duration::from_secs(10),
    head: Duration::from_secs(30),
    body: Duration::from_mins(1),
};

/// Why a datacenter cannot be put on sockets.
#[derive(Debug, Error)]
pub enum FrontError {
    /// An endpoint of the castle file is not of this machine alone.
    #[error("{host} is not a loopback address: only 127.0.0.0/8 is served")]
    NotLoopback {
        /// The address.
        host: Ipv4Addr,
    },
    /// A socket cannot be bound.
    #[error("cannot listen at {socket}")]
    Bind {
        /// Which.
        socket: SocketAddrV4,
        /// Why not.
        source: io::Error,
    },
}

/// A network of the datacenter, and where it is on loopback: machines with addresses of their own are reached there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// The network inside.
    pub from: Subnet,
    /// The first address of its place on loopback.
    pub to: Ipv4Addr,
}

impl Moved {
    /// Where an address of the network is on loopback.
    #[must_use]
    pub fn outside(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        self.from.contains(address).then(|| shifted(address, self.from.network(), self.to))
    }

    /// Which address of the network an address on loopback stands for.
    fn inside(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let inside = shifted(address, self.to, self.from.network());
        self.from.contains(inside).then_some(inside)
    }
}

fn shifted(address: Ipv4Addr, from: Ipv4Addr, to: Ipv4Addr) -> Ipv4Addr {
    let part = u32::from(address).wrapping_sub(u32::from(from));
    Ipv4Addr::from(u32::from(to).wrapping_add(part))
}

/// The sockets of a live datacenter. Dropping it closes them.
pub struct Front {
    open: Arc<Open>,
    tasks: JoinSet<()>,
}

/// What the tasks of a front share.
#[derive(Default)]
struct Open {
    sockets: Mutex<BTreeMap<SocketAddrV4, AbortHandle>>,
    refused: Mutex<Option<FrontError>>,
    changed: Notify,
    closing: Arc<Notify>,
    moved: Option<Moved>,
    /// How many connections are open.
    connections: Arc<AtomicUsize>,
}

impl Front {
    /// Binds the endpoints that have an address, and from then on the ports of machines as they come and go. Also
    /// lets the datacenter's time run. Must be called on the runtime that the host was made on.
    ///
    /// # Errors
    /// If an endpoint's address is not a loopback one, or cannot be bound.
    pub async fn open(host: &Host) -> Result<Self, FrontError> {
        Self::open_moved(host, None).await
    }

    /// The same, with a network whose machines are put on loopback too; their certificates carry those addresses besides
    /// their own.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_moved(host: &Host, moved: Option<Moved>) -> Result<Self, FrontError> {
        if let Some(moved) = moved {
            host.shared.certificates.also(moved);
        }
        let shared = host.shared.clone();
        let socket = |host: &str, port| Some(SocketAddrV4::new(host.parse().ok()?, port));
        let endpoints = host.endpoints.iter();
        let endpoints: Vec<SocketAddrV4> =
            endpoints.filter_map(|endpoint| socket(&endpoint.host, endpoint.port)).collect();
        let open = Arc::new(Open { moved, ..Open::default() });
        let mut front = Self { open, tasks: JoinSet::new() };
        for socket in &endpoints {
            front.open.bind(&shared, *socket).await?;
        }
        front.open.follow(&shared, &endpoints).await;
        let open = front.open.clone();
        front.tasks.spawn(super::shared::drive(shared.clone()));
        front.tasks.spawn(async move {
            loop {
                let changed = shared.machines_changed();
                open.follow(&shared, &endpoints).await;
                changed.await;
            }
        });
        Ok(front)
    }

    /// The sockets that are bound now.
    #[must_use]
    pub fn sockets(&self) -> Vec<SocketAddrV4> {
        self.open.sockets().keys().copied().collect()
    }

    /// The last machine's port that could not be bound, if any.
    #[must_use]
    pub fn refused(&self) -> Option<FrontError> {
        self.open.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until a machine's port can not be bound, and says which.
    pub async fn refusal(&self) -> FrontError {
        loop {
            let changed = self.open.changed.notified();
            if let Some(error) = self.refused() {
                return error;
            }
            changed.await;
        }
    }

    /// Waits until a socket is bound (or, if it is not wanted, gone).
    pub async fn until(&self, socket: SocketAddrV4, wanted: bool) {
        loop {
            let changed = self.open.changed.notified();
            if self.open.sockets().contains_key(&socket) == wanted {
                return;
            }
            changed.await;
        }
    }

    /// Closes all sockets and the connections that came through them, and waits for it.
    pub async fn stop(mut self) {
        self.close();
        while self.tasks.join_next().await.is_some() {}
    }

    fn close(&mut self) {
        self.tasks.abort_all();
        for (_, listener) in std::mem::take(&mut *self.open.sockets()) {
            listener.abort();
        }
        self.open.closing.notify_waiters();
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.close();
    }
}

impl Open {
    fn sockets(&self) -> std::sync::MutexGuard<'_, BTreeMap<SocketAddrV4, AbortHandle>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds what machines listen at and is not bound yet, and lets go what they do not listen at any more.
    async fn follow(self: &Arc<Self>, shared: &Arc<Shared>, endpoints: &[SocketAddrV4]) {
        let wanted: BTreeSet<SocketAddrV4> = shared
            .read(|world| world.talos.sockets())
            .into_iter()
            .filter_map(|socket| {
                let moved = self.moved.and_then(|moved| moved.outside(*socket.ip()));
                let address = moved.unwrap_or(*socket.ip());
                address.is_loopback().then(|| SocketAddrV4::new(address, socket.port()))
            })
            .chain(endpoints.iter().copied())
            .collect();
        let bound: BTreeSet<SocketAddrV4> = self.sockets().keys().copied().collect();
        for socket in bound.difference(&wanted) {
            if let Some(listener) = self.sockets().remove(socket) {
                listener.abort();
            }
        }
        for socket in wanted.difference(&bound) {
            if let Err(error) = self.bind(shared, *socket).await {
                *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
        self.changed.notify_waiters();
    }

    async fn bind(
        self: &Arc<Self>,
        shared: &Arc<Shared>,
        socket: SocketAddrV4,
    ) -> Result<(), FrontError> {
        if !socket.ip().is_loopback() {
            return Err(FrontError::NotLoopback { host: *socket.ip() });
        }
        let bind = TcpListener::bind(socket).await;
        let listener = bind.map_err(|source| FrontError::Bind { socket, source })?;
        let (open, task) = (self.clone(), shared.clone());
        let handle = shared.spawn(async move {
            // An accept that fails is the caller's bad luck; he comes again.
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => open.serve(&task, socket, stream),
                    Err(_) => pause(BREATH).await,
                }
            }
        });
        self.sockets().insert(socket, handle);
        Ok(())
    }

    fn serve(&self, shared: &Arc<Shared>, socket: SocketAddrV4, stream: TcpStream) {
        if self.connections.load(Ordering::Relaxed) >= CONNECTIONS_MAX {
            return;
        }
        let at = |address: Ipv4Addr| match find(shared, &address.to_string(), socket.port()) {
            Found::Target(target) => Some(target),
            _ => None,
        };
        let inside = || at(self.moved.and_then(|moved| moved.inside(*socket.ip()))?);
        let Some(target) = at(*socket.ip()).or_else(inside) else { return };
        // Small frames go back and forth; waiting for more of them only costs time.
        drop(stream.set_nodelay(true));
        let closing = self.closing.clone().notified_owned();
        let connection = serve::connection(shared.clone(), target, stream, Some(PATIENCE));
        let counted = Counted::new(self.connections.clone());
        shared.spawn(async move {
            let _counted = counted;
            tokio::select! {
                biased;
                () = closing => {}
                () = connection => {}
            }
        });
    }
}

/// A connection that is counted for as long as it is served.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::host::Pace;
    use crate::testing::loopback;

    #[tokio::test]
    async fn more_connections_than_there_is_room_for_are_closed_at_once() {
        let mut spec = loopback(79, 1, 0);
        spec.downloads.mirror = Some("https://127.0.79.1:8444".to_owned());
        let pace = Pace { now: castle_model::time::Moment(1_800_000_000_000), speed: 1 };
        let host = Host::live(&spec, 5, pace).unwrap();
        let front = Front::open(&host).await.unwrap();
        front.open.connections.store(CONNECTIONS_MAX, Ordering::Relaxed);
        let mut stream = TcpStream::connect("127.0.79.1:8444").await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        front.open.connections.store(0, Ordering::Relaxed);
        let _served = TcpStream::connect("127.0.79.1:8444").await.unwrap();
        while front.open.connections.load(Ordering::Relaxed) != 1 {
            tokio::task::yield_now().await;
        }
        front.stop().await;
    }
}
