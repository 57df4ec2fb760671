//! What a crash costs, how long the way down is, and how many lives a core plays in a second.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Bound, Measure, example, median};

const RESUME: Bound = Bound::at_most("resume after a kill, to the first call", 100.0, "ms");
const DOWN: Bound = Bound::at_most("way down of 3+2 against its bound", 1.05, "times");
/// The audit at the end waits four seconds for addresses that are to be silent, once.
const WHOLE: Bound = Bound::at_most("whole `castle down` of 3+2, with its audit", 9.0, "s");
const SEEDS: Bound = Bound::at_least("seeds lived by one core", 2.0, "a second");

/// A line of `proof figures`.
#[derive(Debug, Deserialize)]
#[serde(tag = "case", rename_all = "kebab-case")]
enum Line {
    Down { seed: u64, took_ms: f64, bound_ms: f64, whole_ms: f64 },
    Resume { first_call_ms: f64 },
    Seeds { per_second_and_core: f64 },
}

/// Measures by the example of `crates/proof`.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let lines = example::<Line>(root, "castle-proof", "proof", &["figures"]);
    vec![
        RESUME.judge(of(&lines, resume)),
        DOWN.judge(of(&lines, down)),
        WHOLE.judge(of(&lines, whole)),
        SEEDS.judge(of(&lines, seeds)),
    ]
}

fn of(
    lines: &Result<Vec<Line>>,
    figure: impl Fn(&[Line]) -> Option<(f64, String)>,
) -> Result<(f64, String)> {
    match lines {
        Ok(lines) => figure(lines).context("the example gave no such figure"),
        Err(error) => bail!("{error:#}"),
    }
}

fn resume(lines: &[Line]) -> Option<(f64, String)> {
    let all: Vec<f64> = lines
        .iter()
        .filter_map(|line| match line {
            Line::Resume { first_call_ms } => Some(*first_call_ms),
            _ => None,
        })
        .collect();
    let worst = all.iter().copied().max_by(f64::total_cmp)?;
    let note =
        format!("worst of {} points of an up, p50 {:.1} ms", all.len(), median(all.clone())?);
    Some((worst, note))
}

fn down(lines: &[Line]) -> Option<(f64, String)> {
    let mut all = Vec::new();
    for line in lines {
        if let Line::Down { seed, took_ms, bound_ms, .. } = line {
            all.push((took_ms / bound_ms, *seed, *took_ms));
        }
    }
    let (worst, seed, _) = all.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let took = median(all.iter().map(|(_, _, took)| *took).collect())?;
    let middle = median(all.iter().map(|(ratio, ..)| *ratio).collect())?;
    let note = format!(
        "worst of {} seeds ({seed}), p50 {middle:.3}; p50 {:.1} s of virtual time",
        all.len(),
        took / 1000.0
    );
    Some((worst, note))
}

fn whole(lines: &[Line]) -> Option<(f64, String)> {
    let seconds = lines.iter().filter_map(|line| match line {
        Line::Down { whole_ms, .. } => Some(whole_ms / 1000.0),
        _ => None,
    });
    let all: Vec<f64> = seconds.collect();
    let worst = all.iter().copied().max_by(f64::total_cmp)?;
    let note = format!("worst of {} seeds, p50 {:.1} s", all.len(), median(all.clone())?);
    Some((worst, note))
}

fn seeds(lines: &[Line]) -> Option<(f64, String)> {
    lines.iter().find_map(|line| match line {
        Line::Seeds { per_second_and_core } => {
            Some((*per_second_and_core, "several runs each, faults and crashes in them".to_owned()))
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::read_lines;
    use super::*;

    #[test]
    fn the_worst_counts() {
        let text = r#"{"case": "down", "seed": 1, "took_ms": 2040, "bound_ms": 2000, "whole_ms": 6000}
{"case": "down", "seed": 2, "took_ms": 2200, "bound_ms": 2000, "whole_ms": 7000}
{"case": "resume", "point": 7, "first_call_ms": 12.5}
{"case": "resume", "point": 9, "first_call_ms": 4}
{"case": "seeds", "per_second_and_core": 2.5}"#;
        let lines = read_lines::<Line>(text).unwrap();
        let (worst, note) = down(&lines).unwrap();
        assert!((worst - 1.1).abs() < 1e-9 && note.contains("(2)"), "{worst} {note}");
        assert!((whole(&lines).unwrap().0 - 7.0).abs() < 1e-9);
        assert!((resume(&lines).unwrap().0 - 12.5).abs() < 1e-9);
        assert!((seeds(&lines).unwrap().0 - 2.5).abs() < 1e-9);
        assert_eq!(resume(&lines[..2]), None);
    }
}
