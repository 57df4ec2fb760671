//! Bars: of a run, of a step whose length is known, and of a download that no run has.

use super::WIDE;
use crate::style::{Signs, Style, amount, columns, cut, so_far};

/// Marks of a bar; screens that are narrower than [`WIDE`] get half of them.
const BAR: u64 = 20;

/// How many marks a bar has on such a screen.
pub(super) fn length(style: Style) -> u64 {
    if style.width < WIDE { BAR / 2 } else { BAR }
}

/// The marks of a bar: those that are full, and the rest.
pub(super) fn marks(signs: Signs, width: u64, done: u64, of: u64) -> (String, String) {
    let full = done.saturating_mul(width).checked_div(of).unwrap_or(0).min(width);
    let times = |sign: &str, count: u64| sign.repeat(usize::try_from(count).unwrap_or(0));
    (times(signs.pick("█", "#"), full), times(signs.pick("░", "."), width - full))
}

/// How far a download of a name has come, in one line that leaves the last column free: a bar where its length is known.
#[must_use]
pub fn download(name: &str, done: u64, total: Option<u64>, style: Style) -> String {
    let room = style.width.saturating_sub(1);
    let tail = match total.filter(|total| *total > 0) {
        Some(total) => {
            let (full, rest) = marks(style.signs, length(style), done, total);
            format!("{full}{rest} {}", amount(done, total))
        }
        None => so_far(done),
    };
    let name = cut(name, room.saturating_sub(columns(&tail) + 2), style.signs);
    cut(&format!("{name}: {tail}"), room, style.signs)
}
