//! Bring-ups against the bound that the datacenter computes, beside the published way, and what they cost to rehearse;
//! measured by `crates/layers/examples/bring_up`.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::{Bound, Measure, example, median, percentile};

const EXAMPLE: &str = "crates/layers/examples/bring_up";

const PLATFORM: Bound = Bound::at_most("platform against its physical bound", 1.05, "times");
const HANDOVER: Bound = Bound::at_most("handover against its physical bound", 1.05, "times");
const WHOLE: Bound = Bound::at_most("whole bring-up against its physical bound", 1.05, "times");
const LATE: Bound = Bound::at_most("latest watching gate after its truth", 100.0, "ms");
const TIME: Bound = Bound::at_most("calibrated 3+2 bring-up, p50", 190.0, "s, virtual");
const FASTER: Bound = Bound::at_least("faster than the published way, p50", 2.5, "times");
const PULLS: Bound = Bound::at_least("parallel pulls, which Talos has by itself", 10.0, "s");
const GROWTH: Bound = Bound::at_most("growth of processor time with nodes, exponent", 1.2, "");
const MEMORY: Bound = Bound::at_most("memory of a rehearsed 3+2 bring-up", 60.0, "MB");

/// What each lever of the published way was expected to give alone, by the model that the calibration comes from.
const LEVERS: &[Bound] = &[
    Bound::at_least("no Terragrunt and OpenTofu per unit", 38.0, "s"),
    Bound::at_least("watching instead of polling", 25.0, "s"),
    Bound::at_least("requeue of Flux 5 s instead of 30 s", 25.0, "s"),
    Bound::at_least("linked import instead of full clone", 70.0, "s"),
    Bound::at_least("disk image instead of install", 71.0, "s"),
    Bound::at_least("true edges instead of barriers", 48.0, "s"),
];

/// Castle's time and the bound of it, in virtual milliseconds.
#[derive(Debug, Deserialize)]
struct Against {
    took_ms: f64,
    bound_ms: f64,
}

/// One castle that was raised.
#[derive(Debug, Deserialize)]
struct Line {
    seed: u64,
    platform: Against,
    handover: Against,
    whole: Against,
    late_ms: BTreeMap<String, f64>,
    published_ms: f64,
    levers: Vec<String>,
    alone_ms: Vec<f64>,
    serial_ms: f64,
    added_ms: Vec<f64>,
}

/// One size of castle, and what it cost.
#[derive(Debug, Deserialize)]
struct Size {
    control_planes: u32,
    workers: u32,
    processor_ms: f64,
    memory_mb: f64,
}

/// Runs the example and judges its figures: the worst of all seeds, since a bound that holds on average is none.
pub(crate) fn measure(root: &Path) -> Vec<Measure> {
    let lines = example::<Line>(root, "castle-layers", "bring_up", &[]);
    let sizes = example::<Size>(root, "castle-layers", "bring_up", &["growth"]);
    let mut measures = vec![
        PLATFORM.judge(of(&lines, |lines| ratio(lines, |line| &line.platform))),
        HANDOVER.judge(of(&lines, |lines| ratio(lines, |line| &line.handover))),
        WHOLE.judge(of(&lines, |lines| ratio(lines, |line| &line.whole))),
        LATE.judge(of(&lines, late)),
        TIME.judge(of(&lines, time)),
        FASTER.judge(of(&lines, faster)),
        GROWTH.judge(of(&sizes, growth)),
        MEMORY.judge(of(&sizes, memory)),
    ];
    for (index, bound) in LEVERS.iter().enumerate() {
        measures.push(bound.judge(of(&lines, |lines| lever(lines, index))));
    }
    measures.push(PULLS.judge(of(&lines, pulls)));
    measures
}

fn of<T>(
    lines: &Result<Vec<T>>,
    figure: impl Fn(&[T]) -> Option<(f64, String)>,
) -> Result<(f64, String)> {
    match lines {
        Ok(lines) => figure(lines).with_context(|| format!("{EXAMPLE} gave no figure")),
        Err(error) => bail!("{error:#}"),
    }
}

fn ratio(lines: &[Line], part: impl Fn(&Line) -> &Against) -> Option<(f64, String)> {
    let each = |line: &Line| part(line).took_ms / part(line).bound_ms;
    let worst = lines.iter().max_by(|a, b| each(a).total_cmp(&each(b)))?;
    let middle = median(lines.iter().map(each).collect())?;
    let most = percentile(lines.iter().map(each).collect(), 90)?;
    let took = median(lines.iter().map(|line| part(line).took_ms).collect())?;
    let note = format!(
        "worst of {} seeds ({}), p50 {middle:.3}, p90 {most:.3}; p50 {} of virtual time",
        lines.len(),
        worst.seed,
        minutes(took)
    );
    Some((each(worst), note))
}

fn late(lines: &[Line]) -> Option<(f64, String)> {
    let all = lines.iter().flat_map(|line| line.late_ms.iter().map(move |late| (line.seed, late)));
    let (seed, (gate, worst)) = all.max_by(|a, b| a.1.1.total_cmp(b.1.1))?;
    Some((*worst, format!("{gate}, seed {seed}")))
}

fn time(lines: &[Line]) -> Option<(f64, String)> {
    let all = |percent| percentile(lines.iter().map(|l| l.whole.took_ms).collect(), percent);
    let published = |percent| percentile(lines.iter().map(|l| l.published_ms).collect(), percent);
    let note = format!(
        "p10 {}, p50 {}, p90 {}; the published way in the same worlds {}, {}, {}",
        minutes(all(10)?),
        minutes(all(50)?),
        minutes(all(90)?),
        minutes(published(10)?),
        minutes(published(50)?),
        minutes(published(90)?)
    );
    Some((all(50)? / 1000.0, note))
}

fn faster(lines: &[Line]) -> Option<(f64, String)> {
    let each = |line: &Line| line.published_ms / line.whole.took_ms;
    let least = lines.iter().map(each).min_by(f64::total_cmp)?;
    let note =
        format!("seed by seed, least {least:.2}; a model of the published script, not a run of it");
    Some((median(lines.iter().map(each).collect())?, note))
}

/// The steeper of the two slopes on paper with logarithmic axes.
fn growth(sizes: &[Size]) -> Option<(f64, String)> {
    let [_, small, middle, large] = sizes else { return None };
    let nodes = |size: &Size| f64::from(size.control_planes + size.workers);
    let slope = |from: &Size, to: &Size| {
        (to.processor_ms / from.processor_ms).ln() / (nodes(to) / nodes(from)).ln()
    };
    let note = sizes[1..]
        .iter()
        .map(|size| format!("{} nodes {:.0} ms", nodes(size), size.processor_ms))
        .collect::<Vec<_>>()
        .join(", ");
    Some((slope(small, middle).max(slope(middle, large)), note))
}

fn memory(sizes: &[Size]) -> Option<(f64, String)> {
    let first = sizes.first()?;
    let last = sizes.last()?;
    let note = format!(
        "peak of the process with both sides in it; {:.0} MB with {} nodes",
        last.memory_mb,
        last.control_planes + last.workers
    );
    Some((first.memory_mb, note))
}

/// What a lever gives, alone and after those before it.
fn lever(lines: &[Line], index: usize) -> Option<(f64, String)> {
    if lines.first()?.levers.get(index)? != LEVERS[index].case {
        return None;
    }
    let before = |line: &Line| match index {
        0 => line.published_ms,
        _ => line.added_ms[index - 1],
    };
    let middle = |figure: &dyn Fn(&Line) -> f64| median(lines.iter().map(figure).collect());
    let note = format!(
        "alone, p50; {:.0} s added to those above, which leaves {}",
        middle(&|line| before(line) - line.added_ms[index])? / 1000.0,
        minutes(middle(&|line| line.added_ms[index])?)
    );
    Some((middle(&|line| line.published_ms - line.alone_ms[index])? / 1000.0, note))
}

fn pulls(lines: &[Line]) -> Option<(f64, String)> {
    let cost = median(lines.iter().map(|line| line.serial_ms - line.published_ms).collect())?;
    let note =
        "what the published way would lose if kubelets pulled one image after the other, p50";
    Some((cost / 1000.0, note.to_owned()))
}

fn minutes(ms: f64) -> String {
    let seconds = (ms / 1000.0).round();
    format!("{:.0}:{:02.0}", (seconds / 60.0).floor(), seconds % 60.0)
}

#[cfg(test)]
mod tests {
    use super::super::read_lines;
    use super::*;

    fn line(seed: u64, took: u64, bound: u64) -> String {
        let part = format!(r#"{{"took_ms": {took}, "bound_ms": {bound}}}"#);
        format!(
            r#"{{"seed": {seed}, "platform": {part}, "handover": {part}, "whole": {part}, "late_ms": {{"platform/nodes": {seed}}},
            "published_ms": 480000, "levers": ["no Terragrunt and OpenTofu per unit", "else"], "alone_ms": [470000, 450000], "serial_ms": 500000, "added_ms": [470000, 445000]}}"#
        )
        .replace('\n', " ")
    }

    #[test]
    fn the_worst_seed_counts() {
        let text = format!("{}\n{}\n", line(1, 102_000, 100_000), line(2, 210_000, 200_000));
        let lines = read_lines::<Line>(&text).unwrap();
        let (worst, note) = ratio(&lines, |line| &line.whole).unwrap();
        assert!((worst - 1.05).abs() < 1e-9 && note.contains("(2)"), "{worst} {note}");
        assert_eq!(late(&lines), Some((2.0, "platform/nodes, seed 2".to_owned())));
        assert!(read_lines::<Line>("fast\n").is_err());
        assert_eq!(ratio(&[], |line| &line.whole), None);
        let (p50, note) = time(&lines).unwrap();
        assert!(p50 > 101.0 && note.ends_with("8:00, 8:00, 8:00"), "{p50} {note}");
        let note = "alone, p50; 10 s added to those above, which leaves 7:50".to_owned();
        assert_eq!(lever(&lines, 0), Some((10.0, note)));
        assert_eq!(pulls(&lines).map(|(cost, _)| cost), Some(20.0));
        assert_eq!(lever(&lines, 1), None, "another lever than the bound is of");
    }

    #[test]
    fn growth_is_the_steeper_slope() {
        let size = |workers, processor_ms| Size {
            control_planes: 1,
            workers,
            processor_ms,
            memory_mb: 40.0,
        };
        let sizes = [size(4, 1.0), size(2, 100.0), size(29, 1000.0), size(299, 100_000.0)];
        let (slope, note) = growth(&sizes).unwrap();
        assert!((slope - 2.0).abs() < 1e-9, "{slope}");
        assert_eq!(note, "3 nodes 100 ms, 30 nodes 1000 ms, 300 nodes 100000 ms");
        assert_eq!(growth(&sizes[..2]), None);
        assert_eq!(
            memory(&sizes).unwrap().1,
            "peak of the process with both sides in it; 40 MB with 300 nodes"
        );
    }

    #[test]
    fn times_are_told_in_minutes() {
        assert_eq!((minutes(190_000.0), minutes(59_600.0)), ("3:10".to_owned(), "1:00".to_owned()));
    }
}
