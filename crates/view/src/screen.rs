//! The picture of a run that goes on: a line for each layer and for each step under way, for a screen of any size.
//!
//! ```text
//!   + secrets             0.5 s  3 steps, nothing changed                     a layer that is done is one line
//!   > platform    1:02 of ~2:10  14 of 34 steps
//!     > vm/cp-01  0:12 of ~0:19  create VM cp-01 (421) on pve                 what is under way
//!     . vip                0:31  waiting: connection refused at 192.168…      what it waits for
//!   ! storage              0:40  1 of 4 steps failed                          a failure is told whole
//!     gitops                     7 steps to come
//!   ######...... 19 of 61 steps, 2 under way, 1:02 of ~2:40
//!   critical path so far 0:58: image 0:11 > vm/cp-01 0:19 > vip 0:28
//! ```
//!
//! What does not fit is folded, the least interesting first. Nothing here knows a terminal: lines are spans with tones.

use std::fmt::Write;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::Moment;
use castle_model::{LayerName, StepDecl};

use crate::critical_path::critical_path_so_far;
use crate::history::Expected;
use crate::progress::{Progress, StepProgress, StepStatus};
use crate::style::{Line, Span, Style, Tone, columns, count, cut};

mod meter;
mod rows;

pub use self::meter::download;
use self::rows::Sheet;

/// What a picture is made from.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The run, as its events tell it.
    pub progress: &'a Progress,
    /// Its steps, each after what it needs, as in a plan.
    pub decls: &'a [StepDecl],
    /// How long things usually take.
    pub expected: &'a Expected,
    /// Which run it is of how many, if it is one of several.
    pub turn: Option<&'a Turn>,
    /// When.
    pub now: Moment,
}

/// One run of several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// What they are together, and which part this is: `rebirth: cycle 2 of 5, up`.
    pub what: String,
    /// How many parts are done.
    pub done: usize,
    /// How many parts there are.
    pub of: usize,
}

/// A screen that is higher gets an empty line above the picture.
const HIGH: usize = 16;

/// Screens that are narrower say less.
const WIDE: usize = 76;

/// One layer of the picture.
struct Block {
    kind: Kind,
    name: String,
    head: Line,
    failures: Vec<Vec<Line>>,
    steps: Vec<rows::Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Done,
    Busy,
    Failed,
    ToCome,
}

/// The picture, in at most `height` lines of at most the style's width.
#[must_use]
pub fn lines(scene: Scene<'_>, style: Style, height: usize) -> Vec<Line> {
    let sheet = Sheet::new(scene, style);
    let mut foot = foot(&sheet);
    foot.truncate(height);
    let room = height - foot.len();
    let mut blocks: Vec<Block> =
        scene.progress.layers.iter().map(|layer| block(&sheet, layer)).collect();
    let shown = fold(&sheet, &mut blocks, room);
    let mut lines = Vec::new();
    let mut free = room.saturating_sub(shown);
    if height >= HIGH && free > 0 {
        lines.push(Line::new());
        free -= 1;
    }
    unfold(&mut blocks, free);
    for block in blocks {
        lines.push(block.head);
        lines.extend(block.failures.into_iter().flatten());
        lines.extend(block.steps.into_iter().flat_map(rows::Row::lines));
    }
    lines.truncate(height - foot.len());
    lines.extend(foot);
    lines.into_iter().map(|line| within(line, style)).collect()
}

fn block(sheet: &Sheet<'_>, layer: &LayerName) -> Block {
    let progress = sheet.scene.progress;
    let tally = progress.tally(layer);
    let kind = if tally.failed > 0 {
        Kind::Failed
    } else if tally.done == tally.steps {
        Kind::Done
    } else if tally.span.is_some() {
        Kind::Busy
    } else {
        Kind::ToCome
    };
    let of_layer = || sheet.scene.decls.iter().filter(|decl| decl.layer == *layer);
    let with = |status: fn(StepStatus) -> bool| {
        let known =
            move |decl: &StepDecl| progress.steps.get(&decl.id).filter(|s| status(s.status));
        of_layer().filter_map(move |decl| Some((decl, known(decl)?)))
    };
    let failed = with(|status| status == StepStatus::Failed);
    let busy = with(is_busy).filter(|_| progress.outcome.is_none());
    let steps: Vec<rows::Row> = busy.map(|(decl, step)| sheet.step(decl, step)).collect();
    let kind = if kind == Kind::Busy && steps.is_empty() { Kind::ToCome } else { kind };
    Block {
        kind,
        name: layer.to_string(),
        head: sheet.layer(layer, &tally, !steps.is_empty()),
        failures: failed.map(|(decl, step)| sheet.failure(decl, step)).collect(),
        steps,
    }
}

fn is_busy(status: StepStatus) -> bool {
    matches!(status, StepStatus::Running | StepStatus::Waiting)
}

/// Folds what is of least interest until the rest fits, and says how many lines there are.
fn fold(sheet: &Sheet<'_>, blocks: &mut Vec<Block>, room: usize) -> usize {
    let size = |blocks: &[Block]| -> usize {
        let of = |block: &Block| {
            1 + block.failures.iter().map(Vec::len).sum::<usize>() + block.steps.len()
        };
        blocks.iter().map(of).sum()
    };
    for kind in [Kind::ToCome, Kind::Done] {
        if size(blocks) > room {
            join(sheet, blocks, kind);
        }
    }
    let steps: usize = blocks.iter().map(|block| block.steps.len()).sum();
    let over = size(blocks).saturating_sub(room);
    if over > 0 {
        hide(blocks, steps.saturating_sub(over).max(1));
    }
    if size(blocks) > room {
        for failure in blocks.iter_mut().flat_map(|block| &mut block.failures) {
            failure.truncate(1);
        }
    }
    size(blocks)
}

/// Puts the layers of a kind on one line, where the first of them stood.
fn join(sheet: &Sheet<'_>, blocks: &mut Vec<Block>, kind: Kind) {
    let names: Vec<String> =
        blocks.iter().filter(|block| block.kind == kind).map(|block| block.name.clone()).collect();
    if names.len() < 2 {
        return;
    }
    let head = sheet.layers(kind == Kind::Done, &names);
    let mut first = true;
    blocks.retain_mut(|block| {
        if block.kind != kind {
            return true;
        }
        block.head.clone_from(&head);
        std::mem::take(&mut first)
    });
}

/// Keeps so many steps, the most interesting, where they stand; the head of their layer counts the others.
fn hide(blocks: &mut [Block], keep: usize) {
    let mut interests: Vec<_> =
        blocks.iter().flat_map(|block| block.steps.iter().map(|row| row.interest)).collect();
    interests.sort_unstable();
    interests.reverse();
    let Some(least) = interests.get(keep.saturating_sub(1)).copied() else { return };
    let mut left = keep;
    for block in blocks {
        let before = block.steps.len();
        block.steps.retain(|row| {
            let kept = row.interest >= least && left > 0;
            left -= usize::from(kept);
            kept
        });
        let hidden = before - block.steps.len();
        if hidden > 0 {
            rows::count_hidden(&mut block.head, hidden);
        }
    }
}

/// Tells what does not fit in one line each in more, as far as there is room, the most interesting first.
fn unfold(blocks: &mut [Block], mut free: usize) {
    let mut rows: Vec<&mut rows::Row> =
        blocks.iter_mut().flat_map(|block| &mut block.steps).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.interest));
    for row in rows {
        let more = row.whole.len().saturating_sub(1);
        if more > 0 && more <= free {
            free -= more;
            row.unfolded = true;
        }
    }
}

/// How far the run is, and what decided that it is not further.
fn foot(sheet: &Sheet<'_>) -> Vec<Line> {
    let Scene { progress, decls, now, turn, .. } = sheet.scene;
    let mut foot = Vec::new();
    if let Some(turn) = turn {
        let mut line = bar(sheet, turn.done, turn.of);
        line.push(Span::new(turn.what.clone(), Some(Tone::Title)));
        foot.push(line);
    }
    let over = progress.steps.values().filter(|step| is_well(step)).count();
    let with =
        |test: fn(&StepProgress) -> bool| progress.steps.values().filter(|step| test(step)).count();
    let busy = with(|step| is_busy(step.status));
    let failed = with(|step| step.status == StepStatus::Failed);
    let mut text = format!("{over} of {}", count(progress.steps.len(), "step"));
    if failed > 0 {
        write!(text, ", {failed} failed").ok();
    }
    if busy > 0 && progress.outcome.is_none() {
        write!(text, ", {busy} under way").ok();
    }
    text.push_str(ending(progress));
    let tone = match (failed, progress.stopping) {
        (1.., _) => Tone::Bad,
        (0, true) => Tone::Wait,
        (0, false) => Tone::Title,
    };
    let mut line = bar(sheet, over, progress.steps.len());
    let took = if progress.outcome.is_some() { progress.took_ms } else { progress.elapsed(now) };
    sheet.close(&mut line, &Span::new(text, Some(tone)), took, sheet.scene.expected.whole);
    foot.push(line);
    let decls: Vec<&StepDecl> = decls.iter().collect();
    foot.extend(sheet.path(&critical_path_so_far(progress, &decls, now)));
    foot
}

fn is_well(step: &StepProgress) -> bool {
    matches!(step.status, StepStatus::Done | StepStatus::Undone | StepStatus::Skipped)
}

/// What is said of a run that comes to its end.
fn ending(progress: &Progress) -> &'static str {
    match (progress.outcome, progress.direction) {
        (Some(RunOutcome::Done), Some(Direction::Down)) => "; looking for what is left",
        (Some(_), _) => "; it ends",
        (None, _) if progress.stopping => "; stopping",
        (None, _) => "",
    }
}

/// A bar that is full in so many parts of all.
fn bar(sheet: &Sheet<'_>, done: usize, of: usize) -> Line {
    let width = meter::length(sheet.style);
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (full, rest) = meter::marks(sheet.style.signs, width, number(done), number(of));
    vec![Span::new(full, Some(Tone::Good)), Span::new(rest + " ", Some(Tone::Quiet))]
}

/// A line that no width breaks.
fn within(line: Line, style: Style) -> Line {
    let mut room = style.width;
    let mut kept = Line::new();
    for span in line {
        let long = columns(&span.text);
        let text = if long > room { cut(&span.text, room, style.signs) } else { span.text };
        room -= long.min(room);
        if !text.is_empty() {
            kept.push(Span { text, ..span });
        }
    }
    if let Some(last) = kept.last_mut() {
        last.text.truncate(last.text.trim_end().len());
    }
    kept
}

#[cfg(test)]
mod tests;
