//! Checks the rules of the house and says every breach at once, each with its place and its cure.

mod edges;
mod licences;
mod links;
mod lock;
mod names;
mod sizes;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use crate::generate;
use crate::house::{Exception, House};
use crate::talk::say;
use crate::tree::{self, Source};

/// One breach of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Which rule, as exceptions name it.
    pub(crate) rule: &'static str,
    /// In which file.
    pub(crate) path: String,
    /// At which line, from 1; 0 where the whole file is meant.
    pub(crate) line: usize,
    /// How much, for rules that measure; 1 for rules that count.
    pub(crate) measure: usize,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Finding {
    /// A breach of a rule that counts.
    pub(crate) fn new(
        rule: &'static str,
        path: &str,
        line: usize,
        text: impl Into<String>,
    ) -> Self {
        Self { rule, path: path.to_owned(), line, measure: 1, text: text.into() }
    }

    /// A breach of a rule that measures.
    pub(crate) fn measured(
        rule: &'static str,
        path: &str,
        line: usize,
        measure: usize,
        text: String,
    ) -> Self {
        Self { rule, path: path.to_owned(), line, measure, text }
    }

    fn show(&self) -> String {
        let place =
            if self.line == 0 { self.path.clone() } else { format!("{}:{}", self.path, self.line) };
        format!("{place}: {} [{}]", self.text, self.rule)
    }
}

/// Rules whose exception limits a size; of all others it limits the number of breaches.
const MEASURED: [&str; 3] = ["file-lines", "function-lines", "inline-tests"];

/// Runs every check in the house we stand in; says whether it is tidy.
pub(crate) fn run() -> Result<bool> {
    let root = tree::root()?;
    let house = House::read(&root)?;
    let files = tree::files(&root)?;
    let findings = settle(check(&root, &house, &files)?, &house.exceptions);
    for finding in &findings {
        say(&finding.show());
    }
    let wishes = sizes::wishes(&house.limits, &files);
    say(&format!(
        "tidy: {} files, {} crates of {} in Cargo.lock; wishes: {} files over {} lines, {} functions over {}",
        files.len(),
        lock::count(&files),
        house.limits.crates_in_lock,
        wishes.files,
        house.limits.file_lines_wished,
        wishes.functions,
        house.limits.function_lines_wished,
    ));
    say(&match findings.len() {
        0 => "tidy: nothing to put right".to_owned(),
        count => format!("tidy: {count} to put right"),
    });
    Ok(findings.is_empty())
}

fn check(root: &Path, house: &House, files: &[Source]) -> Result<Vec<Finding>> {
    let mut findings = edges::check(house, files);
    findings.extend(sizes::check(&house.limits, files));
    findings.extend(names::check(house, files));
    findings.extend(words::check(house, files));
    findings.extend(links::check(files));
    findings.extend(lock::check(house, files));
    findings.extend(licences::check(root, house)?);
    findings.extend(generate::stale(root, house)?);
    Ok(findings)
}

/// Applies the exceptions: takes away what they cover, adds those that are too wide or not needed.
fn settle(findings: Vec<Finding>, exceptions: &[Exception]) -> Vec<Finding> {
    let mut groups: BTreeMap<(String, &'static str), Vec<Finding>> = BTreeMap::new();
    for finding in findings {
        groups.entry((finding.path.clone(), finding.rule)).or_default().push(finding);
    }
    let mut about_exceptions = Vec::new();
    for exception in exceptions {
        let complain = |text: String| Finding::new("exception", "house.toml", 0, text);
        let about = format!("the exception from `{}` for {}", exception.rule, exception.path);
        if exception.reason.trim().is_empty() {
            about_exceptions.push(complain(format!("{about} gives no reason: say why")));
        }
        let key = groups
            .keys()
            .find(|(path, rule)| *path == exception.path && *rule == exception.rule)
            .cloned();
        let Some(key) = key else {
            about_exceptions.push(complain(format!("{about} is not needed: remove it")));
            continue;
        };
        let found = size(&key, &groups);
        if found <= exception.limit {
            groups.remove(&key);
            if found < exception.limit {
                about_exceptions
                    .push(complain(format!("{about} may shrink: lower its limit to {found}")));
            }
        }
    }
    groups.into_values().flatten().chain(about_exceptions).collect()
}

fn size(
    key: &(String, &'static str),
    groups: &BTreeMap<(String, &'static str), Vec<Finding>>,
) -> usize {
    let measures = groups.get(key).into_iter().flatten().map(|finding| finding.measure);
    if MEASURED.contains(&key.1) { measures.max().unwrap_or(0) } else { measures.sum() }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A file for a test.
    pub(crate) fn file(path: &str, text: &str) -> Source {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// The house of this repository.
    pub(crate) fn house() -> House {
        House::read(&tree::root().unwrap()).unwrap()
    }

    fn exception(limit: usize) -> Exception {
        Exception {
            rule: "file-lines".into(),
            path: "a.rs".into(),
            limit,
            reason: "because".into(),
        }
    }

    fn long(lines: usize) -> Vec<Finding> {
        vec![Finding::measured("file-lines", "a.rs", 0, lines, "too long".into())]
    }

    #[test]
    fn an_exception_covers_up_to_its_limit_and_may_only_shrink() {
        assert_eq!(settle(long(700), &[exception(700)]), []);
        assert_eq!(settle(long(701), &[exception(700)]), long(701));
        let shrinks = settle(long(650), &[exception(700)]);
        assert!(shrinks[0].text.ends_with("lower its limit to 650"), "{shrinks:?}");
        let unused = settle(Vec::new(), &[exception(700)]);
        assert!(unused[0].text.ends_with("is not needed: remove it"), "{unused:?}");
    }

    #[test]
    fn counted_rules_add_up() {
        let found = Finding::new("macro-rules", "a.rs", 3, "macro");
        let allowed = Exception { rule: "macro-rules".into(), ..exception(1) };
        assert_eq!(settle(vec![found.clone()], &[allowed]), []);
        let allowed = Exception { rule: "macro-rules".into(), ..exception(1) };
        assert_eq!(settle(vec![found.clone(), found], &[allowed]).len(), 2);
    }

    #[test]
    fn an_exception_without_a_reason_is_refused() {
        let bare = Exception { reason: " ".into(), ..exception(700) };
        assert!(settle(long(700), &[bare])[0].text.contains("gives no reason"));
    }
}
