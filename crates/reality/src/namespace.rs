//! Runs a test once more in a network namespace of its own, where it is root, alone, and can reach nobody outside.

use std::env;
use std::future::Future;
use std::process::{Command, Stdio};
use std::thread;

use crate::note;

/// Set for the program inside.
const INSIDE: &str = "CASTLE_INSIDE";

/// The ranges of the cluster inside. An address on the loopback device makes all of its range local: whoever dials a
/// service, a pod or a node ends at this machine.
const RANGES: [(&str, &str); 3] = [
    ("10.96.0.1/12", "10.96.0.1 netmask 255.240.0.0"),
    ("10.244.0.1/16", "10.244.0.1 netmask 255.255.0.0"),
    ("192.168.1.1/24", "192.168.1.1 netmask 255.255.255.0"),
];

/// Does a test's work in a network and process namespace of its own: ports never collide, no dial leaves it, and
/// whatever was started ends with it. The test starts itself anew for that, with the same name, and the work is done there.
///
/// # Panics
/// If the work does; and with `CI` set if this machine makes no namespaces for users.
#[expect(clippy::print_stderr, reason = "what was not tested is told where tests are read")]
pub fn alone(work: impl Future<Output = ()>) {
    if surrounding(INSIDE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a test can make a runtime").block_on(work);
        return;
    }
    let possible = inside().arg("true").stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        let why =
            "this machine makes no namespaces for users (unshare --map-root-user --net --pid)";
        assert!(!surrounding("CI"), "{why}");
        note("namespaces", false);
        eprintln!("NOT TESTED: {why}");
        return;
    }
    let name = thread::current().name().expect("a test's thread has its name").to_owned();
    let program = env::current_exe().expect("a test knows its own program");
    let mut command = inside();
    command.arg(program).args(["--exact", &name, "--ignored", "--nocapture"]).env(INSIDE, "1");
    let output = command.output().expect("what was possible just now is possible still");
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    eprintln!("{said}");
    assert!(output.status.success(), "{name} failed in its namespace");
    assert!(said.contains("1 passed"), "{name} did not run in its namespace");
}

/// Does a program's whole work in namespaces of its own, as [`alone`] does for a test.
///
/// # Errors
/// If this machine makes no namespaces for users, or the work failed there.
///
/// # Panics
/// If no runtime can be made.
pub fn alone_as_a_program(work: impl Future<Output = ()>) -> Result<(), String> {
    if surrounding(INSIDE) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a program can make a runtime").block_on(work);
        return Ok(());
    }
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let status = inside().arg(program).env(INSIDE, "1").status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("it ended with {status} in its namespace")),
        Err(error) => Err(format!("no namespace could be made: {error}")),
    }
}

/// A command whose arguments are run inside.
fn inside() -> Command {
    let ranges = RANGES.iter().enumerate().map(|(number, (range, spelled))| {
        format!("(ip addr add {range} dev lo || ifconfig lo:{number} {spelled})")
    });
    // `ip` may be missing where `ifconfig` is not.
    let steps: Vec<String> = std::iter::once("(ip link set lo up || ifconfig lo up)".to_owned())
        .chain(ranges)
        .chain(std::iter::once("exec \"$@\"".to_owned()))
        .collect();
    let script = steps.join(" && ");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--net", "--pid", "--fork", "--kill-child"]);
    command.args(["sh", "-c", &script, "sh"]).stdin(Stdio::null());
    command
}

#[expect(clippy::disallowed_methods, reason = "a test is told by the one that started it")]
fn surrounding(name: &str) -> bool {
    env::var_os(name).is_some()
}
