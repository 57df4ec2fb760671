//! Who stands left of whom: an order of the groups, and of the items in each, with few crossings.

use super::grid::Grid;

/// How often the rows are gone through, down and up in turn.
const SWEEPS: usize = 6;

/// The room between two items that costs are reckoned with.
const ROOM: i64 = 16;

/// An order of everything.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// For each group its place from the left.
    pub(super) groups: Vec<usize>,
    /// The items of each row, from the left.
    pub(super) rows: Vec<Vec<usize>>,
    pub(super) crossings: usize,
    /// How far apart the ends of the edges are in sum.
    spread: i64,
}

impl Order {
    fn cost(&self) -> (usize, i64) {
        (self.crossings, self.spread)
    }
}

/// The best order that a patient search finds. The same grid always gets the same one.
pub(super) fn arrange(grid: &Grid) -> Order {
    let mut links: Vec<Links> = vec![Links::default(); grid.items.len()];
    for (above, below, weight) in &grid.segments {
        links[*above].down.push((*below, *weight));
        links[*below].up.push((*above, *weight));
    }
    let search = Search { grid, links };
    let places: Vec<usize> = (0..grid.groups.len()).collect();
    let mut best = search.settle(&places, None);
    let mut budget = 40_000 / grid.items.len().max(1) + 20;
    loop {
        let before = best.cost();
        for group in 0..places.len() {
            for place in 0..places.len() {
                if best.groups[group] == place || budget == 0 {
                    continue;
                }
                budget -= 1;
                let tried = search.settle(&moved(&best.groups, group, place), Some(&best.rows));
                if tried.cost() < best.cost() {
                    best = tried;
                }
            }
        }
        if best.cost() == before || budget == 0 {
            return best;
        }
    }
}

/// The same places, with one group at another one and those between moved up.
fn moved(places: &[usize], group: usize, place: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|group| places[*group]);
    order.remove(places[group]);
    order.insert(place, group);
    let mut moved = vec![0; places.len()];
    for (place, group) in order.into_iter().enumerate() {
        moved[group] = place;
    }
    moved
}

/// The neighbours of an item.
#[derive(Debug, Clone, Default)]
struct Links {
    up: Vec<(usize, i64)>,
    down: Vec<(usize, i64)>,
}

struct Search<'a> {
    grid: &'a Grid,
    links: Vec<Links>,
}

impl Search<'_> {
    /// The best order with the groups at these places, begun from rows that were good before.
    fn settle(&self, places: &[usize], start: Option<&Vec<Vec<usize>>>) -> Order {
        let mut rows = start.cloned().unwrap_or_else(|| {
            let of =
                |row| (0..self.grid.items.len()).filter(move |at| self.grid.items[*at].row == row);
            (0..self.grid.rows).map(|row| of(row).collect()).collect()
        });
        for row in &mut rows {
            row.sort_by_key(|at| places[self.grid.items[*at].group]);
        }
        let mut best = self.judged(places, rows.clone());
        for sweep in 0..SWEEPS {
            let mut at = self.positions(&rows);
            let down = sweep % 2 == 0;
            for step in 0..rows.len() {
                let row = if down { step } else { rows.len() - 1 - step };
                let key = |item: &usize| {
                    let links = &self.links[*item];
                    let near = if down { &links.up } else { &links.down };
                    let other = if down { &links.down } else { &links.up };
                    let mean = mean(near, &at).or_else(|| mean(other, &at));
                    (places[self.grid.items[*item].group], mean.unwrap_or(at[*item]))
                };
                rows[row].sort_by_key(key);
                self.position(&rows[row], &mut at);
            }
            self.swap(&mut rows);
            let tried = self.judged(places, rows.clone());
            if tried.cost() < best.cost() {
                best = tried;
            }
        }
        best
    }

    /// Swaps neighbours of one group as long as that saves crossings.
    fn swap(&self, rows: &mut [Vec<usize>]) {
        let mut at = vec![0; self.grid.items.len()];
        for row in rows.iter() {
            for (place, item) in row.iter().enumerate() {
                at[*item] = place;
            }
        }
        for row in rows.iter_mut() {
            for place in 1..row.len() {
                let (left, right) = (row[place - 1], row[place]);
                if self.grid.items[left].group != self.grid.items[right].group {
                    continue;
                }
                let (l, r) = (&self.links[left], &self.links[right]);
                let kept = pairs(&l.up, &r.up, &at) + pairs(&l.down, &r.down, &at);
                let swapped = pairs(&r.up, &l.up, &at) + pairs(&r.down, &l.down, &at);
                if swapped < kept {
                    row.swap(place - 1, place);
                    at.swap(left, right);
                }
            }
        }
    }

    fn judged(&self, places: &[usize], rows: Vec<Vec<usize>>) -> Order {
        let at = self.positions(&rows);
        let crossings = crossings(self.grid, &rows);
        let far =
            |(above, below, weight): &(usize, usize, i64)| weight * (at[*above] - at[*below]).abs();
        let spread = self.grid.segments.iter().map(far).sum();
        Order { groups: places.to_vec(), rows, crossings, spread }
    }

    /// Where each item would stand if each row were packed around one middle.
    fn positions(&self, rows: &[Vec<usize>]) -> Vec<i64> {
        let mut at = vec![0; self.grid.items.len()];
        for row in rows {
            self.position(row, &mut at);
        }
        at
    }

    fn position(&self, row: &[usize], at: &mut [i64]) {
        let width = |item: &usize| self.grid.items[*item].width + ROOM;
        let mut left = -row.iter().map(width).sum::<i64>() / 2;
        for item in row {
            at[*item] = left + width(item) / 2;
            left += width(item);
        }
    }
}

/// How many edges of two neighbours cross, the first of them left of the other.
fn pairs(left: &[(usize, i64)], right: &[(usize, i64)], at: &[usize]) -> usize {
    let crossed = |l: &(usize, i64)| right.iter().filter(|r| at[r.0] < at[l.0]).count();
    left.iter().map(crossed).sum()
}

fn mean(near: &[(usize, i64)], at: &[i64]) -> Option<i64> {
    let weight: i64 = near.iter().map(|(_, weight)| weight).sum();
    let sum: i64 = near.iter().map(|(item, weight)| at[*item] * weight).sum();
    (weight > 0).then(|| sum / weight)
}

/// How often edges cross between rows.
pub(super) fn crossings(grid: &Grid, rows: &[Vec<usize>]) -> usize {
    let mut at = vec![0; grid.items.len()];
    for row in rows {
        for (place, item) in row.iter().enumerate() {
            at[*item] = place;
        }
    }
    let mut between: Vec<Vec<(usize, usize)>> = vec![Vec::new(); grid.rows];
    for (above, below, _) in &grid.segments {
        between[grid.items[*above].row].push((at[*above], at[*below]));
    }
    let mut count = 0;
    for mut pairs in between {
        pairs.sort_unstable();
        for (number, (above, below)) in pairs.iter().enumerate() {
            let crosses = |other: &&(usize, usize)| other.0 > *above && other.1 < *below;
            count += pairs[number + 1..].iter().filter(crosses).count();
        }
    }
    count
}
