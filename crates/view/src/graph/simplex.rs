//! Positions on a line that keep every least distance and are short in sum: the network simplex method.
//!
//! Layers are ranked and boxes are placed by the same few lines: a link says that its head stands at least so far
//! behind its tail, and what each step of distance costs.

/// Two points, and how they must and should stand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// The point before.
    pub(super) tail: usize,
    /// The point behind it.
    pub(super) head: usize,
    /// How far behind at least.
    pub(super) least: i64,
    /// What each step of distance costs.
    pub(super) weight: i64,
}

/// Positions from 0 of as many points. The links have no cycle.
pub(super) fn solve(points: usize, links: &[Link]) -> Vec<i64> {
    // One more point before all others holds together what no link does.
    let mut links = links.to_vec();
    links.extend((0..points).map(|head| Link { tail: points, head, least: 0, weight: 0 }));
    let mut tree = Tree::grow(points + 1, links);
    // Ends by itself; the bound is for ties that could chase each other. Every state on the way is a valid one.
    for _ in 0..4 * tree.links.len() {
        if !tree.improve() {
            break;
        }
    }
    let least = tree.at[..points].iter().min().copied().unwrap_or(0);
    tree.at[..points].iter().map(|at| at - least).collect()
}

/// Positions, and a tree of links that are as short as they may be, which holds all points in place.
struct Tree {
    links: Vec<Link>,
    at: Vec<i64>,
    /// Whether a link is of the tree.
    held: Vec<bool>,
    /// Where the search for the next link to let go begins, so that none is preferred.
    next: usize,
}

impl Tree {
    fn grow(points: usize, links: Vec<Link>) -> Self {
        let at = furthest(points, &links);
        let held = vec![false; links.len()];
        let mut tree = Self { links, at, held, next: 0 };
        let mut inside = vec![false; points];
        inside[points - 1] = true;
        for _ in 1..points {
            let reach = |link: &Link, inside: &[bool]| inside[link.tail] != inside[link.head];
            let crossing = (0..tree.links.len()).filter(|link| reach(&tree.links[*link], &inside));
            let Some(link) = crossing.min_by_key(|link| tree.slack(*link)) else { break };
            let slack = tree.slack(link);
            let Link { tail, head, .. } = tree.links[link];
            let shift = if inside[tail] { slack } else { -slack };
            for (at, _) in tree.at.iter_mut().zip(&inside).filter(|(_, inside)| **inside) {
                *at += shift;
            }
            inside[tail] = true;
            inside[head] = true;
            tree.held[link] = true;
        }
        tree
    }

    fn slack(&self, link: usize) -> i64 {
        let Link { tail, head, least, .. } = self.links[link];
        self.at[head] - self.at[tail] - least
    }

    /// Lets one link go that costs more than it must and holds another one instead; false if there is none.
    fn improve(&mut self) -> bool {
        let walk = self.walk();
        let count = self.links.len();
        let dear = (0..count)
            .map(|step| (self.next + step) % count)
            .find(|link| self.held[*link] && walk.cut(&self.links[*link]) < 0);
        let Some(leaving) = dear else { return false };
        self.next = leaving + 1;
        let (low, below_is_head) = walk.below(&self.links[leaving]);
        // Links that would become too short when the head's side moves away from the tail's.
        let limits = |link: &Link| {
            let (tail, head) = (walk.is_below(link.tail, low), walk.is_below(link.head, low));
            tail == below_is_head && head != below_is_head
        };
        let entering =
            (0..count).filter(|l| limits(&self.links[*l])).min_by_key(|l| self.slack(*l));
        let Some(entering) = entering else { return false };
        let slack = self.slack(entering);
        for point in 0..self.at.len() {
            if walk.is_below(point, low) {
                self.at[point] += if below_is_head { slack } else { -slack };
            }
        }
        self.held[leaving] = false;
        self.held[entering] = true;
        true
    }

    /// The tree seen from its root.
    fn walk(&self) -> Walk {
        let points = self.at.len();
        let mut near: Vec<Vec<usize>> = vec![Vec::new(); points];
        let mut balance = vec![0; points];
        for (link, held) in self.links.iter().zip(&self.held) {
            balance[link.tail] += link.weight;
            balance[link.head] -= link.weight;
            if *held {
                near[link.tail].push(link.head);
                near[link.head].push(link.tail);
            }
        }
        let (mut begin, mut end) = (vec![usize::MAX; points], vec![0; points]);
        let (mut open, mut clock) = (vec![(points - 1, points - 1, false)], 0);
        while let Some((point, from, left)) = open.pop() {
            if left {
                end[point] = clock;
                if point != from {
                    balance[from] += balance[point];
                }
                continue;
            }
            begin[point] = clock;
            clock += 1;
            open.push((point, from, true));
            open.extend(near[point].iter().filter(|n| **n != from).map(|n| (*n, point, false)));
        }
        Walk { begin, end, balance }
    }
}

/// When each point was entered and left, and what the links out of everything below it weigh more than those into it.
struct Walk {
    begin: Vec<usize>,
    end: Vec<usize>,
    balance: Vec<i64>,
}

impl Walk {
    fn is_below(&self, point: usize, top: usize) -> bool {
        (self.begin[top]..self.end[top]).contains(&self.begin[point])
    }

    /// The lower end of a link of the tree, and whether it is its head.
    fn below(&self, link: &Link) -> (usize, bool) {
        if self.begin[link.head] > self.begin[link.tail] {
            (link.head, true)
        } else {
            (link.tail, false)
        }
    }

    /// What one step more between the two sides of a link of the tree would cost.
    fn cut(&self, link: &Link) -> i64 {
        let (low, is_head) = self.below(link);
        if is_head { -self.balance[low] } else { self.balance[low] }
    }
}

/// Each point as near to the beginning as its links allow.
fn furthest(points: usize, links: &[Link]) -> Vec<i64> {
    let (mut open, mut out) = (vec![0_usize; points], vec![Vec::new(); points]);
    for link in links {
        open[link.head] += 1;
        out[link.tail].push(link);
    }
    let mut ready: Vec<usize> = (0..points).filter(|point| open[*point] == 0).collect();
    let mut at = vec![0; points];
    while let Some(point) = ready.pop() {
        for link in &out[point] {
            at[link.head] = at[link.head].max(at[point] + link.least);
            open[link.head] -= 1;
            if open[link.head] == 0 {
                ready.push(link.head);
            }
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(tail: usize, head: usize, least: i64, weight: i64) -> Link {
        Link { tail, head, least, weight }
    }

    fn cost(at: &[i64], links: &[Link]) -> i64 {
        links.iter().map(|link| link.weight * (at[link.head] - at[link.tail])).sum()
    }

    #[test]
    fn a_point_stands_where_most_pull_it() {
        // 1 could stand anywhere between 0 and 2, and two of three links are shorter near 2.
        let links = [
            link(0, 1, 1, 1),
            link(1, 2, 1, 1),
            link(0, 3, 4, 0),
            link(3, 2, 1, 0),
            link(1, 3, 0, 1),
        ];
        assert_eq!(solve(4, &links), [0, 4, 5, 4]);
    }

    #[test]
    fn what_nothing_holds_stands_at_the_beginning() {
        assert_eq!(solve(3, &[link(0, 1, 2, 1)])[..2], [0, 2]);
        assert_eq!(solve(0, &[]), [0_i64; 0]);
    }

    proptest! {
        /// Against every placing of a few points.
        #[test]
        fn nothing_is_cheaper(needs in crate::graph::any::graph(5), weights in prop::collection::vec(1_i64..4, 10)) {
            let pairs = needs.iter().enumerate().flat_map(|(head, needs)| needs.iter().map(move |tail| (*tail, head)));
            let links: Vec<Link> = pairs.enumerate().map(|(at, (tail, head))| link(tail, head, weights[at % 10] % 3, weights[at % 10])).collect();
            let at = solve(needs.len(), &links);
            prop_assert!(links.iter().all(|link| at[link.head] - at[link.tail] >= link.least), "{at:?}");
            let all = 9_usize.pow(u32::try_from(needs.len()).unwrap());
            let digits = |number: usize| -> Vec<i64> {
                (0..needs.len()).map(|place| i64::try_from(number / 9_usize.pow(u32::try_from(place).unwrap()) % 9).unwrap()).collect()
            };
            let valid = |at: &Vec<i64>| links.iter().all(|link| at[link.head] - at[link.tail] >= link.least);
            let best = (0..all).map(digits).filter(valid).map(|at| cost(&at, &links)).min();
            prop_assert_eq!(Some(cost(&at, &links)), best);
        }
    }
}
