//! A TCP relay between a client and a server, which can hold what it carries at a chosen byte, and cut it.

use std::cell::Cell;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddrV4};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

/// How much is carried at a time.
const PIECE: usize = 512;

/// The relay.
pub struct Proxy {
    listener: TcpListener,
    server: SocketAddrV4,
    /// How many bytes of clients are carried before everything is held.
    left: Cell<Option<usize>>,
    held: Notify,
    /// Whether what comes is carried on; each cut is another number.
    open: watch::Sender<(bool, u32)>,
    refuses: Cell<bool>,
}

impl Proxy {
    /// A relay to a server, at a free port of the loopback address.
    ///
    /// # Panics
    /// If there is none.
    pub async fn to(server: SocketAddrV4) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
        Self {
            listener: listener.expect("a port of our own is free"),
            server,
            left: Cell::new(None),
            held: Notify::new(),
            open: watch::Sender::new((true, 0)),
            refuses: Cell::new(false),
        }
    }

    /// Where it listens.
    ///
    /// # Panics
    /// If the system does not know.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.listener.local_addr().expect("who listens has an address").port()
    }

    /// Holds everything once clients have sent so many more bytes; waits until that is so.
    pub async fn hold_after(&self, bytes: usize) {
        self.left.set(Some(bytes));
        self.held.notified().await;
    }

    /// Carries on what was held.
    pub fn release(&self) {
        self.left.set(None);
        self.open.send_modify(|(open, _)| *open = true);
    }

    /// Ends every connection, held bytes included, and refuses new ones until [`Proxy::mend`].
    pub fn cut(&self) {
        self.left.set(None);
        self.refuses.set(true);
        self.open.send_modify(|(open, cuts)| {
            *open = true;
            *cuts += 1;
        });
    }

    /// Takes connections again.
    pub fn mend(&self) {
        self.refuses.set(false);
    }

    /// Carries, for as long as this is polled.
    ///
    /// # Panics
    /// If the system lets nobody come any more.
    pub async fn run(&self) -> Infallible {
        let mut connections = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(()) = connections.next() => {}
                accepted = self.listener.accept() => {
                    let (client, _) = accepted.expect("the relay goes on listening");
                    if !self.refuses.get() {
                        connections.push(self.carry(client));
                    }
                }
            }
        }
    }

    async fn carry(&self, client: TcpStream) {
        let mut state = self.open.subscribe();
        let cuts = state.borrow_and_update().1;
        let Ok(server) = TcpStream::connect(self.server).await else { return };
        // Small pieces must not wait for each other: the test is about the server, not about us.
        drop((client.set_nodelay(true), server.set_nodelay(true)));
        let ((from_client, to_client), (from_server, to_server)) =
            (client.into_split(), server.into_split());
        tokio::select! {
            biased;
            () = async { drop(state.wait_for(|(_, now)| *now != cuts).await) } => {}
            () = self.copy(from_client, to_server, true) => {}
            () = self.copy(from_server, to_client, false) => {}
        }
    }

    async fn copy(
        &self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        counts: bool,
    ) {
        let (mut state, mut piece) = (self.open.subscribe(), [0; PIECE]);
        loop {
            let Ok(length @ 1..) = from.read(&mut piece).await else { return };
            if let Some(left) = self.left.get().filter(|_| counts) {
                self.left.set(Some(left.saturating_sub(length)));
                if left <= length && self.open.borrow().0 {
                    self.open.send_modify(|(open, _)| *open = false);
                    self.held.notify_one();
                }
            }
            if state.wait_for(|(open, _)| *open).await.is_err() {
                return;
            }
            if to.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn bytes_are_held_released_and_cut() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = server.local_addr().unwrap().port();
        let proxy = Proxy::to(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).await;
        let work = async {
            let mut client = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            let (mut inside, _) = server.accept().await.unwrap();
            let mut got = [0; 4];
            client.write_all(b"abcd").await.unwrap();
            inside.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"abcd");

            let (held, ()) = tokio::join!(proxy.hold_after(2), async {
                client.write_all(b"efgh").await.unwrap();
            });
            let () = held;
            let nothing = timeout(Duration::from_millis(20), inside.read_exact(&mut got)).await;
            assert!(nothing.is_err(), "what is held does not arrive");
            proxy.release();
            inside.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"efgh");

            proxy.cut();
            assert_eq!(client.read(&mut got).await.unwrap_or_default(), 0);
            let mut refused = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            assert_eq!(refused.read(&mut got).await.unwrap_or_default(), 0);
            proxy.mend();
            let mut again = TcpStream::connect(("127.0.0.1", proxy.port())).await.unwrap();
            let (mut inside, _) = server.accept().await.unwrap();
            inside.write_all(b"back").await.unwrap();
            again.read_exact(&mut got).await.unwrap();
            assert_eq!(&got, b"back");
        };
        tokio::select! {
            biased;
            () = work => {}
            _ = proxy.run() => {}
        }
    }
}
