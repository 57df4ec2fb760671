//! Rows of items: the boxes, and in every row that an edge passes a place to pass through.
//!
//! Every item is of one group: a part of a layer, which is framed, or the way of one edge between frames. Groups stand
//! side by side in one order in all rows, so that frames are rectangles and no edge runs through a foreign one.

use std::collections::BTreeSet;

use super::rank::Shape;

/// Rows of a layer with this many empty ones between them get frames of their own.
const HOLE: usize = 2;

/// A box, or the place where an edge passes a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) row: usize,
    pub(super) group: usize,
    pub(super) width: i64,
    /// Whether it is a box; boxes have the same numbers as in the shape.
    pub(super) is_box: bool,
}

/// Items that stand together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// The layer that is framed; none for the way of an edge.
    pub(super) layer: Option<usize>,
    pub(super) first: usize,
    pub(super) last: usize,
}

impl Group {
    pub(super) fn meets(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// Everything that has a place.
#[derive(Debug, Clone, Default)]
pub(super) struct Grid {
    pub(super) items: Vec<Item>,
    pub(super) groups: Vec<Group>,
    pub(super) rows: usize,
    /// For each edge the items it runs through, from the needed box to the needing one.
    pub(super) ways: Vec<Vec<usize>>,
    /// Two items in rows that follow each other, and the weight of the edge.
    pub(super) segments: Vec<(usize, usize, i64)>,
}

impl Grid {
    /// The grid of a shape whose boxes stand in these rows.
    pub(super) fn of(shape: &Shape, ranks: &[usize]) -> Self {
        let mut grid =
            Self { rows: ranks.iter().max().map_or(0, |last| last + 1), ..Self::default() };
        for layer in 0..shape.labels.len() {
            grid.frame(layer, shape, ranks);
        }
        for (at, row) in ranks.iter().enumerate() {
            let group = grid.groups.iter().position(|group| {
                group.layer == Some(shape.layers[at]) && (group.first..=group.last).contains(row)
            });
            let group = group.expect("every box was framed with its layer");
            let width = shape.sizes[at].0;
            grid.items.push(Item { row: *row, group, width, is_box: true });
        }
        for (from, to, weight) in &shape.edges {
            grid.lead(*from, *to, *weight);
        }
        grid
    }

    /// The groups of a layer: one, or several if its rows lie far apart.
    fn frame(&mut self, layer: usize, shape: &Shape, ranks: &[usize]) {
        let boxes = ranks.iter().enumerate().filter(|(at, _)| shape.layers[*at] == layer);
        let rows: BTreeSet<usize> = boxes.map(|(_, row)| *row).collect();
        let mut open: Option<Group> = None;
        for row in rows {
            match &mut open {
                Some(group) if row - group.last <= HOLE => group.last = row,
                _ => {
                    self.groups.extend(open.take());
                    open = Some(Group { layer: Some(layer), first: row, last: row });
                }
            }
        }
        self.groups.extend(open);
    }

    /// Leads an edge through the rows between its ends: in their frames as far as they reach, else outside of all.
    fn lead(&mut self, from: usize, to: usize, weight: i64) {
        let (first, last) = (self.items[from], self.items[to]);
        let (above, below) = (self.groups[first.group], self.groups[last.group]);
        let mut way = vec![from];
        let mut outside = None;
        for row in first.row + 1..last.row {
            let group = if row <= above.last {
                first.group
            } else if row >= below.first {
                last.group
            } else {
                *outside.get_or_insert_with(|| {
                    let (first, last) = (above.last + 1, below.first.min(last.row) - 1);
                    self.groups.push(Group { layer: None, first, last });
                    self.groups.len() - 1
                })
            };
            way.push(self.items.len());
            self.items.push(Item { row, group, width: 0, is_box: false });
        }
        way.push(to);
        self.segments.extend(way.windows(2).map(|two| (two[0], two[1], weight)));
        self.ways.push(way);
    }
}
