//! Text to syntax tree: the limits first, then the parser, which goes on after a broken line to find the next one.

use std::ops::Range;

use hcl_edit::structure::Body;

use crate::finding::{Finding, Findings};
use crate::limits::{MAX_BYTES, REPARSED_BYTES};
use crate::scan::{boundary, guard, left_open, line_around, unclosed_quotes, value_end};

/// How many mistakes of syntax are taken out to find the next.
const MENDED: usize = 64;
/// How many lines before an error the beginning of its value is looked for.
const LINES_BACK: usize = 20;

/// A syntax tree whose spans are those of the original text.
pub(crate) struct Tree {
    /// The tree, with a placeholder in the place of each broken value.
    pub(crate) body: Body,
    /// Where broken values stood; a finding was made for each.
    pub(crate) broken: Vec<Range<usize>>,
    /// Where whole broken lines stood, so that nothing may be called missing around them.
    pub(crate) lost: Vec<usize>,
}

/// The text, if it is text that the parser may see.
pub(crate) fn readable<'t>(bytes: &'t [u8], findings: &mut Findings) -> Option<&'t str> {
    if bytes.len() > MAX_BYTES {
        let title = format!("the castle file has more than {MAX_BYTES} bytes");
        findings.add(
            Finding::error("C0001", title)
                .note("a castle file has a few thousand")
                .help("check that this is the castle file; keep manifests in folders of their own"),
        );
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let at = error.valid_up_to();
            let title = format!("the castle file is not UTF-8: byte {at} (0x{:02x})", bytes[at]);
            let found = Finding::error("C0002", title).at(&(at..at + 1), "not UTF-8 from here");
            findings.add(found.help("save the file as UTF-8"));
            return None;
        }
    };
    if let Some(at) = bytes.iter().position(|b| *b == 0) {
        let title = format!("the castle file holds a NUL at byte {at}");
        let found = Finding::error("C0003", title).at(&(at..at + 1), "a NUL");
        findings.add(found.note("it is not a text file, or was cut by a crash").help("remove it"));
        return None;
    }
    if let Some(found) = guard(text) {
        findings.add(found);
        return None;
    }
    Some(text)
}

/// Parses the text. After a syntax error the broken value or line is taken out and the rest parsed again, so
/// that one slip does not hide the others. None if there is no way to go on.
pub(crate) fn parse(text: &str, findings: &mut Findings) -> Option<Tree> {
    let mut working = text.to_owned();
    if working.starts_with('\u{feff}') {
        working.replace_range(..'\u{feff}'.len_utf8(), "   ");
    }
    let (mut broken, mut lost) = (Vec::new(), Vec::new());
    for (index, at) in unclosed_quotes(text).into_iter().enumerate() {
        findings.add(
            Finding::error("C0005", "a quote that is not closed")
                .at(&(at..line_around(text, at).end), "opened here")
                .note("a quoted text ends on its line; only a heredoc (<<EOT) has several")
                .help("close the quote"),
        );
        if index > MENDED {
            return None;
        }
        // Two of them in one value are one mistake to mend.
        if !broken.iter().any(|b: &Range<usize>| b.contains(&at)) {
            match mend(&mut working, at, "")? {
                Mended::Value(range) => broken.push(range),
                Mended::Line(at) => lost.push(at),
            }
        }
    }
    let tries = (REPARSED_BYTES / text.len().max(1)).clamp(1, MENDED);
    for _ in 0..=tries {
        let error = match hcl_edit::parser::parse_body(&working) {
            Ok(body) => return Some(Tree { body, broken, lost }),
            Err(error) => error,
        };
        let at = boundary(text, error.location().offset());
        findings.add(syntax_finding(text, at, error.message()));
        match mend(&mut working, at, error.message())? {
            Mended::Value(range) => broken.push(range),
            Mended::Line(at) => lost.push(at),
        }
    }
    None
}

enum Mended {
    Value(Range<usize>),
    Line(usize),
}

/// Takes the broken value or line out of the text without moving anything else.
fn mend(text: &mut String, at: usize, message: &str) -> Option<Mended> {
    let line = line_around(text, at);
    let Some(Setting { start, from, to }) = setting_around(text, at) else {
        // A line without brackets or quotes can go without taking its neighbours with it.
        let content = &text[line.clone()];
        let alone = !content.contains(['{', '}', '[', ']', '(', ')', '"', '<', '*']);
        let indent = content.find(|c: char| !c.is_whitespace())?;
        return alone.then(|| take_out(text, line.start + indent..line.end, None));
    };
    // The placeholder needs a byte; a value that is not there has none.
    let value = text[from..to].find(|c: char| !c.is_whitespace()).map(|skip| from + skip);
    Some(match value {
        Some(value) if !message.contains("redefined attribute") => {
            take_out(text, value..to, Some("0"))
        }
        _ => take_out(text, start..to, None),
    })
}

/// Where a setting begins, and where its value does and ends.
struct Setting {
    start: usize,
    from: usize,
    to: usize,
}

/// The setting whose value holds the byte: on its line, or on one of the lines before if the value has several.
fn setting_around(text: &str, at: usize) -> Option<Setting> {
    let mut line = line_around(text, at);
    let last = line.end;
    for back in 0..LINES_BACK {
        let content = &text[line.clone()];
        let equals = content.find('=').filter(|equals| {
            let key = content[..*equals].trim();
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
        });
        if let Some(equals) = equals {
            let start = line.start + content.len() - content.trim_start().len();
            let from = line.start + equals + 1;
            let to = value_end(text, from).filter(|to| *to >= from);
            return match to {
                Some(to) if back == 0 || to >= at => Some(Setting { start, from, to }),
                None if back == 0 => Some(Setting { start, from, to: last }),
                _ => None,
            };
        }
        line = line_around(text, line.start.checked_sub(1)?);
    }
    None
}

fn take_out(text: &mut String, range: Range<usize>, placeholder: Option<&str>) -> Mended {
    let width = range.len();
    let placeholder_text = placeholder.unwrap_or_default();
    let blank = " ".repeat(width - placeholder_text.len());
    text.replace_range(range.clone(), &(placeholder_text.to_owned() + &blank));
    match placeholder {
        Some(_) => Mended::Value(range),
        None => Mended::Line(range.start),
    }
}

fn syntax_finding(text: &str, at: usize, message: &str) -> Finding {
    let line = line_around(text, at);
    let token = text[at.min(text.len())..line.end]
        .find(|c: char| c.is_whitespace())
        .map_or(line.end, |end| at + end);
    // Past the last byte, or on the line end: point at the byte before.
    let range = if token > at { at..token } else { line.start.max(at.saturating_sub(1))..at };
    let at_end = text[at.min(text.len())..].trim().is_empty();
    if let Some(open) = at_end.then(|| left_open(text)).flatten() {
        return open_finding(text, open);
    }
    if message.contains("redefined attribute") {
        let key: String =
            text[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        return Finding::error("C0106", format!("`{key}` is set twice"))
            .at(&(at..at + key.len()), "the second time")
            .note("only one value can hold, and the file does not say which")
            .help("remove one of the two");
    }
    if message.contains("nesting depth") || message.contains("chained binary operators") {
        return Finding::error("C0004", "an expression that is too deep")
            .at(&range, "the level too many")
            .note(format!("the parser says: {message}"))
            .help("write it shorter");
    }
    let unit = text[..at.min(text.len())].ends_with(|c: char| c.is_ascii_digit());
    let help = if unit && text[range.clone()].starts_with(|c: char| c.is_ascii_alphabetic()) {
        "put quotes around the value, such as \"8GiB\""
    } else {
        "check quotes, brackets and commas here and on the line before"
    };
    Finding::error("C0005", "this is not HCL")
        .at(&range, "here")
        .note(format!("the parser says: {message}"))
        .help(help)
}

/// The finding about a brace or bracket that nothing closes.
fn open_finding(text: &str, open: usize) -> Finding {
    let line = line_around(text, open);
    let start = line.start + text[line.clone()].len() - text[line].trim_start().len();
    let word = text[start..open].split(|c: char| !c.is_alphanumeric() && c != '_').next();
    let is_block = text[open..].starts_with('{') && !text[start..open].contains('=');
    let title = match word {
        Some(word) if is_block && !word.is_empty() => format!("the block `{word}` is not closed"),
        _ => "a bracket that is not closed".to_owned(),
    };
    Finding::error("C0005", title)
        .at(&(start..open + 1), "opened here")
        .note("the file ends before it is closed")
        .help("close it where it ends; if it looks closed, a bracket further down is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes(text: &str) -> (bool, Vec<(&'static str, usize, usize)>) {
        let mut findings = Findings::default();
        let tree = parse(text, &mut findings);
        let list = findings.finish("castle.hcl", text.as_bytes());
        let place = |f: &Finding| f.place.map_or((0, 0), |p| (p.line, p.column));
        (tree.is_some(), list.iter().map(|f| (f.code, place(f).0, place(f).1)).collect())
    }

    #[test]
    fn one_broken_line_does_not_hide_the_next() {
        let text = "a {\n  memory = 8GiB\n  cores =\n  disk = \"x\n  b = [1\n 2]\n  ok = 1\n}\n";
        let expected = [("C0005", 2, 13), ("C0005", 3, 9), ("C0005", 4, 10), ("C0005", 6, 2)];
        assert_eq!(codes(text), (true, expected.to_vec()));
        let text = "a = 1\na = [\n2]\nwhat now\n";
        assert_eq!(codes(text), (true, vec![("C0106", 2, 1), ("C0005", 4, 8)]));
    }

    #[test]
    fn an_unclosed_block_ends_the_search() {
        assert_eq!(codes("a {\n  b = 1\n").1.len(), 1);
        assert!(!codes("a {\n  b = 1\n").0);
    }

    #[test]
    fn a_byte_order_mark_is_passed_over() {
        assert_eq!(codes("\u{feff}a = 1\n"), (true, vec![]));
    }
}
