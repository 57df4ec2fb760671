//! A castle file of one's own goes to real endpoints, and nowhere else.

use crate::context::{Context, Said, example};

/// Runs a command with the credentials of a secret source that does not exist.
fn with_credentials(castle: &Context, words: &[&str]) -> Said {
    let mut command = castle.command(words);
    command
        .env("INFISICAL_CLIENT_ID", "hunter2-id")
        .env("INFISICAL_CLIENT_SECRET", "hunter2-secret");
    Said::of(&command.output().unwrap())
}

/// The example with its secret source at an address where nothing listens: port 1 of this computer.
pub(crate) fn deaf() -> String {
    let changes =
        [("https://eu.infisical.com", "https://127.0.0.1:1"), ("vm = \"5m\"", "read = \"1s\"")];
    changes.iter().fold(example("blue"), |text, (from, to)| {
        assert!(text.contains(from), "the example has {from}");
        text.replace(from, to)
    })
}

#[test]
fn a_castle_file_of_ones_own_is_never_silently_rehearsed() {
    let castle = Context::new();
    castle.write("castle.hcl", &example("blue"));
    for command in ["up", "down", "plan"] {
        let said = castle.run(&[command]).ends(2);
        for word in
            ["INFISICAL_CLIENT_ID and INFISICAL_CLIENT_SECRET are not set", "castle rehearse"]
        {
            assert!(said.err.contains(word), "{word}: {}", said.err);
        }
    }
    assert!(!castle.folder().join("state").exists(), "nothing was done");
    let status = castle.run(&["status"]).ends(0);
    assert!(status.err.contains("has no state yet; `castle up` raises it"), "{}", status.err);
    castle.run(&["check"]).ends(0);
    castle.run(&["graph"]).ends(0);
}

#[test]
fn the_first_line_says_who_is_spoken_to_and_a_failure_names_what_did_not_answer() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf());
    let said = with_credentials(&castle, &["up"]).ends(1);
    let first = said.err.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "castle `blue` from castle.hcl, for real: secrets from https://127.0.0.1:1, VMs on https://pve.lan:8006, \
         5 machines from 192.168.1.211 to 192.168.1.215, the cluster at https://192.168.1.210:6443, \
         Git at https://github.com/example/tazlab-k8s"
    );
    assert!(said.out.contains("127.0.0.1:1"), "{}", said.out);
    assert!(said.out.contains("refused"), "{}", said.out);
    assert!(said.out.contains("castle up"), "the command to go on: {}", said.out);
    for text in [&said.out, &said.err] {
        assert!(!text.contains("rehears") && !text.contains("hunter2"), "{text}");
    }
    let state = castle.folder().join("state/castle/blue");
    assert!(state.join("run.journal").exists());
    for file in ["run.journal", "layers/secrets.journal"] {
        let journal = std::fs::read_to_string(state.join(file)).unwrap();
        assert!(!journal.contains("hunter2"), "{journal}");
    }
    let status = castle.run(&["status"]).ends(0);
    assert!(status.out.contains("castle blue: not born"), "{}", status.out);
}

#[test]
fn nothing_is_razed_blindly() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf());
    let machines = example("machines").replace("https://eu.infisical.com", "https://127.0.0.1:1");
    castle.write(
        "iron.hcl",
        &machines.replace("machine {", "deadlines { read = \"1s\" }\n  machine {"),
    );
    castle.write(
        "patches/sysctls.yaml",
        include_str!("../../../../examples/machines/patches/sysctls.yaml"),
    );
    // Machines whose keys can not be read are not gone: their keys would be removed next.
    let iron = ["-f", "iron.hcl", "down", "--yes"];
    for words in [&["down"][..], &["down", "--yes"], &iron] {
        let said = with_credentials(&castle, words).ends(1);
        assert!(said.err.contains("nothing was removed: without secrets from"), "{}", said.err);
        assert!(said.err.contains("127.0.0.1:1: Connection refused"), "{}", said.err);
        assert!(!said.err.contains("remove VM") && said.out.is_empty(), "{}{}", said.err, said.out);
    }
    let state = castle.folder().join("state/castle/blue");
    assert!(!state.join("run.journal").exists(), "no run was begun");
}

#[test]
fn a_name_that_nobody_knows_is_not_asked_for_again_and_again() {
    let castle = Context::new();
    // Names below `invalid` never exist (RFC 2606), whatever the network.
    castle.write("castle.hcl", &deaf().replace("https://127.0.0.1:1", "https://vault.invalid"));
    let said = with_credentials(&castle, &["up"]).ends(1);
    assert!(said.out.contains("cannot connect to vault.invalid:443"), "{}", said.out);
}

#[test]
fn the_rehearsals_flags_are_refused() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf());
    for flag in [["up", "--speed", "max"], ["up", "--seed", "4"], ["plan", "--seed", "4"]] {
        let said = with_credentials(&castle, &flag).ends(2);
        assert!(said.err.contains("is for the rehearsal"), "{}", said.err);
    }
}

#[test]
fn what_a_rehearsal_knows_is_never_believed_of_real_machines() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf());
    castle.run(&["rehearse", "--state", "here", "up"]).ends(0);
    let said = with_credentials(&castle, &["--state", "here", "down", "--yes"]).ends(3);
    assert!(said.err.contains("is that of a rehearsal"), "{}", said.err);
    with_credentials(&castle, &["--state", "there", "up"]).ends(1);
    let said = castle.run(&["rehearse", "--state", "there", "up"]).ends(3);
    assert!(said.err.contains("is that of a castle that is not rehearsed"), "{}", said.err);
    castle.write("castle.hcl", &deaf().replace("castle \"blue\"", "castle \"rehearsal\""));
    let said = with_credentials(&castle, &["up"]).ends(2);
    assert!(said.err.contains("the folder of the rehearsals"), "{}", said.err);
}

#[test]
fn a_list_of_authorities_that_is_not_there_is_named() {
    let castle = Context::new();
    castle.write("castle.hcl", &deaf());
    let mut command = castle.command(&["up"]);
    command.env("INFISICAL_CLIENT_ID", "a").env("INFISICAL_CLIENT_SECRET", "b");
    command.env("SSL_CERT_FILE", "nowhere.pem");
    let said = Said::of(&command.output().unwrap()).ends(2);
    assert!(said.err.contains("nowhere.pem"), "{}", said.err);
}
