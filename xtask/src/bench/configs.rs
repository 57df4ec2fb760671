//! How long the machine configs of a castle take, measured by `crates/clients/talos/examples/configs.rs`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Bound, Measure, example};

const EXAMPLE: &str = "crates/clients/talos/examples/configs.rs";

const CONFIGS: Bound = Bound::at_most("machine configs of 5 nodes", 5.0, "ms");

/// All configs of one castle, without the making of keys.
#[derive(Debug, Deserialize)]
struct Line {
    talos: String,
    nodes: usize,
    milliseconds: f64,
}

/// Runs the example and judges its figures: the slower generation of the format counts.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    vec![CONFIGS.judge(
        example::<Line>(root, "castle-talos", "configs", &[]).and_then(|lines| slowest(&lines)),
    )]
}

fn slowest(lines: &[Line]) -> Result<(f64, String)> {
    if let Some(other) = lines.iter().find(|line| line.nodes != 5) {
        bail!("{EXAMPLE} measured {} nodes", other.nodes);
    }
    let worst = lines.iter().max_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds));
    let worst = worst.with_context(|| format!("{EXAMPLE} gave no figure"))?;
    Ok((worst.milliseconds, format!("Talos {}, the slower of {}", worst.talos, lines.len())))
}

#[cfg(test)]
mod tests {
    use super::super::read_lines;
    use super::*;

    #[test]
    fn the_slower_generation_counts() {
        let text = r#"
            {"talos": "1.13.9", "nodes": 5, "milliseconds": 1.5}
            {"talos": "1.14.1", "nodes": 5, "milliseconds": 2.5}
        "#;
        let (worst, note) = slowest(&read_lines::<Line>(text).unwrap()).unwrap();
        assert!((worst - 2.5).abs() < 1e-9 && note.contains("1.14.1"), "{worst} {note}");
        assert!(slowest(&[]).is_err());
        let other = r#"{"talos": "1.13.9", "nodes": 1, "milliseconds": 1}"#;
        assert!(slowest(&read_lines::<Line>(other).unwrap()).is_err());
    }
}
