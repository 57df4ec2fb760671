//! How every connection of castle begins: `dial(host, port)` gives a stream of bytes, or says why not.

use std::future::Future;
use std::io;
use std::pin::Pin;

use tokio::io::{AsyncRead, AsyncWrite};

/// A two-way stream of bytes: a TCP connection, or a pipe into the rehearsal.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A stream whose kind does not matter.
pub type BoxedStream = Box<dyn Stream>;

/// What [`Dialer::dial`] returns.
pub type DialFuture<'a> = Pin<Box<dyn Future<Output = io::Result<BoxedStream>> + Send + 'a>>;

/// Opens connections. The real one speaks TCP; the rehearsal's leads into the datacenter.
///
/// Errors use the kinds that the operating system gives: `ConnectionRefused` where the host answers and
/// nothing listens, `HostUnreachable` where no host is, `TimedOut` where nothing comes back. The caller sets
/// the deadline.
pub trait Dialer: Send + Sync {
    /// Opens a connection to a host name or address without brackets.
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a>;
}

/// Real connections, by the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct TcpDialer;

impl Dialer for TcpDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            let stream = tokio::net::TcpStream::connect((host, port)).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}
