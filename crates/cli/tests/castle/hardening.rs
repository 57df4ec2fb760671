//! A running castle can not be looked into by others of the same user, and leaves no core file.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::context::Context;

/// A user without any rights, for where the tests are run by root: nothing is closed to root.
const NOBODY: u32 = 65_534;

/// A program as a plain user starts it.
fn plain(program: impl AsRef<Path>, user: u32) -> Command {
    let mut command = Command::new(program.as_ref());
    command.env_clear().env("CANARY", "yellow").uid(user).gid(user).stderr(Stdio::piped());
    command
}

/// What a program of this user reads in the environment of a process.
fn environment(process: &Child, user: u32) -> Result<String, String> {
    let path = format!("/proc/{}/environ", process.id());
    let output = plain("cat", user).arg(path).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

#[test]
fn nobody_looks_into_a_running_castle() {
    let home = Context::new();
    let own = std::fs::metadata(home.folder()).unwrap().uid();
    let user = if own == 0 { NOBODY } else { own };
    chown(home.folder(), Some(user), Some(user)).unwrap();
    // Opened by us, so that the folders that lead to it need not be open to that user.
    let program = File::open(env!("CARGO_BIN_EXE_castle")).unwrap();
    let mut castle = plain(format!("/proc/self/fd/{}", program.as_raw_fd()), user);
    castle.args(["up", "--speed", "1"]).stdout(Stdio::piped()).current_dir(home.folder());
    castle.env("HOME", home.folder()).env("XDG_STATE_HOME", home.folder().join("state"));
    let mut castle = castle.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(castle.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("rehearsal of"), "{line}");

    let mut other = plain("cat", user).stdin(Stdio::piped()).spawn().unwrap();
    let limits = |process: &Child| {
        let text = std::fs::read_to_string(format!("/proc/{}/limits", process.id())).unwrap();
        let line = text.lines().find(|line| line.starts_with("Max core file size")).unwrap();
        line.split_whitespace().skip(4).take(2).collect::<Vec<_>>().join(" ")
    };
    let seen = (environment(&castle, user), environment(&other, user), limits(&castle));
    castle.kill().unwrap();
    castle.wait().unwrap();
    other.kill().unwrap();
    other.wait().unwrap();
    // The question can be answered, of any process but a castle.
    assert_eq!(seen.1.unwrap(), "CANARY=yellow\0");
    let refusal = seen.0.unwrap_err();
    assert!(refusal.contains("Permission denied"), "{refusal}");
    assert_eq!(seen.2, "0 0");
}
