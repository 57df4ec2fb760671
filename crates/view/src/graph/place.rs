//! Where everything stands: columns by the network simplex method, rows by their height, edges through their places.

use super::grid::{Grid, Item};
use super::order::{Order, arrange};
use super::rank::{Shape, rank};
use super::simplex::{Link, solve};

/// Between two boxes of a row.
const GAP: i64 = 18;
/// Between an edge that passes and its neighbour.
const PASS: i64 = 12;
/// Between a frame and what is in it.
pub(super) const PAD: i64 = 12;
/// For the name of a layer at the top of its frame.
pub(super) const HEAD: i64 = 22;
/// Between two frames.
const APART: i64 = 14;
/// Between two rows at least: room for an edge to bend.
const BEND: i64 = 26;

/// A rectangle; the corner is its upper left one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rect {
    pub(super) x: i64,
    pub(super) y: i64,
    pub(super) width: i64,
    pub(super) height: i64,
}

impl Rect {
    pub(super) fn right(&self) -> i64 {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> i64 {
        self.y + self.height
    }

    pub(super) fn middle(&self) -> i64 {
        self.x + self.width / 2
    }
}

/// Where everything stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) boxes: Vec<Rect>,
    /// The frames, each with the number of its layer.
    pub(super) frames: Vec<(usize, Rect)>,
    /// For each edge: straight down at x from y to y, then a bend to the next one.
    pub(super) edges: Vec<Vec<(i64, i64, i64)>>,
    pub(super) width: i64,
    pub(super) height: i64,
    pub(super) crossings: usize,
}

/// Lays a shape out. The same shape always gets the same layout.
pub(super) fn lay_out(shape: &Shape) -> Layout {
    let grid = Grid::of(shape, &rank(shape));
    let order = arrange(&grid);
    let columns = Columns::of(&grid, &order, shape);
    let rows = heights(&grid, shape);
    let is_box = |at: &usize| grid.items[*at].is_box;
    let boxes: Vec<Rect> = (0..grid.items.len())
        .filter(is_box)
        .map(|at| {
            let ((width, height), (top, tall)) = (shape.sizes[at], rows[grid.items[at].row]);
            Rect { x: columns.items[at] - width / 2, y: top + (tall - height) / 2, width, height }
        })
        .collect();
    let frame = |(at, (x, right)): (usize, &(i64, i64))| {
        let group = grid.groups[at];
        let (top, (last, tall)) = (rows[group.first].0 - HEAD, rows[group.last]);
        let rect = Rect { x: *x, y: top, width: right - x, height: last + tall + PAD - top };
        Some((group.layer?, rect))
    };
    let frames: Vec<(usize, Rect)> = columns.groups.iter().enumerate().filter_map(frame).collect();
    let way = |way: &Vec<usize>| -> Vec<(i64, i64, i64)> {
        let last = way.len() - 1;
        way.iter()
            .enumerate()
            .map(|(number, at)| match (number, boxes.get(*at)) {
                (0, Some(from)) => (from.middle(), from.bottom(), from.bottom()),
                (_, Some(to)) if number == last => (to.middle(), to.y, to.y),
                _ => {
                    let (top, tall) = rows[grid.items[*at].row];
                    (columns.items[*at], top, top + tall)
                }
            })
            .collect()
    };
    Layout {
        edges: grid.ways.iter().map(way).collect(),
        width: frames.iter().map(|(_, frame)| frame.right()).max().unwrap_or(0),
        height: frames.iter().map(|(_, frame)| frame.bottom()).max().unwrap_or(0),
        boxes,
        frames,
        crossings: order.crossings,
    }
}

/// For each row where it begins and how high it is.
fn heights(grid: &Grid, shape: &Shape) -> Vec<(i64, i64)> {
    let mut rows = Vec::new();
    let mut top = HEAD;
    for row in 0..grid.rows {
        let of_row = |(at, item): (usize, &Item)| {
            (item.is_box && item.row == row).then(|| shape.sizes[at].1)
        };
        let tall = grid.items.iter().enumerate().filter_map(of_row).max().unwrap_or(0);
        rows.push((top, tall));
        let framed = |edge: &dyn Fn(usize, usize) -> bool| {
            grid.groups.iter().any(|group| group.layer.is_some() && edge(group.first, group.last))
        };
        let (ends, begins) = (framed(&|_, last| last == row), framed(&|first, _| first == row + 1));
        let between = match (ends, begins) {
            (true, true) => PAD + APART + HEAD,
            (true, false) | (false, true) => BEND + 6,
            (false, false) => BEND,
        };
        top += tall + between.max(BEND);
    }
    rows
}

/// The middles of the items, and the sides of the groups' frames.
struct Columns {
    items: Vec<i64>,
    groups: Vec<(i64, i64)>,
}

impl Columns {
    fn of(grid: &Grid, order: &Order, shape: &Shape) -> Self {
        let (items, groups) = (grid.items.len(), grid.groups.len());
        let (left, right) =
            (|group: usize| items + 2 * group, |group: usize| items + 2 * group + 1);
        let mut links = apart(grid, order);
        for (number, group) in grid.groups.iter().enumerate() {
            let label = group.layer.map_or(0, |layer| shape.labels[layer]);
            links.push(Link { tail: left(number), head: right(number), least: label, weight: 1 });
        }
        let mut points = items + 2 * groups;
        for segment in &grid.segments {
            for head in [segment.0, segment.1] {
                links.push(Link { tail: points, head, least: 0, weight: pull(grid, segment) });
            }
            points += 1;
        }
        let mut at = solve(points, &links);
        settle(&mut at, grid, &links);
        let start = (0..groups).map(|group| at[left(group)]).min().unwrap_or(0);
        let sides = |group| (at[left(group)] - start, at[right(group)] - start);
        Self {
            items: at[..items].iter().map(|at| at - start).collect(),
            groups: (0..groups).map(sides).collect(),
        }
    }
}

/// How much it matters that two ends of a segment stand below each other: most where an edge only passes.
fn pull(grid: &Grid, (above, below, weight): &(usize, usize, i64)) -> i64 {
    weight
        * match (grid.items[*above].is_box, grid.items[*below].is_box) {
            (true, true) => 2,
            (false, false) => 12,
            _ => 5,
        }
}

/// What keeps items and frames apart.
fn apart(grid: &Grid, order: &Order) -> Vec<Link> {
    let items = grid.items.len();
    let (left, right) = (|group: usize| items + 2 * group, |group: usize| items + 2 * group + 1);
    let link = |tail, head, least| Link { tail, head, least, weight: 0 };
    let mut links = Vec::new();
    for (at, item) in grid.items.iter().enumerate() {
        let pad = if grid.groups[item.group].layer.is_some() { PAD } else { 0 };
        links.push(link(left(item.group), at, item.width / 2 + pad));
        links.push(link(at, right(item.group), item.width / 2 + pad));
    }
    for row in &order.rows {
        for two in row.windows(2) {
            let (one, next) = (&grid.items[two[0]], &grid.items[two[1]]);
            let gap = if one.is_box && next.is_box { GAP } else { PASS };
            if one.group == next.group {
                links.push(link(two[0], two[1], one.width / 2 + gap + next.width / 2));
            }
        }
    }
    for (one, group) in grid.groups.iter().enumerate() {
        for (next, other) in grid.groups.iter().enumerate() {
            if order.groups[one] < order.groups[next] && group.meets(other) {
                let framed = group.layer.is_some() && other.layer.is_some();
                links.push(link(right(one), left(next), if framed { APART } else { PASS }));
            }
        }
    }
    links
}

/// Moves items towards the middle of their neighbours where nothing becomes longer by it: of many shortest layouts the
/// most even one.
fn settle(at: &mut [i64], grid: &Grid, links: &[Link]) {
    let mut near: Vec<Vec<(usize, i64)>> = vec![Vec::new(); grid.items.len()];
    for segment in &grid.segments {
        let (above, below, _) = *segment;
        near[above].push((below, pull(grid, segment)));
        near[below].push((above, pull(grid, segment)));
    }
    for _ in 0..8 {
        for item in 0..grid.items.len() {
            let low = links.iter().filter(|l| l.head == item && l.weight == 0);
            let high = links.iter().filter(|l| l.tail == item && l.weight == 0);
            let low = low.map(|l| at[l.tail] + l.least).max().unwrap_or(at[item]);
            let high = high.map(|l| at[l.head] - l.least).min().unwrap_or(at[item]);
            let cost =
                |x: i64| near[item].iter().map(|(o, pull)| pull * (at[*o] - x).abs()).sum::<i64>();
            let others = || near[item].iter().map(|(other, _)| at[*other]);
            let (Some(first), Some(last)) = (others().min(), others().max()) else { continue };
            let wish = i64::midpoint(first, last).clamp(low, high.max(low));
            if cost(wish) <= cost(at[item]) {
                at[item] = wish;
            }
        }
    }
}
