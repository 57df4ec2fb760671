//! Ctrl-C and SIGTERM ask a run to stop; a closed terminal does not.

use castle_engine::Stop;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Problem};

/// Lets a closed terminal pass: the birth goes on, and `castle status` tells about it.
pub(crate) fn survive_hangup() -> Result<Signal, Problem> {
    on(SignalKind::hangup())
}

/// The signal for a file that grows beyond the limit on files.
const TOO_LARGE: i32 = 25;

/// Lets the limit on the size of files be an error of the write that met it, and not the silent end of the program.
pub(crate) fn survive_large_files(runtime: &Runtime) -> Result<(), Problem> {
    let _inside = runtime.enter();
    // Once listened to, a signal does not end the process any more, whoever listens.
    on(SignalKind::from_raw(TOO_LARGE)).map(drop)
}

fn on(kind: SignalKind) -> Result<Signal, Problem> {
    signal(kind)
        .map_err(|e| Problem::new(Exit::Failed, "signals could not be listened to").because(&e))
}

/// The signals that castle hears.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to listen; from here on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Problem> {
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
        })
    }

    /// Waits for the first request to stop.
    pub(crate) async fn any(&mut self) {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// Passes every request to stop on, for ever.
    pub(crate) async fn pass_on(&mut self, stop: &Stop) {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => stop.ask(),
                _ = self.terminate.recv() => stop.ask(),
            }
        }
    }
}
