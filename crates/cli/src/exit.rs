//! Exit codes, and the one error type of the edge: kind, cause, hints. Wording for users lives here.
//!
//! The labels are those of reports and of `castle why`: why, where and hint for each of several things that are wrong, last
//! seen, hint. What is only worth knowing is a `notice`.

use std::fmt;
use std::process::ExitCode;

use castle_model::Failure;

use crate::address;

/// How castle ends, as documented in `docs/reference/cli.md`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All that was asked for is done.
    Done = 0,
    /// A step failed.
    Failed = 1,
    /// The command line or the castle file is wrong.
    Usage = 2,
    /// Refused for safety, or somebody else holds the lock.
    Refused = 3,
    /// Something of ours is left over.
    Leftovers = 4,
    /// Interrupted.
    Interrupted = 130,
}

impl Exit {
    /// The end that a code means; one that castle does not use is a failure.
    pub(crate) fn of_code(code: u8) -> Self {
        let known = Self::ALL.iter().find(|(exit, ..)| *exit as u8 == code);
        known.map_or(Self::Failed, |(exit, ..)| *exit)
    }
}

impl Exit {
    /// Every end, with the word for it, what it means in short, and what it means for whoever needs to know all.
    pub(crate) const ALL: [(Self, &str, &str, &str); 6] = [
        (Self::Done, "done", "done", "done: everything that was asked for is true"),
        (
            Self::Failed,
            "failed",
            "a step failed; the report says which, why, and the command to go on",
            "a step failed; the report names it, why, and the command to go on (`judge`: an object is not ready)",
        ),
        (
            Self::Usage,
            "usage",
            "usage, or the castle file",
            "the command line, the castle file or the input is wrong; nothing was done",
        ),
        (
            Self::Refused,
            "refused",
            "refused for safety, or another process holds the state",
            "refused for safety, or another process holds the state; nothing was done",
        ),
        (
            Self::Leftovers,
            "leftovers",
            "something of ours is left over, whether a step failed or not",
            "`down`, `wipe` or `audit` is over and something of the castle is left, whether a step failed or not; it is listed, and so is what failed",
        ),
        (
            Self::Interrupted,
            "interrupted",
            "interrupted; nothing is lost",
            "interrupted; nothing is lost, the same command goes on",
        ),
    ];

    /// The word for it, as programs read it.
    pub(crate) fn word(self) -> &'static str {
        Self::ALL.iter().find(|(exit, ..)| *exit == self).map_or("failed", |(_, word, ..)| word)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// An error as a user meets it.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) what: String,
    pub(crate) causes: Vec<String>,
    /// Everything that is wrong, where several things are, and what was seen last, each with its label.
    pub(crate) seen: Vec<(&'static str, String)>,
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), causes: Vec::new(), seen: Vec::new(), hint: None }
    }

    /// Wrong command line or castle file.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::new(Exit::Usage, what)
    }

    /// A failure of something outside, met without a run.
    pub(crate) fn failure(failure: &Failure) -> Self {
        let mut problem = Self::new(Exit::Failed, format!("can not {}", failure.what));
        problem.causes.push(failure.why.clone());
        problem.seen = failure.seen();
        problem.hint.clone_from(&failure.hint);
        problem
    }

    /// Refused for safety.
    pub(crate) fn refused(what: impl Into<String>) -> Self {
        Self::new(Exit::Refused, what)
    }

    /// Adds an error and everything that it came from.
    pub(crate) fn because(mut self, error: &dyn std::error::Error) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            if self.causes.last() != Some(&text) {
                self.causes.push(text);
            }
            next = error.source();
        }
        self
    }

    /// Adds what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// With castle's own commands as they lead back to the castle that it is about.
    pub(crate) fn addressed(mut self) -> Self {
        let texts = self.causes.iter_mut().chain(self.seen.iter_mut().map(|(_, text)| text));
        texts.chain(&mut self.hint).for_each(address::change);
        self
    }

    /// The commands that its hints name, each to be typed as it stands, in the order of the words.
    pub(crate) fn next(&self) -> Vec<String> {
        let found = self.seen.iter().filter(|(label, _)| *label == "hint").map(|(_, text)| text);
        let mut next: Vec<String> = Vec::new();
        for command in found.chain(&self.hint).flat_map(|hint| commands(hint)) {
            if !next.iter().any(|known| known == command) {
                next.push(command.to_owned());
            }
        }
        next
    }
}

/// What a hint has between backquotes and a shell would take: castle's own commands, and signals to another castle. A form
/// to be filled in (`castle machineconfig <NODE>`) is none, nor is the mere beginning of one.
fn commands(hint: &str) -> impl Iterator<Item = &str> {
    let begins = |text: &&str| {
        ["castle ", "env -S ", "kill -"].iter().any(|beginning| text.starts_with(beginning))
    };
    let is_whole = |text: &&str| {
        *text != "castle rehearse" && ![" <", " ["].iter().any(|gap| text.contains(gap))
    };
    hint.split('`').skip(1).step_by(2).filter(begins).filter(is_whole)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        for cause in &self.causes {
            write!(f, "\n  why: {cause}")?;
        }
        for (label, text) in &self.seen {
            write!(f, "\n  {label}: {text}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_the_same_table() {
        let readme = include_str!("../../../README.md");
        for (exit, _, short, _) in Exit::ALL {
            let row = format!("| {} | {short} |", exit as u8);
            assert!(readme.contains(&row), "the README has no line `{row}`");
        }
        let table = readme.split("## Exit codes").nth(1).and_then(|rest| rest.split("## ").next());
        let rows = table.unwrap_or_default().lines().filter(|line| line.starts_with("| "));
        assert_eq!(rows.count(), Exit::ALL.len() + 1);
    }

    #[test]
    fn the_commands_that_hints_name_are_found_once_and_in_their_order() {
        let next = |hint: &str| Problem::usage("it is so").hint(hint).next();
        assert_eq!(
            next(
                "finish it with `castle -f a.hcl down`, then `castle -f a.hcl up` begins a new life"
            ),
            ["castle -f a.hcl down", "castle -f a.hcl up"]
        );
        assert_eq!(
            next("`kill -CONT 7` lets it go on, `castle status` works"),
            ["kill -CONT 7", "castle status"]
        );
        let served = "env -S \"$(cat /a/castle.env)\" castle -f /a/castle.hcl lock";
        assert_eq!(next(&format!("`{served}` pins it")), [served]);
        for none in [
            "add --yes",
            "did you mean `platform/vip`?",
            "`addresses` in `gitops \"flux\"` is where it is set",
            "write `castle machineconfig <NODE>`, or `castle wipe [OPTIONS]`",
            "begin the command with `castle rehearse`",
            "an odd ` is no beginning of castle up",
        ] {
            assert_eq!(next(none), [""; 0], "{none}");
        }
        let mut problem = Problem::usage("two things are wrong").hint("then `castle check` again");
        problem.seen = vec![
            ("where", "`castle down` was here".to_owned()),
            ("hint", "`castle lock` pins it".to_owned()),
            ("hint", "`castle check` shows it".to_owned()),
        ];
        assert_eq!(problem.next(), ["castle lock", "castle check"], "what is no hint is no advice");
    }

    #[test]
    fn every_code_means_one_end() {
        for (exit, ..) in Exit::ALL {
            assert_eq!(Exit::of_code(exit as u8), exit);
        }
        assert_eq!(Exit::of_code(99), Exit::Failed);
    }
}
