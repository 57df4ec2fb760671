//! Finds the comments of a YAML text between the events of its parser, which does not tell about them.

use castle_model::Secret;
use saphyr_parser::{ScalarStyle, Span};

/// A comment, as it stands in the text.
pub(super) struct Comment {
    /// What follows the `#`.
    pub(super) text: Secret,
    pub(super) line: usize,
    pub(super) column: usize,
    /// Whether something else stands before it on its line.
    pub(super) inline: bool,
}

/// Goes through the text once, forward, beside the parser.
pub(super) struct Gaps<'text> {
    rest: std::str::Chars<'text>,
    /// How many characters have been passed.
    index: usize,
    line: usize,
    column: usize,
    /// Whether only white space has been passed on this line.
    fresh: bool,
    /// Whether a `#` here would begin a comment.
    open: bool,
}

impl<'text> Gaps<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let rest = text.strip_prefix('\u{feff}').unwrap_or(text).chars();
        let index = usize::from(text.starts_with('\u{feff}'));
        Self { rest, index, line: 1, column: 0, fresh: true, open: true }
    }

    fn step(&mut self) -> Option<char> {
        let character = self.rest.next()?;
        self.index += 1;
        if character == '\n' {
            self.line += 1;
            self.column = 0;
            self.fresh = true;
            self.open = true;
        } else {
            self.column += 1;
            let white = matches!(character, ' ' | '\t' | '\r');
            self.fresh &= white;
            self.open = white;
        }
        Some(character)
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    /// The comments up to a place (in characters), outside of any scalar.
    pub(super) fn up_to(&mut self, end: usize, found: &mut Vec<Comment>) {
        while self.index < end {
            if self.open && self.peek() == Some('#') {
                found.push(self.comment());
            } else if self.step().is_none() {
                return;
            }
        }
    }

    fn comment(&mut self) -> Comment {
        let (line, column, inline) = (self.line, self.column, !self.fresh);
        self.step();
        let mut text = String::new();
        while let Some(character) = self.peek().filter(|character| *character != '\n') {
            text.push(character);
            self.step();
        }
        text.truncate(text.trim_end().len());
        Comment { text: Secret::new(text), line, column, inline }
    }

    /// Passes a scalar, whose every `#` is its own.
    pub(super) fn pass(&mut self, span: Span, style: ScalarStyle, found: &mut Vec<Comment>) {
        self.up_to(span.start.index(), found);
        match style {
            // The parser's end of a quoted scalar may lie behind a comment on its line: look for the quote.
            ScalarStyle::SingleQuoted => self.pass_quoted('\''),
            ScalarStyle::DoubleQuoted => self.pass_quoted('"'),
            ScalarStyle::Plain | ScalarStyle::Literal | ScalarStyle::Folded => {
                while self.index < span.end.index() && self.step().is_some() {}
            }
        }
    }

    fn pass_quoted(&mut self, quote: char) {
        // A tag may stand before it; its characters are neither quotes nor white space.
        while self.peek().is_some_and(|character| character != quote) {
            self.step();
        }
        self.step();
        while let Some(character) = self.step() {
            match character {
                '\\' if quote == '"' => {
                    self.step();
                }
                _ if character == quote => {
                    // Two single quotes are one, inside.
                    if quote == '"' || self.peek() != Some('\'') {
                        return;
                    }
                    self.step();
                }
                _ => {}
            }
        }
    }

    /// The column of the first character that is not white on the line of this place, which lies ahead or here.
    pub(super) fn indentation(&mut self, place: usize, found: &mut Vec<Comment>) -> usize {
        let mut column = 0;
        while self.index < place {
            if self.open && self.peek() == Some('#') {
                found.push(self.comment());
                continue;
            }
            let fresh = self.fresh;
            if self.step().is_none() {
                break;
            }
            if fresh && !self.fresh {
                column = self.column - 1;
            }
        }
        column
    }
}
