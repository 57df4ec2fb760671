//! The closing report of a run: what stands, what it took, what failed and how to go on.

use std::collections::BTreeMap;

use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::time::length;
use castle_model::{Failure, StepDecl, StepId};

use crate::critical_path::critical_path;
use crate::progress::{Progress, StepProgress, StepStatus};
use crate::style::{Style, Tone, clean, count, cut, table};

/// Steps of the critical path that are shown; the shortest beyond them are folded into one line.
const PATH_ROWS: usize = 10;

/// The report of a run. `decls` stand as in its plan; `go_on` are the commands that continue it, one after the other.
#[must_use]
pub fn end(progress: &Progress, decls: &[&StepDecl], go_on: &[String], style: Style) -> String {
    let mut parts = vec![headline(progress, style)];
    let failures = failures(progress, style);
    if progress.steps.values().any(StepProgress::has_changed) || !failures.is_empty() {
        parts.push(layers(progress));
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
        (Some(RunOutcome::Done), true) => (format!("is gone: {steps}"), Tone::Good),
        (Some(RunOutcome::Failed), _) => {
            (format!("is not finished: {failed} of {steps} failed"), Tone::Bad)
        }
        (Some(RunOutcome::Interrupted), _) => (format!("was interrupted: {steps}"), Tone::Wait),
        (None, _) => (format!("is under way: {steps}"), Tone::Wait),
    };
    let changed = match progress.steps.values().filter(|step| step.has_changed()).count() {
        0 => "nothing changed".to_owned(),
        number => format!("{number} changed"),
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

fn layers(progress: &Progress) -> String {
    let head = ["layer", "steps", "done", "changed", "failed", "not run", "took"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    let mut sums = [0; 5];
    for layer in &progress.layers {
        let tally = progress.tally(layer);
        let numbers = [tally.steps, tally.done, tally.changed, tally.failed, tally.not_run];
        for (sum, number) in sums.iter_mut().zip(numbers) {
            *sum += number;
        }
        let took = tally.span.map_or_else(|| "-".to_owned(), |_| length(tally.took_ms()));
        rows.push(row(layer.as_str(), numbers, took));
    }
    rows.push(row("all", sums, length(progress.took_ms)));
    if sums[3] + sums[4] == 0 {
        for row in &mut rows {
            row.drain(4..6);
        }
    }
    table(&rows, &[true])
}

fn row(name: &str, numbers: [usize; 5], took: String) -> Vec<String> {
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
    let percent = path.total_ms * 100 / progress.took_ms;
    let mut text = format!(
        "critical path: {} of {} ({percent} %)\n",
        length(path.total_ms),
        length(progress.took_ms)
    );
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
    text.push_str(&table(&rows, &[true, false, true]));
    Some(text)
}

fn failures(progress: &Progress, style: Style) -> Vec<String> {
    let failed = of(progress, StepStatus::Failed);
    failed
        .filter_map(|(id, step)| {
            let failure = step.failure.as_ref()?;
            let mut text =
                style.hang("failed: ", &format!("{id} ({})", failure.class), Some(Tone::Bad));
            text.push('\n');
            text.push_str(&explained(failure, style));
            if let Some(blocked) = blocked_by(progress, id) {
                text.push_str(&style.hang("  blocks    ", &blocked, None));
                text.push('\n');
            }
            Some(text)
        })
        .collect()
}

/// What, why, every finding, last evidence and hint, one under the other.
pub(crate) fn explained(failure: &Failure, style: Style) -> String {
    let lines = failure
        .parts()
        .into_iter()
        .map(|(label, text)| style.hang(&format!("  {label:<10}"), &text, None));
    lines.map(|line| line + "\n").collect()
}

/// What a failed step keeps from running, counted and named by kind.
pub(crate) fn blocked_by(progress: &Progress, by: &StepId) -> Option<String> {
    let blocked = of(progress, StepStatus::Blocked);
    let ids: Vec<&StepId> = blocked
        .filter(|(_, step)| step.blocked_by.as_ref() == Some(by))
        .map(|(id, _)| id)
        .collect();
    (!ids.is_empty()).then(|| folded(&ids))
}

/// Steps by layer and kind, so that fifteen machines are one word: `platform/vm (5), gitops/flux`.
pub(crate) fn folded(ids: &[&StepId]) -> String {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for id in ids {
        let kind: Vec<&str> = id.as_str().split('/').take(2).collect();
        *kinds.entry(kind.join("/")).or_default() += 1;
    }
    let named = kinds.into_iter().map(|(kind, number)| match number {
        1 => kind,
        _ => format!("{kind} ({number})"),
    });
    format!("{}: {}", count(ids.len(), "step"), named.collect::<Vec<_>>().join(", "))
}

/// Steps that nothing stopped but the end of the run.
fn left_over(progress: &Progress, style: Style) -> Option<String> {
    progress.outcome?;
    let open = |status: StepStatus| !status.is_over();
    let ids: Vec<&StepId> =
        progress.steps.iter().filter(|(_, step)| open(step.status)).map(|(id, _)| id).collect();
    (!ids.is_empty()).then(|| style.hang("not run: ", &folded(&ids), None) + "\n")
}

fn of(progress: &Progress, status: StepStatus) -> impl Iterator<Item = (&StepId, &StepProgress)> {
    progress.steps.iter().filter(move |(_, step)| step.status == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{decls, failed_run, good_run, quiet_run};

    fn shown(events: &[castle_model::Event], go_on: &[&str]) -> String {
        shown_at(80, events, go_on)
    }

    fn shown_at(width: usize, events: &[castle_model::Event], go_on: &[&str]) -> String {
        let style = Style { width, ..Style::default() };
        let go_on: Vec<String> = go_on.iter().map(|command| (*command).to_owned()).collect();
        let decls = decls();
        let mut progress = Progress::new(&decls);
        for event in events {
            progress.apply(event);
        }
        end(&progress, &decls.iter().collect::<Vec<_>>(), &go_on, style)
    }

    #[test]
    fn after_a_good_run() {
        insta::assert_snapshot!(shown(&good_run(), &[]), @"
        castle blue (a rehearsal) stands: 6 steps, 5 changed, 1:36

        layer     steps  done  changed    took
        secrets       1     1        0   0.5 s
        platform      4     4        4    1:22
        gitops        1     1        1  12.6 s
        all           6     6        5    1:36

        critical path: 1:35 of 1:36 (99 %)
          secrets/read       0.5 s  secrets of blue in Infisical
          platform/image    11.3 s  Talos 1.13.9 image on pve:local
          platform/vm/w-01  20.8 s  VM w-01 (431) on pve
          platform/vip      50.4 s  API server at 192.168.1.210
          gitops/flux       12.6 s  Flux and its controllers

        handover: Flux owns what the cluster hosts, from
                  https://github.com/example/tazlab-k8s, main, clusters/blue at 3f2a91c;
                  castle only observes
        ");
    }

    #[test]
    fn after_a_failed_run() {
        insta::assert_snapshot!(shown(&failed_run(), &["castle up"]), @"
        castle blue (a rehearsal) is not finished: 1 of 6 steps failed, 2 changed, 31.1
        s

        layer     steps  done  changed  failed  not run    took
        secrets       1     1        0       0        0   0.5 s
        platform      4     2        2       1        1  30.1 s
        gitops        1     0        0       0        1       -
        all           6     3        2       1        2  31.1 s

        critical path: 30.6 s of 31.1 s (98 %)
          secrets/read        0.5 s  secrets of blue in Infisical
          platform/image     11.3 s  Talos 1.13.9 image on pve:local
          platform/vm/cp-01  18.8 s  VM cp-01 (421) on pve

        failed: platform/vm/w-01 (denied)
          what      create VM 431 on node pve
          why       403 Permission check failed (/vms/431, VM.Allocate)
          last seen the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430
                    only
          hint      give the token's role VM.Allocate on the whole range of vmids
          blocks    2 steps: gitops/flux, platform/vip

        next: `castle up`
        ");
    }

    #[test]
    fn on_a_narrow_terminal_no_line_is_left_to_the_terminal_to_break() {
        for width in [44, 60] {
            let text = shown_at(width, &good_run(), &[]);
            let widest = text.lines().map(crate::style::columns).max().unwrap_or(0);
            assert!(widest <= width, "{width}: {widest}\n{text}");
        }
        insta::assert_snapshot!(shown_at(44, &good_run(), &[]), @"
        castle blue (a rehearsal) stands: 6 steps, 5
        changed, 1:36

        layer     steps  done  changed    took
        secrets       1     1        0   0.5 s
        platform      4     4        4    1:22
        gitops        1     1        1  12.6 s
        all           6     6        5    1:36

        critical path: 1:35 of 1:36 (99 %)
          secrets/read       0.5 s  secrets of blue…
          platform/image    11.3 s  Talos 1.13.9 im…
          platform/vm/w-01  20.8 s  VM w-01 (431) o…
          platform/vip      50.4 s  API server at 1…
          gitops/flux       12.6 s  Flux and its co…

        handover: Flux owns what the cluster hosts,
                  from
              https://github.com/example/tazlab-k8s,
                  main, clusters/blue at 3f2a91c;
                  castle only observes
        ");
    }

    #[test]
    fn a_layer_that_went_alone_is_not_the_castle() {
        let mut decls = decls();
        decls.retain(|decl| decl.layer.as_str() == "gitops");
        let mut progress = Progress::new(&decls);
        progress.direction = Some(Direction::Down);
        progress.outcome = Some(RunOutcome::Done);
        let told = headline(&progress, Style::default());
        assert_eq!(told, "layer gitops of castle is gone: 1 step, nothing changed, 0.0 s\n");
    }

    #[test]
    fn after_a_run_with_nothing_to_do() {
        insta::assert_snapshot!(shown(&quiet_run(), &[]), @"castle blue (a rehearsal) stands: 6 steps, nothing changed, 0.5 s");
    }
}
