//! Ctrl-C and SIGTERM ask a run to stop, Ctrl-\ at once; Ctrl-Z halts the process; a closed terminal does nothing.

use castle_engine::Stop;
use rustix::process::{getpid, kill_process};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::{Exit, Problem};
use crate::output;

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
    quit: Signal,
    /// Ctrl-Z.
    suspend: Signal,
}

/// The signal of Ctrl-Z.
const SUSPEND: i32 = 20;

impl Signals {
    /// Begins to listen; from here on these signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self, Problem> {
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            quit: on(SignalKind::quit())?,
            suspend: on(SignalKind::from_raw(SUSPEND))?,
        })
    }

    /// Waits for the next request to stop, and says how urgent it is.
    async fn next(&mut self) -> usize {
        loop {
            tokio::select! {
                biased;
                _ = self.interrupt.recv() => return 1,
                _ = self.terminate.recv() => return 1,
                _ = self.quit.recv() => return 2,
                _ = self.suspend.recv() => suspend(),
            }
        }
    }

    /// Waits for the first request to stop.
    pub(crate) async fn any(&mut self) {
        self.next().await;
    }

    /// Passes every request to stop on, for ever.
    pub(crate) async fn pass_on(&mut self, stop: &Stop) {
        loop {
            for _ in 0..self.next().await {
                stop.ask();
            }
        }
    }
}

/// Halts the process as Ctrl-Z asks, once its terminal is given back; goes on where it was when it is let.
fn suspend() {
    let stage = output::staged();
    if let Some(stage) = &stage {
        stage.suspend();
    }
    kill_process(getpid(), rustix::process::Signal::STOP).ok();
    if let Some(stage) = &stage {
        stage.resume();
    }
}
