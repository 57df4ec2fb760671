//! Rows with their columns under each other, as wide as the screen and no wider.

use std::cmp::Reverse;

use crate::style::{columns, whole};

/// The narrowest column that text is broken for.
const NARROWEST: usize = 4;

/// A table: the first column to the left, the others as `left` says, two spaces between.
pub(crate) fn table(rows: &[Vec<String>], left: &[bool], width: usize) -> String {
    laid(rows, left, width).into_iter().flat_map(|row| [row, "\n".to_owned()]).collect()
}

/// The rows of a table, two spaces between its columns, which stand to the left or to the right; each in as many lines as it takes: where the screen is too narrow, a cell goes on below its beginning. What
/// can not be broken sticks out of its column, and what follows it stands in the next line.
#[must_use]
pub fn laid(rows: &[Vec<String>], left: &[bool], width: usize) -> Vec<String> {
    let left = |column: usize| left.get(column).copied().unwrap_or(false);
    let widths = widths(rows, &left, width);
    let starts: Vec<usize> = (0..widths.len())
        .map(|column| widths[..column].iter().map(|width| width + 2).sum())
        .collect();
    let one = |row: &Vec<String>| {
        let pieces: Vec<Vec<String>> =
            row.iter().zip(&widths).map(|(cell, room)| pieces(cell, *room)).collect();
        let mut lines = vec![String::new()];
        for depth in 0..pieces.iter().map(Vec::len).max().unwrap_or(0) {
            for (column, pieces) in pieces.iter().enumerate() {
                let Some(piece) = pieces.get(depth).filter(|piece| !piece.is_empty()) else {
                    continue;
                };
                // All lines of a cell begin below each other, also where they have no room in its column.
                let longest = pieces.iter().map(|piece| columns(piece)).max().unwrap_or(0);
                let aside = if left(column) { 0 } else { widths[column].saturating_sub(longest) };
                let at = (starts[column] + aside).min(width.saturating_sub(longest));
                put(&mut lines, piece, at);
            }
            lines.push(String::new());
        }
        lines.retain(|line| !line.is_empty());
        lines.join("\n")
    };
    rows.iter().map(one).collect()
}

/// Writes a piece into the last line, or into a new one if that reaches so far already.
fn put(lines: &mut Vec<String>, piece: &str, at: usize) {
    let reached = lines.last().map_or(0, |line| columns(line));
    if reached > 0 && reached >= at {
        lines.push(String::new());
    }
    if let Some(line) = lines.last_mut() {
        line.extend(std::iter::repeat_n(' ', at - columns(line)));
        line.push_str(piece);
    }
}

/// A cell in lines that are so wide.
fn pieces(cell: &str, room: usize) -> Vec<String> {
    if columns(cell) <= room {
        return vec![cell.to_owned()];
    }
    whole(cell.trim_start(), room).into_iter().filter(|line| !line.is_empty()).collect()
}

/// How wide the columns are: as their longest cells, unless the screen has no room for that. Then the one is narrowed in which the
/// fewest cells must be broken, by as much as that saves; what is left over at the end is the last one's.
fn widths(rows: &[Vec<String>], left: &dyn Fn(usize) -> bool, width: usize) -> Vec<usize> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let longest = |column| cells(column).map(|cell| columns(cell)).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(longest).collect();
    loop {
        let all = widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
        let Some(excess) = all.checked_sub(width).filter(|excess| *excess > 0) else {
            if let Some(last) = widths.last_mut() {
                *last = (*last + width - all).min(longest(count - 1));
            }
            return widths;
        };
        let narrower = |column: usize| {
            let now = widths[column];
            let shorter = cells(column).map(|cell| columns(cell)).filter(|long| *long < now).max();
            // Words can be broken anywhere; what has none is as good as out of its column.
            let words = cells(column).filter(|cell| columns(cell) >= now);
            let words = words.map(String::as_str).all(|cell| cell.trim().contains(' '));
            let least = if words { now.saturating_sub(excess) } else { 0 };
            let next = shorter.unwrap_or(0).max(least).max(NARROWEST);
            let broken = cells(column).filter(|cell| columns(cell) > next).count();
            (left(column) && next < now).then(|| (broken, Reverse((now - next, column)), next))
        };
        match (0..count).filter_map(narrower).min() {
            Some((_, Reverse((_, column)), next)) => widths[column] = next,
            None => return widths,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<String>> {
        text.lines().map(|line| line.split('|').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn one_long_cell_does_not_pad_every_row() {
        let rows = rows(
            "expected|image|local:import/talos-1.13.9-0123456789abcdef0123456789abcdef.raw|pve\nexpected|guest|VM 421 `cp-01`|pve",
        );
        insta::assert_snapshot!(table(&rows, &[true; 4], 60), @"
        expected  image
        local:import/talos-1.13.9-0123456789abcdef0123456789abcdef.raw
                                         pve
        expected  guest  VM 421 `cp-01`  pve
        ");
        insta::assert_snapshot!(table(&rows, &[true; 4], 100), @"
        expected  image  local:import/talos-1.13.9-0123456789abcdef0123456789abcdef.raw  pve
        expected  guest  VM 421 `cp-01`                                                  pve
        ");
    }

    #[test]
    fn words_go_on_below_their_beginning() {
        let rows = rows(
            "key|used for|form|from\nPROXMOX_TOKEN_ID|Proxmox token|token|the environment (CASTLE_*)\nNOTES|required|free|empty",
        );
        insta::assert_snapshot!(table(&rows, &[true; 4], 60), @"
        key    used for       form   from
        PROXMOX_TOKEN_ID
               Proxmox token  token  the environment (CASTLE_*)
        NOTES  required       free   empty
        ");
        insta::assert_snapshot!(table(&rows, &[true; 4], 40), @"
        key    used for       form   from
        PROXMOX_TOKEN_ID
               Proxmox token  token  the
                                     environment
                                     (CASTLE_*)
        NOTES  required       free   empty
        ");
    }

    #[test]
    fn numbers_stay_whole() {
        let rows = rows(
            "run|took|changed|\nr0001-20260202|1:33|5|done\nr0002-20260202|0.0 s|15|interrupted",
        );
        insta::assert_snapshot!(table(&rows, &[true, false, false, true], 38), @"
        run              took  changed
        r0001-20260202   1:33        5  done
        r0002-20260202  0.0 s       15
                                   interrupted
        ");
    }
}
