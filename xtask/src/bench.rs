//! `cargo xtask bench`: measures the release binary against its bounds, prints a table and writes `bench.json`.
//!
//! A bench is no test: it never fails the build, it says plainly what is missed and by how much.

mod bring_up;
mod cluster;
mod configs;
mod engine;
mod process;
mod proof;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::talk::{self, say, table};
use crate::tree;

/// Which side of its bound a figure must be on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Side {
    /// The smaller the better.
    AtMost,
    /// The larger the better.
    AtLeast,
}

/// What is measured, and what it must be.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Bound {
    pub(crate) case: &'static str,
    pub(crate) side: Side,
    #[serde(rename = "bound")]
    pub(crate) limit: f64,
    pub(crate) unit: &'static str,
}

/// One figure, or why there is none.
#[derive(Debug, Serialize)]
pub(crate) struct Measure {
    #[serde(flatten)]
    bound: Bound,
    measured: Option<f64>,
    verdict: String,
    note: String,
}

impl Bound {
    /// A bound that the figure must not exceed.
    pub(crate) const fn at_most(case: &'static str, limit: f64, unit: &'static str) -> Self {
        Self { case, side: Side::AtMost, limit, unit }
    }

    /// A bound that the figure must reach.
    pub(crate) const fn at_least(case: &'static str, limit: f64, unit: &'static str) -> Self {
        Self { case, side: Side::AtLeast, limit, unit }
    }

    /// Judges a figure; without one, the error says why.
    pub(crate) fn judge(self, measured: Result<(f64, String)>) -> Measure {
        let (measured, note) = match measured {
            Ok((figure, note)) => (Some(figure), note),
            Err(error) => (None, format!("{error:#}")),
        };
        let verdict = match measured {
            None => "not measured".to_owned(),
            Some(figure) if self.is_met(figure) => "met".to_owned(),
            Some(figure) => {
                format!("missed by {:.0} %", (figure - self.limit).abs() / self.limit * 100.0)
            }
        };
        Measure { bound: self, measured, verdict, note }
    }

    fn is_met(self, figure: f64) -> bool {
        match self.side {
            Side::AtMost => figure <= self.limit,
            Side::AtLeast => figure >= self.limit,
        }
    }
}

impl Measure {
    fn row(&self) -> Vec<String> {
        let Bound { case, side, limit, unit } = self.bound;
        let sign = if side == Side::AtMost { "≤" } else { "≥" };
        let measured =
            self.measured.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3} {unit}"));
        vec![
            case.to_owned(),
            format!("{sign} {limit} {unit}"),
            measured,
            self.verdict.clone(),
            self.note.clone(),
        ]
    }
}

#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    cases: &'a [Measure],
}

/// Builds, unless a binary is given; measures; reports.
pub(crate) fn run(binary: Option<&Path>) -> Result<bool> {
    let root = tree::root()?;
    let target = tree::target(&root)?;
    let castle = match binary {
        Some(binary) => {
            fs::canonicalize(binary).with_context(|| format!("finding {}", binary.display()))?
        }
        None => build(&root, &target)?,
    };
    let mut measures = process::measure(&castle);
    measures.extend(engine::measure(&root));
    measures.extend(bring_up::measure(&root));
    measures.extend(configs::measure(&root));
    measures.extend(cluster::measure(&root));
    measures.extend(proof::measure(&root));
    let rows: Vec<_> = measures.iter().map(Measure::row).collect();
    say(&table(&["case", "bound", "measured", "verdict", "note"], &rows));
    let report = target.join("bench.json");
    let text = serde_json::to_string_pretty(&Report { version: 1, cases: &measures })
        .context("writing the report")?;
    fs::write(&report, text + "\n").with_context(|| format!("writing {}", report.display()))?;
    let count =
        |word: &str| measures.iter().filter(|measure| measure.verdict.starts_with(word)).count();
    say(&format!(
        "\n{} met, {} missed, {} not measured; figures in {}",
        count("met"),
        count("missed"),
        count("not"),
        report.display()
    ));
    Ok(true)
}

fn build(root: &Path, target: &Path) -> Result<PathBuf> {
    if !talk::runs(root, &["cargo", "build", "--release", "--locked", "--package", "castle"])? {
        bail!("the release build failed, so there is nothing to measure");
    }
    Ok(target.join("release/castle"))
}

/// The figures that an example prints, one JSON object a line.
pub(crate) fn example<T: DeserializeOwned>(
    root: &Path,
    package: &str,
    name: &str,
    arguments: &[&str],
) -> Result<Vec<T>> {
    if !root.join("Cargo.toml").is_file() {
        bail!("there is no workspace in {}", root.display());
    }
    let words = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        package,
        "--example",
        name,
        "--",
    ];
    read_lines(&talk::output(root, &[&words[..], arguments].concat())?)
}

/// Reads one JSON object a line.
pub(crate) fn read_lines<T: DeserializeOwned>(text: &str) -> Result<Vec<T>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| serde_json::from_str(line).with_context(|| format!("understanding `{line}`")))
        .collect()
}

/// The middle of several figures.
pub(crate) fn median(figures: Vec<f64>) -> Option<f64> {
    percentile(figures, 50)
}

/// The figure below which so many of a hundred lie.
pub(crate) fn percentile(mut figures: Vec<f64>, percent: usize) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() * percent / 100).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_judged_by_its_side() {
        let verdict = |bound: Bound, figure| bound.judge(Ok((figure, String::new()))).verdict;
        let (small, large) =
            (Bound::at_most("start", 3.0, "ms"), Bound::at_least("rate", 5.0, "a second"));
        assert_eq!(verdict(small, 3.0), "met");
        assert_eq!(verdict(small, 4.5), "missed by 50 %");
        assert_eq!(verdict(large, 5.0), "met");
        assert_eq!(verdict(large, 4.0), "missed by 20 %");
        let none = small.judge(Err(anyhow::anyhow!("no binary")));
        assert_eq!(
            (none.measured, none.verdict.as_str(), none.note.as_str()),
            (None, "not measured", "no binary")
        );
    }

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
        assert_eq!(percentile((0..10).map(f64::from).collect(), 90), Some(9.0));
    }
}
