//! `cargo xtask soak`: what takes longer than a suite may: rounds with real components, every point of the crash matrix, seeds.

use anyhow::{Result, bail};

use crate::talk::{self, say, seconds};
use crate::{planted, suite, tree};

/// The acts that are killed at each of their points.
const ACTS: [&str; 5] = ["up", "down", "wipe", "rebirth", "forgotten"];

/// How many seeds a soak lives if nobody asks for a number.
const SEEDS: &str = "1000";

/// How many seeds are tried for each planted bug if nobody asks for a number.
const PLANTED_SEEDS: &str = "20";

/// The example that does it, fast and with debug assertions.
const PROOF: [&str; 11] = [
    "cargo",
    "run",
    "--quiet",
    "--profile",
    "soak",
    "--locked",
    "--package",
    "castle-proof",
    "--example",
    "proof",
    "--",
];

/// Does what was asked for; everything, one after the other, if that was nothing.
pub(crate) fn run(words: &[&str]) -> Result<bool> {
    match words {
        [] => {
            let parts = [suite::rounds()?, matrix(&ACTS)?, proof(&["seeds", SEEDS])?];
            Ok(parts.into_iter().all(|sound| sound))
        }
        ["--rounds"] => suite::rounds(),
        ["--matrix"] => matrix(&ACTS),
        ["--matrix", act] => matrix(&[act]),
        ["--point", act, number] => proof(&["point", act, number]),
        ["--seeds", count] => proof(&["seeds", count]),
        ["--seeds", count, "--from", first] => proof(&["seeds", count, first]),
        ["--seed", number] => proof(&["seed", number]),
        ["--planted"] => planted::run(PLANTED_SEEDS),
        ["--planted", seeds] => planted::run(seeds),
        _ => bail!(
            "soak takes --rounds, --matrix [ACT], --point ACT NUMBER, --seeds COUNT [--from FIRST], --seed NUMBER or --planted [SEEDS]"
        ),
    }
}

/// Every point of each act.
fn matrix(acts: &[&str]) -> Result<bool> {
    let mut sound = true;
    for act in acts {
        sound &= proof(&["matrix", act])?;
    }
    Ok(sound)
}

fn proof(words: &[&str]) -> Result<bool> {
    let root = tree::root()?;
    let start = talk::now();
    let sound = talk::runs(&root, &[&PROOF[..], words].concat())?;
    say(&format!("{} took {}", words.join(" "), seconds(start.elapsed())));
    Ok(sound)
}
