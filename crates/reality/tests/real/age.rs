//! The real age and its published vectors: each age file is opened, or refused for its reason.

use std::collections::BTreeMap;
use std::fs;

use castle_model::Secret;
use castle_reality::{Real, run};
use castle_sops::{AgeFault, Identities, Recipients, SopsError, open_age, seal_age};
use sha2::{Digest as _, Sha256};

use crate::setting::{SOON, folder, with, write};
use crate::sops::{KEY, SSH_KEY, SSH_RECIPIENT};

/// Vectors whose answer differs from the published one. All but two are refused too, for another reason.
const OTHERWISE: &[(&str, &str)] = &[
    // What does not begin as armor does is taken for a binary file, and refused as one.
    ("armor_garbage_leading", "armor failure -> header failure"),
    ("armor_lowercase", "armor failure -> header failure"),
    ("armor_whitespace_begin", "armor failure -> header failure"),
    ("armor_wrong_type", "armor failure -> header failure"),
    // Our limit is lower, and told as such.
    ("scrypt_work_factor_23", "header failure -> too much work"),
    // The age crate still opens files of an old rage, which left the empty last line of a stanza away. The header's MAC
    // is checked all the same, so nobody without the key can have made such a file.
    ("stanza_missing_body", "header failure -> opened"),
    ("stanza_missing_final_line", "header failure -> opened"),
];

/// A vector: what its header says.
struct Vector {
    fields: BTreeMap<String, Vec<String>>,
    file: Vec<u8>,
}

impl Vector {
    fn all(&self, field: &str) -> &[String] {
        self.fields.get(field).map_or(&[], Vec::as_slice)
    }

    fn one(&self, field: &str) -> &str {
        self.all(field).first().map_or("", String::as_str)
    }

    fn identities(&self) -> Identities {
        let mut identities = Identities::default();
        for text in self.all("identity") {
            identities.add(Identities::parse(&Secret::new(text.as_str())).unwrap());
        }
        for text in self.all("passphrase") {
            identities.add(Identities::passphrase(&Secret::new(text.as_str())));
        }
        identities
    }

    /// What happened, in the words of the vectors.
    fn answer(&self) -> &'static str {
        let fault = match open_age(&self.file, &self.identities()) {
            Ok(plain) => {
                // A vector that must fail names no payload.
                let fits = hex::encode(Sha256::digest(&*plain)) == self.one("payload");
                return if fits { "success" } else { "opened" };
            }
            Err(SopsError::AgeFile { why }) => why,
            Err(error) => panic!("{error}"),
        };
        match fault {
            AgeFault::Header | AgeFault::Format => "header failure",
            AgeFault::HeaderMac => "HMAC failure",
            AgeFault::Armor => "armor failure",
            AgeFault::Body => "payload failure",
            AgeFault::NoMatch => "no match",
            AgeFault::Work => "too much work",
            _ => "unknown",
        }
    }
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn the_published_vectors_are_answered_as_published() {
    let Some(real) = Real::find("agevectors") else { return };
    let place = folder();
    let told = run(with(real.program(), &[place.path().to_str().unwrap()]), SOON).await;
    assert_eq!(told.expect_success(), "");
    let mut names: Vec<String> = fs::read_dir(place.path())
        .unwrap()
        .filter_map(|entry| {
            entry.unwrap().file_name().to_str()?.strip_suffix(".age").map(str::to_owned)
        })
        .collect();
    names.sort();
    assert_eq!(names.len(), 114);
    let mut different = Vec::new();
    for name in names {
        let header = fs::read_to_string(place.path().join(format!("{name}.header"))).unwrap();
        let file = fs::read(place.path().join(format!("{name}.age"))).unwrap();
        let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in header.lines() {
            let (field, value) = line.split_once(": ").unwrap();
            fields.entry(field.to_owned()).or_default().push(value.to_owned());
        }
        let vector = Vector { fields, file };
        let (expected, answer) = (vector.one("expect"), vector.answer());
        if answer != expected {
            different.push((name, format!("{expected} -> {answer}")));
        }
    }
    let listed: Vec<(String, String)> =
        OTHERWISE.iter().map(|(name, answer)| ((*name).to_owned(), (*answer).to_owned())).collect();
    assert_eq!(different, listed);
}

#[tokio::test(flavor = "current_thread")]
#[ignore = "needs real components: cargo xtask test"]
async fn age_files_open_both_ways() {
    let Some(real) = Real::find("age") else { return };
    let place = folder();
    let path = |name: &str| place.path().join(name).display().to_string();
    let plain = "whole\nand more\n".repeat(9_000);
    write(place.path(), "plain", &plain);
    for (key, recipient) in [(KEY, None), (SSH_KEY, Some(SSH_RECIPIENT))] {
        write(place.path(), "key", key);
        let identities = Identities::parse(&Secret::new(key)).unwrap();
        let ours = identities.recipients();
        // They derive the recipient from the identity too, or take the one that ssh-keygen wrote.
        let mut words = vec!["-e".to_owned()];
        words.extend(match recipient {
            Some(recipient) => ["-r".to_owned(), recipient.to_owned()],
            None => ["-i".to_owned(), path("key")],
        });
        for armor in [true, false] {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            words.extend(armor.then_some("-a"));
            let (from, to) = (path("plain"), path("theirs"));
            words.extend(["-o", &to, &from]);
            assert_eq!(run(with(real.program(), &words), SOON).await.expect_success(), "");
            let theirs = fs::read(&to).unwrap();
            assert_eq!(theirs.starts_with(b"-----BEGIN AGE"), armor);
            assert_eq!(open_age(&theirs, &identities).unwrap().as_slice(), plain.as_bytes());
        }
        let text = ours.texts().collect::<Vec<_>>().join(",");
        for recipients in [ours, Recipients::parse(&text).unwrap()] {
            write(place.path(), "ours", &seal_age(plain.as_bytes(), &recipients).unwrap());
            let words = ["-d", "-i", &path("key"), &path("ours")];
            assert_eq!(run(with(real.program(), &words), SOON).await.expect_success(), plain);
        }
    }
}
