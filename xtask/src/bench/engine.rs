//! Figures of the engine alone, measured by `crates/engine/examples/steps.rs`.
//!
//! The example prints one JSON object a line: `{"case": "no-op steps", "steps": 1000, "milliseconds": 20, "syncs": 0}`,
//! for `no-op steps` (1,000 and 10,000, three needs each, journal in memory) and `journaled steps` (1,000, on disk).

use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::{Bound, Measure, example};

const EXAMPLE: &str = "crates/engine/examples/steps.rs";

const THOUSAND: Bound = Bound::at_most("1,000 no-op steps", 0.1, "s");
const TEN_THOUSAND: Bound = Bound::at_most("10,000 no-op steps", 1.0, "s");
const GROWTH: Bound = Bound::at_most("growth from 1,000 to 10,000", 12.0, "times");
const JOURNALED: Bound = Bound::at_most("1,000 journaled steps", 0.4, "s");

#[derive(Deserialize)]
struct Line {
    case: String,
    steps: usize,
    milliseconds: f64,
    syncs: u64,
}

/// Runs the example and judges its figures.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let lines = example::<Line>(root, "castle-engine", "steps", &[]);
    let figure = |case: &str, steps: usize| match &lines {
        Ok(lines) => {
            let found = lines.iter().find(|line| line.case == case && line.steps == steps);
            found.with_context(|| format!("{EXAMPLE} gave no figure for {steps} {case}"))
        }
        Err(error) => bail!("{error:#}"),
    };
    let seconds =
        |steps: usize| Ok((figure("no-op steps", steps)?.milliseconds / 1000.0, String::new()));
    let growth = || Ok((seconds(10_000)?.0 / seconds(1_000)?.0, String::new()));
    let journaled = figure("journaled steps", 1_000);
    vec![
        THOUSAND.judge(seconds(1_000)),
        TEN_THOUSAND.judge(seconds(10_000)),
        GROWTH.judge(growth()),
        JOURNALED.judge(
            journaled.map(|line| (line.milliseconds / 1000.0, format!("{} fsyncs", line.syncs))),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::read_lines;
    use super::*;

    #[test]
    fn the_lines_of_the_example_are_read() {
        let text =
            r#"{"case": "journaled steps", "steps": 1000, "milliseconds": 12.5, "syncs": 7}"#;
        let lines = read_lines::<Line>(text).unwrap();
        assert_eq!(
            (lines[0].case.as_str(), lines[0].steps, lines[0].syncs),
            ("journaled steps", 1000, 7)
        );
        assert!(read_lines::<Line>("1,000 steps: fast\n").is_err());
    }

    #[test]
    fn a_missing_example_is_said() {
        let measures = measure(Path::new("no/such/folder"));
        assert!(measures.iter().all(|measure| measure.verdict == "not measured"));
    }
}
