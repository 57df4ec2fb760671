//! A run that only removes, over a part of the graph: what `wipe` and `down --layer` do once somebody has agreed. And the
//! audit that every way down ends with.

use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, RunError, Runner, Stop};
use castle_journal::{Journals, Records, Start};
use castle_layers::audit::audit;
use castle_layers::secrets::source::Access;
use castle_model::audit::Kind;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::{Audit, Event, EventKind, Plan, RunId, StepDecl, StepId};
use castle_wire::World;

use crate::answer;
use crate::castle::Castle;
use crate::exit::{Exit, Problem};
use crate::face::{Face, style};
use crate::output;
use crate::session::Session;
use crate::settings::Settings;
use crate::signals::{Signals, survive_hangup};
use crate::state::{next_run, state_problem};

/// Such a run.
pub(crate) struct Clearing<'a> {
    pub(crate) session: &'a Session<'a>,
    /// The command that goes on where this one ended.
    pub(crate) go_on: String,
}

impl Clearing<'_> {
    /// A surveyor of the steps of a graph.
    pub(crate) fn surveyor<'s>(
        &'s self,
        graph: &'s Graph,
        records: &'s Records,
        outputs: &Arc<Outputs>,
    ) -> Surveyor<'s> {
        let deadlines = &self.session.castle.spec.deadlines;
        Surveyor { graph, records, outputs: outputs.clone(), deadlines }
    }

    /// Carries a plan out that somebody has agreed to, and shows how it went.
    pub(crate) async fn run(
        &self,
        graph: &Graph,
        plan: &Plan,
        outputs: Arc<Outputs>,
        journals: &mut Journals,
    ) -> Result<Report, Problem> {
        let _hangup = survive_hangup()?;
        let mut signals = Signals::listen()?;
        let stop = Stop::default();
        tokio::select! {
            biased;
            report = self.carry_out((graph, plan), outputs, journals, &stop) => report,
            () = signals.pass_on(&stop) => Err(Problem::new(Exit::Interrupted, "interrupted")),
        }
    }

    async fn carry_out(
        &self,
        (graph, plan): (&Graph, &Plan),
        outputs: Arc<Outputs>,
        journals: &mut Journals,
        stop: &Stop,
    ) -> Result<Report, Problem> {
        let Session { castle, world, runs, settings, json, .. } = self.session;
        let kept = runs.and_then(|runs| runs.list().ok()).unwrap_or_default();
        let run = next_run(journals.records(), kept.last(), world.clock.now());
        let mut face = Face::new(*json, settings, graph.decls());
        let start = Start {
            run: run.clone(),
            castle: castle.spec.name.clone(),
            direction: Direction::Down,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        journals.start_run(world.clock.now(), start).map_err(|e| state_problem(&e))?;
        face.keep(*runs, &run);
        let told = self.begin(plan, &run, &mut face);
        let clock = world.clock.clone();
        let runner = Runner {
            graph,
            plan,
            journals: &mut *journals,
            outputs,
            deadlines: &castle.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut |event: &Event| face.hear(event),
            told,
            run,
            stop: stop.clone(),
        };
        let report = runner.run().await.map_err(|error| self.broken_off(&error))?;
        journals.compact_if_grown(world.clock.now()).map_err(|e| state_problem(&e))?;
        let decls: Vec<&StepDecl> = plan.steps.iter().map(|step| &step.decl).collect();
        face.close(&decls, std::slice::from_ref(&self.go_on));
        Ok(report)
    }

    /// Tells that the run begins; says how many events that were.
    fn begin(&self, plan: &Plan, run: &RunId, face: &mut Face) -> u64 {
        let started = EventKind::RunStarted {
            castle: self.session.castle.spec.name.clone(),
            direction: Direction::Down,
            rehearsal: self.session.rehearsal.is_some(),
            steps: plan.steps.len(),
        };
        let planned = EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() };
        for (seq, kind) in [(1, started), (2, planned)] {
            let (v, at, run) = (SCHEMA, self.session.world.clock.now(), run.clone());
            face.hear(&Event { v, seq, at, run, kind });
        }
        2
    }

    fn broken_off(&self, error: &RunError) -> Problem {
        let RunError::Journal(state) = error;
        Problem::refused("the run stopped before its next act: the journal could not be written")
            .because(state)
            .hint(format!("{}; then `{}` goes on", state.hint(), self.go_on))
    }

    /// Looks at what is there of the castle, which should be gone.
    pub(crate) async fn audit(&self) -> Result<Audit, Problem> {
        let Session { castle, world, access, .. } = self.session;
        let found = audit(&castle.spec, world, access, Some(true)).await;
        found.map_err(|failure| Problem::failure(&failure))
    }
}

/// What is left of a castle that has just gone, by a look at the world; each with the step that would have removed it.
pub(crate) async fn left(
    castle: &Castle,
    (world, access): (&World, &Access),
    json: bool,
    settings: &Settings,
) -> Vec<(StepId, String)> {
    let found = match audit(&castle.spec, world, access, Some(true)).await {
        Ok(found) => found,
        Err(failure) => {
            let why = format!("nobody can say what is left: {failure}");
            return vec![(StepId::new("platform", "audit"), why)];
        }
    };
    if !json {
        show(&found, false, settings);
    }
    found.amiss().map(|item| (remover(item.kind), item.words())).collect()
}

/// The step under which a thing is told.
fn remover(kind: Kind) -> StepId {
    match kind {
        Kind::Guest => StepId::new("platform", "guests"),
        Kind::Disk => StepId::new("platform", "disks"),
        Kind::Image => StepId::new("platform", "image"),
        Kind::Task => StepId::new("platform", "tasks"),
        Kind::Escrow => StepId::new("secrets", "escrow"),
        Kind::Address => StepId::new("platform", "addresses"),
    }
}

/// Shows an audit as a page or as a line of JSON.
pub(crate) fn show(found: &Audit, json: bool, settings: &Settings) {
    output::data(&if json {
        answer::line("audit", found)
    } else {
        castle_view::audit::text(found, style(settings))
    });
}

/// How a command ends whose run ended so, with this left.
pub(crate) fn exit_of(outcome: RunOutcome, found: &Audit) -> Exit {
    match outcome {
        RunOutcome::Interrupted => Exit::Interrupted,
        RunOutcome::Failed => Exit::Failed,
        RunOutcome::Done if found.amiss().next().is_some() => Exit::Leftovers,
        RunOutcome::Done => Exit::Done,
    }
}

/// Asks whoever sits there for the castle's name; with `yes`, somebody has agreed beforehand.
pub(crate) fn agreed(castle: &Castle, settings: &Settings, yes: bool) -> Result<(), Problem> {
    if yes {
        return Ok(());
    }
    if !settings.stdin_is_terminal {
        return Err(Problem::refused("nothing was done: nobody is there to agree")
            .hint("add --yes to agree beforehand"));
    }
    let name = &castle.spec.name;
    output::say(&format!("Type the castle's name ({name}) to agree:"));
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).ok();
    if answer.trim() == name.as_str() {
        return Ok(());
    }
    Err(Problem::refused("nothing was done: that is not the castle's name"))
}
