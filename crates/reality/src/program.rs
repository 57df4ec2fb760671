//! Runs programs with a limit of time, and leaves none of them behind.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// What a program left behind when it ended.
#[derive(Debug)]
pub struct Output {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

impl Output {
    /// Standard output of a program that succeeded.
    ///
    /// # Panics
    /// If it did not.
    #[must_use]
    pub fn expect_success(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self.stdout
    }

    /// Standard error of a program that failed.
    ///
    /// # Panics
    /// If it succeeded.
    #[must_use]
    pub fn expect_failure(self) -> String {
        assert!(
            self.code.is_some_and(|code| code != 0),
            "{:?} {}\n{}",
            self.code,
            self.stdout,
            self.stderr
        );
        self.stderr
    }
}

/// A program in its own process group; all of the group ends with it.
#[derive(Debug)]
pub struct Running {
    child: Child,
}

impl Running {
    /// Starts a program that goes on until this is dropped.
    ///
    /// # Panics
    /// If it can not be started.
    #[must_use]
    pub fn start(mut command: Command) -> Self {
        command.process_group(0).stdin(Stdio::null());
        match command.spawn() {
            Ok(child) => Self { child },
            Err(error) => panic!("{command:?} can not be started: {error}"),
        }
    }

    /// Starts such a program with all that it says going to a file.
    ///
    /// # Panics
    /// If the file can not be made, or the program not be started.
    #[must_use]
    pub fn start_into(mut command: Command, log: &Path) -> Self {
        let file = File::create(log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = file.expect("a test can write into its own folder");
        command.stdout(out).stderr(err);
        Self::start(command)
    }

    /// Whether it goes on.
    #[must_use]
    pub fn goes_on(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Stops it where it is, until [`Running::resume`].
    ///
    /// # Panics
    /// If the system refuses; so do all signals.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    ///
    /// # Panics
    /// If the system refuses.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let heard = self.group().map(|group| kill_process_group(group, signal));
        assert_eq!(heard, Some(Ok(())), "who has not been waited for can be signalled");
    }

    fn group(&self) -> Option<Pid> {
        i32::try_from(self.child.id()).ok().and_then(Pid::from_raw)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The group may be gone already; then there is nobody to end.
        let ended = self.group().map(|group| kill_process_group(group, Signal::KILL));
        let waited = self.child.wait();
        drop((ended, waited));
    }
}

/// Lets real time pass.
#[expect(
    clippy::disallowed_methods,
    reason = "real programs take real time, and most say nothing when they have done something"
)]
pub async fn nap(length: Duration) {
    tokio::time::sleep(length).await;
}

/// Runs a program to its end, while servers of this test go on answering it on the same thread.
///
/// # Panics
/// If it can not be started, or does not end within `limit`; then it is ended.
pub async fn run(mut command: Command, limit: Duration) -> Output {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let words = format!("{command:?}");
    let mut running = Running::start(command);
    let (stdout, stderr) = (read(running.child.stdout.take()), read(running.child.stderr.take()));
    let both = async { (stdout.await.unwrap_or_default(), stderr.await.unwrap_or_default()) };
    let Ok((stdout, stderr)) = timeout(limit, both).await else {
        panic!("{words} did not end within {limit:?}");
    };
    // Both ends of its output are closed: it has ended, or is about to.
    let code = running.child.wait().ok().and_then(|status| status.code());
    Output { code, stdout, stderr }
}

/// Reads a pipe to its end on a thread of its own.
fn read(pipe: Option<impl Read + Send + 'static>) -> oneshot::Receiver<String> {
    let (sender, receiver) = oneshot::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What came before the pipe broke is worth showing.
            drop(pipe.read_to_end(&mut bytes));
        }
        // Nobody listens any more if the limit has passed.
        drop(sender.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receiver
}
