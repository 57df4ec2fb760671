//! The lock file: a budget of crates, and one public registry for all of them.

use super::Finding;
use crate::house::House;
use crate::tree::Source;

const LOCK: &str = "Cargo.lock";
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// How many crates the lock file holds.
pub(crate) fn count(files: &[Source]) -> usize {
    let lock = files.iter().find(|file| file.path == LOCK);
    lock.map_or(0, |lock| lock.text.lines().filter(|line| *line == "[[package]]").count())
}

/// Checks the budget and the sources.
pub(crate) fn check(house: &House, files: &[Source]) -> Vec<Finding> {
    let Some(lock) = files.iter().find(|file| file.path == LOCK) else {
        return vec![Finding::new(
            "lock",
            LOCK,
            0,
            "is missing: builds must be the same everywhere, commit it",
        )];
    };
    let (crates, budget) = (count(files), house.limits.crates_in_lock);
    let mut findings = Vec::new();
    if crates > budget {
        let text = format!(
            "{crates} crates, {budget} are allowed: drop one, or raise the budget and say what it buys"
        );
        findings.push(Finding::new("lock", LOCK, 0, text));
    }
    for (index, line) in lock.text.lines().enumerate() {
        if line.strip_prefix("source = ").is_some_and(|source| source.trim_matches('"') != REGISTRY)
        {
            let text = "not from crates.io: a clone elsewhere could not build it";
            findings.push(Finding::new("lock", LOCK, index + 1, text));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::tests::{file, house};

    #[test]
    fn the_budget_is_kept() {
        let house = house();
        let lock = |crates: usize| [file(LOCK, &"[[package]]\n".repeat(crates))];
        assert_eq!(check(&house, &lock(house.limits.crates_in_lock)), []);
        assert_eq!(check(&house, &lock(house.limits.crates_in_lock + 1)).len(), 1);
        assert_eq!(check(&house, &[]).len(), 1);
    }

    #[test]
    fn only_the_public_registry_is_used() {
        let text = format!(
            "[[package]]\nsource = \"{REGISTRY}\"\n[[package]]\nsource = \"git+https://x\"\n"
        );
        assert_eq!(check(&house(), &[file(LOCK, &text)]).len(), 1);
    }
}
