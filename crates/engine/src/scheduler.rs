//! Which step starts next: a plain data structure, no async, no clock. Events in, steps to start out.
//!
//! A step is ready when all that it needs is done and its lane has room. Among ready steps the one with the
//! longest path behind it (by weight) starts first; ties go by name, so the same input gives the same order.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::{Bug, StepDecl, StepId, planted};

/// Where a step stands, as the scheduler sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Something that it needs is not done.
    Pending,
    /// It could start, but for its lane or because nobody asked yet.
    Ready,
    /// It was handed out by [`Scheduler::start`].
    Running,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// Something that it needs failed, at any distance.
    Blocked,
}

struct Node {
    id: StepId,
    standing: Standing,
    /// How many needs are not done yet.
    missing: usize,
    dependents: Vec<usize>,
    /// What waits for its end, however it ends.
    held: Vec<usize>,
    lane: Option<usize>,
    /// The weight of the longest path that begins here, itself included.
    path: u64,
}

struct LaneUse {
    width: usize,
    used: usize,
}

/// Hands out steps in a good order.
pub struct Scheduler {
    nodes: Vec<Node>,
    index: BTreeMap<StepId, usize>,
    lanes: Vec<LaneUse>,
    /// Ready steps, best first: longest path, then name.
    ready: BTreeSet<(std::cmp::Reverse<u64>, StepId)>,
    running: usize,
    open: usize,
    stopped: bool,
}

impl Scheduler {
    /// A scheduler for these steps. Needs that are not among them count as done.
    ///
    /// The caller has checked that there is no cycle (`castle_plan::order`); steps on one never become ready.
    #[must_use]
    pub fn new<'a>(steps: impl IntoIterator<Item = &'a StepDecl>) -> Self {
        let steps: Vec<&StepDecl> = steps.into_iter().collect();
        let index: BTreeMap<StepId, usize> =
            steps.iter().enumerate().map(|(at, step)| (step.id.clone(), at)).collect();
        let mut lanes: Vec<LaneUse> = Vec::new();
        let mut lane_of: BTreeMap<&str, usize> = BTreeMap::new();
        let mut nodes: Vec<Node> = Vec::with_capacity(steps.len());
        for step in &steps {
            let lane = step.lane.as_ref().map(|lane| {
                let at = *lane_of.entry(&lane.name).or_insert_with(|| {
                    lanes.push(LaneUse { width: lane.width, used: 0 });
                    lanes.len() - 1
                });
                // Steps that disagree about a lane's width get the narrower one.
                lanes[at].width = lanes[at].width.min(lane.width).max(1);
                at
            });
            nodes.push(Node {
                id: step.id.clone(),
                standing: Standing::Pending,
                missing: 0,
                dependents: Vec::new(),
                held: Vec::new(),
                lane,
                path: step.weight,
            });
        }
        for (at, step) in steps.iter().enumerate() {
            let mut needs: BTreeSet<usize> =
                step.needs.iter().filter_map(|n| index.get(n).copied()).collect();
            if planted(Bug::NeedsIgnored) {
                needs.pop_last();
            }
            nodes[at].missing = needs.len();
            for need in needs {
                nodes[need].dependents.push(at);
            }
        }
        let open = nodes.len();
        let mut scheduler =
            Self { nodes, index, lanes, ready: BTreeSet::new(), running: 0, open, stopped: false };
        scheduler.measure_paths();
        for at in 0..scheduler.nodes.len() {
            scheduler.ready_if_free(at);
        }
        scheduler
    }

    /// Holds a step back until another one is over, however that ends: it is done, it fails, or it is blocked.
    ///
    /// The other one must not wait for the first.
    pub fn hold(&mut self, step: &StepId, until: &StepId) {
        let (Some(&at), Some(&until)) = (self.index.get(step), self.index.get(until)) else {
            return;
        };
        let node = &mut self.nodes[at];
        if node.standing == Standing::Ready {
            node.standing = Standing::Pending;
            self.ready.remove(&(std::cmp::Reverse(node.path), step.clone()));
        }
        node.missing += 1;
        self.nodes[until].held.push(at);
    }

    /// Every step that may start now, best first. Each is running from here on.
    pub fn start(&mut self) -> Vec<StepId> {
        if self.stopped {
            return Vec::new();
        }
        let mut started = Vec::new();
        for key in self.ready.clone() {
            let at = self.index[&key.1];
            if let Some(lane) = self.nodes[at].lane {
                let lane = &mut self.lanes[lane];
                if lane.used == lane.width && !planted(Bug::LaneIgnored) {
                    continue;
                }
                lane.used += 1;
            }
            self.ready.remove(&key);
            self.nodes[at].standing = Standing::Running;
            self.running += 1;
            started.push(key.1);
        }
        started
    }

    /// A running step is done; its dependents may become ready.
    pub fn done(&mut self, step: &StepId) {
        let Some(at) = self.leave_running(step, Standing::Done) else { return };
        for dependent in self.nodes[at].dependents.clone() {
            self.nodes[dependent].missing -= 1;
            self.ready_if_free(dependent);
        }
        self.let_go(at);
    }

    /// A running step failed. Returns everything that it blocks, at any distance, in the order of names.
    pub fn failed(&mut self, step: &StepId) -> Vec<StepId> {
        let Some(at) = self.leave_running(step, Standing::Failed) else { return Vec::new() };
        let mut blocked = BTreeSet::new();
        let mut todo = self.nodes[at].dependents.clone();
        while let Some(at) = todo.pop() {
            if self.nodes[at].standing == Standing::Pending {
                self.nodes[at].standing = Standing::Blocked;
                self.open -= 1;
                blocked.insert(self.nodes[at].id.clone());
                todo.extend(&self.nodes[at].dependents);
            }
        }
        for id in blocked.iter().chain([step]) {
            self.let_go(self.index[id]);
        }
        blocked.into_iter().collect()
    }

    /// From here on nothing starts any more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// How many steps are running.
    #[must_use]
    pub fn running(&self) -> usize {
        self.running
    }

    /// How many steps are neither done, failed nor blocked.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open
    }

    /// Where a step stands.
    #[must_use]
    pub fn standing(&self, step: &StepId) -> Option<Standing> {
        self.index.get(step).map(|at| self.nodes[*at].standing)
    }

    fn leave_running(&mut self, step: &StepId, standing: Standing) -> Option<usize> {
        let at = *self.index.get(step)?;
        if self.nodes[at].standing != Standing::Running {
            return None;
        }
        self.nodes[at].standing = standing;
        self.running -= 1;
        self.open -= 1;
        if let Some(lane) = self.nodes[at].lane {
            self.lanes[lane].used -= 1;
        }
        Some(at)
    }

    /// What was held back until this one is over is so no longer.
    fn let_go(&mut self, at: usize) {
        for held in std::mem::take(&mut self.nodes[at].held) {
            self.nodes[held].missing -= 1;
            self.ready_if_free(held);
        }
    }

    fn ready_if_free(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if node.missing == 0 && node.standing == Standing::Pending {
            node.standing = Standing::Ready;
            self.ready.insert((std::cmp::Reverse(node.path), node.id.clone()));
        }
    }

    /// Adds to each step's weight the longest path of its dependents, last steps first.
    fn measure_paths(&mut self) {
        let mut missing: Vec<usize> = self.nodes.iter().map(|n| n.missing).collect();
        let mut order: Vec<usize> = (0..self.nodes.len()).filter(|at| missing[*at] == 0).collect();
        let mut next = 0;
        while let Some(&at) = order.get(next) {
            next += 1;
            for &dependent in &self.nodes[at].dependents {
                missing[dependent] -= 1;
                if missing[dependent] == 0 {
                    order.push(dependent);
                }
            }
        }
        for &at in order.iter().rev() {
            let behind = self.nodes[at].dependents.iter().map(|d| self.nodes[*d].path).max();
            self.nodes[at].path = self.nodes[at].path.saturating_add(behind.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests;
