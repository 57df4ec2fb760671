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

/// How resolvers say that a name has no address, in glibc's words and in musl's; anything else may pass.
const NO_SUCH_NAME: [&str; 4] = [
    "Name or service not known",
    "No address associated with hostname",
    "Name does not resolve",
    "Name has no usable address",
];

/// Real connections, by the operating system.
#[derive(Debug, Default, Clone, Copy)]
pub struct TcpDialer;

impl Dialer for TcpDialer {
    fn dial<'a>(&'a self, host: &'a str, port: u16) -> DialFuture<'a> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((host, port)).await.map_err(unresolved)?;
            let addresses: Vec<_> = found.collect();
            let stream = tokio::net::TcpStream::connect(addresses.as_slice()).await?;
            stream.set_nodelay(true)?;
            Ok(Box::new(stream) as BoxedStream)
        })
    }
}

/// A name that does not exist is told from a resolver that is away: only the second is worth another try.
fn unresolved(error: io::Error) -> io::Error {
    let text = error.to_string();
    if NO_SUCH_NAME.iter().any(|words| text.contains(words)) {
        return io::Error::new(io::ErrorKind::NotFound, error);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_does_not_exist_is_told_from_a_resolver_that_is_away() {
        let error = |text: &str| {
            unresolved(io::Error::other(format!("failed to lookup address information: {text}")))
        };
        for text in NO_SUCH_NAME {
            assert_eq!(error(text).kind(), io::ErrorKind::NotFound, "{text}");
            assert!(error(text).to_string().ends_with(text), "the words stay");
        }
        for text in ["Temporary failure in name resolution", "Try again"] {
            assert_ne!(error(text).kind(), io::ErrorKind::NotFound, "{text}");
        }
    }
}
