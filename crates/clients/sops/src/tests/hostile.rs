//! Files that nobody writes by accident: each a clear answer, soon, without falling over.

use super::{BY_3_11, identities};
use crate::{Format, Sealed, SopsError, Tree, limits, open_age};

fn refusal(text: &str, format: Format) -> String {
    match Tree::read(text, format) {
        Ok(_) => "read".to_owned(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_million_levels_are_refused_at_the_limit() {
    let million = 1_000_000;
    for text in [
        "[".repeat(million),
        "{a: ".repeat(million),
        "{".repeat(million),
        "- ".repeat(million),
        "? ".repeat(million),
    ] {
        let error = refusal(&format!("a:\n  {text}"), Format::Yaml);
        assert!(error.contains("nested deeper than 128") || error.contains("not text"), "{error}");
    }
    for (open, inner) in [("[", ""), ("{\"a\":", "")] {
        let text = format!("{{\"a\":{}{inner}", open.repeat(million));
        assert!(refusal(&text, Format::Json).contains("nested deeper than 128"));
    }
    // Levels of growing indentation cost a square of bytes, so these are few.
    let stairs: String =
        (0..200).fold(String::new(), |text, depth| text + &" ".repeat(depth) + "a:\n");
    assert!(refusal(&stairs, Format::Yaml).contains("nested deeper than 128"));
    let fits = format!("a: {}{}", "[".repeat(limits::DEPTH - 1), "]".repeat(limits::DEPTH - 1));
    assert_eq!(refusal(&fits, Format::Yaml), "read");
}

#[test]
fn bombs_do_not_go_off() {
    let bomb = "a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: [*b, *b, *b]\n";
    assert_eq!(refusal(bomb, Format::Yaml), "line 1: a YAML anchor");
    assert_eq!(
        refusal("a: *x\n", Format::Yaml),
        "line 1: not YAML: while parsing node, found unknown anchor"
    );
    let many = format!("a: [{}]", "1,".repeat(limits::NODES + 1));
    assert!(refusal(&many, Format::Yaml).contains("more than 200000 keys"));
    let many = format!("{{\"a\":[{}1]}}", "1,".repeat(limits::NODES + 1));
    assert!(refusal(&many, Format::Json).contains("more than 200000 keys"));
    let comments = "#\n".repeat(limits::NODES + 1) + "a: 1\n";
    assert!(refusal(&comments, Format::Yaml).contains("more than 200000 keys"));
    assert_eq!(
        refusal(&" ".repeat(limits::BYTES + 1), Format::Yaml),
        "the text is larger than 8 MiB"
    );
    assert_eq!(
        open_age(&vec![0; limits::BYTES + 1], &identities()).unwrap_err(),
        SopsError::TooLarge
    );
}

#[test]
fn a_hundred_thousand_comments_are_each_looked_at_once() {
    let comments = "# x\n".repeat(limits::NODES - 100);
    for rule in ["unencrypted_comment_regex: nothing", "encrypted_comment_regex: nothing"] {
        let file = BY_3_11.replacen("unencrypted_suffix: _unencrypted", rule, 1);
        let sealed = Sealed::read(&format!("{comments}{file}"), Format::Yaml).unwrap();
        // Sealed under another rule, so that it does not open; that is found out at once.
        assert!(sealed.open(&identities()).is_err());
        assert_eq!(sealed.in_clear().is_empty(), rule.starts_with("enc"));
    }
}

#[test]
fn what_sops_can_not_hold_is_refused_with_its_line() {
    for (text, why) in [
        ("- a\n", "line 1: a document that is a list"),
        ("just text\n", "line 1: a document that is a single value"),
        ("a: 1\n2: b\n", "line 2: a key that is not text"),
        ("? [a]\n: b\n", "line 1: a key that is not text"),
        ("a: 1\nb: 2\na: 3\n", "line 3: the key `a` stands twice in one mapping"),
        ("a: !custom x\n", "line 1: a YAML tag"),
        ("a: !!set {x}\n", "line 1: a YAML tag"),
        ("a: !!int x\n", "line 1: a value that does not fit its YAML tag"),
        ("a: 9999999999999999999\n", "line 1: an integer beyond 64 bits"),
        ("a: [1\n", "not YAML"),
        ("a: \"x\n", "not YAML"),
    ] {
        let error = refusal(text, Format::Yaml);
        assert!(error.contains(why), "{text}: {error}");
    }
    for (text, why) in [
        ("[1]", "JSON that is not an object"),
        ("{\"a\":1,\"a\":2}", "a key stands twice"),
        ("{\"a\":\"hunter2", "it ends too early"),
        ("{\"a\":hunter2}", "unexpected character"),
        ("{\"a\":1} hunter2", "unexpected character"),
    ] {
        let error = refusal(text, Format::Json);
        assert!(error.contains(why) && !error.contains("hunter2"), "{text}: {error}");
    }
}

#[test]
fn metadata_that_can_not_be_used_is_named() {
    let with = |from: &str, to: &str| {
        assert!(BY_3_11.contains(from), "{from}");
        let text = BY_3_11.replacen(from, to, 1);
        Sealed::read(&text, Format::Yaml)
            .and_then(|sealed| sealed.open(&identities()))
            .unwrap_err()
            .to_string()
    };
    let age =
        &BY_3_11[BY_3_11.find("    age:").unwrap()..BY_3_11.find("    lastmodified").unwrap()];
    let key = |name: &str| format!("    {name}:\n        - enc: x\n");
    for (from, to, why) in [
        (age, String::new(), "sops.age: missing: the file names no recipient"),
        (
            age,
            key("pgp") + &key("kms"),
            "the file is encrypted with pgp, kms, which castle does not open",
        ),
        (age, key("hc_vault"), "the file is encrypted with hc_vault, which castle does not open"),
        (
            age,
            key("key_groups"),
            "the file is encrypted with key groups (shamir), which castle does not open",
        ),
        (
            "    mac: ",
            "    nomac: ".to_owned(),
            "sops.mac: missing: nothing tells whether the file was changed",
        ),
        ("    version: ", "    novers: ".to_owned(), "sops.version: missing"),
        (
            "lastmodified: \"2026",
            "lastmodified: \"soon".to_owned(),
            "sops.lastmodified: not a moment",
        ),
        (
            "lastmodified: \"2026",
            "lastmodified: \"2025".to_owned(),
            "sops.mac: damaged, moved from elsewhere, or encrypted with another key",
        ),
        (
            "    unencrypted_suffix: _unencrypted",
            "    encrypted_regex: \"(\"".to_owned(),
            "sops.encrypted_regex: not a regular expression, or too large a one",
        ),
        (
            "    unencrypted_suffix",
            "    encrypted_suffix: x\n    unencrypted_suffix".to_owned(),
            "sops.encrypted_regex: only one rule of encrypted or unencrypted suffix, regex or comment_regex may stand in a file",
        ),
        (
            "    unencrypted_suffix",
            "    mac_only_encrypted: maybe\n    unencrypted_suffix".to_owned(),
            "sops.mac_only_encrypted: neither true nor false",
        ),
        (
            "    unencrypted_suffix",
            "    mac_only_encrypted: true\n    unencrypted_suffix".to_owned(),
            "the MAC does not fit: values were changed, added, removed or moved after sealing",
        ),
        (
            "AGE ENCRYPTED FILE",
            "AGE DECRYPTED FILE".to_owned(),
            "can not be read: its header is damaged",
        ),
    ] {
        let error = with(from, &to);
        assert!(error.contains(why), "{why}: {error}");
    }
    let cut = &BY_3_11[..BY_3_11.len() / 2];
    assert_eq!(Sealed::read(cut, Format::Yaml).unwrap_err(), SopsError::NotSealed);
}
