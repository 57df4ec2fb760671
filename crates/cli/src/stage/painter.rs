//! Frames as text for a terminal: what was said, and the picture below it, row by row.
//!
//! Frames are painted on the terminal's other screen, which no terminal breaks anew when it is resized, nor keeps in its
//! scrollback: on the ordinary one a terminal that becomes narrower (tmux) moves half of a picture away to where nobody can
//! clear it. What was said is left on the ordinary screen when the terminal is given back.

use std::fmt::Write;

use castle_view::Style;
use castle_view::plain::News;

use crate::output::{fold, seen};

/// Shows nothing of a frame before it is whole, where the terminal can.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";

/// Takes the other screen, without a cursor; what is too long is cut, not broken: the terminal may have become narrower a
/// moment ago.
pub(super) const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";

/// Back to the ordinary screen, as it was. A terminal that has no other one is cleared of the picture.
pub(super) const LEAVE: &str = "\x1b[?2026l\x1b[H\x1b[J\x1b[?7h\x1b[?25h\x1b[?1049l";

const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
const PLAIN: &str = "\x1b[0m";

/// What stands on the terminal, and what was said since it was taken.
#[derive(Debug, Default)]
pub(super) struct Painter {
    style: Style,
    said: Vec<Said>,
    shown: Option<(Vec<String>, (usize, usize))>,
}

/// What was said, not yet laid out: each frame is as wide as the terminal is then.
#[derive(Debug)]
enum Said {
    Line(String),
    News(News),
}

impl Painter {
    /// A painter who has said nothing yet.
    pub(super) fn new(style: Style) -> Self {
        Self { style, ..Self::default() }
    }

    /// Takes in what is said above the picture.
    pub(super) fn hear(&mut self, text: &str) {
        let lines = text.trim_end_matches('\n').split('\n');
        self.said.extend(lines.map(|line| Said::Line(line.to_owned())));
    }

    /// Takes in what is told of an event.
    pub(super) fn hear_news(&mut self, news: News) {
        self.said.push(Said::News(news));
    }

    /// How many lines a picture may have on a screen of this size: what was said last stays in sight.
    pub(super) fn room(&self, (columns, rows): (usize, usize)) -> usize {
        rows - self.last(columns, rows / 4).len()
    }

    /// The text that makes the screen show what was said last and `picture` below it; none if it does already.
    pub(super) fn frame(&mut self, picture: &[String], size: (usize, usize)) -> Option<String> {
        let rows = self.rows(picture, size);
        let before = self.shown.take().filter(|(_, before)| *before == size);
        let before = before.map(|(rows, _)| rows);
        let mut text = String::new();
        for (index, row) in rows.iter().enumerate() {
            if before.as_ref().and_then(|before| before.get(index)) != Some(row) {
                // Behind a row as wide as the screen the cursor stands on its last character: clearing from there would eat it.
                write!(text, "\x1b[{};1H{CLEAR_LINE}{row}", index + 1).ok();
            }
        }
        let lower = before.as_ref().is_none_or(|before| before.len() > rows.len());
        if lower && rows.len() < size.1 {
            write!(text, "\x1b[{};1H{CLEAR_BELOW}", rows.len() + 1).ok();
        }
        self.shown = Some((rows, size));
        (!text.is_empty()).then(|| format!("{BEGIN}{text}{END}"))
    }

    /// Forgets the screen, and gives what is to be left on the terminal.
    pub(super) fn leave(&mut self, columns: usize) -> String {
        self.shown = None;
        let said = std::mem::take(&mut self.said);
        let lines = said.iter().flat_map(|said| self.within(said, columns));
        lines.map(|line| line + "\r\n").collect()
    }

    fn rows(&self, picture: &[String], (columns, rows): (usize, usize)) -> Vec<String> {
        let picture = &picture[..picture.len().min(rows)];
        let room = rows - picture.len();
        let mut shown = self.last(columns, room);
        shown.extend_from_slice(picture);
        shown
    }

    /// So many of the last lines that were said.
    fn last(&self, columns: usize, room: usize) -> Vec<String> {
        let last = &self.said[self.said.len().saturating_sub(room)..];
        let mut lines: Vec<String> =
            last.iter().flat_map(|said| self.within(said, columns)).collect();
        lines.drain(..lines.len().saturating_sub(room));
        lines
    }

    /// What was said, in as many lines as it takes.
    fn within(&self, said: &Said, columns: usize) -> Vec<String> {
        let line = match said {
            Said::Line(line) => line,
            Said::News(news) => {
                let laid = news.lay(Style { width: columns, ..self.style });
                return laid.lines().map(str::to_owned).collect();
            }
        };
        if seen(line) <= columns {
            return vec![line.clone()];
        }
        let painted = if line.contains('\x1b') { PLAIN } else { "" };
        fold(line, columns).lines().map(|line| format!("{line}{painted}")).collect()
    }
}

#[cfg(test)]
mod tests;
