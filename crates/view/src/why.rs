//! Why a step is where it is: what it waits for, since when, what was seen last, what depends on it; or what proved it.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::deadline::Deadlines;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{Failure, RunId, StepDecl, StepId};
use serde::Serialize;

use crate::progress::{Progress, StepStatus};
use crate::report::folded;
use crate::style::{Style, Tone};

/// What is known of one step in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// Which.
    pub step: StepId,
    /// What it does, for a person.
    pub title: String,
    /// Where it stands: pending, blocked, running, waiting, done, failed, skipped, undone.
    pub status: &'static str,
    /// For how long it has been at it, or how long it took, in milliseconds.
    pub for_ms: Option<u64>,
    /// How long ago it ended, in milliseconds.
    pub ended_ms_ago: Option<u64>,
    /// What is missing.
    pub waits_for: Option<String>,
    /// Since when it waits, in milliseconds before now.
    pub waits_ms: Option<u64>,
    /// How long ago what is missing was seen so, in milliseconds.
    pub seen_ms_ago: Option<u64>,
    /// Tries that met a transient failure.
    pub retries: u32,
    /// What the last of them said.
    pub tried: Option<Failure>,
    /// What it has begun elsewhere, by the other side's name.
    pub task: Option<String>,
    /// How long it may take in all, in milliseconds.
    pub deadline_ms: u64,
    /// How much of that is left, in milliseconds, while it is under way.
    pub left_ms: Option<u64>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What proved it.
    pub proof: Option<String>,
    /// What it needs and is not there yet, with where each stands.
    pub needs: BTreeMap<StepId, &'static str>,
    /// Which failed step it is blocked by.
    pub blocked_by: Option<StepId>,
    /// Everything that can not begin before it is done.
    pub behind: BTreeSet<StepId>,
    /// The usual length of the longest path behind it, in milliseconds.
    pub behind_ms: u64,
}

/// What is known of a run's steps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Why {
    /// Which run.
    pub run: Option<RunId>,
    /// Which way it goes.
    pub direction: Option<Direction>,
    /// Whether it is over.
    pub over: bool,
    /// The answers, what blocks most first.
    pub steps: Vec<Answer>,
}

/// What a question is answered from.
#[derive(Debug, Clone, Copy)]
pub struct Asked<'a> {
    /// The run, as its events tell it.
    pub progress: &'a Progress,
    /// The declared steps.
    pub decls: &'a [StepDecl],
    /// How long each may take.
    pub deadlines: &'a Deadlines,
    /// When.
    pub now: Moment,
    /// Whether the run is over: by its end, or because nobody carries it on.
    pub over: bool,
}

/// Answers for one step, or for every step that is under way or failed.
#[must_use]
pub fn why(asked: Asked<'_>, step: Option<&StepId>) -> Why {
    let progress = asked.progress;
    let down = progress.direction == Some(Direction::Down);
    let needs = links(asked.decls, down);
    let behind = links(asked.decls, !down);
    let open = |id: &StepId| {
        progress.steps.get(id).is_some_and(|known| {
            let busy = matches!(known.status, StepStatus::Running | StepStatus::Waiting);
            busy || known.status == StepStatus::Failed
        })
    };
    let wanted = |id: &StepId| step.map_or_else(|| open(id), |step| step == id);
    let chosen = asked.decls.iter().filter(|decl| wanted(&decl.id));
    let mut steps: Vec<Answer> =
        chosen.filter_map(|decl| answer(asked, decl, &needs, &behind)).collect();
    steps.sort_by(|a, b| b.behind_ms.cmp(&a.behind_ms).then_with(|| a.step.cmp(&b.step)));
    let (run, direction) = (progress.run.clone(), progress.direction);
    Why { run, direction, over: asked.over, steps }
}

/// For each step those that come right before it, or right after it if `turned`.
fn links(decls: &[StepDecl], turned: bool) -> BTreeMap<&StepId, BTreeSet<&StepId>> {
    let mut links: BTreeMap<&StepId, BTreeSet<&StepId>> = BTreeMap::new();
    for decl in decls {
        for need in &decl.needs {
            let (of, to) = if turned { (need, &decl.id) } else { (&decl.id, need) };
            links.entry(of).or_default().insert(to);
        }
    }
    links
}

fn answer(
    asked: Asked<'_>,
    decl: &StepDecl,
    needs: &BTreeMap<&StepId, BTreeSet<&StepId>>,
    behind: &BTreeMap<&StepId, BTreeSet<&StepId>>,
) -> Option<Answer> {
    let Asked { progress, now, .. } = asked;
    let known = progress.steps.get(&decl.id)?;
    let busy = matches!(known.status, StepStatus::Running | StepStatus::Waiting);
    let since = known.started.map(|started| now.since(started));
    let deadline = asked.deadlines.get(&decl.deadline).as_millis();
    let deadline_ms = u64::try_from(deadline).unwrap_or(u64::MAX);
    let missing = needs.get(&decl.id).into_iter().flatten().filter_map(|need| {
        let status = progress.steps.get(*need)?.status;
        let there = matches!(status, StepStatus::Done | StepStatus::Undone | StepStatus::Skipped);
        (!there).then(|| ((*need).clone(), status.word()))
    });
    let ended = known.took_ms.zip(known.started).map(|(took, from)| Moment(from.0 + took));
    let weights = asked.decls.iter().map(|decl| (&decl.id, decl.weight)).collect();
    Some(Answer {
        step: decl.id.clone(),
        title: decl.title.clone(),
        status: known.status.word(),
        for_ms: known.took_ms.or(since.filter(|_| busy)),
        ended_ms_ago: ended.map(|ended| now.since(ended)),
        waits_for: known.waiting.as_ref().map(|(reason, _)| reason.clone()),
        waits_ms: known.waiting_since.map(|since| now.since(since)),
        seen_ms_ago: known.waiting.as_ref().map(|(_, at)| now.since(*at)),
        retries: known.retries,
        tried: known.tried.clone(),
        task: known.task.clone().filter(|_| busy),
        deadline_ms,
        // Once a run is over, nothing is left of anything.
        left_ms: since
            .filter(|_| busy && !asked.over)
            .map(|since| deadline_ms.saturating_sub(since)),
        failure: known.failure.clone(),
        proof: known.proof.as_ref().map(|(proof, _)| proof.clone()),
        needs: missing.collect(),
        blocked_by: known.blocked_by.clone(),
        behind: all_behind(&decl.id, behind),
        behind_ms: longest_behind(&decl.id, behind, &weights, &mut BTreeMap::new()),
    })
}

fn all_behind(step: &StepId, behind: &BTreeMap<&StepId, BTreeSet<&StepId>>) -> BTreeSet<StepId> {
    let mut found = BTreeSet::new();
    let mut open = vec![step];
    while let Some(step) = open.pop() {
        for next in behind.get(step).into_iter().flatten() {
            if found.insert((*next).clone()) {
                open.push(next);
            }
        }
    }
    found
}

/// The usual length of the longest path behind a step. Declared steps never need each other in a circle.
fn longest_behind<'a>(
    step: &'a StepId,
    behind: &BTreeMap<&'a StepId, BTreeSet<&'a StepId>>,
    weights: &BTreeMap<&'a StepId, u64>,
    known: &mut BTreeMap<&'a StepId, u64>,
) -> u64 {
    if let Some(length) = known.get(step) {
        return *length;
    }
    let mut longest = 0;
    for next in behind.get(step).into_iter().flatten() {
        let own = weights.get(next).copied().unwrap_or(0);
        longest = longest.max(own + longest_behind(next, behind, weights, known));
    }
    known.insert(step, longest);
    longest
}

/// The answers as text.
#[must_use]
pub fn text(why: &Why, style: Style) -> String {
    let told: Vec<String> = why.steps.iter().map(|answer| told(answer, why.over, style)).collect();
    told.join("\n")
}

fn told(answer: &Answer, over: bool, style: Style) -> String {
    let (head, tone) = headline(answer, over);
    let mut text = style.hang("", &head, Some(tone)) + "\n";
    for (label, said) in labelled(answer) {
        text.push_str(&style.hang(&format!("  {label:<10}"), &said, None));
        text.push('\n');
    }
    text
}

fn headline(answer: &Answer, over: bool) -> (String, Tone) {
    let Answer { step, status, .. } = answer;
    let took = answer.for_ms.map(length).unwrap_or_default();
    let ago = answer.ended_ms_ago.map(|ago| format!(", {} ago", length(ago))).unwrap_or_default();
    match *status {
        "running" | "waiting" if over => {
            (format!("{step} was {status} when the run ended"), Tone::Wait)
        }
        "running" => (format!("{step} has been running for {took}"), Tone::Wait),
        "waiting" => {
            let waits = answer.waits_ms.map(length).unwrap_or_default();
            (format!("{step} has been waiting for {waits}, under way for {took}"), Tone::Wait)
        }
        "failed" => (format!("{step} failed after {took}{ago}"), Tone::Bad),
        "pending" => (format!("{step} has not begun"), Tone::Quiet),
        "blocked" => (format!("{step} is blocked and will not run"), Tone::Bad),
        "undone" => (format!("{step} is undone, in {took}{ago}"), Tone::Good),
        "skipped" => (format!("{step} was skipped"), Tone::Quiet),
        _ => (format!("{step} is done, in {took}{ago}"), Tone::Good),
    }
}

/// What is to be said of a step, in the order that all reports have.
fn labelled(answer: &Answer) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    match &answer.failure {
        Some(failure) => said.extend(failure.parts()),
        None => said.push(("what", answer.title.clone())),
    }
    if let Some(reason) = &answer.waits_for {
        let seen = answer.seen_ms_ago.map(length).unwrap_or_default();
        said.push(("waits for", format!("{reason} (so since {seen} ago)")));
    }
    said.extend(answer.proof.clone().map(|proof| ("proof", proof)));
    said.extend(answer.task.clone().map(|task| ("elsewhere", format!("as {task}"))));
    if let (1.., Some(tried)) = (answer.retries, &answer.tried) {
        let tries = match answer.retries {
            1 => "1 failed try".to_owned(),
            more => format!("{more} failed tries, the last"),
        };
        said.push(("tried", format!("{tries}: {tried}")));
    }
    if let Some(left) = answer.left_ms {
        let may = length(answer.deadline_ms);
        said.push(("deadline", format!("{may} in all, {} left", length(left))));
    }
    if let Some(by) = &answer.blocked_by {
        said.push(("because", format!("{by} failed")));
    }
    let open = matches!(answer.status, "pending" | "blocked");
    if open && !answer.needs.is_empty() {
        let needs = answer.needs.iter().map(|(need, status)| format!("{need} ({status})"));
        said.push(("needs", needs.collect::<Vec<_>>().join(", ")));
    }
    if !answer.behind.is_empty() && !matches!(answer.status, "done" | "undone" | "skipped") {
        let ids: Vec<&StepId> = answer.behind.iter().collect();
        said.push(("blocks", folded(&ids)));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::{START, decls, failed_run, good_run};

    fn asked(events: &[castle_model::Event], now: u64, step: Option<&str>) -> Why {
        let decls = decls();
        let mut progress = Progress::new(&decls);
        for event in events {
            progress.apply(event);
        }
        let step =
            step.map(|step| decls.iter().find(|d| d.id.as_str() == step).unwrap().id.clone());
        let (deadlines, now) = (Deadlines::default(), Moment(START + now));
        let over = progress.outcome.is_some();
        let asked = Asked { progress: &progress, decls: &decls, deadlines: &deadlines, now, over };
        why(asked, step.as_ref())
    }

    #[test]
    fn of_a_run_that_is_over_nothing_is_left() {
        let mut tape = crate::example::Tape { events: good_run()[..17].to_vec() };
        tape.end(60_000, castle_model::event::RunOutcome::Interrupted);
        insta::assert_snapshot!(shown(&asked(&tape.events, 60_000, None)), @"
        platform/vip was waiting when the run ended
          what      API server at 192.168.1.210
          waits for connection refused at 192.168.1.210:6443 (so since 26.0 s ago)
          blocks    1 step: gitops/flux
        ");
    }

    fn shown(why: &Why) -> String {
        text(why, Style::default())
    }

    #[test]
    fn what_is_waited_for_is_told_with_its_deadline_and_what_it_keeps_waiting() {
        insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, None)), @"
        platform/vip has been waiting for 26.0 s, under way for 27.0 s
          what      API server at 192.168.1.210
          waits for connection refused at 192.168.1.210:6443 (so since 26.0 s ago)
          deadline  5:00 in all, 4:33 left
          blocks    1 step: gitops/flux
        ");
    }

    #[test]
    fn what_is_under_way_stands_in_the_order_of_what_is_behind_it() {
        let why = asked(&good_run()[..13], 14_000, None);
        insta::assert_snapshot!(shown(&why), @"
        platform/vm/cp-01 has been running for 1.8 s
          what      VM cp-01 (421) on pve
          deadline  5:00 in all, 4:58 left
          blocks    2 steps: gitops/flux, platform/vip

        platform/vm/w-01 has been running for 1.8 s
          what      VM w-01 (431) on pve
          tried     1 failed try: create VM 431 on node pve: 595 no answer
          deadline  5:00 in all, 4:58 left
          blocks    2 steps: gitops/flux, platform/vip
        ");
    }

    #[test]
    fn a_failure_is_explained_and_what_is_blocked_says_by_what() {
        insta::assert_snapshot!(shown(&asked(&failed_run(), 40_000, None)), @"
        platform/vm/w-01 failed after 0.7 s, 27.1 s ago
          what      create VM 431 on node pve
          why       403 Permission check failed (/vms/431, VM.Allocate)
          last seen the token castle@pve!blue has VM.Allocate on /vms/421 to /vms/430
                    only
          hint      give the token's role VM.Allocate on the whole range of vmids
          blocks    2 steps: gitops/flux, platform/vip
        ");
        insta::assert_snapshot!(shown(&asked(&failed_run(), 40_000, Some("gitops/flux"))), @"
        gitops/flux is blocked and will not run
          what      Flux and its controllers
          because   platform/vm/w-01 failed
          needs     platform/vip (blocked)
        ");
    }

    #[test]
    fn one_step_is_told_wherever_it_stands() {
        insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, Some("platform/image"))), @"
        platform/image is done, in 11.3 s, 47.8 s ago
          what      Talos 1.13.9 image on pve:local
          proof     sha256 of 118 MB agrees
        ");
        insta::assert_snapshot!(shown(&asked(&good_run()[..17], 60_000, Some("gitops/flux"))), @"
        gitops/flux has not begun
          what      Flux and its controllers
          needs     platform/vip (waiting)
        ");
    }

    #[test]
    fn going_down_what_depends_is_what_goes_later() {
        let mut events = good_run()[..17].to_vec();
        if let castle_model::EventKind::RunStarted { direction, .. } = &mut events[0].kind {
            *direction = Direction::Down;
        }
        let why = asked(&events, 60_000, None);
        let behind: Vec<&str> = why.steps[0].behind.iter().map(StepId::as_str).collect();
        assert_eq!(
            behind,
            ["platform/image", "platform/vm/cp-01", "platform/vm/w-01", "secrets/read"]
        );
    }
}
