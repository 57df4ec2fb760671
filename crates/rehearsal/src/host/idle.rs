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
use tokio::time::Instant;

use super::gate::Held;
use super::patience::Patience;

/// What a connection over HTTP/1 waits for, while no call on it waits for the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first byte.
    First,
    /// The next request.
    Next,
    /// The rest of a head.
    Head,
    /// Nothing: nobody listens any more.
    Deaf,
    /// That the client takes its answer.
    Taken,
    /// What was refused ends the connection.
    Refused,
}

#[derive(Debug, Clone, Copy)]
struct State {
    /// How many calls wait for the server.
    waiting: usize,
    stage: Stage,
    /// Since when it is so, and when the client was heard last.
    since: Instant,
    heard: Instant,
}

/// How many calls of one connection wait for the server, and what it waits for else.
#[derive(Debug, Clone)]
pub(super) struct Calls(Arc<watch::Sender<State>>);

impl Calls {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        let state = State { waiting: 0, stage: Stage::Taken, since: now, heard: now };
        Self(Arc::new(watch::Sender::new(state)))
    }

    /// A call has come, and the server is to answer it. Something is held until the answer is over.
    pub(super) fn begin(&self, held: Option<Held>) -> Turn {
        let mut turn = Turn { calls: self.clone(), ours: false, _held: held };
        turn.take();
        turn
    }

    /// What the connection waits for changes.
    pub(super) fn turn_to(&self, stage: Stage) {
        let now = Instant::now();
        self.0.send_modify(|state| (state.stage, state.since, state.heard) = (stage, now, now));
    }

    /// The client said something.
    pub(super) fn hear(&self) {
        self.0.send_modify(|state| state.heard = Instant::now());
    }

    fn count(&self, by: isize) {
        self.0.send_modify(|state| {
            state.waiting = state.waiting.saturating_add_signed(by);
            state.since = Instant::now();
        });
    }

    /// Ends when no call has waited for the server for so long.
    async fn idle(&self, limit: Duration) {
        let mut waiting = self.0.subscribe();
        loop {
            let nobody = waiting.borrow_and_update().waiting == 0;
            let changed = waiting.changed();
            if !nobody {
                // It can not end: we hold the other side.
                drop(changed.await);
            } else if tokio::time::timeout(limit, changed).await.is_err() {
                return;
            }
        }
    }

    /// Ends when a connection over HTTP/1 has to.
    async fn over(&self, patience: Patience) {
        let mut states = self.0.subscribe();
        loop {
            let state = *states.borrow_and_update();
            if state.stage == Stage::Refused {
                return;
            }
            let changed = states.changed();
            if state.waiting > 0 {
                drop(changed.await);
                continue;
            }
            let end = match state.stage {
                Stage::First => state.since + patience.first,
                Stage::Head => (state.since + patience.head).min(state.heard + patience.silence),
                Stage::Deaf => state.heard + patience.silence,
                Stage::Next | Stage::Taken | Stage::Refused => state.since + patience.idle,
            };
            if tokio::time::timeout_at(end, changed).await.is_err() {
                return;
            }
        }
    }
}

/// Whose turn it is in one call: the server's until it has said something, the client's until that is taken.
pub(super) struct Turn {
    calls: Calls,
    ours: bool,
    _held: Option<Held>,
}

impl Turn {
    fn take(&mut self) {
        if !self.ours {
            self.ours = true;
            self.calls.count(1);
        }
    }

    fn pass(&mut self) {
        if self.ours {
            self.ours = false;
            self.calls.count(-1);
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

/// Serves a connection over HTTP/2 until it ends, or until nothing waited for the server for too long: then the client is told
/// to go, and has a while for it.
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
        () = calls.idle(patience.parting) => {}
    }
}

/// Serves a connection over HTTP/1 until it ends, until a request on it is refused, or until the client took too long; gives
/// what it ended with, if it ended by itself.
pub(super) async fn judged<T>(
    connection: impl Future<Output = T>,
    calls: &Calls,
    patience: Patience,
) -> Option<T> {
    tokio::select! {
        biased;
        ended = connection => Some(ended),
        () = calls.over(patience) => None,
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
        let mut watch = calls.begin(None).over(Response::new(body)).into_body();
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
