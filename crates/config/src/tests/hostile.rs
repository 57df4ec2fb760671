//! Files that nobody would write: nothing may crash, hang or grow.

use std::time::Duration;

use proptest::prelude::*;

use super::{read, render, sources};
use crate::limits::{MAX_BYTES, MAX_FINDINGS};
use crate::{EXAMPLE, Sources, to_json_lines, wanted_files};

/// Reads, shows and prints whatever it is given; the answer is a finding or a spec, and never both an error and a spec.
fn survive(text: &[u8]) -> Vec<&'static str> {
    let sources = Sources { text: text.to_vec(), ..sources("") };
    let read = read(&sources);
    let errors = read.findings.iter().filter(|f| f.severity == crate::Severity::Error).count();
    assert_eq!(read.spec.is_some(), errors == 0);
    assert!(read.findings.iter().all(|f| f.code != "C0000"), "{:?}", read.findings);
    assert!(read.findings.len() <= MAX_FINDINGS + 1);
    for finding in &read.findings {
        if let Some(place) = finding.place {
            assert!(
                place.start <= place.end
                    && place.end <= text.len()
                    && place.line > 0
                    && place.column > 0
            );
        }
    }
    let shown = render(&read.findings, &sources, false, 100);
    assert!(shown.ends_with('\n') && shown.len() < 4096 * (read.findings.len() + 1));
    assert!(!shown.contains(|c: char| c.is_control() && c != '\n'), "{shown:?}");
    assert_eq!(to_json_lines(&read.findings).lines().count(), read.findings.len());
    assert!(wanted_files(text).iter().all(|path| !path.starts_with('/')));
    read.findings.iter().map(|f| f.code).collect()
}

/// A value of this many copies of `open`, then of `close`.
fn nest(open: &str, close: &str, depth: usize) -> String {
    format!("castle \"a\" {{\n  talos = {}1{}\n}}\n", open.repeat(depth), close.repeat(depth))
}

const NESTS: [(&str, &str); 16] = [
    ("[", "]"),
    ("(", ")"),
    ("{a=", "}"),
    ("{a:", "}"),
    ("{(", ")=1}"),
    ("\"${", "}\""),
    ("\"%{if true}", "%{endif}\""),
    ("<<EOT\n${", "}\nEOT\n"),
    ("!", ""),
    ("-", ""),
    ("- ", ""),
    ("true ? 1 : ", ""),
    ("true ? ", " : 1"),
    ("1 + ", ""),
    ("f(", ")"),
    ("[for x in ", " : x]"),
];

#[test]
fn deep_nests_of_every_kind_are_refused_or_read() {
    for (open, close) in NESTS {
        for depth in [1, 10, 30, 60, 63, 64, 65, 130, 1000] {
            let codes = survive(nest(open, close, depth).as_bytes());
            assert!(!codes.is_empty(), "{open} {depth}");
            // Unclosed, too.
            survive(nest(open, "", depth).as_bytes());
        }
    }
    let mut blocks = "a {\n".repeat(1000);
    survive(blocks.as_bytes());
    blocks += &"}\n".repeat(1000);
    assert_eq!(survive(blocks.as_bytes()), ["C0004"]);
}

#[test]
fn huge_files_are_refused() {
    for text in [
        "[".repeat(1_000_000),
        "x".repeat(MAX_BYTES + 1),
        "\"".repeat(1_000_000),
        "<<".repeat(500_000),
    ] {
        survive(text.as_bytes());
    }
    assert_eq!(survive(&vec![b' '; MAX_BYTES + 1]), ["C0001"]);
    assert_eq!(survive("[".repeat(1_000_000).as_bytes()), ["C0004"]);
    assert_eq!(survive("a=1\n".repeat(250_000).as_bytes()), ["C0009"]);
}

/// The pattern this many times, each with its number in the place of `#`.
fn numbered(count: usize, pattern: &str) -> String {
    (0..count).map(|number| pattern.replace('#', &number.to_string())).collect()
}

/// Text of some 60 KiB in which a careless reader would go back and forth: each must be linear.
#[test]
fn nothing_is_quadratic() {
    let wrap = |body: String| format!("castle \"a\" {{\n  talos = {body}\n}}\n");
    let cases = [
        wrap(format!("<<EOT\n{}\nEOT", " ".repeat(62_500))),
        wrap(format!("<<EOT\n{}EOT", " \n".repeat(31_250))),
        wrap(format!("\"{}\"", "ghp_".repeat(15_625))),
        wrap(format!("\"{}\"", "-----BEGIN ".repeat(5_625))),
        wrap(format!("\"{}\"", "-----BEGIN PRIVATE KEY-----".repeat(2_375))),
        wrap(format!("\"{}\"", "https://a:b@c ".repeat(4_375))),
        wrap(format!("[{}]", "1,".repeat(31_250))),
        wrap(format!("\"{}\"", "${1}".repeat(15_625))),
        wrap(format!("{}1", "/**/".repeat(15_625))),
        wrap(format!("{{{}}}", "a=1,".repeat(4000))),
        "\n".repeat(62_500),
        "# comment\n".repeat(6_250),
        "token = x ".repeat(6_250),
        "\"\n".repeat(31_250),
        "a {\n}\n".repeat(10_625),
        "castle \"a\" {\n}\n".repeat(3_750),
        format!("castle \"a\" {{\n{}}}\n", "  network {\n  }\n".repeat(3_750)),
        format!("castle \"a\" {{\n{}}}\n", "  b = 8GiB\n".repeat(4000)),
        format!("castle \"a\" {{\n{}}}\n", "  layer \"x\" {\n  }\n".repeat(3_125)),
        format!(
            "castle \"a\" {{\n{}}}\n",
            numbered(10_000, "  layer \"x#\" {\n after = [\"y\"]\n }\n")
        ),
        format!(
            "castle \"a\" {{\n{}}}\n",
            numbered(4000, "  layer \"x#\" {\n after = [\"y\"]\n }\n")
        ),
        format!(
            "castle \"a\" {{\n secrets \"infisical\" {{\n require = [{}]\n}}\n}}\n",
            numbered(20_000, "\"k#\",")
        ),
        format!("castle \"a\" {{\n deadlines {{\n{}\n}}\n}}\n", numbered(4000, "x#=\"1m\"\n")),
        numbered(4000, "a#=\"\n"),
        "token = secret(\"A\"), ".repeat(3_000),
        "password = [\n".repeat(4000),
        "password =\n".repeat(4000),
        "# key=AKIA:".repeat(6_000),
        wrap(format!("\"{}\"", "eyJ.PVEAPIToken=".repeat(4_000))),
        format!("castle \"a\" {{\n  talos = [{}\n", "{},".repeat(15_000)),
        wrap(format!("{{{}}}", numbered(4000, "password#=\"x\","))),
        format!("castle \"a\" {{\n{}", "é".repeat(25_000)),
    ];
    // The budget is generous, because tests share their machine; a quadratic reader takes minutes.
    let (sender, receiver) = std::sync::mpsc::channel();
    let worker = std::thread::spawn(move || {
        for (index, text) in cases.iter().enumerate() {
            assert!(text.len() <= MAX_BYTES, "{index}");
            survive(text.as_bytes());
            sender.send(index).ok();
        }
    });
    let mut last = None;
    loop {
        match receiver.recv_timeout(Duration::from_mins(1)) {
            Ok(index) => last = Some(index),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("stuck after case {last:?}"),
        }
    }
    worker.join().unwrap();
}

#[test]
fn a_flood_of_findings_is_cut_and_counted() {
    let text = format!("castle \"a\" {{\n{}}}\n", "  b \"c\" {\n  }\n".repeat(20_000));
    let sources = sources(&text);
    let findings = read(&sources).findings;
    assert_eq!(findings.len(), MAX_FINDINGS + 1);
    let last = &findings[MAX_FINDINGS];
    assert_eq!((last.code, last.title.as_str()), ("C0008", "19007 further findings are not shown"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        survive(&bytes);
    }

    #[test]
    fn any_text_of_tokens(tokens in proptest::collection::vec(token(), 0..60)) {
        survive(tokens.concat().as_bytes());
    }

    #[test]
    fn the_example_with_pieces_cut_doubled_and_swapped(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0_usize..40, edit()), 1..6)
    ) {
        let mut bytes = EXAMPLE.as_bytes().to_vec();
        for (index, length, edit) in edits {
            let start = index.index(bytes.len().max(1)).min(bytes.len());
            let end = (start + length).min(bytes.len());
            let piece = match edit {
                Edit::Cut => Vec::new(),
                Edit::Double => bytes[start..end].repeat(2),
                Edit::Put(text) => text.into_bytes(),
            };
            bytes.splice(start..end, piece);
        }
        survive(&bytes);
    }
}

#[derive(Debug, Clone)]
enum Edit {
    Cut,
    Double,
    Put(String),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![Just(Edit::Cut), Just(Edit::Double), token().prop_map(|t| Edit::Put(t.to_owned()))]
}

fn token() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "castle",
        " \"blue\" ",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        "=",
        "==",
        "\n",
        "\r\n",
        "\"",
        "\\",
        "${",
        "%{",
        "$${",
        "<<EOT\n",
        "<<-X\n",
        "EOT\n",
        "X\n",
        "#",
        "//",
        "/*",
        "*/",
        "secret(\"A\")",
        "env(\"B\")",
        "file(\"../c\")",
        "cidrhost(",
        "network",
        "platform",
        "nodes",
        "count",
        "1",
        "-1",
        "3.5",
        "1e400",
        "true",
        "null",
        "for",
        " x in ",
        ":",
        "?",
        ",",
        ".",
        "...",
        "*",
        "!",
        "-",
        "&&",
        "é",
        "\u{feff}",
        "\0",
        "ghp_0123456789012345678901234567",
        "-----BEGIN RSA PRIVATE KEY-----",
        "https://a:b@c/",
        "if",
        "endif",
        "else",
        "8GiB",
        "\u{1b}[31m",
        "\u{7}",
        "\r",
        "\u{85}",
        "\u{202e}",
        "\t",
        "  ",
    ])
}
