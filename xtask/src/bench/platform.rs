//! The platform layer against the bound that the datacenter computes, measured by `crates/layers/examples/platform.rs`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use super::{Bound, Measure, example, median};

const EXAMPLE: &str = "crates/layers/examples/platform.rs";

const RATIO: Bound = Bound::at_most("platform against its physical bound", 1.05, "times");
const LATE: Bound = Bound::at_most("latest watching gate after its truth", 100.0, "ms");

/// One castle that was raised, in virtual milliseconds.
#[derive(Debug, Deserialize)]
struct Line {
    seed: u64,
    took_ms: f64,
    bound_ms: f64,
    late_ms: BTreeMap<String, f64>,
}

/// Runs the example and judges its figures: the worst of all seeds, since a bound that holds on average is none.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let lines = example::<Line>(root, "castle-layers", "platform");
    let of = |worst: fn(&[Line]) -> Option<(f64, String)>| match &lines {
        Ok(lines) => worst(lines).with_context(|| format!("{EXAMPLE} gave no figure")),
        Err(error) => bail!("{error:#}"),
    };
    vec![RATIO.judge(of(ratio)), LATE.judge(of(late))]
}

fn ratio(lines: &[Line]) -> Option<(f64, String)> {
    let each = |line: &Line| line.took_ms / line.bound_ms;
    let worst = lines.iter().max_by(|a, b| each(a).total_cmp(&each(b)))?;
    let middle = median(lines.iter().map(each).collect())?;
    let took = median(lines.iter().map(|line| line.took_ms / 1000.0).collect())?;
    let note = format!(
        "worst of {} seeds ({}), median {middle:.3}; the layer takes {took:.0} s of virtual time",
        lines.len(),
        worst.seed
    );
    Some((each(worst), note))
}

fn late(lines: &[Line]) -> Option<(f64, String)> {
    let all = lines.iter().flat_map(|line| line.late_ms.iter().map(move |late| (line.seed, late)));
    let (seed, (gate, worst)) = all.max_by(|a, b| a.1.1.total_cmp(b.1.1))?;
    Some((*worst, format!("{gate}, seed {seed}")))
}

#[cfg(test)]
mod tests {
    use super::super::read_lines;
    use super::*;

    #[test]
    fn the_worst_seed_counts() {
        let text = r#"
            {"seed": 1, "took_ms": 1020, "bound_ms": 1000, "late_ms": {"platform/etcd": 7}}
            {"seed": 2, "took_ms": 2100, "bound_ms": 2000, "late_ms": {"platform/nodes": 90}}
        "#;
        let lines = read_lines::<Line>(text).unwrap();
        let (worst, note) = ratio(&lines).unwrap();
        assert!((worst - 1.05).abs() < 1e-9 && note.contains("(2)"), "{worst} {note}");
        assert_eq!(late(&lines), Some((90.0, "platform/nodes, seed 2".to_owned())));
        assert!(read_lines::<Line>("fast\n").is_err());
        assert_eq!(ratio(&[]), None);
    }
}
