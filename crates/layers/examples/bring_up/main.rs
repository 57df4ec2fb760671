//! Holds bring-ups of the rehearsal against the datacenter's own bound and the published way, for `cargo xtask bench`.
//!
//! `bring_up [SEEDS]` prints a JSON line per seed. For the platform, the handover and the whole, `took_ms` is castle's
//! time and `bound_ms` the longest chain of what the datacenter drew; `published_ms` is the published way in the same
//! world, `alone_ms` the same with each lever alone, `added_ms` with one after the other, `serial_ms` with one pull at a
//! time; `late_ms` is how long after
//! its truth each gate was passed that watches. `bring_up growth` prints what castles of several sizes cost.

mod growth;
mod raise;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};

use castle_model::EventKind;
use castle_rehearsal::bound::{CLUSTER, Goal, HANDOVER, PLATFORM, Question, longest};
use castle_rehearsal::durations::Process;
use castle_rehearsal::host::runtime;
use castle_rehearsal::published::{LEVERS, Levers, stages};
use serde_json::{Value, json};

use raise::{Raised, raise};

/// How many castles are raised, each from a seed of its own, if nothing else is asked for.
const SEEDS: u64 = 200;

/// The gates that watch, and the processes whose last end makes each of them true.
const WATCHED: &[(&str, &[Process])] = &[(
    "platform/nodes",
    &[Process::NodeReady, Process::FlannelStart, Process::ProxyStart, Process::AddonStart],
)];

fn main() -> Result<(), Box<dyn Error>> {
    let asked = std::env::args().nth(1);
    if asked.as_deref() == Some("growth") {
        return growth::print();
    }
    for seed in 1..=asked.map_or(Ok(SEEDS), |text| text.parse())? {
        let raised = runtime()?.block_on(raise(castle_config::example(), seed))?;
        writeln!(stdout(), "{}", told(&raised, seed)?)?;
    }
    Ok(())
}

fn told(raised: &Raised, seed: u64) -> Result<Value, Box<dyn Error>> {
    let (begun, over) = raised.whole();
    let handover = raised.done("gitops/handover").ok_or("there was no handover")?;
    let (first, last) = raised.platform().ok_or("the platform layer left no trace")?;
    let against = |took: u64, until: u64, goals: &[&[Goal]]| {
        let until = until - raised.epoch;
        let bound =
            longest(&raised.draws, &Question { since: 0, until, names: &raised.names, goals });
        let chain: Vec<String> = bound
            .chain
            .iter()
            .map(|draw| format!("{} {} {}", draw.what.name(), draw.subject, draw.ms))
            .collect();
        json!({"took_ms": took, "bound_ms": bound.ms, "chain": chain})
    };
    let published = |levers| stages(&raised.draws, &raised.names, seed, levers);
    let total = |levers| published(levers).last().map_or(0, |stage| stage.over);
    let alone: Vec<u64> = LEVERS
        .iter()
        .map(|(_, pull)| {
            let mut levers = Levers::default();
            pull(&mut levers);
            total(levers)
        })
        .collect();
    let mut levers = Levers::default();
    let added: Vec<u64> = LEVERS
        .iter()
        .map(|(_, pull)| {
            pull(&mut levers);
            total(levers)
        })
        .collect();
    let steps: Vec<(&str, &str, u64)> =
        published(Levers::default()).iter().map(|s| (s.name, s.from, s.over)).collect();
    Ok(json!({
        "case": "bring-up", "seed": seed,
        "platform": against(last - first, last, &[PLATFORM]),
        "handover": against(handover - begun, handover, &[PLATFORM, HANDOVER]),
        "whole": against(over - begun, over, &[PLATFORM, CLUSTER]),
        "late_ms": lateness(raised),
        "steps": steps_of(raised),
        "published_ms": total(Levers::default()), "alone_ms": alone, "added_ms": added,
        "serial_ms": total(Levers { serial_pulls: true, ..Levers::default() }),
        "levers": LEVERS.iter().map(|(name, _)| *name).collect::<Vec<_>>(),
        "published": steps,
    }))
}

/// When each step began and was done, from the begin of the run.
fn steps_of(raised: &Raised) -> Vec<(String, u64, u64)> {
    let begun = raised.whole().0;
    let mut since = BTreeMap::new();
    let mut all = Vec::new();
    for event in &raised.events {
        match &event.kind {
            EventKind::StepStarted { step, .. } => {
                since.insert(step.clone(), event.at.0 - begun);
            }
            EventKind::StepDone { step, .. } => {
                let from = since.get(step).copied().unwrap_or_default();
                all.push((step.to_string(), from, event.at.0 - begun));
            }
            _ => {}
        }
    }
    all
}

/// How long after its truth each watching gate was passed.
fn lateness(raised: &Raised) -> BTreeMap<String, i64> {
    let mut late = BTreeMap::new();
    for (gate, truth) in WATCHED {
        let ends = raised.draws.iter().filter(|draw| truth.contains(&draw.what));
        let became = ends.map(|draw| draw.begun_at + draw.ms).max();
        if let (Some(passed), Some(became)) = (raised.done(gate), became) {
            let passed = passed - raised.epoch;
            late.insert((*gate).to_owned(), passed.cast_signed() - became.cast_signed());
        }
    }
    late
}
