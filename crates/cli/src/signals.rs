//! Ctrl-C and SIGTERM ask a run to stop; a closed terminal does not.

use castle_engine::Stop;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Problem};

/// The signals that castle hears.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    /// Begins to listen; from here on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Problem> {
        let on = |kind| {
            signal(kind).map_err(|e| {
                Problem::new(Exit::Failed, "signals could not be listened to").because(&e)
            })
        };
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hangup: on(SignalKind::hangup())?,
        })
    }

    /// Passes every request to stop on, for ever.
    pub(crate) async fn pass_on(&mut self, stop: &Stop) {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => stop.ask(),
                _ = self.terminate.recv() => stop.ask(),
                // The terminal is gone: the birth goes on, and `castle status` tells about it.
                _ = self.hangup.recv() => {}
            }
        }
    }
}
