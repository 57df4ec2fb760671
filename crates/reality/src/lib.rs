//! What is held against things that nobody here wrote: the harness for real components. The tests are in `tests/`.
//!
//! `cargo xtask test` builds the components of `real/` and names their folder in `CASTLE_REAL`. Each test asks for
//! what it needs by [`Real::find`]; every answer is noted, and the table at the end of the command comes from these
//! notes. A test of this room is ignored by plain `cargo test`, so that none passes without its component.

pub mod asked;
pub mod cluster;
pub mod kubelet;
mod namespace;
pub mod pod;
mod program;
mod proxy;
mod raw;
pub mod web;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use castle_wire::{SystemClock, SystemEntropy, TcpDialer, World};

pub use namespace::{alone, alone_as_a_program};
pub use program::{Output, Running, nap, run};
pub use proxy::Proxy;
pub use raw::{Answer, Raw};

/// The variable that names the folder of components.
const PLACE: &str = "CASTLE_REAL";

/// In that folder: who used what.
const USES: &str = "uses";

/// A component that is there.
#[derive(Debug, Clone)]
pub struct Real {
    name: String,
    folder: PathBuf,
}

impl Real {
    /// Finds a component, and notes that this test uses it. Without it the test ends, noted as not exercised.
    ///
    /// # Panics
    /// If nobody prepared the components at all: then no test of this room can say anything.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        let folder = place().join(name);
        let found = folder.is_dir();
        note(name, found);
        found.then(|| Self { name: name.to_owned(), folder })
    }

    /// A file of a component that is files.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder of a component that is files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Its name, which a program of it has too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A Go program, ready for its arguments. It sees nothing of our surroundings but the search path.
    #[must_use]
    pub fn program(&self) -> Command {
        bare(&self.folder.join(&self.name))
    }

    /// The Python of a component that is a virtual environment.
    #[must_use]
    pub fn python(&self) -> Command {
        bare(&self.folder.join("bin/python3"))
    }

    /// The program, as the root of a user namespace of its own unless we are root already.
    #[must_use]
    pub fn program_as_root(&self) -> Command {
        if rustix::process::geteuid().is_root() {
            return self.program();
        }
        let mut command = bare(Path::new("unshare"));
        command.arg("--map-root-user").arg(self.folder.join(&self.name));
        command
    }
}

/// Notes that this test uses something, or would if it were there.
fn note(name: &str, found: bool) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let state = if found { "found" } else { "missing" };
    let mut uses = OpenOptions::new().append(true).create(true).open(place().join(USES));
    let noted =
        uses.as_mut().map(|file| file.write_all(format!("{name}\t{state}\t{test}\n").as_bytes()));
    assert!(matches!(noted, Ok(Ok(()))), "the use of {name} can not be noted: {noted:?}");
}

/// The outside as it is: real sockets, real time.
#[must_use]
pub fn outside() -> World {
    World {
        dialer: Arc::new(TcpDialer),
        clock: Arc::new(SystemClock),
        entropy: Arc::new(SystemEntropy),
        roots: Arc::new(Vec::new()),
        cache: None,
    }
}

/// How many rounds a test in rounds goes: 5, or what a soak asks for.
///
/// # Panics
/// If that is no number.
#[expect(
    clippy::disallowed_methods,
    reason = "the workshop asks for a soak by this variable alone"
)]
#[must_use]
pub fn rounds() -> u32 {
    let asked = std::env::var("CASTLE_ROUNDS").ok();
    asked.map_or(5, |text| text.parse().expect("CASTLE_ROUNDS is a number"))
}

fn bare(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin");
    // Nobody's home: a program must not find settings of the person who runs the tests, nor write some.
    command.env("HOME", "/nonexistent");
    command
}

#[expect(
    clippy::disallowed_methods,
    reason = "the workshop hands the folder over by this variable alone"
)]
fn place() -> PathBuf {
    match std::env::var_os(PLACE) {
        Some(place) => place.into(),
        None => panic!(
            "{PLACE} is not set: `cargo xtask test` or `cargo xtask real` prepares the components"
        ),
    }
}
