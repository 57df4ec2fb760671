//! Castle beside kubectl against one real API server, measured by `crates/reality/examples/figures.rs`.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Bound, Measure, read_lines};
use crate::real::{self, Tier};
use crate::talk;

const CREATE: Bound = Bound::at_least("500 objects created, beside kubectl", 2.0, "times");
const UNCHANGED: Bound = Bound::at_least("500 objects unchanged, beside kubectl", 14.0, "times");
const MIDDLE: Bound = Bound::at_most("gate after the truth, p50", 10.0, "ms");
const LATE: Bound = Bound::at_most("gate after the truth, p99", 50.0, "ms");
const WORK: Bound =
    Bound::at_most("CPU of the client for one object, beside kubectl", 1.0, "times");
const MEMORY: Bound = Bound::at_most("memory with 2,000 objects watched", 40.0, "MB");

/// What the example prints; pairs are castle's figure and kubectl's.
#[derive(Debug, Deserialize)]
struct Line {
    create_s: (f64, f64),
    unchanged_s: (f64, f64),
    create_cpu_ms: (f64, f64),
    /// The middle, and 99 of 100.
    late_ms: (f64, f64),
    kubectl_wait_ms: f64,
    loop_ms: f64,
    memory_mb: f64,
}

/// Prepares the real components, runs the example and judges its figures.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let line = figures(root);
    let of = |figure: fn(&Line) -> (f64, String)| match &line {
        Ok(line) => Ok(figure(line)),
        Err(error) => bail!("{error:#}"),
    };
    vec![
        CREATE.judge(of(|line| beside(line.create_s, "s"))),
        UNCHANGED.judge(of(|line| beside(line.unchanged_s, "s"))),
        MIDDLE.judge(of(|line| (line.late_ms.0, others(line)))),
        LATE.judge(of(|line| (line.late_ms.1, others(line)))),
        WORK.judge(of(|line| {
            let (ours, theirs) = line.create_cpu_ms;
            (ours / theirs, format!("{ours:.2} ms and {theirs:.2} ms"))
        })),
        MEMORY.judge(of(|line| (line.memory_mb, "the whole process".to_owned()))),
    ]
}

fn figures(root: &Path) -> Result<Line> {
    let prepared = real::prepare(root, Tier::Always)?;
    let words = ["cargo", "run", "--quiet", "--release", "--locked", "--package", "castle-reality"];
    let words: Vec<&str> = words.into_iter().chain(["--example", "figures"]).collect();
    let mut command = talk::program(root, &words)?;
    let output = command.env(real::PLACE, &prepared.place).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("the figures ended with {}", output.status);
    }
    let lines = read_lines(&String::from_utf8_lossy(&output.stdout))?;
    lines.into_iter().next().context("the figures gave no line")
}

/// How many times as fast castle is.
fn beside((ours, theirs): (f64, f64), unit: &str) -> (f64, String) {
    (theirs / ours, format!("{ours:.2} {unit} and {theirs:.2} {unit}"))
}

fn others(line: &Line) -> String {
    format!(
        "kubectl wait {:.0} ms, a loop with `sleep 5` {:.0} ms",
        line.kubectl_wait_ms, line.loop_ms
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_figures_is_read_and_compared() {
        let text = r#"{"create_s":[2.0,10.0],"unchanged_s":[0.5,8.0],"create_cpu_ms":[1.0,4.0],"late_ms":[1.5,9.0],"kubectl_wait_ms":80.0,"loop_ms":2500.0,"memory_mb":21.0}"#;
        let line: Line = read_lines(text).unwrap().pop().unwrap();
        assert_eq!(beside(line.create_s, "s"), (5.0, "2.00 s and 10.00 s".to_owned()));
        assert_eq!(others(&line), "kubectl wait 80 ms, a loop with `sleep 5` 2500 ms");
    }
}
