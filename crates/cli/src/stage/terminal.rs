//! The terminal behind standard error: its size, whose it is, and how it is given back, whatever happens.

use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, Once, PoisonError};

use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};

use super::painter::{ENTER, LEAVE};

/// The size where a terminal does not tell.
const SIZE: (usize, usize) = (80, 24);

/// How the terminal was before a screen took it; none while no screen has it.
static TAKEN: Mutex<Option<Before>> = Mutex::new(None);

/// How a terminal was.
struct Before {
    /// Its settings, if it is the one that is typed at.
    modes: Option<Termios>,
}

/// The terminal, as a screen uses it.
#[derive(Debug, Default)]
pub(super) struct Terminal {
    /// Whether it takes nothing any more.
    gone: bool,
    taken: bool,
}

impl Terminal {
    /// Columns and rows, as of now.
    pub(super) fn size() -> (usize, usize) {
        let told = tcgetwinsize(io::stderr()).ok().filter(|told| told.ws_col > 0);
        told.map_or(SIZE, |told| {
            let rows = if told.ws_row == 0 { SIZE.1 } else { usize::from(told.ws_row) };
            (usize::from(told.ws_col), rows)
        })
    }

    /// Shows a frame, if there is one.
    pub(super) fn show(&mut self, frame: Option<String>) {
        let Some(frame) = frame else { return };
        if !self.taken {
            take();
            self.taken = true;
            self.write(ENTER);
        }
        // A panic elsewhere gave the terminal back.
        if lock().is_some() {
            self.write(&frame);
        }
    }

    /// Leaves the terminal as it was, but for what was said.
    pub(super) fn give_back(&mut self, said: &str) {
        let before = if std::mem::take(&mut self.taken) { lock().take() } else { None };
        if before.is_some() {
            self.write(LEAVE);
        }
        self.write(said);
        if let Some(before) = before {
            put_back(&before);
        }
    }

    fn write(&mut self, text: &str) {
        if self.gone || text.is_empty() {
            return;
        }
        let mut err = io::stderr().lock();
        self.gone = err.write_all(text.as_bytes()).and_then(|()| err.flush()).is_err();
    }
}

/// Whether this process is the one that the terminal is for: one in the background paints over nobody's prompt.
pub(crate) fn in_front() -> bool {
    let err = io::stderr();
    // Where nobody can tell (a pseudo terminal that is not the controlling one), nobody else types either.
    err.is_terminal() && tcgetpgrp(&err).map_or(true, |front| front == getpgrp())
}

/// Takes the terminal: what is typed is not shown, since it would tear the picture.
fn take() {
    let stdin = io::stdin();
    let modes = tcgetattr(&stdin).ok().filter(|_| stdin.is_terminal());
    if let Some(modes) = &modes {
        let mut quiet = modes.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Now, &quiet).ok();
    }
    *lock() = Some(Before { modes });
}

fn put_back(before: &Before) {
    if let Some(modes) = before.modes.as_ref().filter(|_| in_front()) {
        tcsetattr(io::stdin(), OptionalActions::Now, modes).ok();
    }
}

fn lock() -> std::sync::MutexGuard<'static, Option<Before>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a panic give the terminal back before it is told.
pub(super) fn mind_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let told = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(before) = TAKEN.try_lock().ok().and_then(|mut taken| taken.take()) {
                io::stderr().lock().write_all(LEAVE.as_bytes()).ok();
                put_back(&before);
            }
            told(panic);
        }));
    });
}

#[cfg(test)]
mod tests;
