//! Graphs drawn by chance, for the laws that hold for every one.

use castle_model::{StepDecl, StepId};
use proptest::prelude::*;

/// What each of up to so many steps needs: only steps before it.
pub(super) fn graph(most: usize) -> impl Strategy<Value = Vec<Vec<usize>>> {
    prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..4), 1..=most)
        .prop_map(|wishes| {
            let needs = |(step, wishes): (usize, &Vec<prop::sample::Index>)| {
                let all = wishes.iter().filter(|_| step > 0).map(|wish| wish.index(step.max(1)));
                let mut needs: Vec<usize> = all.collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            };
            wishes.iter().enumerate().map(needs).collect()
        })
}

/// Steps of up to five layers, some of them for machines, with such needs.
pub(super) fn decls(most: usize) -> impl Strategy<Value = Vec<StepDecl>> {
    let kinds = prop::collection::vec((0..5_usize, 0..3_usize, "[a-z ]{0,40}"), most);
    (graph(most), kinds).prop_map(|(needs, kinds)| {
        let id = |step: usize| {
            let layer = ["secrets", "platform", "engine", "storage", "gitops"][kinds[step].0];
            match kinds[step].1 {
                0 => StepId::new(layer, &format!("step-{step}")),
                kind => StepId::of(layer, ["vm", "boot"][kind - 1], &format!("m-{step}")),
            }
        };
        let decl = |(step, needs): (usize, &Vec<usize>)| {
            StepDecl::new(id(step), kinds[step].2.clone(), "vm", "it is done")
                .needs(needs.iter().map(|need| id(*need)))
        };
        needs.iter().enumerate().map(decl).collect()
    })
}
