//! Laws of what a run tells and asks: retries, tasks, pauses, secrets.

use std::collections::{BTreeMap, BTreeSet};

use castle_model::deadline::Deadlines;
use castle_model::{Event, EventKind, Plan, StepId};
use castle_rehearsal::trace::Request;
use castle_rehearsal::world::Datacenter;
use serde_json::Value;

use crate::castle::Stand;
use crate::check::Violation;

/// Endings of tasks that mean that somebody else was faster: what was wanted is so.
const OVERTAKEN: &[&str] = &["already running", "does not exist", "refusing to override"];
/// How much later than its deadline a step may end, in milliseconds: the call that is under way then gets a second more, so
/// that what it says is told.
const LATE: u64 = 1_100;
/// Shorter words of a secret are words of everybody.
const SECRET_LENGTH: usize = 24;

/// A step starts after all that it needs is done, and while its lane has room.
pub(super) fn order(plan: &Plan, events: &[Event]) -> Vec<Violation> {
    let decls: BTreeMap<&StepId, _> = plan.steps.iter().map(|s| (&s.decl.id, &s.decl)).collect();
    let (mut done, mut running) = (BTreeSet::new(), BTreeSet::new());
    let mut found = Vec::new();
    for event in events {
        match &event.kind {
            EventKind::StepDone { step, .. } | EventKind::StepFailed { step, .. } => {
                running.remove(step);
                done.insert(step);
            }
            EventKind::StepStarted { step, .. } => {
                let Some(decl) = decls.get(step) else { continue };
                let early = decl.needs.iter().filter(|need| decls.contains_key(need));
                for need in early.filter(|need| !done.contains(need)) {
                    let what = format!("{step} started before {need} was done");
                    found.push(Violation::new("a step waits for what it needs", what));
                }
                running.insert(step);
                let Some(lane) = &decl.lane else { continue };
                let in_lane = |id: &&&StepId| {
                    decls[**id].lane.as_ref().is_some_and(|other| other.name == lane.name)
                };
                let count = running.iter().filter(in_lane).count();
                if count > lane.width {
                    let what = format!("{count} in {}, where {} fit", lane.name, lane.width);
                    found.push(Violation::new("a lane takes what fits", what));
                }
            }
            _ => {}
        }
    }
    found
}

/// Each step ends by its own deadline, and what gives up then says what it saw last.
pub(super) fn in_its_time(plan: &Plan, deadlines: &Deadlines, events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        let (step, took, failure) = match &event.kind {
            EventKind::StepDone { step, took_ms, .. } => (step, *took_ms, None),
            EventKind::StepFailed { step, failure, took_ms } => (step, *took_ms, Some(failure)),
            _ => continue,
        };
        let Some(planned) = plan.steps.iter().find(|planned| planned.decl.id == *step) else {
            continue;
        };
        let given = deadlines.get(&planned.decl.deadline);
        let given = u64::try_from(given.as_millis()).unwrap_or(u64::MAX);
        if took > given + LATE {
            let what = format!("{step} took {took} ms, where {given} are given");
            found.push(Violation::new("every wait ends", what));
        }
        if let Some(failure) = failure.filter(|_| took >= given)
            && failure.why.is_empty()
        {
            let what = format!("{step} gives up and does not say what it waited for");
            found.push(Violation::new("failures are explained", what));
        }
    }
    found
}

/// Only what may pass by itself is tried again.
pub(super) fn only_transient(events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        if let EventKind::StepRetrying { step, failure, .. } = &event.kind
            && !failure.is_transient()
        {
            let what = format!("{step}, after {failure}");
            found.push(Violation::new("only what passes is tried again", what));
        }
    }
    found
}

/// A step that was asked for a pause is not tried again before it is over.
pub(super) fn pauses(events: &[Event]) -> Vec<Violation> {
    let mut found = Vec::new();
    for event in events {
        if let EventKind::StepRetrying { step, failure, delay_ms, .. } = &event.kind
            && let Some(seconds) = failure.wait
            && *delay_ms < u64::from(seconds.get()) * 1000
        {
            let what =
                format!("{step} again after {delay_ms} ms, where {seconds} s were asked for");
            found.push(Violation::new("a pause is kept", what));
        }
    }
    found
}

/// Every task that a run began is named in what it told, and so in its journal; one that failed is told of.
pub(crate) fn tasks(before: &Datacenter, after: &Datacenter, events: &[Event]) -> Vec<Violation> {
    let new = new_tasks(before, after).into_iter();
    let unnamed = new.filter(|(upid, _)| !is_named(upid, events));
    let mut found: Vec<Violation> =
        unnamed.map(|(upid, _)| Violation::new("a task is written down", upid)).collect();
    found.extend(failed_tasks(before, after, events));
    found
}

/// Every task that failed is told of.
pub(crate) fn failed_tasks(
    before: &Datacenter,
    after: &Datacenter,
    events: &[Event],
) -> Vec<Violation> {
    let is_told = |upid: &str| {
        events.iter().any(|event| match &event.kind {
            EventKind::StepRetrying { failure, .. } | EventKind::StepFailed { failure, .. } => {
                failure.evidence.as_deref().is_some_and(|evidence| evidence.contains(upid))
            }
            _ => false,
        })
    };
    let failed = |exit: &str| {
        exit != "OK"
            && !exit.starts_with("WARNINGS")
            && !OVERTAKEN.iter().any(|words| exit.contains(words))
    };
    let new = new_tasks(before, after).into_iter();
    let failed = new.filter(|(_, exit)| exit.as_deref().is_some_and(failed));
    failed
        .filter(|(upid, _)| !is_told(upid))
        .map(|(upid, _)| Violation::new("a failed task is told", upid))
        .collect()
}

fn is_named(upid: &str, events: &[Event]) -> bool {
    let names = |kind: &EventKind| matches!(kind, EventKind::StepTask { task, .. } if task == upid);
    events.iter().any(|event| names(&event.kind))
}

/// The tasks that were begun meanwhile, each with how it ended.
fn new_tasks(before: &Datacenter, after: &Datacenter) -> Vec<(String, Option<String>)> {
    let known: BTreeSet<String> = tasks_of(before).into_iter().map(|(upid, _)| upid).collect();
    tasks_of(after).into_iter().filter(|(upid, _)| !known.contains(upid)).collect()
}

/// Nothing is made while it is being made already, or was.
pub(super) fn no_second(datacenter: &Datacenter) -> Vec<Violation> {
    let mut made = BTreeSet::new();
    let mut found = Vec::new();
    for (upid, _) in tasks_of(datacenter) {
        let parts: Vec<&str> = upid.split(':').collect();
        let [_, _, _, _, _, kind @ ("download" | "qmcreate"), object, ..] = parts.as_slice() else {
            continue;
        };
        if !made.insert(((*kind).to_owned(), (*object).to_owned())) {
            found.push(Violation::new("no second object", format!("a second {kind} of {object}")));
        }
    }
    found
}

/// Nothing is made while it is being made already, by the task book of a whole life: what went in between may be made again.
pub(crate) fn at_once(datacenter: &Datacenter) -> Vec<Violation> {
    let proxmox = serde_json::to_value(&datacenter.proxmox).unwrap_or_default();
    let tasks = proxmox["tasks"].as_object().into_iter().flatten();
    let mut spans: BTreeMap<(String, String), Vec<(u64, u64)>> = BTreeMap::new();
    for (_, task) in tasks {
        let parts: Vec<&str> = task["upid"].as_str().unwrap_or_default().split(':').collect();
        let [_, _, _, _, _, kind @ ("download" | "qmcreate"), object, ..] = parts.as_slice() else {
            continue;
        };
        let Some(began) = task["started"].as_u64() else { continue };
        // One that still runs, or hangs, has no end yet.
        let ended = task["ended"].as_u64().unwrap_or(u64::MAX);
        spans.entry(((*kind).to_owned(), (*object).to_owned())).or_default().push((began, ended));
    }
    let mut found = Vec::new();
    for ((kind, object), mut times) in spans {
        times.sort_unstable();
        if times.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            let what = format!("two tasks {kind} of {object} at a time: {times:?}");
            found.push(Violation::new("no second object", what));
        }
    }
    found
}

/// The tasks of the API's users, each with how it ended; what a node begins by itself when it is back is root's.
fn tasks_of(datacenter: &Datacenter) -> Vec<(String, Option<String>)> {
    let proxmox = serde_json::to_value(&datacenter.proxmox).unwrap_or_default();
    let tasks = proxmox["tasks"].as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let own = |upid: &String| !upid.contains(":root@pam:");
    let all = tasks.filter_map(|(_, task)| Some((text(&task["upid"])?, text(&task["exit"]))));
    all.filter(|(upid, _)| own(upid)).collect()
}

/// Whoever asks for a pause is not asked the same again before it is over.
pub(super) fn waits(rules: &[&str], requests: &[Request]) -> Vec<Violation> {
    let Some(pause) = rules.iter().find_map(|rule| pause(rule)) else { return Vec::new() };
    let mut found = Vec::new();
    for (index, limited) in requests.iter().enumerate().filter(|(_, r)| r.status == 429) {
        let same = |other: &&Request| {
            (&other.server, &other.method, &other.path)
                == (&limited.server, &limited.method, &limited.path)
        };
        if let Some(next) = requests[index + 1..].iter().find(same)
            && next.at < limited.at + pause
        {
            let (asked, after) = (&limited.path, next.at - limited.at);
            let what = format!("{asked} again after {after} ms, where {pause} were asked for");
            found.push(Violation::new("a pause is kept", what));
        }
    }
    found
}

/// The milliseconds of a rule `… limits M:SS …`.
fn pause(rule: &str) -> Option<u64> {
    let (_, time) = rule.split_once("limits ")?;
    let (minutes, rest) = time.split_once(':')?;
    let seconds = rest.split_whitespace().next()?;
    Some((minutes.parse::<u64>().ok()? * 60 + seconds.parse::<u64>().ok()?) * 1000)
}

/// No word of what castle keeps in the vault stands in its journals or in what it tells.
pub(super) fn no_secret(stand: &Stand, events: &[Event]) -> Vec<Violation> {
    let mut words = BTreeSet::new();
    let infisical = serde_json::to_value(&stand.datacenter.infisical).unwrap_or_default();
    collect(&infisical["projects"], &mut words);
    let mut text = serde_json::to_string(events).unwrap_or_default();
    for name in stand.disk.names() {
        text.push_str(&String::from_utf8_lossy(&stand.disk.content(&name).unwrap_or_default()));
    }
    // The words themselves are not told, or the proof would be the leak.
    let told = words.iter().filter(|word| text.contains(word.as_str())).count();
    let what = format!("{told} of {} words", words.len());
    (told > 0).then(|| Violation::new("no secret outside", what)).into_iter().collect()
}

/// The long words of all secret values.
fn collect(value: &Value, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                match member {
                    Value::String(text) if key == "value" => {
                        let long = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '+');
                        let long = long.filter(|word| word.len() >= SECRET_LENGTH);
                        words.extend(long.map(str::to_owned));
                    }
                    _ => collect(member, words),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|member| collect(member, words)),
        _ => {}
    }
}
