//! What is done before anything secret is read: nothing of this process is dumped to a disk, shown to another process of
//! the same user, or told by a panic.

use rustix::io;
use rustix::process::{Resource, Rlimit, setrlimit};

use crate::output;

/// Closes the ways by which the memory of this process could leave it. What can not be closed is told, and no more: a
/// sandbox that forbids the question may well forbid the dump too.
pub(crate) fn harden() {
    std::panic::set_hook(Box::new(|info| {
        // Never the words of a panic: anything could be in them, a secret even.
        let place =
            info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        output::talk(&format!(
            "castle: internal error{place}; the step that met it is named in the report"
        ));
    }));
    for (done, what) in [
        (undumpable(), "other processes of this user can read the memory of castle"),
        (no_core(), "a crash could write the memory of castle to a core file"),
    ] {
        if let Err(error) = done {
            output::talk(&format!(
                "warning: {what}: the system did not let us forbid it ({error})"
            ));
        }
    }
    // Whatever the umask was: what we make is ours to use and nobody else's to read.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
}

/// No core file, no debugger, and `/proc` of this process is for root alone.
#[cfg(target_os = "linux")]
fn undumpable() -> io::Result<()> {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
}

/// Elsewhere there is no such switch.
#[cfg(not(target_os = "linux"))]
fn undumpable() -> io::Result<()> {
    Ok(())
}

/// No core file, and no way back: the hard limit is lowered too. Children inherit it.
fn no_core() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })
}

#[cfg(test)]
mod tests;
