//! Words that must or must not stand in a file: first lines, open ends, ignored tests, machine paths.

use super::Finding;
use crate::house::House;
use crate::scan::{self, Scanned};
use crate::tree::Source;

/// Words that mark something as not finished.
const OPEN_ENDS: [&str; 3] = ["TODO", "FIXME", "XXX"];

/// Files whose comments begin with `#`.
const HASH_COMMENTS: [&str; 5] = ["toml", "yaml", "yml", "hcl", "sh"];

/// Files that a person writes and a clone carries; a log that lies about is nobody's business.
const WRITTEN: [&str; 12] =
    ["bash", "hcl", "html", "json", "md", "proto", "rs", "sh", "snap", "toml", "yaml", "yml"];

/// Checks every file.
pub(crate) fn check(house: &House, files: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.path != "house.toml") {
        if WRITTEN.iter().any(|ending| file.has_ending(ending)) || file.path.starts_with(".ci/") {
            findings.extend(machine_paths(house, file));
        }
        if file.is_rust() {
            let scanned = scan::scan(&file.text);
            findings.extend(first_line(file));
            findings.extend(open_ends(file, &scanned.comments));
            findings.extend(attributes(file, &scanned));
            findings.extend(errors(file));
        } else if HASH_COMMENTS.iter().any(|ending| file.has_ending(ending))
            || file.path.starts_with(".ci/")
        {
            let comment = |(index, line): (usize, &str)| {
                Some((index + 1, line.split_once('#')?.1.to_owned()))
            };
            let comments: Vec<_> = file.text.lines().enumerate().filter_map(comment).collect();
            findings.extend(open_ends(file, &comments));
        }
    }
    findings
}

fn first_line(file: &Source) -> Option<Finding> {
    let first = file.text.lines().next().unwrap_or_default();
    let opens = first.strip_prefix("//! ").is_some_and(|said| said.trim().len() > 2);
    let text = "the first line must be `//!` and one sentence that says what the file is for";
    (!opens).then(|| Finding::new("first-line", &file.path, 1, text))
}

/// A reference follows the word at once, in parentheses: an issue or a decision.
fn open_ends(file: &Source, comments: &[(usize, String)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, said) in comments {
        for word in OPEN_ENDS {
            let Some((before, after)) = said.split_once(word) else { continue };
            let whole = !before.ends_with(char::is_alphanumeric)
                && !after.starts_with(char::is_alphanumeric);
            let refers = after.starts_with("(#") || after.starts_with("(docs/decisions/");
            if whole && !refers {
                let text =
                    format!("`{word}` without a reference: do it, or write `{word}(#issue)`");
                findings.push(Finding::new("open-end", &file.path, *line, text));
            }
        }
    }
    findings
}

fn attributes(file: &Source, scanned: &Scanned) -> Vec<Finding> {
    let code = &scanned.code;
    let mut findings = Vec::new();
    let mut find = |rule, at, text: &str| {
        findings.push(Finding::new(rule, &file.path, scan::line_of(code, at), text));
    };
    for (at, _) in code.match_indices("#[ignore]") {
        find(
            "ignored-test",
            at,
            "an ignored test without a reason: write `#[ignore = \"what it touches\"]`",
        );
    }
    for (at, _) in code.match_indices("[expect(") {
        let attribute = code[at..].split(")]").next().unwrap_or_default();
        if !attribute.contains("reason") {
            find("expect-reason", at, "an expected lint without a reason: add `reason = \"…\"`");
        }
    }
    if file.path.starts_with("crates/") {
        for (at, _) in code.match_indices("macro_rules!") {
            find(
                "macro-rules",
                at,
                "a macro in product code: write a function, or a decision and an exception",
            );
        }
    }
    findings
}

/// An error shows its own layer only; the chain is printed at the edge.
fn errors(file: &Source) -> Vec<Finding> {
    let shows_source =
        |line: &&str| line.trim_start().starts_with("#[error(") && line.contains("{source");
    let text = "this error shows its source, which is then said twice: leave `{source}` out";
    let lines = file.text.lines().enumerate().filter(|(_, line)| shows_source(line));
    lines.map(|(index, _)| Finding::new("error-source", &file.path, index + 1, text)).collect()
}

fn machine_paths(house: &House, file: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for path in &house.paths.machine {
            let begins = |at: usize| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "/.}-_>~".contains(c))
            };
            if line.match_indices(path.as_str()).any(|(at, _)| begins(at)) {
                let text =
                    format!("`{path}` is a place of one machine: use a relative path or a setting");
                findings.push(Finding::new("machine-path", &file.path, index + 1, text));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, house};

    fn rules(path: &str, text: &str) -> Vec<&'static str> {
        check(&house(), &[file(path, text)]).into_iter().map(|finding| finding.rule).collect()
    }

    fn rust(text: &str) -> Vec<&'static str> {
        rules("crates/a/src/x.rs", &format!("//! Says something.\n{text}"))
    }

    #[test]
    fn a_file_opens_with_what_it_is_for() {
        assert_eq!(rules("a.rs", "//! Says something.\n"), [""; 0]);
        assert_eq!(rules("a.rs", "use std::fs;\n"), ["first-line"]);
        assert_eq!(rules("a.rs", "//!\n"), ["first-line"]);
        assert_eq!(rules("a.rs", ""), ["first-line"]);
    }

    #[test]
    fn an_open_end_needs_a_reference() {
        assert_eq!(rust("// TODO: later\n"), ["open-end"]);
        assert_eq!(rust("// TODO(#12): later\n"), [""; 0]);
        assert_eq!(rust("// FIXME(docs/decisions/0001-x.md)\n"), [""; 0]);
        assert_eq!(rust("let a = \"TODO\"; // TODOS\n"), [""; 0]);
        assert_eq!(rules("a.toml", "a = 1 # FIXME\n"), ["open-end"]);
    }

    #[test]
    fn attributes_say_why() {
        assert_eq!(rust("#[ignore]\nfn a() {}\n"), ["ignored-test"]);
        assert_eq!(rust("#[ignore = \"needs a server\"]\nfn a() {}\n"), [""; 0]);
        assert_eq!(rust("#[expect(dead_code)]\nfn a() {}\n"), ["expect-reason"]);
        assert_eq!(rust("#[expect(dead_code, reason = \"why\")]\nfn a() {}\n"), [""; 0]);
        assert_eq!(rust("macro_rules! a {}\n"), ["macro-rules"]);
    }

    #[test]
    fn an_error_speaks_for_itself() {
        assert_eq!(rust("#[error(\"reading: {source}\")]\n"), ["error-source"]);
        assert_eq!(rust("#[error(\"reading {path}\")]\n"), [""; 0]);
    }

    #[test]
    fn places_of_one_machine_are_refused() {
        let own = format!("{}x/y", house().paths.machine[0]);
        assert_eq!(rules("a.md", &format!("see `{own}`\n")), ["machine-path"]);
        assert_eq!(rules("a.md", &format!("see https://host{own}\n")), [""; 0]);
        assert_eq!(rules("notes.log", &format!("see `{own}`\n")), [""; 0]);
    }
}
