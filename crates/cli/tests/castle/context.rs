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

    /// In a folder whose name a shell would take for two words, and for a variable.
    pub(crate) fn with_a_blank() -> Self {
        Self { home: tempfile::Builder::new().prefix("my $HOME's ").tempdir().unwrap() }
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

    /// What a command shows, all of it: its words, its exit code, standard output and standard error, without what is another
    /// one each time.
    pub(crate) fn shows(&self, words: &[&str]) -> String {
        let said = self.run(words);
        let quoted = words
            .iter()
            .map(|word| if word.contains(' ') { format!("'{word}'") } else { (*word).to_owned() });
        let line = quoted.collect::<Vec<_>>().join(" ");
        let text = format!("$ castle {line}\n{}{}[exit {}]", said.out, said.err, said.code);
        self.steady(&text)
    }

    /// A text without this test's folder, numbers of processes and counts of requests, and without what is drawn anew in each
    /// life.
    pub(crate) fn steady(&self, text: &str) -> String {
        let text = text.replace(&self.home.path().display().to_string(), "HOME");
        let mut steady = String::new();
        let mut before = "";
        for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
            let word = part.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let is = |kind: fn(&u8) -> bool| !word.is_empty() && word.bytes().all(|b| kind(&b));
            let number = is(u8::is_ascii_digit);
            let drawn =
                is(u8::is_ascii_hexdigit) && (word.len() >= 12 || word.len() == 8 && !number);
            let counted = number && ["process", "INT", "rehearsal", "requests"].contains(&before);
            steady.push_str(match (drawn, counted) {
                (true, _) => "HEX",
                (_, true) => "N",
                _ => word,
            });
            steady.push_str(&part[word.len()..]);
            if !word.is_empty() {
                before = word;
            }
        }
        steady
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
