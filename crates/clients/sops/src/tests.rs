//! What the room promises: files of real sops open, ours are whole, nothing slips through, nothing is shown.

mod hostile;
mod laws;

use std::path::Path;

use castle_model::time::Moment;
use castle_model::{Class, Secret};

use crate::{
    Format, Identities, Pattern, Recipients, Rules, Sealed, Selection, SopsError, Tree, in_clear,
    open_age, seal, seal_age, verify,
};

/// Made for these tests by age-keygen; it opens the fixtures beside this file.
pub(super) const KEY: &str =
    "AGE-SECRET-KEY-1LF52EEJJ8P6CURX8Z0K7ZLE4U77SYEAFHA2WCYKQWKPPPNLC4H5Q452XUQ";
const RECIPIENT: &str = "age1rjg3y57mnjy0cw2nzaak60fylnqnxfqppd0mkt77v7v2jwewu3mspjmhqs";
/// Somebody else's.
const OTHER: &str = "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33";

const BY_3_11: &str = include_str!("tests/sops-3.11.0.enc.yaml");
const BY_3_13: &str = include_str!("tests/sops-3.13.3.enc.yaml");
const PLAIN: &str = include_str!("tests/plain.yaml");
/// What sops 3.11.0 itself makes of both.
const OPENED: &str = include_str!("tests/opened.yaml");

pub(super) const NOW: Moment = Moment(1_770_033_599_999);

pub(super) fn identities() -> Identities {
    Identities::parse(&Secret::new(KEY)).unwrap()
}

/// Bytes that differ from call to call, and from test to test not at all.
pub(super) fn filler() -> impl FnMut(&mut [u8]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    move |buffer| {
        for byte in buffer {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state.to_le_bytes()[3];
        }
    }
}

pub(super) fn sealed(text: &str, format: Format, rules: &Rules) -> String {
    let tree = Tree::read(text, format).unwrap();
    seal(&tree, format, &identities().recipients(), rules, NOW, &mut filler()).unwrap()
}

fn yaml(text: &str) -> String {
    sealed(text, Format::Yaml, &Rules::default())
}

fn opened(text: &str) -> Result<String, SopsError> {
    let tree = Sealed::read(text, Format::Yaml)?.open(&identities())?;
    Ok(tree.to_text(Format::Yaml)?.expose().to_owned())
}

#[test]
fn files_of_real_sops_open_as_it_opens_them() {
    for (file, version) in [(BY_3_11, "3.11.0"), (BY_3_13, "3.13.3")] {
        assert_eq!(opened(file).unwrap(), OPENED, "{version}");
        let sealed = Sealed::read(file, Format::Yaml).unwrap();
        assert_eq!(sealed.version().unwrap().expose(), version);
        assert_eq!(sealed.recipients().collect::<Vec<_>>(), [RECIPIENT]);
        assert!(sealed.last_modified().starts_with("2026-11-16T"));
        assert!(verify(file, Format::Yaml, &identities()).is_ok());
    }
}

#[test]
fn what_is_sealed_here_opens_the_same() {
    assert_eq!(opened(&yaml(PLAIN)).unwrap(), OPENED);
}

#[test]
fn values_are_found_by_path_and_key() {
    let tree = Sealed::read(BY_3_11, Format::Yaml).unwrap().open(&identities()).unwrap();
    let text = |path: &[&str]| tree.text(path).map(|secret| secret.expose().to_owned());
    assert_eq!(tree.secret("token").unwrap().expose(), "hunter2");
    assert_eq!(text(&["nested", "host"]).unwrap(), "pve.lan");
    assert_eq!(text(&["nested", "port_unencrypted"]).unwrap(), "8006");
    assert_eq!(text(&["octal"]).unwrap(), "8");
    assert_eq!(text(&["since"]).unwrap(), "2024-02-29T00:00:00Z");
    assert_eq!(text(&["empty"]).unwrap(), "");
    for path in
        [&["nothing"][..], &["list"], &["nested"], &["blob"], &["absent"], &["token", "x"], &[]]
    {
        assert_eq!(text(path), None, "{path:?}");
    }
    assert_eq!(tree.keys().take(3).collect::<Vec<_>>(), ["token", "empty", "nothing"]);
    assert_eq!(tree.value(&["blob"]).unwrap().kind(), "bytes");
}

#[test]
fn a_flat_tree_is_made_changed_and_shrunk() {
    let mut tree = Tree::flat([
        ("A".to_owned(), Secret::new("1")),
        ("B".to_owned(), Secret::new("two\nlines\n")),
    ]);
    tree.set("A", Secret::new("one"));
    tree.set("C", Secret::new("3"));
    assert!(tree.remove("B"));
    assert!(!tree.remove("B"));
    assert_eq!(tree.to_text(Format::Yaml).unwrap().expose(), "A: one\nC: \"3\"\n");
}

#[test]
fn a_change_leaves_the_other_ciphertexts_alone() {
    let before = Sealed::read(BY_3_11, Format::Yaml).unwrap();
    let mut tree = before.open(&identities()).unwrap();
    tree.set("token", Secret::new("hunter3"));
    let after = before.reseal(&tree, &identities(), NOW, &mut filler()).unwrap();
    assert_eq!(opened(&after).unwrap(), OPENED.replace("hunter2", "hunter3"));
    let lines: Vec<&str> =
        BY_3_11.lines().filter(|line| line.contains("ENC[")).map(str::trim).collect();
    let gone: Vec<&str> = lines
        .iter()
        .filter(|line| !after.contains(*line))
        .map(|line| line.split(':').next().unwrap())
        .collect();
    assert_eq!(gone, ["token", "mac"]);
    // Who may open it has not changed either.
    let armor = BY_3_11.lines().filter(|line| line.starts_with("            ")).map(str::trim);
    assert!(armor.clone().count() > 4);
    for line in armor {
        assert!(after.contains(line));
    }
}

#[test]
fn keys_of_others_stay_in_a_changed_file() {
    let kms = "    kms:\n        - arn: arn:aws:kms:1\n          created_at: \"2024-01-01T00:00:00Z\"\n          enc: AAAA\n";
    let mixed = BY_3_11.replace("sops:\n", &format!("sops:\n{kms}"));
    let sealed = Sealed::read(&mixed, Format::Yaml).unwrap();
    let tree = sealed.open(&identities()).unwrap();
    let after = sealed.reseal(&tree, &identities(), NOW, &mut filler()).unwrap();
    assert!(after.contains(kms), "{after}");
}

#[test]
fn several_documents_are_one_file() {
    let text = "a: 1\n---\nb: x # two\n---\nc: {} # three\n";
    let file = yaml(text);
    assert_eq!(file.matches("\nsops:\n").count(), 3);
    assert_eq!(opened(&file).unwrap(), "a: 1\n---\n# two\nb: x\n---\n# three\nc: {}\n");
    let tree = Sealed::read(&file, Format::Yaml).unwrap().open(&identities()).unwrap();
    assert_eq!(tree.secret("b").unwrap().expose(), "x");
    assert_eq!(tree.documents(), 3);
    let error = seal(
        &tree,
        Format::Json,
        &identities().recipients(),
        &Rules::default(),
        NOW,
        &mut filler(),
    );
    assert!(error.unwrap_err().to_string().contains("JSON holds one document"));
}

#[test]
fn json_keeps_order_and_types() {
    let text = "{\"z\":\"x\",\"a\":[1,2.5,true,null,{\"k\":\"v\"}],\"big\":12345678901234567890,\"p_unencrypted\":7,\"e\":{}}";
    let file = sealed(text, Format::Json, &Rules::default());
    let tree = Sealed::read(&file, Format::Json).unwrap().open(&identities()).unwrap();
    let plain = tree
        .to_text(Format::Json)
        .unwrap()
        .expose()
        .replace(['\n', '\t'], "")
        .replace("\": ", "\":");
    assert_eq!(plain, text.replace("12345678901234567890", "12345678901234567000"));
    assert!(file.contains("\"p_unencrypted\": 7"));
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

#[test]
fn each_rule_chooses_what_is_encrypted() {
    let text = "# open: yes\nkey: value1\nkey_plain:\n    deep: value2\ndata:\n    pw: value3\nlist:\n    # secret below\n    - value4\n    - value5\n";
    let rules: [(Selection, &[&str]); 6] = [
        (Selection::UnencryptedSuffix("_plain".to_owned()), &["value2"]),
        (
            Selection::EncryptedSuffix("_plain".to_owned()),
            &["value1", "value3", "value4", "value5"],
        ),
        (Selection::UnencryptedRegex(pattern("^da|list")), &["value3", "value4", "value5"]),
        (
            Selection::EncryptedRegex(pattern("^(data|stringData)$")),
            &["value1", "value2", "value4", "value5"],
        ),
        (Selection::UnencryptedCommentRegex(pattern("open")), &["value1"]),
        (
            Selection::EncryptedCommentRegex(pattern("secret")),
            &["value1", "value2", "value3", "value5"],
        ),
    ];
    for (selection, clear) in rules {
        for mac_only_encrypted in [false, true] {
            let name = format!("{selection:?} {mac_only_encrypted}");
            let rules = Rules { selection: selection.clone(), mac_only_encrypted };
            let file = sealed(text, Format::Yaml, &rules);
            let seen: Vec<&str> = ["value1", "value2", "value3", "value4", "value5"]
                .into_iter()
                .filter(|value| file.contains(value))
                .collect();
            assert_eq!(seen, clear, "{name}\n{file}");
            assert_eq!(opened(&file).unwrap(), text, "{name}");
            assert!(verify(&file, Format::Yaml, &identities()).is_ok(), "{name}");
            // What is in clear belongs to the MAC, unless the rules say otherwise.
            let edited = opened(&file.replacen(clear[0], "value9", 1));
            if mac_only_encrypted {
                assert!(edited.unwrap().contains("value9"), "{name}");
            } else {
                assert_eq!(edited.unwrap_err(), SopsError::Mac, "{name}");
            }
        }
    }
}

#[test]
fn recipients_are_derived_and_private_keys_refused() {
    let derived = identities().recipients();
    assert_eq!(derived.texts().collect::<Vec<_>>(), [RECIPIENT]);
    let both = Recipients::parse(&format!("# ours\n{RECIPIENT}, {RECIPIENT}\n")).unwrap();
    assert_eq!(both.texts().count(), 1);
    for list in
        [KEY.to_owned(), format!("{RECIPIENT},{KEY}"), KEY.to_lowercase(), format!("x{KEY}")]
    {
        let error = Recipients::parse(&list).unwrap_err();
        let words = format!("{error} {error:?} {}", error.cure());
        assert!(
            words.contains("AGE-SECRET-KEY- is the private identity, not a recipient"),
            "{words}"
        );
        assert!(!words.to_uppercase().contains("1LF52E"), "{words}");
    }
    for (list, why) in [
        ("", "no recipient"),
        ("hello", "recipient 1: not an age recipient"),
        ("age1hello", "damaged, cut off, or of an age plugin"),
        ("age1pq1xyz", "post-quantum"),
        ("ssh-ed25519 AAAA", "ssh public key that age can not use"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----", "a private key"),
    ] {
        let error = Recipients::parse(list).unwrap_err().to_string();
        assert!(error.contains(why), "{list}: {error}");
    }
}

#[test]
fn identities_are_read_from_files_and_never_told() {
    let file = format!("# created: 2026\n# public key: {RECIPIENT}\n\n{KEY}\r\n{OTHER}\n");
    let both = Identities::parse(&Secret::new(file)).unwrap();
    assert_eq!(both.recipients().texts().count(), 2);
    assert_eq!(format!("{both:?}"), "Identities(2)");
    for (text, why) in [
        ("# nothing", "no age identity"),
        ("AGE-SECRET-KEY-1CUT", "line 1: an age identity that is damaged or cut off"),
        ("\nAGE-SECRET-KEY-PQ-1XYZ", "line 2: a post-quantum identity"),
        ("AGE-PLUGIN-YUBIKEY-1XYZ", "an identity of an age plugin"),
        (RECIPIENT, "a recipient (public)"),
        ("hunter2", "not an age identity"),
        ("-----BEGIN AGE ENCRYPTED FILE-----\n", "encrypted with a passphrase"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n", "not a private key that age can use"),
    ] {
        let error = Identities::parse(&Secret::new(text)).unwrap_err();
        let words = format!("{error} {error:?} {}", error.cure());
        assert!(words.contains(why), "{text}: {words}");
        assert!(!words.contains("hunter2"), "{words}");
    }
}

#[test]
fn somebody_elses_identity_is_told_who_could_open_it() {
    let other = Identities::parse(&Secret::new(OTHER)).unwrap();
    let error = Sealed::read(BY_3_11, Format::Yaml).unwrap().open(&other).unwrap_err();
    assert_eq!(error.class(), Class::Denied);
    insta::assert_snapshot!(format!("{error}\n{}", error.cure()), @r"
    none of age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa opens this file; it is encrypted for age1rjg3y57mnjy0cw2nzaak60fylnqnxfqppd0mkt77v7v2jwewu3mspjmhqs
    give the right identity (SOPS_AGE_KEY, SOPS_AGE_KEY_FILE or sops/age/keys.txt), or let somebody who has one add yours as a recipient
    ");
    let none =
        Sealed::read(BY_3_11, Format::Yaml).unwrap().open(&Identities::default()).unwrap_err();
    assert_eq!(none, SopsError::NoIdentities);
}

#[test]
fn plain_age_files_open_with_keys_and_passphrases() {
    let file = seal_age(b"whole", &identities().recipients()).unwrap();
    assert_eq!(&**open_age(file.as_bytes(), &identities()).unwrap(), b"whole");
    let error = open_age(file.as_bytes(), &Identities::passphrase(&Secret::new("x"))).unwrap_err();
    assert_eq!(error.to_string(), "the age file can not be opened: no identity fits");
    let cut = &file[..file.len() - 40];
    assert_eq!(
        open_age(cut.as_bytes(), &identities()).unwrap_err().to_string(),
        "the age file can not be opened: its armor is damaged"
    );
    assert_eq!(seal_age(b"", &Recipients::default()).unwrap_err(), SopsError::NoRecipients);
}

#[test]
fn nothing_is_shown_by_debug() {
    let sealed = Sealed::read(BY_3_11, Format::Yaml).unwrap();
    let tree = sealed.open(&identities()).unwrap();
    let shown =
        format!("{tree:?} {sealed:?} {:?} {:?}", tree.value(&["nested"]), tree.value(&["token"]));
    for value in ["hunter2", "pve.lan", "8006", "alpha", "1LF52E"] {
        assert!(!shown.contains(value), "{shown}");
    }
}

#[test]
fn a_plain_file_at_an_encrypted_path_is_told() {
    assert_eq!(Format::of_path(Path::new("a.enc.yaml")).unwrap(), Format::Yaml);
    for (text, format) in
        [(PLAIN, Format::Yaml), ("{\"a\":\"hunter2\"}", Format::Json), ("", Format::Yaml)]
    {
        let error = in_clear(text, format).unwrap_err();
        assert_eq!(error, SopsError::NotSealed);
        assert!(error.cure().contains("castle secrets encrypt"));
    }
    let again = Tree::read(&yaml(PLAIN), Format::Yaml).unwrap();
    let error = seal(
        &again,
        Format::Yaml,
        &identities().recipients(),
        &Rules::default(),
        NOW,
        &mut filler(),
    );
    assert_eq!(error.unwrap_err(), SopsError::AlreadySealed);
}

#[test]
fn what_stands_in_clear_is_named_and_not_shown() {
    let file = yaml("a: hunter2\nb:\n    c:\n        - x\n        - y\nd_unencrypted: 1\n");
    assert_eq!(in_clear(&file, Format::Yaml).unwrap(), Vec::<String>::new());
    let tampered = format!("# pw is hunter2\nnew: hunter2\nports:\n    - 80\n{file}");
    let places = in_clear(&tampered, Format::Yaml).unwrap();
    assert_eq!(places, ["the top (a comment)", "new", "ports[0]"]);
    let error = verify(&tampered, Format::Yaml, &identities()).unwrap_err();
    insta::assert_snapshot!(error, @"in clear, and should be encrypted: the top (a comment), new, ports[0]");
    // A comment alone does not keep the file from being opened: sops opens it too.
    let noted = format!("# a note\n{file}");
    assert!(Sealed::read(&noted, Format::Yaml).unwrap().open(&identities()).is_ok());
}
