//! Who holds a state folder, and whether that process is still the one that was named.

use std::fmt;

use castle_model::time::Moment;
use serde::{Deserialize, Serialize};

/// Who works with a state folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// Since when.
    pub since: Moment,
    /// What it does: "castle up".
    pub command: String,
    /// When the process was started, in the kernel's own ticks: another process with the same number has another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<u64>,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pid, host, since, command, .. } = self;
        write!(f, "`{command}` (process {pid} on {host}, since {since})")
    }
}

/// What the system says of a holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It runs.
    Alive,
    /// It was stopped (Ctrl-Z, SIGSTOP, a debugger) and does nothing until it is told to go on.
    Stopped,
    /// It has ended, or its number is another process's now.
    Gone,
    /// It is on another machine, or the system does not say.
    Unknown,
}

impl Holder {
    /// This process, as a holder.
    #[must_use]
    pub fn this(host: String, since: Moment, command: String) -> Self {
        let pid = std::process::id();
        Self { pid, host, since, command, born: stat(pid).map(|stat| stat.born) }
    }

    /// Whether it still runs, as far as can be told from here.
    #[must_use]
    pub fn presence(&self) -> Presence {
        let here = rustix::system::uname();
        if here.nodename().to_str() != Ok(self.host.as_str()) {
            return Presence::Unknown;
        }
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        let Some(pid) = pid else { return Presence::Gone };
        if rustix::process::test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            return Presence::Gone;
        }
        match stat(self.pid) {
            None => Presence::Unknown,
            Some(stat) if self.born.is_some_and(|born| born != stat.born) => Presence::Gone,
            Some(Stat { state: 'T' | 't', .. }) => Presence::Stopped,
            // A zombie has given its locks back already.
            Some(Stat { state: 'Z' | 'X', .. }) => Presence::Gone,
            Some(_) => Presence::Alive,
        }
    }
}

/// What the kernel says of a process.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    born: u64,
}

/// None where there is no such process, or no such file system.
fn stat(pid: u32) -> Option<Stat> {
    parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The third and the twenty-second field. The second is the program's name in brackets, which may hold anything.
fn parse(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let state = fields.first()?.chars().next()?;
    Some(Stat { state, born: fields.get(19)?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn holder() -> Holder {
        Holder::this(here(), Moment(0), "castle up".to_owned())
    }

    #[test]
    fn a_process_with_the_same_number_is_not_the_holder() {
        let this = holder();
        assert_eq!(this.presence(), Presence::Alive);
        let earlier = Holder { born: this.born.map(|born| born - 1), ..this.clone() };
        assert_eq!(earlier.presence(), Presence::Gone);
        let elsewhere = Holder { host: format!("not-{}", here()), ..earlier };
        assert_eq!(elsewhere.presence(), Presence::Unknown, "nobody can tell from here");
    }

    #[test]
    fn a_stopped_and_an_ended_process_are_told_apart() {
        let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
        let named = |pid| Holder { pid, born: stat(pid).map(|stat| stat.born), ..holder() };
        let holder = named(child.id());
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        // The signal is taken when the process next runs.
        while holder.presence() == Presence::Alive {
            std::thread::yield_now();
        }
        assert_eq!(holder.presence(), Presence::Stopped);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(holder.presence(), Presence::Gone);
    }

    #[test]
    fn a_program_may_be_called_anything() {
        let text = "77 (a) R (b) T 1 77 77 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0 0";
        assert_eq!(parse(text), Some(Stat { state: 'T', born: 4242 }));
        assert_eq!(parse("77 (cut"), None);
    }
}
