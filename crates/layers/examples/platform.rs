//! Holds the platform layer against the datacenter's own bound, for `cargo xtask bench`: one JSON line per seed.
//!
//! `took_ms` is the layer's time, `bound_ms` the longest chain of what the datacenter drew, `late_ms` how long after its
//! truth each gate was passed that watches.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdout};
use std::sync::Arc;

use castle_engine::{Stop, Whole};
use castle_infisical::Credentials;
use castle_journal::Journals;
use castle_layers::secrets::source::Access;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::spec::Trust;
use castle_model::{Event, EventKind, RunId, Spec};
use castle_rehearsal::Host;
use castle_rehearsal::bound::longest;
use castle_rehearsal::durations::{Draw, Process};
use castle_rehearsal::host::runtime;
use serde_json::json;

/// How many castles are raised, each from a seed of its own.
const SEEDS: u64 = 40;

/// The gates that watch, and the processes whose last end makes each of them true.
const WATCHED: &[(&str, &[Process])] =
    &[("platform/nodes", &[Process::NodeReady, Process::AddonStart])];

fn main() -> Result<(), Box<dyn Error>> {
    for seed in 1..=SEEDS {
        let line = runtime()?.block_on(raise(castle_config::example(), seed))?;
        writeln!(stdout(), "{line}")?;
    }
    Ok(())
}

async fn raise(mut spec: Spec, seed: u64) -> Result<serde_json::Value, Box<dyn Error>> {
    let host = Host::open(None, &spec, seed)?;
    host.spawn_driver();
    if let Some(proxmox) = spec.platform.proxmox_mut() {
        proxmox.trust = Trust::Fingerprint(host.proxmox_fingerprint()?);
    }
    let spec = Arc::new(spec);
    let (client_id, client_secret) = host.credentials();
    let identity = Credentials { client_id, client_secret };
    let graph = castle_layers::build(&spec, &host.world(), Access::to_infisical(identity));
    let clock = host.clock();
    let mut events = Vec::new();
    let (_, report) = Whole {
        castle: &spec.name,
        graph: &graph,
        journals: &mut Journals::in_memory()?,
        deadlines: &spec.deadlines,
        now: Arc::new(move || clock.now()),
        face: &mut |event: &Event| events.push(event.clone()),
        run: RunId::new("r0001"),
        stop: Stop::default(),
    }
    .go(Direction::Up)
    .await?;
    if report.outcome != RunOutcome::Done {
        return Err(format!("seed {seed} failed: {:?}", report.failures).into());
    }
    let draws = host.read(|world| world.draws.all().to_vec());
    let names: BTreeMap<String, String> = spec
        .nodes
        .iter()
        .filter_map(|node| Some((node.name.to_string(), node.vm()?.vmid.to_string())))
        .collect();
    let bound = longest(&draws, 0, &names);
    let chain: Vec<String> =
        bound.chain.iter().map(|draw| format!("{} {}", draw.what.name(), draw.subject)).collect();
    let (begun, over) = platform(&events).ok_or("the platform layer left no trace")?;
    // Virtual time begins with the world, the clock of events with a date: the same length in both.
    let epoch = events.first().map_or(0, |event| event.at.0) - host_time(&events, &host);
    Ok(json!({
        "case": "platform", "seed": seed, "took_ms": over - begun, "bound_ms": bound.ms,
        "late_ms": lateness(&events, &draws, epoch), "chain": chain,
    }))
}

/// Virtual milliseconds at the first event, from those at the end.
fn host_time(events: &[Event], host: &Host) -> u64 {
    let (first, last) = (events.first(), events.last());
    let run = last.map_or(0, |event| event.at.0) - first.map_or(0, |event| event.at.0);
    host.now().saturating_sub(run)
}

/// When the first step of the platform began and the last one was proven.
fn platform(events: &[Event]) -> Option<(u64, u64)> {
    let own = |step: &castle_model::StepId| step.as_str().starts_with("platform/");
    let begun = events.iter().find_map(|event| match &event.kind {
        EventKind::StepStarted { step, .. } if own(step) => Some(event.at.0),
        _ => None,
    })?;
    let over = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::StepDone { step, .. } if own(step) => Some(event.at.0),
        _ => None,
    })?;
    Some((begun, over))
}

/// How long after its truth each watching gate was passed.
fn lateness(events: &[Event], draws: &[Draw], epoch: u64) -> BTreeMap<String, i64> {
    let mut late = BTreeMap::new();
    for (gate, truth) in WATCHED {
        let passed = events.iter().find_map(|event| match &event.kind {
            EventKind::StepDone { step, .. } if step.as_str() == *gate => Some(event.at.0 - epoch),
            _ => None,
        });
        let ends = draws.iter().filter(|draw| truth.contains(&draw.what));
        let became = ends.map(|draw| draw.begun_at + draw.ms).max();
        if let (Some(passed), Some(became)) = (passed, became) {
            late.insert((*gate).to_owned(), passed.cast_signed() - became.cast_signed());
        }
    }
    late
}
