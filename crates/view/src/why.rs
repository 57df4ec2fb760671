//! Why a step is where it is: what it waits for, since when, what was seen last, what depends on it; or what proved it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use castle_model::deadline::Deadlines;
use castle_model::plan::Direction;
use castle_model::time::{Moment, length};
use castle_model::{Failure, RunId, StepDecl, StepId};
use serde::Serialize;

use crate::progress::{Progress, StepStatus};
use crate::report::folded;
use crate::style::{Style, Tone, amount, count};

/// So many bytes of a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Fetched {
    /// Bytes that are done.
    pub done: u64,
    /// Bytes of the whole.
    pub total: u64,
}

/// An open step that others wait for in the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Root {
    /// Which.
    pub step: StepId,
    /// The steps between, the one that is needed first of all at the beginning.
    pub through: Vec<StepId>,
    /// Where it stands; `pending` if only its turn has not come.
    pub status: &'static str,
    /// For how long it has been at it, in milliseconds.
    pub for_ms: Option<u64>,
    /// What it waits for itself, or why it failed.
    pub waits_for: Option<String>,
    /// How long ago that was first seen so, in milliseconds.
    pub seen_ms_ago: Option<u64>,
}

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
    /// How long ago what is missing was seen so, in milliseconds; before the end of the run, if that is over, and none if it was killed.
    pub seen_ms_ago: Option<u64>,
    /// How much is done of something whose length is known.
    pub fetched: Option<Fetched>,
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
    /// Where it has not begun: the open steps at the root of what it waits for.
    pub roots: Vec<Root>,
    /// Which failed step it is blocked by.
    pub blocked_by: Option<StepId>,
    /// Why that one failed.
    pub blocked_why: Option<String>,
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
    // Nothing waits any more once the run is over.
    let last = if asked.over { progress.now } else { now };
    let ended = known.took_ms.zip(known.started).map(|(took, from)| Moment(from.0 + took));
    let weights = asked.decls.iter().map(|decl| (&decl.id, decl.weight)).collect();
    Some(Answer {
        step: decl.id.clone(),
        title: decl.title.clone(),
        status: known.status.word(),
        for_ms: known.took_ms.or(since.filter(|_| busy)),
        ended_ms_ago: ended.map(|ended| now.since(ended)),
        waits_for: known.waiting.as_ref().map(|(reason, _)| reason.clone()),
        waits_ms: known.waiting_since.map(|since| last.since(since)),
        // Of a run that was killed, nobody knows for how long it stayed so.
        seen_ms_ago: known
            .waiting
            .as_ref()
            .filter(|_| !asked.over || progress.outcome.is_some())
            .map(|(_, at)| last.since(*at)),
        fetched: known.fetched.map(|(done, total)| Fetched { done, total }),
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
        roots: if known.status == StepStatus::Pending {
            roots(asked, &decl.id, needs)
        } else {
            Vec::new()
        },
        blocked_by: known.blocked_by.clone(),
        blocked_why: known.blocked_by.as_ref().and_then(|by| {
            let failure = progress.steps.get(by)?.failure.as_ref()?;
            Some(failure.to_string())
        }),
        behind: all_behind(&decl.id, behind),
        behind_ms: longest_behind(&decl.id, behind, &weights, &mut BTreeMap::new()),
    })
}

/// The open steps that a step waits for in the end, each by the shortest way.
fn roots(
    asked: Asked<'_>,
    step: &StepId,
    needs: &BTreeMap<&StepId, BTreeSet<&StepId>>,
) -> Vec<Root> {
    let Asked { progress, now, .. } = asked;
    let missing = |id: &StepId| -> Vec<StepId> {
        let over = [StepStatus::Done, StepStatus::Undone, StepStatus::Skipped];
        let open = |need: &&&StepId| {
            progress.steps.get(**need).is_some_and(|known| !over.contains(&known.status))
        };
        needs.get(id).into_iter().flatten().filter(open).map(|need| (*need).clone()).collect()
    };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open: VecDeque<Vec<StepId>> = missing(step).into_iter().map(|id| vec![id]).collect();
    while let Some(mut way) = open.pop_front() {
        let Some(id) = way.last().filter(|id| seen.insert((*id).clone())).cloned() else {
            continue;
        };
        let Some(known) = progress.steps.get(&id) else { continue };
        let further = missing(&id);
        let waits = matches!(known.status, StepStatus::Pending | StepStatus::Blocked);
        if waits && !further.is_empty() {
            open.extend(further.into_iter().map(|next| [way.clone(), vec![next]].concat()));
            continue;
        }
        way.pop();
        let waiting = known.waiting.as_ref();
        let failed = known.failure.as_ref().map(ToString::to_string);
        found.push(Root {
            step: id,
            through: way,
            status: known.status.word(),
            for_ms: known.took_ms.or(known.started.map(|started| now.since(started))),
            waits_for: failed.or(waiting.map(|(reason, _)| reason.clone())),
            seen_ms_ago: waiting.map(|(_, at)| now.since(*at)),
        });
    }
    found
}

/// How many of the steps at the root are told in words.
const ROOTS: usize = 4;

/// The steps at the root in words.
fn rooted(answer: &Answer, over: bool) -> Vec<String> {
    let one = |root: &Root| {
        let through = match root.through.as_slice() {
            [] => String::new(),
            [one] => format!(" (through {one})"),
            [first, more @ ..] => {
                format!(" (through {first} and {})", count(more.len(), "more step"))
            }
        };
        let took = root.for_ms.map(length).unwrap_or_default();
        let how = match (root.status, &root.waits_for) {
            ("running" | "waiting", _) if over => format!("was {} when the run ended", root.status),
            ("pending", _) => "its turn has not come".to_owned(),
            ("failed", Some(why)) => format!("failed: {why}"),
            (_, Some(reason)) => {
                let seen = root.seen_ms_ago.map(length).unwrap_or_default();
                format!("under way for {took}: {reason}, seen so for {seen}")
            }
            (status, None) => format!("{status} for {took}"),
        };
        format!("{}{through}: {how}", root.step)
    };
    let mut told: Vec<String> = answer.roots.iter().take(ROOTS).map(one).collect();
    if let more @ 1.. = answer.roots.len().saturating_sub(ROOTS) {
        told.push(format!("{}, which --json names", count(more, "more step")));
    }
    told
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
    for (label, said) in labelled(answer, over) {
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
fn labelled(answer: &Answer, over: bool) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    match &answer.failure {
        Some(failure) => said.extend(failure.parts()),
        None => said.push(("what", answer.title.clone())),
    }
    if let Some(reason) = &answer.waits_for {
        let seen = answer.seen_ms_ago.map(|seen| format!(", seen so for {}", length(seen)));
        said.push(("waits for", format!("{reason}{}", seen.unwrap_or_default())));
    }
    said.extend(rooted(answer, over).into_iter().map(|root| ("waits for", root)));
    said.extend(answer.fetched.map(|f| ("so far", amount(f.done, f.total))));
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
        let why = answer.blocked_why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
        said.push(("because", format!("{by} failed{why}")));
    }
    // What a step that has not begun waits for in the end says more than what it needs.
    let open = answer.roots.is_empty() && matches!(answer.status, "pending" | "blocked");
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
mod tests;
