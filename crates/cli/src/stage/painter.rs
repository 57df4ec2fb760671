//! Frames as text for a terminal: what scrolls away above, and the picture below it, in one piece.
//!
//! At rest the cursor stands at the first column of the picture's first line, and everything below is the picture's.
//! Terminals keep the cursor with its text when they are resized and break lines anew; so however many lines the picture
//! has become, the next frame begins where it began, and clears what is left below: nothing torn stays behind.

use std::fmt::Write;

/// Shows nothing of a frame before it is whole, where the terminal can.
const BEGIN: &str = "\x1b[?2026h";
pub(super) const END: &str = "\x1b[?2026l";

const HIDE_CURSOR: &str = "\x1b[?25l";
pub(super) const SHOW_CURSOR: &str = "\x1b[?25h";

/// Cuts what is too long instead of breaking it: a terminal may have become narrower a moment ago.
const NO_WRAP: &str = "\x1b[?7l";
pub(super) const WRAP: &str = "\x1b[?7h";

const CLEAR_LINE: &str = "\x1b[K";
pub(super) const CLEAR_BELOW: &str = "\x1b[J";

/// What stands on the terminal.
#[derive(Debug, Default)]
pub(super) struct Painter {
    drawn: Option<(Vec<String>, (usize, usize))>,
}

impl Painter {
    /// The text that lets `log` scroll away above and shows `picture`; none if it is there already.
    pub(super) fn frame(
        &mut self,
        log: &[String],
        picture: &[String],
        size: (usize, usize),
    ) -> Option<String> {
        let same = |(lines, drawn): &(Vec<String>, (usize, usize))| {
            lines.as_slice() == picture && *drawn == size
        };
        if log.is_empty() && self.drawn.as_ref().is_some_and(same) {
            return None;
        }
        let mut text = format!("{BEGIN}{HIDE_CURSOR}\r");
        scroll(&mut text, log);
        text.push_str(NO_WRAP);
        for (index, line) in picture.iter().enumerate() {
            let end = if index == 0 { "" } else { "\r\n" };
            write!(text, "{end}{line}{CLEAR_LINE}").ok();
        }
        write!(text, "{CLEAR_BELOW}{WRAP}\r").ok();
        if picture.len() > 1 {
            write!(text, "\x1b[{}A", picture.len() - 1).ok();
        }
        text.push_str(END);
        self.drawn = Some((picture.to_vec(), size));
        Some(text)
    }

    /// The text that takes the picture away, with the last lines that scroll.
    pub(super) fn leave(&mut self, log: &[String]) -> Option<String> {
        let drawn = self.drawn.take().is_some();
        if log.is_empty() && !drawn {
            return None;
        }
        let mut text = String::new();
        if drawn {
            write!(text, "{BEGIN}\r{CLEAR_BELOW}").ok();
        }
        scroll(&mut text, log);
        if drawn {
            write!(text, "{SHOW_CURSOR}{END}").ok();
        }
        Some(text)
    }
}

/// Lines that stay where the picture was, which moves down.
fn scroll(text: &mut String, log: &[String]) {
    if !log.is_empty() {
        text.push_str(CLEAR_BELOW);
    }
    for line in log.iter().flat_map(|said| said.trim_end_matches('\n').split('\n')) {
        write!(text, "{line}\r\n").ok();
    }
}

#[cfg(test)]
mod tests;
