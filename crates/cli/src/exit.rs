//! Exit codes, and the one error type of the edge: kind, cause, hints. Wording for users lives here.
//!
//! The labels are those of reports and of `castle why`: why, finding, cure, last seen, hint.

use std::fmt;
use std::process::ExitCode;

use castle_model::Failure;

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
            "something of ours is left over",
            "`down` or `audit` is over and something of the castle is left; it is listed",
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
    fn every_code_means_one_end() {
        for (exit, ..) in Exit::ALL {
            assert_eq!(Exit::of_code(exit as u8), exit);
        }
        assert_eq!(Exit::of_code(99), Exit::Failed);
    }
}
