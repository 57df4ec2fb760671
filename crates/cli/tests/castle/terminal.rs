//! The live screen through a real pseudo terminal, shown on a small terminal of our own.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::context::Context;
use crate::grid::Grid;
use crate::real::deaf;

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
        Self::of(castle.command(words), size)
    }

    fn of(command: Command, size: (u16, u16)) -> Self {
        Self::apart(command, size, (None, None))
    }

    /// With standard output or standard error somewhere else.
    fn apart(
        mut command: Command,
        size: (u16, u16),
        (out, err): (Option<Stdio>, Option<Stdio>),
    ) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let name = ptsname(&ours, Vec::new()).unwrap();
        let open = || {
            let file = File::options().read(true).write(true).open(name.to_str().unwrap());
            OwnedFd::from(file.unwrap())
        };
        resize(&ours, size);
        command.env("TERM", "xterm").env("LANG", "C.UTF-8");
        let at = || Stdio::from(open());
        let child = command
            .stdin(at())
            .stdout(out.unwrap_or_else(at))
            .stderr(err.unwrap_or_else(at))
            .spawn()
            .unwrap();
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
        assert!(self.grid.cursor_shown && !self.grid.is_other(), "{all}");
        assert!(self.echoes(), "what is typed is shown again");
        for torn in ["critical path so far", " under way, ", "to come", "░", "▸"] {
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
fn whoever_watches_the_first_run_sees_what_is_usual_too() {
    let castle = Context::new();
    let mut up = castle.command(&["up", "--speed", "20", "--json"]);
    let mut up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut session = loop {
        let mut session = Session::start(&castle, &["attach"], (100, 30));
        // As long as there is no state, nothing is known of any run.
        if session.more() && !session.raw.contains("no run of castle") {
            break session;
        }
        session.end();
    };
    session.until(" of ≈");
    kill_process(Pid::from_child(&up), Signal::INT).unwrap();
    assert_eq!(session.end(), 130);
    up.wait().unwrap();
    session.clean();
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
fn a_look_at_the_real_world_has_a_line_that_is_kept_up_to_date_and_goes() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf().replace("read = \"1s\"", "read = \"3s\""));
    let start = |words: &[&str]| {
        let mut command = castle.command(words);
        command.env("INFISICAL_CLIENT_ID", "id").env("INFISICAL_CLIENT_SECRET", "secret");
        Session::of(command, (60, 24))
    };
    let mut session = start(&["plan"]);
    for _ in 0..2 {
        session.until(" answer, no answer");
        assert!(session.raw.contains("\rlooking at the world, 0."), "{}", session.raw);
    }
    session.end();
    let all = session.clean();
    assert!(!all.contains("looking at the world"), "{all}");
    castle.write("castle.hcl", &deaf());
    let mut session = start(&["plan", "--plain"]);
    session.end();
    assert!(!session.raw.contains("looking at the world"), "it was soon over:\n{}", session.raw);
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

#[test]
fn what_goes_to_a_file_is_neither_coloured_nor_broken() {
    let castle = Context::new();
    let path = castle.folder().join("page");
    let written = |words: &[&str], code| {
        let file = Stdio::from(File::create(&path).unwrap());
        let command = castle.command(words);
        let mut session = Session::apart(command, (60, 24), (Some(file), None));
        assert_eq!(session.end(), code, "{words:?}: {}", session.grid.all());
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(!text.is_empty() && !text.contains('\u{1b}'), "{words:?}: {text}");
        text
    };
    let report = written(&["up", "--speed", "max", "--fault", "git: away"], 1);
    assert!(report.lines().any(|line| line.chars().count() > 60), "{report}");
    for words in [&["plan"][..], &["status"], &["why"], &["graph"], &["history"], &["audit"]] {
        let code = castle.run(words).code;
        assert_eq!(written(words, code), castle.run(words).out, "{words:?}");
    }
    // The other way round, the page is painted for whoever reads it.
    let quiet = (None, Some(Stdio::null()));
    let mut session = Session::apart(castle.command(&["status"]), (60, 24), quiet);
    session.end();
    assert!(session.raw.contains("\u{1b}[1m"), "{}", session.raw);
}

#[test]
fn help_is_coloured_as_everything_is() {
    let castle = Context::new();
    for (words, painted) in [
        (&["up", "--help"][..], true),
        (&["up", "--color", "never", "--help"], false),
        (&["--color=never", "--help"], false),
    ] {
        let mut session = Session::start(&castle, words, (100, 24));
        assert_eq!(session.end(), 0);
        assert_eq!(session.raw.contains('\u{1b}'), painted, "{words:?}: {}", session.raw);
    }
    assert!(castle.run(&["--color", "always", "--help"]).ends(0).out.contains('\u{1b}'));
}

#[test]
fn whoever_types_another_name_has_agreed_to_nothing() {
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let mut session = Session::start(&castle, &["down"], (100, 40));
    // What is typed before the line has ended would stand in it.
    session.until(" to agree:\r\n");
    session.ours.write_all(b"red\n").unwrap();
    assert_eq!(session.end(), 3);
    let all = session.clean();
    let (_, asked) = all.split_once("Type ").unwrap();
    insta::assert_snapshot!(asked, @"
    the castle's name (blue) to agree:
    red
    error: nothing was done: that is not the castle's name
    ");
}

#[test]
fn every_list_fits_a_narrow_terminal() {
    let castle = Context::new();
    castle.run(&["up", "--speed", "max"]).ends(0);
    let lists: &[&[&str]] = &[
        &["audit"],
        &["check"],
        &["history"],
        &["lock"],
        &["lock", "--check"],
        &["plan"],
        &["rehearse", "--list-faults"],
        &["rehearse", "inventory"],
        &["rehearse", "poke", "--list"],
        &["rehearse", "scenario", "--list"],
        &["secrets", "list"],
        &["status"],
        &["why"],
        &["wipe"],
    ];
    for words in lists {
        let mut session = Session::start(&castle, words, (60, 24));
        session.ours.write_all(b"no\n").unwrap();
        session.end();
        let raw = session.raw.replace("\r\n", "\n");
        assert!(raw.lines().count() > 1 || words.len() == 1, "{words:?} says nothing");
        for line in raw.lines() {
            // What was written over it is not to be seen any more.
            let line = bare(line.rsplit('\r').next().unwrap());
            // What has no space, or stands in backquotes, is there to be copied.
            let one = !line.trim_start().contains(' ') || line.trim_start().starts_with('`');
            assert!(line.chars().count() <= 60 || one, "{words:?}: {line}");
        }
    }
}

/// A line without what colours it.
fn bare(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once(|c: char| c.is_ascii_alphabetic()));
    first + &rest.map(|part| part.map_or("", |(_, text)| text)).collect::<String>()
}
