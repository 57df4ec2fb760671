//! How text is laid out: width, colour, and the cleaning of what other systems say.

/// Whether colour is used. Colour never carries meaning alone: the words are the same without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Palette {
    /// Plain text.
    None,
    /// ANSI escape codes.
    Ansi,
}

/// Which signs a screen can show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Signs {
    /// Those of Unicode.
    #[default]
    Unicode,
    /// Those of ASCII alone, for a locale that knows no others.
    Ascii,
}

impl Signs {
    /// The sign, or what stands for it in ASCII.
    pub(crate) fn pick(self, sign: &'static str, plain: &'static str) -> &'static str {
        match self {
            Self::Unicode => sign,
            Self::Ascii => plain,
        }
    }
}

/// What a piece of text is about. A face may show it by a colour, beside the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Of little interest now.
    Quiet,
    /// Done well.
    Good,
    /// Not there yet, or worth a look.
    Wait,
    /// Failed, or destroys something.
    Bad,
    /// What the rest is about.
    Title,
}

/// A piece of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// What it says, cleaned.
    pub text: String,
    /// What it is about, if anything is to be said beside the words.
    pub tone: Option<Tone>,
}

impl Span {
    pub(crate) fn new(text: impl Into<String>, tone: Option<Tone>) -> Self {
        Self { text: text.into(), tone }
    }
}

/// One line of a screen, without its end.
pub type Line = Vec<Span>;

/// How wide and how coloured the text may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Columns of the screen.
    pub width: usize,
    /// Its colours.
    pub palette: Palette,
    /// Its signs.
    pub signs: Signs,
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 80, palette: Palette::None, signs: Signs::Unicode }
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

    /// One line as text for a terminal.
    #[must_use]
    pub fn line(self, line: &[Span]) -> String {
        let painted = |span: &Span| match span.tone {
            Some(tone) => self.paint(tone, &span.text),
            None => span.text.clone(),
        };
        line.iter().map(painted).collect()
    }

    /// Lays `text` out behind `prefix`, going on under its own beginning.
    ///
    /// `text` may be painted only by `tone`, since width is counted before the paint.
    pub(crate) fn hang(self, prefix: &str, text: &str, tone: Option<Tone>) -> String {
        let indent = prefix.chars().count();
        let room = self.width.saturating_sub(indent).max(NARROWEST);
        let paint =
            |line: &str| tone.map_or_else(|| line.to_owned(), |tone| self.paint(tone, line));
        let mut laid = prefix.to_owned();
        let mut lines = whole(&clean(text), room);
        // Where nothing stands before it, even the longest word is at the beginning.
        lines.retain(|line| !line.is_empty() || !prefix.is_empty());
        for (number, line) in lines.iter().enumerate() {
            if number > 0 {
                // What no line holds begins further to the left.
                let long = columns(line);
                let indent =
                    if long > room { indent.min(self.width.saturating_sub(long)) } else { indent };
                laid.truncate(laid.trim_end_matches(' ').len());
                laid.push('\n');
                laid.push_str(&" ".repeat(indent));
            }
            laid.push_str(&paint(line));
        }
        laid
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

/// How many columns of a terminal a character takes.
fn columns_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

/// How many columns of a terminal a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text in so many columns at most; what is cut off is marked.
pub(crate) fn cut(text: &str, room: usize, signs: Signs) -> String {
    if columns(text) <= room {
        return text.to_owned();
    }
    let mark = signs.pick("…", "~");
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        used += columns_of(c);
        if used + 1 > room {
            break;
        }
        kept.push(c);
    }
    if room > 0 {
        kept.truncate(kept.trim_end().len());
        kept.push_str(mark);
    }
    kept
}

/// The text at the left of a column that is so wide.
pub(crate) fn pad(text: &str, width: usize, signs: Signs) -> String {
    let mut text = cut(text, width, signs);
    text.extend(std::iter::repeat_n(' ', width.saturating_sub(columns(&text))));
    text
}

/// The words of a text between its single spaces; what stands in backquotes is there to be copied, and is one word.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let all = rest?;
        let mut quoted = false;
        let end = all.char_indices().find(|(at, c)| {
            // A backquote that nobody closes is one sign like any other.
            if *c == '`' {
                quoted = !quoted && all[at + 1..].contains('`');
            }
            *c == ' ' && !quoted
        });
        let (word, after) = match end {
            Some((at, _)) => (&all[..at], Some(&all[at + 1..])),
            None => (all, None),
        };
        rest = after;
        Some(word)
    })
}

/// Breaks text between words. A word that no line can hold (an address, a digest) is there to be copied: it gets a line of its
/// own, and a terminal breaks that without a mark.
pub(crate) fn whole(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words(text) {
        let long = columns(word);
        let full = if used == 0 { long > room } else { used + 1 + long > room };
        if full {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            used += long;
            line.push_str(word);
        }
    }
    lines
}

/// Breaks text between words, for a screen that holds so many columns and no more; a word that no line can hold is broken
/// with `…`.
pub(crate) fn wrap(text: &str, room: usize, signs: Signs) -> Vec<String> {
    let mark = signs.pick("…", "~");
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + word.len() > room {
            lines.push(String::new());
            used = 0;
        }
        while word.len() > room {
            let rest = word.split_off(room - 1);
            let full: String = word.into_iter().chain(mark.chars()).collect();
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

/// So much of a whole, in the unit that fits the whole.
pub(crate) fn amount(done: u64, total: u64) -> String {
    let (unit, bits) = if total >= 1 << 20 { ("MiB", 20) } else { ("KiB", 10) };
    let whole = total.div_ceil(1 << bits);
    // What is complete reads so, whatever its last part is.
    let part = if done >= total { whole } else { done >> bits };
    format!("{part} of {whole} {unit}")
}

/// So much, of nobody knows how much.
pub(crate) fn so_far(done: u64) -> String {
    let (unit, bits) = if done >= 1 << 20 { ("MiB", 20) } else { ("KiB", 10) };
    format!("{} {unit}", done >> bits)
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
    fn what_no_line_holds_can_be_copied() {
        let style = Style { width: 60, ..Style::default() };
        let text = "Flux owns what the cluster hosts, at main@sha1:169e9dab55f570a4a4b503ae833fae8cfa4fb9a2; castle only observes";
        insta::assert_snapshot!(style.hang("handover: ", text, None), @"
        handover: Flux owns what the cluster hosts, at
                 main@sha1:169e9dab55f570a4a4b503ae833fae8cfa4fb9a2;
                  castle only observes
        ");
        let digest = "0123456789abcdef".repeat(4);
        insta::assert_snapshot!(style.hang("sha256: ", &digest, None), @"
        sha256:
        0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
        ");
        assert_eq!(style.hang("", &digest, None), digest);
    }

    #[test]
    fn a_command_is_one_word() {
        let told = |text| words(text).collect::<Vec<_>>();
        assert_eq!(
            told("then `kill -INT 14630`, or a `b"),
            ["then", "`kill -INT 14630`,", "or", "a", "`b"]
        );
        assert_eq!(told("(`a b`) `c`"), ["(`a b`)", "`c`"]);
        assert_eq!(told(" a  b "), ["", "a", "", "b", ""]);
    }

    #[test]
    fn words_stay_whole_unless_no_line_holds_them() {
        let style = Style { width: 30, ..Style::default() };
        let text = "waiting for UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam: of pve";
        insta::assert_snapshot!(style.hang("[ 0:01] ", text, None), @"
        [ 0:01] waiting for
        UPID:pve:0003D3F1:0A2B5C7D:69ABCDEF:qmcreate:421:root@pam:
                of pve
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
    fn what_is_too_long_is_cut_by_columns_and_marked() {
        assert_eq!(cut("abcdef", 6, Signs::Unicode), "abcdef");
        assert_eq!(cut("abcdef", 5, Signs::Unicode), "abcd…");
        assert_eq!(cut("abcdef", 5, Signs::Ascii), "abcd~");
        assert_eq!(cut("ab cdef", 4, Signs::Unicode), "ab…");
        assert_eq!(cut("abcdef", 0, Signs::Unicode), "");
        // Two columns each, and an accent that takes none.
        assert_eq!(cut("城堡城堡", 5, Signs::Unicode), "城堡…");
        assert_eq!(columns("cafe\u{301}"), 4);
        assert_eq!(pad("城", 4, Signs::Unicode), "城  ");
    }

    #[test]
    fn colour_changes_no_word() {
        let style = Style { width: 40, palette: Palette::Ansi, ..Style::default() };
        let painted =
            style.hang("x ", "some words that are longer than one line is", Some(Tone::Bad));
        let bare = painted.replace("\u{1b}[31m", "").replace("\u{1b}[0m", "");
        let plain = Style { width: 40, ..Style::default() };
        assert_eq!(bare, plain.hang("x ", "some words that are longer than one line is", None));
        assert_ne!(bare, painted);
    }
}
