//! The live screen through a real pseudo terminal, shown on a small terminal of our own.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::context::Context;
use crate::grid::Grid;

/// A command on a terminal.
struct Session {
    ours: File,
    child: Child,
    grid: Grid,
    raw: String,
    bytes: Vec<u8>,
}

impl Session {
    fn start(castle: &Context, words: &[&str], size: (u16, u16)) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || {
            let file = File::options().read(true).write(true).open(name.to_str().unwrap());
            OwnedFd::from(file.unwrap())
        };
        resize(&ours, size);
        let mut command = castle.command(words);
        command.env("TERM", "xterm").env("LANG", "C.UTF-8");
        let at = || Stdio::from(open());
        let child = command.stdin(at()).stdout(at()).stderr(at()).spawn().unwrap();
        let grid = Grid::new(size.0.into(), size.1.into());
        let (raw, bytes) = (String::new(), Vec::new());
        Self { ours: File::from(ours), child, grid, raw, bytes }
    }

    /// Reads until the program has written this since the call.
    #[track_caller]
    fn until(&mut self, sign: &str) {
        let from = self.raw.len();
        while !self.raw[from..].contains(sign) {
            assert!(self.more(), "it ended without {sign}:\n{}", self.grid.all());
        }
    }

    /// Reads to the end, and gives the exit code.
    fn end(&mut self) -> i32 {
        while self.more() {}
        self.child.wait().unwrap().code().unwrap()
    }

    /// Reads what comes next; nothing comes once the program has gone.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let Ok(read @ 1..) = self.ours.read(&mut buffer) else { return false };
        self.bytes.extend(&buffer[..read]);
        let whole = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text: Vec<u8> = self.bytes.drain(..whole).collect();
        let text = String::from_utf8(text).unwrap();
        self.grid.write(&text);
        self.raw.push_str(&text);
        true
    }

    fn echoes(&self) -> bool {
        tcgetattr(&self.ours).unwrap().local_modes.contains(LocalModes::ECHO)
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        resize(&self.ours, (columns, rows));
        self.grid.resize(columns.into(), rows.into());
    }

    /// Checks that the terminal is as it was, and that nothing of the screen is left on it.
    fn clean(&self) -> String {
        let all = self.grid.all();
        assert!(self.grid.cursor_shown, "{all}");
        assert!(self.echoes(), "what is typed is shown again");
        for torn in ["critical path so far", "under way", "to come", "░", "▸"] {
            assert!(!all.contains(torn), "{torn} is left over:\n{all}");
        }
        all
    }
}

fn resize(terminal: impl AsFd, (ws_col, ws_row): (u16, u16)) {
    tcsetwinsize(terminal, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
}

#[test]
fn a_run_is_shown_live_and_leaves_a_clean_report() {
    let castle = Context::new();
    let mut session = Session::start(&castle, &["up", "--speed", "60"], (80, 24));
    session.until("of 42 steps");
    assert!(!session.echoes(), "what is typed would tear the picture");
    assert!(!session.grid.cursor_shown);
    // Narrower, lower, wider, in the middle of it.
    for (columns, rows) in [(60, 24), (60, 10), (120, 30)] {
        session.resize(columns, rows);
        session.until("under way");
    }
    assert_eq!(session.end(), 0);
    let all = session.clean();
    let layers = ["secrets", "platform", "engine", "networking", "storage", "gitops"];
    for layer in layers {
        let told = all.matches(&format!("layer {layer} stands after")).count();
        assert_eq!(told, 1, "{layer}:\n{all}");
    }
    assert_eq!(all.matches("castle blue (a rehearsal) stands: 42 steps").count(), 1, "{all}");
    assert!(!all.contains("> create"), "what is on the screen is not told above it:\n{all}");
}

#[test]
fn ctrl_c_and_a_failure_give_the_terminal_back() {
    let castle = Context::new();
    let mut session = Session::start(&castle, &["up", "--speed", "20"], (100, 30));
    session.until("under way");
    kill_process(Pid::from_child(&session.child), Signal::INT).unwrap();
    assert_eq!(session.end(), 130);
    let all = session.clean();
    assert!(all.contains("stopped; everything done is recorded"), "{all}");

    let fault = "proxmox: answers 403 on POST /qemu";
    let words = ["up", "--speed", "200", "--fault", fault];
    let mut session = Session::start(&castle, &words, (100, 30));
    assert_eq!(session.end(), 1, "{}", session.grid.all());
    let all = session.clean();
    assert!(all.contains("failed: platform/"), "{all}");
}

#[test]
fn whoever_wants_plain_lines_gets_them() {
    for (words, variable) in [
        (["up", "--speed", "max", "--plain"], ("A", "b")),
        (["up", "--speed", "max", "--color=never"], ("TERM", "dumb")),
        (["up", "--speed", "max", "--color=auto"], ("CI", "1")),
    ] {
        let castle = Context::new();
        let name = variable.0;
        let mut command = castle.command(&words);
        command.env(variable.0, variable.1);
        let said = crate::context::Said::of(&command.output().unwrap()).ends(0);
        assert!(!said.err.contains('\u{1b}'), "{name}: {}", said.err);
        assert!(said.err.contains("> create"), "{name}: {}", said.err);
    }
    let castle = Context::new();
    let coloured = castle.run(&["up", "--color", "always"]).ends(0);
    assert!(coloured.err.contains("\u{1b}[32m"), "{}", coloured.err);
}
