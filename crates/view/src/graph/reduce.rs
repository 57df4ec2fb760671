//! What each step needs without what those needs need themselves: the same ways through the graph, and no edge too many.

use std::collections::BTreeMap;

use castle_model::{StepDecl, StepId};

/// The edges that matter: what each step needs, without what those needs need themselves.
#[must_use]
pub fn reduced(decls: &[StepDecl]) -> BTreeMap<&StepId, Vec<&StepId>> {
    let edges = reduce(&numbered(decls));
    let named = |needs: Vec<usize>| needs.into_iter().map(|need| &decls[need].id).collect();
    decls.iter().zip(edges).map(|(decl, needs)| (&decl.id, named(needs))).collect()
}

/// What each step needs, by number; what is not declared is left out.
pub(super) fn numbered(decls: &[StepDecl]) -> Vec<Vec<usize>> {
    let numbers: BTreeMap<&StepId, usize> =
        decls.iter().enumerate().map(|(number, decl)| (&decl.id, number)).collect();
    let needs = |decl: &StepDecl| -> Vec<usize> {
        decl.needs.iter().filter_map(|need| numbers.get(need).copied()).collect()
    };
    decls.iter().map(needs).collect()
}

/// The least edges that leave everything reachable as it is, in ascending order.
pub(super) fn reduce(needs: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut needs = needs.to_vec();
    for needs in &mut needs {
        needs.sort_unstable();
        needs.dedup();
    }
    let behind = all_behind(&needs);
    let implied = |needs: &[usize], need: usize| {
        needs.iter().any(|other| *other != need && has(&behind[*other], need))
    };
    needs
        .iter()
        .map(|all| all.iter().copied().filter(|need| !implied(all, *need)).collect())
        .collect()
}

/// For each step a set of bits: everything that it needs, directly or not. Walks without recursion, so that
/// depth costs no stack; a cycle ends the walk.
pub(super) fn all_behind(needs: &[Vec<usize>]) -> Vec<Vec<u64>> {
    let mut behind: Vec<Vec<u64>> = vec![Vec::new(); needs.len()];
    let mut entered = vec![false; needs.len()];
    for start in 0..needs.len() {
        let mut open = vec![(start, false)];
        while let Some((step, expanded)) = open.pop() {
            if expanded {
                let mut all = vec![0; needs.len().div_ceil(64)];
                for need in &needs[step] {
                    all[need / 64] |= 1 << (need % 64);
                    for (word, further) in all.iter_mut().zip(&behind[*need]) {
                        *word |= further;
                    }
                }
                behind[step] = all;
            } else if !entered[step] {
                entered[step] = true;
                open.push((step, true));
                open.extend(needs[step].iter().map(|need| (*need, false)));
            }
        }
    }
    behind
}

/// Whether a number is in a set of bits.
pub(super) fn has(bits: &[u64], number: usize) -> bool {
    bits.get(number / 64).is_some_and(|word| word & (1 << (number % 64)) != 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::decls;

    #[test]
    fn implied_edges_are_left_out() {
        let decls = decls();
        let edges = reduced(&decls);
        let after = |kind: &str| -> Vec<&str> {
            let found = edges.iter().find(|(id, _)| id.as_str() == kind).unwrap();
            found.1.iter().map(|id| id.as_str()).collect()
        };
        assert_eq!(after("platform/vm/cp-01"), ["platform/image"]);
        assert_eq!(after("platform/vip"), ["platform/vm/cp-01", "platform/vm/w-01"]);
        assert!(after("secrets/read").is_empty());
    }

    #[test]
    fn a_deep_graph_needs_no_stack() {
        let id = |n: usize| StepId::of("platform", "x", &n.to_string());
        let decls: Vec<StepDecl> = (0..3000)
            .map(|n: usize| {
                let needs = n.checked_sub(1).into_iter().chain(n.checked_sub(2)).map(id);
                StepDecl::new(id(n), "x", "vm", "it is done").needs(needs)
            })
            .collect();
        assert_eq!(reduced(&decls).values().map(Vec::len).sum::<usize>(), 2999);
    }

    /// Everything that can be reached from each step, by a walk that shares nothing with the one above.
    fn reachable(needs: &[Vec<usize>]) -> Vec<Vec<bool>> {
        let walk = |start: usize| {
            let (mut seen, mut open) = (vec![false; needs.len()], needs[start].clone());
            while let Some(step) = open.pop() {
                if !std::mem::replace(&mut seen[step], true) {
                    open.extend(&needs[step]);
                }
            }
            seen
        };
        (0..needs.len()).map(walk).collect()
    }

    proptest! {
        #[test]
        fn everything_stays_reachable_and_no_edge_can_go(needs in crate::graph::any::graph(14)) {
            let fewer = reduce(&needs);
            let before = reachable(&needs);
            prop_assert_eq!(&before, &reachable(&fewer));
            for step in 0..fewer.len() {
                for at in 0..fewer[step].len() {
                    let mut without = fewer.clone();
                    without[step].remove(at);
                    prop_assert_ne!(&before, &reachable(&without), "{} of {} is implied", at, step);
                }
            }
        }
    }
}
