//! The page of a run: made from its kept events alone, so that it can be made again at any time.

use std::collections::BTreeSet;
use std::path::PathBuf;

use castle_journal::{Runs, StateError};
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Plan, RunId, StepDecl};
use castle_page::Words;
use castle_plan::Survey;
use castle_view::timeline::{Fold, HappeningKind, Timeline};

use crate::broken::Broken;
use crate::castle::Castle;

/// A page, and what could not be read for it.
pub(crate) struct Page {
    pub(crate) html: String,
    /// Lines of the events that were passed over.
    pub(crate) skipped: u64,
}

/// Makes the page of a run; none if its events are not kept. What each step needs is as the castle file says today.
pub(crate) fn make(
    castle: &Castle,
    decls: &[StepDecl],
    runs: &Runs,
    run: &RunId,
) -> Result<Option<Page>, StateError> {
    let Some(mut reader) = runs.events(run)? else { return Ok(None) };
    let mut fold = Fold::new(decls);
    let mut broken = Broken::default();
    for event in reader.more()? {
        fold.apply(&event);
        broken.note(&castle.spec, &event);
    }
    let direction = fold.progress().direction.unwrap_or(Direction::Up);
    let planned = planned(castle, decls, direction);
    let order: Vec<&StepDecl> = planned.iter().collect();
    // A page without comparison is better than none.
    let history = runs.history().unwrap_or_default();
    let timeline = fold.timeline(&order, &history.runs);
    let words = Words {
        go_on: if is_unfinished(&timeline) { broken.go_on(castle, direction) } else { Vec::new() },
        again: format!("{} report {run}", castle.command),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let html = castle_page::timeline(&timeline, &words);
    Ok(Some(Page { html, skipped: reader.skipped() }))
}

/// Makes the page of a run and keeps it beside its events; says where.
pub(crate) fn keep(
    castle: &Castle,
    decls: &[StepDecl],
    runs: &Runs,
    run: &RunId,
) -> Result<Option<PathBuf>, StateError> {
    match make(castle, decls, runs, run)? {
        Some(page) => runs.keep_page(run, &page.html).map(Some),
        None => Ok(None),
    }
}

/// The declarations in the order of a plan, their needs turned round on the way down.
fn planned(castle: &Castle, decls: &[StepDecl], direction: Direction) -> Vec<StepDecl> {
    let (name, survey) = (&castle.spec.name, Survey::default());
    let plan = match direction {
        Direction::Up => castle_plan::up(name, decls, &survey, &BTreeSet::new()),
        Direction::Down => castle_plan::down(name, decls, &survey),
    };
    let steps = |plan: Plan| plan.steps.into_iter().map(|step| step.decl).collect();
    plan.map(steps).unwrap_or_default()
}

fn is_unfinished(timeline: &Timeline) -> bool {
    let left =
        timeline.happenings.iter().any(|happening| happening.kind == HappeningKind::Leftover);
    timeline.outcome != Some(RunOutcome::Done) || left
}
