//! Failures that are one: steps that failed for the very same reason are told of together, and nothing of any is lost.

use castle_model::{Failure, StepId};

/// A step that failed, and why.
pub type Failed<'a> = (&'a StepId, &'a Failure);

/// Puts those together that failed for the same reason and can be helped in the same way: the class, why, everything that is
/// wrong, and the hint are the same. Each group stands where its first step did.
#[must_use]
pub fn together<'a>(failed: impl IntoIterator<Item = Failed<'a>>) -> Vec<Vec<Failed<'a>>> {
    let mut groups: Vec<Vec<Failed<'a>>> = Vec::new();
    for (id, failure) in failed {
        let group = groups
            .iter_mut()
            .find(|group| group.first().is_some_and(|(_, first)| is_same(first, failure)));
        match group {
            Some(group) => group.push((id, failure)),
            None => groups.push(vec![(id, failure)]),
        }
    }
    groups
}

fn is_same(one: &Failure, other: &Failure) -> bool {
    let reason = |failure: &Failure| {
        let Failure { class, why, findings, hint, .. } = failure;
        (*class, why.clone(), findings.clone(), hint.clone())
    };
    reason(one) == reason(other)
}

/// What is said of one group, each with its label, in the order of [`Failure::parts`]. What was done and what was seen last
/// stands there once if it is the same for all, else for each step.
#[must_use]
pub fn parts(group: &[Failed<'_>]) -> Vec<(&'static str, String)> {
    let [(_, first), _, ..] = group else {
        return group.iter().flat_map(|(_, failure)| failure.parts()).collect();
    };
    let common = Failure { evidence: None, ..(*first).clone() };
    let mut parts = each(group, "what", |failure| Some(&failure.what));
    parts.push(("why", common.why.clone()));
    parts.extend(common.seen());
    parts.extend(each(group, "last seen", |failure| failure.evidence.as_ref()));
    parts.extend(common.hint.map(|hint| ("hint", hint)));
    parts
}

fn each(
    group: &[Failed<'_>],
    label: &'static str,
    of: impl Fn(&Failure) -> Option<&String>,
) -> Vec<(&'static str, String)> {
    let said = || group.iter().map(|(id, failure)| (*id, of(failure)));
    let first = said().next().and_then(|(_, text)| text);
    if said().all(|(_, text)| text == first) {
        return first.map(|text| (label, text.clone())).into_iter().collect();
    }
    said().filter_map(|(id, text)| Some((label, format!("{id}: {}", text?)))).collect()
}

#[cfg(test)]
mod tests {
    use castle_model::failure::{Class, Finding};

    use super::*;

    fn refused(vmid: u32) -> Failure {
        Failure::new(Class::Denied, format!("create VM {vmid}"), "401 no such token")
            .hint("make the token again")
    }

    #[test]
    fn another_reason_or_another_cure_is_another_failure() {
        let id = |name: &str| StepId::of("platform", "vm", name);
        let (a, b, c) = (id("a"), id("b"), id("c"));
        let alone = |other: Failure| {
            let first = refused(1);
            let groups = together([(&a, &first), (&b, &other), (&c, &first)]);
            let names: Vec<Vec<&str>> = groups
                .iter()
                .map(|group| group.iter().map(|(id, _)| id.as_str()).collect())
                .collect();
            names == [vec!["platform/vm/a", "platform/vm/c"], vec!["platform/vm/b"]]
        };
        assert!(!alone(refused(2)) && !alone(refused(2).evidence("VM 2 is locked")));
        assert!(alone(Failure { why: "403".to_owned(), ..refused(1) }));
        assert!(alone(Failure { class: Class::Gone, ..refused(1) }));
        assert!(alone(Failure { hint: None, ..refused(1) }));
        assert!(alone(refused(1).findings(vec![Finding::new("pve", "is full", "make room")])));
    }

    #[test]
    fn what_is_the_same_is_said_once_and_what_is_not_by_each_step() {
        let (a, b) = (StepId::of("platform", "vm", "a"), StepId::of("platform", "vm", "b"));
        let (one, other) = (refused(1), refused(2).evidence("VM 2 is locked"));
        let told = |group: &[Failed<'_>]| {
            let lines = parts(group).into_iter().map(|(label, text)| format!("{label}: {text}"));
            lines.collect::<Vec<_>>().join("\n")
        };
        insta::assert_snapshot!(told(&[(&a, &one), (&b, &other)]), @"
        what: platform/vm/a: create VM 1
        what: platform/vm/b: create VM 2
        why: 401 no such token
        last seen: platform/vm/b: VM 2 is locked
        hint: make the token again
        ");
        insta::assert_snapshot!(told(&[(&a, &one), (&b, &one)]), @"
        what: create VM 1
        why: 401 no such token
        hint: make the token again
        ");
        assert_eq!(parts(&[(&b, &other)]), other.parts(), "one alone is told as ever");
    }
}
