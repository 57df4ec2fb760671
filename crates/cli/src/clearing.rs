//! A run that only removes, over a part of the graph: what `wipe` and `down --layer` do once somebody has agreed.

use std::sync::Arc;

use castle_engine::survey::Surveyor;
use castle_engine::{Graph, Outputs, Report, RunError, Runner, Stop};
use castle_journal::{Journals, Records, Start};
use castle_layers::secrets::source::Access;
use castle_model::audit::Kind;
use castle_model::event::{RunOutcome, SCHEMA};
use castle_model::plan::Direction;
use castle_model::{Audit, Event, EventKind, Plan, StepId};
use castle_view::{Progress, audit, plain, report};
use castle_wire::World;

use crate::castle::Castle;
use crate::exit::{Exit, Problem};
use crate::face::style;
use crate::output;
use crate::settings::Settings;
use crate::signals::{Signals, survive_hangup};
use crate::state::{next_run, state_problem};

/// What such a run works with.
pub(crate) struct Clearing<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) castle: &'a Castle,
    pub(crate) world: &'a World,
    pub(crate) access: &'a Access,
    pub(crate) rehearsal: bool,
    pub(crate) json: bool,
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
        let deadlines = &self.castle.spec.deadlines;
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
            report = self.carry_out(graph, plan, outputs, journals, &stop) => report,
            () = signals.pass_on(&stop) => Err(Problem::new(Exit::Interrupted, "interrupted")),
        }
    }

    async fn carry_out(
        &self,
        graph: &Graph,
        plan: &Plan,
        outputs: Arc<Outputs>,
        journals: &mut Journals,
        stop: &Stop,
    ) -> Result<Report, Problem> {
        let castle = self.castle.spec.name.clone();
        let run = next_run(journals.records(), self.world.clock.now());
        let mut progress = Progress::new(graph.decls());
        let style = style(self.settings);
        let mut hear = |event: &Event| {
            progress.apply(event);
            if self.json {
                output::data(&serde_json::to_string(event).unwrap_or_default());
            } else if let Some(line) = plain::line(event, &progress, style) {
                output::talk(&line);
            }
        };
        let first = [
            EventKind::RunStarted {
                castle: castle.clone(),
                direction: Direction::Down,
                rehearsal: self.rehearsal,
                steps: plan.steps.len(),
            },
            EventKind::Planned { plan: plan.hash.clone(), counts: plan.counts() },
        ];
        let mut told = 0;
        for kind in first {
            told += 1;
            let (v, at, run) = (SCHEMA, self.world.clock.now(), run.clone());
            hear(&Event { v, seq: told, at, run, kind });
        }
        let start = Start {
            run: run.clone(),
            castle,
            direction: Direction::Down,
            plan: plan.hash.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        journals.start_run(self.world.clock.now(), start).map_err(|e| state_problem(&e))?;
        let clock = self.world.clock.clone();
        let runner = Runner {
            graph,
            plan,
            journals: &mut *journals,
            outputs,
            deadlines: &self.castle.spec.deadlines,
            now: Arc::new(move || clock.now()),
            face: &mut hear,
            told,
            run,
            stop: stop.clone(),
        };
        let report = runner.run().await.map_err(|error| self.broken_off(&error))?;
        journals.compact_if_grown(self.world.clock.now()).map_err(|e| state_problem(&e))?;
        if !self.json {
            let decls: Vec<_> = plan.steps.iter().map(|step| &step.decl).collect();
            let unfinished = report.outcome != RunOutcome::Done;
            let go_on = unfinished.then_some(self.go_on.as_str());
            output::data(&report::end(&progress, &decls, go_on, style));
        }
        Ok(report)
    }

    fn broken_off(&self, error: &RunError) -> Problem {
        let RunError::Journal(state) = error;
        Problem::refused("the run stopped before its next act: the journal could not be written")
            .because(state)
            .hint(format!("{}; then `{}` goes on", state.hint(), self.go_on))
    }

    /// Looks at what is there of the castle, which should be gone.
    pub(crate) async fn audit(&self) -> Result<Audit, Problem> {
        let audit =
            castle_layers::audit::audit(&self.castle.spec, self.world, self.access, Some(true))
                .await;
        audit.map_err(|failure| Problem::failure(&failure))
    }

    /// Shows an audit.
    pub(crate) fn show(&self, found: &Audit) {
        show(found, self.json, self.settings);
    }
}

/// What is left of a castle that has just gone, by a look at the world; each with the step that would have removed it.
pub(crate) async fn left(
    castle: &Castle,
    (world, access): (&World, &Access),
    json: bool,
    settings: &Settings,
) -> Vec<(StepId, String)> {
    let found = match castle_layers::audit::audit(&castle.spec, world, access, Some(true)).await {
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
        serde_json::to_string(found).unwrap_or_default()
    } else {
        audit::text(found, style(settings))
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
