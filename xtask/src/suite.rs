//! `cargo xtask test`: every check in order, each with its time; stops at the first failure and says what to do.
//! `cargo xtask test <stage>` does one of them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::real::{self, Tier};
use crate::talk::{self, say, seconds, table};
use crate::{tidy, tree};

/// How many tests there were.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Count {
    passed: usize,
    failed: usize,
    ignored: usize,
    /// How long the tests of `crates/proof` took, in milliseconds.
    proof_ms: u64,
    /// Whether the test file that is being told of is one of them.
    is_proof: bool,
}

/// A test of each file in `crates/proof/tests`: cargo names the file elsewhere than in what it tells.
const PROOF: [&str; 3] = [
    "test seeds_hold_and_are_the_same_twice ",
    "test every_planted_bug_is_found ",
    "test what_no_file_can_tell_is_decided_by_the_world ",
];

/// What the stages were asked for, and what they found.
#[derive(Debug, Default)]
struct Found {
    /// Which real components are wanted.
    tier: Tier,
    count: Count,
    /// Which real components were exercised.
    exercised: Option<String>,
}

/// One stage of the suite.
struct Stage {
    name: &'static str,
    /// What to do when it fails.
    cure: &'static str,
    run: fn(&Path, &mut Found) -> Result<bool>,
}

const STAGES: [Stage; 6] = [
    Stage {
        name: "tools",
        cure: "install them by hand: `rustup component add rustfmt clippy`",
        run: |root, _| tools(root),
    },
    Stage {
        name: "format",
        cure: "run `cargo fmt --all`",
        run: |root, _| talk::runs(root, &["cargo", "fmt", "--all", "--check"]),
    },
    Stage {
        name: "lints",
        cure: "follow the lint's advice; what must stay gets `#[expect(…, reason = \"…\")]`",
        run: |root, _| {
            talk::runs(
                root,
                &[
                    "cargo",
                    "clippy",
                    "--workspace",
                    "--all-targets",
                    "--locked",
                    "--",
                    "-D",
                    "warnings",
                ],
            )
        },
    },
    Stage {
        name: "tidy",
        cure: "each line above says its cure; CONTRIBUTING.md has the rules",
        run: |_, _| tidy::run(),
    },
    Stage {
        name: "tests",
        cure: "run one with `cargo test -p <package> <name>`; a changed snapshot is shown as a diff above",
        run: test_workspace,
    },
    Stage {
        name: "real",
        cure: "run one with `cargo xtask real`, then the line that it prints and the test's name",
        run: test_reality,
    },
];

/// Installs the parts of the toolchain that the next stages need, where a minimal one lacks them.
fn tools(root: &Path) -> Result<bool> {
    for (tool, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        let mut asked = Command::new("cargo");
        asked.args([tool, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        let there = asked.status().context("asking cargo for its tools")?.success();
        if !there && !talk::runs(root, &["rustup", "component", "add", component])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Runs the stages, or the one named, with the real components of the tier.
pub(crate) fn run(only: Option<&str>, tier: Tier) -> Result<bool> {
    let root = tree::root()?;
    let stages: Vec<&Stage> =
        STAGES.iter().filter(|stage| only.is_none_or(|only| only == stage.name)).collect();
    if stages.is_empty() {
        let names: Vec<&str> = STAGES.iter().map(|stage| stage.name).collect();
        bail!("there is no such stage; there are {}", names.join(", "));
    }
    let (mut rows, mut found, mut broken) = (Vec::new(), Found { tier, ..Found::default() }, None);
    for stage in stages {
        if broken.is_some() {
            rows.push(vec![stage.name.to_owned(), "not run".to_owned(), String::new()]);
            continue;
        }
        say(&format!("== {}", stage.name));
        let start = talk::now();
        let passed = (stage.run)(&root, &mut found)?;
        let word = if passed { "passed" } else { "failed" };
        rows.push(vec![stage.name.to_owned(), word.to_owned(), seconds(start.elapsed())]);
        if !passed {
            broken = Some(stage);
        }
    }
    say(&format!("\n{}\n", table(&["stage", "verdict", "took"], &rows)));
    if let Some(exercised) = &found.exercised {
        say(&format!("{exercised}\n"));
    }
    let mut count = found.count;
    if let Some(stage) = broken {
        say(&format!("{} failed: {}", stage.name, stage.cure));
        count.failed = count.failed.max(1);
    }
    if count.proof_ms > 0 {
        let took = Duration::from_millis(count.proof_ms);
        say(&format!(
            "the proof took {}, of five minutes at most (docs/figures.md)",
            seconds(took)
        ));
    }
    if count.ignored > 0 {
        say(&format!("{} ignored", count.ignored));
    }
    say(&format!("{} passed, {} failed", count.passed, count.failed));
    Ok(broken.is_none())
}

/// Unit, integration and documentation tests of the whole workspace.
fn test_workspace(root: &Path, found: &mut Found) -> Result<bool> {
    let words = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"];
    let part = eighth(&talk::output(root, &["git", "rev-parse", "HEAD"]).unwrap_or_default());
    say(&format!(
        "part {part} of the crash matrix' eight, by the commit; {EIGHTH}=n asks for another"
    ));
    let mut command = talk::program(root, &words)?;
    if talk::surrounding(EIGHTH).is_none() {
        command.env(EIGHTH, part.to_string());
    }
    counted(command, &mut found.count)
}

/// The variable that says which eighth of the crash matrix is tried; `crates/proof` reads it.
const EIGHTH: &str = "CASTLE_EIGHTH";

/// Which eighth a commit is for: its last digit tells, so that eight commits go round about once.
fn eighth(commit: &str) -> u32 {
    commit.trim().chars().last().and_then(|digit| digit.to_digit(16)).unwrap_or_default() % 8
}

/// How the tests of `crates/reality` are run.
const REALITY: [&str; 8] =
    // The whole workspace, so that nothing is built once more with the features that one package alone asks for.
    ["cargo", "test", "--workspace", "--test", "real", "--locked", "--", "--ignored"];

/// How often a test in rounds goes round in a soak; `crates/reality` reads the variable.
const SOAK: (&str, &str) = ("CASTLE_ROUNDS", "50");

/// `cargo xtask soak --rounds`: the tests that go in rounds, each ten times as long as in the suite.
pub(crate) fn rounds() -> Result<bool> {
    let root = tree::root()?;
    let prepared = real::prepare(&root, Tier::Always)?;
    if !prepared.is_enough() {
        return Ok(false);
    }
    let words: Vec<&str> = REALITY.into_iter().chain(["rounds", "--nocapture"]).collect();
    let mut command = talk::program(&root, &words)?;
    command.env(real::PLACE, &prepared.place).env(SOAK.0, SOAK.1);
    let start = talk::now();
    let mut count = Count::default();
    let passed = counted(command, &mut count)?;
    let took = seconds(start.elapsed());
    say(&format!(
        "{} passed, {} failed, {} rounds each, {took}",
        count.passed, count.failed, SOAK.1
    ));
    Ok(passed && count.passed > 0)
}

/// What is held against components that nobody here wrote; each is built first, where it is missing.
fn test_reality(root: &Path, found: &mut Found) -> Result<bool> {
    let prepared = real::prepare(root, found.tier)?;
    if !prepared.is_enough() {
        say("with CI=true every real component must be there");
        return Ok(false);
    }
    let mut command = talk::program(root, &REALITY)?;
    command.env(real::PLACE, &prepared.place);
    // The workspace's run has counted these tests as ignored.
    let mut of_reality = Count::default();
    let passed = counted(command, &mut of_reality)?;
    let (table, in_vain) = prepared.exercised()?;
    found.exercised = Some(table);
    let count = &mut found.count;
    count.passed += of_reality.passed.saturating_sub(in_vain);
    count.failed += of_reality.failed;
    count.ignored = count.ignored.saturating_sub(of_reality.passed + of_reality.failed) + in_vain;
    Ok(passed)
}

/// Runs a test command with its output shown, and adds up its figures.
fn counted(mut command: Command, count: &mut Count) -> Result<bool> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("starting cargo test")?;
    if let Some(stdout) = child.stdout.take() {
        for line in BufReader::new(stdout).lines() {
            let line = line.context("reading what cargo test wrote")?;
            add(&line, count);
            say(&line);
        }
    }
    Ok(child.wait().context("waiting for cargo test")?.success())
}

/// Adds the figures of a line such as `test result: ok. 3 passed; 0 failed; 1 ignored; …`.
fn add(line: &str, count: &mut Count) {
    count.is_proof |= PROOF.iter().any(|test| line.starts_with(test));
    let Some((_, figures)) =
        line.strip_prefix("test result: ").and_then(|rest| rest.split_once(". "))
    else {
        return;
    };
    let took = figures.rsplit_once("finished in ").and_then(|(_, took)| took.strip_suffix('s'));
    let took = took.and_then(|text| Duration::try_from_secs_f64(text.parse().ok()?).ok());
    if std::mem::take(&mut count.is_proof) {
        let millis = took.map_or(0, |took| took.as_millis());
        count.proof_ms += u64::try_from(millis).unwrap_or_default();
    }
    for figure in figures.split("; ") {
        let Some((Ok(number), word)) =
            figure.split_once(' ').map(|(number, word)| (number.parse::<usize>(), word))
        else {
            continue;
        };
        match word {
            "passed" => count.passed += number,
            "failed" => count.failed += number,
            "ignored" => count.ignored += number,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_has_its_eighth() {
        assert_eq!((eighth("ab3\n"), eighth("abf\n"), eighth("")), (3, 7, 0));
    }

    #[test]
    fn results_add_up() {
        let mut count = Count::default();
        for line in [
            "running 3 tests",
            "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
        ] {
            add(line, &mut count);
        }
        assert_eq!(count, Count { passed: 4, failed: 2, ignored: 1, ..Count::default() });
    }

    #[test]
    fn the_time_of_the_proof_is_told_apart() {
        let mut count = Count::default();
        let result =
            |took: &str| format!("test result: ok. 1 passed; 0 failed; finished in {took}s");
        for line in [
            "test a_castle_rises ... ok".to_owned(),
            result("7.00"),
            "test seeds_hold_and_are_the_same_twice ... ok".to_owned(),
            result("101.25"),
            "test every_planted_bug_is_found ... ok".to_owned(),
            result("20.50"),
            "test something_else ... ok".to_owned(),
            result("3.00"),
        ] {
            add(&line, &mut count);
        }
        assert_eq!((count.proof_ms, count.passed), (121_750, 4));
    }
}
