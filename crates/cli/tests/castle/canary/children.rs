//! Watches the processes that are started while something runs: their arguments and their environment.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// How long nobody looks.
const BETWEEN: Duration = Duration::from_micros(500);

/// Everything that was seen of processes, by process and what it is.
pub(crate) type Seen = BTreeMap<(u32, &'static str), Vec<u8>>;

/// Somebody who watches until told to stop.
pub(crate) struct Watch<'scope> {
    thread: ScopedJoinHandle<'scope, Seen>,
    over: &'scope AtomicBool,
}

impl<'scope> Watch<'scope> {
    /// Begins to watch all that is started by this process.
    pub(crate) fn begin(scope: &'scope Scope<'scope, '_>, over: &'scope AtomicBool) -> Self {
        let thread = scope.spawn(|| {
            let mut seen = Seen::new();
            while !over.load(Ordering::Relaxed) {
                look(std::process::id(), &mut seen);
                std::thread::park_timeout(BETWEEN);
            }
            seen
        });
        Self { thread, over }
    }

    /// Ends it, and says what was seen.
    pub(crate) fn end(self) -> Seen {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Looks at all that came from a process. What has ended meanwhile is passed over.
pub(crate) fn look(process: u32, seen: &mut Seen) {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return };
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        for child in list.split_whitespace().filter_map(|word| word.parse().ok()) {
            look(child, seen);
            for what in ["cmdline", "environ"] {
                let before = name(child);
                let read = fs::read(format!("/proc/{child}/{what}")).unwrap_or_default();
                // The environment of castle itself is its user's choice, and closed to others. On its way from one program
                // to another a process has the name of the one and the environment of the other.
                if what == "environ" && [before, name(child)].contains(&"castle".to_owned()) {
                    continue;
                }
                let kept = seen.entry((child, what)).or_default();
                if !kept.ends_with(&read) {
                    kept.extend(read);
                }
            }
        }
    }
}

/// The name of the program that a process runs.
fn name(process: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    name.trim().to_owned()
}
