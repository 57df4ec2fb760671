//! Answers that come twice: what was written of one goes out once more, as a broken proxy does it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Whether the answer that is written next comes twice.
#[derive(Debug, Clone, Default)]
pub(super) struct Echo(Arc<AtomicBool>);

impl Echo {
    /// The next answer does.
    pub(super) fn next(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection on which answers can come twice. An answer is what is written between two flushes: HTTP/1.1 writes a whole
/// one at once.
pub(super) struct Echoed<S> {
    stream: S,
    echo: Echo,
    /// What was written of the answer, and how much of it has gone out again.
    said: Vec<u8>,
    again: usize,
}

impl<S> Echoed<S> {
    pub(super) fn new(stream: S, echo: Echo) -> Self {
        Self { stream, echo, said: Vec::new(), again: 0 }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Echoed<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Echoed<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
        if self.echo.0.load(Ordering::Relaxed) {
            let mut left = written;
            for piece in pieces {
                let taken = left.min(piece.len());
                self.said.extend_from_slice(&piece[..taken]);
                left -= taken;
            }
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Self { stream, echo, said, again } = &mut *self;
        while let Some(rest) = said.get(*again..).filter(|rest| !rest.is_empty()) {
            let written = ready!(Pin::new(&mut *stream).poll_write(context, rest))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            *again += written;
            if *again == said.len() {
                said.clear();
                *again = 0;
                echo.0.store(false, Ordering::Relaxed);
            }
        }
        Pin::new(stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
