//! The search for canaries can fail: each form is leaked on purpose, written by somebody else's code, and found.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::children::{self, Seen};
use super::inflate::unpacked;
use super::plant::Dice;
use super::search::Search;
use crate::context::Context;

/// Streams that zlib made: with fixed codes, with a file name, without the header of gzip, with codes of its own.
const FIXED: &str = "H4sIAAAAAAACAyvOzEvXUShGIpMT8xKLKgHdKB1rGAAAAA==";
const NAMED: &str = "H4sICAAAAAAC/25hbWUAK87MS9dRKEYikxPzEosqAd0oHWsYAAAA";
const ZLIB: &str = "eJwrzsxL11EoRiKTE/MSiyoBaIcIdg==";
const DYNAMIC: &str = "H4sIAAAAAAACAx1SKxYEMQi7Clfh4StwlRERmFY093+bWdUOhZDPFIuFpQQ7uvmGaC0B8VR5e6celxqarcM4m0w2jjtn6Dm+5xZp62Hk75YGhyJc48IDsBV8LgzpB18O3vNJ76o6bnjcAyLE0+OWBFRbc1yZgpKZrz3puz7YwSsGMTOX3GG0xcVb+jYv75HZFFdNIwsesaw0UF8OFPXEpq5RJ8zScy1YmnYiGGpujtUdW5LHZBNl/m0LPn2G37rBI4Xlc/frUEWgr9bymHnQ4o+P891NAacUfrBP59l4GsQ3Myux7qq4sKn2LG3L4j8LZ+J17QDkpNY1L3026io/BAfhFpPzc/7NMU0acNuQ5N6Ok+l1LqZZ8PMQsbBzm1cgLzZsSjmCjTRbzfoY3ad27CgbR8stOQTM5xouw79HONkVqTtjG7gt8a75AZw4PGpYAgAA";

/// A gzip stream that holds a text as it is.
pub(super) fn stored(text: &[u8]) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let head = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    [&head[..], &length.to_le_bytes(), &(!length).to_le_bytes(), text, &[0; 8]].concat()
}

/// How a program would let a secret slip, each way by its name.
fn leaks(secret: &str) -> Vec<(String, Vec<u8>)> {
    let mut leaks = vec![
        ("raw".to_owned(), format!("key={secret} and more").into_bytes()),
        ("hex".to_owned(), hex::encode(format!("ab{secret}")).into_bytes()),
        ("hex, upper case".to_owned(), hex::encode_upper(secret).into_bytes()),
        ("JSON".to_owned(), json!({"data": {"key": secret}}).to_string().into_bytes()),
        (
            "JSON in JSON".to_owned(),
            json!(json!({"k": secret}).to_string()).to_string().into_bytes(),
        ),
        ("Debug".to_owned(), format!("{:?}", Some(secret)).into_bytes()),
        ("YAML".to_owned(), format!("a: |\n    {}\n", secret.replace('\n', "\n    ")).into_bytes()),
        ("gzip".to_owned(), [b"before".to_vec(), stored(secret.as_bytes())].concat()),
        ("gzip in gzip".to_owned(), stored(&stored(secret.as_bytes()))),
        ("gzip in base64".to_owned(), STANDARD.encode(stored(secret.as_bytes())).into_bytes()),
        ("base64 in gzip".to_owned(), stored(STANDARD.encode(format!("-{secret}")).as_bytes())),
    ];
    let escaped = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    leaks.push(("URL, lower case".to_owned(), lower(&escaped).into_bytes()));
    // This coder escapes even what needs no escape, which no other does.
    if !secret.contains(['-', '_', '.', '~']) {
        leaks.push(("URL".to_owned(), format!("https://a/?b={escaped}&c").into_bytes()));
    }
    for before in ["", "a", "ab"] {
        let text = format!("{before}{secret} after");
        let phase = before.len();
        leaks.push((format!("base64 after {phase}"), STANDARD.encode(&text).into_bytes()));
        leaks
            .push((format!("base64url after {phase}"), URL_SAFE_NO_PAD.encode(&text).into_bytes()));
        let twice = STANDARD.encode(STANDARD.encode(&text));
        let lines: Vec<&[u8]> = twice.as_bytes().chunks(76).collect();
        leaks.push((format!("base64 twice after {phase}, in lines"), lines.join(&b"\r\n"[..])));
    }
    leaks
}

/// The same with the digits of its escapes in lower case.
fn lower(escaped: &str) -> String {
    let mut parts = escaped.split('%');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let (digits, rest) = part.split_at(2);
        format!("{text}%{}{rest}", digits.to_lowercase())
    })
}

#[test]
fn each_form_of_a_leak_is_found() {
    let mut dice = Dice::thrown();
    let seed = dice.seed();
    let home = Context::new();
    for shape in 0..9 {
        let secret = dice.secret(shape);
        let search =
            Search::new(&BTreeMap::from([("canary".to_owned(), secret.clone().into_bytes())]));
        for (name, bytes) in leaks(&secret) {
            let path = home.folder().join("leak");
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(
                search.hits_below(home.folder(), std::slice::from_ref(&path)),
                [].into(),
                "seed {seed}"
            );
            let hits = search.hits_below(home.folder(), &[]);
            assert!(!hits.is_empty(), "shape {shape}, {name}, seed {seed}: {secret:?}");
        }
        // Another secret of the same shape is not taken for it.
        let other = dice.secret(shape);
        for (name, bytes) in leaks(&other) {
            assert_eq!(search.hits(&name, &bytes), [].into(), "shape {shape}, seed {seed}");
        }
    }
}

#[test]
fn children_and_what_they_are_given_are_seen() {
    let secret = Dice::thrown().secret(1);
    let search = Search::new(&BTreeMap::from([("canary".to_owned(), secret.clone().into_bytes())]));
    for in_environment in [true, false] {
        let mut child = Command::new("cat");
        if in_environment {
            child.env("KEY", &secret)
        } else {
            child.args(["-", &secret])
        };
        let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        // Once it answers, it is what it was started as.
        child.stdin.as_mut().unwrap().write_all(b".").unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let mut seen = Seen::new();
        children::look(std::process::id(), &mut seen);
        child.kill().unwrap();
        child.wait().unwrap();
        let hits: Vec<_> =
            seen.iter().filter(|(_, bytes)| !search.hits("", bytes).is_empty()).collect();
        let what = if in_environment { "environ" } else { "cmdline" };
        assert!(hits.iter().any(|((process, kind), _)| (*process, *kind) == (child.id(), what)));
    }
}

#[test]
fn packed_streams_are_read() {
    let read = |code: &str| unpacked(&STANDARD.decode(code).unwrap());
    let plain = b"sing, sing, sing, canary".to_vec();
    for code in [FIXED, NAMED, ZLIB] {
        assert_eq!(read(code), Some(plain.clone()), "{code}");
    }
    // A text that is worth codes of its own.
    let mut x = 1;
    let long: Vec<u8> = (0..600)
        .map(|_| {
            x = (x * 75 + 74) % 65537;
            b"aaaaeeeeettt oinsCANRY"[x % 22]
        })
        .collect();
    assert_eq!(read(DYNAMIC), Some(long.clone()));
    // As far as it goes.
    let cut = read(&DYNAMIC[..DYNAMIC.len() / 8 * 4]).unwrap();
    assert!(cut.len() > 30 && long.starts_with(&cut));
    assert_eq!(unpacked(b"plain text"), None);
}
