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
use super::patience::Patience;
use super::serve;
use super::shared::Shared;
use super::strike;

/// How many connections are served at a time at one socket: more than fifty clients with their watches need, and so few
/// that a crowd at one server leaves room at the others.
const SOCKET_MAX: usize = 200;
/// How many at all of them: as many as the files that a process may usually have open leave.
const CONNECTIONS_MAX: usize = 800;

/// How long is waited where the system has no socket left for a caller.
const BREATH: Duration = Duration::from_millis(100);

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
    /// So many connections are open that more are closed as they come. Said once for each socket.
    #[error(
        "{max} connections are open {place}: until some of them end, more are closed as they come to {socket}"
    )]
    Crowded {
        /// Where one more came.
        socket: SocketAddrV4,
        /// How many are served.
        max: usize,
        /// At this socket, or at all of them.
        place: &'static str,
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
    /// Where more than enough came.
    crowded: Mutex<BTreeSet<SocketAddrV4>>,
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

    /// The last thing that could not be served, if any: a machine's port that could not be bound, one connection too many.
    #[must_use]
    pub fn refused(&self) -> Option<FrontError> {
        self.open.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Waits until something can not be served, and says what.
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
                self.refuse(error);
            }
        }
        self.changed.notify_waiters();
    }

    fn refuse(&self, error: FrontError) {
        *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        self.changed.notify_waiters();
    }

    /// Whether one more connection is too many; the first time at a socket it is told.
    fn is_crowded(&self, socket: SocketAddrV4, here: &AtomicUsize) -> bool {
        let (here, all) = (here.load(Ordering::Relaxed), self.connections.load(Ordering::Relaxed));
        let (max, place) = match (here >= SOCKET_MAX, all >= CONNECTIONS_MAX) {
            (true, _) => (SOCKET_MAX, "there"),
            (false, true) => (CONNECTIONS_MAX, "in all"),
            (false, false) => return false,
        };
        if self.crowded.lock().unwrap_or_else(PoisonError::into_inner).insert(socket) {
            self.refuse(FrontError::Crowded { socket, max, place });
        }
        true
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
            let here = Arc::new(AtomicUsize::new(0));
            // An accept that fails is the caller's bad luck; he comes again.
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => open.serve(&task, socket, &here, stream),
                    Err(_) => pause(BREATH).await,
                }
            }
        });
        self.sockets().insert(socket, handle);
        Ok(())
    }

    fn serve(
        &self,
        shared: &Arc<Shared>,
        socket: SocketAddrV4,
        here: &Arc<AtomicUsize>,
        stream: TcpStream,
    ) {
        if self.is_crowded(socket, here) {
            return;
        }
        let at = |address: Ipv4Addr| match find(shared, &address.to_string(), socket.port()) {
            Found::Target(target) => Some(target),
            _ => None,
        };
        let inside = || at(self.moved.and_then(|moved| moved.inside(*socket.ip()))?);
        let Some(target) = at(*socket.ip()).or_else(inside) else { return };
        // The system has taken the connection by now: what refuses or is not reached can only end it without a word.
        if strike::connection(shared, &target).is_some() {
            return;
        }
        // Small frames go back and forth; waiting for more of them only costs time.
        drop(stream.set_nodelay(true));
        let closing = self.closing.clone().notified_owned();
        let patience = Some(Patience::of(&target));
        let connection = serve::connection(shared.clone(), target, stream, patience);
        let counted = [Counted::new(self.connections.clone()), Counted::new(here.clone())];
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
    use castle_model::spec::SourceSpec;
    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::host::Pace;
    use crate::testing::loopback;

    /// A datacenter in a network of loopback of its own.
    fn live(net: u8) -> Host {
        let mut spec = loopback(net, 1, 0);
        spec.downloads.mirror = Some(format!("https://127.0.{net}.1:8444"));
        for source in &mut spec.secrets.sources {
            if let SourceSpec::Infisical(infisical) = source {
                infisical.host = format!("https://127.0.{net}.1:8443");
            }
        }
        let pace = Pace { now: castle_model::time::Moment(1_800_000_000_000), speed: 1 };
        Host::live(&spec, 5, pace).unwrap()
    }

    /// Comes to a socket, and waits until it is served.
    async fn come(front: &Front, socket: &str) -> TcpStream {
        let before = front.open.connections.load(Ordering::Relaxed);
        let stream = TcpStream::connect(socket).await.unwrap();
        while front.open.connections.load(Ordering::Relaxed) == before {
            tokio::task::yield_now().await;
        }
        stream
    }

    #[tokio::test]
    async fn a_crowd_at_one_server_is_told_once_and_leaves_the_others_open() {
        let host = live(78);
        let front = Front::open(&host).await.unwrap();
        let mut crowd = Vec::new();
        for _ in 0..SOCKET_MAX {
            crowd.push(come(&front, "127.0.78.1:8444").await);
        }
        assert!(front.refused().is_none());
        for _ in 0..3 {
            let mut more = TcpStream::connect("127.0.78.1:8444").await.unwrap();
            assert_eq!(more.read(&mut [0; 1]).await.unwrap(), 0);
        }
        let told = front.refusal().await.to_string();
        insta::assert_snapshot!(told, @"200 connections are open there: until some of them end, more are closed as they come to 127.0.78.1:8444");
        assert!(front.refused().is_none(), "it is said once");
        let _other = come(&front, "127.0.78.1:8443").await;
        drop(crowd);
        while front.open.connections.load(Ordering::Relaxed) != 1 {
            tokio::task::yield_now().await;
        }
        let _served = come(&front, "127.0.78.1:8444").await;
        front.stop().await;
    }

    #[tokio::test]
    async fn more_connections_than_there_is_room_for_are_closed_at_once() {
        let host = live(79);
        let front = Front::open(&host).await.unwrap();
        front.open.connections.store(CONNECTIONS_MAX, Ordering::Relaxed);
        let mut stream = TcpStream::connect("127.0.79.1:8444").await.unwrap();
        assert_eq!(stream.read(&mut [0; 1]).await.unwrap(), 0);
        front.open.connections.store(0, Ordering::Relaxed);
        let _served = come(&front, "127.0.79.1:8444").await;
        front.stop().await;
    }
}
