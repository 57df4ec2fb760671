//! `castle rehearse repeat`: the same bring-up again and again, in memory, for proofs of determinism and speed.

use std::sync::Arc;

use castle_engine::{Report, Stop, Whole};
use castle_journal::Journals;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Event, RunId, Spec, StepDecl};
use castle_rehearsal::host::Host;
use castle_view::history::Expected;
use castle_view::screen::Turn;
use castle_wire::Clock;

use crate::args::{Everywhere, Repeat};
use crate::castle::{self, Place};
use crate::exit::{Exit, Problem};
use crate::face::{Backdrop, Face};
use crate::output;
use crate::project::{self, Which};
use crate::rehearsal::{access, runtime, trusting};
use crate::settings::Settings;
use crate::state::state_problem;
use crate::trace::Trace;

/// Raises the castle so many times, each in a new datacenter with the same seed, and prints the trace of each.
pub(crate) fn run(
    which: &Which,
    args: &Repeat,
    everywhere: &Everywhere,
    settings: &Settings,
) -> Result<Exit, Problem> {
    let spec = project::spec(which, Place::Rehearsal, everywhere.json, settings)?;
    for done in 0..args.times {
        let shown = args.show.then_some(Shown { settings, json: everywhere.json, args, done });
        let (trace, report) = runtime()?.block_on(raise(&spec, args.seed, shown))?;
        output::data(&trace);
        if report.outcome != RunOutcome::Done {
            for failure in report.failures.values() {
                output::talk(&failure.to_string());
            }
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Done)
}

/// How one of the runs is shown.
struct Shown<'a> {
    settings: &'a Settings,
    json: bool,
    args: &'a Repeat,
    /// How many runs came before.
    done: u32,
}

impl Shown<'_> {
    /// The face of a run that is about to begin.
    fn face(&self, decls: &[StepDecl], clock: Arc<dyn Clock>) -> Face {
        let mut face = Face::new(self.json, self.settings, decls);
        let (done, of) = (self.done as usize, self.args.times as usize);
        let what = format!("repeat: {} of {of}", done + 1);
        let turn = (of > 1).then_some(Turn { what, done, of });
        let scene = Backdrop { turn, clock: Some(clock) };
        face.go_live(decls.to_vec(), Expected::default(), scene);
        face
    }
}

async fn raise(
    spec: &Spec,
    seed: u64,
    shown: Option<Shown<'_>>,
) -> Result<(String, Report), Problem> {
    let host = Host::open(None, spec, seed)
        .map_err(|e| Problem::new(Exit::Failed, "the rehearsal could not be opened").because(&e))?;
    let spec = trusting(spec.clone(), &host)?;
    host.spawn_driver();
    let graph = castle::graph(&spec, &host.world(), access(&spec, &host, None))?;
    let mut journals = Journals::in_memory().map_err(|e| state_problem(&e))?;
    let clock = host.clock();
    let mut trace = Trace::default();
    let mut face = shown.map(|shown| shown.face(graph.decls(), host.clock()));
    let (_, report) = Whole {
        castle: &spec.name,
        graph: &graph,
        journals: &mut journals,
        deadlines: &spec.deadlines,
        now: Arc::new(move || clock.now()),
        face: &mut |event: &Event| {
            trace.hear(event);
            if let Some(face) = &mut face {
                face.hear(event);
            }
        },
        run: RunId::new("r0001"),
        stop: Stop::default(),
    }
    .go(Direction::Up)
    .await
    .map_err(|e| Problem::new(Exit::Failed, "the rehearsal could not be run").because(&e))?;
    if let Some(face) = &mut face {
        face.calm();
        face.close(&graph.decls().iter().collect::<Vec<_>>(), &["castle up".to_owned()]);
    }
    Ok((trace.seal(&host.trace_hash()), report))
}
