//! `castle rehearse repeat`: the same bring-up again and again, in memory, for proofs of determinism and speed.

use std::sync::Arc;

use castle_engine::{Report, Stop, Whole};
use castle_journal::Journals;
use castle_model::event::RunOutcome;
use castle_model::plan::Direction;
use castle_model::{Event, PastRun, RunId, Spec, StepDecl};
use castle_rehearsal::host::Host;
use castle_view::history::{Expected, expected};
use castle_view::screen::Turn;
use castle_wire::Clock;

use crate::args::{Everywhere, Repeat};
use crate::castle::{self, Place};
use crate::clearing::exit_of;
use crate::exit::{Exit, Problem};
use crate::face::{Backdrop, Face};
use crate::kept;
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
    let mut before = Vec::new();
    for done in 0..args.times {
        let (json, earlier) = (everywhere.json, before.as_slice());
        let shown = args.show.then_some(Shown { settings, json, args, done, before: earlier });
        let Raised { trace, report, past } = runtime()?.block_on(raise(&spec, args.seed, shown))?;
        before.extend(past);
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
    /// What these took.
    before: &'a [PastRun],
}

/// What is left of one run.
struct Raised {
    trace: String,
    report: Report,
    /// What it took, if it was shown.
    past: Option<PastRun>,
}

impl Shown<'_> {
    /// The face of a run that is about to begin.
    fn face(&self, decls: &[StepDecl], clock: Arc<dyn Clock>) -> Face {
        let mut face = Face::new(self.json, self.settings, decls);
        face.keep(None, &run_id());
        let (done, of) = (self.done as usize, self.args.times as usize);
        let what = format!("repeat: {} of {of}", done + 1);
        let turn = (of > 1).then_some(Turn { what, done, of });
        let scene = Backdrop { turn, clock: Some(clock) };
        face.go_live(decls.to_vec(), usual(self.before, decls), scene);
        face
    }
}

/// Each is the first run of its castle.
fn run_id() -> RunId {
    RunId::new("r0001")
}

/// How long things usually take: as long as in the runs before, else as the steps declare.
fn usual(before: &[PastRun], decls: &[StepDecl]) -> Expected {
    let known = before.last().map(|last| expected(last, before)).filter(|known| known.runs > 0);
    known.unwrap_or_else(|| Expected::declared(decls))
}

async fn raise(spec: &Spec, seed: u64, shown: Option<Shown<'_>>) -> Result<Raised, Problem> {
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
        // A face folds a trace of its own.
        face: &mut |event: &Event| match &mut face {
            Some(face) => face.hear(event),
            None => trace.hear(event),
        },
        run: run_id(),
        stop: Stop::default(),
    }
    .go(Direction::Up)
    .await
    .map_err(|e| Problem::new(Exit::Failed, "the rehearsal could not be run").because(&e))?;
    let requests = host.trace_hash();
    let Some(face) = &mut face else {
        return Ok(Raised { trace: trace.seal(&requests), report, past: None });
    };
    face.calm();
    face.close(&graph.decls().iter().collect::<Vec<_>>(), &["castle up".to_owned()]);
    let exit = exit_of(report.outcome, false);
    let past = kept::past(&spec.name, Direction::Up, graph.decls(), &face.progress(), exit);
    Ok(Raised { trace: face.trace(&requests), report, past })
}

#[cfg(test)]
mod tests {
    use castle_model::Event;
    use castle_model::time::Moment;
    use castle_view::Progress;

    use super::*;

    #[test]
    fn the_first_run_takes_what_its_steps_declare_and_the_next_what_those_before_took() {
        let decls = castle_layers::declare(&castle_config::example());
        let first = usual(&[], &decls);
        assert!(first.runs == 0 && first.whole.is_some_and(|whole| whole > 60_000), "{first:?}");

        let (name, run) = (castle_config::example().name, run_id());
        let past = |took_ms, outcome| {
            let mut progress = Progress::new(&decls);
            let kind = castle_model::EventKind::RunEnded {
                outcome,
                done: decls.len(),
                failed: 0,
                not_run: 0,
                took_ms,
            };
            let (v, at, run) = (castle_model::event::SCHEMA, Moment(0), run.clone());
            progress.apply(&Event { v, seq: 1, at, run, kind });
            let exit = exit_of(outcome, false);
            kept::past(&name, Direction::Up, &decls, &progress, exit).unwrap()
        };
        let before = [past(90_000, RunOutcome::Done), past(100_000, RunOutcome::Done)];
        assert_eq!((usual(&before, &decls).runs, usual(&before, &decls).whole), (2, Some(95_000)));
        let failed = [past(9_000, RunOutcome::Failed)];
        assert_eq!(usual(&failed, &decls), first, "what was not finished tells nothing");
    }
}
