//! What programs rely on: exit codes, errors as objects, the shell's completion, one-liners of the docs.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::context::{Context, Said};

/// The last line of standard output.
#[track_caller]
fn last(said: &Said) -> Value {
    let line = said.out.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|_| panic!("no object at the end of:\n{}", said.out))
}

#[test]
fn each_exit_code_comes_with_its_word() {
    let castle = Context::new();
    let error = |words: &[&str], code: i32| {
        let error = last(&castle.run(&[words, &["--json"]].concat()).ends(code));
        assert_eq!(
            (&error["answer"], &error["exit"]),
            (&"error".into(), &code.into()),
            "{words:?}"
        );
        error["kind"].as_str().unwrap().to_owned()
    };
    castle.run(&["up", "--json"]).ends(0);
    assert_eq!(error(&["secrets", "get", "NO_SUCH_KEY"], 1), "failed");
    assert_eq!(error(&["up", "--nonsense"], 2), "usage");
    assert_eq!(error(&["down"], 3), "refused");
    let left = last(&castle.run(&["audit", "--gone", "--json"]).ends(4));
    assert_eq!(left["answer"], "audit", "what is left is the answer, not an error");
    // 130 is provoked where a signal is sent: interrupt.rs.
}

#[test]
fn a_command_line_that_can_not_be_read_is_told_in_json() {
    let castle = Context::new();
    let said = castle.run(&["stauts", "--json"]).ends(2);
    insta::assert_snapshot!(said.out.trim_end(), @r#"{"v":1,"answer":"error","exit":2,"kind":"usage","what":"unrecognized subcommand 'stauts'","causes":[],"seen":[],"hint":"some similar subcommands exist: 'audit', 'status'; `castle --help` explains it","next":["castle --help"]}"#);
    let text = castle.run(&["stauts"]).ends(2);
    assert_eq!(text.out, "", "without --json standard output has no error");
}

#[test]
fn a_castle_without_state_has_a_status() {
    let castle = Context::new();
    let status = last(&castle.run(&["status", "--json"]).ends(0));
    assert_eq!(status["answer"], "status");
    assert_eq!(status["steps"], serde_json::json!({}));
    assert_eq!(status["last_run"], Value::Null);
}

#[test]
fn a_good_castle_file_is_told_as_such() {
    let castle = Context::new();
    castle.write("castle.hcl", &crate::context::example("one-and-two"));
    let check = last(&castle.run(&["check", "--json"]).ends(0));
    assert_eq!(
        (&check["answer"], &check["control_planes"], &check["workers"]),
        (&"check".into(), &1.into(), &2.into())
    );
}

/// Runs a script in a shell that finds castle on its path.
fn shell(castle: &Context, script: &str) -> Said {
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_castle")).parent().unwrap();
    let mut command = Command::new("bash");
    command.args(["--norc", "-c", script]).env_clear().current_dir(castle.folder());
    command.env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display()));
    command.env("HOME", castle.folder()).env("XDG_STATE_HOME", castle.folder().join("state"));
    Said::of(&command.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn bash_completes_commands_and_flags() {
    let castle = Context::new();
    let script = castle.run(&["completions", "bash"]).ends(0).out;
    castle.write("castle.bash", &script);
    let complete = "complete_() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _castle castle \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[@]}\"; }";
    let said = shell(
        &castle,
        &format!("bash -n castle.bash && . ./castle.bash && {complete}; complete_ castle re; complete_ castle graph --f; complete_ castle graph --format s"),
    )
    .ends(0);
    assert_eq!(said.out, "rebirth report rehearse\n--format --file\nsvg\n", "{}", said.err);
    // What depends on the castle is asked of castle itself, of the castle file that is named.
    castle.write("own.hcl", &crate::context::example("one-and-two"));
    castle.run(&["up"]).ends(0);
    let said = shell(
        &castle,
        &format!(
            ". ./castle.bash && {complete}; complete_ castle why platform/v; complete_ castle down --layer s; \
             complete_ castle -f own.hcl machineconfig w; complete_ castle rehearse scenario a-q; complete_ castle report r; \
             complete_ castle rehearse up --fault infisical | head -c 60; echo; echo 'castle {{' > own.hcl; complete_ castle -f own.hcl machineconfig w"
        ),
    )
    .ends(0);
    insta::assert_snapshot!(said.out, @r#"
    platform/vm/cp-01 platform/vm/cp-02 platform/vm/cp-03 platform/vm/worker-01 platform/vm/worker-02 platform/vip
    secrets storage
    worker-01 worker-02
    a-quiet-day
    r0001-20260202
    infisical:\ slow\ 0:02 infisical:\ limits\ 0:07\ twice infis
    "#);
}

/// The one-liners of the page about JSON, in their order, each with what it prints for a castle that stands.
#[test]
fn the_one_liners_of_the_docs_work() {
    let page = include_str!("../../../../docs/reference/json.md");
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let lines: Vec<&str> = block.lines().filter(|line| line.starts_with("castle status")).collect();
    assert_eq!(lines.len(), 4);
    let castle = Context::new();
    castle.run(&["up"]).ends(0);
    let told: Vec<String> = lines
        .iter()
        .filter(|line| !line.contains("| jq") || has("jq"))
        .map(|line| shell(&castle, line).ends(0).out)
        .collect();
    let told = told.last().unwrap();
    assert!(told.contains("42"), "{told}");
}

/// Whether the machine has a program.
fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
