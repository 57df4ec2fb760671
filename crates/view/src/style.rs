//! How text is laid out: width, colour, and the cleaning of what other systems say.

/// Whether colour is used. Colour never carries meaning alone: the words are the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Plain text.
    None,
    /// ANSI escape codes.
    Ansi,
}

/// What a piece of text is about, for the palette.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    Quiet,
    Good,
    Wait,
    Bad,
    Title,
}

/// How wide and how coloured the text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the screen.
    pub width: usize,
    /// Its colours.
    pub palette: Palette,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, palette: Palette::None }
    }
}

/// The narrowest text column worth wrapping in; below it, lines run on.
const NARROWEST: usize = 24;

impl Style {
    /// Colours a piece of text.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        let code = match (self.palette, tone) {
            (Palette::None, _) => return text.to_owned(),
            (Palette::Ansi, Tone::Quiet) => "2",
            (Palette::Ansi, Tone::Good) => "32",
            (Palette::Ansi, Tone::Wait) => "33",
            (Palette::Ansi, Tone::Bad) => "31",
            (Palette::Ansi, Tone::Title) => "1",
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }

    /// Lays `text` out behind `prefix`, going on under its own beginning.
    ///
    /// `text` may be painted only by `tone`, since width is counted before the paint.
    pub(crate) fn hang(self, prefix: &str, text: &str, tone: Option<Tone>) -> String {
        let indent = prefix.chars().count();
        let room = self.width.saturating_sub(indent).max(NARROWEST);
        let paint =
            |line: &str| tone.map_or_else(|| line.to_owned(), |tone| self.paint(tone, line));
        let lines: Vec<String> = wrap(&clean(text), room).iter().map(|line| paint(line)).collect();
        format!("{prefix}{}", lines.join(&format!("\n{}", " ".repeat(indent))))
    }
}

/// Text from elsewhere on one line, without anything a terminal could obey.
#[must_use]
pub fn clean(text: &str) -> String {
    let hidden = |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let visible = text.chars().map(|c| match c {
        '\n' | '\r' | '\t' => ' ',
        c if c.is_control() || hidden(c) => '\u{fffd}',
        c => c,
    });
    visible.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Breaks text between words; a word that no line can hold is broken with `…`, unless it is a fingerprint, which is
/// there to be copied: a terminal breaks it without a mark.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > room {
            lines.push(String::new());
            used = 0;
        }
        let copied = word.iter().filter(|c| **c == ':').count() == 31;
        while word.len() > room && !copied {
            let rest = word.split_off(room - 1);
            let full: String = word.into_iter().chain(['…']).collect();
            if let Some(line) = lines.last_mut() {
                line.push_str(&full);
            }
            lines.push(String::new());
            word = rest;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            used += word.len();
            line.extend(word);
        }
    }
    lines
}

/// A table: the first column to the left, the others as `left` says, two spaces between.
pub(crate) fn table(rows: &[Vec<String>], left: &[bool]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let room = widths[column];
            if column > 0 {
                line.push_str("  ");
            }
            let padded = if left.get(column).copied().unwrap_or(false) {
                format!("{cell:<room$}")
            } else {
                format!("{cell:>room$}")
            };
            line.push_str(&padded);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// `1 step`, `2 steps`.
#[must_use]
pub fn count(number: usize, what: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {what}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_unless_no_line_holds_them() {
        let style = Style { width: 30, ..Style::default() };
        let text = "waiting for UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam: of pve";
        insta::assert_snapshot!(style.hang("[ 0:01] ", text, None), @"
        [ 0:01] waiting for
                UPID:pve:0003D3F1:0A2B5…
                C7D:69ABCDEF:qmcreate:4…
                21:root@pam: of pve
        ");
    }

    #[test]
    fn nothing_from_elsewhere_commands_the_terminal() {
        let nasty = "a\u{1b}[31mb\u{7}\r\nc\u{202e}d\te";
        assert_eq!(clean(nasty), "a\u{fffd}[31mb\u{fffd} c\u{fffd}d e");
        let shown = Style::default().hang("> ", nasty, None);
        assert!(!shown.contains('\u{1b}'));
    }

    #[test]
    fn colour_changes_no_word() {
        let style = Style { width: 40, palette: Palette::Ansi };
        let painted =
            style.hang("x ", "some words that are longer than one line is", Some(Tone::Bad));
        let bare = painted.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        let plain = Style { width: 40, palette: Palette::None };
        assert_eq!(bare, plain.hang("x ", "some words that are longer than one line is", None));
        assert_ne!(bare, painted);
    }
}
