//! Walks over HCL text by hand, without recursion: guards the parser and finds where a value ends.

use std::ops::Range;

use crate::finding::Finding;
use crate::limits::{MAX_DEPTH, MAX_SETTINGS, MAX_TOKENS};

/// What surrounds the current byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside<'t> {
    /// A bracket, brace, parenthesis or template sequence.
    Bracket,
    /// A quoted string that begins at this byte.
    Quoted(usize),
    /// A heredoc, until a line that holds this word alone.
    Heredoc(&'t str),
}

/// A walk over the text that knows strings, templates, heredocs and comments.
struct Walk<'t> {
    text: &'t str,
    at: usize,
    inside: Vec<Inside<'t>>,
    settings: usize,
    tokens: usize,
    unclosed: Vec<usize>,
}

impl<'t> Walk<'t> {
    fn new(text: &'t str, at: usize) -> Self {
        Self { text, at, inside: Vec::new(), settings: 0, tokens: 0, unclosed: Vec::new() }
    }

    fn rest(&self) -> &'t [u8] {
        &self.text.as_bytes()[self.at.min(self.text.len())..]
    }

    /// Moves past one piece of the text; the piece is never empty before the end.
    fn step(&mut self) {
        match self.inside.last().copied() {
            None | Some(Inside::Bracket) => self.step_code(),
            Some(Inside::Quoted(start)) => self.step_quoted(start),
            Some(Inside::Heredoc(word)) => self.step_heredoc(word),
        }
    }

    fn step_code(&mut self) {
        let rest = self.rest();
        match rest[0] {
            b'#' => self.at += line_length(rest),
            b'/' if rest.starts_with(b"//") => self.at += line_length(rest),
            b'/' if rest.starts_with(b"/*") => {
                self.at += find(rest, b"*/").map_or(rest.len(), |end| end + 2);
            }
            b'"' => self.enter(Inside::Quoted(self.at), 1),
            b'{' | b'[' | b'(' => self.enter(Inside::Bracket, 1),
            b'}' | b']' | b')' => {
                self.inside.pop();
                self.at += 1;
            }
            b'<' if rest.starts_with(b"<<") => match heredoc_word(&self.text[self.at..]) {
                Some((word, length)) => self.enter(Inside::Heredoc(word), length),
                None => self.at += 2,
            },
            byte => {
                let inside_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80;
                let before = self.at.checked_sub(1).map(|i| self.text.as_bytes()[i]);
                let goes_on = inside_word(byte) && before.is_some_and(inside_word);
                self.tokens += usize::from(!goes_on && !byte.is_ascii_whitespace());
                self.settings += usize::from(byte == b'=' || byte == b':');
                self.at += 1;
            }
        }
    }

    fn step_quoted(&mut self, start: usize) {
        let rest = self.rest();
        match rest[0] {
            b'\\' => self.at += 2,
            b'"' => {
                self.inside.pop();
                self.at += 1;
            }
            // A quoted string ends with its line, whatever the parser would make of it.
            b'\n' => {
                self.inside.pop();
                self.unclosed.push(start);
            }
            _ => self.step_template(rest),
        }
    }

    fn step_heredoc(&mut self, word: &str) {
        let rest = self.rest();
        let line_start = self.at == 0 || self.text.as_bytes()[self.at - 1] == b'\n';
        if line_start {
            let blank = rest.iter().take_while(|b| matches!(b, b' ' | b'\t')).count();
            let after = rest[blank..].strip_prefix(word.as_bytes());
            let word_end = |b: &u8| !b.is_ascii_alphanumeric() && *b != b'_';
            if after.is_some_and(|after| after.first().is_none_or(word_end)) {
                self.inside.pop();
                self.at += blank + word.len();
                return;
            }
        }
        self.step_template(rest);
    }

    fn step_template(&mut self, rest: &[u8]) {
        if rest.starts_with(b"$${") || rest.starts_with(b"%%{") {
            self.at += 3;
        } else if rest.starts_with(b"${") || rest.starts_with(b"%{") {
            self.enter(Inside::Bracket, 2);
        } else {
            self.at += 1;
        }
    }

    fn enter(&mut self, inside: Inside<'t>, length: usize) {
        self.inside.push(inside);
        self.tokens += 1;
        self.at += length;
    }

    fn over(&self) -> bool {
        self.at >= self.text.len()
    }
}

/// Refuses text that would make the recursive parser run deep or long.
pub(crate) fn guard(text: &str) -> Option<Finding> {
    let mut walk = Walk::new(text, 0);
    while !walk.over() {
        let at = walk.at;
        walk.step();
        if walk.inside.len() > MAX_DEPTH {
            let title = format!("nested deeper than {MAX_DEPTH} levels");
            let found = Finding::error("C0004", title).at(&(at..at + 1), "the level too many");
            return Some(found.note("a castle file needs some five levels").help("flatten it"));
        }
        let limit = if walk.settings > MAX_SETTINGS {
            format!("{MAX_SETTINGS} settings")
        } else if walk.tokens > MAX_TOKENS {
            format!("{MAX_TOKENS} words and signs")
        } else {
            continue;
        };
        let found = Finding::error("C0009", format!("more than {limit}"));
        let found = found.at(&(at..at + 1), "the one too many");
        let note = "a castle file needs some sixty settings and five hundred words and signs";
        return Some(found.note(note).help("describe one castle a file"));
    }
    None
}

/// Where quoted strings begin that are not closed on their line.
pub(crate) fn unclosed_quotes(text: &str) -> Vec<usize> {
    let mut walk = Walk::new(text, 0);
    while !walk.over() {
        walk.step();
    }
    walk.unclosed
}

/// Where the bracket or brace stands that was probably left open, if the text ends inside of one: a brace that is
/// closed on another level of indentation than it was opened on has taken the end of another, else the innermost.
pub(crate) fn left_open(text: &str) -> Option<usize> {
    let indent = |at: usize| {
        let line = line_around(text, at);
        let content = &text[line];
        content.len() - content.trim_start().len()
    };
    let mut walk = Walk::new(text, 0);
    let mut open: Vec<usize> = Vec::new();
    let mut suspect = None;
    while !walk.over() {
        let (at, depth) = (walk.at, walk.inside.len());
        walk.step();
        if walk.inside.len() > depth {
            open.push(at);
        } else if walk.inside.len() < depth
            && let Some(opened) = open.pop()
        {
            let before = text[..at].trim_end_matches([' ', '\t']);
            let begins = text.as_bytes()[at] == b'}' && before.ends_with('\n');
            if suspect.is_none() && begins && indent(opened) != indent(at) {
                suspect = Some(opened);
            }
        }
    }
    let last = open.last().copied()?;
    Some(suspect.unwrap_or(last))
}

/// Where the value that begins at `from` ends: the first line end outside of any bracket, string or heredoc.
/// None if it does not end before the text does.
pub(crate) fn value_end(text: &str, from: usize) -> Option<usize> {
    let mut walk = Walk::new(text, from);
    while !walk.over() {
        if walk.inside.is_empty() && matches!(walk.rest()[0], b'\n' | b'}' | b']' | b')') {
            return Some(walk.at);
        }
        walk.step();
    }
    None
}

/// The line around a byte, without its line end.
pub(crate) fn line_around(text: &str, at: usize) -> Range<usize> {
    let at = at.min(text.len());
    let bytes = text.as_bytes();
    let start = bytes[..at].iter().rposition(|b| *b == b'\n').map_or(0, |i| i + 1);
    let end = bytes[at..].iter().position(|b| *b == b'\n').map_or(text.len(), |i| at + i);
    start..end
}

/// The nearest start of a character at or before a byte.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn line_length(rest: &[u8]) -> usize {
    rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len())
}

fn find(rest: &[u8], what: &[u8]) -> Option<usize> {
    rest.windows(what.len()).position(|w| w == what)
}

/// The word of a heredoc that opens here, and how many bytes its opening has.
fn heredoc_word(rest: &str) -> Option<(&str, usize)> {
    let after = rest.strip_prefix("<<")?;
    let after = after.strip_prefix('-').unwrap_or(after);
    let end = after.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')?;
    let opened = after[end..].starts_with('\n') || after[end..].starts_with("\r\n");
    (end > 0 && opened).then(|| (&after[..end], rest.len() - after.len() + end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_in_strings_comments_and_heredocs_do_not_count() {
        let many = "[".repeat(100);
        for text in [
            format!("a = \"{many}\"\n"),
            format!("# {many}\n// {many}\n/* {many}\n{many} */\n"),
            format!("a = <<EOT\n{many}\nEOT\n"),
            format!("a = \"$${}\"\n", "{".repeat(100)),
        ] {
            assert_eq!(guard(&text), None, "{text}");
        }
    }

    #[test]
    fn every_kind_of_nest_is_counted() {
        for (open, place) in [("[", 64), ("{", 64), ("(", 64), ("\"${", 96)] {
            let found = guard(&format!("a = {}", open.repeat(100))).unwrap();
            assert_eq!(found.code, "C0004");
            assert_eq!(found.place.unwrap().start, 4 + place, "{open}");
        }
        assert_eq!(guard(&format!("a = {}{}", "[".repeat(64), "]".repeat(64))), None);
    }

    #[test]
    fn too_many_settings_are_refused() {
        let found = guard(&"a=1\n".repeat(5000)).unwrap();
        assert_eq!((found.code, found.place.unwrap().start), ("C0009", 4 * 4096 + 1));
        let found = guard(&format!("a = [{}", "1,".repeat(1 << 15))).unwrap();
        assert_eq!((found.code, found.place.unwrap().start), ("C0009", 5 + (1 << 16) - 3));
        assert_eq!(guard(&format!("a = \"{}\"", "1,".repeat(1 << 18))), None);
    }

    #[test]
    fn quotes_must_be_closed_on_their_line() {
        assert_eq!(unclosed_quotes("a = \"x\"\nb = \"y\nc = \"${\n1}\"\n# \"\nd = \"\n"), [12, 35]);
    }

    #[test]
    fn the_brace_left_open_is_told_by_indentation() {
        assert_eq!(left_open("a {\n  b {\n    x = 1\n  c {\n  }\n}\n"), Some(8));
        assert_eq!(left_open("a {\n  b {\n  }\n"), Some(2));
        assert_eq!(left_open("a {\n  b {\n"), Some(8));
        assert_eq!(left_open("a {\n  b {\n }\n}\n"), None);
        assert_eq!(left_open("a = [\n"), Some(4));
    }

    #[test]
    fn values_end_where_their_brackets_do() {
        let ends = |text: &str| value_end(text, 3).map(|end| text[3..end].to_owned());
        assert_eq!(ends("a =1\nb"), Some("1".into()));
        assert_eq!(ends("a =[\n1]\nb"), Some("[\n1]".into()));
        assert_eq!(ends("a =\"x\nb"), Some("\"x".into()));
        assert_eq!(ends("a =1 # [\nb"), Some("1 # [".into()));
        assert_eq!(ends("a =[1\nb"), None);
    }
}
