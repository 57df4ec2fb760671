//! A panic while a screen is up, on a real pseudo terminal.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::*;

/// What stands on the terminal when the panic comes.
const FRAME: &str = "\x1b[?2026hplatform 1 of 4 steps";

#[test]
fn a_panic_gives_cursor_and_echo_back_and_is_told_below() {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let open = || {
        let file = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        Stdio::from(OwnedFd::from(file))
    };
    let echoes = || tcgetattr(&ours).unwrap().local_modes.contains(LocalModes::ECHO);
    assert!(echoes());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "stage::terminal::tests::panics_while_a_screen_is_up";
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    let mut child = command.stdin(open()).stdout(Stdio::null()).stderr(open()).spawn().unwrap();
    // The command holds the other end too.
    drop(command);
    let mut said = Vec::new();
    let mut reader = File::from(ours.try_clone().unwrap());
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = reader.read(&mut buffer) {
        said.extend(&buffer[..read]);
    }
    child.wait().unwrap();
    let said = String::from_utf8(said).unwrap();
    let (_, after) = said.split_once(FRAME).expect("the screen was up");
    let (_, told) = after.split_once(LEAVE).expect("the terminal was given back");
    assert!(said.contains(ENTER) && !told.contains(LEAVE), "it is given back once: {said}");
    assert!(told.contains("said before"), "what was said is left: {said}");
    assert!(told.contains("echo was off: true"), "it is told after that: {said}");
    assert!(!told.contains(FRAME), "nothing is painted any more: {said}");
    assert!(echoes(), "what is typed is shown again");
}

#[test]
#[ignore = "a part of another test: it panics"]
fn panics_while_a_screen_is_up() {
    mind_panics();
    let mut terminal = Terminal::default();
    terminal.show(Some(FRAME.to_owned()));
    let quiet = !tcgetattr(io::stdin()).unwrap().local_modes.contains(LocalModes::ECHO);
    let met = std::panic::catch_unwind(|| panic!("echo was off: {quiet}"));
    assert!(met.is_err());
    // The painter's next frame comes when the terminal is no longer its own.
    terminal.show(Some(FRAME.to_owned()));
    terminal.give_back("said before\r\n");
}
