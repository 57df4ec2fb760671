//! Where the name of a layer stands in the head of its frame: where no arrow runs, and with its number if it has several.

use super::place::{HEAD, Layout, PAD, Rect};

/// How far before a box an arrow's line ends, under its tip.
pub(super) const TIP: i64 = 6;

/// How far a tip reaches to both sides, and one of the critical path.
pub(super) const NARROW: i64 = 3;
pub(super) const BROAD: i64 = 5;

/// What is kept free on both sides of a name.
const FREE: i64 = 3;

/// How near to the side of its frame a name may stand.
const EDGE: i64 = 6;

/// Where its letters are, from the top of the frame on.
const LETTERS: (i64, i64) = (HEAD - 17, HEAD - 4);

/// How finely a bend is followed.
const PARTS: i64 = 128;

/// Where a name that is so wide begins: as far to the left as no arrow crosses it, or as little as possible.
pub(super) fn place(frame: Rect, wide: i64, layout: &Layout) -> i64 {
    let crossed: Vec<i64> = layout.edges.iter().flat_map(|way| crosses(way, frame)).collect();
    let left = frame.x + PAD;
    let crossings = |x: &i64| {
        let name = x - FREE..=x + wide + FREE;
        crossed.iter().filter(|at| name.contains(*at)).count()
    };
    let (least, most) = (frame.x + EDGE, frame.right() - EDGE - wide);
    (left..=most).chain(least..left).min_by_key(crossings).unwrap_or(left)
}

/// What lies under a name that begins there and is so wide: as high as its letters, so that the tips of arrows stay.
pub(super) fn plate(frame: Rect, left: i64, wide: i64) -> Rect {
    let (top, bottom) = (frame.y + LETTERS.0, frame.y + HEAD - TIP);
    Rect { x: left - FREE, y: top, width: wide + 2 * FREE, height: bottom - top }
}

/// Where an edge, as it is drawn, runs through the head of a frame.
fn crosses(way: &[(i64, i64, i64)], frame: Rect) -> Vec<i64> {
    let head = frame.y + LETTERS.0..=frame.y + LETTERS.1;
    let mut at = Vec::new();
    let last = way.len().saturating_sub(1);
    for (number, (x, top, bottom)) in way.iter().enumerate() {
        let tip = top - TIP..=*top;
        if number == last && tip.start() < head.end() && tip.end() > head.start() {
            at.extend([x - BROAD, x - NARROW, x + NARROW, x + BROAD]);
        }
        let top = if number == last { tip.start() } else { top };
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
        let beside = |x: i64| x + BROAD + FREE + 1;
        assert_eq!(place(frame, 50, &layout(vec![straight(30)])), beside(30));
        assert_eq!(place(frame, 50, &layout(vec![straight(30), straight(80)])), beside(80));
        // One that comes from far aside runs along the head before it comes down, as high as its tip lets it.
        let bent = vec![(-110, 0, 95), (90, 100 + HEAD, 180)];
        assert_eq!(place(frame, 50, &layout(vec![bent])), beside(90));
        // Where it is narrow, a name comes near to a tip rather than over an arrow.
        let tight = Rect { width: 50 + EDGE + 92, ..frame };
        let layout_of = |edges| Layout { edges, frames: vec![(0, tight)], ..Layout::default() };
        assert_eq!(place(tight, 50, &layout_of(vec![straight(45), straight(85)])), 92);
        let everywhere = (0..20).map(|x| straight(x * 10)).collect();
        let inside = EDGE..=frame.width - EDGE - 50;
        assert!(inside.contains(&place(frame, 50, &layout(everywhere))), "as good as any other");
        let ends_above = layout(vec![vec![(30, 10, 10), (30, 60, 60)]]);
        assert_eq!(place(frame, 50, &ends_above), PAD);
    }
}
