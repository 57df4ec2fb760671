//! `cargo xtask soak --planted`: turns every planted bug on, and writes into `docs/proof.md` what found it.

use std::fs;

use anyhow::{Context as _, Result};

use crate::talk::{self, say};
use crate::tree;

/// The example that plants them: with debug assertions, because a release holds none.
const PLANTED: [&str; 11] = [
    "cargo",
    "run",
    "--quiet",
    "--profile",
    "soak",
    "--locked",
    "--package",
    "castle-proof",
    "--example",
    "planted",
    "--",
];

/// The page with the table, and what stands around the table there.
const PAGE: &str = "docs/proof.md";
const OPENS: &str = "<!-- planted -->\n";
const CLOSES: &str = "<!-- /planted -->\n";

/// Plays the trial of each bug, then so many seeds at most. A bug that its trial misses is a failure.
pub(crate) fn run(seeds: &str) -> Result<bool> {
    let root = tree::root()?;
    let words = [&PLANTED[..], std::slice::from_ref(&seeds)].concat();
    let table = talk::output(&root, &words)?;
    say(&table);
    let page = root.join(PAGE);
    let text = fs::read_to_string(&page).context(PAGE)?;
    fs::write(&page, with_table(&text, &table)?).context(PAGE)?;
    Ok(true)
}

/// The page with another table.
fn with_table(page: &str, table: &str) -> Result<String> {
    let missing = || format!("{PAGE} has no place for the table");
    let (before, rest) = page.split_once(OPENS).with_context(missing)?;
    let (_, after) = rest.split_once(CLOSES).with_context(missing)?;
    Ok(format!("{before}{OPENS}{}\n{CLOSES}{after}", table.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_table_takes_the_place_of_the_old_one() {
        let page = format!("a\n{OPENS}old\n{CLOSES}b\n");
        let written = with_table(&page, "new\n\n").unwrap();
        assert_eq!(written, format!("a\n{OPENS}new\n{CLOSES}b\n"));
        assert!(with_table("a page without a place", "new").is_err());
    }
}
