//! In which row each box stands: below all that it needs, and near to it.

use std::collections::BTreeSet;

use super::simplex::{Link, solve};

/// What is laid out: boxes of layers, and the edges between them.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    /// The width and the height of each box; widths are even.
    pub(super) sizes: Vec<(i64, i64)>,
    /// The number of the layer of each box.
    pub(super) layers: Vec<usize>,
    /// From, to, and how much it matters that the edge is short and straight.
    pub(super) edges: Vec<(usize, usize, i64)>,
    /// How wide the frame of each layer is at least.
    pub(super) labels: Vec<i64>,
}

/// What an edge costs for each row that it is longer, against what every box costs for each row that it stands lower:
/// what could stand higher or lower stands higher, but next to its only neighbour.
const EDGE: i64 = 5;
const LOWER: i64 = 3;

/// A row for each box. A layer stands below another one that it needs, if that one needs nothing of it.
pub(super) fn rank(shape: &Shape) -> Vec<usize> {
    let boxes = shape.sizes.len();
    let edge = |(tail, head, weight): &(usize, usize, i64)| Link {
        tail: *tail,
        head: *head,
        least: 1,
        weight: EDGE * weight,
    };
    let mut links: Vec<Link> = shape.edges.iter().map(edge).collect();
    let top = boxes;
    links.extend((0..boxes).map(|head| Link { tail: top, head, least: 0, weight: LOWER }));
    let mut points = boxes + 1;
    let of = |layer: usize| (0..boxes).filter(move |at| shape.layers[*at] == layer);
    let pairs: BTreeSet<(usize, usize)> = shape
        .edges
        .iter()
        .map(|(from, to, _)| (shape.layers[*from], shape.layers[*to]))
        .filter(|(above, below)| above != below)
        .collect();
    for (above, below) in pairs {
        if reaches(points, &links, of(below), &|at| at < boxes && shape.layers[at] == above) {
            continue;
        }
        let between = points;
        points += 1;
        links.extend(of(above).map(|tail| Link { tail, head: between, least: 0, weight: 0 }));
        links.extend(of(below).map(|head| Link { tail: between, head, least: 1, weight: 0 }));
    }
    let at = solve(points, &links);
    // Rows that hold nothing but points between layers are no rows.
    let used: BTreeSet<i64> = at[..boxes].iter().copied().collect();
    let row = |at: &i64| used.iter().position(|known| known == at).unwrap_or(0);
    at[..boxes].iter().map(row).collect()
}

/// Whether a way along the links leads from one of these points to one of those.
fn reaches(
    points: usize,
    links: &[Link],
    from: impl Iterator<Item = usize>,
    to: &dyn Fn(usize) -> bool,
) -> bool {
    let mut out = vec![Vec::new(); points];
    for link in links {
        out[link.tail].push(link.head);
    }
    let (mut seen, mut open) = (vec![false; points], from.collect::<Vec<usize>>());
    while let Some(point) = open.pop() {
        if to(point) {
            return true;
        }
        if !std::mem::replace(&mut seen[point], true) {
            open.extend(&out[point]);
        }
    }
    false
}
