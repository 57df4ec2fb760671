//! Whether a connection waits for its server: whoever only holds one, and neither asks nor reads, is let go.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::Response;
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

use super::serve::Patience;

/// How many calls of one connection wait for the server.
#[derive(Debug, Clone)]
pub(super) struct Calls(Arc<watch::Sender<usize>>);

impl Calls {
    pub(super) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// A call has come, and the server is to answer it.
    pub(super) fn begin(&self) -> Turn {
        let mut turn = Turn { calls: self.clone(), ours: false };
        turn.take();
        turn
    }

    /// Ends when no call has waited for the server for so long.
    async fn idle(&self, limit: Duration) {
        let mut waiting = self.0.subscribe();
        loop {
            let nobody = *waiting.borrow_and_update() == 0;
            let changed = waiting.changed();
            if !nobody {
                // It can not end: we hold the other side.
                drop(changed.await);
            } else if tokio::time::timeout(limit, changed).await.is_err() {
                return;
            }
        }
    }
}

/// Whose turn it is in one call: the server's until it has said something, the client's until that is taken.
#[derive(Debug)]
pub(super) struct Turn {
    calls: Calls,
    ours: bool,
}

impl Turn {
    fn take(&mut self) {
        if !self.ours {
            self.ours = true;
            self.calls.0.send_modify(|waiting| *waiting += 1);
        }
    }

    fn pass(&mut self) {
        if self.ours {
            self.ours = false;
            self.calls.0.send_modify(|waiting| *waiting -= 1);
        }
    }

    /// An answer whose body keeps account of whose turn it is.
    pub(super) fn over(self, response: Response<Body>) -> Response<Body> {
        response.map(|body| Body::new(Taken { body, turn: self }))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.pass();
    }
}

/// The body of an answer. It is asked for more only as the client takes what there was.
struct Taken {
    body: Body,
    turn: Turn,
}

impl HttpBody for Taken {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.turn.take();
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.turn.pass();
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Serves a connection until it ends, or until nothing waited for the server for too long: then the client is told to go,
/// and has as long as a handshake may take.
pub(super) async fn served<C: Future>(
    mut connection: Pin<&mut C>,
    calls: &Calls,
    patience: Patience,
    part: impl FnOnce(Pin<&mut C>),
) {
    tokio::select! {
        biased;
        _ = connection.as_mut() => return,
        () = calls.idle(patience.idle) => {}
    }
    part(connection.as_mut());
    tokio::select! {
        biased;
        _ = connection => {}
        () = calls.idle(patience.handshake) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::pin;

    use futures::stream;
    use http_body_util::BodyExt;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_waits_for_the_server_is_never_idle() {
        let calls = Calls::new();
        let body = Body::from_stream(stream::pending::<io::Result<Bytes>>());
        let mut watch = calls.begin().over(Response::new(body)).into_body();
        let read = async { drop(watch.frame().await) };
        let hour =
            tokio::time::timeout(Duration::from_hours(1), calls.idle(Duration::from_mins(1)));
        tokio::select! {
            biased;
            () = read => panic!("nothing comes"),
            idle = hour => assert!(idle.is_err(), "an hour is over, and it was never idle"),
        }
        drop(watch);
        let mut idle = pin!(calls.idle(Duration::from_mins(1)));
        assert!(tokio::time::timeout(Duration::from_secs(59), idle.as_mut()).await.is_err());
        assert!(tokio::time::timeout(Duration::from_secs(2), idle).await.is_ok());
    }
}
