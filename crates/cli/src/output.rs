//! Standard output is data, standard error is talk. Neither can fail a run: a reader that has gone is let go.

use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether data could not be written although somebody wanted it: a full disk, not a reader that went away.
static LOST: AtomicBool = AtomicBool::new(false);

/// Writes data to standard output.
pub(crate) fn data(text: &str) {
    if write(&mut io::stdout().lock(), text).is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Writes a value to standard output as it is; for a person's eyes with an end of line.
pub(crate) fn value(text: &str) {
    let mut out = io::stdout().lock();
    if out.is_terminal() {
        drop(out);
        return data(text);
    }
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if written.is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
        LOST.store(true, Ordering::Relaxed);
    }
}

/// Whether any data was lost.
pub(crate) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Writes talk to standard error. `| head` and a closed terminal must neither kill nor fail what is going on.
pub(crate) fn talk(text: &str) {
    write(&mut io::stderr().lock(), text).ok();
}

fn write(to: &mut dyn Write, text: &str) -> io::Result<()> {
    let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    to.write_all(text.as_bytes())?;
    to.write_all(line_end.as_bytes())?;
    to.flush()
}
