//! One castle, raised in a datacenter of its own.

use std::collections::BTreeMap;
use std::error::Error;
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
use castle_rehearsal::durations::Draw;

/// What a bring-up left behind.
pub(crate) struct Raised {
    pub(crate) events: Vec<Event>,
    pub(crate) draws: Vec<Draw>,
    /// The numbers of machines by the names of their nodes.
    pub(crate) names: BTreeMap<String, String>,
    /// From virtual time, which begins with the world, to the clock of events, which has a date.
    pub(crate) epoch: u64,
}

/// Raises a castle; one that does not stand is an error.
pub(crate) async fn raise(mut spec: Spec, seed: u64) -> Result<Raised, Box<dyn Error>> {
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
    let node = |node: &castle_model::spec::NodeSpec| {
        Some((node.name.to_string(), node.vm()?.vmid.to_string()))
    };
    let epoch = events.last().map_or(0, |event| event.at.0) - host.now();
    Ok(Raised {
        draws: host.read(|world| world.draws.all().to_vec()),
        names: spec.nodes.iter().filter_map(node).collect(),
        events,
        epoch,
    })
}

impl Raised {
    /// When the run began and ended, by the clock of events.
    pub(crate) fn whole(&self) -> (u64, u64) {
        let at = |event: Option<&Event>| event.map_or(0, |event| event.at.0);
        (at(self.events.first()), at(self.events.last()))
    }

    /// When the first step of the platform began and the last one was proven.
    pub(crate) fn platform(&self) -> Option<(u64, u64)> {
        let own = |step: &castle_model::StepId| step.as_str().starts_with("platform/");
        let begun = self.events.iter().find_map(|event| match &event.kind {
            EventKind::StepStarted { step, .. } if own(step) => Some(event.at.0),
            _ => None,
        })?;
        let over = self.events.iter().rev().find_map(|event| match &event.kind {
            EventKind::StepDone { step, .. } if own(step) => Some(event.at.0),
            _ => None,
        })?;
        Some((begun, over))
    }

    /// When a step was done.
    pub(crate) fn done(&self, wanted: &str) -> Option<u64> {
        self.events.iter().find_map(|event| match &event.kind {
            EventKind::StepDone { step, .. } if step.as_str() == wanted => Some(event.at.0),
            _ => None,
        })
    }
}
