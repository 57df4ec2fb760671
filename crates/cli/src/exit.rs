//! Exit codes, and the one error type of the edge: kind, cause, hints. Wording for users lives here.
//!
//! The labels are those of reports and of `castle why`: why, finding, cure, last seen, hint.

use std::fmt;
use std::process::ExitCode;

use castle_model::Failure;
use castle_model::failure::Finding;

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
        let known = [Self::Done, Self::Usage, Self::Refused, Self::Leftovers, Self::Interrupted];
        known.into_iter().find(|exit| *exit as u8 == code).unwrap_or(Self::Failed)
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
        for Finding { place, why, cure } in &failure.findings {
            problem.seen.push(("finding", format!("{place}: {why}")));
            problem.seen.push(("cure", cure.clone()));
        }
        problem.seen.extend(failure.evidence.clone().map(|evidence| ("last seen", evidence)));
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
