//! A file of rules: one a line, empty lines and comments behind `#` aside.

use std::fmt;

use super::error::RuleError;
use super::names::Names;
use super::rule::Rule;

/// The largest file of rules.
const FILE_MAX: usize = 64 * 1024;
/// The most rules that one run can have.
const RULES_MAX: usize = 200;

/// Why a file of rules can not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileError {
    /// It is larger than anybody would write.
    TooLarge,
    /// It has more rules than a run can have.
    TooMany,
    /// Rules that are wrong, each with its line, counted from 1.
    Rules(Vec<(usize, RuleError)>),
}

impl FileError {
    /// The whole story for a person: every wrong rule with its caret.
    #[must_use]
    pub fn picture(&self, source: &str) -> String {
        match self {
            Self::Rules(errors) => {
                let pictures = errors.iter().map(|(line, error)| error.picture(source, *line));
                pictures.collect::<Vec<_>>().join("\n\n")
            }
            _ => format!("{self}\n--> {source}"),
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge => write!(f, "a file of rules has at most {FILE_MAX} bytes"),
            Self::TooMany => write!(f, "a run has at most {RULES_MAX} rules"),
            Self::Rules(errors) => write!(f, "{} of its rules can not be read", errors.len()),
        }
    }
}

impl std::error::Error for FileError {}

/// The line up to a `#` that begins a word outside of quotes.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped, mut before) = (false, false, ' ');
    for (at, sign) in line.char_indices() {
        match sign {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted && before.is_whitespace() => return &line[..at],
            _ => {}
        }
        before = sign;
    }
    line
}

/// Reads all rules of a text, or tells all that is wrong with them.
///
/// # Errors
/// Every rule that can not be read.
pub fn read(text: &str, names: &Names) -> Result<Vec<Rule>, FileError> {
    if text.len() > FILE_MAX {
        return Err(FileError::TooLarge);
    }
    let (mut rules, mut errors) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(text.lines()) {
        let line = without_comment(line).trim_end();
        if line.is_empty() {
            continue;
        }
        match Rule::parse(line, names) {
            Ok(rule) => rules.push(rule),
            Err(error) => errors.push((number, error)),
        }
        if rules.len() + errors.len() > RULES_MAX {
            return Err(FileError::TooMany);
        }
    }
    if errors.is_empty() { Ok(rules) } else { Err(FileError::Rules(errors)) }
}
