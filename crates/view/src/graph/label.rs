//! Where the name of a layer stands in the head of its frame: where no arrow runs, and with its number if it has several.

use super::place::{HEAD, Layout, PAD, Rect};

/// What is kept free on both sides of a name.
const FREE: i64 = 3;

/// How near to the side of its frame a name may stand.
const EDGE: i64 = 6;

/// Where its letters are, from the top of the frame on.
const LETTERS: (i64, i64) = (HEAD - 17, HEAD - 4);

/// How finely a bend is followed.
const PARTS: i64 = 128;

/// Where a name that is so wide begins: as far to the left as no arrow crosses it, at the left if there is no such place.
pub(super) fn place(frame: Rect, wide: i64, layout: &Layout) -> i64 {
    let crossed: Vec<i64> = layout.edges.iter().flat_map(|way| crosses(way, frame)).collect();
    let left = frame.x + PAD;
    let free = |x: &i64| !crossed.iter().any(|at| (x - FREE..=x + wide + FREE).contains(at));
    let (least, most) = (frame.x + EDGE, frame.right() - EDGE - wide);
    (left..=most).chain(least..left).find(free).unwrap_or(left)
}

/// Where an edge runs through the head of a frame.
fn crosses(way: &[(i64, i64, i64)], frame: Rect) -> Vec<i64> {
    let head = frame.y + LETTERS.0..=frame.y + LETTERS.1;
    let mut at = Vec::new();
    for (number, (x, top, bottom)) in way.iter().enumerate() {
        if top < head.end() && bottom > head.start() {
            at.push(*x);
        }
        let Some((from, _, above)) = number.checked_sub(1).and_then(|before| way.get(before))
        else {
            continue;
        };
        // The same bend as it is drawn: straight down at both ends.
        for part in 0..=PARTS {
            let (t, rest) = (part, PARTS - part);
            let whole = PARTS.pow(3);
            let middle = i64::midpoint(*above, *top);
            let y = (above * rest.pow(3) + 3 * middle * rest * t * PARTS + top * t.pow(3)) / whole;
            if head.contains(&y) {
                at.push((from * rest * rest * (rest + 3 * t) + x * t * t * (t + 3 * rest)) / whole);
            }
        }
    }
    at
}

/// Which of the frames of its layer each one is, from above, and of how many.
pub(super) fn numbers(layout: &Layout) -> Vec<(usize, usize)> {
    let frames = &layout.frames;
    let of = |layer: usize| frames.iter().filter(move |(other, _)| *other == layer);
    frames
        .iter()
        .map(|(layer, rect)| {
            let before = of(*layer).filter(|(_, other)| (other.y, other.x) < (rect.y, rect.x));
            (before.count() + 1, of(*layer).count())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_beside_the_arrows_that_enter_its_frame() {
        let frame = Rect { x: 0, y: 100, width: 200, height: 80 };
        let straight = |x: i64| vec![(x, 40, 40), (x, 120, 120)];
        let layout = |edges| Layout { edges, frames: vec![(0, frame)], ..Layout::default() };
        assert_eq!(place(frame, 50, &layout(vec![])), PAD);
        assert_eq!(place(frame, 50, &layout(vec![straight(30)])), 30 + FREE + 1);
        assert_eq!(place(frame, 50, &layout(vec![straight(30), straight(80)])), 80 + FREE + 1);
        let everywhere = (0..20).map(|x| straight(x * 10)).collect();
        assert_eq!(place(frame, 50, &layout(everywhere)), PAD, "as good as any other");
        let ends_above = layout(vec![vec![(30, 10, 10), (30, 60, 60)]]);
        assert_eq!(place(frame, 50, &ends_above), PAD);
    }
}
