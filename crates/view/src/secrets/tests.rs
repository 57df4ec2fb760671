//! What people read about secrets, as they read it.

use super::*;

fn key(name: &str, used_for: &str, form: Shape, state: KeyState) -> Key {
    Key { key: name.to_owned(), used_for: vec![used_for.to_owned()], form, state }
}

fn escrow(entries: Vec<Entry>) -> Escrow {
    Escrow {
        castle: "blue".parse().unwrap(),
        place: "blue.escrow.enc.yaml".to_owned(),
        writable: Writable::Yes,
        after_down: EscrowAfterDown::Remove,
        entries,
    }
}

fn entry(key: &str, what: &'static str, state: EntryState) -> Entry {
    Entry { key: key.to_owned(), what, state }
}

#[test]
fn keys_are_told_by_place_and_never_by_value() {
    let found = |from: &str| KeyState::Found { from: from.to_owned() };
    let place = "NOTES in the variable CASTLE_NOTES of the environment".to_owned();
    let why = "it is empty".to_owned();
    let wrong = KeyState::Wrong { from: "the environment (CASTLE_*)".to_owned(), place, why };
    let place = "PROXMOX_TOKEN_ID in blue.enc.yaml, nor the variable CASTLE_PROXMOX_TOKEN_ID of the environment".to_owned();
    let keys = Keys {
        castle: "blue".parse().unwrap(),
        rehearsal: false,
        sources: vec!["blue.enc.yaml".to_owned(), "the environment (CASTLE_*)".to_owned()],
        keys: vec![
            key("GITHUB_TOKEN", "Git token", Shape::Token, found("blue.enc.yaml")),
            key("NOTES", "required", Shape::Free, wrong),
            key("PROXMOX_TOKEN_ID", "Proxmox token", Shape::Token, KeyState::Missing { place }),
        ],
        notices: vec!["GITHUB_TOKEN: the quotes around its value were left out".to_owned()],
        escrow: Some(escrow(vec![entry(
            "TALOS_SECRETS_BUNDLE",
            "Talos secrets",
            EntryState::Absent,
        )])),
    };
    insta::assert_snapshot!(keys.text(Style::default()), @"
    castle blue: 3 keys from blue.enc.yaml, then the environment (CASTLE_*)

    key               used for       form   from
    GITHUB_TOKEN      Git token      token  blue.enc.yaml
    NOTES             required       free   empty
    PROXMOX_TOKEN_ID  Proxmox token  token  missing

    wrong: NOTES in the variable CASTLE_NOTES of the environment: it is empty
    missing: PROXMOX_TOKEN_ID in blue.enc.yaml, nor the variable
             CASTLE_PROXMOX_TOKEN_ID of the environment
    notice: GITHUB_TOKEN: the quotes around its value were left out

    kept of castle blue in blue.escrow.enc.yaml

    key                   what           life
    TALOS_SECRETS_BUNDLE  Talos secrets  not kept
    ");
    let narrow = Style { width: 60, ..Style::default() };
    let list = keys.text(narrow);
    insta::assert_snapshot!(list.lines().take(9).collect::<Vec<_>>().join("\n"), @"
    castle blue: 3 keys from blue.enc.yaml, then the environment
    (CASTLE_*)

    key               used for       form   from
    GITHUB_TOKEN      Git token      token  blue.enc.yaml
    NOTES             required       free   empty
    PROXMOX_TOKEN_ID  Proxmox token  token  missing

    wrong: NOTES in the variable CASTLE_NOTES of the
    ");
    let json = serde_json::to_value(&keys).unwrap();
    assert_eq!(json["keys"][1]["state"], "wrong");
    assert_eq!(json["keys"][1]["form"], "free");
}

#[test]
fn what_is_kept_is_told_with_its_life() {
    let life = Incarnation::from_bytes([7; 8]);
    let valid_until = Some(Moment(1_826_366_400_000));
    let mut escrow = escrow(vec![
        entry(
            "TALOS_SECRETS_BUNDLE",
            "Talos secrets",
            EntryState::Ours { life: life.clone(), valid_until: None },
        ),
        entry("KUBECONFIG_CONTENT", "kubeconfig", EntryState::Ours { life, valid_until }),
        entry(
            "TALOSCONFIG_CONTENT",
            "talosconfig",
            EntryState::Foreign { why: "it belongs to the castle `red`".to_owned() },
        ),
    ]);
    escrow.writable = Writable::No { why: "the folder may not be written".to_owned() };
    insta::assert_snapshot!(escrow.text(Style::default()), @"
    kept of castle blue in blue.escrow.enc.yaml

    key                   what           life              valid until
    TALOS_SECRETS_BUNDLE  Talos secrets  0707070707070707
    KUBECONFIG_CONTENT    kubeconfig     0707070707070707  2027-11-16
    TALOSCONFIG_CONTENT   talosconfig    not ours
    TALOSCONFIG_CONTENT: it belongs to the castle `red`

    can be written: no: the folder may not be written
    afterwards: `down` removes the entries once the machines are gone
    ");
}

#[test]
fn files_are_judged_in_one_line_each() {
    let mut right = Verified::new("a.enc.yaml".to_owned());
    right.keys = 2;
    right.recipients = vec!["age1xyz".to_owned()];
    right.mac = Mac::Right;
    let mut unsure = Verified { file: "b.enc.yaml".to_owned(), ..right.clone() };
    unsure.mac = Mac::Unknown { why: "there is no age identity".to_owned() };
    let mut clear = Verified { file: "c.enc.json".to_owned(), ..right.clone() };
    clear.in_clear = vec!["data.password".to_owned(), "a comment in data".to_owned()];
    let mut plain = Verified::new("d.enc.yaml".to_owned());
    plain.wrong = Some("this is not encrypted: it has no `sops` metadata".to_owned());
    plain.cure = Some("encrypt it".to_owned());
    let unasked = Verified { mac: Mac::NotAsked, ..right.clone() };
    let all = [&right, &unsure, &clear, &plain, &unasked];
    let text: String = all.iter().map(|file| file.text(Style::default())).collect();
    insta::assert_snapshot!(text, @"
    a.enc.yaml: right: the MAC fits, nothing is in clear; 2 keys, for age1xyz
    b.enc.yaml: nothing is in clear, but the MAC was not checked: there is no age
                identity
    c.enc.json: wrong: 2 places in clear that should be encrypted
      in clear: data.password
      in clear: a comment in data
      hint: encrypt them (sops edit), and change these secrets if the file was
            shared
    d.enc.yaml: wrong: this is not encrypted: it has no `sops` metadata
      hint: encrypt it
    a.enc.yaml: nothing is in clear (the MAC was not checked); 2 keys, for age1xyz
    ");
    assert_eq!(all.map(Verified::is_right), [true, false, false, false, true]);
}
