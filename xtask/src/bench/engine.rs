//! Figures of the engine alone, measured by `crates/engine/examples/steps.rs`.
//!
//! The example prints one JSON object a line: `{"case": "no-op-1000", "seconds": 0.02, "fsyncs": 0}`, with the
//! cases `no-op-1000`, `no-op-10000` (3 needs each) and `journaled-1000`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Bound, Measure};
use crate::talk;

const EXAMPLE: &str = "crates/engine/examples/steps.rs";

const THOUSAND: Bound = Bound::at_most("1,000 no-op steps", 0.1, "s");
const TEN_THOUSAND: Bound = Bound::at_most("10,000 no-op steps", 1.0, "s");
const GROWTH: Bound = Bound::at_most("growth from 1,000 to 10,000", 12.0, "times");
const JOURNALED: Bound = Bound::at_most("1,000 journaled steps", 0.4, "s");

#[derive(Deserialize)]
struct Line {
    case: String,
    seconds: f64,
    #[serde(default)]
    fsyncs: u64,
}

/// Runs the example and judges its figures.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let lines = lines(root);
    let figure = |case: &str| match &lines {
        Ok(lines) => {
            lines.get(case).with_context(|| format!("{EXAMPLE} gave no figure for `{case}`"))
        }
        Err(error) => bail!("{error:#}"),
    };
    let plain = |case: &str| Ok((figure(case)?.seconds, String::new()));
    let growth =
        || Ok((figure("no-op-10000")?.seconds / figure("no-op-1000")?.seconds, String::new()));
    let journaled =
        || figure("journaled-1000").map(|line| (line.seconds, format!("{} fsyncs", line.fsyncs)));
    vec![
        THOUSAND.judge(plain("no-op-1000")),
        TEN_THOUSAND.judge(plain("no-op-10000")),
        GROWTH.judge(growth()),
        JOURNALED.judge(journaled()),
    ]
}

fn lines(root: &Path) -> Result<BTreeMap<String, Line>> {
    if !root.join(EXAMPLE).is_file() {
        bail!("there is no {EXAMPLE}");
    }
    let words = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "castle-engine",
        "--example",
        "steps",
    ];
    read(&talk::output(root, &words)?)
}

fn read(text: &str) -> Result<BTreeMap<String, Line>> {
    let mut lines = BTreeMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let line: Line =
            serde_json::from_str(line).with_context(|| format!("understanding `{line}`"))?;
        lines.insert(line.case.clone(), line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_example_are_read() {
        let text = "{\"case\": \"no-op-1000\", \"seconds\": 0.5}\n{\"case\":\"journaled-1000\",\"seconds\":1,\"fsyncs\":7}\n";
        let lines = read(text).unwrap();
        assert!((lines["no-op-1000"].seconds - 0.5).abs() < f64::EPSILON);
        assert_eq!(lines["journaled-1000"].fsyncs, 7);
        assert!(read("1,000 steps: fast\n").is_err());
    }

    #[test]
    fn a_missing_example_is_said() {
        let measures = measure(Path::new("no/such/folder"));
        assert!(measures.iter().all(|measure| measure.verdict == "not measured"));
    }
}
