//! What the tests of this room share: folders, the oracles, and who somebody is.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use castle_model::Secret;
use castle_reality::asked::{Asked, Told, comes};
use castle_reality::{Real, Running, nap, run};
use castle_talos::TalosAccess;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

use crate::datacenter::LIMIT;

/// How long a program that only computes may take, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_mins(1);

/// Both versions of Talos' own machinery.
pub(crate) const ORACLES: [&str; 2] = ["talosoracle-1.13", "talosoracle-1.14"];

/// A folder that goes with the test.
pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// Writes a file into a folder and says where it is.
pub(crate) fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

/// YAML as data.
pub(crate) fn yaml(text: &str) -> Value {
    yaml_serde::from_str(text).unwrap()
}

/// Asks an oracle; its standard output.
pub(crate) async fn ask(oracle: &Real, words: &[&str]) -> String {
    run(with(oracle.program(), words), SOON).await.expect_success()
}

/// A command with its arguments.
pub(crate) fn with(mut command: Command, words: &[&str]) -> Command {
    command.args(words);
    command
}

/// A new bundle, made by Talos' own machinery; the file that holds it.
pub(crate) async fn secrets(oracle: &Real, folder: &Path, name: &str) -> String {
    let file = folder.join(name).display().to_string();
    drop(ask(oracle, &["secrets", &file]).await);
    file
}

/// Somebody with a role in the cluster of a bundle, by a certificate that Talos' own machinery issued.
pub(crate) async fn somebody(oracle: &Real, secrets: &str, role: &str) -> TalosAccess {
    let out = folder();
    let place = out.path().display().to_string();
    drop(
        ask(oracle, &["gen", "-role", role, secrets, "blue", "https://10.0.0.1:6443", &place])
            .await,
    );
    access(&fs::read_to_string(out.path().join("talosconfig")).unwrap())
}

/// Who a talosconfig says we are.
pub(crate) fn access(talosconfig: &str) -> TalosAccess {
    let config = yaml(talosconfig);
    let context = &config["contexts"][config["context"].as_str().unwrap()];
    let pem = |field: &str| {
        let der = base64(context[field].as_str().unwrap());
        String::from_utf8(der).unwrap()
    };
    TalosAccess { authority: pem("ca"), certificate: pem("crt"), key: Secret::new(pem("key")) }
}

/// Compares the lines `{"what": …, "value": …}` of a script with what it was asked, step by step.
pub(crate) fn told_by_script(asked: &[Asked], lines: &str) {
    let told: Vec<String> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|line: Value| format!("{}: {}", line["what"].as_str().unwrap(), line["value"]))
        .collect();
    let wanted: Vec<String> = asked
        .iter()
        .map(|step| match step.told {
            Told::Exactly(value) => format!("{}: {value}", step.words),
            other => panic!("a script tells exactly: {other:?}"),
        })
        .collect();
    assert_eq!(told, wanted);
}

/// Asks a program everything in order; all that is told otherwise comes at the end. `command` makes the command of
/// one question, which is asked in these words.
pub(crate) async fn ask_all(
    asked: &[Asked],
    names: &[(&str, &str)],
    command: impl Fn(&Asked, &[&str]) -> Command,
) {
    let place = folder();
    let mut watching = Vec::new();
    let mut wrong = Vec::new();
    for (question, number) in asked.iter().zip(0..) {
        let line = question.line(names);
        let command = command(question, &line.iter().map(String::as_str).collect::<Vec<_>>());
        if let Told::Watches(lines) = question.told {
            let log = place.path().join(format!("watch-{number}"));
            watching.push((Running::start_into(command, &log), log, lines));
            continue;
        }
        let output = run(command, LIMIT).await;
        wrong.extend(question.judge(&output).err());
    }
    for (_running, log, lines) in watching {
        let seen = async {
            while !comes(&fs::read_to_string(&log).unwrap(), lines) {
                nap(Duration::from_millis(50)).await;
            }
        };
        if timeout(SOON, seen).await.is_err() {
            wrong.push(format!("{lines:?} never came in\n{}", fs::read_to_string(&log).unwrap()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Bytes as PEM.
pub(crate) fn pem(label: &str, bytes: &[u8]) -> String {
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(bytes);
    let lines: Vec<&str> =
        body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Writes base64.
pub(crate) fn to_base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// Reads base64.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.decode(text).unwrap()
}

/// Talos' own API front on a loopback address, and the folder that it lives in.
pub(crate) struct Apid {
    _running: Running,
    _root: TempDir,
}

/// Starts the real apid in one of its modes, and waits until it listens.
#[expect(
    clippy::disallowed_methods,
    reason = "a real program starts in real time, and says nothing when it has"
)]
pub(crate) async fn apid(real: &Real, address: Ipv4Addr, secrets: &str, mode: &str) -> Apid {
    let root = folder();
    let place = root.path().display().to_string();
    let listen = format!("{address}:50000");
    let command = with(real.program_as_root(), &[&place, &listen, secrets, mode]);
    let log = root.path().join("log");
    let mut running = Running::start_into(command, &log);
    for _ in 0..400 {
        assert!(running.goes_on(), "the real apid ended: {:?}", fs::read_to_string(&log));
        if tokio::net::TcpStream::connect(&listen).await.is_ok() {
            return Apid { _running: running, _root: root };
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the real apid does not listen at {listen}");
}
