//! What comes over HTTP/1.1 is read here first, as the real server reads it: what it takes goes on to our library in plain
//! form, what it refuses is answered in its own bytes.
//!
//! ```text
//!  client ──TLS──▶ Gate ── heads that are sound, bodies ──▶ hyper ──▶ the server
//!         ◀─────── its own words, and the end ◀── a head that is none
//! ```
//!
//! One request at a time: the next head is looked at when the answer to the one before is written.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::idle::{Calls, Stage};
use super::supply::VirtualTime;
use body::{Body, Fed};
use head::{Head, Kind, Verdict};

mod body;
mod go;
pub(super) mod head;
mod node;
mod proxmox;
mod target;
#[cfg(test)]
mod tests;

/// How much is read at a time.
const PIECE: usize = 8 * 1024;
/// How much of what follows a request is taken in before that is answered.
const AHEAD: usize = 64 * 1024;
/// How much a server that hears no more lets come.
const UNHEARD: usize = 64 * 1024;
/// How long the end of a connection waits for a client that is still talking: whoever is cut off in the middle of a word
/// may never read the answer. Go's servers wait as long.
const LINGER: Duration = Duration::from_millis(500);
/// What no decoder takes for a chunk.
const NO_CHUNK: &[u8] = b"!\r\n";

/// Whether a request is in the hands of the server, and what became of its body.
#[derive(Clone, Default)]
pub(super) struct Asked(Arc<Mutex<Asking>>);

#[derive(Default)]
struct Asking {
    open: bool,
    waker: Option<Waker>,
    broken: Option<&'static str>,
}

impl Asked {
    fn asking(&self) -> MutexGuard<'_, Asking> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self) {
        self.asking().open = true;
    }

    /// Why the body can not be read; none if the client just stopped.
    pub(super) fn broken(&self) -> Option<&'static str> {
        self.asking().broken
    }

    /// Whether it is; if so, the reader is woken when it is no more.
    fn is_open(&self, context: &Context<'_>) -> bool {
        let mut asking = self.asking();
        if asking.open {
            asking.waker = Some(context.waker().clone());
        }
        asking.open
    }

    /// What ends the request when it is dropped: with the last byte of its answer.
    pub(super) fn held(&self) -> Held {
        Held(self.clone())
    }
}

/// Held for as long as a request is being answered.
pub(super) struct Held(Asked);

impl Drop for Held {
    fn drop(&mut self) {
        let mut asking = self.0.asking();
        asking.open = false;
        if let Some(waker) = asking.waker.take() {
            waker.wake();
        }
    }
}

/// What is being read.
enum Reading {
    Head(Box<Head>),
    Body(Body),
    /// Nothing, until the answer is written.
    Answered,
    /// Whatever comes, and none of it is heard.
    Deaf(usize),
    /// Nothing any more.
    Over,
}

/// A connection whose requests are judged before anybody hears of them.
pub(super) struct Gate<S> {
    stream: S,
    kind: Kind,
    time: VirtualTime,
    calls: Calls,
    asked: Asked,
    reading: Reading,
    /// What came and was not looked at, and how far ends of lines were searched for in it.
    came: BytesMut,
    searched: usize,
    /// What goes on.
    passed: BytesMut,
    /// Whether the client says no more.
    ended: bool,
    /// Whether all that was written is on its way.
    flushed: bool,
    /// Whether the last request was a POST: clients of old send an empty line after one.
    posted: bool,
    /// What is said last.
    farewell: Option<Bytes>,
}

impl<S> Gate<S> {
    pub(super) fn new(stream: S, kind: Kind, (time, calls): (VirtualTime, Calls)) -> Self {
        let head = Head::new(kind, time.moment(), false);
        calls.turn_to(Stage::First);
        Self {
            stream,
            kind,
            time,
            calls,
            asked: Asked::default(),
            reading: Reading::Head(Box::new(head)),
            came: BytesMut::new(),
            searched: 0,
            passed: BytesMut::new(),
            ended: false,
            flushed: true,
            posted: false,
            farewell: None,
        }
    }

    pub(super) fn asked(&self) -> Asked {
        self.asked.clone()
    }

    /// Whether there is something to say before the end.
    pub(super) fn has_farewell(&self) -> bool {
        self.farewell.is_some()
    }

    /// The client took too long: some servers say so.
    pub(super) fn late(&mut self) {
        if let Reading::Head(head) = &self.reading
            && !head.is_empty()
            && self.farewell.is_none()
        {
            self.farewell = head.late();
        }
    }

    fn refuse(&mut self, answer: Bytes) {
        self.farewell = Some(answer);
        self.reading = Reading::Over;
        self.calls.turn_to(Stage::Refused);
    }

    fn judged(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Sound(sound) => {
                self.posted = sound.posts;
                self.passed.extend_from_slice(&sound.head);
                self.asked.begin();
                self.calls.turn_to(Stage::Taken);
                self.reading = match sound.body {
                    Some(body) => Reading::Body(body),
                    None => Reading::Answered,
                };
            }
            Verdict::Refused(answer) => self.refuse(answer),
            Verdict::Deaf => {
                self.calls.turn_to(Stage::Deaf);
                self.reading = Reading::Deaf(0);
            }
        }
    }

    /// Makes something of what came; whether it got any further.
    fn advance(&mut self) -> bool {
        match &mut self.reading {
            Reading::Head(head) => {
                let found = self.came[self.searched..].iter().position(|byte| *byte == b'\n');
                let verdict = if let Some(found) = found {
                    let line = self.came.split_to(self.searched + found + 1);
                    self.searched = 0;
                    head.line(&line)
                } else {
                    self.searched = self.came.len();
                    head.part(&self.came)
                };
                if let Some(verdict) = verdict {
                    self.judged(verdict);
                    return true;
                }
                found.is_some()
            }
            Reading::Body(body) if !self.came.is_empty() => {
                let Fed { taken, over, broken } = body.feed(&self.came);
                let piece = self.came.split_to(taken);
                self.passed.extend_from_slice(&piece);
                if broken.is_some() {
                    self.asked.asking().broken = broken;
                    // Some servers know before whoever waits for the body does.
                    match head::broken(self.kind) {
                        Some(answer) => self.refuse(answer),
                        None => self.passed.extend_from_slice(NO_CHUNK),
                    }
                }
                if broken.is_some() {
                    self.reading = Reading::Over;
                } else if over {
                    self.reading = Reading::Answered;
                }
                true
            }
            Reading::Deaf(heard) => {
                *heard += self.came.len();
                self.came.clear();
                if *heard > UNHEARD {
                    self.refuse(Bytes::new());
                }
                false
            }
            Reading::Body(_) | Reading::Answered | Reading::Over => false,
        }
    }

    /// Turns to the next request, if the last one is answered.
    fn turn(&mut self, context: &Context<'_>) -> bool {
        let over = matches!(self.reading, Reading::Answered)
            && !self.asked.is_open(context)
            && self.flushed;
        if over {
            self.searched = 0;
            self.reading =
                Reading::Head(Box::new(Head::new(self.kind, self.time.moment(), self.posted)));
            self.calls.turn_to(if self.came.is_empty() { Stage::Next } else { Stage::Head });
        }
        over
    }

    /// The client says no more.
    fn end(&mut self) {
        self.ended = true;
        if let Reading::Head(head) = &mut self.reading
            && let Some(answer) = head.end(&self.came)
        {
            self.refuse(answer);
        }
    }
}

impl<S: AsyncRead + Unpin> Gate<S> {
    /// Reads some more of what the client says; nothing if that is all.
    fn poll_more(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut piece = [0; PIECE];
        let mut buffer = ReadBuf::new(&mut piece);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let more = buffer.filled();
        if !more.is_empty() {
            self.came.extend_from_slice(more);
            match &self.reading {
                Reading::Head(head) if head.is_empty() => self.calls.turn_to(Stage::Head),
                _ => self.calls.hear(),
            }
        }
        Poll::Ready(Ok(more.len()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gate<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let gate = self.get_mut();
        loop {
            if !gate.passed.is_empty() {
                let size = gate.passed.len().min(buffer.remaining());
                buffer.put_slice(&gate.passed.split_to(size));
                return Poll::Ready(Ok(()));
            }
            if gate.farewell.is_some() {
                // Who serves us hears of it, and goes.
                return Poll::Pending;
            }
            if gate.advance() || gate.turn(context) {
                continue;
            }
            if gate.ended {
                return match gate.reading {
                    // What was sent before is answered first.
                    Reading::Answered if !gate.came.is_empty() => Poll::Pending,
                    _ => Poll::Ready(Ok(())),
                };
            }
            let ahead = matches!(gate.reading, Reading::Answered) && gate.came.len() >= AHEAD;
            if ahead || matches!(gate.reading, Reading::Over) {
                return Poll::Pending;
            }
            if ready!(gate.poll_more(context))? == 0 {
                gate.end();
            }
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gate<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.flushed = false;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.flushed = false;
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.stream).poll_flush(context))?;
        self.flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Gate<S> {
    /// Says what is still to be said, and parts.
    pub(super) async fn part(mut self) -> io::Result<()> {
        let farewell = self.farewell.take();
        if let Some(farewell) = &farewell {
            self.stream.write_all(farewell).await?;
        }
        self.stream.shutdown().await?;
        if farewell.is_some_and(|farewell| !farewell.is_empty()) && !self.ended {
            let mut unheard = [0; PIECE];
            let rest =
                async { while !matches!(self.stream.read(&mut unheard).await, Ok(0) | Err(_)) {} };
            drop(tokio::time::timeout(LINGER, rest).await);
        }
        Ok(())
    }
}
