//! `castle secrets` as a user types it: SOPS files from standard input to standard output, keys and their sources.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::context::{Context, Said, example};

/// Made for these tests, and for nothing else.
pub(crate) const IDENTITY: &str =
    "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";
/// A part of it that no message may hold.
const TELLTALE: &str = "778VQX";
/// Somebody else's.
pub(crate) const OTHER: &str =
    "AGE-SECRET-KEY-1LF52EEJJ8P6CURX8Z0K7ZLE4U77SYEAFHA2WCYKQWKPPPNLC4H5Q452XUQ";

const PLAIN: &str =
    "# who we are\nGITHUB_TOKEN: hunter2\ninner:\n    number: 7\n    open_unencrypted: known\n";

/// Runs a command with an identity, a text on standard input.
fn with(castle: &Context, words: &[&str], identity: &str, input: &str) -> Said {
    let mut command = castle.command(words);
    if !identity.is_empty() {
        command.env("SOPS_AGE_KEY", identity);
    }
    let pipe = Stdio::piped;
    let mut child = command.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    // A command that was refused has not read it.
    child.stdin.take().unwrap().write_all(input.as_bytes()).ok();
    Said::of(&child.wait_with_output().unwrap())
}

fn file(castle: &Context, name: &str) -> String {
    std::fs::read_to_string(castle.folder().join(name)).unwrap()
}

#[test]
fn what_is_encrypted_is_decrypted_for_its_recipient_alone() {
    let castle = Context::new();
    let said = with(&castle, &["secrets", "encrypt", "-"], IDENTITY, PLAIN).ends(0);
    let sealed = said.out;
    assert!(sealed.contains("GITHUB_TOKEN: ENC[AES256_GCM,data:"), "{sealed}");
    assert!(!sealed.contains("hunter2") && !sealed.contains("who we are"), "{sealed}");
    assert!(sealed.contains("open_unencrypted: known"), "{sealed}");
    assert!(said.err.starts_with("encrypted for age1"), "{}", said.err);
    castle.write("a.enc.yaml", &sealed);

    let words = ["secrets", "decrypt", "a.enc.yaml"];
    assert_eq!(with(&castle, &words, IDENTITY, "").ends(0).out, PLAIN);
    let said = with(&castle, &["secrets", "decrypt", "-"], IDENTITY, &sealed).ends(0);
    assert_eq!(said.out, PLAIN);
    let json = with(&castle, &["secrets", "decrypt", "-", "--json"], IDENTITY, &sealed).ends(0).out;
    assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["inner"]["number"], 7);

    // The flag for the castle file, which every command takes, does not stand in its place.
    let flag = ["-f", "castle.hcl", "secrets", "decrypt", "a.enc.yaml"];
    assert_eq!(with(&castle, &flag, IDENTITY, "").ends(0).out, PLAIN);

    let said = with(&castle, &words, OTHER, "").ends(1);
    assert!(said.out.is_empty() && said.err.contains("opens this file"), "{}", said.err);
    assert!(said.err.contains("identities were found in SOPS_AGE_KEY"), "{}", said.err);
    let said = with(&castle, &words, "", "").ends(1);
    assert!(said.err.contains("there is no age identity"), "{}", said.err);
    // The usual file, without being told.
    castle.write(".config/sops/age/keys.txt", IDENTITY);
    let said = castle.run(&words).ends(0);
    assert_eq!(said.out, PLAIN);
    assert!(said.err.contains("chmod 600"), "{}", said.err);
}

#[test]
fn encrypting_never_leaves_clear_text_where_it_was_not() {
    let castle = Context::new();
    castle.write("secrets.yaml", PLAIN);
    let to_file = ["secrets", "encrypt", "secrets.yaml", "--out", "secrets.enc.yaml"];
    let said = with(&castle, &to_file, IDENTITY, "").ends(0);
    assert!(said.out.is_empty(), "{}", said.out);
    assert!(said.err.contains("secrets.yaml still holds everything in clear"), "{}", said.err);
    let sealed = file(&castle, "secrets.enc.yaml");
    let said = with(&castle, &to_file, IDENTITY, "").ends(1);
    assert!(said.err.contains("remove it first"), "{}", said.err);
    assert_eq!(file(&castle, "secrets.enc.yaml"), sealed);

    // Encrypted already: never twice.
    let said = with(&castle, &["secrets", "encrypt", "secrets.enc.yaml"], IDENTITY, "").ends(1);
    assert!(said.err.contains("encrypted already"), "{}", said.err);

    // A rule that matches nothing would give the whole file away.
    let nothing = ["secrets", "encrypt", "secrets.yaml", "--encrypted-regex", "^data$"];
    let said = with(&castle, &nothing, IDENTITY, "").ends(2);
    assert!(said.out.is_empty() && said.err.contains("nothing was written"), "{}", said.err);
    let two = [&nothing[..], &["--encrypted-suffix", "_x"]].concat();
    with(&castle, &two, IDENTITY, "").ends(2);

    with(&castle, &["secrets", "encrypt", "-", "--in-place"], IDENTITY, PLAIN).ends(2);
    let link = castle.folder().join("link.yaml");
    std::os::unix::fs::symlink("secrets.yaml", &link).unwrap();
    with(&castle, &["secrets", "encrypt", "link.yaml", "--in-place"], IDENTITY, "").ends(0);
    assert!(link.is_symlink() && file(&castle, "secrets.yaml").contains("ENC["));
    let said = with(&castle, &["secrets", "decrypt", "secrets.yaml"], IDENTITY, "").ends(0);
    assert_eq!(said.out, PLAIN);
    let said = with(&castle, &["secrets", "encrypt", "notes.env"], IDENTITY, "").ends(2);
    assert!(said.err.contains("dotenv"), "{}", said.err);
    let said = with(&castle, &["secrets", "encrypt", "-"], IDENTITY, "a: [hunter2").ends(1);
    assert!(said.err.contains("line 2: not YAML") && !said.err.contains("hunter2"), "{}", said.err);
}

#[test]
fn a_private_key_is_no_recipient_and_never_repeated() {
    let castle = Context::new();
    castle.write("secrets.yaml", PLAIN);
    let key_file = format!("# created: today\n# public key: age1x\n{IDENTITY}\n");
    let flag = format!("--recipient={IDENTITY}");
    let wrong_flag = format!("--recipents={IDENTITY}");
    for words in [
        &["secrets", "encrypt", "secrets.yaml", "--recipient", IDENTITY][..],
        &["secrets", "encrypt", "secrets.yaml", "--recipient", &key_file],
        &["secrets", "encrypt", "secrets.yaml", &flag],
        // Where clap, or an error about a file, would repeat it.
        &["secrets", "encrypt", "secrets.yaml", &wrong_flag],
        &["secrets", "encrypt", "secrets.yaml", "secrets.yaml", IDENTITY],
        &["secrets", "encrypt", &IDENTITY.to_lowercase()],
        &[IDENTITY],
    ] {
        let said = castle.run(words).ends(2);
        let all = format!("{}{}", said.out, said.err);
        assert!(all.contains("a private key was given on the command line"), "{all}");
        assert!(!all.to_uppercase().contains(TELLTALE), "{all}");
    }
    let said = castle.run(&["secrets", "encrypt", "secrets.yaml", "--recipient", "bob"]).ends(2);
    assert!(said.err.contains("recipient 1: not an age recipient"), "{}", said.err);
    let said = castle.run(&["secrets", "encrypt", "secrets.yaml"]).ends(2);
    assert!(said.err.contains("age-keygen -o") && said.err.contains("keys.txt"), "{}", said.err);
}

#[test]
fn a_reader_that_has_gone_is_let_go() {
    let castle = Context::new();
    let long = format!("a: {}\n", "x".repeat(1 << 20));
    castle.write("a.enc.yaml", &with(&castle, &["secrets", "encrypt", "-"], IDENTITY, &long).out);
    let mut command = castle.command(&["secrets", "decrypt", "a.enc.yaml"]);
    command.env("SOPS_AGE_KEY", IDENTITY).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let said = Said::of(&child.wait_with_output().unwrap()).ends(0);
    assert_eq!(said.err, "");
}

#[test]
fn files_are_verified_by_mac_and_by_what_stands_in_clear() {
    let castle = Context::new();
    let sealed = with(&castle, &["secrets", "encrypt", "-"], IDENTITY, PLAIN).ends(0).out;
    castle.write("right.enc.yaml", &sealed);
    castle.write("changed.enc.yaml", &sealed.replace("known", "other"));
    let line = sealed.lines().find(|line| line.starts_with("GITHUB_TOKEN")).unwrap();
    castle.write("clear.enc.yaml", &sealed.replace(line, "GITHUB_TOKEN: hunter2"));
    castle.write("plain.enc.yaml", PLAIN);
    let verify = |words: &[&str], identity: &str| {
        with(&castle, &[&["secrets", "verify"], words].concat(), identity, "")
    };
    let said = verify(&["right.enc.yaml"], IDENTITY).ends(0);
    assert!(said.out.contains("right: the MAC fits, nothing is in clear; 2 keys"), "{}", said.out);
    let all =
        ["right.enc.yaml", "changed.enc.yaml", "clear.enc.yaml", "plain.enc.yaml", "none.yaml"];
    let said = verify(&all, IDENTITY).ends(1);
    let text = &said.out;
    assert!(text.contains("changed.enc.yaml: wrong: the MAC does not fit"), "{text}");
    assert!(text.contains("in clear: GITHUB_TOKEN"), "{text}");
    assert!(text.contains("plain.enc.yaml: wrong: its name says that it is encrypted"), "{text}");
    assert!(text.contains("none.yaml: wrong: there is no such file"), "{text}");
    assert!(!text.contains("hunter2") && !said.err.contains("hunter2"), "{text}");

    // Without an identity half of it can not be known, and that is not the same as right.
    let said = verify(&["right.enc.yaml"], "").ends(1);
    assert!(said.out.contains("the MAC was not checked: there is no age identity"), "{}", said.out);
    verify(&["--clear-only", "right.enc.yaml", "changed.enc.yaml"], "").ends(0);
    verify(&["--clear-only", "clear.enc.yaml"], "").ends(1);
    let json = verify(&["--json", "clear.enc.yaml"], IDENTITY).ends(1).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["in_clear"][0], "GITHUB_TOKEN");
}

#[test]
fn the_secrets_of_a_rehearsal_are_listed_checked_and_given() {
    let castle = Context::new();
    let list = castle.run(&["secrets", "list"]).ends(0).out;
    insta::assert_snapshot!(list, @"
    castle blue (a rehearsal): 5 keys from https://eu.infisical.com

    key                    used for       form   from
    AWS_ACCESS_KEY_ID      required       free   https://eu.infisical.com
    AWS_SECRET_ACCESS_KEY  required       free   https://eu.infisical.com
    GITHUB_TOKEN           Git token      token  https://eu.infisical.com
    PROXMOX_TOKEN_ID       Proxmox token  token  https://eu.infisical.com
    PROXMOX_TOKEN_SECRET   Proxmox token  token  https://eu.infisical.com

    kept of castle blue in https://eu.infisical.com, project tazlab, environment dev, path /ephemeral-castle/blue/proxmox

    key                   what           life
    TALOS_SECRETS_BUNDLE  Talos secrets  not kept
    KUBECONFIG_CONTENT    kubeconfig     not kept
    TALOSCONFIG_CONTENT   talosconfig    not kept
    ");
    castle.run(&["rehearse", "secrets", "check"]).ends(0);
    castle.run(&["up"]).ends(0);
    let escrow = castle.run(&["rehearse", "secrets", "escrow", "--json"]).ends(0).out;
    let escrow: serde_json::Value = serde_json::from_str(&escrow).unwrap();
    let entry = &escrow["entries"][0];
    assert_eq!((&entry["key"], &entry["state"]), (&"TALOS_SECRETS_BUNDLE".into(), &"ours".into()));

    assert!(entry["valid_until"].is_null(), "a bundle has no certificate of a client: {entry}");
    for (number, key) in [(1, "KUBECONFIG_CONTENT"), (2, "TALOSCONFIG_CONTENT")] {
        let entry = &escrow["entries"][number];
        assert_eq!((&entry["key"], &entry["state"]), (&key.into(), &"ours".into()));
        assert!(!entry["valid_until"].is_null(), "{entry}");
    }

    let token = castle.run(&["rehearse", "secrets", "get", "GITHUB_TOKEN"]).ends(0);
    assert!(!token.out.is_empty() && !token.out.ends_with('\n') && token.err.is_empty());
    // Whoever did not say that it is a rehearsal is told, beside the value.
    let plain = castle.run(&["secrets", "get", "GITHUB_TOKEN"]).ends(0);
    assert_eq!(plain.out, token.out);
    assert!(
        plain.err.contains("no castle.hcl here") && plain.err.contains("invented"),
        "{}",
        plain.err
    );
    let bundle = castle.run(&["secrets", "get", "TALOS_SECRETS_BUNDLE"]).ends(0).out;
    let life = entry["life"].as_str().unwrap();
    assert!(bundle.starts_with(&format!("# castle blue {life}\n")));
    let said = castle.run(&["secrets", "get", "GITHUB_TOKEN", "--out", "token"]).ends(0);
    assert_eq!((said.out.as_str(), file(&castle, "token")), ("", token.out.clone()));
    let mode = std::fs::metadata(castle.folder().join("token")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    castle.run(&["secrets", "get", "GITHUB_TOKEN", "--out", "token"]).ends(1);
    let said = castle.run(&["secrets", "get", "NOBODY_HAS_IT"]).ends(1);
    assert!(said.out.is_empty() && said.err.contains("no source has the key"), "{}", said.err);
    for words in [&["secrets", "list"][..], &["secrets", "list", "--json"], &["secrets", "escrow"]]
    {
        let said = castle.run(words).ends(0);
        assert!(!said.out.contains(&token.out), "{}", said.out);
    }
}

/// The castle `blue` with sources that need no server.
fn own_sources(castle: &Context) {
    let text = example("blue");
    let begin = text.find("  secrets \"infisical\"").unwrap();
    let end = begin + text[begin..].find("\n  }\n").unwrap() + 5;
    let sources = r#"  secrets "sops" { file = "blue.enc.yaml" }
  secrets "env" {
    prefix  = "CASTLE_"
    require = ["TLS_KEY", "NOTES"]
    shapes  = { TLS_KEY = "pem" }
  }
  escrow { file = "blue.escrow.enc.yaml" }
"#;
    castle.write("castle.hcl", &format!("{}{sources}{}", &text[..begin], &text[end..]));
}

#[test]
fn keys_come_from_the_first_source_that_has_them() {
    let castle = Context::new();
    own_sources(&castle);
    let ask = |words: &[&str], more: &[(&str, &str)]| {
        let mut command = castle.command(&[&["secrets"], words].concat());
        command.env("SOPS_AGE_KEY", IDENTITY).env("CASTLE_GITHUB_TOKEN", "of the environment");
        command.env("CASTLE_TLS_KEY", "hunter2").env("CASTLE_NOTES", " ");
        command.envs(more.iter().copied());
        Said::of(&command.output().unwrap())
    };
    // Nothing can be asked yet, and still the keys are told.
    let said = ask(&["list"], &[]).ends(1);
    assert!(said.out.contains("not asked"), "{}", said.out);
    assert!(said.err.contains("there is no such file"), "{}", said.err);

    let file = "GITHUB_TOKEN: \"'ghp_1'\"\nPROXMOX_TOKEN_ID: castle@pve!x\n";
    let words = ["secrets", "encrypt", "-", "--out", "blue.enc.yaml"];
    with(&castle, &words, IDENTITY, file).ends(0);
    let list = ask(&["list"], &[]).ends(0).out;
    insta::assert_snapshot!(list, @"
    castle blue: 5 keys from blue.enc.yaml, then the environment (CASTLE_*)

    key                   used for       form   from
    GITHUB_TOKEN          Git token      token  blue.enc.yaml
    NOTES                 required       free   empty
    PROXMOX_TOKEN_ID      Proxmox token  token  blue.enc.yaml
    PROXMOX_TOKEN_SECRET  Proxmox token  token  missing
    TLS_KEY               required       pem    wrong form

    wrong: the variable CASTLE_NOTES of the environment: it is empty
    missing: PROXMOX_TOKEN_SECRET in blue.enc.yaml, nor the variable CASTLE_PROXMOX_TOKEN_SECRET of the environment
    wrong: the variable CASTLE_TLS_KEY of the environment: it holds no PEM block: -----BEGIN …
    notice: GITHUB_TOKEN: the quotes around its value were left out

    kept of castle blue in blue.escrow.enc.yaml

    key                   what           life
    TALOS_SECRETS_BUNDLE  Talos secrets  not kept
    KUBECONFIG_CONTENT    kubeconfig     not kept
    TALOSCONFIG_CONTENT   talosconfig    not kept
    ");
    let check = ask(&["check"], &[]).ends(1);
    insta::assert_snapshot!(check.err, @"
    notice: GITHUB_TOKEN: the quotes around its value were left out
    error: can not read the secrets that the castle needs
      why: missing: PROXMOX_TOKEN_SECRET; not usable: NOTES, TLS_KEY
      where: PROXMOX_TOKEN_SECRET in blue.enc.yaml, nor the variable CASTLE_PROXMOX_TOKEN_SECRET of the environment: it is not there
      hint: add it
      where: the variable CASTLE_NOTES of the environment: it is empty
      hint: put it right there
      where: the variable CASTLE_TLS_KEY of the environment: it holds no PEM block: -----BEGIN …
      hint: put it right there
    ");
    assert!(check.out.is_empty(), "{}", check.out);

    // The first wins, as a run would use it.
    let said = ask(&["get", "GITHUB_TOKEN"], &[]).ends(0);
    assert_eq!(said.out, "ghp_1");
    assert!(said.err.contains("quotes"), "{}", said.err);
    assert_eq!(ask(&["get", "NOTES"], &[]).ends(0).out, " ");
    assert_eq!(ask(&["get", "ANY"], &[("CASTLE_ANY", "x\ny")]).ends(0).out, "x\ny");

    let pem = "-----BEGIN PRIVATE KEY-----\nMAo=\n-----END PRIVATE KEY-----\n";
    let more =
        [("CASTLE_PROXMOX_TOKEN_SECRET", "s"), ("CASTLE_NOTES", "n"), ("CASTLE_TLS_KEY", pem)];
    let said = ask(&["check"], &more).ends(0);
    assert!(said.out.contains("there and usable, from blue.enc.yaml, then"), "{}", said.out);
    let json = ask(&["check", "--json"], &[]).ends(1).out;
    let first = json.lines().next().unwrap();
    let json: serde_json::Value = serde_json::from_str(first).unwrap();
    let states: Vec<&str> =
        json["keys"].as_array().unwrap().iter().map(|key| key["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["found", "wrong", "found", "missing", "wrong"]);
    let escrow = ask(&["escrow"], &[]).ends(0).out;
    insta::assert_snapshot!(escrow, @"
    kept of castle blue in blue.escrow.enc.yaml

    key                   what           life
    TALOS_SECRETS_BUNDLE  Talos secrets  not kept
    KUBECONFIG_CONTENT    kubeconfig     not kept
    TALOSCONFIG_CONTENT   talosconfig    not kept

    can be written: yes
    afterwards: `down` removes the entries once the machines are gone
    ");
}

#[test]
fn a_check_meets_what_a_run_would_be_refused_for() {
    let castle = Context::new();
    let text = example("sops");
    let (before, rest) = text.split_once("  secrets \"sops\" {").unwrap();
    let (_, after) = rest.split_once("\n  }\n").unwrap();
    castle.write("castle.hcl", &format!("{before}{after}"));
    let ask = |act: &str, identity: Option<&str>| {
        let mut command = castle.command(&["secrets", act]);
        command.env("CASTLE_GITHUB_TOKEN", "ghp_x").env("CASTLE_PROXMOX_TOKEN", "a@b!c=0b2f");
        command.envs(identity.map(|identity| ("SOPS_AGE_KEY", identity)));
        Said::of(&command.output().unwrap())
    };
    ask("check", Some(IDENTITY)).ends(0);
    assert!(ask("escrow", Some(IDENTITY)).ends(0).out.contains("can be written: yes"));
    // All keys are there, but nobody could read what the castle makes.
    let said = ask("check", None).ends(1);
    assert!(said.err.contains("encrypt amber.escrow.enc.yaml"), "{}", said.err);
    assert!(said.err.contains("there is no age identity"), "{}", said.err);
    let said = ask("escrow", None).ends(0);
    assert!(said.out.contains("can be written: no: there is no age identity"), "{}", said.out);
    // A folder that is not there yet is made: here the datacenter of a castle that was never rehearsed.
    let said = castle.run(&["rehearse", "secrets", "escrow"]).ends(0);
    assert!(said.out.contains("can be written: yes"), "{}", said.out);
}
