//! What is drawn of a graph: layers, boxes, arrows and the critical path; machines of a kind are one box.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use castle_model::history::PastRun;
use castle_model::step::Wording;
use castle_model::{CastleName, LayerName, RunId, StepDecl, StepId};

use super::reduce::{numbered, reduce};

/// How long each step takes, and who says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Times {
    /// The run that was measured; none if these are the times that are usual.
    pub run: Option<RunId>,
    /// In milliseconds.
    pub steps: BTreeMap<StepId, u64>,
}

impl Times {
    /// Those that are usual, as the steps declare them.
    #[must_use]
    pub fn usual(decls: &[StepDecl]) -> Self {
        let steps = decls.iter().map(|decl| (decl.id.clone(), decl.weight)).collect();
        Self { run: None, steps }
    }

    /// Those of a run that is over.
    #[must_use]
    pub fn of(past: &PastRun) -> Self {
        Self { run: Some(past.run.clone()), steps: past.steps.clone() }
    }

    /// How long one step takes, in milliseconds; none where nobody says so.
    pub(super) fn of_step(&self, step: &StepId) -> u64 {
        self.steps.get(step).copied().unwrap_or(0)
    }

    /// Who says so, in words.
    #[must_use]
    pub fn words(&self) -> String {
        match &self.run {
            Some(run) => format!("as the run {run} took"),
            None => "by the usual times".to_owned(),
        }
    }
}

/// A graph that can be drawn.
#[derive(Debug, Clone)]
pub struct Sketch {
    pub(super) castle: String,
    pub(super) layers: Vec<LayerName>,
    pub(super) boxes: Vec<Drawn>,
    /// From which box to which, and whether on the critical path.
    pub(super) arrows: Vec<Arrow>,
    pub(super) steps: usize,
    /// How long the critical path takes, in words that say who says so.
    pub(super) critical: String,
}

/// A step, or several that are alike.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    /// The name of the step in its layer; of several what they have in common.
    pub(super) name: String,
    /// What it does; of several to what.
    pub(super) words: String,
    /// The number of its layer.
    pub(super) layer: usize,
    /// The steps that it stands for.
    pub(super) ids: Vec<StepId>,
    /// What is proven when it is done.
    pub(super) proof: String,
    /// How long it takes, in milliseconds; of several the one on the critical path, or else the longest.
    pub(super) takes: u64,
    pub(super) critical: bool,
    /// Whether it makes nothing.
    pub(super) only_proves: bool,
}

/// One box needs another: the arrow runs from what is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Arrow {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) critical: bool,
    /// Whether both ends are about the same machines.
    pub(super) chain: bool,
}

impl Sketch {
    /// The steps of a castle; with `expand` each one by itself.
    #[must_use]
    pub fn of(castle: &CastleName, decls: &[StepDecl], times: &Times, expand: bool) -> Self {
        let needs = reduce(&numbered(decls));
        let took = |step: usize| times.of_step(&decls[step].id);
        let path = longest(&needs, &took);
        let alike: Vec<Vec<usize>> = if expand {
            (0..decls.len()).map(|step| vec![step]).collect()
        } else {
            alike(decls, &needs)
        };
        let mut layers: Vec<LayerName> = Vec::new();
        let mut boxes = Vec::new();
        for steps in &alike {
            let layer = &decls[steps[0]].layer;
            let number = layers.iter().position(|known| known == layer).unwrap_or(layers.len());
            if number == layers.len() {
                layers.push(layer.clone());
            }
            let longest =
                |steps: &mut dyn Iterator<Item = &usize>| steps.map(|step| took(*step)).max();
            let on_path = longest(&mut steps.iter().filter(|step| path.contains(step)));
            let critical = on_path.is_some();
            let takes = on_path.or_else(|| longest(&mut steps.iter())).unwrap_or(0);
            boxes.push(drawn(decls, steps, (number, takes, critical)));
        }
        let box_of: BTreeMap<usize, usize> = alike
            .iter()
            .enumerate()
            .flat_map(|(number, steps)| steps.iter().map(move |step| (*step, number)))
            .collect();
        let next: BTreeSet<(usize, usize)> = path.windows(2).map(|two| (two[0], two[1])).collect();
        let mut arrows: BTreeMap<(usize, usize), bool> = BTreeMap::new();
        for (step, needs) in needs.iter().enumerate() {
            for need in needs {
                let critical = arrows.entry((box_of[need], box_of[&step])).or_default();
                *critical |= next.contains(&(*need, step));
            }
        }
        let total: u64 = path.iter().map(|step| took(*step)).sum();
        Self {
            castle: castle.to_string(),
            layers,
            arrows: arrows
                .into_iter()
                .map(|((from, to), critical)| {
                    let chain = same_machines(&boxes[from], &boxes[to]);
                    Arrow { from, to, critical, chain }
                })
                .collect(),
            boxes,
            steps: decls.len(),
            critical: format!("{} {}", castle_model::time::length(total), times.words()),
        }
    }
}

fn same_machines(one: &Drawn, other: &Drawn) -> bool {
    let machines = |drawn: &Drawn| -> Option<Vec<String>> {
        drawn.ids.iter().map(|id| instance(id).map(str::to_owned)).collect()
    };
    machines(one).is_some() && machines(one) == machines(other)
}

/// The steps of the critical path, first to last.
pub(super) fn critical(decls: &[StepDecl], times: &Times) -> Vec<usize> {
    let took = |step: usize| times.of_step(&decls[step].id);
    longest(&reduce(&numbered(decls)), &took)
}

fn drawn(
    decls: &[StepDecl],
    steps: &[usize],
    (layer, takes, critical): (usize, u64, bool),
) -> Drawn {
    let first = &decls[steps[0]];
    let ids: Vec<StepId> = steps.iter().map(|step| decls[*step].id.clone()).collect();
    let (name, words) = if ids.len() == 1 {
        (super::kind(&first.id).to_owned(), crate::style::clean(&first.title))
    } else {
        let instances: Vec<&str> = ids.iter().filter_map(|id| instance(id)).collect();
        let words = match instances.as_slice() {
            [first, .., last] if instances.len() > 3 => format!("{first} … {last}"),
            all => all.join(", "),
        };
        (format!("{} × {}", common(&first.id), ids.len()), words)
    };
    let only_proves = matches!(first.wording, Some(Wording::Prove | Wording::Observe));
    let proof = crate::style::clean(&first.proves);
    Drawn { name, words, layer, ids, proof, takes, critical, only_proves }
}

/// The part of a step's name that steps of its kind share.
pub(super) fn common(id: &StepId) -> &str {
    let kind = super::kind(id);
    kind.split_once('/').map_or(kind, |(common, _)| common)
}

/// The part that tells it from others of its kind, if there can be others.
fn instance(id: &StepId) -> Option<&str> {
    super::kind(id).split_once('/').map(|(_, instance)| instance)
}

/// Steps of one kind that need alike and are needed alike. Told apart until nothing more tells them apart, so that what
/// stands for many has exactly the edges of each.
fn alike(decls: &[StepDecl], needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needed: Vec<Vec<usize>> = vec![Vec::new(); decls.len()];
    for (step, needs) in needs.iter().enumerate() {
        for need in needs {
            needed[*need].push(step);
        }
    }
    let first = |step: usize| match instance(&decls[step].id) {
        Some(_) => (decls[step].layer.as_str(), common(&decls[step].id), 0),
        None => (decls[step].layer.as_str(), super::kind(&decls[step].id), step + 1),
    };
    let mut colours = numbers((0..decls.len()).map(first));
    loop {
        let of =
            |steps: &[usize]| -> BTreeSet<usize> { steps.iter().map(|s| colours[*s]).collect() };
        let finer = numbers(
            (0..decls.len()).map(|step| (colours[step], of(&needs[step]), of(&needed[step]))),
        );
        if finer == colours {
            break;
        }
        colours = finer;
    }
    let mut groups: Vec<Vec<usize>> = vec![Vec::new(); colours.iter().max().map_or(0, |c| c + 1)];
    for (step, colour) in colours.iter().enumerate() {
        groups[*colour].push(step);
    }
    groups
}

/// The same number for the same key, in the order in which the keys come.
fn numbers<K: Ord>(keys: impl Iterator<Item = K>) -> Vec<usize> {
    let mut known = BTreeMap::new();
    keys.map(|key| {
        let next = known.len();
        *known.entry(key).or_insert(next)
    })
    .collect()
}

/// The chain that takes longest, first to last.
fn longest(needs: &[Vec<usize>], took: &dyn Fn(usize) -> u64) -> Vec<usize> {
    let mut ends: Vec<Option<(u64, Option<usize>)>> = vec![None; needs.len()];
    for start in 0..needs.len() {
        let mut open = vec![start];
        let mut budget = needs.len() * needs.len() + 1;
        while let Some(step) = open.last().copied() {
            budget -= 1;
            let missing = needs[step].iter().copied().find(|need| ends[*need].is_none());
            match missing {
                // A cycle can not be declared; if one is drawn all the same, it ends here.
                Some(need) if budget > 0 && !open.contains(&need) => open.push(need),
                _ => {
                    let known = needs[step].iter().filter_map(|n| Some((ends[*n]?.0, *n)));
                    let before = known.max_by_key(|(length, n)| (*length, Reverse(*n)));
                    let length = before.map_or(0, |(length, _)| length) + took(step);
                    ends[step] = Some((length, before.map(|(_, need)| need)));
                    open.pop();
                }
            }
        }
    }
    let last = (0..needs.len()).max_by_key(|step| (ends[*step].map(|end| end.0), Reverse(*step)));
    let mut path: Vec<usize> =
        std::iter::successors(last, |step| ends[*step].and_then(|(_, before)| before)).collect();
    path.reverse();
    path
}
