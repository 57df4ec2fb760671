//! Earlier runs side by side: what each took, how a layer usually goes, and what has become slower.
//!
//! Only runs of the same kind are compared: the same steps, the same way, the same work, both real or both rehearsed, and
//! everything done. A time is a regression if it lies beyond the median of the runs before it by more than a tenth, and by
//! more than three times their median deviation: noise is not news.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{CastleName, LayerName, PastRun, RunId, StepDecl, StepId};
use serde::Serialize;

use crate::critical_path::usual_path;
use crate::style::{Style, Tone, count};
use crate::table::table;

/// How many of the earlier runs of the same kind a time is judged by.
pub const COMPARED: usize = 20;

/// With fewer earlier runs than these nothing is judged.
pub const ENOUGH: usize = 3;

/// A time that lies beyond what the runs before it make likely.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regression {
    /// The median of the earlier runs, in milliseconds.
    pub median: u64,
    /// Up to here it would have been none, in milliseconds.
    pub limit: u64,
}

/// The middle of some times; 0 of none.
#[must_use]
pub fn median(times: &[u64]) -> u64 {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    match sorted.len() {
        0 => 0,
        n if n % 2 == 1 => sorted[n / 2],
        n => sorted[n / 2 - 1].midpoint(sorted[n / 2]),
    }
}

/// Judges a time by earlier ones, the oldest first.
#[must_use]
pub fn regression(time: u64, earlier: &[u64]) -> Option<Regression> {
    let compared = &earlier[earlier.len().saturating_sub(COMPARED)..];
    if compared.len() < ENOUGH {
        return None;
    }
    let median_of = median(compared);
    let deviations: Vec<u64> = compared.iter().map(|time| time.abs_diff(median_of)).collect();
    let slack = (median_of / 10).max(median(&deviations).saturating_mul(3));
    let limit = median_of.saturating_add(slack);
    (time > limit).then_some(Regression { median: median_of, limit })
}

/// How long things usually take, by runs that did the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// By how many runs; by none, it is what the steps declare.
    pub runs: usize,
    /// The whole run, in milliseconds.
    pub whole: Option<u64>,
    /// Each layer, in milliseconds.
    pub layers: BTreeMap<LayerName, u64>,
    /// Each step, in milliseconds.
    pub steps: BTreeMap<StepId, u64>,
}

impl Expected {
    /// What the steps declare to be usual, for a castle that no run has raised yet. `decls` stand as in a plan.
    #[must_use]
    pub fn declared(decls: &[StepDecl]) -> Self {
        let all: Vec<&StepDecl> = decls.iter().collect();
        let mut layers: BTreeMap<&LayerName, Vec<&StepDecl>> = BTreeMap::new();
        for decl in decls {
            layers.entry(&decl.layer).or_default().push(decl);
        }
        let layer = |(layer, decls): (&LayerName, Vec<&StepDecl>)| {
            (layer.clone(), usual_path(&decls).total_ms)
        };
        Self {
            runs: 0,
            whole: Some(usual_path(&all).total_ms).filter(|whole| *whole > 0),
            layers: layers.into_iter().map(layer).collect(),
            steps: decls.iter().map(|decl| (decl.id.clone(), decl.weight)).collect(),
        }
    }
}

/// The medians of the last runs that did the same work as `this` one will.
#[must_use]
pub fn expected(this: &PastRun, history: &[PastRun]) -> Expected {
    let like: Vec<&PastRun> =
        history.iter().filter(|run| run.is_whole() && run.is_like(this)).collect();
    let like = &like[like.len().saturating_sub(COMPARED)..];
    let mut whole = Vec::new();
    let mut layers: BTreeMap<&LayerName, Vec<u64>> = BTreeMap::new();
    let mut steps: BTreeMap<&StepId, Vec<u64>> = BTreeMap::new();
    for run in like {
        whole.push(run.took_ms);
        run.layers.iter().for_each(|(layer, took)| layers.entry(layer).or_default().push(*took));
        run.steps.iter().for_each(|(step, took)| steps.entry(step).or_default().push(*took));
    }
    Expected {
        runs: like.len(),
        whole: (!whole.is_empty()).then(|| median(&whole)),
        layers: layers.into_iter().map(|(layer, took)| (layer.clone(), median(&took))).collect(),
        steps: steps.into_iter().map(|(step, took)| (step.clone(), median(&took))).collect(),
    }
}

/// How one thing went in several runs.
struct Row {
    name: String,
    /// The times that are shown, the last one last.
    times: Vec<u64>,
    /// The times before them.
    earlier: Vec<u64>,
    /// The time that is judged.
    judged: u64,
}

impl Row {
    fn cells(&self) -> Vec<String> {
        let shown = |time: Option<u64>| time.map_or_else(|| "-".to_owned(), length);
        let best_before = self.earlier.iter().min().copied();
        let best = self.times.iter().min().copied();
        let word = match regression(self.judged, &self.earlier) {
            Some(regression) => format!("slower: {}", percent(self.judged, regression.median)),
            None if best_before.is_some_and(|before| best.is_some_and(|best| best < before)) => {
                "record".to_owned()
            }
            None => String::new(),
        };
        vec![
            self.name.clone(),
            shown(best),
            shown(Some(median(&self.times)).filter(|_| !self.times.is_empty())),
            shown(self.times.iter().max().copied()),
            shown(best.into_iter().chain(best_before).min()),
            word,
        ]
    }

    fn for_programs(&self) -> Option<CycleRow> {
        let (min_ms, max_ms) = (*self.times.iter().min()?, *self.times.iter().max()?);
        Some(CycleRow {
            name: self.name.clone(),
            min_ms,
            median_ms: median(&self.times),
            max_ms,
            record_ms: self.earlier.iter().copied().chain([min_ms]).min().unwrap_or(min_ms),
            regression_limit_ms: regression(self.judged, &self.earlier).map(|found| found.limit),
        })
    }

    fn told(&self, what: &str) -> Option<String> {
        let found = regression(self.judged, &self.earlier)?;
        let runs = self.earlier.len().min(COMPARED);
        Some(format!(
            "{} took {}{what}; up to {} would have been usual (median {} of {} like it)",
            self.name,
            length(self.judged),
            length(found.limit),
            length(found.median),
            count(runs, "run")
        ))
    }
}

fn percent(time: u64, of: u64) -> String {
    let more = time.saturating_sub(of).saturating_mul(100).checked_div(of).unwrap_or(0);
    format!("+{more} %")
}

/// The history of a castle as text; `layers` follow each other as the castle's do.
#[must_use]
pub fn text(
    castle: &CastleName,
    rehearsal: bool,
    layers: &[LayerName],
    runs: &[PastRun],
    style: Style,
) -> String {
    let world = if rehearsal { " (a rehearsal)" } else { "" };
    let head = format!("castle {castle}{world}: {}", count(runs.len(), "run"));
    let mut text = style.hang("", &head, Some(Tone::Title)) + "\n\n";
    let head = ["run", "began (UTC)", "what", "took", "changed", ""];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(run_row));
    text.push_str(&table(&rows, &[true, true, true, false, false, true], style.width));
    for direction in [Direction::Up, Direction::Down] {
        let last = runs
            .iter()
            .rfind(|run| run.is_whole() && run.direction == direction && run.changed > 0);
        text.push_str(&last.map(|last| of_kind(last, layers, runs, style)).unwrap_or_default());
    }
    text
}

fn run_row(run: &PastRun) -> Vec<String> {
    let outcome = match (run.outcome, run.exit) {
        (RunOutcome::Done, 4) => "something left",
        (RunOutcome::Done, _) => "done",
        (RunOutcome::Failed, _) => "failed",
        (RunOutcome::Interrupted, 137) => "killed",
        (RunOutcome::Interrupted, _) => "interrupted",
    };
    vec![
        run.run.to_string(),
        minute(run.started),
        way(run.direction).to_owned(),
        length(run.took_ms),
        run.changed.to_string(),
        outcome.to_owned(),
    ]
}

/// The layers of the last whole run and those like it.
fn of_kind(last: &PastRun, layers: &[LayerName], runs: &[PastRun], style: Style) -> String {
    let like: Vec<&PastRun> =
        runs.iter().filter(|run| run.is_whole() && run.is_like(last)).collect();
    let before: Vec<&PastRun> = like.iter().filter(|run| run.run != last.run).copied().collect();
    let work: Vec<String> =
        last.work.iter().map(|(word, number)| format!("{word} {number}")).collect();
    let head = format!(
        "{}, whole ({}): {}",
        way(last.direction),
        work.join(", "),
        count(like.len(), "run")
    );
    let mut text = format!("\n{}\n", style.hang("", &head, None));
    let row = |name: &str, time: &dyn Fn(&PastRun) -> Option<u64>| Row {
        name: name.to_owned(),
        times: like.iter().filter_map(|run| time(run)).collect(),
        earlier: before.iter().filter_map(|run| time(run)).collect(),
        judged: time(last).unwrap_or(0),
    };
    let mut rows: Vec<Row> = layers
        .iter()
        .filter(|layer| last.layers.contains_key(*layer))
        .map(|layer| row(layer.as_str(), &|run| run.layers.get(layer).copied()))
        .collect();
    rows.push(row("all", &|run| Some(run.took_ms)));
    text.push_str(&spread(&rows, Some(&|row: &Row| length(row.judged)), style));
    for told in rows.iter().filter_map(|row| row.told(&format!(" in {}", last.run))) {
        text.push_str(&style.hang("regression: ", &told, Some(Tone::Wait)));
        text.push('\n');
    }
    text
}

/// Rows with their spread; with `last`, the time that is judged comes first.
fn spread(rows: &[Row], last: Option<&dyn Fn(&Row) -> String>, style: Style) -> String {
    let mut head = vec!["layer", "min", "median", "max", "record", ""];
    let mut left = vec![true, false, false, false, false, true];
    if last.is_some() {
        head.insert(1, "last");
        left.insert(1, false);
    }
    let mut lines = vec![head.into_iter().map(str::to_owned).collect::<Vec<String>>()];
    for row in rows {
        let mut cells = row.cells();
        if let Some(last) = last {
            cells.insert(1, last(row));
        }
        lines.push(cells);
    }
    table(&lines, &left, style.width)
}

/// What a rebirth is told by: the runs of its cycles, and what was before them.
pub struct Reborn<'a> {
    /// For each cycle whose times mean something: the run down and the run up.
    pub cycles: Vec<(&'a PastRun, &'a PastRun)>,
    /// All that is remembered, the oldest first.
    pub history: &'a [PastRun],
    /// How the layers follow each other.
    pub layers: &'a [LayerName],
}

/// The table of a rebirth: each layer over its cycles, against the runs before it.
#[must_use]
pub fn cycles(reborn: &Reborn<'_>, style: Style) -> String {
    let text = rows_of(reborn).map(|rows| {
        let mut text = spread(&rows, None, style);
        for told in rows.iter().filter_map(|row| row.told("")) {
            text.push_str(&style.hang("regression: ", &told, Some(Tone::Wait)));
            text.push('\n');
        }
        text
    });
    text.unwrap_or_default()
}

/// The cycles that may stand beside each other: those that did the same as the last one. The first of a castle that did not
/// stand razed nothing.
#[must_use]
pub fn alike<'a>(cycles: &[(&'a PastRun, &'a PastRun)]) -> Vec<(&'a PastRun, &'a PastRun)> {
    let Some((last_down, last_up)) = cycles.last() else { return Vec::new() };
    let alike = |down: &PastRun, up: &PastRun| down.is_like(last_down) && up.is_like(last_up);
    cycles.iter().filter(|(down, up)| alike(down, up)).copied().collect()
}

/// A row of the table of a rebirth, for programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CycleRow {
    /// What took it: `down`, `up, LAYER`, `up`, `down and up`.
    pub name: String,
    /// The shortest of the cycles, in milliseconds.
    pub min_ms: u64,
    /// Their median.
    pub median_ms: u64,
    /// The longest.
    pub max_ms: u64,
    /// The shortest of all that are remembered.
    pub record_ms: u64,
    /// Up to here the median would have been usual, if it lies beyond that.
    pub regression_limit_ms: Option<u64>,
}

/// The table of a rebirth for programs.
#[must_use]
pub fn cycle_rows(reborn: &Reborn<'_>) -> Vec<CycleRow> {
    let rows = rows_of(reborn).unwrap_or_default();
    rows.iter().filter_map(Row::for_programs).collect()
}

fn rows_of(reborn: &Reborn<'_>) -> Option<Vec<Row>> {
    let cycles = alike(&reborn.cycles);
    let (down, up) = cycles.last()?;
    let own: Vec<&RunId> =
        reborn.cycles.iter().flat_map(|(down, up)| [&down.run, &up.run]).collect();
    let before = |last: &PastRun| -> Vec<&PastRun> {
        let like = reborn.history.iter().filter(|run| run.is_whole() && run.is_like(last));
        like.filter(|run| !own.contains(&&run.run)).collect()
    };
    let (downs, ups) = (before(down), before(up));
    let row = |name: &str, times: Vec<u64>, earlier: Vec<u64>| Row {
        name: name.to_owned(),
        judged: median(&times),
        times,
        earlier,
    };
    let mut rows = vec![row(
        "down",
        cycles.iter().map(|(down, _)| down.took_ms).collect(),
        downs.iter().map(|run| run.took_ms).collect(),
    )];
    for layer in reborn.layers {
        let times: Vec<u64> =
            cycles.iter().filter_map(|(_, up)| up.layers.get(layer).copied()).collect();
        let earlier = ups.iter().filter_map(|run| run.layers.get(layer).copied()).collect();
        if !times.is_empty() {
            rows.push(row(&format!("up, {layer}"), times, earlier));
        }
    }
    rows.push(row(
        "up",
        cycles.iter().map(|(_, up)| up.took_ms).collect(),
        ups.iter().map(|run| run.took_ms).collect(),
    ));
    let whole = cycles.iter().map(|(down, up)| down.took_ms + up.took_ms).collect();
    rows.push(row("down and up", whole, Vec::new()));
    Some(rows)
}

/// A moment to the minute, without its zone, which is always UTC.
fn minute(at: Moment) -> String {
    let text: String = at.to_string().chars().take(16).collect();
    text.replace('T', " ")
}

fn way(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "up",
        Direction::Down => "down",
    }
}

#[cfg(test)]
mod tests;
