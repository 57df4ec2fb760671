//! A home of its own for each test: cleared environment, temporary folders, one method per command.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Where one test lives.
pub(crate) struct Context {
    home: tempfile::TempDir,
}

/// What a command said and how it ended.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts how it ended, and shows everything if it did not.
    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "standard output:\n{}\nstandard error:\n{}",
            self.out, self.err
        );
        self
    }

    /// How many requests changed the datacenter, as the last lines tell.
    #[track_caller]
    pub(crate) fn changes(&self) -> u64 {
        let line = self
            .err
            .lines()
            .find(|l| l.starts_with("rehearsal: "))
            .unwrap_or_else(|| panic!("no closing line in:\n{}", self.err));
        line.split(" requests, ").nth(1).and_then(|l| l.split(' ').next()).unwrap().parse().unwrap()
    }
}

impl Context {
    pub(crate) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    /// The folder that commands are started in.
    pub(crate) fn folder(&self) -> &Path {
        self.home.path()
    }

    /// The state root of the example castle.
    pub(crate) fn state(&self) -> PathBuf {
        self.home.path().join("state/castle/example/blue")
    }

    /// The folder of the example castle's datacenter.
    pub(crate) fn datacenter(&self) -> PathBuf {
        self.home.path().join("state/castle/example/blue.datacenter")
    }

    /// A command, not yet started.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_castle"));
        command
            .args(words)
            .env_clear()
            .env("HOME", self.home.path())
            .env("XDG_STATE_HOME", self.home.path().join("state"))
            .current_dir(self.home.path())
            .stdin(Stdio::null());
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, words: &[&str]) -> Said {
        Said::of(&self.command(words).output().unwrap())
    }

    /// The datacenter as it knows itself.
    pub(crate) fn inventory(&self) -> serde_json::Value {
        let said = self.run(&["rehearse", "inventory", "--json"]).ends(0);
        serde_json::from_str(&said.out).unwrap()
    }

    /// The numbers of the guests in the datacenter.
    pub(crate) fn guests(&self) -> Vec<u64> {
        let inventory = self.inventory();
        let guests = inventory["proxmox"]["guests"].as_array().unwrap();
        guests.iter().map(|g| g["vmid"].as_u64().unwrap()).collect()
    }

    /// Writes a file into the folder.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

/// The castle file of an example.
pub(crate) fn example(name: &str) -> String {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).join("castle.hcl");
    std::fs::read_to_string(path).unwrap()
}
