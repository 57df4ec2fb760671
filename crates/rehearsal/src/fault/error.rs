//! A rule that can not be read: where, why, and what was probably meant.

use std::fmt::Write;
use std::ops::Range;

use castle_model::suggest::nearest;
use thiserror::Error;

/// The most words that are listed as possible.
const LISTED: usize = 40;

/// Why a rule can not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct RuleError {
    /// The rule, as it was given.
    pub rule: String,
    /// The bytes of it that are wrong.
    pub span: Range<usize>,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What was probably meant.
    pub nearest: Option<String>,
    /// What is possible there.
    pub help: Option<String>,
}

impl RuleError {
    pub(super) fn new(rule: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { rule: rule.to_owned(), span, message, nearest: None, help: None }
    }

    /// Adds the nearest of the right words, and what else there is.
    pub(super) fn among<'a>(
        mut self,
        word: &str,
        right: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let mut right: Vec<&str> = right.into_iter().collect();
        self.nearest = nearest(word, right.iter().copied()).map(str::to_owned);
        let more = right.len().saturating_sub(LISTED);
        right.truncate(LISTED);
        if !right.is_empty() {
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            self.help = Some(format!("there is: {}{rest}", right.join(", ")));
        }
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The rule with a caret under what is wrong, as findings about castle files look. `source` says where the rule
    /// came from, and `line` which one it was there.
    #[must_use]
    pub fn picture(&self, source: &str, line: usize) -> String {
        let at = |byte: usize| self.rule.get(..byte).map_or(0, |text| text.chars().count());
        let (start, end) = (at(self.span.start), at(self.span.end));
        // Whatever somebody typed, no sign of it is one that a terminal obeys.
        let clean = |c: char| if c.is_control() { '\u{fffd}' } else { c };
        let rule: String = self.rule.chars().map(clean).collect();
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let carets = "^".repeat(end.saturating_sub(start).max(1));
        let meant =
            self.nearest.as_ref().map(|n| format!(" did you mean `{n}`?")).unwrap_or_default();
        let mut text = format!("{}\n{margin}--> {source}", self.message);
        write!(text, ":{line}:{}\n{margin} |\n{number} | {rule}\n", start + 1).ok();
        write!(text, "{margin} | {}{carets}{meant}", " ".repeat(start)).ok();
        if let Some(help) = &self.help {
            write!(text, "\n{margin} |\n{margin} = hint: {help}").ok();
        }
        text
    }
}
