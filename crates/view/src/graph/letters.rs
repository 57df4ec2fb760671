//! How wide text is before anybody has drawn it: by the widest of the usual typefaces, so that it fits with any.

/// Thousandths of the size for each printable character of ASCII, from the space on.
const WIDTHS: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, // to /
    636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, // to ?
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787, // to O
    603, 787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500, // to _
    500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612, // to o
    635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838, // to ~
];

/// What bold letters are wider by, in percent.
const BOLD: u64 = 13;

/// How letters are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Font {
    /// In tenths of a pixel.
    pub(super) size: u64,
    pub(super) bold: bool,
}

impl Font {
    /// The width of a text in pixels.
    pub(super) fn width(self, text: &str) -> i64 {
        let one = |c: char| -> u64 {
            let known = u32::from(c).checked_sub(32).and_then(|at| WIDTHS.get(at as usize));
            known.map_or(1000, |width| u64::from(*width))
        };
        let percent = if self.bold { 100 + BOLD } else { 100 };
        let sum: u64 = text.chars().map(one).sum();
        i64::try_from((sum * self.size * percent).div_ceil(1_000_000)).unwrap_or(i64::MAX)
    }

    /// The text in at most so many lines of a width; what is left out is marked by `…`.
    pub(super) fn lines(self, text: &str, width: i64, most: usize) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        let mut pieces = pieces(text).peekable();
        while pieces.peek().is_some() && lines.len() < most {
            let last = lines.len() + 1 == most;
            let mut line = String::new();
            while let Some(piece) = pieces.peek() {
                let longer = format!("{line}{piece}");
                if !line.is_empty() && self.width(longer.trim_end()) > width {
                    break;
                }
                line = longer;
                pieces.next();
            }
            let more = last && pieces.peek().is_some();
            lines.push(self.cut(line.trim_end(), width, more));
        }
        lines
    }

    /// As much of a line as fits, with a mark if anything is missing.
    fn cut(self, line: &str, width: i64, more: bool) -> String {
        if self.width(line) <= width && !more {
            return line.to_owned();
        }
        let mut kept: String = line.to_owned();
        while !kept.is_empty() && self.width(&format!("{kept}…")) > width {
            kept.pop();
        }
        format!("{}…", kept.trim_end())
    }
}

/// A word that is longer than this may be broken behind the marks in it.
const LONG: usize = 16;

/// Where a text may be broken: behind spaces, and in long words behind the marks of addresses.
fn pieces(text: &str) -> impl Iterator<Item = String> {
    let broken = |word: &str| -> Vec<String> {
        if word.chars().count() <= LONG {
            return vec![word.to_owned()];
        }
        let mut pieces = vec![String::new()];
        let mut before = ' ';
        for c in word.chars() {
            if matches!(before, '/' | '-') && !matches!(c, '/' | '-' | ' ') {
                pieces.push(String::new());
            }
            if let Some(piece) = pieces.last_mut() {
                piece.push(c);
            }
            before = c;
        }
        pieces
    };
    text.split_inclusive(' ').flat_map(broken).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FONT: Font = Font { size: 100, bold: false };

    #[test]
    fn text_is_broken_where_it_may_be_and_cut_where_it_must_be() {
        assert_eq!(
            FONT.lines("what https://example.com/a-long-name holds", 90, 3),
            ["what https://", "example.com/a-", "long-name holds"]
        );
        assert_eq!(FONT.lines("one etcd on every control plane", 90, 1), ["one etcd on…"]);
        assert_eq!(FONT.lines("", 90, 2), [""; 0]);
        assert!(FONT.width("WWWW") > FONT.width("iiii"));
        assert!(Font { bold: true, ..FONT }.width("etcd") > FONT.width("etcd"));
    }
}
