//! Licences of everything that is built in: each must be on the list, in at least one of its choices.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Finding;
use crate::house::House;
use crate::talk;

/// The platform whose dependencies count: the one we release for.
const PLATFORM: &str = "x86_64-unknown-linux-musl";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
}

/// Asks cargo for every package and its licence.
pub(crate) fn check(root: &Path, house: &House) -> Result<Vec<Finding>> {
    let words =
        ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", PLATFORM];
    let metadata: Metadata = serde_json::from_str(&talk::output(root, &words)?)
        .context("understanding what cargo metadata wrote")?;
    let refused = metadata.packages.iter().filter(|package| {
        let licence = package.license.as_deref().unwrap_or_default();
        !allowed(licence, &house.licences.allowed)
    });
    let finding = |package: &Package| {
        let licence = package.license.as_deref().unwrap_or("none");
        let text = format!(
            "{} {} has licence {licence}, which is not on the list",
            package.name, package.version
        );
        Finding::new("licence", "Cargo.lock", 0, text)
    };
    Ok(refused.map(finding).collect())
}

/// Whether a licence expression can be met with allowed licences: `OR` is a choice, `AND` asks for all.
fn allowed(expression: &str, list: &[String]) -> bool {
    let expression = expression.replace('/', " OR ");
    if let Some(sides) = split(&expression, " OR ") {
        return sides.iter().any(|side| allowed(side, list));
    }
    if let Some(sides) = split(&expression, " AND ") {
        return sides.iter().all(|side| allowed(side, list));
    }
    let inner = expression.trim();
    match inner.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
        Some(inner) => allowed(inner, list),
        None => list.iter().any(|known| known == inner),
    }
}

/// The sides of an operator that stands outside of parentheses; none if it does not.
fn split(expression: &str, operator: &str) -> Option<Vec<String>> {
    let (mut depth, mut sides, mut start) = (0_usize, Vec::new(), 0);
    for (at, c) in expression.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ' ' if depth == 0 && at >= start && expression[at..].starts_with(operator) => {
                sides.push(expression[start..at].to_owned());
                start = at + operator.len();
            }
            _ => {}
        }
    }
    if sides.is_empty() {
        return None;
    }
    sides.push(expression[start..].to_owned());
    Some(sides)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_understood() {
        let list: Vec<String> =
            ["MIT", "ISC", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).to_vec();
        for good in [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/GPL-3.0",
            "ISC AND (MIT OR GPL-3.0)",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allowed(good, &list), "{good}");
        }
        for bad in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT OR ISC) AND GPL-3.0", "MITX"] {
            assert!(!allowed(bad, &list), "{bad}");
        }
    }
}
