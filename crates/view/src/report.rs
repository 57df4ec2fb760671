//! The closing report of a run: what stands, what it took, what failed and how to go on.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::length;
use castle_model::{Failure, StepDecl, StepId};

use crate::alike::{Failed, parts, together};
use crate::critical_path::critical_path;
use crate::progress::{LayerTally as Tally, Progress, StepProgress, StepStatus};
use crate::style::{Style, Tone, clean, count, cut};
use crate::table::table;

/// Steps of the critical path that are shown; the shortest beyond them are folded into one line.
const PATH_ROWS: usize = 10;

/// The report of a run. `decls` stand as in its plan; `go_on` are the commands that continue it, one after the other.
#[must_use]
pub fn end(progress: &Progress, decls: &[&StepDecl], go_on: &[String], style: Style) -> String {
    let mut parts = vec![headline(progress, style)];
    let failures = failures(progress, style);
    if progress.steps.values().any(StepProgress::has_changed) || !failures.is_empty() {
        parts.push(layers(progress, style));
        parts.extend(path(progress, decls, style));
    }
    parts.extend(failures);
    parts.extend(left_over(progress, style));
    if let Some(source) = &progress.handover {
        let text = format!("Flux owns what the cluster hosts, from {source}; castle only observes");
        parts.push(style.hang("handover: ", &text, None) + "\n");
    }
    if !progress.milestones.is_empty() {
        let told = |(name, since): &(String, u64)| format!("{name} after {}", length(*since));
        let text = progress.milestones.iter().map(told).collect::<Vec<_>>().join(", ");
        parts.push(style.hang("milestones: ", &text, None) + "\n");
    }
    if !go_on.is_empty() {
        parts.push(next(go_on) + "\n");
    }
    parts.join("\n")
}

/// What to do next: commands, each to be copied.
#[must_use]
pub fn next(commands: &[String]) -> String {
    let quoted: Vec<String> = commands.iter().map(|command| format!("`{command}`")).collect();
    format!("next: {}", quoted.join(", then "))
}

fn headline(progress: &Progress, style: Style) -> String {
    let name = progress.castle.as_ref().map_or_else(String::new, |name| format!(" {name}"));
    let world = if progress.rehearsal { " (a rehearsal)" } else { "" };
    let down = progress.direction == Some(Direction::Down);
    let steps = count(progress.steps.len(), "step");
    let failed = of(progress, StepStatus::Failed).count();
    let (what, tone) = match (progress.outcome, down) {
        (Some(RunOutcome::Done), false) => (format!("stands: {steps}"), Tone::Good),
        (Some(RunOutcome::Done), true) if !progress.left.is_empty() => {
            let left = count(progress.left.len(), "thing");
            (format!("is gone but for {left}: {steps}"), Tone::Bad)
        }
        (Some(RunOutcome::Done), true) => (format!("is gone: {steps}"), Tone::Good),
        (Some(RunOutcome::Failed), _) => {
            (format!("is not finished: {failed} of {steps} failed"), Tone::Bad)
        }
        (Some(RunOutcome::Interrupted), _) => (format!("was interrupted: {steps}"), Tone::Wait),
        (None, _) => (format!("is under way: {steps}"), Tone::Wait),
    };
    let changed = progress.steps.values().filter(|step| step.has_changed()).count();
    let changed = match (changed, begun(progress).len()) {
        (0, 0) => "nothing changed".to_owned(),
        (0, begun) => format!("{begun} begun and not over"),
        (changed, 0) => format!("{changed} changed"),
        (changed, begun) => format!("{changed} changed, {begun} begun and not over"),
    };
    // One layer may go alone (`castle down --layer`): then the castle is not gone.
    let alone = match progress.layers.as_slice() {
        [layer] if down => format!("layer {layer} of "),
        _ => String::new(),
    };
    let text =
        format!("{alone}castle{name}{world} {what}, {changed}, {}", length(progress.took_ms));
    style.hang("", &text, Some(tone)) + "\n"
}

fn layers(progress: &Progress, style: Style) -> String {
    let head = ["layer", "steps", "done", "changed", "failed", "begun", "not run", "took"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut sums = [0; 6];
    for layer in &progress.layers {
        let tally = progress.tally(layer);
        let Tally { steps, done, changed, failed, begun, not_run, .. } = tally;
        let numbers = [steps, done, changed, failed, begun, not_run];
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += number;
        }
        let took = tally.span.map_or_else(|| "-".to_owned(), |_| length(tally.took_ms()));
        rows.push(row(layer.as_str(), numbers, took));
    }
    rows.push(row("all", sums, length(progress.took_ms)));
    let troubled = sums[3] + sums[4] + sums[5] > 0;
    for row in &mut rows {
        match (troubled, sums[4]) {
            (false, _) => drop(row.drain(4..7)),
            (true, 0) => drop(row.remove(5)),
            (true, _) => {}
        }
    }
    table(&rows, &[true], style.width)
}

fn row(name: &str, numbers: [usize; 6], took: String) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    row.extend(numbers.map(|number| number.to_string()));
    row.push(took);
    row
}

fn path(progress: &Progress, decls: &[&StepDecl], style: Style) -> Option<String> {
    let path = critical_path(progress, decls);
    if path.total_ms == 0 || progress.took_ms == 0 {
        return None;
    }
    let (total, took) = (length(path.total_ms), length(progress.took_ms));
    let percent = (path.total_ms * 100 + progress.took_ms / 2) / progress.took_ms;
    // What reads the same is all of it.
    let percent = if total == took { 100 } else { percent.min(99) };
    let mut text = format!("critical path: {total} of {took} ({percent} %)\n");
    let mut lengths: Vec<u64> = path.steps.iter().map(|(_, took)| *took).collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let shortest = lengths.get(PATH_ROWS - 1).copied().unwrap_or(0).max(1);
    let (shown, folded): (Vec<_>, Vec<_>) =
        path.steps.iter().partition(|(_, took)| *took >= shortest);
    let widest = |of: &dyn Fn(&(StepId, u64)) -> usize| shown.iter().map(|step| of(step)).max();
    let used = 2 + widest(&|(id, _)| id.as_str().len()).unwrap_or(0);
    let used = used + widest(&|(_, took)| length(*took).len()).unwrap_or(0) + 4;
    let room = style.width.saturating_sub(used);
    let mut rows: Vec<Vec<String>> = shown
        .iter()
        .map(|(id, took)| {
            let title = progress.steps.get(id).map(|step| clean(&step.title)).unwrap_or_default();
            vec![format!("  {id}"), length(*took), cut(&title, room, style.signs)]
        })
        .collect();
    if !folded.is_empty() {
        let together: u64 = folded.iter().map(|(_, took)| *took).sum();
        rows.push(vec![format!("  {} more", folded.len()), length(together), String::new()]);
    }
    text.push_str(&table(&rows, &[true, false, true], style.width));
    Some(text)
}

fn failures(progress: &Progress, style: Style) -> Vec<String> {
    let failed = of(progress, StepStatus::Failed);
    let failed = failed.filter_map(|(id, step)| Some((id, step.failure.as_ref()?)));
    let told = |group: Vec<Failed<'_>>| {
        let class = group.first().map(|(_, failure)| failure.class.told()).unwrap_or_default();
        let ids: Vec<&StepId> = group.iter().map(|(id, _)| *id).collect();
        let names = ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ");
        let mut text = style.hang("failed: ", &format!("{names} ({class})"), Some(Tone::Bad));
        text.push('\n');
        text.push_str(&labelled(parts(&group), style));
        if let Some(blocked) = blocked_by(progress, &ids) {
            text.push_str(&style.hang("  blocks    ", &blocked, None));
            text.push('\n');
        }
        text
    };
    together(failed).into_iter().map(told).collect()
}

/// What, why, every finding, last evidence and hint, one under the other.
pub(crate) fn explained(failure: &Failure, style: Style) -> String {
    labelled(failure.parts(), style)
}

fn labelled(parts: Vec<(&str, String)>, style: Style) -> String {
    let lines =
        parts.into_iter().map(|(label, text)| style.hang(&format!("  {label:<10}"), &text, None));
    lines.map(|line| line + "\n").collect()
}

/// What failed steps keep from running, counted and named by kind.
pub(crate) fn blocked_by(progress: &Progress, by: &[&StepId]) -> Option<String> {
    let blocked = of(progress, StepStatus::Blocked);
    let ids: Vec<&StepId> = blocked
        .filter(|(_, step)| step.blocked_by.as_ref().is_some_and(|step| by.contains(&step)))
        .map(|(id, _)| id)
        .collect();
    (!ids.is_empty()).then(|| folded(&ids))
}

/// Steps by layer and kind, so that fifteen machines are one word: `platform/vm (5), gitops/flux`. The only one of its kind has its
/// whole name, for `castle why`.
pub(crate) fn folded(ids: &[&StepId]) -> String {
    let mut kinds: BTreeMap<String, Vec<&StepId>> = BTreeMap::new();
    for id in ids {
        let kind: Vec<&str> = id.as_str().split('/').take(2).collect();
        kinds.entry(kind.join("/")).or_default().push(id);
    }
    let named = kinds.into_iter().map(|(kind, ids)| match ids.as_slice() {
        [only] => only.to_string(),
        several => format!("{kind} ({})", several.len()),
    });
    format!("{}: {}", count(ids.len(), "step"), named.collect::<Vec<_>>().join(", "))
}

/// Steps that nothing stopped but the end of the run.
fn left_over(progress: &Progress, style: Style) -> Option<String> {
    progress.outcome?;
    let (begun, open) = (begun(progress), |status: StepStatus| !status.is_over());
    let not_run =
        progress.steps.iter().filter(|(id, step)| open(step.status) && !begun.contains(id));
    let not_run: Vec<&StepId> = not_run.map(|(id, _)| id).collect();
    let mut text = String::new();
    if !begun.is_empty() {
        let told = format!(
            "{}; what they have begun goes on without castle, and the next run waits for its end",
            folded(&begun)
        );
        text.push_str(&(style.hang("under way: ", &told, Some(Tone::Wait)) + "\n"));
    }
    if !not_run.is_empty() {
        text.push_str(&(style.hang("not run: ", &folded(&not_run), None) + "\n"));
    }
    (!text.is_empty()).then_some(text)
}

/// Steps that had begun something elsewhere when the run ended without them.
fn begun(progress: &Progress) -> Vec<&StepId> {
    if progress.outcome.is_none() {
        return Vec::new();
    }
    let begun = progress.steps.iter().filter(|(_, step)| step.is_begun());
    begun.map(|(id, _)| id).collect()
}

fn of(progress: &Progress, status: StepStatus) -> impl Iterator<Item = (&StepId, &StepProgress)> {
    progress.steps.iter().filter(move |(_, step)| step.status == status)
}

#[cfg(test)]
mod tests;
