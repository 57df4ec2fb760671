//! Earlier runs side by side: what each took, how a layer usually goes, and what has become slower.
//!
//! Only runs of the same kind are compared: the same steps, the same way, the same work, both real or both rehearsed, and
//! everything done. A time is a regression if it lies beyond the median of the runs before it by more than a tenth, and by
//! more than three times their median deviation: noise is not news.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{CastleName, LayerName, PastRun, RunId, StepId};

use crate::style::{Style, Tone, count, table};

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
    /// By how many runs.
    pub runs: usize,
    /// The whole run, in milliseconds.
    pub whole: Option<u64>,
    /// Each layer, in milliseconds.
    pub layers: BTreeMap<LayerName, u64>,
    /// Each step, in milliseconds.
    pub steps: BTreeMap<StepId, u64>,
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
    text.push_str(&table(&rows, &[true, true, true, false, false, true]));
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
    text.push_str(&spread(&rows, Some(&|row: &Row| length(row.judged))));
    for told in rows.iter().filter_map(|row| row.told(&format!(" in {}", last.run))) {
        text.push_str(&style.hang("regression: ", &told, Some(Tone::Wait)));
        text.push('\n');
    }
    text
}

/// Rows with their spread; with `last`, the time that is judged comes first.
fn spread(rows: &[Row], last: Option<&dyn Fn(&Row) -> String>) -> String {
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
    table(&lines, &left)
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
    let Some((down, up)) = reborn.cycles.last() else { return String::new() };
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
        reborn.cycles.iter().map(|(down, _)| down.took_ms).collect(),
        downs.iter().map(|run| run.took_ms).collect(),
    )];
    for layer in reborn.layers {
        let times: Vec<u64> =
            reborn.cycles.iter().filter_map(|(_, up)| up.layers.get(layer).copied()).collect();
        let earlier = ups.iter().filter_map(|run| run.layers.get(layer).copied()).collect();
        if !times.is_empty() {
            rows.push(row(&format!("up, {layer}"), times, earlier));
        }
    }
    rows.push(row(
        "up",
        reborn.cycles.iter().map(|(_, up)| up.took_ms).collect(),
        ups.iter().map(|run| run.took_ms).collect(),
    ));
    let whole = reborn.cycles.iter().map(|(down, up)| down.took_ms + up.took_ms).collect();
    rows.push(row("down and up", whole, Vec::new()));
    let mut text = spread(&rows, None);
    for told in rows.iter().filter_map(|row| row.told("")) {
        text.push_str(&style.hang("regression: ", &told, Some(Tone::Wait)));
        text.push('\n');
    }
    text
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
