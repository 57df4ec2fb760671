//! Every line that castle says to programs, judged by a validator that nobody here wrote against the schema in the docs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use castle_reality::{Real, Running, nap, run};
use serde_json::Value;

const LIMIT: Duration = Duration::from_mins(2);

/// Reads lines of `command<TAB>line`, and tells which of them the schema refuses, and which kinds there were.
const JUDGE: &str = "
import json, sys
from jsonschema import Draft202012Validator
schema = json.load(open(sys.argv[1]))
Draft202012Validator.check_schema(schema)
validator = Draft202012Validator(schema)
kinds = set()
for row in open(sys.argv[2]):
    command, line = row.rstrip('\\n').split('\\t', 1)
    value = json.loads(line)
    kinds.add(value.get('answer') or 'event')
    if not validator.is_valid(value):
        print('refused', command, line)
    # What is wrong must be refused, else nothing was judged at all.
    for wrong in ({**value, 'v': 'x'}, {key: value[key] for key in value if key != 'v'}):
        if validator.is_valid(wrong):
            print('taken', command, json.dumps(wrong))
print(' '.join(sorted(kinds)))
";

/// Commands in the order of a life, good ones and such that can not do what they are asked for, each with its exit code.
const LIFE: &[(&str, i32)] = &[
    ("status", 0),
    ("attach", 0),
    ("check", 0),
    ("graph", 0),
    ("plan", 0),
    ("up --fault nonsense", 2),
    ("up", 0),
    ("status", 0),
    ("why", 0),
    ("why platform/vip", 0),
    ("plan", 0),
    ("audit", 0),
    ("audit --gone", 4),
    ("history", 0),
    ("attach", 0),
    ("secrets list", 0),
    ("secrets check", 0),
    ("secrets escrow", 0),
    ("secrets get GITHUB_TOKEN", 0),
    ("secrets get NO_SUCH_KEY", 1),
    ("secrets verify pods.yaml", 1),
    ("rehearse inventory", 0),
    ("rehearse --list-faults", 0),
    ("rehearse scenario --list", 0),
    ("rehearse poke --list", 0),
    ("rehearse poke proxmox 700: foreign vm", 0),
    ("rehearse poke proxmox 700: foreign vm", 3),
    ("judge -f pods.yaml", 0),
    ("judge -f nothing.yaml", 2),
    ("wipe", 3),
    ("rebirth --yes", 0),
    ("up --speed max --chaos 3", 0),
    ("kubeconfig", 2),
    ("lock --allow-downgrade", 0),
    ("lock --check", 0),
    ("man", 2),
    ("graph --format svg", 2),
    ("nonsense", 2),
    ("-f wrong.hcl check", 2),
    ("-f wrong.hcl plan", 2),
    ("-f nothing.hcl up", 2),
    ("down", 3),
    ("down --yes", 0),
    ("status", 0),
    ("up --speed max --detach", 0),
    ("attach", 0),
    ("rehearse reset --yes", 0),
];

const PODS: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b}\nstatus: {phase: Running, conditions: [{type: Ready, status: 'True'}]}\n";

/// The program, which the tests of its own room have built beside this one.
pub(crate) fn castle() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    let found = this.parent().and_then(Path::parent).unwrap().join("castle");
    assert!(found.is_file(), "{} is built by `cargo build -p castle`", found.display());
    found
}

#[tokio::test]
#[ignore = "needs real components: cargo xtask test"]
async fn every_line_for_programs_is_as_the_schema_says() {
    let Some(real) = Real::find("jsonschema") else { return };
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pods.yaml"), PODS).unwrap();
    std::fs::write(home.path().join("wrong.hcl"), "castle \"x\" { talos = 3 }\n").unwrap();
    let mut rows = String::new();
    for (words, code) in LIFE {
        let said = run(command(home.path(), &split(words)), LIMIT).await;
        assert_eq!(said.code, Some(*code), "castle {words}:\n{}\n{}", said.stdout, said.stderr);
        let last = said.stdout.lines().last().unwrap_or_default();
        assert!(!last.is_empty() || *words == "attach", "castle {words} says nothing");
        if *code == 2 && !words.ends_with("check") {
            assert!(last.contains("\"answer\":\"error\""), "castle {words}: {last}");
        }
        rows.extend(said.stdout.lines().map(|line| format!("{words}\t{line}\n")));
    }
    rows += &["rehearse serve\t", &sheet(home.path()).await, "\n"].concat();
    let (judge, heard) = (home.path().join("judge.py"), home.path().join("heard"));
    std::fs::write(&judge, JUDGE).unwrap();
    std::fs::write(&heard, rows).unwrap();
    let schema =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/castle.schema.json");
    let mut command = real.python();
    command.arg(judge).arg(&schema).arg(heard);
    let told = run(command, LIMIT).await.expect_success();
    let schema = serde_json::from_slice(&std::fs::read(schema).unwrap()).unwrap();
    // Nothing is refused, nothing wrong is taken, and every kind that is described has come.
    assert_eq!(told.trim_end(), kinds(&schema).join(" "));
}

/// Every kind that the schema describes, in the order of their names.
fn kinds(schema: &Value) -> Vec<String> {
    let described = schema["anyOf"].as_array().unwrap().iter();
    let kind = |one: &Value| {
        let keys = one.get("allOf").map_or(one, |parts| &parts[1]);
        keys["properties"]["answer"]["const"].as_str().unwrap_or("event").to_owned()
    };
    described.map(kind).collect::<BTreeSet<String>>().into_iter().collect()
}

/// A command of this life, whose lines are for programs.
fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(castle());
    command.args(words).arg("--json").env_clear().current_dir(home);
    command.env("HOME", home).env("XDG_STATE_HOME", home.join("state"));
    command
}

/// What `rehearse serve` says before it serves, at an address that other runs of this test do not have.
async fn sheet(home: &Path) -> String {
    let at = format!("127.{}.0.9", 100 + std::process::id() % 100);
    let log = home.join("served.log");
    let mut served = Running::start_into(command(home, &["rehearse", "serve", "--at", &at]), &log);
    loop {
        let said = std::fs::read_to_string(&log).unwrap();
        let mut whole = said.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        if let Some(line) = whole.find(|line| line.starts_with('{')) {
            return line.trim_end().to_owned();
        }
        assert!(served.goes_on(), "{said}");
        nap(Duration::from_millis(20)).await;
    }
}

/// The words of a command line; a rule of the rehearsal is one word.
fn split(words: &str) -> Vec<&str> {
    match words.split_once("proxmox ") {
        Some((before, _)) => {
            let rule = &words[before.len()..];
            before.split_whitespace().chain([rule]).collect()
        }
        None => words.split_whitespace().collect(),
    }
}
