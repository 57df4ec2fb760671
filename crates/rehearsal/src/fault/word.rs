//! Cuts a rule into words, each with its place.

use std::ops::Range;

use super::error::RuleError;

/// The longest rule.
pub(super) const RULE_MAX: usize = 500;

/// One word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) text: String,
    pub(super) span: Range<usize>,
    /// Whether it stood in quotes: then it is no word of the language.
    pub(super) quoted: bool,
}

/// The words before the first colon outside of quotes, and those behind it.
pub(super) struct Words {
    pub(super) head: Vec<Word>,
    pub(super) tail: Vec<Word>,
    /// Where the colon stands.
    pub(super) colon: Option<usize>,
}

/// Cuts a rule.
pub(super) fn cut(rule: &str) -> Result<Words, RuleError> {
    if rule.len() > RULE_MAX {
        let message = format!("a rule has at most {RULE_MAX} letters, this one has {}", rule.len());
        let shown: String = rule.chars().take(60).collect();
        let end = shown.len();
        return Err(RuleError::new(&shown, end..end, message));
    }
    if let Some((at, sign)) = rule.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
        return Err(RuleError::new(rule, at..at + sign.len_utf8(), "a rule is one line of text"));
    }
    let mut words = Words { head: Vec::new(), tail: Vec::new(), colon: None };
    let mut signs = rule.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            ' ' | '\t' => {}
            ':' if words.colon.is_none() => words.colon = Some(at),
            '"' => {
                let (text, end) = quoted(rule, at, &mut signs)?;
                words.push(Word { text, span: at..end, quoted: true });
            }
            _ => {
                let ends = |c: char| c == ' ' || c == '\t' || (c == ':' && words.colon.is_none());
                while signs.next_if(|(_, c)| !ends(*c)).is_some() {}
                let end = signs.peek().map_or(rule.len(), |(end, _)| *end);
                words.push(Word { text: rule[at..end].to_owned(), span: at..end, quoted: false });
            }
        }
    }
    Ok(words)
}

impl Words {
    fn push(&mut self, word: Word) {
        if self.colon.is_some() { self.tail.push(word) } else { self.head.push(word) }
    }
}

/// The rest of a word in quotes; a backslash takes the next sign as it is.
fn quoted(
    rule: &str,
    at: usize,
    signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>,
) -> Result<(String, usize), RuleError> {
    let mut text = String::new();
    while let Some((place, sign)) = signs.next() {
        match sign {
            '"' => return Ok((text, place + 1)),
            '\\' => text.extend(signs.next().map(|(_, sign)| sign)),
            _ => text.push(sign),
        }
    }
    Err(RuleError::new(rule, at..rule.len(), "a quotation mark is open")
        .help("close it with another `\"`"))
}
